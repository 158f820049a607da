//! Humans with their roles, and the mandates that they grant.

use std::collections::BTreeSet;

use countersign_erp_source::{Amount, CompanyId, Currency, JournalId, Timestamp};

use super::{Conn, Question, Row, StoreError};
use crate::domain::mandate::Mandate;
use crate::domain::names::{MandateId, Name};
pub use crate::domain::role::Role;

/// A human with one role in one company; several rows for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonRole {
    /// The human.
    pub name: String,
    /// The company.
    pub company: String,
    /// The role.
    pub role: String,
    /// Whether the human may act.
    pub active: bool,
}

/// Writes a new human.
pub async fn insert(
    conn: &mut Conn<'_>,
    name: &Name,
    password_hash: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let sql = "insert into person (name, password_hash, created_at) values ($1, $2, $3)";
    conn.execute_one(sql, &[name.as_str().into(), password_hash.into(), now.into()]).await
}

/// Adds a role to a human who is there. `false` if he had it.
pub async fn add_role(
    conn: &mut Conn<'_>,
    name: &Name,
    company: &CompanyId,
    role: Role,
) -> Result<bool, StoreError> {
    let sql = "insert into person_role (person, company, role) values ($1, $2, $3) \
               on conflict (person, company, role) do nothing";
    let args = [name.as_str().into(), company.as_str().into(), role.code().into()];
    Ok(conn.execute(sql, &args).await? == 1)
}

/// The stored hash of a human's password.
pub async fn find_password(conn: &mut Conn<'_>, name: &Name) -> Result<Option<String>, StoreError> {
    let sql = "select password_hash from person where name = $1";
    let row = conn.fetch_optional(sql, &[name.as_str().into()]).await?;
    row.map(|row| row.text("password_hash")).transpose()
}

/// The stored hash of the password of a human who may act.
pub async fn find_active_password(
    conn: &mut Conn<'_>,
    name: &Name,
) -> Result<Option<String>, StoreError> {
    let sql = "select password_hash from person where name = $1 and disabled_at is null";
    let row = conn.fetch_optional(sql, &[name.as_str().into()]).await?;
    row.map(|row| row.text("password_hash")).transpose()
}

/// The companies in which a human holds a role.
pub async fn companies_of(conn: &mut Conn<'_>, name: &Name) -> Result<Vec<CompanyId>, StoreError> {
    let sql = "select distinct company from person_role where person = $1 order by company";
    let rows = conn.fetch_all(sql, &[name.as_str().into()]).await?;
    rows.iter()
        .map(|row| {
            let bad = |_fault| row.inconsistent("company", "cannot be read");
            CompanyId::new(row.text("company")?).map_err(bad)
        })
        .collect()
}

/// Whether there is a human whose name differs from that one by upper and lower case only.
pub async fn is_spelt_otherwise(conn: &mut Conn<'_>, name: &Name) -> Result<bool, StoreError> {
    let sql = "select count(*) as found from person where lower(name) = lower($1) and name <> $1";
    Ok(conn.fetch_one(sql, &[name.as_str().into()]).await?.int("found")? > 0)
}

/// Sets a human's password. `false` if there is no such human.
pub async fn set_password(
    conn: &mut Conn<'_>,
    name: &Name,
    password_hash: &str,
) -> Result<bool, StoreError> {
    let sql = "update person set password_hash = $1 where name = $2";
    Ok(conn.execute(sql, &[password_hash.into(), name.as_str().into()]).await? == 1)
}

/// Disables a human, or lets one act again. `false` if that changes nothing.
pub async fn set_disabled(
    conn: &mut Conn<'_>,
    name: &Name,
    disabled_at: Option<Timestamp>,
) -> Result<bool, StoreError> {
    let at = disabled_at.map(Timestamp::as_millis);
    let sql = if at.is_some() {
        "update person set disabled_at = $1 where name = $2 and disabled_at is null"
    } else {
        "update person set disabled_at = $1 where name = $2 and disabled_at is not null"
    };
    Ok(conn.execute(sql, &[at.into(), name.as_str().into()]).await? == 1)
}

/// All humans with their roles, by name.
pub async fn list(conn: &mut Conn<'_>) -> Result<Vec<PersonRole>, StoreError> {
    let sql = "select person.name, person_role.company, person_role.role, \
               case when person.disabled_at is null then 1 else 0 end as active \
               from person join person_role on person_role.person = person.name \
               order by person.name, person_role.company, person_role.role";
    let rows = conn.fetch_all(sql, &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(PersonRole {
                name: row.text("name")?,
                company: row.text("company")?,
                role: row.text("role")?,
                active: row.int("active")? == 1,
            })
        })
        .collect()
}

