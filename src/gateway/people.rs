//! Humans and their roles: added by the operator or by admins, disabled at once with all
//! consequences. The one place for both ways in, so that neither forgets one.
//!
//! What the operator does needs the store alone, so that it works where policies or ERP are broken.

use std::collections::BTreeSet;

use countersign_erp_source::{CompanyId, Timestamp};
use serde_json::{Value, json};

use super::passwords::{NewPassword, PasswordError};
use super::proposals::end_waiting;
use super::sessions::Human;
use super::{Gateway, Stored, mandates};
use crate::domain::names::Name;
use crate::domain::operation::Status;
use crate::domain::role::Role;
use crate::receipts::{Receipt, ReceiptKind};
use crate::store::{Store, StoreError, Unit, callbacks, operations, people, sessions, votes};

/// Who receipts say did what no human of the installation did.
const RESERVED: [&str; 3] = [OPERATOR, "countersign", "serve"];
const OPERATOR: &str = "operator";

/// Who does something to people or mandates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// Whoever works on the command line of the host.
    Operator,
    /// A signed-in human.
    Human(Name),
}

impl By {
    /// As receipts say it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Operator => OPERATOR,
            Self::Human(name) => name.as_str(),
        }
    }
}

/// A human as an admin of one company sees him.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The name.
    pub name: Name,
    /// The roles in that company; those in others are nobody's business there.
    pub roles: BTreeSet<Role>,
    /// Whether he may act.
    pub active: bool,
}

/// A role for a human, who may be new.
#[derive(Debug, Clone)]
pub struct NewRole {
    /// The human.
    pub name: Name,
    /// The company.
    pub company: CompanyId,
    /// The role.
    pub role: Role,
}

