//! What Odoo's own notes on a vendor prove about its accounts.
//!
//! A write to an account moves its date even where only trust or order changed. Odoo notes each
//! change of a field that matters on the vendor, and the installation keeps those notes from being
//! edited or deleted. Where the note of the account's creation is not there, the notes are not
//! whole, and every write counts as a change. A merge of vendors leaves no note that could be
//! relied on: only a baseline of one's own sees it.

use std::collections::{BTreeMap, BTreeSet};

use countersign_erp_source::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::mapping::{Tracked, moment};
use crate::rpc::{CallError, Session};

/// More notes than this on one page of vendors, and they are not read: nothing is proved then.
const NOTES_MAX: u16 = 2000;

/// Fields of an account whose change is none of number, owner or activity.
const HARMLESS: [&str; 4] = ["allow_out_payment", "sequence", "acc_holder_name", "bank_id"];

/// How an account is named in a note.
const ACCOUNT: &str = "data-oe-model=\"res.partner.bank\" data-oe-id=\"";

/// The notes about accounts, by vendor and account.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    by_account: BTreeMap<(i32, i32), OfAccount>,
}

#[derive(Debug, Default)]
struct OfAccount {
    created: Option<Timestamp>,
    changed: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
struct Note {
    id: i32,
    res_id: i32,
    body: String,
    // The date of a note can be written by people, this one cannot.
    create_date: String,
}

#[derive(Debug, Deserialize)]
struct Formatted {
    id: i32,
    #[serde(rename = "trackingValues")]
    tracking_values: Vec<TrackedField>,
}

#[derive(Debug, Deserialize)]
struct TrackedField {
    #[serde(rename = "fieldName")]
    field_name: String,
}

impl Notes {
    /// What is known about an account of that vendor.
    pub(crate) fn tracked(&self, vendor: i32, account: i32) -> Tracked {
        match self.by_account.get(&(vendor, account)) {
            Some(OfAccount { created: Some(_), changed }) => Tracked::Last(*changed),
            Some(OfAccount { created: None, .. }) | None => Tracked::Unknown,
        }
    }

    fn take(&mut self, note: &Note, changed: Option<&[TrackedField]>) {
        let Some(account) = account_of(&note.body) else { return };
        let Some(at) = moment(&note.create_date) else { return };
        let known = self.by_account.entry((note.res_id, account)).or_default();
        match changed {
            Some([]) => known.created = Some(known.created.map_or(at, |before| before.min(at))),
            Some(fields) if fields.iter().all(|field| is_harmless(&field.field_name)) => {}
            Some(_) | None => {
                known.changed = Some(known.changed.map_or(at, |before| before.max(at)));
            }
        }
    }
}

/// Reads the notes on those vendors.
pub(crate) async fn read(session: &Session, vendors: &BTreeSet<i32>) -> Result<Notes, CallError> {
    let domain = json!([
        ["model", "=", "res.partner"],
        ["res_id", "in", vendors],
        ["message_type", "=", "notification"],
        ["body", "like", "res.partner.bank"],
    ]);
    let named = json!({
        "fields": ["res_id", "body", "create_date"], "order": "id", "limit": NOTES_MAX,
        "context": { "lang": "en_US", "tz": "UTC" },
    });
    let notes: Vec<Note> =
        session.call("mail.message", "search_read", json!([domain]), named).await?;
    if notes.is_empty() || notes.len() >= usize::from(NOTES_MAX) {
        return Ok(Notes::default());
    }
    let ids: Vec<i32> = notes.iter().map(|note| note.id).collect();
    let named = json!({ "format_reply": false, "context": { "lang": "en_US", "tz": "UTC" } });
    let formatted: Vec<Formatted> =
        session.call("mail.message", "message_format", json!([ids]), named).await?;
    let fields: BTreeMap<i32, &[TrackedField]> =
        formatted.iter().map(|note| (note.id, note.tracking_values.as_slice())).collect();
    let mut found = Notes::default();
    for note in &notes {
        found.take(note, fields.get(&note.id).copied());
    }
    Ok(found)
}

fn account_of(body: &str) -> Option<i32> {
    let (_before, after) = body.split_once(ACCOUNT)?;
    let (id, _rest) = after.split_once('"')?;
    id.parse().ok()
}

fn is_harmless(field: &str) -> bool {
    HARMLESS.contains(&field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(second: u8) -> Note {
        Note {
            id: 1,
            res_id: 7,
            body: format!("<p>Bank Account <a href=\"#\" {ACCOUNT}9\">#9</a> updated</p>"),
            create_date: format!("2026-11-29 10:00:{second:02}"),
        }
    }

    fn fields(names: &[&str]) -> Vec<TrackedField> {
        names.iter().map(|name| TrackedField { field_name: (*name).to_owned() }).collect()
    }

    fn at(second: u8) -> Timestamp {
        moment(&note(second).create_date).unwrap()
    }

    #[test]
    fn trust_and_order_are_no_change_and_anything_unknown_is_one() {
        let mut notes = Notes::default();
        assert_eq!(notes.tracked(7, 9), Tracked::Unknown);
        notes.take(&note(1), Some(&fields(&["allow_out_payment"])));
        assert_eq!(notes.tracked(7, 9), Tracked::Unknown, "no note of the creation");
        notes.take(&note(0), Some(&[]));
        assert_eq!(notes.tracked(7, 9), Tracked::Last(None));
        notes.take(&note(2), Some(&fields(&["allow_out_payment", "acc_number"])));
        assert_eq!(notes.tracked(7, 9), Tracked::Last(Some(at(2))));
        notes.take(&note(3), Some(&fields(&["never_seen"])));
        assert_eq!(notes.tracked(7, 9), Tracked::Last(Some(at(3))));
        notes.take(&note(4), None);
        assert_eq!(notes.tracked(7, 9), Tracked::Last(Some(at(4))));
        assert_eq!(notes.tracked(8, 9), Tracked::Unknown, "a note on another vendor");
    }
}