/// A human of one company, with his roles there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The human.
    pub name: Name,
    /// The roles in that company.
    pub roles: BTreeSet<Role>,
    /// Whether the human may act.
    pub active: bool,
}

macro_rules! select_member {
    ($rest:literal) => {
        concat!(
            "select person.name, person_role.role, ",
            "case when person.disabled_at is null then 1 else 0 end as active ",
            "from person_role join person on person.name = person_role.person ",
            "where person_role.company = $1 and ",
            $rest
        )
    };
}

/// The human of that name in that company.
pub async fn find_member(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    name: &Name,
) -> Result<Option<Member>, StoreError> {
    let sql = select_member!("person_role.person = $2");
    let rows = conn.fetch_all(sql, &[company.as_str().into(), name.as_str().into()]).await?;
    Ok(members(&rows)?.pop())
}

/// The humans of a company after that name, ascending.
pub async fn people_of(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    after: &str,
    limit: i64,
) -> Result<Vec<Member>, StoreError> {
    let sql = select_member!(
        "person_role.person in (select distinct person from person_role \
         where company = $1 and person > $2 order by person limit $3) \
         order by person_role.person, person_role.role"
    );
    let rows = conn.fetch_all(sql, &[company.as_str().into(), after.into(), limit.into()]).await?;
    members(&rows)
}

/// Puts the rows of one human together; those follow one another.
fn members(rows: &[Row]) -> Result<Vec<Member>, StoreError> {
    let mut all: Vec<Member> = Vec::new();
    for row in rows {
        let bad = |column: &str| row.inconsistent(column, "cannot be read");
        let name = Name::parse(&row.text("name")?).map_err(|_fault| bad("name"))?;
        let role = Role::from_code(&row.text("role")?).ok_or_else(|| bad("role"))?;
        let active = row.flag("active")?;
        match all.last_mut().filter(|last| last.name == name) {
            Some(last) => {
                last.roles.insert(role);
            }
            None => all.push(Member { name, roles: BTreeSet::from([role]), active }),
        }
    }
    Ok(all)
}

/// How many active humans hold that role in that company.
pub async fn count_active(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    role: Role,
) -> Result<i64, StoreError> {
    let sql = "select count(*) as found from person_role join person \
               on person.name = person_role.person where person_role.company = $1 \
               and person_role.role = $2 and person.disabled_at is null";
    let args = [company.as_str().into(), role.code().into()];
    conn.fetch_one(sql, &args).await?.int("found")
}

/// Whether that human is active and has that role in that company.
pub fn holds_role(name: &Name, company: &CompanyId, role: Role) -> Question<bool> {
    let sql = "select count(*) as found from person join person_role \
               on person_role.person = person.name where person.name = $1 \
               and person_role.company = $2 and person_role.role = $3 \
               and person.disabled_at is null";
    Question::any(sql, [name.as_str().into(), company.as_str().into(), role.code().into()])
}

/// The roles of that human in that company; none if the human may not act.
pub async fn roles(
    conn: &mut Conn<'_>,
    name: &Name,
    company: &CompanyId,
) -> Result<BTreeSet<Role>, StoreError> {
    let sql = "select person_role.role from person join person_role \
               on person_role.person = person.name where person.name = $1 \
               and person_role.company = $2 and person.disabled_at is null";
    let rows = conn.fetch_all(sql, &[name.as_str().into(), company.as_str().into()]).await?;
    rows.iter()
        .map(|row| {
            let role = Role::from_code(&row.text("role")?);
            role.ok_or_else(|| row.inconsistent("role", "cannot be read"))
        })
        .collect()
}

macro_rules! select_mandate {
    ($rest:literal) => {
        select_mandate!("", $rest)
    };
    ($more:literal, $rest:literal) => {
        concat!(
            "select id, company, principal, agent, scopes, journal, source_fingerprint, currency, ",
            "budget_minor, calls_max, token_digest, issued_at, expires_at, revoked_at",
            $more,
            " from mandate ",
            $rest
        )
    };
}

/// Writes a new mandate with the digest of its token.
pub async fn insert_mandate(
    conn: &mut Conn<'_>,
    mandate: &Mandate,
    token_digest: &str,
) -> Result<(), StoreError> {
    let sql = "insert into mandate (id, company, principal, agent, scopes, journal, \
               source_fingerprint, currency, budget_minor, calls_max, token_digest, issued_at, \
               expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    let scopes: Vec<&str> = mandate.scopes.iter().map(String::as_str).collect();
    let args = [
        mandate.id.as_str().into(),
        mandate.company.as_str().into(),
        mandate.principal.as_str().into(),
        mandate.agent.as_str().into(),
        scopes.join(" ").into(),
        mandate.journal.as_str().into(),
        mandate.source_fingerprint.as_str().into(),
        mandate.currency.code().into(),
        mandate.budget.map(Amount::minor).into(),
        mandate.calls_max.into(),
        token_digest.into(),
        mandate.issued_at.as_millis().into(),
        mandate.expires_at.as_millis().into(),
    ];
    conn.execute_one(sql, &args).await
}

