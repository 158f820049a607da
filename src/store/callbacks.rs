//! Call-backs: who called a vendor about which new account, and what came of it.

use std::collections::BTreeSet;

use countersign_erp_source::{CompanyId, Timestamp};

use super::{Conn, Question, Row, StoreError};
use crate::domain::names::{CallbackId, Name, OperationId};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select id, company, vendor, new_iban, caller, number_dialled, number_since, ",
            "number_from, spoke_to, read_back, outcome, request_received_at, note, why_not, ",
            "called_at, expires_at, state, operation from callback ",
            $rest
        )
    };
}

/// Those that something may still rest on: open ones, and those that an operation has used which is not
/// settled. What is given back later would count again.
macro_rules! unsettled {
    ($rest:literal) => {
        concat!(
            "update callback set state = 'void', operation = null, ended_at = $1, \
             ended_because = $2 where ",
            $rest,
            " and (state = 'open' or (state = 'spent' and operation in \
             (select id from operation where status in ('executing', 'unknown'))))"
        )
    };
}

/// What the vendor said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The account is theirs.
    Confirmed,
    /// It is not.
    Denied,
    /// Nobody answered.
    NoAnswer,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Confirmed, Self::Denied, Self::NoAnswer];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Denied => "denied",
            Self::NoAnswer => "no_answer",
        }
    }

    /// The outcome with that code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.code() == code)
    }
}

/// What a call-back can be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackState {
    /// It never counted.
    Idle,
    /// It counts, and nothing has used it.
    Open,
    /// An operation used it.
    Spent,
    /// It does not count any more.
    Void,
}

impl CallbackState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Open, Self::Spent, Self::Void];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Open => "open",
            Self::Spent => "spent",
            Self::Void => "void",
        }
    }

    fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

/// A call-back as the store holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Callback {
    /// Its id.
    pub id: CallbackId,
    /// The company.
    pub company: CompanyId,
    /// The vendor.
    pub vendor: String,
    /// The new account's number, whole.
    pub new_iban: String,
    /// Who called.
    pub caller: Name,
    /// The number that was dialled, in its one spelling.
    pub number_dialled: String,
    /// Since when that number is on file, where it is.
    pub number_since: Option<Timestamp>,
    /// How it came to be on file.
    pub number_from: Option<String>,
    /// Who answered.
    pub spoke_to: String,
    /// What was read back.
    pub read_back: String,
    /// What the vendor said.
    pub outcome: Outcome,
    /// When the request for the change came, where the caller said so.
    pub request_received_at: Option<Timestamp>,
    /// What else the caller noted.
    pub note: Option<String>,
    /// Why it does not count; empty if it does.
    pub why_not: Vec<String>,
    /// When.
    pub called_at: Timestamp,
    /// Until when it counts.
    pub expires_at: Timestamp,
    /// What it can be used for.
    pub state: CallbackState,
    /// The operation that used it.
    pub operation: Option<OperationId>,
}

impl std::fmt::Debug for Callback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callback")
            .field("id", &self.id)
            .field("vendor", &self.vendor)
            .field("outcome", &self.outcome)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Callback {
    /// Whether that operation may rest on it at that moment: it counts, its time is not over, and no
    /// other operation used it.
    pub fn stands_for(&self, operation: &OperationId, now: Timestamp) -> bool {
        let its_own = match self.state {
            CallbackState::Open => true,
            CallbackState::Spent => self.operation.as_ref() == Some(operation),
            CallbackState::Idle | CallbackState::Void => false,
        };
        its_own && now < self.expires_at
    }
}

