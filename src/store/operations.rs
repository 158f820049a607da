//! Operations in the store: one row each, written only by comparing its version.

use std::collections::BTreeSet;

use countersign_erp_source::{Amount, CompanyId, Currency, Timestamp};

use super::{Conn, Question, Row, StoreError, Val};
use crate::domain::decision::{Effect, Level, Stage};
use crate::domain::names::{CallbackId, MandateId, Name, OperationId};
use crate::domain::operation::{
    Decision, Operation, Origins, ReceiptRef, Status, Substance, Through,
};

const TABLE: &str = "operation";

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select id, action, company, principal, agent, mandate, idempotency_key, ",
            "request_digest, args, prepare, status, effect, stage, reasons, detail, ",
            "policy_digest, thing, counterparty, amount_minor, currency, params, facts, ",
            "operation_hash, level, waits_until, result, receipt_seq, receipt_hash, created_at, ",
            "updated_at, version, barred_by, records, not_by, callback, ",
            "(select string_agg(vote.voter, ' ') from vote where vote.operation = operation.id ",
            "and vote.operation_hash = operation.operation_hash ",
            "and vote.state in ('cast', 'spent')) as granted_by ",
            "from operation ",
            $rest
        )
    };
}

mod guesses;
mod queue;

pub use guesses::count_guesses;
pub use queue::{Place, Queue, count_queued, queued, waiting_on};

/// Which agent of which principal asks: operations belong to these three, whatever the mandate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The company.
    pub company: CompanyId,
    /// The principal.
    pub principal: Name,
    /// The agent; `None` for what the human does himself.
    pub agent: Option<Name>,
}

impl Owner {
    fn agent_text(&self) -> &str {
        self.agent.as_ref().map_or("", Name::as_str)
    }
}

/// The operation with that id.
pub fn find(id: &OperationId) -> Question<Option<Operation>> {
    Question::optional(select!("where id = $1"), [id.as_str().into()], from_row)
}

/// The operation that this key of this owner already made.
pub fn find_by_key(owner: &Owner, key: &str) -> Question<Option<Operation>> {
    let sql =
        select!("where company = $1 and principal = $2 and agent = $3 and idempotency_key = $4");
    let args = [
        owner.company.as_str().into(),
        owner.principal.as_str().into(),
        owner.agent_text().into(),
        key.into(),
    ];
    Question::optional(sql, args, from_row)
}

/// The owner's operations after that id, ascending, of that status where one is given.
pub async fn list(
    conn: &mut Conn<'_>,
    owner: &Owner,
    status: Option<Status>,
    after: &str,
    limit: i64,
) -> Result<Vec<Operation>, StoreError> {
    let sql = select!(
        "where company = $1 and principal = $2 and agent = $3 and id > $4 \
         and ($5 = '' or status = $5) order by id limit $6"
    );
    let args = [
        owner.company.as_str().into(),
        owner.principal.as_str().into(),
        owner.agent_text().into(),
        after.into(),
        status.map_or("", Status::code).into(),
        limit.into(),
    ];
    conn.fetch_all(sql, &args).await?.iter().map(from_row).collect()
}

/// The operations of a company after that id, ascending, of that status where one is given.
pub async fn of_company(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    status: Option<Status>,
    after: &str,
    limit: i64,
) -> Result<Vec<Operation>, StoreError> {
    let sql =
        select!("where company = $1 and id > $2 and ($3 = '' or status = $3) order by id limit $4");
    let args = [
        company.as_str().into(),
        after.into(),
        status.map_or("", Status::code).into(),
        limit.into(),
    ];
    conn.fetch_all(sql, &args).await?.iter().map(from_row).collect()
}

/// The live operation for that thing, if there is one.
pub fn find_live(company: &CompanyId, thing: &str) -> Question<Option<Operation>> {
    let sql = select!(
        "where company = $1 and thing = $2 and status in ('pending', 'executing', 'unknown')"
    );
    let args = [company.as_str().into(), thing.into()];
    Question::optional(sql, args, from_row)
}