/// A mandate with the digest of its token.
pub fn find_mandate(id: &MandateId) -> Question<Option<(Mandate, String)>> {
    Question::optional(select_mandate!("where id = $1"), [id.as_str().into()], |row| {
        Ok((mandate_from_row(row)?, row.text("token_digest")?))
    })
}

/// A mandate as it stands.
#[derive(Debug, Clone)]
pub struct Granted {
    /// The mandate.
    pub mandate: Mandate,
    /// The digest of its token.
    pub token_digest: String,
    /// Whether its principal is an active accountant of its company.
    pub principal_active: bool,
}

/// A mandate as it stands.
pub fn granted(id: &MandateId) -> Question<Option<Granted>> {
    let sql = select_mandate!(
        ", case when exists (select 1 from person join person_role \
         on person_role.person = person.name where person.name = mandate.principal \
         and person_role.company = mandate.company and person_role.role = 'accountant' \
         and person.disabled_at is null) then 1 else 0 end as principal_active",
        "where id = $1"
    );
    Question::optional(sql, [id.as_str().into()], |row| {
        Ok(Granted {
            mandate: mandate_from_row(row)?,
            token_digest: row.text("token_digest")?,
            principal_active: row.flag("principal_active")?,
        })
    })
}

/// All mandates, the oldest first.
pub async fn list_mandates(conn: &mut Conn<'_>) -> Result<Vec<Mandate>, StoreError> {
    let rows = conn.fetch_all(select_mandate!("order by id"), &[]).await?;
    rows.iter().map(mandate_from_row).collect()
}

/// The mandates of a company after that id, ascending; of one principal where one is given.
pub async fn mandates_of(
    conn: &mut Conn<'_>,
    company: &CompanyId,
    principal: Option<&Name>,
    after: &str,
    limit: i64,
) -> Result<Vec<Mandate>, StoreError> {
    let sql = select_mandate!(
        "where company = $1 and id > $2 and ($3 = '' or principal = $3) order by id limit $4"
    );
    let args = [
        company.as_str().into(),
        after.into(),
        principal.map_or("", Name::as_str).into(),
        limit.into(),
    ];
    conn.fetch_all(sql, &args).await?.iter().map(mandate_from_row).collect()
}

/// The mandates of that principal that are not revoked.
pub async fn mandates_granted_by(
    conn: &mut Conn<'_>,
    principal: &Name,
) -> Result<Vec<Mandate>, StoreError> {
    let sql = select_mandate!("where principal = $1 and revoked_at is null order by id");
    let rows = conn.fetch_all(sql, &[principal.as_str().into()]).await?;
    rows.iter().map(mandate_from_row).collect()
}

/// Revokes a mandate. `false` if it is not there or was revoked before.
pub async fn revoke_mandate(
    conn: &mut Conn<'_>,
    id: &MandateId,
    because: &str,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let sql = "update mandate set revoked_at = $1, revoked_because = $2 \
               where id = $3 and revoked_at is null";
    let args = [at.as_millis().into(), because.into(), id.as_str().into()];
    Ok(conn.execute(sql, &args).await? == 1)
}

fn mandate_from_row(row: &Row) -> Result<Mandate, StoreError> {
    let bad = |column: &str| row.inconsistent(column, "cannot be read");
    let name = |column: &'static str| -> Result<Name, StoreError> {
        Name::parse(&row.text(column)?).map_err(|_fault| bad(column))
    };
    let currency = Currency::from_code(&row.text("currency")?).map_err(|_fault| bad("currency"))?;
    let scopes: BTreeSet<String> =
        row.text("scopes")?.split_whitespace().map(ToOwned::to_owned).collect();
    Ok(Mandate {
        id: MandateId::parse(&row.text("id")?).map_err(|_fault| bad("id"))?,
        company: CompanyId::new(row.text("company")?).map_err(|_fault| bad("company"))?,
        principal: name("principal")?,
        agent: name("agent")?,
        scopes,
        journal: JournalId::new(row.text("journal")?).map_err(|_fault| bad("journal"))?,
        source_fingerprint: row.text("source_fingerprint")?,
        currency,
        budget: row.opt_int("budget_minor")?.map(|minor| Amount::from_minor(minor, currency)),
        calls_max: row.opt_int("calls_max")?,
        issued_at: Timestamp::from_millis(row.int("issued_at")?),
        expires_at: Timestamp::from_millis(row.int("expires_at")?),
        revoked_at: row.opt_int("revoked_at")?.map(Timestamp::from_millis),
    })
}
