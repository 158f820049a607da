//! Attempts: one claim each, with the order that it was made for. They are what the sums of a bill
//! are made of.

use countersign_erp_source::{Amount, CompanyId, Currency, Timestamp};

use super::{Conn, Question, Row, StoreError};
use crate::domain::names::OperationId;
use crate::domain::operation::Sum;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select marker, seq, operation, company, thing, counterparty, amount_minor, ",
            "total_minor, currency, order_text, operation_hash, not_after, lease_until, daemon, ",
            "state, payment, claimed_at from attempt ",
            $rest
        )
    };
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptState {
    /// May be booked.
    Open,
    /// Booked.
    Booked,
    /// The ERP surely booked nothing.
    Refused,
    /// Surely never sent.
    NotSent,
    /// Proved absent by the ERP.
    Absent,
    /// Denied after the claim, before anything was sent.
    Withdrawn,
}

impl AttemptState {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Booked => "booked",
            Self::Refused => "refused",
            Self::NotSent => "not_sent",
            Self::Absent => "absent",
            Self::Withdrawn => "withdrawn",
        }
    }

    fn from_code(code: &str) -> Option<Self> {
        [Self::Open, Self::Booked, Self::Refused, Self::NotSent, Self::Absent, Self::Withdrawn]
            .into_iter()
            .find(|state| state.code() == code)
    }
}

/// An attempt as the store holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The marker, in hexadecimal.
    pub marker: String,
    /// The store's sequence number.
    pub seq: i64,
    /// Whose attempt.
    pub operation: OperationId,
    /// The company.
    pub company: CompanyId,
    /// What it holds.
    pub thing: String,
    /// The vendor.
    pub counterparty: String,
    /// What it claims, with the pinned total, where it moves money.
    pub sum: Option<Sum>,
    /// The exact order.
    pub order_text: String,
    /// The operation's hash at the claim.
    pub operation_hash: String,
    /// The order's deadline, by the ERP's clock.
    pub not_after: Timestamp,
    /// Until when the daemon that claimed it is at work on it.
    pub lease_until: Timestamp,
    /// That daemon.
    pub daemon: String,
    /// What became of it.
    pub state: AttemptState,
    /// The ERP's payment.
    pub payment: Option<String>,
    /// When it was claimed.
    pub claimed_at: Timestamp,
}

impl std::fmt::Debug for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Order and marker are secrets.
        f.debug_struct("Attempt")
            .field("operation", &self.operation)
            .field("seq", &self.seq)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// What is claimed or booked for a thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The sum in minor units, of what may be booked too.
    pub sum_minor: i64,
    /// The sum in minor units of what is booked.
    pub booked_minor: i64,
    /// The total that the first of them pinned.
    pub total: Option<Amount>,
}

/// What is claimed or booked for that thing by other operations than `but`.
pub fn claimed(company: &CompanyId, thing: &str, but: &OperationId) -> Question<Claimed> {
    let sql = "select cast(coalesce(sum(minor), 0) as bigint) as minor, \
               cast(coalesce(sum(minor * is_booked), 0) as bigint) as booked, \
               min(total_minor) as total, \
               min(currency) as currency, count(distinct currency) as currencies \
               from (select case when operation = $3 then 0 \
               when booked_minor > amount_minor then booked_minor \
               else coalesce(amount_minor, 0) end as minor, \
               case when state = 'booked' then 1 else 0 end as is_booked, \
               total_minor, currency from attempt \
               where company = $1 and thing = $2 and state in ('open', 'booked') \
               union all select amount_minor, 1, total_minor, currency from adopted_order \
               where company = $1 and thing = $2) as claimed";
    let args = [company.as_str().into(), thing.into(), but.as_str().into()];
    Question::one(sql, args, claimed_from_row)
}

fn claimed_from_row(row: &Row) -> Result<Claimed, StoreError> {
    if row.int("currencies")? > 1 {
        return Err(row.inconsistent("currencies", "one thing was claimed in several"));
    }
    let total = match (row.opt_int("total")?, row.opt_text("currency")?) {
        (Some(minor), Some(code)) => {
            let currency = Currency::from_code(&code)
                .map_err(|_fault| row.inconsistent("currency", "cannot be read"))?;
            Some(Amount::from_minor(minor, currency))
        }
        _ => None,
    };
    Ok(Claimed { sum_minor: row.int("minor")?, booked_minor: row.int("booked")?, total })
}

/// The operation's open attempt, if there is one.
pub fn find_open(operation: &OperationId) -> Question<Option<Attempt>> {
    let sql = select!("where operation = $1 and state = 'open'");
    Question::optional(sql, [operation.as_str().into()], from_row)
}

/// Writes a new open attempt.
pub async fn insert(conn: &mut Conn<'_>, attempt: &Attempt) -> Result<(), StoreError> {
    let sql = "insert into attempt (marker, seq, operation, company, thing, counterparty, \
               amount_minor, total_minor, currency, order_text, operation_hash, not_after, \
               lease_until, daemon, state, claimed_at) values ($1, $2, $3, $4, $5, $6, $7, $8, \
               $9, $10, $11, $12, $13, $14, $15, $16)";
    let args = [
        attempt.marker.as_str().into(),
        attempt.seq.into(),
        attempt.operation.as_str().into(),
        attempt.company.as_str().into(),
        attempt.thing.as_str().into(),
        attempt.counterparty.as_str().into(),
        attempt.sum.map(|sum| sum.amount.minor()).into(),
        attempt.sum.map(|sum| sum.total.minor()).into(),
        attempt.sum.map(|sum| sum.amount.currency().code()).into(),
        attempt.order_text.as_str().into(),
        attempt.operation_hash.as_str().into(),
        attempt.not_after.as_millis().into(),
        attempt.lease_until.as_millis().into(),
        attempt.daemon.as_str().into(),
        attempt.state.code().into(),
        attempt.claimed_at.as_millis().into(),
    ];
    conn.execute_one(sql, &args).await
}

