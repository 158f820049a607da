//! The port's own suite against Odoo.

use std::time::Duration;

use async_trait::async_trait;
use countersign_erp_source::conformance::{Edit, Fixture, HeldAccount, NewDocument};
use countersign_erp_source::{
    AccountId, BillId, CompanyId, ErpSource, Iban, SealKey, Timestamp, VendorId,
};
use countersign_odoo::seed::{SeedError, VendorSeed};
use serde::Deserialize;
use serde_json::json;

use crate::scene::{self, Scene, account_id, bill_id, new_iban, random, vendor_id};

struct OdooFixture {
    scene: Scene,
    unused: Iban,
}

async fn fixture() -> Option<OdooFixture> {
    let scene = scene::enter().await?;
    // The first sign-in of an identity costs Odoo much; the short deadlines of some checks are not
    // for that.
    scene.odoo.list_orders(&scene.store, 0, 1).await.unwrap();
    Some(OdooFixture { scene, unused: new_iban() })
}

fn number(id: &str) -> i32 {
    id.parse().unwrap()
}

/// Methods that answer with nothing are reported as failed after they worked.
fn whatever_it_says(answer: Result<bool, SeedError>) {
    match answer {
        Ok(_) => {}
        Err(error) => assert!(error.to_string().contains("fault 1"), "{error}"),
    }
}

impl OdooFixture {
    async fn write(&self, model: &str, id: &str, values: serde_json::Value) {
        self.scene.write(model, number(id), values).await.unwrap();
    }

    /// Odoo tells its times by the second: what is edited in the one in which it was made looks new.
    async fn in_a_later_second(&self, account: &AccountId) {
        #[derive(Deserialize)]
        struct Made {
            create_date: String,
        }
        let args = json!([[number(account.as_str())], ["create_date"]]);
        let found = self.scene.admin.call("res.partner.bank", "read", args).await;
        let found: Vec<Made> = found.unwrap();
        let made = found.first().unwrap().create_date.replacen(' ', "T", 1) + "Z";
        let later = Timestamp::parse(&made).unwrap().plus(Duration::from_secs(1));
        while self.scene.erp_time().await < later {}
    }

    async fn pay_by_hand(&self, bill: i32, amount: &str) {
        // What the form does that a person fills in. Two of them at once take the same number, and
        // Odoo refuses one: so this one takes turns.
        let code = format!(
            "w = env['account.payment.register'].with_context(active_model='account.move', \
             active_ids=[{bill}]).create({{'amount': {amount}, \
             'payment_difference_handling': 'open'}})\n\
             env.cr.execute('INSERT INTO countersign_turn AS known VALUES (%s, 1) ON CONFLICT \
             (journal) DO UPDATE SET turns = known.turns + 1', [w.journal_id.id])\n\
             w.action_create_payments()\n\
             action = {{'said': 'done'}}\n"
        );
        self.scene.run_code(&code).await.unwrap();
    }
}

impl OdooFixture {
    /// What Odoo's form for contacts that are one does.
    async fn merge(&self, vendor: &VendorId, into: &VendorId) {
        let (vendor, into) = (number(vendor.as_str()), number(into.as_str()));
        let code = format!(
            "w = env['base.partner.merge.automatic.wizard'].create({{'state': 'selection', \
             'partner_ids': [(6, 0, [{vendor}, {into}])], 'dst_partner_id': {into}}})\n\
             w.action_merge()\n\
             action = {{'said': 'done'}}\n"
        );
        self.scene.run_code(&code).await.unwrap();
    }
}

#[async_trait]
impl Fixture for OdooFixture {
    fn erp(&self) -> &dyn ErpSource {
        &self.scene.odoo
    }

    fn seal_key(&self) -> &SealKey {
        &self.scene.key
    }

    fn company(&self) -> &CompanyId {
        &self.scene.company
    }

    async fn foreign_bill(&self) -> (CompanyId, BillId) {
        let there = self.scene.open_bill_in(self.scene.other_erp_company, "100.00").await;
        (self.scene.other_company.clone(), bill_id(there.bill))
    }

    async fn open_bill(&self, total: &str) -> (BillId, VendorId, AccountId) {
        let open = self.scene.open_bill(total).await;
        (bill_id(open.bill), vendor_id(open.vendor.vendor), account_id(open.vendor.account))
    }

    async fn document(&self, vendor: &VendorId, wanted: &NewDocument) -> BillId {
        let kind = if wanted.credit_note { "in_refund" } else { "in_invoice" };
        let reference = wanted.reference.as_deref();
        let (vendor, date) = (number(vendor.as_str()), wanted.date.to_string());
        bill_id(self.scene.document(kind, vendor, reference, &wanted.total, &date).await)
    }

    async fn vendor_with(&self, number: &str) -> (VendorId, AccountId) {
        let name = format!("Vendor {:x}", random());
        let seed = VendorSeed { name: &name, phone: "", iban: number, trusted: true };
        let vendor = self.scene.admin.vendor(&seed).await.unwrap();
        self.scene.bill_of(1, vendor, "10.00").await;
        (vendor_id(vendor.vendor), account_id(vendor.account))
    }