/// Writes a new call-back.
pub async fn insert(conn: &mut Conn<'_>, callback: &Callback) -> Result<(), StoreError> {
    let sql = "insert into callback (id, company, vendor, new_iban, caller, number_dialled, \
               number_since, number_from, spoke_to, read_back, outcome, request_received_at, \
               note, why_not, called_at, expires_at, state) values ($1, $2, $3, $4, $5, $6, $7, \
               $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
    let why_not = callback.why_not.join(" ");
    let args = [
        callback.id.as_str().into(),
        callback.company.as_str().into(),
        callback.vendor.as_str().into(),
        callback.new_iban.as_str().into(),
        callback.caller.as_str().into(),
        callback.number_dialled.as_str().into(),
        callback.number_since.map(Timestamp::as_millis).into(),
        callback.number_from.clone().into(),
        callback.spoke_to.as_str().into(),
        callback.read_back.as_str().into(),
        callback.outcome.code().into(),
        callback.request_received_at.map(Timestamp::as_millis).into(),
        callback.note.clone().into(),
        why_not.as_str().into(),
        callback.called_at.as_millis().into(),
        callback.expires_at.as_millis().into(),
        callback.state.code().into(),
    ];
    conn.execute_one(sql, &args).await
}

/// The call-backs about that account of that vendor, the oldest first.
pub async fn about(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &str,
    new_iban: &str,
) -> Result<Vec<Callback>, StoreError> {
    let sql =
        select!("where company = $1 and vendor = $2 and new_iban = $3 order by called_at, id");
    let args = [company.as_str().into(), vendor.into(), new_iban.into()];
    conn.fetch_all(sql, &args).await?.iter().map(from_row).collect()
}

/// Everybody who made a call that counts at that moment about the account that this one is about: none
/// of them is the second person.
pub fn callers(
    id: &CallbackId,
    operation: &OperationId,
    now: Timestamp,
) -> Question<BTreeSet<Name>> {
    let sql = select!(
        "where (company, vendor, new_iban) in \
         (select company, vendor, new_iban from callback where id = $1) order by called_at, id"
    );
    let operation = operation.clone();
    Question::of(sql, [id.as_str().into()], move |rows| {
        let all: Vec<Callback> = rows.iter().map(from_row).collect::<Result<_, _>>()?;
        Ok(standing(&all, &operation, now).1)
    })
}

/// All call-backs of that vendor, the oldest first, at most `limit` of the newest.
pub async fn of_vendor(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &str,
    limit: i64,
) -> Result<Vec<Callback>, StoreError> {
    let sql = select!("where company = $1 and vendor = $2 order by called_at desc, id limit $3");
    let args = [company.as_str().into(), vendor.into(), limit.into()];
    let mut found: Vec<Callback> =
        conn.fetch_all(sql, &args).await?.iter().map(from_row).collect::<Result<_, _>>()?;
    found.reverse();
    Ok(found)
}

/// Whether the operation may spend the call-back at that moment, or has spent it.
pub fn may_be_spent(id: &CallbackId, operation: &OperationId, now: Timestamp) -> Question<bool> {
    let operation = operation.clone();
    Question::of(select!("where id = $1"), [id.as_str().into()], move |rows| match rows.first() {
        Some(row) => Ok(from_row(row)?.stands_for(&operation, now)),
        None => Ok(false),
    })
}

/// Whether what the operation spent still carries it: nobody has said no since.
pub async fn carries(conn: &mut Conn<'_>, operation: &OperationId) -> Result<bool, StoreError> {
    let sql = "select count(*) as found from callback where operation = $1 and state = 'spent'";
    Ok(conn.fetch_one(sql, &[operation.as_str().into()]).await?.int("found")? > 0)
}

/// Spends a call-back for an operation. `false` if it is not the operation's to spend.
pub async fn spend(
    conn: &mut Conn<'_>,
    id: &CallbackId,
    operation: &OperationId,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update callback set state = 'spent', operation = $1 where id = $2 \
               and (state = 'open' or (state = 'spent' and operation = $1)) and expires_at > $3";
    let args = [operation.as_str().into(), id.as_str().into(), now.as_millis().into()];
    Ok(conn.execute(sql, &args).await? == 1)
}

