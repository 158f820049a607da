//! What people see and do in Odoo itself, past the gateway: an administrator who looks at the
//! books, and persons with the rights that somebody in a company has.

use countersign_odoo::Credential;
use countersign_odoo::seed::{SeedError, SeedOptions, Seeder};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};

/// One database of one Odoo, seen by its administrator.
#[derive(Debug)]
pub(crate) struct Books {
    options: SeedOptions,
    /// The administrator's session.
    pub(crate) admin: Seeder,
}

/// A vendor payment as Odoo holds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Payment {
    /// The bills that it settles, by Odoo's ids.
    pub(crate) bills: Vec<i32>,
    /// The account that it goes to, whole.
    pub(crate) iban: String,
    /// How much, and in which currency.
    pub(crate) amount: String,
    /// `posted`, `draft` or `cancel`.
    pub(crate) state: String,
    /// Whether it settles bills in full.
    pub(crate) reconciled: bool,
}

impl Payment {
    /// A payment of one bill that is as it must be.
    pub(crate) fn settled(bill: i32, iban: &str, amount: &str) -> Self {
        Self {
            bills: vec![bill],
            iban: iban.to_owned(),
            amount: format!("{amount} EUR"),
            state: "posted".to_owned(),
            reconciled: true,
        }
    }
}

/// A payment's record.
#[derive(Deserialize)]
struct PaymentRecord {
    amount: f64,
    currency_id: (i32, String),
    state: String,
    is_reconciled: bool,
    // Odoo writes `false` where there is none.
    partner_bank_id: Value,
    reconciled_bill_ids: Vec<i32>,
}

#[derive(Deserialize)]
struct AccountRecord {
    sanitized_acc_number: String,
}

#[derive(Deserialize)]
struct GroupRecord {
    res_id: i32,
}

impl Books {
    /// Takes the options. Nothing is sent yet.
    pub(crate) fn open(options: SeedOptions) -> Result<Self, SeedError> {
        let admin = Seeder::new(options.clone())?;
        Ok(Self { options, admin })
    }

    /// Every payment to those vendors, whoever booked it and whatever became of it.
    pub(crate) async fn payments_to(&self, vendors: &[i32]) -> Result<Vec<Payment>, SeedError> {
        let fields = [
            "amount",
            "currency_id",
            "state",
            "is_reconciled",
            "partner_bank_id",
            "reconciled_bill_ids",
        ];
        let args = json!([[["partner_id", "in", vendors]], fields]);
        let found: Vec<PaymentRecord> =
            self.admin.call("account.payment", "search_read", args).await?;
        let mut payments = Vec::new();
        for record in found {
            let iban = self.number(&record.partner_bank_id).await?;
            payments.push(Payment {
                bills: record.reconciled_bill_ids,
                iban,
                amount: format!("{:.2} {}", record.amount, record.currency_id.1),
                state: record.state,
                reconciled: record.is_reconciled,
            });
        }
        payments.sort();
        Ok(payments)
    }

    async fn number(&self, account: &Value) -> Result<String, SeedError> {
        let Some(id) = account.get(0) else { return Ok("no account".to_owned()) };
        let args = json!([[id], ["sanitized_acc_number"]]);
        let found: Vec<AccountRecord> = self.admin.call("res.partner.bank", "read", args).await?;
        let number = found.into_iter().next().map(|account| account.sanitized_acc_number);
        number.ok_or(SeedError::Missing("account of a payment"))
    }

    /// A new person with those rights, signed in.
    pub(crate) async fn person(&self, login: &str, groups: &[&str]) -> Result<Seeder, SeedError> {
        let mut ids = Vec::new();
        for group in ["base.group_user"].iter().chain(groups) {
            ids.push(self.group(group).await?);
        }
        let password = "a person in the story";
        let values = json!({
            "name": login, "login": login, "password": password, "groups_id": [[6, 0, ids]],
            "company_ids": [[6, 0, [1]]], "company_id": 1,
        });
        let _id: i32 = self.admin.call("res.users", "create", json!([values])).await?;
        self.sign_in(login, password)
    }

    /// Another session in the same database.
    pub(crate) fn sign_in(&self, login: &str, password: &str) -> Result<Seeder, SeedError> {
        let admin = Credential { login: login.to_owned(), password: SecretString::from(password) };
        Seeder::new(SeedOptions { admin, ..self.options.clone() })
    }

    async fn group(&self, id: &str) -> Result<i32, SeedError> {
        let (module, name) = id.split_once('.').unwrap_or(("base", id));
        let domain = json!([["module", "=", module], ["name", "=", name]]);
        let args = json!([domain, ["res_id"]]);
        let found: Vec<GroupRecord> = self.admin.call("ir.model.data", "search_read", args).await?;
        found.first().map(|group| group.res_id).ok_or(SeedError::Missing("such group"))
    }
}

/// Rights of somebody who keeps vendors and may say which of their accounts Odoo pays to.
pub(crate) const CONTACT_MANAGER: [&str; 2] =
    ["base.group_partner_manager", "account.group_validate_bank_account"];

/// Writes another number over a vendor's account, as an obedient clerk does: the record keeps its
/// id, its date of creation and its mark that Odoo may pay to it.
pub(crate) async fn overwrite_account(
    who: &Seeder,
    account: i32,
    iban: &str,
) -> Result<(), SeedError> {
    for values in [
        json!({ "acc_number": iban, "allow_out_payment": false }),
        json!({ "allow_out_payment": true }),
    ] {
        let _written: bool =
            who.call("res.partner.bank", "write", json!([[account], values])).await?;
    }
    Ok(())
}
