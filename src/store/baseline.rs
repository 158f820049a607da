//! The gateway's own record of vendors, their accounts and telephones, as it first saw them.

use countersign_erp_source::{CompanyId, Timestamp, VendorId};

use super::{Conn, Question, Questions, Row, StoreError, Val};
use crate::domain::names::EventId;

/// The kind of a main number.
pub const PHONE: &str = "phone";
/// The kind of a mobile number.
pub const MOBILE: &str = "mobile";
/// Known from the ERP's own log.
pub const FROM_ERP_LOG: &str = "erp_log";
/// Known by comparing what the ERP shows with the baseline.
pub const FROM_COMPARING: &str = "compared";
/// Done by an operation of ours.
pub const FROM_OPERATION: &str = "operation";
/// From where an event is known: a call-back.
pub const FROM_CALLBACK: &str = "callback";
/// What an event says of an account that was vouched for.
pub const VERIFIED: &str = "verified";
/// What an event says of a main number that is another one.
pub const PHONE_CHANGED: &str = "phone changed in the ERP";
/// What an event says of a mobile number that is another one.
pub const MOBILE_CHANGED: &str = "mobile changed in the ERP";
/// What an event says of a number that was vouched for.
pub const PHONE_CONFIRMED: &str = "phone confirmed";

macro_rules! select_account {
    ($rest:literal) => {
        concat!(
            "select account, vendor, number, active, since, status, reowned, note, place, ",
            "erp_since, operation from baseline_account ",
            $rest
        )
    };
}

macro_rules! select_event {
    ($rest:literal) => {
        concat!(
            "select id, vendor, account, what, before, after, at, seen_at, by_whom, source, ",
            "operation from baseline_event where company = $1 and vendor = $2 ",
            $rest
        )
    };
}

/// How an account came to be on file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccountStatus {
    /// There at the first contact.
    Adopted,
    /// Confirmed by a call-back and four eyes.
    Verified,
    /// Of a vendor first seen later.
    Unverified,
    /// Changed, or appeared, without an operation of ours.
    ChangedInErp,
}

impl AccountStatus {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Adopted, Self::Verified, Self::Unverified, Self::ChangedInErp];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Adopted => "adopted",
            Self::Verified => "verified",
            Self::Unverified => "unverified",
            Self::ChangedInErp => "changed_in_erp",
        }
    }

    fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.code() == code)
    }
}

/// An account of the baseline.
#[derive(Clone, PartialEq, Eq)]
pub struct BaselineAccount {
    /// The ERP's record.
    pub account: String,
    /// Whose it was when it was last compared.
    pub vendor: String,
    /// Its number then, whole.
    pub number: String,
    /// Whether it was active then.
    pub active: bool,
    /// Since when it is exactly this, by the gateway's own clock (adopted ones: by the ERP's proof).
    pub since: Timestamp,
    /// How it came to be on file.
    pub status: AccountStatus,
    /// Whether it was another vendor's at any time, by a merge or an edit.
    pub reowned: bool,
    /// What changed last, in words.
    pub note: Option<String>,
    /// Its place among the vendor's accounts then, from 0.
    pub place: i64,
    /// Since when, by what the ERP could prove then, it was as it was.
    pub erp_since: Option<Timestamp>,
    /// The operation of ours that made it what it is.
    pub operation: Option<String>,
}

impl std::fmt::Debug for BaselineAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BaselineAccount")
            .field("account", &self.account)
            .field("vendor", &self.vendor)
            .field("active", &self.active)
            .field("since", &self.since)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// A vendor of the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineVendor {
    /// The ERP's id.
    pub vendor: String,
    /// Its name then.
    pub name: String,
    /// Its tax number then.
    pub tax_number: Option<String>,
    /// The vendor it belonged to then.
    pub parent: Option<String>,
    /// When the gateway first saw it.
    pub first_seen: Timestamp,
    /// Whether it was there at the first contact.
    pub adopted: bool,
    /// Since when, and in which way, it is not what it was, without an operation of ours.
    pub dispute: Option<Dispute>,
}

/// That a vendor is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispute {
    /// Since when the gateway knows.
    pub since: Timestamp,
    /// In which way, in words.
    pub what: String,
}

