//! Whom a human calls about a new account that somebody asked for, in words; and where no number is
//! one to call, what can be done about that.

use countersign_erp_source::Timestamp;

use super::before::FormerPhone;
use crate::ap::baseline::{Comparison, is_trusted};
use crate::ap::phones;
use crate::store::baseline::BaselinePhone;

/// What is done after the call.
const THEN: &str = "and have the new account read to you; never use a number from the request. Then \
                    record the call (callbacks); the agent asks again, and a second person approves.";

/// Which number is called, since when it is on file, and what then.
pub(super) fn whom_to_call(found: &Comparison, former: &[FormerPhone], now: Timestamp) -> String {
    let trusted: Vec<String> =
        found.phones.iter().filter(|phone| is_trusted(phone, now)).map(on_file).collect();
    if !trusted.is_empty() {
        return format!("If that can be right, call {}, {THEN}", trusted.join(" or "));
    }
    let ways: Vec<String> =
        put_back(found, former).into_iter().chain(confirm_anew(found)).collect();
    if ways.is_empty() {
        return "No number of theirs was on file before this request, and one that is put there now \
                does not count for it. Find out from the vendor, by a way that you had before, what \
                it is about."
            .to_owned();
    }
    let ways = ways.join("; or ");
    format!(
        "No number of theirs is trusted at the moment. If the request can be right, {ways} \
         (phone-confirmations). Then call that number, {THEN}"
    )
}

fn on_file(phone: &BaselinePhone) -> String {
    format!("{} (on file since {})", phone.number, phone.since)
}

/// The number that was there, and is not any more.
fn put_back(found: &Comparison, former: &[FormerPhone]) -> Option<String> {
    let is_there =
        |number: &str| found.phones.iter().any(|phone| phones::same(&phone.number, number));
    let mut trusted = former.iter().rev().filter(|former| former.trusted);
    let FormerPhone { number, since, until, .. } =
        trusted.find(|former| !is_there(&former.number))?;
    Some(format!(
        "put {number} back in the ERP where nobody of yours changed it (it was on file since {since}, \
         until {until}), and have four eyes confirm it"
    ))
}

/// Those that are there, and that nobody vouched for. One that is seen only now was not there before
/// the request.
fn confirm_anew(found: &Comparison) -> Option<String> {
    if found.new_vendor.is_some() {
        return None;
    }
    let was_there =
        |phone: &&BaselinePhone| !phone.number.is_empty() && !found.observed_phones.contains(phone);
    let numbers: Vec<String> = found.phones.iter().filter(was_there).map(on_file).collect();
    (!numbers.is_empty()).then(|| {
        let numbers = numbers.join(" or ");
        format!("have four eyes confirm {numbers}, by something that did not come with the request")
    })
}