/// Prepared and pending operations whose time is over.
pub async fn overdue(
    conn: &mut Conn<'_>,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Operation>, StoreError> {
    let sql = select!(
        "where status in ('prepared', 'pending') and waits_until <= $1 order by waits_until limit $2"
    );
    let args = [now.as_millis().into(), limit.into()];
    conn.fetch_all(sql, &args).await?.iter().map(from_row).collect()
}

/// Prepared and pending operations under that mandate.
pub async fn waiting_under(
    conn: &mut Conn<'_>,
    mandate: &MandateId,
) -> Result<Vec<Operation>, StoreError> {
    let sql = select!("where mandate = $1 and status in ('prepared', 'pending') order by id");
    let rows = conn.fetch_all(sql, &[mandate.as_str().into()]).await?;
    rows.iter().map(from_row).collect()
}

/// How many operations of that mandate are pending.
pub fn count_pending(mandate: &MandateId) -> Question<i64> {
    let sql = "select count(*) as found from operation where mandate = $1 and status = 'pending'";
    Question::one(sql, [mandate.as_str().into()], |row| row.int("found"))
}

/// What that human began for himself, in whatever company, and is prepared or pending.
pub async fn own_waiting(conn: &mut Conn<'_>, human: &Name) -> Result<Vec<Operation>, StoreError> {
    let sql = select!(
        "where principal = $1 and agent = '' and status in ('prepared', 'pending') order by id"
    );
    let rows = conn.fetch_all(sql, &[human.as_str().into()]).await?;
    rows.iter().map(from_row).collect()
}

/// How many operations of that human's own are pending.
pub fn count_own_pending(company: &CompanyId, human: &Name) -> Question<i64> {
    let sql = "select count(*) as found from operation where company = $1 and principal = $2 \
               and agent = '' and status = 'pending'";
    let args = [company.as_str().into(), human.as_str().into()];
    Question::one(sql, args, |row| row.int("found"))
}

/// Pending operations of that company after that id that `human` may approve by the roles given:
/// step-ups of the own mandates, four eyes for the mandates of others about which he made no call that
/// counts.
pub async fn awaiting(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    human: &Name,
    (as_accountant, as_approver): (bool, bool),
    now: Timestamp,
    (after, limit): (&str, i64),
) -> Result<Vec<Operation>, StoreError> {
    let sql = select!(
        "where company = $1 and status = 'pending' and id > $2 \
         and (($3 = 1 and level = 1 and principal = $4) \
         or ($5 = 1 and level = 2 and principal <> $4 \
         and replace(not_by, $7, '') = not_by and not exists (select 1 from callback mine \
         join callback rested on rested.id = operation.callback \
         and rested.company = mine.company and rested.vendor = mine.vendor \
         and rested.new_iban = mine.new_iban where mine.caller = $4 \
         and mine.state in ('open', 'spent') \
         and (mine.state = 'open' or mine.operation = operation.id) and mine.expires_at > $8))) \
         order by id limit $6"
    );
    let args = [
        company.as_str().into(),
        after.into(),
        as_accountant.into(),
        human.as_str().into(),
        as_approver.into(),
        limit.into(),
        // A name holds no quote.
        format!("\"{human}\"").into(),
        now.as_millis().into(),
    ];
    conn.fetch_all(sql, &args).await?.iter().map(from_row).collect()
}

/// Whether a human rejected an operation on that thing, of that principal's agents, after `since`.
pub fn was_rejected(
    company: &CompanyId,
    thing: &str,
    principal: &Name,
    since: Timestamp,
) -> Question<bool> {
    let sql = "select count(*) as found from operation where company = $1 and thing = $2 \
               and status = 'rejected' and principal = $3 and updated_at > $4";
    let args = [
        company.as_str().into(),
        thing.into(),
        principal.as_str().into(),
        since.as_millis().into(),
    ];
    Question::any(sql, args)
}

