//! Handing a sealed change of bank details over, looking for one, and the log of what anybody changed
//! about vendors. It decides nothing, as with payments: it carries a text that was sealed elsewhere.

use countersign_erp_source::{
    AccountId, AccountNumber, BillId, ChangeLookUp, Changed, ChangedAccount, CompanyId, Identity,
    LoggedChange, LoggedField, LookUpAnswer, OrderError, ReadError, SealedBankChange, Timestamp,
    VendorId,
};
use serde::Deserialize;
use serde_json::json;

use crate::guard::name;
use crate::mapping::record_id;
use crate::odoo::{Odoo, Told};

/// What the actions that change and look up answer: at most one change.
#[derive(Debug, Deserialize)]
struct Looked {
    erp_time: String,
    changed: Vec<ChangedRecord>,
}

#[derive(Debug, Deserialize)]
struct ChangedRecord {
    /// None where somebody deleted it.
    account: Vec<AccountRecord>,
    also_active: Vec<String>,
    bills: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct AccountRecord {
    id: String,
    owner: String,
    number: String,
    active: bool,
    allowed: bool,
}

/// An entry as the action that lists them writes it.
#[derive(Deserialize)]
struct Entry {
    id: u64,
    at: Timestamp,
    by: Option<String>,
    vendor: String,
    account: Option<String>,
    field: String,
    before: Option<String>,
    after: Option<String>,
    ordered: bool,
}

impl Odoo {
    pub(crate) async fn hand_change_over(
        &self,
        order: &SealedBankChange,
    ) -> Result<Changed, OrderError> {
        let wanted = order.order();
        self.check_configured(&wanted.company, &wanted.erp_company)?;
        let action = self.action_of_order(name::CHANGE).await?;
        let told = json!({ "order": order.text(), "seal": order.seal() });
        let answer: Told<Looked> = self.carry(&self.bank_admin, action, told).await?;
        let unknown = |reason: &str| OrderError::OutcomeUnknown { reason: reason.to_owned() };
        let changed = changed(&answer.countersign).map_err(unknown)?;
        changed.ok_or_else(|| unknown("Odoo answered without a change"))
    }

    pub(crate) async fn look_for_change(
        &self,
        wanted: &ChangeLookUp,
    ) -> Result<LookUpAnswer<Changed>, ReadError> {
        let company = self.erp_company(&wanted.company)?;
        let malformed = |what: &str| ReadError::Malformed { what: what.to_owned() };
        if record_id(wanted.vendor.as_str()).is_none() {
            return Err(malformed("the id of the vendor is none of Odoo's"));
        }
        let told = json!({
            "company": company.to_string(), "vendor": wanted.vendor.as_str(),
            "marker": wanted.marker.to_hex(),
        });
        let answer: Told<Looked> =
            self.run_as(&self.bank_admin, Identity::BankAdmin, name::LOOK_UP_CHANGE, told).await?;
        let erp_time = Timestamp::parse(&answer.countersign.erp_time)
            .map_err(|_no_time| malformed("Odoo's own time"))?;
        let booked = changed(&answer.countersign).map_err(malformed)?;
        Ok(LookUpAnswer { erp_time, booked })
    }

    pub(crate) async fn logged_changes(
        &self,
        company: &CompanyId,
        after: u64,
        limit: u16,
    ) -> Result<Vec<LoggedChange>, ReadError> {
        let company = self.erp_company(company)?;
        // Numbers beyond what the table can hold have none after them.
        if i64::try_from(after).is_err() {
            return Ok(Vec::new());
        }
        let told = json!({
            "company": company.to_string(), "after": after.to_string(), "limit": limit,
        });
        let answer: Told<String> =
            self.run_as(&self.reader, Identity::Reader, name::LIST_CHANGES, told).await?;
        let unreadable =
            || ReadError::Malformed { what: "an entry of the log cannot be read".to_owned() };
        let entries: Vec<Entry> =
            serde_json::from_str(&answer.countersign).map_err(|_unread| unreadable())?;
        entries.into_iter().map(|entry| logged(entry).ok_or_else(unreadable)).collect()
    }
}

fn changed(answer: &Looked) -> Result<Option<Changed>, &'static str> {
    match answer.changed.as_slice() {
        [] => Ok(None),
        [record] => of_record(record).map(Some).ok_or("what Odoo says it changed cannot be read"),
        _ => Err("Odoo answered with several changes for one order"),
    }
}

fn of_record(record: &ChangedRecord) -> Option<Changed> {
    let account = match record.account.as_slice() {
        [] => None,
        [account] => Some(ChangedAccount {
            id: AccountId::new(account.id.clone()).ok()?,
            owner: VendorId::new(account.owner.clone()).ok()?,
            number: AccountNumber::from_erp(&account.number),
            active: account.active,
            erp_allows: account.allowed,
        }),
        _ => return None,
    };
    let others = record.also_active.iter().map(|id| AccountId::new(id.clone()).ok());
    let bills = record.bills.iter().map(|id| BillId::new(id.clone()).ok());
    Some(Changed {
        account,
        also_active: others.collect::<Option<_>>()?,
        bills: bills.collect::<Option<_>>()?,
    })
}

fn logged(entry: Entry) -> Option<LoggedChange> {
    Some(LoggedChange {
        id: entry.id,
        at: entry.at,
        by: entry.by,
        vendor: VendorId::new(entry.vendor).ok()?,
        account: match entry.account {
            Some(account) => Some(AccountId::new(account).ok()?),
            None => None,
        },
        field: LoggedField::from_code(&entry.field)?,
        before: entry.before,
        after: entry.after,
        ordered: entry.ordered,
    })
}

#[cfg(test)]
mod tests;
