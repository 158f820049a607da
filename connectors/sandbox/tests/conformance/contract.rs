//! The suite of the port, against the sandbox as the daemon has it: measured.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use countersign_erp_source::conformance::{Edit, Fixture, HeldAccount, NewDocument};
use countersign_erp_source::{
    AccountId, BillId, Clock, CompanyId, ErpSource, Measured, SealKey, Timestamp, VendorId,
};
use countersign_sandbox::{AccountFields, BillFields, KindWord, Sandbox, StateWord, VendorFields};

use crate::measured::Noted;
use crate::world::{Place, UNUSED_IBAN, company, nobody_s_iban};

const COMPANY: &str = "blue-sparrow";

struct SandboxFixture {
    place: Place,
    sandbox: Sandbox,
    erp: Measured<Sandbox>,
    company: CompanyId,
}

async fn sandbox_fixture() -> SandboxFixture {
    let place = Place::new();
    let sandbox = place.open().await;
    let erp = Measured::new(Arc::new(sandbox.clone()), Arc::<Noted>::default());
    SandboxFixture { place, sandbox, erp, company: company() }
}

impl SandboxFixture {
    async fn bill_of_new_vendor(
        &self,
        number: u64,
        iban: &str,
        total: &str,
    ) -> (BillId, VendorId, AccountId) {
        let (vendor, bill) = (format!("V-{number:04}"), format!("B-{number:04}"));
        let fields = VendorFields {
            name: Some(format!("Vendor {number}")),
            iban: Some(Some(iban.to_owned())),
            iban_age_days: Some(100),
            ..VendorFields::default()
        };
        self.sandbox.put_vendor(COMPANY, &vendor, &fields).await.unwrap();
        let fields = BillFields {
            vendor: Some(vendor.clone()),
            amount: Some(total.to_owned()),
            ..BillFields::default()
        };
        self.sandbox.put_bill(COMPANY, &bill, &fields).await.unwrap();
        let account = AccountId::new(format!("{vendor}/1")).unwrap();
        (BillId::new(bill).unwrap(), VendorId::new(vendor).unwrap(), account)
    }

    /// Edits the list of a vendor's accounts, with the place of the one that is meant.
    async fn edit_accounts(
        &self,
        account: &AccountId,
        change: impl Fn(&mut Vec<AccountFields>, usize),
    ) {
        let mut all = self.sandbox.list_vendors(&self.company, None, 1_000).await.unwrap();
        all.retain(|vendor| vendor.account(account).is_some());
        let vendor = all.pop().unwrap();
        let place = vendor.accounts.iter().position(|own| own.id == *account).unwrap();
        let numbers = vendor.accounts.iter().map(|own| own.number.whole());
        let mut accounts: Vec<_> = numbers.map(fields_of).collect();
        change(&mut accounts, place);
        self.put(&vendor.id, VendorFields { accounts: Some(accounts), ..VendorFields::default() })
            .await;
    }

    async fn edit_account(&self, account: &AccountId, change: impl Fn(&mut AccountFields)) {
        self.edit_accounts(account, |accounts, place| change(&mut accounts[place])).await;
    }

    async fn put(&self, vendor: &VendorId, fields: VendorFields) {
        self.sandbox.put_vendor(COMPANY, vendor.as_str(), &fields).await.unwrap();
    }
}

fn fields_of(number: &str) -> AccountFields {
    AccountFields {
        iban: number.to_owned(),
        age_days: None,
        active: None,
        holder: None,
        allowed: None,
        owner: None,
    }
}

#[async_trait]
impl Fixture for SandboxFixture {
    fn erp(&self) -> &dyn ErpSource {
        &self.erp
    }

    fn seal_key(&self) -> &SealKey {
        &self.place.key
    }

    fn company(&self) -> &CompanyId {
        &self.company
    }

    async fn foreign_bill(&self) -> (CompanyId, BillId) {
        (CompanyId::new("red-heron").unwrap(), BillId::new("INV-9").unwrap())
    }

    async fn open_bill(&self, total: &str) -> (BillId, VendorId, AccountId) {
        let number = self.place.count();
        self.bill_of_new_vendor(number, &nobody_s_iban(number), total).await
    }

