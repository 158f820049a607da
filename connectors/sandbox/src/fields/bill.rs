//! Making and editing a bill.

use std::time::Duration;

use chrono::NaiveDate;
use countersign_erp_source::{AccountNumber, Amount, BillId, Currency, Timestamp, VendorId};

use super::{
    BillFields, BillRecord, BillRow, FieldError, InField, KindWord, StateWord, StoredState,
    not_blank,
};

/// How old a bill is that says no date.
const DEFAULT_AGE: Duration = Duration::from_hours(14 * 24);

/// The account that a bill names, for whoever knows the accounts to resolve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedAccount {
    /// The one that it already names.
    Unchanged,
    /// The vendor's first one, where it has one.
    VendorsFirst,
    /// The one with that number, of this vendor or else of any.
    Number(AccountNumber),
}

impl BillFields {
    /// A new bill, with the account that it shall name.
    pub(crate) fn create(
        &self,
        id: BillId,
        company_currency: Currency,
        now: Timestamp,
    ) -> Result<(BillRow, NamedAccount), FieldError> {
        let vendor = self.vendor.clone();
        let vendor = vendor.ok_or_else(|| FieldError::new("vendor", "is needed for a new bill"))?;
        if self.amount.is_none() {
            return Err(FieldError::new("amount", "is needed for a new bill"));
        }
        let mut row = BillRow {
            id,
            vendor: VendorId::new(vendor).in_field("vendor")?,
            reference: None,
            date: now.minus(DEFAULT_AGE).to_utc().date_naive(),
            due: None,
            total: Amount::zero(company_currency),
            paid: Amount::zero(company_currency),
            state: StoredState::Posted,
            kind: KindWord::Bill,
            named_account: None,
        };
        let named = self.edit(&mut row)?;
        let says_none = named == NamedAccount::Unchanged;
        Ok((row, if says_none { NamedAccount::VendorsFirst } else { named }))
    }

    /// Edits a bill as somebody with rights in the ERP does.
    pub(crate) fn edit(&self, row: &mut BillRow) -> Result<NamedAccount, FieldError> {
        let mut named = NamedAccount::Unchanged;
        if let Some(vendor) = &self.vendor {
            let vendor = VendorId::new(vendor.clone()).in_field("vendor")?;
            if vendor != row.vendor {
                named = NamedAccount::VendorsFirst;
            }
            row.vendor = vendor;
        }
        if let Some(iban) = &self.payee_iban {
            named = not_blank(iban.clone()).map_or(NamedAccount::VendorsFirst, |text| {
                NamedAccount::Number(AccountNumber::from_erp(&text))
            });
        }
        if let Some(reference) = &self.vendor_reference {
            row.reference = not_blank(reference.clone());
        }
        if let Some(date) = &self.date {
            row.date = parse_date("date", date)?;
        }
        if let Some(due) = &self.due {
            let due = not_blank(due.clone());
            row.due = due.map(|due| parse_date("due", &due)).transpose()?;
        }
        if let Some(kind) = self.kind {
            row.kind = kind;
        }
        self.edit_figures(row)?;
        Ok(named)
    }

    fn edit_figures(&self, row: &mut BillRow) -> Result<(), FieldError> {
        let currency = match &self.currency {
            Some(code) => Currency::from_code(code).in_field("currency")?,
            None => row.currency(),
        };
        let figure = |field, text: &Option<String>, present: Amount| {
            // Nothing is nothing in every currency, whatever its decimals.
            if text.is_none() && present.minor() == 0 {
                return Ok(Amount::zero(currency));
            }
            let present = present.to_decimal_string();
            Amount::parse(text.as_deref().unwrap_or(&present), currency).in_field(field)
        };
        let total = figure("amount", &self.amount, row.total)?;
        if !total.is_positive() {
            return Err(FieldError::new("amount", "must be greater than zero"));
        }
        let paid = figure("paid", &self.paid, row.paid)?;
        let nothing_left = paid.minor() >= total.minor();
        row.total = total;
        row.paid = paid;
        match self.state {
            Some(StateWord::Paid) => {
                if self.paid.is_some() && !nothing_left {
                    return Err(FieldError::new("paid", "leaves something of a `paid` bill"));
                }
                if !nothing_left {
                    row.paid = total;
                }
                row.state = StoredState::Posted;
            }
            Some(StateWord::Open) => {
                if self.paid.is_some() && nothing_left {
                    return Err(FieldError::new("paid", "leaves nothing of an `open` bill"));
                }
                if nothing_left {
                    row.paid = Amount::zero(currency);
                }
                row.state = StoredState::Posted;
            }
            Some(StateWord::Draft) => row.state = StoredState::Draft,
            Some(StateWord::Cancelled) => row.state = StoredState::Cancelled,
            None => {}
        }
        Ok(())
    }
}

fn parse_date(field: &'static str, text: &str) -> Result<NaiveDate, FieldError> {
    let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    // The form without leading zeros would parse too, and sort wrongly as text.
    date.filter(|date| date.to_string() == text)
        .ok_or_else(|| FieldError::new(field, "a date is written like `2026-11-15`"))
}