/// Gives back what an operation spent, as surely nothing came of it.
pub async fn give_back(conn: &mut Conn<'_>, operation: &OperationId) -> Result<(), StoreError> {
    let sql = "update callback set state = 'open', operation = null \
               where operation = $1 and state = 'spent'";
    conn.execute(sql, &[operation.as_str().into()]).await?;
    Ok(())
}

/// Voids what is not settled about that account of that vendor. Gives how many.
pub async fn void_about(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &str,
    new_iban: &str,
    because: &str,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let sql = unsettled!("company = $3 and vendor = $4 and new_iban = $5");
    let args = [
        at.as_millis().into(),
        because.into(),
        company.as_str().into(),
        vendor.into(),
        new_iban.into(),
    ];
    conn.execute(sql, &args).await
}

/// Voids all open call-backs about a vendor, whichever account they are about.
pub async fn void_all(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    vendor: &str,
    because: &str,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let sql = "update callback set state = 'void', ended_at = $1, ended_because = $2 \
               where company = $3 and vendor = $4 and state = 'open'";
    let args = [at.as_millis().into(), because.into(), company.as_str().into(), vendor.into()];
    conn.execute(sql, &args).await
}

/// Voids all open call-backs of all companies. Gives how many.
pub async fn void_every(
    conn: &mut Conn<'_>,
    because: &str,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let sql = "update callback set state = 'void', ended_at = $1, ended_because = $2 \
               where state = 'open'";
    conn.execute(sql, &[at.as_millis().into(), because.into()]).await
}

/// Voids what a human recorded and is not settled. Gives how many.
pub async fn void_by(
    conn: &mut Conn<'_>,
    caller: &Name,
    because: &str,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let sql = unsettled!("caller = $3");
    let args = [at.as_millis().into(), because.into(), caller.as_str().into()];
    conn.execute(sql, &args).await
}

/// The call-back that an operation may rest on, the oldest one, and everybody who made one that
/// counts: none of them is the second person.
pub fn standing(
    all: &[Callback],
    operation: &OperationId,
    now: Timestamp,
) -> (Option<Callback>, BTreeSet<Name>) {
    let stand = || all.iter().filter(|callback| callback.stands_for(operation, now));
    let spent = stand().find(|callback| callback.state == CallbackState::Spent);
    let callers = stand().map(|callback| callback.caller.clone()).collect();
    (spent.or_else(|| stand().next()).cloned(), callers)
}

fn from_row(row: &Row) -> Result<Callback, StoreError> {
    let bad = |column: &str| row.inconsistent(column, "cannot be read");
    let why_not = row.text("why_not")?;
    Ok(Callback {
        id: CallbackId::parse(&row.text("id")?).map_err(|_fault| bad("id"))?,
        company: CompanyId::new(row.text("company")?).map_err(|_fault| bad("company"))?,
        vendor: row.text("vendor")?,
        new_iban: row.text("new_iban")?,
        caller: Name::parse(&row.text("caller")?).map_err(|_fault| bad("caller"))?,
        number_dialled: row.text("number_dialled")?,
        number_since: row.opt_int("number_since")?.map(Timestamp::from_millis),
        number_from: row.opt_text("number_from")?,
        spoke_to: row.text("spoke_to")?,
        read_back: row.text("read_back")?,
        outcome: Outcome::from_code(&row.text("outcome")?).ok_or_else(|| bad("outcome"))?,
        request_received_at: row.opt_int("request_received_at")?.map(Timestamp::from_millis),
        note: row.opt_text("note")?,
        why_not: why_not.split_whitespace().map(ToOwned::to_owned).collect(),
        called_at: Timestamp::from_millis(row.int("called_at")?),
        expires_at: Timestamp::from_millis(row.int("expires_at")?),
        state: CallbackState::from_code(&row.text("state")?).ok_or_else(|| bad("state"))?,
        operation: row
            .opt_text("operation")?
            .map(|id| OperationId::parse(&id).map_err(|_fault| bad("operation")))
            .transpose()?,
    })
}
