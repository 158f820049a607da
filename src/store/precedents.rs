//! What other operations of a company mean for a decision: what was claimed before and looks the
//! same, whether a payee was paid before with a human's vote, and what is under way.

use chrono::NaiveDate;
use countersign_erp_source::{Amount, CompanyId, Currency, ReferenceKey, Timestamp};

use super::attempts::Attempt;
use super::{Conn, Question, Questions, Row, StoreError, Val};
use crate::domain::reason::Reason;

macro_rules! alike_max {
    () => {
        1000
    };
}

/// More precedents than these are more than can be looked at.
pub const ALIKE_MAX: usize = alike_max!();

/// A claim as it was, and whose it was is known from where it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alike {
    /// What was claimed.
    pub thing: String,
    /// By what it was referred to.
    pub reference: Option<ReferenceKey>,
    /// The total that was pinned.
    pub total: Amount,
    /// Its date.
    pub dated: Option<NaiveDate>,
}

/// What precedents are looked for beside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// The counterparty.
    pub counterparty: String,
    /// Not this one itself.
    pub thing: String,
    /// By what it is referred to.
    pub reference: Option<ReferenceKey>,
    /// The total, where it can be compared.
    pub total: Option<Amount>,
    /// The first and the last date of a precedent that counts by its total; `None` for any.
    pub dates: Option<(NaiveDate, NaiveDate)>,
}

/// Keeps what a claim was made for, with the level that its operation has then. A later claim of the
/// same operation takes its place.
pub async fn keep(
    conn: &mut Conn<'_>,
    attempt: &Attempt,
    total: Amount,
    payee: &str,
    reference: Option<&ReferenceKey>,
    dated: Option<NaiveDate>,
) -> Result<(), StoreError> {
    let sql = "insert into precedent (operation, company, thing, counterparty, payee, \
               reference_by_part, reference_as_one, total_minor, currency, dated, level, \
               claimed_at) select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, operation.level, $11 \
               from operation where operation.id = $1 \
               on conflict (operation) do update set thing = excluded.thing, \
               counterparty = excluded.counterparty, payee = excluded.payee, \
               reference_by_part = excluded.reference_by_part, \
               reference_as_one = excluded.reference_as_one, \
               total_minor = excluded.total_minor, currency = excluded.currency, \
               dated = excluded.dated, level = excluded.level, claimed_at = excluded.claimed_at";
    let args = [
        attempt.operation.as_str().into(),
        attempt.company.as_str().into(),
        attempt.thing.as_str().into(),
        attempt.counterparty.as_str().into(),
        payee.into(),
        reference.map(ReferenceKey::by_part).into(),
        reference.map(ReferenceKey::as_one).into(),
        total.minor().into(),
        total.currency().code().into(),
        dated.map(|dated| dated.to_string()).into(),
        attempt.claimed_at.into(),
    ];
    conn.execute_one(sql, &args).await
}

macro_rules! alike {
    ($condition:literal) => {
        concat!(
            "select p.thing, p.reference_by_part, p.reference_as_one, p.total_minor, p.currency, ",
            "p.dated from precedent p join operation o on o.id = p.operation ",
            "where p.company = $1 and p.counterparty = $2 and p.thing <> $3 ",
            "and o.status in ('executing', 'unknown', 'executed') and ",
            $condition
        )
    };
}