impl BillRow {
    /// The present state, as people say it.
    pub(crate) fn state_word(&self) -> StateWord {
        match self.state {
            StoredState::Draft => StateWord::Draft,
            StoredState::Cancelled => StateWord::Cancelled,
            StoredState::Posted if self.paid.minor() >= self.total.minor() => StateWord::Paid,
            StoredState::Posted => StateWord::Open,
        }
    }

    /// What the control surface shows.
    pub(crate) fn record(&self, payee_iban: Option<String>) -> BillRecord {
        BillRecord {
            vendor: self.vendor.as_str().to_owned(),
            vendor_reference: self.reference.clone(),
            date: self.date.to_string(),
            amount: self.total.to_decimal_string(),
            currency: self.currency().code().to_owned(),
            due: self.due.map(|due| due.to_string()),
            state: self.state_word(),
            kind: self.kind,
            paid: self.paid.to_decimal_string(),
            payee_iban,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> BillFields {
        serde_json::from_str(json).unwrap()
    }

    fn bill(json: &str) -> Result<BillRow, FieldError> {
        let now = Timestamp::parse("2026-11-29T10:00:00Z").unwrap();
        let eur = Currency::from_code("EUR").unwrap();
        fields(json).create(BillId::new("B").unwrap(), eur, now).map(|(row, _)| row)
    }

    #[track_caller]
    fn edited(before: &str, edit: &str, state: StateWord, paid: &str) {
        let mut row = bill(before).unwrap();
        fields(edit).edit(&mut row).unwrap();
        assert_eq!((row.state_word(), row.paid.to_decimal_string().as_str()), (state, paid));
    }

    const OPEN: &str = r#"{"vendor":"V","amount":"100.00"}"#;
    const PART: &str = r#"{"vendor":"V","amount":"100.00","paid":"30.00"}"#;
    const PAID: &str = r#"{"vendor":"V","amount":"100.00","state":"paid"}"#;

    #[test]
    fn a_bill_is_paid_when_nothing_is_left() {
        edited(OPEN, "{}", StateWord::Open, "0.00");
        edited(PART, "{}", StateWord::Open, "30.00");
        edited(PAID, "{}", StateWord::Paid, "100.00");
        edited(OPEN, r#"{"paid":"100.00"}"#, StateWord::Paid, "100.00");
        edited(PART, r#"{"amount":"30.00"}"#, StateWord::Paid, "30.00");
        edited(PART, r#"{"amount":"20.00"}"#, StateWord::Paid, "30.00");
    }

    #[test]
    fn a_word_moves_the_figures() {
        edited(PART, r#"{"state":"paid"}"#, StateWord::Paid, "100.00");
        edited(PAID, r#"{"state":"open"}"#, StateWord::Open, "0.00");
        edited(PART, r#"{"state":"open"}"#, StateWord::Open, "30.00");
        edited(PART, r#"{"state":"cancelled"}"#, StateWord::Cancelled, "30.00");
        edited(PAID, r#"{"state":"draft"}"#, StateWord::Draft, "100.00");
    }

    #[test]
    fn what_is_absent_has_its_default() {
        let row = bill(OPEN).unwrap();
        assert_eq!(row.date.to_string(), "2026-11-15");
        assert_eq!((row.due, row.reference, row.kind), (None, None, KindWord::Bill));
    }

    #[test]
    fn a_bill_in_another_currency_needs_no_word_about_what_is_paid() {
        for (currency, amount) in [("JPY", "12000"), ("KWD", "12.005"), ("EUR", "12.00")] {
            let json = format!(r#"{{"vendor":"V","amount":"{amount}","currency":"{currency}"}}"#);
            let row = bill(&json).unwrap();
            assert_eq!((row.total.to_decimal_string().as_str(), row.paid.minor()), (amount, 0));
            assert_eq!(row.paid.currency(), row.currency());
        }
    }

    #[track_caller]
    fn refused(json: &str, field: &str) {
        assert_eq!(bill(json).unwrap_err().field, field, "{json}");
    }

    #[test]
    fn what_cannot_be_is_refused_by_field() {
        refused(r#"{"amount":"1.00"}"#, "vendor");
        refused(r#"{"vendor":"V"}"#, "amount");
        refused(r#"{"vendor":"V","amount":"0.00"}"#, "amount");
        refused(r#"{"vendor":"V","amount":"-1.00"}"#, "amount");
        refused(r#"{"vendor":"V","amount":"1.005"}"#, "amount");
        refused(r#"{"vendor":"V","amount":"1.00","currency":"EURO"}"#, "currency");
        refused(r#"{"vendor":"V","amount":"1.00","date":"2026-1-5"}"#, "date");
        refused(r#"{"vendor":"V","amount":"1.00","due":"2026-02-30"}"#, "due");
        refused(r#"{"vendor":"V","amount":"1.00","state":"open","paid":"1.00"}"#, "paid");
        refused(r#"{"vendor":"V","amount":"1.00","state":"paid","paid":"0.50"}"#, "paid");
    }
}