/// A telephone of the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselinePhone {
    /// Whose.
    pub vendor: String,
    /// Which of the vendor's numbers.
    pub kind: &'static str,
    /// As it was written; empty where it was taken away.
    pub number: String,
    /// Its last digits, by which other spellings of it are found; empty where nobody looked yet.
    pub ending: String,
    /// Since when it is on file.
    pub since: Timestamp,
    /// Whether it was there at the first contact.
    pub adopted: bool,
    /// When four eyes confirmed it.
    pub confirmed_at: Option<Timestamp>,
}

/// Something that was seen or done about a vendor's details.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// The vendor.
    pub vendor: String,
    /// The account, where it is about one.
    pub account: Option<String>,
    /// What: a code of the ERP's log, `verified`, `replaced`, `confirmed`.
    pub what: String,
    /// What it was.
    pub before: Option<String>,
    /// What it became.
    pub after: Option<String>,
    /// When, by the clock of whoever tells it.
    pub at: Timestamp,
    /// When the gateway learnt of it.
    pub seen_at: Timestamp,
    /// Who, as far as it is known.
    pub by: Option<String>,
    /// Where it is known from: `erp_log`, `compared`, `operation`, `callback`.
    pub source: &'static str,
    /// The operation of ours that did it.
    pub operation: Option<String>,
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event")
            .field("vendor", &self.vendor)
            .field("account", &self.account)
            .field("what", &self.what)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// What the baseline holds that concerns one vendor.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// When the company's vendors were adopted; `None` is no baseline.
    pub adopted_at: Option<Timestamp>,
    /// The vendor.
    pub vendor: Option<BaselineVendor>,
    /// Its accounts, and any other vendor's with a record id that was asked for.
    pub accounts: Vec<BaselineAccount>,
    /// Its telephones.
    pub phones: Vec<BaselinePhone>,
}

/// What the first contact found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Adoption {
    /// The vendors.
    pub vendors: Vec<BaselineVendor>,
    /// All accounts.
    pub accounts: Vec<BaselineAccount>,
    /// All telephones.
    pub phones: Vec<BaselinePhone>,
}

/// Reads what concerns the vendor and the account records named.
pub fn known(
    company: &CompanyId,
    vendor_id: &VendorId,
    accounts: &[&str],
) -> impl Questions<Answer = Known> + use<> {
    let sql = "select vendor, name, tax_number, parent, first_seen, adopted, disputed_since, \
               dispute from baseline_vendor where company = $1 and vendor = $2";
    let args = [company.as_str().into(), vendor_id.as_str().into()];
    let of_vendor = select_account!("where company = $1 and vendor = $2 order by account");
    let by_record = select_account!("where company = $1 and account = $2 and vendor <> $3");
    let others = accounts.iter().map(|account| {
        let args = [company.as_str().into(), (*account).into(), vendor_id.as_str().into()];
        Question::optional(by_record, args, account_from_row)
    });
    let phones = "select vendor, kind, number, ending, since, adopted, confirmed_at \
                  from baseline_phone where company = $1 and vendor = $2 order by kind";
    let asked = (
        adopted_at(company),
        Question::optional(sql, args.clone(), vendor_from_row),
        Question::all(of_vendor, args.clone(), account_from_row),
        others.collect::<Vec<_>>(),
        Question::all(phones, args, phone_from_row),
    );
    asked.then(|(adopted_at, vendor, mut accounts, others, phones)| {
        accounts.extend(others.into_iter().flatten());
        Ok(Known { adopted_at, vendor, accounts, phones })
    })
}

/// The telephone numbers of other vendors than that one that end so, and those of which the end is
/// not known, as they were written.
pub async fn phones_ending(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    ending: &str,
    but: &VendorId,
) -> Result<Vec<String>, StoreError> {
    let sql = "select number from baseline_phone \
               where company = $1 and ending in ($2, '') and vendor <> $3 and number <> ''";
    let args = [company.as_str().into(), ending.into(), but.as_str().into()];
    conn.fetch_all(sql, &args).await?.iter().map(|row| row.text("number")).collect()
}

