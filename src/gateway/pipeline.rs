//! One run of the pipeline: from a proposal to a verdict, through the stages in their order. It
//! runs at submission, at commit and once more after the claim; nothing is trusted from an earlier
//! run.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lc_rs::digest;
use serde::Serialize;

use super::contract::Terms;
use super::pack::{Case, Denial, Resolved};
use super::policy::{PolicyFailure, PolicyRequest};
use super::standing::{self, Standing};
use super::{Gateway, hex};
use crate::domain::decision::{Level, Stage};
use crate::domain::facts::{FactValue, Facts};
use crate::domain::mandate::Mandate;
use crate::domain::names::OperationId;
use crate::domain::operation::{KeptFact, Params, Substance};
use crate::domain::reason::Reason;

/// What one run came to.
#[derive(Debug, Clone)]
pub(super) struct Evaluated {
    /// What was resolved and found out, as far as it came.
    pub(super) substance: Substance,
    /// The resolved case, where it came that far.
    pub(super) case: Option<Arc<dyn Case>>,
    /// The digest of the policy text, where policy was asked.
    pub(super) policy: Option<String>,
    /// The canonical text that the operation hash is made of, so that auditors can make it again.
    pub(super) hashed: Option<String>,
    /// Permitted at a level, or denied.
    pub(super) verdict: Result<Permitted, Denial>,
}

/// What the policy permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Permitted {
    /// The smallest level that permits.
    pub(super) level: Level,
    /// For a level above none the rules that barred the one below, else the permits.
    pub(super) reasons: Vec<String>,
}

/// What is to be decided about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) operation: &'a OperationId,
    pub(super) action: &'a str,
    pub(super) args: &'a str,
    pub(super) mandate: &'a Mandate,
}

impl Gateway {
    /// Runs the stages from `contract` to `policy`.
    pub(super) async fn evaluate(&self, subject: Subject<'_>) -> Evaluated {
        let mut run = Evaluated {
            substance: Substance::default(),
            case: None,
            policy: None,
            hashed: None,
            verdict: Err(Denial::new(Stage::Error, Reason::PolicyFailed)),
        };
        run.verdict = self.stages(subject, &mut run).await;
        run
    }

    async fn stages(&self, subject: Subject<'_>, run: &mut Evaluated) -> Result<Permitted, Denial> {
        let pack = self
            .pack_of(subject.action)
            .ok_or_else(|| Denial::new(Stage::Contract, Reason::UnknownAction))?;
        let terms = Terms::parse(subject.args, pack.arguments(subject.action))?;
        let case = pack.resolve(subject.action, &terms, subject.mandate).await?;
        let resolved = case.resolved();
        run.substance = Substance {
            thing: Some(resolved.thing.clone()),
            counterparty: Some(resolved.counterparty.clone()),
            amount: Some(resolved.amount),
            params: resolved.params.clone(),
            ..Substance::default()
        };
        run.case = Some(Arc::clone(&case));
        let standing = self.standing(subject, resolved).await?;
        standing.judge(subject.action, resolved)?;

        let facts = case.facts().await?;
        run.substance.facts = keep(&facts);
        let policies = self.policies();
        run.policy = Some(policies.digest().to_owned());
        let decided = policies
            .decide(&PolicyRequest {
                action: subject.action,
                principal: subject.mandate.principal.as_str(),
                agent: subject.mandate.agent.as_str(),
                company: subject.mandate.company.as_str(),
                facts: &facts,
                cooling_off_days: self.rules().cooling_off_days(),
            })
            .map_err(|failure| failed(&failure))?;
        let level = level_of(decided.effect, &decided.reasons)?;
        // INVARIANT (I11): the floor stands below the policy text and is asked whatever it said.
        let floor = case.floor(&facts);
        if let Some(first) = floor.first() {
            let reasons = floor.iter().map(|reason| reason.code().to_owned()).collect();
            return Err(Denial { reasons, ..Denial::new(Stage::Policy, *first) });
        }
        standing.judge_sums(resolved)?;
        let hashed = self.hashed(subject, resolved, &facts, level, &decided.reasons, run)?;
        let hash = hex(digest::digest(&digest::SHA256, hashed.as_bytes()).as_ref());
        run.substance.hash = Some(hash);
        run.hashed = Some(hashed);
        Ok(Permitted { level, reasons: decided.reasons })
    }