/// Why nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum PeopleError {
    /// Whoever asks is no active admin of the company.
    #[error("this takes an admin of the company")]
    NotAnAdmin,
    /// An admin for himself.
    #[error("nobody gives a role to himself")]
    SelfGrant,
    /// No such human in the company.
    #[error("there is no such user to change")]
    NotFound,
    /// A password for somebody who has one.
    #[error("the user exists and keeps the password")]
    Exists,
    /// No password for somebody new.
    #[error("a new user needs a password")]
    PasswordMissing,
    /// The role is held already.
    #[error("the user holds this role already")]
    RoleHeld,
    /// A name that receipts use for something else.
    #[error("the name is reserved")]
    Reserved,
    /// He holds roles where whoever asks is no admin.
    #[error("the user holds roles in companies where you are no admin")]
    OperatorOnly,
    /// A company would be left without an admin.
    #[error("a company would be left without an admin")]
    LastAdmin,
    /// The password could not be used.
    #[error("the password could not be used")]
    Password(#[from] PasswordError),
    /// The store failed.
    #[error("the store did not answer")]
    Store(#[from] StoreError),
}

/// Adds a human with a role, or a role to one that is there.
///
/// # Errors
/// [`PeopleError`].
pub async fn add(
    store: &Store,
    new: NewRole,
    password_hash: Option<String>,
    by: By,
    now: Timestamp,
) -> Result<Person, PeopleError> {
    let written = store
        .write_or_undo(move |unit| {
            Box::pin(
                async move { add_within(unit, &new, password_hash.as_deref(), &by, now).await },
            )
        })
        .await?;
    written.map(|written| written.value)
}

/// Whether there is such a human.
///
/// # Errors
/// [`PeopleError::Store`].
pub async fn exists(store: &Store, name: &Name) -> Result<bool, PeopleError> {
    let name = name.clone();
    let found = store
        .read(move |conn| Box::pin(async move { people::find_password(conn, &name).await }))
        .await?;
    Ok(found.is_some())
}

/// Ends at once all that a human may do.
///
/// # Errors
/// [`PeopleError::NotFound`] if he is not there or was disabled before; the store's.
pub async fn disable(store: &Store, name: &Name, now: Timestamp) -> Result<(), PeopleError> {
    let name = name.clone();
    let written = store
        .write(move |unit| {
            Box::pin(async move { disable_within(unit, &name, &By::Operator, now).await })
        })
        .await?;
    if written.value { Ok(()) } else { Err(PeopleError::NotFound) }
}

/// Lets a disabled human act again. What ended with his disabling stays ended.
///
/// # Errors
/// [`PeopleError::NotFound`] if he is not there or not disabled; the store's.
pub async fn enable(store: &Store, name: &Name, now: Timestamp) -> Result<(), PeopleError> {
    let name = name.clone();
    let written = store
        .write(move |unit| {
            Box::pin(async move {
                if !people::set_disabled(unit.conn(), &name, None).await? {
                    return Ok(false);
                }
                changed(unit, &name, &By::Operator, "enabled", json!({}), now).await?;
                Ok(true)
            })
        })
        .await?;
    if written.value { Ok(()) } else { Err(PeopleError::NotFound) }
}

/// Sets a human's password, which ends his sessions.
///
/// # Errors
/// [`PeopleError::NotFound`]; the store's.
pub async fn set_password(
    store: &Store,
    name: &Name,
    password_hash: String,
    now: Timestamp,
) -> Result<(), PeopleError> {
    let name = name.clone();
    let written = store
        .write(move |unit| {
            Box::pin(async move {
                if !people::set_password(unit.conn(), &name, &password_hash).await? {
                    return Ok(false);
                }
                let ended = sessions::end_all_of(unit.conn(), &name).await?;
                let data = json!({ "sessions_ended": ended });
                changed(unit, &name, &By::Operator, "password", data, now).await?;
                Ok(true)
            })
        })
        .await?;
    if written.value { Ok(()) } else { Err(PeopleError::NotFound) }
}

impl Gateway {
    /// The humans of a company after that name, ascending.
    ///
    /// # Errors
    /// [`PeopleError::Store`].
    pub async fn people_of(
        &self,
        company: &CompanyId,
        after: String,
        limit: u16,
    ) -> Result<Vec<Person>, PeopleError> {
        let (company, limit) = (company.clone(), i64::from(limit));
        let found = self.store().read(move |conn| {
            Box::pin(async move { people::people_of(conn, &company, &after, limit).await })
        });
        Ok(found.await?.into_iter().map(person).collect())
    }

    /// Gives a human a role, for an admin. A password makes a new human, and only a new one.
    ///
    /// # Errors
    /// [`PeopleError`].
    pub async fn add_person(
        &self,
        admin: &Human,
        new: NewRole,
        password: Option<NewPassword>,
    ) -> Result<Person, PeopleError> {
        // Before the costly hash; what he holds at the end is looked at again.
        if !admin.holds(&new.company, Role::Admin) {
            return Err(PeopleError::NotAnAdmin);
        }
        let hash = match password {
            None => None,
            // Whoever is there keeps his password.
            Some(_) if exists(self.store(), &new.name).await? => return Err(PeopleError::Exists),
            Some(password) => Some(self.0.hashing.hash(password).await?),
        };
        add(self.store(), new, hash, By::Human(admin.name().clone()), self.now()).await
    }

    /// Disables a human of the company, for an admin who is one wherever that human holds a role.
    /// Twice is once.
    ///
    /// # Errors
    /// [`PeopleError`].
    pub async fn disable_person(
        &self,
        admin: &Human,
        company: &CompanyId,
        name: &Name,
    ) -> Result<Person, PeopleError> {
        let (admin, company, name) = (admin.name().clone(), company.clone(), name.clone());
        let now = self.now();
        let written = self
            .store()
            .write_or_undo(move |unit| {
                Box::pin(async move { disable_for(unit, &admin, &company, &name, now).await })
            })
            .await?;
        self.0.changed.notify_waiters();
        written.map(|written| written.value)
    }
}

fn person(found: people::Member) -> Person {
    Person { name: found.name, roles: found.roles, active: found.active }
}

async fn add_within(
    unit: &mut Unit<'_>,
    new: &NewRole,
    password_hash: Option<&str>,
    by: &By,
    now: Timestamp,
) -> Stored<Result<Person, PeopleError>> {
    let NewRole { name, company, role } = new;
    if let By::Human(admin) = by {
        // What held when he was let in may not hold any more.
        if !unit.conn().ask(people::holds_role(admin, company, Role::Admin)).await? {
            return Ok(Err(PeopleError::NotAnAdmin));
        }
        if admin == name {
            return Ok(Err(PeopleError::SelfGrant));
        }
    }
    let there = people::find_password(unit.conn(), name).await?.is_some();
    if there
        && password_hash.is_none()
        && let By::Human(admin) = by
    {
        // INVARIANT (I8): no company takes hold of another's people. Who belongs to companies of
        // which the admin is none joins another one by the operator's hand only.
        let companies = people::companies_of(unit.conn(), name).await?;
        for other in companies.iter().filter(|_| !companies.contains(company)) {
            if !unit.conn().ask(people::holds_role(admin, other, Role::Admin)).await? {
                return Ok(Err(PeopleError::OperatorOnly));
            }
        }
    }
    if !there && people::is_spelt_otherwise(unit.conn(), name).await? {
        return Ok(Err(PeopleError::Exists));
    }
    let new_human = match (there, password_hash) {
        (true, Some(_)) => return Ok(Err(PeopleError::Exists)),
        (true, None) => false,
        (false, None) => return Ok(Err(PeopleError::PasswordMissing)),
        (false, Some(_)) if RESERVED.contains(&name.as_str()) => {
            return Ok(Err(PeopleError::Reserved));
        }
        (false, Some(hash)) => {
            people::insert(unit.conn(), name, hash, now).await?;
            true
        }
    };
    if !people::add_role(unit.conn(), name, company, *role).await? {
        return Ok(Err(PeopleError::RoleHeld));
    }
    unit.receipt(Receipt {
        kind: ReceiptKind::UserAdded,
        at: now,
        company: Some(company.to_string()),
        operation: None,
        data: json!({
            "by": by.as_str(), "new": new_human, "role": role.code(), "user": name.as_str(),
        }),
    })?;
    let found = people::find_member(unit.conn(), company, name).await?.map(person);
    let gone = || StoreError::inconsistent("person_role", "rows", "has no row that was written");
    Ok(Ok(found.ok_or_else(gone)?))
}

async fn disable_for(
    unit: &mut Unit<'_>,
    admin: &Name,
    company: &CompanyId,
    name: &Name,
    now: Timestamp,
) -> Stored<Result<Person, PeopleError>> {
    if !unit.conn().ask(people::holds_role(admin, company, Role::Admin)).await? {
        return Ok(Err(PeopleError::NotAnAdmin));
    }
    let Some(found) = people::find_member(unit.conn(), company, name).await? else {
        return Ok(Err(PeopleError::NotFound));
    };
    for other in people::companies_of(unit.conn(), name).await? {
        if !unit.conn().ask(people::holds_role(admin, &other, Role::Admin)).await? {
            return Ok(Err(PeopleError::OperatorOnly));
        }
        // Whoever disables somebody else stays an admin there himself.
        let himself = admin == name;
        if himself && people::count_active(unit.conn(), &other, Role::Admin).await? <= 1 {
            return Ok(Err(PeopleError::LastAdmin));
        }
    }
    disable_within(unit, name, &By::Human(admin.clone()), now).await?;
    Ok(Ok(Person { active: false, ..person(found) }))
}

/// Disables a human within a unit of work: whoever may act no more has no session, no mandate that
/// he granted is in force with what waits under it, and no vote of his counts. `false` if he is not
/// there or was disabled before.
async fn disable_within(unit: &mut Unit<'_>, name: &Name, by: &By, now: Timestamp) -> Stored<bool> {
    if !people::set_disabled(unit.conn(), name, Some(now)).await? {
        return Ok(false);
    }
    let sessions_ended = sessions::end_all_of(unit.conn(), name).await?;
    let granted = people::mandates_granted_by(unit.conn(), name).await?;
    for mandate in &granted {
        let because = "its principal was disabled";
        mandates::revoke_within(unit, &mandate.id, because, by.as_str(), now).await?;
    }
    let votes_voided = votes::void_of(unit.conn(), name, "the human was disabled", now).await?;
    let because = "the human was disabled";
    let callbacks_voided = callbacks::void_by(unit.conn(), name, because, now).await?;
    for begun in operations::own_waiting(unit.conn(), name).await? {
        end_waiting(unit, &begun, Status::Cancelled, because, now).await?;
    }
    let data = json!({
        "callbacks_voided": callbacks_voided, "mandates_revoked": granted.len(),
        "sessions_ended": sessions_ended, "votes_voided": votes_voided,
    });
    changed(unit, name, by, "disabled", data, now).await?;
    Ok(true)
}

/// Leaves a receipt about a human in each of his companies, for the auditors of each.
async fn changed(
    unit: &mut Unit<'_>,
    name: &Name,
    by: &By,
    change: &str,
    mut data: Value,
    now: Timestamp,
) -> Stored<()> {
    if let Some(members) = data.as_object_mut() {
        members.insert("by".to_owned(), by.as_str().into());
        members.insert("change".to_owned(), change.into());
        members.insert("user".to_owned(), name.as_str().into());
    }
    for company in people::companies_of(unit.conn(), name).await? {
        unit.receipt(Receipt {
            kind: ReceiptKind::UserChanged,
            at: now,
            company: Some(company.to_string()),
            operation: None,
            data: data.clone(),
        })?;
    }
    Ok(())
}