/// Keeps a telephone as it is now, over what was known of its kind.
pub async fn observe_phone(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    phone: &BaselinePhone,
) -> Result<(), StoreError> {
    let sql = "insert into baseline_phone (company, vendor, kind, number, since, adopted, \
               confirmed_at, ending) values ($1, $2, $3, $4, $5, $6, $7, $8) \
               on conflict (company, vendor, kind) do update set number = excluded.number, \
               since = excluded.since, adopted = excluded.adopted, \
               confirmed_at = excluded.confirmed_at, ending = excluded.ending";
    conn.execute_one(sql, &phone_values(company, phone)).await
}

/// Keeps what a vendor is now: its name, tax number and parent, and whether that is in dispute.
pub async fn keep_vendor(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &BaselineVendor,
) -> Result<(), StoreError> {
    let sql = "update baseline_vendor set name = $1, tax_number = $2, parent = $3, \
               disputed_since = $4, dispute = $5 where company = $6 and vendor = $7";
    let dispute = vendor.dispute.as_ref();
    let args = [
        vendor.name.as_str().into(),
        vendor.tax_number.clone().into(),
        vendor.parent.clone().into(),
        dispute.map(|dispute| dispute.since.as_millis()).into(),
        dispute.map(|dispute| dispute.what.clone()).into(),
        company.as_str().into(),
        vendor.vendor.as_str().into(),
    ];
    conn.execute_one(sql, &args).await
}

/// Notes what was seen or done.
pub async fn note(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    event: &Event,
) -> Result<(), StoreError> {
    let sql = "insert into baseline_event (id, company, vendor, account, what, before, after, at, \
               seen_at, by_whom, source, operation) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
               $10, $11, $12)";
    let args = [
        event.id.as_str().into(),
        company.as_str().into(),
        event.vendor.as_str().into(),
        event.account.clone().into(),
        event.what.as_str().into(),
        event.before.clone().into(),
        event.after.clone().into(),
        event.at.as_millis().into(),
        event.seen_at.as_millis().into(),
        event.by.clone().into(),
        event.source.into(),
        event.operation.clone().into(),
    ];
    conn.execute_one(sql, &args).await
}

/// What was seen or done about that vendor, the newest `limit`, the oldest of them first.
pub async fn events(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &VendorId,
    limit: i64,
) -> Result<Vec<Event>, StoreError> {
    let sql = select_event!("order by seen_at desc, id desc limit $3");
    let args = [company.as_str().into(), vendor.as_str().into(), limit.into()];
    let mut found: Vec<Event> =
        conn.fetch_all(sql, &args).await?.iter().map(event_from_row).collect::<Result<_, _>>()?;
    found.reverse();
    Ok(found)
}

/// The first edit in the ERP of that account since it was vouched for last, and the newest one.
pub fn edits(
    company: &CompanyId,
    vendor: &str,
    account: &str,
) -> impl Questions<Answer = (Option<Event>, Option<Event>)> + use<> {
    let first = select_event!(
        "and account = $3 and source = $4 and seen_at > (select coalesce(max(kept.seen_at), -1) \
         from baseline_event as kept where kept.company = $1 and kept.vendor = $2 \
         and kept.account = $3 and kept.source = $5 and kept.what = $6) \
         order by seen_at, id limit 1"
    );
    let newest =
        select_event!("and account = $3 and source = $4 order by seen_at desc, id desc limit 1");
    let of = [company.as_str().into(), vendor.into(), account.into(), FROM_COMPARING.into()];
    let mut since: Vec<Val> = of.clone().into();
    since.extend([FROM_OPERATION.into(), VERIFIED.into()]);
    (
        Question::optional(first, since, event_from_row),
        Question::optional(newest, of, event_from_row),
    )
}

/// What became of a vendor's telephones, the oldest `limit` of it, in order.
pub fn phone_events(company: &CompanyId, vendor: &VendorId, limit: i64) -> Question<Vec<Event>> {
    let sql =
        select_event!("and account is null and what in ($3, $4, $5) order by seen_at, id limit $6");
    let args = [
        company.as_str().into(),
        vendor.as_str().into(),
        PHONE_CHANGED.into(),
        MOBILE_CHANGED.into(),
        PHONE_CONFIRMED.into(),
        limit.into(),
    ];
    Question::all(sql, args, event_from_row)
}

