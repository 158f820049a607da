//! From records as Odoo sends them to the words of the port. Pure, and the only place in which a
//! float is seen: its shortest text becomes a decimal, the decimal whole minor units, or nothing.

use std::str::FromStr;

use chrono::{NaiveDate, NaiveDateTime};
use countersign_erp_source::{
    AccountId, AccountNumber, Amount, Bill, BillId, BillKind, BillState, CompanyId, Currency,
    Document, ErpCompanyId, HeaderFigures, PayableFigures, Phone, PhoneKind, ReferenceKey,
    Timestamp, Traits, Vendor, VendorAccount, VendorId,
};
use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, de};

use crate::wire::{AccountRecord, BillRecord, DocumentRecord, LineRecord, VendorRecord};

/// How far a figure may be from a whole number of minor units, in the currency's own units. Odoo
/// rounds what it stores; more than this is another figure, not noise.
const NOISE_MAX: Decimal = Decimal::from_parts(1, 0, 0, false, 6);

/// A record that cannot become a value of the port, by field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{model}` {id}: `{field}` cannot be used")]
pub(crate) struct Unusable {
    pub(crate) model: &'static str,
    pub(crate) id: i32,
    pub(crate) field: &'static str,
}

/// A figure as Odoo sends it: a double, or digits where our own text in Odoo wrote it. `None` for
/// what is no figure of money, as anybody with billing rights can write one: it makes one record
/// unusable, not the answer that it came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Figure(Option<Decimal>);

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Figure;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a figure")
            }
            fn visit_f64<E: de::Error>(self, figure: f64) -> Result<Figure, E> {
                // The shortest text that reads back as the same double is what Odoo's users see.
                Ok(Figure(Decimal::from_str_exact(&figure.to_string()).ok()))
            }
            fn visit_i64<E: de::Error>(self, figure: i64) -> Result<Figure, E> {
                Ok(Figure(Some(Decimal::from(figure))))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Figure, E> {
                let figure = Decimal::from_str_exact(text).ok();
                figure.map(Some).map(Figure).ok_or_else(|| E::custom("not a decimal number"))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Figure {
    pub(crate) const ZERO: Self = Self(Some(Decimal::ZERO));

    /// The figure as an amount of that currency, if it is one.
    pub(crate) fn amount(self, currency: Currency) -> Option<Amount> {
        let digits = u32::from(currency.exponent());
        let figure = self.0?;
        let rounded = figure.round_dp(digits);
        if figure.checked_sub(rounded)?.abs() > NOISE_MAX {
            return None;
        }
        let factor = Decimal::from(10_i64.checked_pow(digits)?);
        let minor = i64::try_from(rounded.checked_mul(factor)?).ok()?;
        Some(Amount::from_minor(minor, currency))
    }

    fn plus(self, other: Self) -> Option<Self> {
        self.0?.checked_add(other.0?).map(Some).map(Self)
    }

    fn negated(self) -> Self {
        Self(self.0.map(|figure| -figure))
    }
}

/// A moment as Odoo writes it, in UTC.
pub(crate) fn moment(text: &str) -> Option<Timestamp> {
    let parsed = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").ok()?;
    Some(Timestamp::from_millis(parsed.and_utc().timestamp_millis()))
}

/// A day as Odoo writes it.
pub(crate) fn day(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()
}

/// A record's id, if the text is one: digits as Odoo's own would print.
pub(crate) fn record_id(text: &str) -> Option<i32> {
    text.parse::<i32>().ok().filter(|id| *id > 0 && id.to_string() == text)
}

/// A vendor bill. `None` where the document names no vendor at all: it cannot be one of a vendor's.
pub(crate) fn bill(
    company: &CompanyId,
    record: &BillRecord,
    lines: &[LineRecord],
) -> Result<Option<Bill>, Unusable> {
    let unusable = |field| Unusable { model: "account.move", id: record.id, field };
    let (Some(entered), Some(commercial)) =
        (record.partner_id.as_ref(), record.commercial_partner_id.as_ref())
    else {
        return Ok(None);
    };
    let Some(entered_commercial) = entered.commercial_partner_id.as_ref() else { return Ok(None) };
    let code = &record.currency_id.as_ref().ok_or_else(|| unusable("currency_id"))?.name;
    let currency = Currency::from_code(code).map_err(|_unknown| unusable("currency_id"))?;
    let amount = |figure: Figure, field| figure.amount(currency).ok_or_else(|| unusable(field));
    let kind = match record.move_type.as_str() {
        "in_invoice" => BillKind::Bill,
        "in_refund" => BillKind::CreditNote,
        _ => BillKind::Other,
    };
    let state = match record.state.as_str() {
        "draft" => BillState::Draft,
        "posted" => BillState::Posted,
        "cancel" => BillState::Cancelled,
        _ => return Err(unusable("state")),
    };
    let dated = |text: Option<&String>, field| {
        text.map(|text| day(text).ok_or_else(|| unusable(field))).transpose()
    };
    Ok(Some(Bill {
        company: company.clone(),
        erp_company: ErpCompanyId::new(record.company_id.to_string())
            .map_err(|_no_id| unusable("company_id"))?,
        id: BillId::new(record.id.to_string()).map_err(|_no_id| unusable("id"))?,
        // Odoo writes a slash where a draft has no number yet.
        number: record.name.as_ref().filter(|name| *name != "/").cloned(),
        reference: record.reference.as_ref().cloned(),
        kind,
        state,
        header: HeaderFigures {
            entered: vendor_id(entered.id).ok_or_else(|| unusable("partner_id"))?,
            vendor: vendor_id(*entered_commercial).ok_or_else(|| unusable("partner_id"))?,
            commercial_vendor: vendor_id(commercial.id)
                .ok_or_else(|| unusable("commercial_partner_id"))?,
            total: amount(record.amount_total, "amount_total")?,
            residual: amount(record.amount_residual, "amount_residual")?,
        },
        payable: payable(kind, currency, lines).ok_or_else(|| unusable("line_ids"))?,
        named_account: record
            .partner_bank_id
            .as_ref()
            .map(|id| AccountId::new(id.to_string()).map_err(|_no_id| unusable("partner_bank_id")))
            .transpose()?,
        date: dated(record.invoice_date.as_ref(), "invoice_date")?,
        due: dated(record.invoice_date_due.as_ref(), "invoice_date_due")?,
    }))
}

/// A document's traits. `None` for one of no vendor. What cannot be used of it is left out, so that
/// the rest still counts.
pub(crate) fn document(record: &DocumentRecord) -> Option<Document> {
    let currency = record.currency_id.as_ref();
    let currency = currency.and_then(|currency| Currency::from_code(&currency.name).ok());
    Some(Document {
        id: BillId::new(record.id.to_string()).ok()?,
        traits: Traits {
            vendor: vendor_id(*record.commercial_partner_id.as_ref()?)?,
            reference: record.reference.as_ref().and_then(|text| ReferenceKey::of(text)),
            total: currency.and_then(|currency| record.amount_total.amount(currency)),
            date: record.invoice_date.as_ref().and_then(|text| day(text)),
        },
    })
}

/// What the payable lines say. A line in another currency than the bill's proves no figure at all,
/// so the sums are zero then and agree with no header.
fn payable(kind: BillKind, currency: Currency, lines: &[LineRecord]) -> Option<PayableFigures> {
    let mut vendors = Vec::new();
    let (mut total, mut residual) = (Figure::ZERO, Figure::ZERO);
    let mut one_currency = true;
    for line in lines {
        // A line without vendor is none of the header's vendor either: record 0 does not exist.
        let commercial =
            line.partner_id.as_ref().and_then(|owner| owner.commercial_partner_id.as_ref());
        let vendor = VendorId::new(commercial.copied().unwrap_or(0).to_string()).ok()?;
        if !vendors.contains(&vendor) {
            vendors.push(vendor);
        }
        one_currency &= line.currency_id.as_ref().is_some_and(|c| c.name == currency.code());
        total = total.plus(line.amount_currency)?;
        residual = residual.plus(line.amount_residual_currency)?;
    }
    if !one_currency {
        (total, residual) = (Figure::ZERO, Figure::ZERO);
    }
    // What is owed stands on the credit side; a credit note's lines stand on the other.
    if kind != BillKind::CreditNote {
        (total, residual) = (total.negated(), residual.negated());
    }
    Some(PayableFigures {
        vendors,
        total: total.amount(currency)?,
        residual: residual.amount(currency)?,
    })
}

/// When an account was changed, by what Odoo's notes on its vendor prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracked {
    /// Nothing was asked or the notes cannot be trusted: every write counts as a change.
    Unknown,
    /// The last change of number, owner or activity that may have been; `None` for none.
    Last(Option<Timestamp>),
}

/// A vendor with its accounts.
pub(crate) fn vendor(
    company: &CompanyId,
    erp_company: i32,
    record: &VendorRecord,
    tracked: impl Fn(i32, Timestamp) -> Tracked,
) -> Result<Vendor, Unusable> {
    let unusable = |field| Unusable { model: "res.partner", id: record.id, field };
    let id = vendor_id(record.id).ok_or_else(|| unusable("id"))?;
    let name = record.name.as_ref().map_or("", String::as_str);
    let accounts = record
        .bank_ids
        .iter()
        .map(|account| vendor_account(erp_company, name, account, &tracked))
        .collect::<Result<_, _>>()?;
    // Any write to the vendor's row moves this date, so both numbers are at least that old.
    let since = Some(moment(&record.write_date).ok_or_else(|| unusable("write_date"))?);
    let phone = |kind, raw: &String| Phone { kind, raw: raw.clone(), since };
    let phones = [(PhoneKind::Phone, &record.phone), (PhoneKind::Mobile, &record.mobile)];
    Ok(Vendor {
        company: company.clone(),
        id,
        name: name.to_owned(),
        tax_number: record.vat.as_ref().cloned(),
        parent: record
            .parent_id
            .as_ref()
            .map(|parent| vendor_id(*parent).ok_or_else(|| unusable("parent_id")))
            .transpose()?,
        accounts,
        phones: phones
            .into_iter()
            .filter_map(|(kind, raw)| raw.as_ref().map(|raw| phone(kind, raw)))
            .collect(),
    })
}

fn vendor_account(
    erp_company: i32,
    vendor_name: &str,
    record: &AccountRecord,
    tracked: impl Fn(i32, Timestamp) -> Tracked,
) -> Result<VendorAccount, Unusable> {
    let unusable = |field| Unusable { model: "res.partner.bank", id: record.id, field };
    let created = moment(&record.create_date).ok_or_else(|| unusable("create_date"))?;
    let written = moment(&record.write_date).ok_or_else(|| unusable("write_date"))?;
    let changed = if written == created {
        None
    } else {
        match tracked(record.id, created) {
            Tracked::Unknown => Some(written),
            // Whatever it was, it was no later than the last write of all.
            Tracked::Last(last) => last.map(|at| at.min(written)),
        }
    };
    let of_company = record.company_id.as_ref().is_none_or(|id| *id == erp_company);
    Ok(VendorAccount {
        id: AccountId::new(record.id.to_string()).map_err(|_no_id| unusable("id"))?,
        owner: vendor_id(record.partner_id).ok_or_else(|| unusable("partner_id"))?,
        number: AccountNumber::from_erp(
            record.sanitized_acc_number.as_ref().map_or("", String::as_str),
        ),
        holder: record.acc_holder_name.as_ref().filter(|name| *name != vendor_name).cloned(),
        active: record.active,
        erp_allows: record.allow_out_payment && record.active && of_company,
        unchanged_since: Some(changed.unwrap_or(created)),
        changed_after_creation: changed.is_some(),
    })
}

pub(crate) fn vendor_id(id: i32) -> Option<VendorId> {
    VendorId::new(id.to_string()).ok().filter(|_| id > 0)
}

/// A decimal text of our own guard as an amount.
pub(crate) fn amount(text: &str, currency: Currency) -> Option<Amount> {
    Figure(Decimal::from_str(text).ok()).amount(currency)
}

#[cfg(test)]
mod tests;