/// Who proposed an action on that thing first, and when, of those with a parameter of exactly that
/// value, which holds letters and digits only.
pub fn first_proposed(
    company: &CompanyId,
    thing: &str,
    action: &str,
    value: &str,
) -> Question<Option<(Timestamp, String)>> {
    let sql = "select created_at, principal, agent from operation where company = $1 \
               and thing = $2 and action = $3 and params like $4 order by created_at, id limit 1";
    let args = [
        company.as_str().into(),
        thing.into(),
        action.into(),
        format!("%\"value\":\"{value}\"%").into(),
    ];
    Question::optional(sql, args, |row| {
        let (principal, agent) = (row.text("principal")?, row.text("agent")?);
        let who = if agent.is_empty() { principal } else { agent };
        Ok((Timestamp::from_millis(row.int("created_at")?), who))
    })
}

/// What went out without a human, or may have, in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Automatic {
    /// To the counterparty, since the later moment.
    pub counterparty_day: i64,
    /// Of the whole company, since the later moment.
    pub company_day: i64,
    /// To the counterparty, since the earlier moment.
    pub counterparty_month: i64,
    /// Of the whole company, since the earlier moment.
    pub company_month: i64,
}

/// What went out without a human since `day` and since `month`, over all agents and mandates,
/// without that operation. Executing and unknown count; so do orders that a restored store took
/// over, of which nobody knows whether a human had seen them.
pub fn automatic(
    company: &CompanyId,
    counterparty: &str,
    but: &OperationId,
    (day, month): (Timestamp, Timestamp),
) -> Question<Automatic> {
    let sql = "select \
               cast(coalesce(sum(case when at > $4 and party = $2 then minor end), 0) as bigint) \
               as counterparty_day, \
               cast(coalesce(sum(case when at > $4 then minor end), 0) as bigint) as company_day, \
               cast(coalesce(sum(case when party = $2 then minor end), 0) as bigint) \
               as counterparty_month, \
               cast(coalesce(sum(minor), 0) as bigint) as company_month \
               from (select executing_since as at, counterparty as party, \
               case when id = $3 then 0 else amount_minor end as minor from operation \
               where company = $1 and reserved = 1 and level = 0 and executing_since > $5 \
               union all select booked_at, counterparty, amount_minor from adopted_order \
               where company = $1 and booked_at > $5) as went_out";
    let args = [
        company.as_str().into(),
        counterparty.into(),
        but.as_str().into(),
        day.as_millis().into(),
        month.as_millis().into(),
    ];
    Question::one(sql, args, |row| {
        Ok(Automatic {
            counterparty_day: row.int("counterparty_day")?,
            company_day: row.int("company_day")?,
            counterparty_month: row.int("counterparty_month")?,
            company_month: row.int("company_month")?,
        })
    })
}

/// What the mandate's operations hold of its budget and calls.
pub fn reserved(mandate: &MandateId, but: &OperationId) -> Question<(i64, i64)> {
    let sql = "select cast(coalesce(sum(amount_minor), 0) as bigint) as minor, count(*) as calls \
               from operation where mandate = $1 and reserved = 1 and id <> $2";
    let args = [mandate.as_str().into(), but.as_str().into()];
    Question::one(sql, args, |row| Ok((row.int("minor")?, row.int("calls")?)))
}

/// Whether budget and call are reserved, and since when the operation executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// Budget and call are taken.
    pub reserved: bool,
    /// Since when it executes.
    pub executing_since: Option<Timestamp>,
}

/// The operation's reservation.
pub fn reservation(id: &OperationId) -> Question<Reservation> {
    let sql = "select reserved, executing_since from operation where id = $1";
    Question::one(sql, [id.as_str().into()], |row| {
        Ok(Reservation {
            reserved: row.flag("reserved")?,
            executing_since: row.opt_int("executing_since")?.map(Timestamp::from_millis),
        })
    })
}

