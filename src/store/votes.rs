//! Votes in the store. A vote is cast, then spent by the claim that it permitted, or void; none is
//! ever taken back to life.

use countersign_erp_source::{CompanyId, Timestamp};

use super::freezes::FreezeScope;
use super::{Conn, Question, Row, StoreError};
use crate::domain::decision::Level;
use crate::domain::names::{Name, OperationId, VoteId};
use crate::domain::vote::{Standing, Vote};

/// A vote as it is cast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVote {
    /// Its id.
    pub id: VoteId,
    /// For which operation.
    pub operation: OperationId,
    /// For exactly this hash.
    pub hash: String,
    /// At which level.
    pub level: Level,
    /// Who.
    pub voter: Name,
    /// When.
    pub cast_at: Timestamp,
    /// Until when it counts.
    pub expires_at: Timestamp,
}

/// Writes a vote. `false` if this human's vote for this hash stands already.
pub async fn cast(conn: &mut Conn<'_>, vote: &NewVote) -> Result<bool, StoreError> {
    let sql = "insert into vote (id, operation, operation_hash, level, voter, cast_at, expires_at, \
               state) values ($1, $2, $3, $4, $5, $6, $7, 'cast') on conflict do nothing";
    let args = [
        vote.id.as_str().into(),
        vote.operation.as_str().into(),
        vote.hash.as_str().into(),
        vote.level.number().into(),
        vote.voter.as_str().into(),
        vote.cast_at.as_millis().into(),
        vote.expires_at.as_millis().into(),
    ];
    Ok(conn.execute(sql, &args).await? == 1)
}

/// The votes of that operation that are not void, with what their humans are now.
pub fn standing(operation: &OperationId) -> Question<Vec<Vote>> {
    let sql = "select vote.voter, vote.operation_hash, vote.expires_at, \
               case when person.disabled_at is null and exists (select 1 from person_role \
               where person_role.person = vote.voter and person_role.company = operation.company \
               and person_role.role = 'accountant') then 1 else 0 end as is_accountant, \
               case when person.disabled_at is null and exists (select 1 from person_role \
               where person_role.person = vote.voter and person_role.company = operation.company \
               and person_role.role = 'approver') then 1 else 0 end as is_approver \
               from vote join operation on operation.id = vote.operation \
               join person on person.name = vote.voter \
               where vote.operation = $1 and vote.state in ('cast', 'spent') order by vote.id";
    Question::all(sql, [operation.as_str().into()], from_row)
}

/// Who approved which of the operations that did something to a vendor's details.
pub fn approvers_about(company: &CompanyId, vendor: &str) -> Question<Vec<(String, String)>> {
    let sql = "select operation, voter from vote where state = 'spent' and operation in \
               (select operation from baseline_event where company = $1 and vendor = $2 \
               and operation is not null) order by id";
    let args = [company.as_str().into(), vendor.into()];
    Question::all(sql, args, |row| Ok((row.text("operation")?, row.text("voter")?)))
}

/// Marks the operation's votes for that hash as spent, and all others of it as void.
pub async fn spend(
    conn: &mut Conn<'_>,
    operation: &OperationId,
    hash: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "update vote set state = case when operation_hash = $1 then 'spent' else 'void' end, \
               ended_at = $2, ended_because = 'the operation was claimed' \
               where operation = $3 and state = 'cast'";
    let args = [hash.into(), at.as_millis().into(), operation.as_str().into()];
    conn.execute(sql, &args).await.map(drop)
}

/// Voids all votes of an operation, spent ones too: what they were for is no more.
pub async fn void(
    conn: &mut Conn<'_>,
    operation: &OperationId,
    because: &str,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let sql = "update vote set state = 'void', ended_at = $1, ended_because = $2 \
               where operation = $3 and state in ('cast', 'spent')";
    let args = [at.as_millis().into(), because.into(), operation.as_str().into()];
    conn.execute(sql, &args).await
}

/// Voids the unspent votes of a human.
pub async fn void_of(
    conn: &mut Conn<'_>,
    voter: &Name,
    because: &str,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let sql = "update vote set state = 'void', ended_at = $1, ended_because = $2 \
               where voter = $3 and state = 'cast'";
    let args = [at.as_millis().into(), because.into(), voter.as_str().into()];
    conn.execute(sql, &args).await
}

/// Voids the unspent votes for everything that a freeze stops.
pub async fn void_in(
    conn: &mut Conn<'_>,
    scope: &FreezeScope,
    because: &str,
    at: Timestamp,
) -> Result<u64, StoreError> {
    let (company, counterparty) = scope.parts();
    let sql = "update vote set state = 'void', ended_at = $1, ended_because = $2 \
               where state = 'cast' and exists (select 1 from operation \
               where operation.id = vote.operation \
               and ($3 = '' or operation.company = $3) \
               and ($4 = '' or operation.counterparty = $4))";
    let args = [
        at.as_millis().into(),
        because.into(),
        company.unwrap_or_default().into(),
        counterparty.unwrap_or_default().into(),
    ];
    conn.execute(sql, &args).await
}

fn from_row(row: &Row) -> Result<Vote, StoreError> {
    Ok(Vote {
        voter: Name::parse(&row.text("voter")?)
            .map_err(|_fault| row.inconsistent("voter", "cannot be read"))?,
        standing: Standing {
            is_accountant: row.flag("is_accountant")?,
            is_approver: row.flag("is_approver")?,
        },
        hash: row.text("operation_hash")?,
        expires_at: Timestamp::from_millis(row.int("expires_at")?),
    })
}

/// Whether that human ever voted for the operation, whatever became of the vote.
pub async fn voted_for(
    conn: &mut Conn<'_>,
    operation: &OperationId,
    voter: &Name,
) -> Result<bool, StoreError> {
    let sql = "select count(*) as found from vote where operation = $1 and voter = $2";
    let args = [operation.as_str().into(), voter.as_str().into()];
    Ok(conn.fetch_one(sql, &args).await?.int("found")? > 0)
}