    async fn document(&self, vendor: &VendorId, wanted: &NewDocument) -> BillId {
        let id = format!("B-{:04}", self.place.count());
        let kind = if wanted.credit_note { KindWord::CreditNote } else { KindWord::Bill };
        let fields = BillFields {
            vendor: Some(vendor.as_str().to_owned()),
            vendor_reference: Some(wanted.reference.clone()),
            date: Some(wanted.date.to_string()),
            amount: Some(wanted.total.clone()),
            kind: Some(kind),
            ..BillFields::default()
        };
        self.sandbox.put_bill(COMPANY, &id, &fields).await.unwrap();
        BillId::new(id).unwrap()
    }

    async fn vendor_with(&self, number: &str) -> (VendorId, AccountId) {
        let (_, vendor, account) =
            self.bill_of_new_vendor(self.place.count(), number, "10.00").await;
        (vendor, account)
    }

    fn unused_iban(&self) -> &str {
        UNUSED_IBAN
    }

    fn unused_ids(&self) -> (BillId, VendorId) {
        (BillId::new("B-none").unwrap(), VendorId::new("V-none").unwrap())
    }

    async fn edit(&self, edit: Edit) {
        match edit {
            Edit::ArchiveAccount(account) => {
                self.edit_account(&account, |fields| fields.active = Some(false)).await;
            }
            Edit::ChangeNumber(account, number) => {
                self.edit_account(&account, |fields| fields.iban.clone_from(&number)).await;
            }
            Edit::Distrust(account) => {
                self.edit_account(&account, |fields| fields.allowed = Some(false)).await;
            }
            Edit::CancelBill(bill) => {
                let fields =
                    BillFields { state: Some(StateWord::Cancelled), ..BillFields::default() };
                self.sandbox.put_bill(COMPANY, bill.as_str(), &fields).await.unwrap();
            }
            Edit::PayByHand(bill, amount) => {
                self.sandbox.pay_by_hand(COMPANY, bill.as_str(), &amount).await.unwrap();
            }
            Edit::UndoPayment(bill) => {
                self.sandbox.undo_payment(COMPANY, bill.as_str()).await.unwrap();
            }
            Edit::Rename(vendor, name) => {
                self.put(&vendor, VendorFields { name: Some(name), ..VendorFields::default() })
                    .await;
            }
            Edit::ChangePhone(vendor, phone) => {
                let phone = Some(Some(phone));
                self.put(&vendor, VendorFields { phone, ..VendorFields::default() }).await;
            }
            Edit::AddAccount(vendor, number) => {
                let on_file = self.accounts_of(&vendor).await;
                let numbers = on_file.iter().map(|held| &held.number).chain([&number]);
                let accounts = Some(numbers.map(|number| fields_of(number)).collect());
                self.put(&vendor, VendorFields { accounts, ..VendorFields::default() }).await;
            }
            Edit::RemoveAccount(account) => {
                self.edit_accounts(&account, |accounts, place| drop(accounts.remove(place))).await;
            }
            Edit::GiveAccount(account, vendor) => {
                let owner = Some(vendor.as_str().to_owned());
                self.edit_account(&account, |fields| fields.owner.clone_from(&owner)).await;
            }
            Edit::Merge(vendor, into) => {
                let merged_into = Some(into.as_str().to_owned());
                self.put(&vendor, VendorFields { merged_into, ..VendorFields::default() }).await;
            }
        }
    }

    fn another_iban(&self) -> String {
        nobody_s_iban(self.place.count())
    }

    async fn accounts_of(&self, vendor: &VendorId) -> Vec<HeldAccount> {
        let on_file = self.sandbox.vendor(COMPANY, vendor.as_str()).await.unwrap();
        let held = on_file.accounts.into_iter().map(|account| HeldAccount {
            number: account.iban,
            active: account.active,
            allowed: account.allowed,
        });
        held.collect()
    }

    async fn named_by(&self, bill: &BillId) -> Option<String> {
        self.sandbox.bill(COMPANY, bill.as_str()).await.unwrap().payee_iban
    }

    async fn payments_of(&self, bill: &BillId) -> Vec<String> {
        let payments = self.sandbox.payments().await.unwrap();
        payments
            .into_iter()
            .filter(|payment| payment.company == COMPANY && payment.invoice_ref == bill.as_str())
            .map(|payment| payment.amount)
            .collect()
    }

    async fn erp_time(&self) -> Timestamp {
        self.sandbox.sync_clock().await.unwrap();
        self.sandbox.now()
    }

    async fn wait_past(&self, moment: Timestamp) {
        let missing = moment.since(self.erp_time().await) + Duration::from_millis(1);
        let missing = format!("{}ms", missing.as_millis());
        self.sandbox.advance_clock(&missing).await.unwrap();
    }
}

countersign_erp_source::conformance_tests!(sandbox_fixture);
