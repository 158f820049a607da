//! A call-back: somebody of the company called the vendor, on a number that was on file before the
//! request, and had the new account read to him (DESIGN 2).

use std::time::Duration;

use countersign_erp_source::{
    CompanyId, Iban, ReadError, SourceAccount, Timestamp, Vendor, VendorId,
};

use super::super::baseline::is_trusted;
use super::super::phones::{self, Number, PhoneError};
use super::super::sighting::{self, LookError, Sighting, Told};
use super::{bank_of, before, denied};
use crate::ap::{AccountsPayable, UPDATE_BANK_DETAILS};
use crate::domain::names::{CallbackId, Name};
use crate::ids;
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::baseline::{self, BaselinePhone};
use crate::store::callbacks::{self, Callback, CallbackState};
use crate::store::people::{self, Role};
use crate::store::{Conn, StoreError, Unit, operations};

pub use super::denied::CALLBACK_DENIED;
pub use crate::store::callbacks::Outcome;

/// How long a call-back counts.
const COUNTS_FOR: Duration = Duration::from_hours(30 * 24);
/// The fewest characters of the account that must be read back.
const READ_BACK_MIN: usize = 6;
/// A call as somebody tells it.
#[derive(Debug, Clone)]
pub struct Call {
    /// The new account.
    pub new_iban: Iban,
    /// The number that was dialled, in any spelling.
    pub number_dialled: String,
    /// Who answered.
    pub spoke_to: String,
    /// What the vendor read out.
    pub read_back: String,
    /// What the vendor said.
    pub outcome: Outcome,
    /// When the request for the change came, where the caller says so.
    pub request_received_at: Option<Timestamp>,
    /// Anything else.
    pub note: Option<String>,
}

/// A call that was written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its id.
    pub id: CallbackId,
    /// Whether a change may rest on it.
    pub counts: bool,
    /// Why not.
    pub why_not: Vec<WhyNot>,
}

/// Why a call-back does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyNot {
    /// The vendor said no.
    Denied,
    /// Nobody answered.
    NoAnswer,
    /// What was read back is not the new account.
    ReadBackDiffers,
    /// The vendor does not have that number on file.
    NumberNotOnFile,
    /// The number was changed and is not confirmed.
    NumberNotTrusted,
    /// The number came on file after the request for the change.
    NumberYoungerThanRequest,
    /// Another vendor has the number too.
    NumberShared,
}

impl WhyNot {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Denied,
        Self::NoAnswer,
        Self::ReadBackDiffers,
        Self::NumberNotOnFile,
        Self::NumberNotTrusted,
        Self::NumberYoungerThanRequest,
        Self::NumberShared,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Denied => "vendor_denied",
            Self::NoAnswer => "no_answer",
            Self::ReadBackDiffers => "read_back_differs",
            Self::NumberNotOnFile => "number_not_on_file",
            Self::NumberNotTrusted => "number_not_trusted",
            Self::NumberYoungerThanRequest => "number_younger_than_request",
            Self::NumberShared => "number_shared",
        }
    }
}