/// Writes a new operation.
pub async fn insert(
    conn: &mut Conn<'_>,
    operation: &Operation,
    reservation: Reservation,
) -> Result<(), StoreError> {
    let sql = "insert into operation (id, action, company, principal, agent, mandate, \
               idempotency_key, request_digest, args, prepare, status, effect, stage, reasons, \
               detail, policy_digest, thing, counterparty, amount_minor, currency, params, facts, \
               operation_hash, level, waits_until, result, reserved, executing_since, receipt_seq, \
               receipt_hash, barred_by, records, not_by, callback, created_at, updated_at, version) values ($1, $2, $3, $4, $5, $6, \
               $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, \
               $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37)";
    let mut args: Vec<Val> = vec![
        operation.id.as_str().into(),
        operation.action.as_str().into(),
        operation.origins.company.as_str().into(),
        operation.origins.principal.as_str().into(),
        operation.origins.agent().map_or("", Name::as_str).into(),
        operation.origins.mandate().map(MandateId::as_str).into(),
        operation.key.as_str().into(),
        operation.request_digest.as_str().into(),
        operation.args.as_str().into(),
        operation.prepare.into(),
    ];
    args.extend(moving(operation, reservation)?);
    args.extend([
        operation.created_at.as_millis().into(),
        operation.updated_at.as_millis().into(),
        operation.version.into(),
    ]);
    conn.execute_one(sql, &args).await
}

/// Writes what changed, if the row still has the version that was read.
///
/// INVARIANT: a state only moves along `Status::may_become`, from the version that was decided on;
/// whoever comes second finds no row and must read again.
pub async fn update(
    conn: &mut Conn<'_>,
    was: &Operation,
    now: &Operation,
    reservation: Reservation,
) -> Result<bool, StoreError> {
    if was.status != now.status && !was.status.may_become(now.status) {
        let what = format!("{} cannot become {}", was.status.code(), now.status.code());
        return Err(StoreError::inconsistent(TABLE, "status", what));
    }
    let sql = "update operation set status = $1, effect = $2, stage = $3, reasons = $4, \
               detail = $5, policy_digest = $6, thing = $7, counterparty = $8, \
               amount_minor = $9, currency = $10, params = $11, facts = $12, \
               operation_hash = $13, level = $14, waits_until = $15, result = $16, \
               reserved = $17, executing_since = $18, receipt_seq = $19, receipt_hash = $20, \
               barred_by = $21, records = $22, not_by = $23, callback = $24, updated_at = $25, \
               mandate = $26, prepare = $27, version = version + 1 where id = $28 and version = $29";
    let mut args = moving(now, reservation)?;
    args.extend([
        now.updated_at.as_millis().into(),
        now.origins.mandate().map(MandateId::as_str).into(),
        now.prepare.into(),
        was.id.as_str().into(),
        was.version.into(),
    ]);
    Ok(conn.execute(sql, &args).await? == 1)
}

fn moving(operation: &Operation, reservation: Reservation) -> Result<Vec<Val>, StoreError> {
    let substance = &operation.substance;
    let json = |value: serde_json::Result<String>| {
        value.map_err(|fault| StoreError::inconsistent(TABLE, "json", fault.to_string()))
    };
    let not_by: Vec<&str> = substance.not_by.iter().map(Name::as_str).collect();
    let result =
        operation.result.as_ref().map(|result| json(serde_json::to_string(result))).transpose()?;
    Ok(vec![
        operation.status.code().into(),
        operation.decision.effect.code().into(),
        operation.decision.stage.code().into(),
        json(serde_json::to_string(&operation.decision.reasons))?.into(),
        operation.decision.detail.as_str().into(),
        operation.decision.policy.clone().into(),
        substance.thing.clone().into(),
        substance.counterparty.clone().into(),
        substance.amount.map(Amount::minor).into(),
        substance.amount.map(|amount| amount.currency().code().to_owned()).into(),
        json(serde_json::to_string(&substance.params))?.into(),
        json(serde_json::to_string(&substance.facts))?.into(),
        substance.hash.clone().into(),
        operation.level.number().into(),
        operation.waits_until.map(Timestamp::as_millis).into(),
        result.into(),
        reservation.reserved.into(),
        reservation.executing_since.map(Timestamp::as_millis).into(),
        operation.receipt.seq.into(),
        operation.receipt.hash.as_str().into(),
        json(serde_json::to_string(&operation.barred_by))?.into(),
        json(serde_json::to_string(&substance.records))?.into(),
        json(serde_json::to_string(&not_by))?.into(),
        substance.callback.as_ref().map(CallbackId::as_str).into(),
    ])
}