    fn unused_iban(&self) -> &str {
        self.unused.electronic()
    }

    fn unused_ids(&self) -> (BillId, VendorId) {
        (bill_id(999_999_999), vendor_id(999_999_999))
    }

    async fn edit(&self, edit: Edit) {
        match edit {
            Edit::ArchiveAccount(account) => {
                let values = json!({ "active": false });
                self.write("res.partner.bank", account.as_str(), values).await;
            }
            Edit::ChangeNumber(account, number) => {
                self.in_a_later_second(&account).await;
                // Odoo lets the number of a trusted account be changed only by taking the trust.
                let values = json!({ "acc_number": number, "allow_out_payment": false });
                self.write("res.partner.bank", account.as_str(), values).await;
            }
            Edit::Distrust(account) => {
                let values = json!({ "allow_out_payment": false });
                self.write("res.partner.bank", account.as_str(), values).await;
            }
            Edit::CancelBill(bill) => {
                for method in ["button_draft", "button_cancel"] {
                    let args = json!([[number(bill.as_str())]]);
                    whatever_it_says(self.scene.admin.call("account.move", method, args).await);
                }
            }
            Edit::PayByHand(bill, amount) => {
                self.pay_by_hand(number(bill.as_str()), &amount).await;
            }
            Edit::UndoPayment(bill) => {
                let vendor = self.scene.vendor_of(number(bill.as_str())).await;
                for payment in self.scene.payments_to(vendor).await {
                    let args = json!([[payment.id]]);
                    let answer = self.scene.admin.call("account.payment", "action_draft", args);
                    whatever_it_says(answer.await);
                }
            }
            Edit::Rename(vendor, name) => {
                self.write("res.partner", vendor.as_str(), json!({ "name": name })).await;
            }
            Edit::ChangePhone(vendor, phone) => {
                self.write("res.partner", vendor.as_str(), json!({ "phone": phone })).await;
            }
            Edit::AddAccount(vendor, iban) => {
                let values = json!({
                    "acc_number": iban, "partner_id": number(vendor.as_str()),
                    "allow_out_payment": true,
                });
                let create = self.scene.admin.call("res.partner.bank", "create", json!([values]));
                let _id: i32 = create.await.unwrap();
            }
            Edit::RemoveAccount(account) => {
                let args = json!([[number(account.as_str())]]);
                let answer = self.scene.admin.call("res.partner.bank", "unlink", args);
                whatever_it_says(answer.await);
            }
            Edit::GiveAccount(account, vendor) => {
                // As with the number, only together with the trust.
                let values = json!({
                    "partner_id": number(vendor.as_str()), "allow_out_payment": false,
                });
                self.write("res.partner.bank", account.as_str(), values).await;
            }
            Edit::Merge(vendor, into) => self.merge(&vendor, &into).await,
        }
    }

    fn another_iban(&self) -> String {
        new_iban().electronic().to_owned()
    }

    async fn accounts_of(&self, vendor: &VendorId) -> Vec<HeldAccount> {
        #[derive(Deserialize)]
        struct Found {
            acc_number: String,
            active: bool,
            allow_out_payment: bool,
        }
        let owner = json!(["partner_id", "=", number(vendor.as_str())]);
        let domain = json!([owner, ["active", "in", [true, false]]]);
        let fields = json!(["acc_number", "active", "allow_out_payment"]);
        let args = json!([domain, fields]);
        let found: Vec<Found> =
            self.scene.admin.call("res.partner.bank", "search_read", args).await.unwrap();
        let held = found.into_iter().map(|account| HeldAccount {
            number: account.acc_number,
            active: account.active,
            allowed: account.allow_out_payment,
        });
        held.collect()
    }

    async fn named_by(&self, bill: &BillId) -> Option<String> {
        let bill = number(bill.as_str());
        let code = format!(
            "named = env['account.move'].browse({bill}).partner_bank_id\n\
             action = {{'said': named.acc_number or ''}}\n"
        );
        Some(self.scene.run_code(&code).await.unwrap()).filter(|number| !number.is_empty())
    }

    async fn payments_of(&self, bill: &BillId) -> Vec<String> {
        #[derive(Deserialize)]
        struct Found {
            id: i32,
        }
        let domain = json!([["id", "=", number(bill.as_str())]]);
        let found: Vec<Found> = self
            .scene
            .admin
            .call("account.move", "search_read", json!([domain, ["id"]]))
            .await
            .unwrap();
        let Some(found) = found.first() else { return Vec::new() };
        // Each vendor of a check has one bill, so what was paid to him was paid for it, settled or
        // not.
        let vendor = self.scene.vendor_of(found.id).await;
        let payments = self.scene.payments_to(vendor).await;
        payments.iter().map(|payment| format!("{:.2}", payment.amount)).collect()
    }

    async fn erp_time(&self) -> Timestamp {
        self.scene.erp_time().await
    }

    async fn wait_past(&self, moment: Timestamp) {
        while self.scene.erp_time().await <= moment {}
    }
}

countersign_erp_source::conformance_tests!(if fixture);