/// Whether the baseline has that vendor.
pub fn is_known(company: &CompanyId, vendor: &VendorId) -> Question<bool> {
    let sql = "select count(*) as found from baseline_vendor where company = $1 and vendor = $2";
    Question::any(sql, [company.as_str().into(), vendor.as_str().into()])
}

/// Other vendors than that one with that number on an account that is active in the baseline; one
/// with several such accounts several times.
pub fn holders(company: &CompanyId, number: &str, but: &VendorId) -> Question<Vec<String>> {
    let sql = "select vendor from baseline_account \
               where company = $1 and number = $2 and vendor <> $3 and active = 1";
    let args = [company.as_str().into(), number.into(), but.as_str().into()];
    Question::all(sql, args, |row| row.text("vendor"))
}

/// When that company's vendors were adopted.
pub fn adopted_at(company: &CompanyId) -> Question<Option<Timestamp>> {
    let sql = "select adopted_at from baseline_company where company = $1";
    Question::optional(sql, [company.as_str().into()], |row| {
        row.int("adopted_at").map(Timestamp::from_millis)
    })
}

/// Writes the first contact, once for each company. `false` if it was written before.
pub async fn adopt(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    found: Adoption,
    attested_since: Option<Timestamp>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let vendors = i64::try_from(found.vendors.len()).unwrap_or(i64::MAX);
    let sql = "insert into baseline_company (company, adopted_at, attested_since, vendors) \
               values ($1, $2, $3, $4) on conflict (company) do nothing";
    let since = attested_since.map(Timestamp::as_millis);
    let args = [company.as_str().into(), now.as_millis().into(), since.into(), vendors.into()];
    if conn.execute(sql, &args).await? == 0 {
        return Ok(false);
    }
    let vendors = found.vendors.iter().map(|vendor| vendor_values(company, vendor));
    conn.insert_many(
        "insert into baseline_vendor (company, vendor, name, tax_number, parent, first_seen, adopted) ",
        vendors.collect(),
        "",
    )
    .await?;
    let accounts = found.accounts.iter().map(|account| account_values(company, account));
    conn.insert_many(
        "insert into baseline_account (company, account, vendor, number, active, since, status, \
         reowned, note, place, erp_since, operation) ",
        accounts.collect(),
        "",
    )
    .await?;
    let phones = found.phones.iter().map(|phone| phone_values(company, phone));
    conn.insert_many(
        "insert into baseline_phone (company, vendor, kind, number, since, adopted, confirmed_at, ending) ",
        phones.collect(),
        "",
    )
    .await?;
    Ok(true)
}

/// Writes a vendor first seen after the adoption. Nothing if it is there.
pub async fn first_seen(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &BaselineVendor,
) -> Result<(), StoreError> {
    let sql = "insert into baseline_vendor (company, vendor, name, tax_number, parent, first_seen, \
               adopted) values ($1, $2, $3, $4, $5, $6, $7) on conflict (company, vendor) do nothing";
    conn.execute(sql, &vendor_values(company, vendor)).await?;
    Ok(())
}

/// Writes how an account is now, over what was known of its record.
pub async fn observe(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    account: &BaselineAccount,
) -> Result<(), StoreError> {
    let sql = "insert into baseline_account (company, account, vendor, number, active, since, \
               status, reowned, note, place, erp_since, operation) values ($1, $2, $3, $4, $5, \
               $6, $7, $8, $9, $10, $11, $12) \
               on conflict (company, account) do update set vendor = excluded.vendor, \
               number = excluded.number, active = excluded.active, since = excluded.since, \
               status = excluded.status, reowned = excluded.reowned, note = excluded.note, \
               place = excluded.place, erp_since = excluded.erp_since, \
               operation = excluded.operation";
    conn.execute_one(sql, &account_values(company, account)).await
}

