//! Stage `policy`: at which approval level do the policies permit? The only place that knows Cedar.
//!
//! It knows neither where facts come from nor what they mean: the schema in the policy directory
//! says which ones an action wants. It knows no vote and no floor either; the floor stands below
//! it, so that no policy text opens what must stay shut.

use std::collections::BTreeMap;

use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Request, RestrictedExpression,
    Schema,
};

use crate::domain::decision::{Effect, Level};
use crate::domain::facts::Facts;

use self::vocabulary::{APPROVAL_LEVEL, ActionWords};

mod defaults;
mod load;
mod vocabulary;

#[cfg(test)]
mod cases;
#[cfg(test)]
mod properties;

pub use self::load::PolicyError;

/// The reason where no rule forbids and none permits. No policy may take this id.
pub const NO_PERMIT: &str = "no-permit";

/// The policies of one directory: parsed once, validated, and asked by everyone.
pub struct Policies {
    schema: Schema,
    set: PolicySet,
    /// What Cedar knows of besides the request: the schema's groups of actions.
    entities: Entities,
    actions: BTreeMap<String, ActionWords>,
    /// Policy id to its `@reason`.
    reasons: BTreeMap<String, String>,
    digest: String,
}

/// Who proposes what, and what the gateway found out about it.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRequest<'a> {
    /// The action, `invoice.pay`.
    pub action: &'a str,
    /// The human that granted the mandate, or acts for himself.
    pub principal: &'a str,
    /// The caller that acts under a mandate.
    pub agent: Option<&'a str>,
    /// The company whose money it is.
    pub company: &'a str,
    /// The facts. Those that the schema does not want are left out.
    pub facts: &'a Facts,
    /// The configured cooling-off in whole days, rounded down; the fact `in_cooling_off` is exact.
    pub cooling_off_days: i64,
}

/// What the policies say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDecision {
    /// The smallest level that is permitted, or a denial.
    pub effect: Effect,
    /// Policy ids, ascending: for a denial the forbids that applied, for a level above none the
    /// rules that barred the level below, for an allow the permits. [`NO_PERMIT`] where there is
    /// no such rule.
    pub reasons: Vec<String>,
}

/// Why the policies could not be asked, or could not answer. Never an allow. Names only: no value
/// of a fact is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyFailure {
    /// No policy could ever permit it.
    #[error("the policy schema has no action `{0}`")]
    UnknownAction(String),
    /// A part of the caller's name that is empty or would read as two.
    #[error("company, principal and agent must not be empty or contain `/`")]
    CallerName,
    /// Facts that the schema wants and that are absent, ascending.
    #[error("no fact {}", in_backticks(.0))]
    MissingFacts(Vec<String>),
    /// Facts of another kind than the schema says, below zero, or with an unknown word, ascending.
    #[error("the policy schema does not allow the value of {}", in_backticks(.0))]
    UnfitFacts(Vec<String>),
    /// The request does not fit the schema. Cedar's own text repeats values, so it goes to no one.
    #[error("the request does not fit the policy schema")]
    Request,
    /// Policies that did not evaluate, ascending. Cedar leaves them out, and a forbid that is left
    /// out is an open door.
    #[error("evaluating {} failed", in_backticks(.policies))]
    Evaluation {
        /// Their ids.
        policies: Vec<String>,
    },
}

impl Policies {
    /// At which level the policies permit.
    ///
    /// The highest level is asked first: what is denied there is denied, whatever a policy that
    /// reads levels the wrong way round says about the lower ones.
    pub fn decide(&self, request: &PolicyRequest<'_>) -> Result<PolicyDecision, PolicyFailure> {
        let question = self.question(request)?;
        let with_four_eyes = self.ask(&question, Level::FourEyes)?;
        if !with_four_eyes.permitted {
            return Ok(PolicyDecision { effect: Effect::Deny, reasons: with_four_eyes.rules });
        }
        let with_nobody = self.ask(&question, Level::None)?;
        if with_nobody.permitted {
            return Ok(PolicyDecision { effect: Effect::Allow, reasons: with_nobody.rules });
        }
        let with_step_up = self.ask(&question, Level::StepUp)?;
        Ok(if with_step_up.permitted {
            PolicyDecision { effect: Effect::StepUp, reasons: with_nobody.rules }
        } else {
            PolicyDecision { effect: Effect::FourEyes, reasons: with_step_up.rules }
        })
    }