/// The state of the attempt with that marker, if there is one.
pub async fn state_of(
    conn: &mut Conn<'_>,
    marker: &str,
) -> Result<Option<AttemptState>, StoreError> {
    let sql = "select state from attempt where marker = $1";
    let Some(row) = conn.fetch_optional(sql, &[marker.into()]).await? else { return Ok(None) };
    let state = AttemptState::from_code(&row.text("state")?);
    state.map(Some).ok_or_else(|| row.inconsistent("state", "cannot be read"))
}

/// Whether an attempt of that operation was closed with that note.
pub async fn has_note(
    conn: &mut Conn<'_>,
    operation: &OperationId,
    note: &str,
) -> Result<bool, StoreError> {
    let sql = "select count(*) as found from attempt where operation = $1 and note = $2";
    let args = [operation.as_str().into(), note.into()];
    Ok(conn.fetch_one(sql, &args).await?.int("found")? > 0)
}

/// Whether the store has that marker as something that counts for its bill.
pub async fn counts(conn: &mut Conn<'_>, marker: &str) -> Result<bool, StoreError> {
    let state = state_of(conn, marker).await?;
    Ok(matches!(state, Some(AttemptState::Open | AttemptState::Booked)))
}

/// Closes an open attempt, with the payment and the minor units that were booked in its currency.
/// `false` if it is not open any more.
pub async fn settle(
    conn: &mut Conn<'_>,
    marker: &str,
    state: AttemptState,
    booked: Option<(&str, Option<i64>)>,
    note: &str,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update attempt set state = $1, payment = $2, booked_minor = $3, note = $4, \
               settled_at = $5 where marker = $6 and state = 'open'";
    let args = [
        state.code().into(),
        booked.map(|(payment, _)| payment).into(),
        booked.and_then(|(_, minor)| minor).into(),
        note.into(),
        at.as_millis().into(),
        marker.into(),
    ];
    Ok(conn.execute(sql, &args).await? == 1)
}

/// The newest sequence number that the store has given to an order.
pub async fn newest_seq(conn: &mut Conn<'_>) -> Result<i64, StoreError> {
    conn.fetch_one("select order_seq from store", &[]).await?.int("order_seq")
}

/// An order that the ERP has of this store and the store itself did not know.
#[derive(Clone, PartialEq, Eq)]
pub struct AdoptedOrder {
    /// The sequence number.
    pub seq: i64,
    /// The marker, in hexadecimal.
    pub marker: String,
    /// The company.
    pub company: CompanyId,
    /// What it paid.
    pub thing: String,
    /// Whose that is; empty where nobody can say.
    pub counterparty: String,
    /// How much.
    pub amount: Amount,
    /// The pinned total.
    pub total: Amount,
    /// The ERP's payment.
    pub payment: String,
    /// When, by the ERP's clock.
    pub booked_at: Timestamp,
}

impl std::fmt::Debug for AdoptedOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdoptedOrder").field("seq", &self.seq).finish_non_exhaustive()
    }
}

/// Takes an order over. `false` if the store knows it.
pub async fn take_over(conn: &mut Conn<'_>, order: &AdoptedOrder) -> Result<bool, StoreError> {
    // An order that was given up here and is booked there must count.
    if counts(conn, &order.marker).await? {
        return Ok(false);
    }
    let sql = "insert into adopted_order (seq, marker, company, thing, amount_minor, total_minor, \
               currency, payment, booked_at, counterparty) \
               values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
               on conflict (seq) do nothing";
    let args = [
        order.seq.into(),
        order.marker.as_str().into(),
        order.company.as_str().into(),
        order.thing.as_str().into(),
        order.amount.minor().into(),
        order.total.minor().into(),
        order.amount.currency().code().into(),
        order.payment.as_str().into(),
        order.booked_at.as_millis().into(),
        order.counterparty.as_str().into(),
    ];
    Ok(conn.execute(sql, &args).await? == 1)
}

fn from_row(row: &Row) -> Result<Attempt, StoreError> {
    let bad = |column: &str| row.inconsistent(column, "cannot be read");
    let sum = match (row.opt_int("amount_minor")?, row.opt_int("total_minor")?) {
        (Some(amount), Some(total)) => {
            let currency = row.opt_text("currency")?.ok_or_else(|| bad("currency"))?;
            let currency = Currency::from_code(&currency).map_err(|_fault| bad("currency"))?;
            let of = |minor| Amount::from_minor(minor, currency);
            Some(Sum { amount: of(amount), total: of(total) })
        }
        _ => None,
    };
    Ok(Attempt {
        marker: row.text("marker")?,
        seq: row.int("seq")?,
        operation: OperationId::parse(&row.text("operation")?)
            .map_err(|_fault| bad("operation"))?,
        company: CompanyId::new(row.text("company")?).map_err(|_fault| bad("company"))?,
        thing: row.text("thing")?,
        counterparty: row.text("counterparty")?,
        sum,
        order_text: row.text("order_text")?,
        operation_hash: row.text("operation_hash")?,
        not_after: Timestamp::from_millis(row.int("not_after")?),
        lease_until: Timestamp::from_millis(row.int("lease_until")?),
        daemon: row.text("daemon")?,
        state: AttemptState::from_code(&row.text("state")?).ok_or_else(|| bad("state"))?,
        payment: row.opt_text("payment")?,
        claimed_at: Timestamp::from_millis(row.int("claimed_at")?),
    })
}