fn from_row(row: &Row) -> Result<Operation, StoreError> {
    let bad = |column: &str| row.inconsistent(column, "cannot be read");
    let json = |column: &'static str| -> Result<String, StoreError> { row.text(column) };
    let name = |column: &'static str| -> Result<Name, StoreError> {
        Name::parse(&row.text(column)?).map_err(|_fault| bad(column))
    };
    let amount = match (row.opt_int("amount_minor")?, row.opt_text("currency")?) {
        (Some(minor), Some(code)) => {
            let currency = Currency::from_code(&code).map_err(|_fault| bad("currency"))?;
            Some(Amount::from_minor(minor, currency))
        }
        _ => None,
    };
    let parse = |column: &'static str| move |_fault| bad(column);
    let result = row
        .opt_text("result")?
        .map(|text| serde_json::from_str(&text).map_err(parse("result")))
        .transpose()?;
    Ok(Operation {
        id: OperationId::parse(&row.text("id")?).map_err(|_fault| bad("id"))?,
        action: row.text("action")?,
        origins: Origins {
            company: CompanyId::new(row.text("company")?).map_err(|_fault| bad("company"))?,
            principal: name("principal")?,
            through: match row.opt_text("mandate")? {
                None => Through::Nobody,
                Some(id) => Through::Agent {
                    agent: name("agent")?,
                    mandate: MandateId::parse(&id).map_err(|_fault| bad("mandate"))?,
                },
            },
        },
        key: row.text("idempotency_key")?,
        request_digest: row.text("request_digest")?,
        args: row.text("args")?,
        prepare: row.flag("prepare")?,
        status: Status::from_code(&row.text("status")?).ok_or_else(|| bad("status"))?,
        decision: Decision {
            effect: Effect::from_code(&row.text("effect")?).ok_or_else(|| bad("effect"))?,
            stage: Stage::from_code(&row.text("stage")?).ok_or_else(|| bad("stage"))?,
            reasons: serde_json::from_str(&json("reasons")?).map_err(parse("reasons"))?,
            detail: row.text("detail")?,
            policy: row.opt_text("policy_digest")?,
        },
        substance: Substance {
            thing: row.opt_text("thing")?,
            counterparty: row.opt_text("counterparty")?,
            amount,
            params: serde_json::from_str(&json("params")?).map_err(parse("params"))?,
            facts: serde_json::from_str(&json("facts")?).map_err(parse("facts"))?,
            hash: row.opt_text("operation_hash")?,
            records: serde_json::from_str(&json("records")?).map_err(parse("records"))?,
            not_by: not_by(row)?,
            callback: row
                .opt_text("callback")?
                .map(|id| CallbackId::parse(&id).map_err(|_fault| bad("callback")))
                .transpose()?,
        },
        level: Level::from_number(row.int("level")?).ok_or_else(|| bad("level"))?,
        barred_by: serde_json::from_str(&json("barred_by")?).map_err(parse("barred_by"))?,
        granted_by: granted_by(row)?,
        waits_until: row.opt_int("waits_until")?.map(Timestamp::from_millis),
        result,
        receipt: ReceiptRef { seq: row.int("receipt_seq")?, hash: row.text("receipt_hash")? },
        created_at: Timestamp::from_millis(row.int("created_at")?),
        updated_at: Timestamp::from_millis(row.int("updated_at")?),
        version: row.int("version")?,
    })
}

/// Whose vote does not count for it.
fn not_by(row: &Row) -> Result<BTreeSet<Name>, StoreError> {
    let bad = || row.inconsistent("not_by", "cannot be read");
    let names: Vec<String> = serde_json::from_str(&row.text("not_by")?).map_err(|_fault| bad())?;
    names.iter().map(|name| Name::parse(name).map_err(|_fault| bad())).collect()
}

/// Who voted for the operation as it stands.
fn granted_by(row: &Row) -> Result<Vec<String>, StoreError> {
    let names = row.opt_text("granted_by")?.unwrap_or_default();
    let mut names: Vec<String> = names.split_whitespace().map(ToOwned::to_owned).collect();
    names.sort_unstable();
    Ok(names)
}