    /// What a policy means, in a sentence for a finance person.
    pub fn reason_text(&self, id: &str) -> Option<&str> {
        self.reasons.get(id).map(String::as_str)
    }

    /// `sha256:<hex>` over the names and bytes of all files.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The ids of all policies, ascending.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.reasons.keys().map(String::as_str)
    }

    fn question(&self, request: &PolicyRequest<'_>) -> Result<Question, PolicyFailure> {
        let words = self
            .actions
            .get(request.action)
            .ok_or_else(|| PolicyFailure::UnknownAction(request.action.to_owned()))?;
        let mut caller = vec![request.company, request.principal];
        caller.extend(request.agent);
        if caller.iter().any(|part| part.is_empty() || part.contains('/')) {
            return Err(PolicyFailure::CallerName);
        }
        Ok(Question {
            principal: words.principal(request.agent.is_some(), &caller.join("/"))?,
            action: words.action(),
            resource: words.company(request.company),
            context: words.context(request.facts, request.cooling_off_days)?,
            reads_level: words.reads_level(),
        })
    }

    fn ask(&self, question: &Question, level: Level) -> Result<Answer, PolicyFailure> {
        let response = Authorizer::new().is_authorized(
            &question.at(level, &self.schema)?,
            &self.set,
            &self.entities,
        );
        // INVARIANT: an error anywhere is no answer. Cedar skips a policy that fails, so the
        // decision beside it may rest on a forbid that was never evaluated.
        let failed = sorted(response.diagnostics().errors().map(|error| match error {
            cedar_policy::AuthorizationError::PolicyEvaluationError(failed) => failed.policy_id(),
        }));
        if !failed.is_empty() {
            return Err(PolicyFailure::Evaluation { policies: failed });
        }
        let mut rules = sorted(response.diagnostics().reason());
        if rules.is_empty() {
            rules.push(NO_PERMIT.to_owned());
        }
        Ok(Answer { permitted: response.decision() == Decision::Allow, rules })
    }
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policies")
            .field("digest", &self.digest)
            .field("ids", &self.reasons.keys())
            .finish_non_exhaustive()
    }
}

/// A request but for the level.
struct Question {
    principal: EntityUid,
    action: EntityUid,
    resource: EntityUid,
    context: Vec<(String, RestrictedExpression)>,
    reads_level: bool,
}

impl Question {
    fn at(&self, level: Level, schema: &Schema) -> Result<Request, PolicyFailure> {
        let mut pairs = self.context.clone();
        if self.reads_level {
            let number = RestrictedExpression::new_long(level.number());
            pairs.push((APPROVAL_LEVEL.to_owned(), number));
        }
        let context = Context::from_pairs(pairs).ok().ok_or(PolicyFailure::Request)?;
        let (principal, action, resource) =
            (self.principal.clone(), self.action.clone(), self.resource.clone());
        Request::new(principal, action, resource, context, Some(schema))
            .ok()
            .ok_or(PolicyFailure::Request)
    }
}

/// What Cedar said at one level, and by which rules.
struct Answer {
    permitted: bool,
    rules: Vec<String>,
}

fn sorted<'a>(ids: impl Iterator<Item = &'a cedar_policy::PolicyId>) -> Vec<String> {
    let mut ids: Vec<String> = ids.map(ToString::to_string).collect();
    ids.sort();
    ids.dedup();
    ids
}

fn in_backticks(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
