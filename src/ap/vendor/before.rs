//! What was on file before somebody edited the ERP: the account that an approver looks at beside the
//! one that is there now, and the telephone numbers that a vendor had. It is known from the baseline
//! and its events; the ERP is not asked.

use countersign_erp_source::{CompanyId, Timestamp, Vendor, VendorId};

use crate::ap::baseline::PHONE_UNTRUSTED_FOR;
use crate::ap::phones;
use crate::store::baseline::{
    self, AccountStatus, BaselineAccount, BaselinePhone, BaselineVendor, Event, MOBILE_CHANGED,
    PHONE_CHANGED, PHONE_CONFIRMED,
};
use crate::store::{Conn, StoreError};

/// The most events about a vendor's telephones that are looked at: the oldest. What was on file before
/// so many edits is what nobody is told of.
const PHONE_EVENTS_MAX: i64 = 200;

/// An account as it was on file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OldAccount {
    pub(super) account: String,
    pub(super) number: String,
}

/// What was on file before the account became what it is: the same record before the first edit since
/// it was vouched for; where the record is a new one, or was another vendor's, what the vendor had
/// beside it.
pub(super) async fn account(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &VendorId,
    now: &BaselineAccount,
) -> Result<OldAccount, StoreError> {
    let id = vendor.as_str();
    let (first, _) = conn.ask(baseline::edits(company, id, &now.account)).await?;
    let own = |number: String| OldAccount { account: now.account.clone(), number };
    match first {
        _ if now.reowned => {}
        None => return Ok(own(now.number.clone())),
        Some(Event { before: Some(before), .. }) => return Ok(own(before)),
        Some(Event { before: None, .. }) => {}
    }
    let known = conn.ask(baseline::known(company, vendor, &[])).await?;
    let others =
        || known.accounts.iter().filter(|other| other.vendor == id && other.account != now.account);
    let is_vouched_for = |other: &&BaselineAccount| {
        other.active && matches!(other.status, AccountStatus::Adopted | AccountStatus::Verified)
    };
    let mut vouched_for = others().filter(is_vouched_for);
    if let Some(first) = vouched_for.next() {
        // It came beside others, and replaced none.
        let mut old = OldAccount { account: first.account.clone(), number: first.number.clone() };
        for more in vouched_for {
            old.account = format!("{}, {}", old.account, more.account);
            old.number = format!("{}, {}", old.number, more.number);
        }
        return Ok(old);
    }
    let newest = others()
        .filter(|other| other.status == AccountStatus::ChangedInErp)
        .max_by_key(|other| other.since);
    let Some(newest) = newest else { return Ok(OldAccount::default()) };
    let (first, _) = conn.ask(baseline::edits(company, id, &newest.account)).await?;
    let before = first.and_then(|first| first.before);
    Ok(OldAccount {
        account: newest.account.clone(),
        number: before.unwrap_or_else(|| newest.number.clone()),
    })
}

/// A telephone number that a vendor had before somebody edited it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormerPhone {
    pub(super) number: String,
    /// Since when it was on file, as far as the gateway knows by itself.
    pub(super) since: Timestamp,
    /// When the gateway saw that it was not any more.
    pub(super) until: Timestamp,
    /// Whether it was one to call back on.
    pub(super) trusted: bool,
}

/// The numbers that the vendor had before the ones that it has, the oldest first.
pub(super) async fn phones(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &Vendor,
    known: Option<&BaselineVendor>,
) -> Result<Vec<FormerPhone>, StoreError> {
    let Some(known) = known else { return Ok(Vec::new()) };
    let events = conn.ask(baseline::phone_events(company, &vendor.id, PHONE_EVENTS_MAX)).await?;
    Ok(former(known, &events))
}

fn former(known: &BaselineVendor, events: &[Event]) -> Vec<FormerPhone> {
    let mut all = Vec::new();
    for changed in [PHONE_CHANGED, MOBILE_CHANGED] {
        let (mut since, mut adopted) = (known.first_seen, known.adopted);
        let mut confirmed: Vec<&str> = Vec::new();
        for event in events {
            if event.what == PHONE_CONFIRMED {
                confirmed.extend(event.after.as_deref());
            }
            if event.what != changed {
                continue;
            }
            if let Some(number) = event.before.clone().filter(|number| !number.is_empty()) {
                let trusted = adopted
                    || event.seen_at.since(since) >= PHONE_UNTRUSTED_FOR
                    || confirmed.iter().any(|other| phones::same(other, &number));
                all.push(FormerPhone { number, since, until: event.seen_at, trusted });
            }
            (since, adopted) = (event.seen_at, false);
            confirmed.clear();
        }
    }
    all.sort_by_key(|former| former.until);
    all
}

