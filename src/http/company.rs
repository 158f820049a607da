//! Which company a human's call is about, and whether he may make it there (API 4).

use axum::http::Uri;
use countersign_erp_source::CompanyId;

use super::call::Field;
use super::caller::Anyone;
use super::code::Code;
use super::fields::invalid;
use super::forms;
use super::problem::Problem;
use super::query::Params;
use crate::ap::reading::Eyes;
use crate::domain::role::Role;
use crate::gateway::sessions::Human;

/// The parameter that names the company. No agent has it: his mandate names his.
pub(super) const COMPANY: Field = Field::may("company", forms::company);

/// A call about one company, with what stands in its address.
#[derive(Debug)]
pub(super) struct About {
    /// The company.
    pub(super) company: CompanyId,
    /// What the caller sees of it.
    pub(super) eyes: Eyes,
    /// The other parameters.
    pub(super) params: Params,
}

impl About {
    /// Reads the address of a call that agents and humans make.
    pub(super) fn read(caller: &Anyone, uri: &Uri, known: &[Field]) -> Result<Self, Problem> {
        match caller {
            Anyone::Agent(caller) => {
                let params = Params::read(uri, known)?;
                Ok(Self { company: caller.mandate.company.clone(), eyes: Eyes::Agent, params })
            }
            Anyone::Human(human) => Self::by_human(human, uri, known),
        }
    }

    /// Reads the address of a call that only humans make.
    pub(super) fn by_human(human: &Human, uri: &Uri, known: &[Field]) -> Result<Self, Problem> {
        let params = Params::read(uri, &[known, &[COMPANY]].concat())?;
        let company = company_of(human, params.text(COMPANY.name))?;
        Ok(Self { company, eyes: Eyes::Human, params })
    }
}

/// The company of a human's call whose body may name it instead of the address.
pub(super) fn company_in_body(
    human: &Human,
    uri: &Uri,
    named: Option<&str>,
) -> Result<CompanyId, Problem> {
    let params = Params::read(uri, &[COMPANY])?;
    match (named, params.text(COMPANY.name)) {
        (Some(named), Some(asked)) if named != asked => {
            Err(invalid("company", "another one than in the address"))
        }
        (named, asked) => company_of(human, named.or(asked)),
    }
}

/// The company of a call that names no operation, alarm, freeze, mandate or receipt by id: the one
/// that is asked for, or the human's only one.
///
/// INVARIANT (I8): a company in which he holds no role is as good as none.
fn company_of(human: &Human, asked: Option<&str>) -> Result<CompanyId, Problem> {
    let Some(asked) = asked else {
        let mut companies = human.companies();
        return match (companies.next(), companies.next()) {
            (Some(only), None) => Ok(only.clone()),
            (Some(_), Some(_)) => {
                let detail = "you hold roles in several companies: name one with `?company=`";
                Err(Problem::new(Code::COMPANY_REQUIRED, detail))
            }
            (None, _) => Err(Problem::not_found()),
        };
    };
    let found = CompanyId::new(asked).ok().filter(|company| human.belongs_to(company));
    found.ok_or_else(Problem::not_found)
}

/// Refuses a human who does not hold that role there.
pub(super) fn requires(human: &Human, company: &CompanyId, role: Role) -> Result<(), Problem> {
    if human.holds(company, role) {
        return Ok(());
    }
    Err(match role {
        Role::Accountant => {
            Problem::new(Code::NOT_AN_ACCOUNTANT, "this takes an accountant of the company")
        }
        Role::Approver => {
            Problem::new(Code::NOT_AN_APPROVER, "this takes an approver of the company")
        }
        Role::Admin => Problem::new(Code::NOT_AN_ADMIN, "this takes an admin of the company"),
        Role::Auditor => Problem::new(Code::NOT_AN_AUDITOR, "this takes an auditor of the company"),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use uuid::Uuid;

    use super::*;
    use crate::domain::names::{Name, SessionId};

    fn human(companies: &[&str]) -> Human {
        let role = |name: &&str| (CompanyId::new(*name).unwrap(), BTreeSet::from([Role::Admin]));
        let roles = companies.iter().map(role).collect();
        Human::new(SessionId::from_uuid(Uuid::nil()), Name::parse("marie").unwrap(), roles)
    }

    #[track_caller]
    fn check(companies: &[&str], asked: Option<&str>, expected: Result<&str, &Problem>) {
        let found = company_of(&human(companies), asked);
        assert_eq!(found.as_ref().map(CompanyId::as_str), expected, "{companies:?} {asked:?}");
    }

    #[test]
    fn the_company_is_named_by_who_has_several() {
        let unknown = Problem::not_found();
        check(&["a"], None, Ok("a"));
        check(&["a"], Some("a"), Ok("a"));
        check(&["a", "b"], Some("b"), Ok("b"));
        check(&["a", "b"], Some("c"), Err(&unknown));
        check(&["a"], Some("b"), Err(&unknown));
        check(&["a"], Some(""), Err(&unknown));
        check(&[], None, Err(&unknown));
        let detail = "you hold roles in several companies: name one with `?company=`";
        let required = Problem::new(Code::COMPANY_REQUIRED, detail);
        check(&["a", "b"], None, Err(&required));
    }

    #[test]
    fn a_role_is_of_its_company() {
        let (marie, a) = (human(&["a"]), CompanyId::new("a").unwrap());
        assert_eq!(requires(&marie, &a, Role::Admin), Ok(()));
        for role in [Role::Accountant, Role::Approver, Role::Auditor] {
            assert!(requires(&marie, &a, role).is_err(), "{role:?}");
        }
        assert!(requires(&marie, &CompanyId::new("b").unwrap(), Role::Admin).is_err());
    }
}