    async fn standing(
        &self,
        subject: Subject<'_>,
        resolved: &Resolved,
    ) -> Result<Standing, Denial> {
        let (company, mandate, operation) = (
            subject.mandate.company.clone(),
            subject.mandate.id.clone(),
            subject.operation.clone(),
        );
        let (thing, counterparty) = (resolved.thing.clone(), resolved.counterparty.clone());
        self.store()
            .read(move |conn| {
                Box::pin(async move {
                    standing::read(conn, &company, &thing, &counterparty, &mandate, &operation)
                        .await
                })
            })
            .await
            .map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))
    }

    /// The canonical form of all that was decided on. SHA-256 over it is the hash that approvals are
    /// bound to (DESIGN 2): any changed value or decisive fact is another hash.
    fn hashed(
        &self,
        subject: Subject<'_>,
        resolved: &Resolved,
        facts: &Facts,
        level: Level,
        reasons: &[String],
        run: &Evaluated,
    ) -> Result<String, Denial> {
        let bound = Bound {
            v: 1,
            action: subject.action,
            barred_by: if level == Level::None { &[] } else { reasons },
            callback: None,
            company: subject.mandate.company.as_str(),
            facts: facts
                .iter()
                .filter(|(_, fact)| fact.binds)
                .map(|(name, fact)| (name, plain(&fact.value)))
                .collect(),
            level: level.number(),
            mandate: subject.mandate.id.as_str(),
            operation: subject.operation.as_str(),
            params: &resolved.params,
            policy: run.policy.as_deref(),
            principal: subject.mandate.principal.as_str(),
            records: &resolved.records,
            store: self.store().id(),
        };
        serde_json_canonicalizer::to_string(&bound)
            .map_err(|fault| Denial::error(Reason::PolicyFailed, fault))
    }
}

/// What the hash covers.
#[derive(Serialize)]
struct Bound<'a> {
    v: u8,
    action: &'a str,
    barred_by: &'a [String],
    callback: Option<&'a str>,
    company: &'a str,
    facts: BTreeMap<&'a str, serde_json::Value>,
    level: i64,
    mandate: &'a str,
    operation: &'a str,
    params: &'a Params,
    policy: Option<&'a str>,
    principal: &'a str,
    records: &'a BTreeMap<&'static str, String>,
    store: &'a str,
}

fn plain(value: &FactValue) -> serde_json::Value {
    match value {
        FactValue::Bool(yes) => (*yes).into(),
        // Numbers that not every reader of JSON keeps exactly are written as text.
        FactValue::Long(number) if number.unsigned_abs() >= 1 << 53 => number.to_string().into(),
        FactValue::Long(number) => (*number).into(),
        FactValue::Word { word, .. } => (*word).into(),
    }
}

fn keep(facts: &Facts) -> BTreeMap<String, KeptFact> {
    facts
        .iter()
        .map(|(name, fact)| {
            let kept = KeptFact {
                value: plain(&fact.value),
                source: fact.source.clone(),
                at: fact.at,
                agents_see: fact.agents_see,
            };
            (name.to_owned(), kept)
        })
        .collect()
}

fn level_of(effect: crate::domain::decision::Effect, reasons: &[String]) -> Result<Level, Denial> {
    use crate::domain::decision::Effect;
    match effect {
        Effect::Allow => Ok(Level::None),
        Effect::StepUp => Ok(Level::StepUp),
        Effect::FourEyes => Ok(Level::FourEyes),
        Effect::Deny => Err(Denial {
            stage: Stage::Policy,
            reasons: reasons.to_vec(),
            detail: format!("the policy forbids it: {}", reasons.join(", ")),
            evidence: BTreeMap::new(),
        }),
    }
}

/// INVARIANT (I6): a policy that does not evaluate denies.
fn failed(failure: &PolicyFailure) -> Denial {
    match failure {
        PolicyFailure::MissingFacts(names) => {
            let detail = format!("facts could not be had: {}", names.join(", "));
            Denial::saying(Stage::Error, Reason::FactUnavailable, detail)
        }
        PolicyFailure::UnknownAction(_)
        | PolicyFailure::CallerName
        | PolicyFailure::UnfitFacts(_)
        | PolicyFailure::Request
        | PolicyFailure::Evaluation { .. } => Denial::error(Reason::PolicyFailed, failure),
    }
}