/// Since when a number on file is one that was there: a confirmed one that was on file and trusted
/// before somebody edited it, and was put back, since then.
pub(super) fn on_file_since(phone: &BaselinePhone, former: &[FormerPhone]) -> Timestamp {
    let confirmed = phone.confirmed_at.is_some();
    let is_it = |former: &&FormerPhone| {
        confirmed && former.trusted && phones::same(&former.number, &phone.number)
    };
    former.iter().filter(is_it).map(|former| former.since).fold(phone.since, Timestamp::min)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::domain::names::EventId;
    use crate::store::baseline::{FROM_COMPARING, PHONE};

    const ONE: &str = "+33140000000";
    const TWO: &str = "+33199999999";

    fn day(days: u64) -> Timestamp {
        Timestamp::from_millis(0).plus(Duration::from_hours(24 * days))
    }

    fn vendor(adopted: bool) -> BaselineVendor {
        BaselineVendor {
            vendor: "V".to_owned(),
            name: "ACME".to_owned(),
            tax_number: None,
            parent: None,
            first_seen: day(1),
            adopted,
            dispute: None,
        }
    }

    fn event(what: &str, before: Option<&str>, after: &str, at: u64) -> Event {
        Event {
            id: EventId::from_uuid(Uuid::nil()),
            vendor: "V".to_owned(),
            account: None,
            what: what.to_owned(),
            before: before.map(ToOwned::to_owned),
            after: Some(after.to_owned()),
            at: day(at),
            seen_at: day(at),
            by: None,
            source: FROM_COMPARING,
            operation: None,
        }
    }

    fn spans(adopted: bool, events: &[Event]) -> Vec<(String, u64, u64, bool)> {
        let days = |at: Timestamp| at.since(day(0)).as_secs() / 86_400;
        let all = former(&vendor(adopted), events);
        all.into_iter()
            .map(|one| (one.number, days(one.since), days(one.until), one.trusted))
            .collect()
    }

    #[test]
    fn a_number_was_trusted_as_it_was_then() {
        let changed = |before, after, at| event(PHONE_CHANGED, Some(before), after, at);
        let there_and_back = [changed(ONE, TWO, 10), changed(TWO, ONE, 20), changed(ONE, TWO, 30)];
        let span = |number: &str, since, until, trusted| (number.to_owned(), since, until, trusted);
        // Adopted, then edited: what somebody put there is not trusted, nor what was put back.
        assert_eq!(
            spans(true, &there_and_back),
            [span(ONE, 1, 10, true), span(TWO, 10, 20, false), span(ONE, 20, 30, false)]
        );
        // Of a vendor first seen later.
        assert_eq!(spans(false, &[changed(ONE, TWO, 10)]), [span(ONE, 1, 10, false)]);
        assert_eq!(spans(false, &[changed(ONE, TWO, 91)]), [span(ONE, 1, 91, true)]);
        // Confirmed by four eyes, in another spelling.
        let confirmed = event(PHONE_CONFIRMED, None, "+33 1 40 00 00 00", 5);
        assert_eq!(spans(false, &[confirmed, changed(ONE, TWO, 10)]), [span(ONE, 1, 10, true)]);
        // One that was not there at all; one that was taken away; and a mobile number beside it.
        assert_eq!(spans(true, &[event(PHONE_CHANGED, None, ONE, 3)]), []);
        let gone = [changed(ONE, "", 10), changed("", TWO, 20)];
        assert_eq!(spans(true, &gone), [span(ONE, 1, 10, true)]);
        let mobile = [changed(ONE, TWO, 10), event(MOBILE_CHANGED, Some(TWO), ONE, 12)];
        assert_eq!(spans(true, &mobile), [span(ONE, 1, 10, true), span(TWO, 1, 12, true)]);
    }

    #[test]
    fn only_what_is_confirmed_again_and_was_trusted_is_as_old_as_it_was() {
        let phone = |confirmed: bool| BaselinePhone {
            vendor: "V".to_owned(),
            kind: PHONE,
            number: ONE.to_owned(),
            ending: String::new(),
            since: day(20),
            adopted: false,
            confirmed_at: confirmed.then(|| day(21)),
        };
        let before = |number: &str, trusted| FormerPhone {
            number: number.to_owned(),
            since: day(1),
            until: day(10),
            trusted,
        };
        assert_eq!(on_file_since(&phone(true), &[before(ONE, true)]), day(1));
        for (confirmed, former) in
            [(false, before(ONE, true)), (true, before(ONE, false)), (true, before(TWO, true))]
        {
            assert_eq!(on_file_since(&phone(confirmed), &[former]), day(20));
        }
    }
}