/// Why a call was not written down; nothing was.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// No such vendor in the company.
    #[error("the company has no such vendor")]
    NoVendor,
    /// Whoever called is no active accountant or approver of the company any more.
    #[error("this takes an accountant or an approver of the company")]
    NotACaller,
    /// The company has no baseline yet.
    #[error("the company's vendors have not been adopted yet")]
    NoBaseline,
    /// The number that was dialled.
    #[error("`number_dialled`: {0}")]
    Number(#[from] PhoneError),
    /// What was read back is too short to tell anything.
    #[error("`read_back` has at least {READ_BACK_MIN} characters of the account")]
    ReadBackTooShort,
    /// The request came later than the call.
    #[error("`request_received_at` is later than the call")]
    RequestLater,
    /// The ERP did not answer.
    #[error("the ERP did not answer")]
    Erp(#[source] ReadError),
    /// The store failed.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
    /// No random numbers.
    #[error("no random numbers")]
    Randomness(#[source] ids::NoRandomness),
}

impl From<LookError> for CallbackError {
    fn from(fault: LookError) -> Self {
        match fault {
            LookError::Store(fault) => Self::Store(fault),
            LookError::Randomness(fault) => Self::Randomness(fault),
        }
    }
}

/// A number on file that was found for one that was dialled.
#[derive(Debug, Clone)]
pub(super) struct OnFile {
    pub(super) phone: BaselinePhone,
    pub(super) shared: bool,
}

/// What the store holds about a call that is just being written down.
struct Held {
    on_file: Option<OnFile>,
    /// Since when the number is on file.
    since: Option<Timestamp>,
    /// When the change was first asked for here.
    requested_at: Option<Timestamp>,
}

impl OnFile {
    /// How it came to be on file.
    pub(super) fn from(&self) -> &'static str {
        match (self.phone.adopted, self.phone.confirmed_at) {
            (_, Some(_)) => "confirmed",
            (true, None) => "adopted",
            (false, None) => "erp",
        }
    }
}

/// Writes a call down, and says whether a change may rest on it. A vendor that says no voids what was
/// confirmed before, ends the request, and raises an alarm.
///
/// # Errors
/// [`CallbackError`].
pub async fn record(
    pack: &AccountsPayable,
    company: &CompanyId,
    vendor: &VendorId,
    caller: &Name,
    call: Call,
) -> Result<Recorded, CallbackError> {
    let ports = pack.ports();
    let now = ports.clock.now();
    let found = ports.erp.find_vendor(company, vendor).await.map_err(CallbackError::Erp)?;
    let vendor = found.filter(|found| found.company == *company).ok_or(CallbackError::NoVendor)?;
    if call.request_received_at.is_some_and(|at| at > now) {
        return Err(CallbackError::RequestLater);
    }
    let read_back = normal(&call.read_back);
    if call.outcome == Outcome::Confirmed && read_back.len() < READ_BACK_MIN {
        return Err(CallbackError::ReadBackTooShort);
    }
    let sources = ports.erp.source_accounts(company).await.map_err(CallbackError::Erp)?;
    let sighting = sighting::look(ports, company, &vendor, &Told::default()).await?;
    if sighting.adopted_at.is_none() {
        return Err(CallbackError::NoBaseline);
    }
    let home = home(&sighting, &sources);
    let number = Number::parse(&call.number_dialled, home.as_deref())?;
    let (of, dialled) = ((company.clone(), vendor.clone()), number.clone());
    let iban = call.new_iban.electronic().to_owned();
    let held = ports
        .store
        .read(move |conn| {
            Box::pin(async move {
                held(conn, (&of.0, &of.1), &sighting, &dialled, home.as_deref(), &iban).await
            })
        })
        .await
        .map_err(CallbackError::Store)?;
    // INVARIANT (I4): what the gateway itself knows of the request counts, whatever is told of it; and
    // what is told, where it is earlier.
    let requested_at = held.requested_at.into_iter().chain(call.request_received_at).min();
    let why_not = judge(&call, &read_back, &held, requested_at, now);
    let on_file = held.on_file.as_ref();
    let new_id = || ids::ordered(ports.randomness.as_ref(), now).map_err(CallbackError::Randomness);
    let callback = CallbackId::from_uuid(new_id()?);
    let ended = denied::Ids { freeze: new_id()?, alarm: new_id()?, event: new_id()? };
    let counts = why_not.is_empty();
    let kept = Callback {
        id: callback.clone(),
        company: company.clone(),
        vendor: vendor.id.to_string(),
        new_iban: call.new_iban.electronic().to_owned(),
        caller: caller.clone(),
        number_dialled: number.to_string(),
        number_since: held.since,
        number_from: on_file.map(|on_file| on_file.from().to_owned()),
        spoke_to: call.spoke_to,
        read_back: call.read_back,
        outcome: call.outcome,
        request_received_at: call.request_received_at,
        note: call.note,
        why_not: why_not.iter().map(|why| why.code().to_owned()).collect(),
        called_at: now,
        expires_at: now.plus(COUNTS_FOR),
        state: if counts { CallbackState::Open } else { CallbackState::Idle },
        operation: None,
    };
    let denies = why_not.contains(&WhyNot::Denied) || why_not.contains(&WhyNot::ReadBackDiffers);
    let ended = denies.then_some(ended);
    ports
        .store
        .write_or_undo(move |unit| {
            Box::pin(async move { keep(unit, &kept, requested_at, ended).await })
        })
        .await
        .map_err(CallbackError::Store)??;
    Ok(Recorded { id: callback, counts, why_not })
}

/// The country that a number without one belongs to: the vendor's own, by the account on file that is
/// not in doubt, else the company's.
fn home(sighting: &Sighting, sources: &[SourceAccount]) -> Option<String> {
    let of_phone =
        sighting.found.phones.iter().find_map(|p| Number::parse(&p.number, None).ok()?.country());
    let of_company = || sources.first().map(|source| source.iban.country().to_owned());
    of_phone.or_else(of_company)
}

/// Letters and digits of what was read out, as an account number has them.
fn normal(read_back: &str) -> String {
    read_back.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect()
}

async fn held(
    conn: &mut Conn<'_>,
    (company, vendor): (&CompanyId, &Vendor),
    sighting: &Sighting,
    dialled: &Number,
    home: Option<&str>,
    iban: &str,
) -> Result<Held, StoreError> {
    let found = &sighting.found;
    let on_file = on_file(conn, company, &vendor.id, &found.phones, dialled, home).await?;
    let former = before::phones(conn, company, vendor, found.vendor.as_ref()).await?;
    let since = on_file.as_ref().map(|on_file| before::on_file_since(&on_file.phone, &former));
    let first = conn.ask(operations::first_proposed(
        company,
        &bank_of(&vendor.id),
        UPDATE_BANK_DETAILS,
        iban,
    ));
    Ok(Held { on_file, since, requested_at: first.await?.map(|(at, _)| at) })
}

/// The number on file that was dialled.
pub(super) async fn on_file(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &VendorId,
    phones: &[BaselinePhone],
    dialled: &Number,
    home: Option<&str>,
) -> Result<Option<OnFile>, StoreError> {
    let is_it = |phone: &&BaselinePhone| {
        Number::parse(&phone.number, home).is_ok_and(|number| number == *dialled)
    };
    let Some(phone) = phones.iter().find(is_it) else { return Ok(None) };
    let shared = is_shared(conn, company, vendor, dialled).await?;
    Ok(Some(OnFile { phone: phone.clone(), shared }))
}

/// Whether another vendor of the company has that number too, in whatever spelling.
async fn is_shared(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &VendorId,
    number: &Number,
) -> Result<bool, StoreError> {
    let ending = phones::ending(&number.to_string());
    let others = baseline::phones_ending(conn, company, &ending, vendor).await?;
    Ok(others.iter().any(|text| phones::may_be(text, number)))
}

fn judge(
    call: &Call,
    read_back: &str,
    held: &Held,
    requested_at: Option<Timestamp>,
    now: Timestamp,
) -> Vec<WhyNot> {
    let mut why_not = Vec::new();
    match call.outcome {
        Outcome::Denied => why_not.push(WhyNot::Denied),
        Outcome::NoAnswer => why_not.push(WhyNot::NoAnswer),
        Outcome::Confirmed if !call.new_iban.electronic().ends_with(read_back) => {
            why_not.push(WhyNot::ReadBackDiffers);
        }
        Outcome::Confirmed => {}
    }
    match &held.on_file {
        None => why_not.push(WhyNot::NumberNotOnFile),
        Some(on_file) => {
            if !is_trusted(&on_file.phone, now) {
                why_not.push(WhyNot::NumberNotTrusted);
            }
            let since = held.since.unwrap_or(on_file.phone.since);
            if requested_at.is_some_and(|at| since >= at) {
                why_not.push(WhyNot::NumberYoungerThanRequest);
            }
            if on_file.shared {
                why_not.push(WhyNot::NumberShared);
            }
        }
    }
    why_not
}

async fn keep(
    unit: &mut Unit<'_>,
    callback: &Callback,
    requested_at: Option<Timestamp>,
    ended: Option<denied::Ids>,
) -> Result<Result<(), CallbackError>, StoreError> {
    let Callback { company, vendor, new_iban, called_at, .. } = callback;
    // INVARIANT (I4): what held when he was let in may not hold any more, as the ERP was asked since.
    // With a human ends each call-back of his, one that is just being written down too.
    let roles = people::roles(unit.conn(), &callback.caller, company).await?;
    if !(roles.contains(&Role::Accountant) || roles.contains(&Role::Approver)) {
        return Ok(Err(CallbackError::NotACaller));
    }
    if let Some(ids) = ended {
        denied::ends(unit, callback, ids).await?;
    }
    callbacks::insert(unit.conn(), callback).await?;
    unit.receipt(Receipt {
        kind: ReceiptKind::Callback,
        at: *called_at,
        company: Some(company.to_string()),
        operation: None,
        data: serde_json::json!({
            "by": callback.caller.as_str(), "callback": callback.id.as_str(),
            "counts": callback.why_not.is_empty(), "expires_at": callback.expires_at,
            "new_iban": new_iban, "note": callback.note,
            "number_dialled": callback.number_dialled, "number_from": callback.number_from,
            "number_since": callback.number_since, "outcome": callback.outcome.code(),
            "read_back": callback.read_back,
            "request_received_at": callback.request_received_at, "requested_at": requested_at,
            "spoke_to": callback.spoke_to,
            "vendor": vendor, "why_not": callback.why_not,
        }),
    })?;
    Ok(Ok(()))
}

/// What is known of the telephone that a change rests on.
#[derive(Debug, Clone, Default)]
pub(super) struct PhoneFacts {
    pub(super) trusted: bool,
    pub(super) age_days: i64,
    pub(super) shared: bool,
}

/// The facts about the number that was dialled; where nobody called, about the one that could be.
pub(super) async fn phone_facts(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &Vendor,
    phones: &[BaselinePhone],
    callback: Option<&Callback>,
    now: Timestamp,
) -> Result<PhoneFacts, StoreError> {
    let number = |text: &str, home: Option<&str>| Number::parse(text, home).ok();
    let dialled = callback.and_then(|callback| number(&callback.number_dialled, None));
    let home = dialled.as_ref().and_then(Number::country);
    let chosen = match callback {
        Some(_) => phones
            .iter()
            .find(|phone| dialled.is_some() && number(&phone.number, home.as_deref()) == dialled),
        None => phones.iter().find(|phone| is_trusted(phone, now)).or_else(|| phones.first()),
    };
    let Some(phone) = chosen else { return Ok(PhoneFacts::default()) };
    let shared = match dialled.or_else(|| number(&phone.number, None)) {
        Some(number) => is_shared(conn, company, &vendor.id, &number).await?,
        None => false,
    };
    // One that changed after the call is not the one that was called.
    let untouched = callback.is_none_or(|callback| phone.since <= callback.called_at);
    Ok(PhoneFacts {
        trusted: is_trusted(phone, now) && untouched,
        age_days: now.whole_days_since(phone.since),
        shared,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IBAN: &str = "NL91ABNA0417164300";

    fn now() -> Timestamp {
        Timestamp::parse("2026-11-29T10:00:00Z").unwrap()
    }

    fn call(outcome: Outcome, read_back: &str) -> Call {
        Call {
            new_iban: Iban::parse(IBAN).unwrap(),
            number_dialled: "+33140000000".to_owned(),
            spoke_to: "Ms Martin".to_owned(),
            read_back: read_back.to_owned(),
            outcome,
            request_received_at: None,
            note: None,
        }
    }

    fn on_file(adopted: bool, days: u64) -> OnFile {
        OnFile {
            phone: BaselinePhone {
                vendor: "V".to_owned(),
                kind: baseline::PHONE,
                number: "+33140000000".to_owned(),
                ending: "0000".to_owned(),
                since: now().minus(Duration::from_hours(24 * days)),
                adopted,
                confirmed_at: None,
            },
            shared: false,
        }
    }

    #[track_caller]
    fn says(call: &Call, on_file: Option<&OnFile>, expected: &[WhyNot]) {
        let held = Held {
            on_file: on_file.cloned(),
            since: on_file.map(|on_file| on_file.phone.since),
            requested_at: None,
        };
        let requested_at = call.request_received_at;
        assert_eq!(judge(call, &normal(&call.read_back), &held, requested_at, now()), expected);
    }

    #[test]
    fn what_the_vendor_reads_out_is_the_end_of_the_account() {
        for read_back in
            ["164300", "0417 1643 00", "nl91 abna 0417 1643 00", "NL91-ABNA-0417164300"]
        {
            says(&call(Outcome::Confirmed, read_back), Some(&on_file(true, 1)), &[]);
        }
        for read_back in ["164301", "NL91ABNA0417164301", "0NL91ABNA0417164300"] {
            let wrong = &[WhyNot::ReadBackDiffers];
            says(&call(Outcome::Confirmed, read_back), Some(&on_file(true, 1)), wrong);
        }
    }

    #[test]
    fn only_a_number_that_was_on_file_before_and_is_trusted_counts() {
        let confirmed = call(Outcome::Confirmed, "164300");
        says(&confirmed, None, &[WhyNot::NumberNotOnFile]);
        says(&confirmed, Some(&on_file(false, 89)), &[WhyNot::NumberNotTrusted]);
        says(&confirmed, Some(&on_file(false, 90)), &[]);
        let mut trusted = on_file(false, 1);
        trusted.phone.confirmed_at = Some(now());
        says(&confirmed, Some(&trusted), &[]);
        says(
            &confirmed,
            Some(&OnFile { shared: true, ..on_file(true, 400) }),
            &[WhyNot::NumberShared],
        );
        let asked = |days: u64| Call {
            request_received_at: Some(now().minus(Duration::from_hours(24 * days))),
            ..confirmed.clone()
        };
        says(&asked(10), Some(&on_file(true, 400)), &[]);
        says(&asked(10), Some(&on_file(true, 10)), &[WhyNot::NumberYoungerThanRequest]);
        says(&asked(10), Some(&on_file(true, 9)), &[WhyNot::NumberYoungerThanRequest]);
    }

    #[test]
    fn a_no_and_a_silence_count_for_nothing() {
        says(&call(Outcome::Denied, ""), Some(&on_file(true, 400)), &[WhyNot::Denied]);
        says(&call(Outcome::NoAnswer, ""), Some(&on_file(true, 400)), &[WhyNot::NoAnswer]);
    }
}
