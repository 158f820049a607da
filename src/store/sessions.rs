//! Sessions of signed-in humans. A token is kept by its digest only.

use std::collections::{BTreeMap, BTreeSet};

use countersign_erp_source::{CompanyId, Timestamp};

use super::{Conn, Question, Row, StoreError};
use crate::domain::names::{Name, SessionId};
use crate::domain::role::Role;

/// How many sessions whose time is over are forgotten at once.
const FORGOTTEN_AT_ONCE: i64 = 100;

/// The roles of a human in each of his companies.
pub type Roles = BTreeMap<CompanyId, BTreeSet<Role>>;

/// A session that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub person: Name,
    /// The roles that he holds now.
    pub roles: Roles,
}

/// Writes a new session.
pub async fn insert(
    conn: &mut Conn<'_>,
    id: &SessionId,
    token_digest: &str,
    person: &Name,
    created_at: Timestamp,
    expires_at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "insert into session (id, token_digest, person, created_at, expires_at) \
               values ($1, $2, $3, $4, $5)";
    let args = [
        id.as_str().into(),
        token_digest.into(),
        person.as_str().into(),
        created_at.into(),
        expires_at.into(),
    ];
    conn.execute_one(sql, &args).await
}

/// The session with that token, if its time is not over and its human may act.
pub fn find(token_digest: &str, now: Timestamp) -> Question<Option<Session>> {
    let sql = "select session.id, session.person, person_role.company, person_role.role \
               from session join person on person.name = session.person \
               left join person_role on person_role.person = person.name \
               where session.token_digest = $1 and session.expires_at > $2 \
               and person.disabled_at is null";
    Question::of(sql, [token_digest.into(), now.into()], |rows| session_of(&rows))
}

fn session_of(rows: &[Row]) -> Result<Option<Session>, StoreError> {
    let Some(first) = rows.first() else { return Ok(None) };
    let bad = |column: &str| first.inconsistent(column, "cannot be read");
    let mut roles = Roles::new();
    for row in rows {
        if let (Some(company), Some(role)) = (row.opt_text("company")?, row.opt_text("role")?) {
            let company = CompanyId::new(company).map_err(|_fault| bad("company"))?;
            let role = Role::from_code(&role).ok_or_else(|| bad("role"))?;
            roles.entry(company).or_default().insert(role);
        }
    }
    Ok(Some(Session {
        id: SessionId::parse(&first.text("id")?).map_err(|_fault| bad("id"))?,
        person: Name::parse(&first.text("person")?).map_err(|_fault| bad("person"))?,
        roles,
    }))
}

/// Ends a session. `false` if it had ended.
pub async fn end(conn: &mut Conn<'_>, id: &SessionId) -> Result<bool, StoreError> {
    Ok(conn.execute("delete from session where id = $1", &[id.as_str().into()]).await? == 1)
}

/// Ends all sessions of a human and says how many there were.
pub async fn end_all_of(conn: &mut Conn<'_>, person: &Name) -> Result<u64, StoreError> {
    conn.execute("delete from session where person = $1", &[person.as_str().into()]).await
}

/// Ends all sessions of a human but the newest.
pub async fn keep_newest(conn: &mut Conn<'_>, person: &Name, most: i64) -> Result<(), StoreError> {
    let sql = "delete from session where person = $1 and id not in \
               (select id from session where person = $1 order by id desc limit $2)";
    conn.execute(sql, &[person.as_str().into(), most.into()]).await.map(drop)
}

/// Forgets sessions whose time is over; some of them, where they are many.
pub async fn forget_expired(conn: &mut Conn<'_>, now: Timestamp) -> Result<(), StoreError> {
    let sql = "delete from session where id in \
               (select id from session where expires_at <= $1 order by expires_at limit $2)";
    conn.execute(sql, &[now.into(), FORGOTTEN_AT_ONCE.into()]).await.map(drop)
}
