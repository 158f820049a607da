//! What Odoo's own notes on a vendor prove about its accounts.
//!
//! A write to an account moves its date (`write_date`) even where only trust or order changed. Odoo
//! notes each change of a field that matters on the vendor, and the installation keeps those notes
//! from being edited or deleted, by a rule on `mail.message`.
//!
//! Before that rule, whoever keeps contacts could delete the notes, and anybody may write one that
//! looks like Odoo's at any time. So:
//!
//! - An account that was never written after its creation needs no note (`create_date` and
//!   `write_date` cannot be set by anybody).
//! - One that was created under the rule is unchanged since the last noted change that matters. A
//!   change of trust (`allow_out_payment`) is none.
//! - One that was created before the rule and written since counts as changed: at the last noted
//!   change under the rule or, without one, when the rule began; but no later than its last write.
//!   A change of trust before the rule is such a write, since nothing that could not be forged
//!   tells it from another. An account that gets its trust as it is created is none.
//! - The note of the creation must be there and of the very moment of the creation, which no forged
//!   one is. Else the notes are not whole or of another vendor's account, and every write counts.
//!
//! The rule counts since it was last written: switched off and on again, it begins anew. A merge of
//! vendors leaves no note that could be relied on: only a baseline of one's own sees it.

use std::collections::{BTreeMap, BTreeSet};

use countersign_erp_source::Timestamp;
use serde::Deserialize;
use serde_json::json;

use crate::guard::{KEEP_NOTES_DOMAIN, name};
use crate::mapping::{Tracked, moment};
use crate::rpc::{CallError, FAULT_RIGHT, Session};

/// More notes than this on one page of vendors, and they are not read: nothing is proved then.
const NOTES_MAX: u16 = 2000;

/// Fields of an account whose change is none of number, owner or activity.
const HARMLESS: [&str; 4] = ["allow_out_payment", "sequence", "acc_holder_name", "bank_id"];

/// How an account is named in a note.
const ACCOUNT: &str = "data-oe-model=\"res.partner.bank\" data-oe-id=\"";

/// The notes about accounts, by vendor and account.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Since when nobody but an administrator edits or deletes them.
    kept_since: Option<Timestamp>,
    by_account: BTreeMap<(i32, i32), OfAccount>,
}

#[derive(Debug, Default)]
struct OfAccount {
    created: BTreeSet<Timestamp>,
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
    /// What is known about an account of that vendor, by when the account was created.
    pub(crate) fn tracked(&self, vendor: i32, account: i32, created: Timestamp) -> Tracked {
        let Some(kept_since) = self.kept_since else { return Tracked::Unknown };
        match self.by_account.get(&(vendor, account)) {
            Some(known) if known.created.contains(&created) => {
                // Odoo's dates have whole seconds: within the first one, the rule may not have been.
                if created > kept_since {
                    Tracked::Last(known.changed)
                } else {
                    Tracked::Last(Some(known.changed.map_or(kept_since, |at| at.max(kept_since))))
                }
            }
            Some(_) | None => Tracked::Unknown,
        }
    }

    fn take(&mut self, note: &Note, changed: Option<&[TrackedField]>) {
        let Some(account) = account_of(&note.body) else { return };
        let Some(at) = moment(&note.create_date) else { return };
        let known = self.by_account.entry((note.res_id, account)).or_default();
        match changed {
            Some([]) => drop(known.created.insert(at)),
            Some(fields) if fields.iter().all(|field| is_harmless(&field.field_name)) => {}
            Some(_) | None => {
                known.changed = Some(known.changed.map_or(at, |before| before.max(at)));
            }
        }
    }
}

#[derive(Debug, Deserialize)]
struct Rule {
    write_date: String,
}

/// Since when notes stay, if they do.
async fn kept_since(session: &Session) -> Result<Option<Timestamp>, CallError> {
    let domain = json!([
        ["name", "=", name::KEEP_NOTES],
        ["domain_force", "=", KEEP_NOTES_DOMAIN],
        ["active", "=", true],
        ["global", "=", true],
        ["perm_write", "=", true],
        ["perm_unlink", "=", true],
    ]);
    let named = json!({ "fields": ["write_date"], "context": { "lang": "en_US", "tz": "UTC" } });
    let rules: Result<Vec<Rule>, _> =
        session.call("ir.rule", "search_read", json!([domain]), named).await;
    match rules {
        Ok(rules) => Ok(rules.iter().filter_map(|rule| moment(&rule.write_date)).min()),
        // Without an installation the reader has not the right to look.
        Err(CallError::Fault(fault)) if fault.code == FAULT_RIGHT => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the notes on those vendors.
pub(crate) async fn read(session: &Session, vendors: &BTreeSet<i32>) -> Result<Notes, CallError> {
    let Some(kept_since) = kept_since(session).await? else { return Ok(Notes::default()) };
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
    let mut found = Notes { kept_since: Some(kept_since), ..Notes::default() };
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

    fn kept_since(second: u8) -> Notes {
        Notes { kept_since: Some(at(second)), ..Notes::default() }
    }

    #[test]
    fn trust_and_order_are_no_change_and_anything_unknown_is_one() {
        let mut notes = kept_since(0);
        assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Unknown);
        notes.take(&note(2), Some(&fields(&["allow_out_payment"])));
        assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Unknown, "no note of the creation");
        notes.take(&note(1), Some(&[]));
        assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Last(None));
        notes.take(&note(3), Some(&fields(&["allow_out_payment", "acc_number"])));
        assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Last(Some(at(3))));
        notes.take(&note(4), Some(&fields(&["never_seen"])));
        assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Last(Some(at(4))));
        notes.take(&note(5), None);
        assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Last(Some(at(5))));
        assert_eq!(notes.tracked(8, 9, at(1)), Tracked::Unknown, "a note on another vendor");
    }

    #[test]
    fn a_note_of_the_creation_is_of_that_moment() {
        let mut notes = kept_since(0);
        notes.take(&note(2), Some(&[]));
        assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Unknown, "a forged one");
        notes.take(&note(1), Some(&[]));
        assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Last(None));
    }

    #[test]
    fn what_was_before_the_rule_proves_nothing() {
        let mut notes = Notes::default();
        notes.take(&note(1), Some(&[]));
        assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Unknown, "no rule at all");
        for second in [1, 5] {
            notes.kept_since = Some(at(second));
            assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Last(Some(at(second))));
        }
        notes.take(&note(3), Some(&fields(&["acc_number"])));
        assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Last(Some(at(5))), "noted before the rule");
        notes.take(&note(6), Some(&fields(&["acc_number"])));
        assert_eq!(notes.tracked(7, 9, at(1)), Tracked::Last(Some(at(6))));
    }
}