/// What was claimed for other things of that counterparty, and is booked or may be, under the same
/// reference or over the same total; at most [`ALIKE_MAX`]. What failed or was refused is none.
///
/// SQLite plans a statement anew each time if its limit is an argument, so the number stands in it.
pub fn alike(company: &CompanyId, beside: &Beside) -> impl Questions<Answer = Vec<Alike>> + use<> {
    let by_reference = concat!(
        alike!("p.reference_by_part = $4"),
        " union ",
        alike!("p.reference_as_one = $5"),
        " limit ",
        alike_max!()
    );
    let by_total = concat!(
        alike!(
            "p.total_minor = $4 and p.currency = $5 \
             and (p.dated is null or (p.dated >= $6 and p.dated <= $7))"
        ),
        " limit ",
        alike_max!()
    );
    let of: [Val; 3] = [
        company.as_str().into(),
        beside.counterparty.as_str().into(),
        beside.thing.as_str().into(),
    ];
    let mut asked = Vec::new();
    if let Some(key) = &beside.reference {
        let more = [key.by_part().into(), key.as_one().into()];
        let args = [of.to_vec(), more.to_vec()].concat();
        asked.push(Question::all(by_reference, args, from_row));
    }
    if let Some(total) = beside.total {
        // As text, any date lies between these two.
        let (first, last) = beside.dates.map_or_else(
            || ("0".to_owned(), "9".to_owned()),
            |(first, last)| (first.to_string(), last.to_string()),
        );
        let more =
            [total.minor().into(), total.currency().code().into(), first.into(), last.into()];
        let args = [of.to_vec(), more.to_vec()].concat();
        asked.push(Question::all(by_total, args, from_row));
    }
    asked.then(|found| Ok(found.concat()))
}

/// That thing of the counterparty's as it was claimed, and is booked or may be; each time it was.
pub async fn of_thing(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    counterparty: &str,
    thing: &str,
) -> Result<Vec<Alike>, StoreError> {
    let sql = "select p.thing, p.reference_by_part, p.reference_as_one, p.total_minor, p.currency, \
               p.dated from precedent p join operation o on o.id = p.operation \
               where p.company = $1 and p.counterparty = $2 and p.thing = $3 \
               and o.status in ('executing', 'unknown', 'executed') order by p.operation";
    let args = [company.as_str().into(), counterparty.into(), thing.into()];
    conn.fetch_all(sql, &args).await?.iter().map(from_row).collect()
}

/// When exactly that payee was first paid with a human's vote, claimed at or after that moment and
/// booked as decided.
pub fn first_approved(
    company: &CompanyId,
    counterparty: &str,
    payee: &str,
    since: Timestamp,
) -> Question<Option<Timestamp>> {
    let sql = "select min(a.settled_at) as first from precedent p \
               join operation o on o.id = p.operation \
               join attempt a on a.operation = p.operation and a.state = 'booked' \
               where p.company = $1 and p.counterparty = $2 and p.payee = $3 \
               and p.claimed_at >= $4 and p.level >= 1 and o.status = 'executed' \
               and o.reasons not like $5";
    let otherwise = format!("%\"{}\"%", Reason::BookedOtherwise.code());
    let args = [
        company.as_str().into(),
        counterparty.into(),
        payee.into(),
        since.into(),
        otherwise.into(),
    ];
    Question::one(sql, args, |row| Ok(row.opt_int("first")?.map(Timestamp::from_millis)))
}

/// Whether an operation of that action for that counterparty is live.
pub fn is_under_way(company: &CompanyId, counterparty: &str, action: &str) -> Question<bool> {
    let sql = "select count(*) as found from operation where company = $1 and counterparty = $2 \
               and action = $3 and status in ('pending', 'executing', 'unknown')";
    Question::any(sql, [company.as_str().into(), counterparty.into(), action.into()])
}

/// Whether an operation of that action for that counterparty is at the ERP, or may be.
pub fn executes(company: &CompanyId, counterparty: &str, action: &str) -> Question<bool> {
    let sql = "select count(*) as found from operation where company = $1 and counterparty = $2 \
               and action = $3 and status in ('executing', 'unknown')";
    Question::any(sql, [company.as_str().into(), counterparty.into(), action.into()])
}

fn from_row(row: &Row) -> Result<Alike, StoreError> {
    let currency = Currency::from_code(&row.text("currency")?)
        .map_err(|_fault| row.inconsistent("currency", "cannot be read"))?;
    let dated = row
        .opt_text("dated")?
        .map(|text| text.parse().map_err(|_fault| row.inconsistent("dated", "cannot be read")));
    let key = row.opt_text("reference_by_part")?.zip(row.opt_text("reference_as_one")?);
    Ok(Alike {
        thing: row.text("thing")?,
        reference: key.map(|(by_part, as_one)| ReferenceKey::from_kept(by_part, as_one)),
        total: Amount::from_minor(row.int("total_minor")?, currency),
        dated: dated.transpose()?,
    })
}
