//! The suite of the port, against the sandbox as the daemon has it: measured.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use countersign_erp_source::conformance::{Edit, Fixture, NewDocument};
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

    async fn edit_account(&self, account: &AccountId, change: impl Fn(&mut AccountFields)) {
        let (vendor, number) = account.as_str().rsplit_once('/').unwrap();
        let on_file = self.sandbox.vendor(COMPANY, vendor).await.unwrap();
        let mut accounts: Vec<_> = on_file
            .accounts
            .into_iter()
            .map(|account| AccountFields {
                iban: account.iban,
                age_days: None,
                active: None,
                holder: None,
                allowed: None,
            })
            .collect();
        assert_eq!(number, "1", "the fixture's vendors have one account");
        change(&mut accounts[0]);
        let fields = VendorFields { accounts: Some(accounts), ..VendorFields::default() };
        self.sandbox.put_vendor(COMPANY, vendor, &fields).await.unwrap();
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
        }
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