fn vendor_values(company: &CompanyId, vendor: &BaselineVendor) -> Vec<Val> {
    vec![
        company.as_str().into(),
        vendor.vendor.as_str().into(),
        vendor.name.as_str().into(),
        vendor.tax_number.clone().into(),
        vendor.parent.clone().into(),
        vendor.first_seen.as_millis().into(),
        vendor.adopted.into(),
    ]
}

fn account_values(company: &CompanyId, account: &BaselineAccount) -> Vec<Val> {
    vec![
        company.as_str().into(),
        account.account.as_str().into(),
        account.vendor.as_str().into(),
        account.number.as_str().into(),
        account.active.into(),
        account.since.as_millis().into(),
        account.status.code().into(),
        account.reowned.into(),
        account.note.clone().into(),
        account.place.into(),
        account.erp_since.map(Timestamp::as_millis).into(),
        account.operation.clone().into(),
    ]
}

fn phone_values(company: &CompanyId, phone: &BaselinePhone) -> Vec<Val> {
    vec![
        company.as_str().into(),
        phone.vendor.as_str().into(),
        phone.kind.into(),
        phone.number.as_str().into(),
        phone.since.as_millis().into(),
        phone.adopted.into(),
        phone.confirmed_at.map(Timestamp::as_millis).into(),
        phone.ending.as_str().into(),
    ]
}

fn vendor_from_row(row: &Row) -> Result<BaselineVendor, StoreError> {
    Ok(BaselineVendor {
        vendor: row.text("vendor")?,
        name: row.text("name")?,
        tax_number: row.opt_text("tax_number")?,
        parent: row.opt_text("parent")?,
        first_seen: Timestamp::from_millis(row.int("first_seen")?),
        adopted: row.flag("adopted")?,
        dispute: row
            .opt_int("disputed_since")?
            .zip(row.opt_text("dispute")?)
            .map(|(since, what)| Dispute { since: Timestamp::from_millis(since), what }),
    })
}

fn phone_from_row(row: &Row) -> Result<BaselinePhone, StoreError> {
    let kind = row.text("kind")?;
    Ok(BaselinePhone {
        vendor: row.text("vendor")?,
        kind: [PHONE, MOBILE]
            .into_iter()
            .find(|known| **known == kind)
            .ok_or_else(|| row.inconsistent("kind", "cannot be read"))?,
        number: row.text("number")?,
        ending: row.text("ending")?,
        since: Timestamp::from_millis(row.int("since")?),
        adopted: row.flag("adopted")?,
        confirmed_at: row.opt_int("confirmed_at")?.map(Timestamp::from_millis),
    })
}

fn event_from_row(row: &Row) -> Result<Event, StoreError> {
    let source = row.text("source")?;
    Ok(Event {
        id: EventId::parse(&row.text("id")?)
            .map_err(|_fault| row.inconsistent("id", "cannot be read"))?,
        vendor: row.text("vendor")?,
        account: row.opt_text("account")?,
        what: row.text("what")?,
        before: row.opt_text("before")?,
        after: row.opt_text("after")?,
        at: Timestamp::from_millis(row.int("at")?),
        seen_at: Timestamp::from_millis(row.int("seen_at")?),
        by: row.opt_text("by_whom")?,
        source: [FROM_ERP_LOG, FROM_COMPARING, FROM_OPERATION, FROM_CALLBACK]
            .into_iter()
            .find(|known| **known == source)
            .ok_or_else(|| row.inconsistent("source", "cannot be read"))?,
        operation: row.opt_text("operation")?,
    })
}

fn account_from_row(row: &Row) -> Result<BaselineAccount, StoreError> {
    let status = row.text("status")?;
    Ok(BaselineAccount {
        account: row.text("account")?,
        vendor: row.text("vendor")?,
        number: row.text("number")?,
        active: row.flag("active")?,
        since: Timestamp::from_millis(row.int("since")?),
        status: AccountStatus::from_code(&status)
            .ok_or_else(|| row.inconsistent("status", "cannot be read"))?,
        reowned: row.flag("reowned")?,
        note: row.opt_text("note")?,
        place: row.int("place")?,
        erp_since: row.opt_int("erp_since")?.map(Timestamp::from_millis),
        operation: row.opt_text("operation")?,
    })
}
