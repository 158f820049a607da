//! One run of the pipeline: from a proposal to a verdict, through the stages in their order. It
//! runs at submission, at commit, after a vote and once more after the claim; nothing is trusted
//! from an earlier run but the votes, and those only if the hash comes out the same.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_lc_rs::digest;
use countersign_erp_source::Timestamp;
use serde::Serialize;

use super::contract::Terms;
use super::pack::{Asking, Case, Denial, Resolved, Volume};
use super::policy::{Policies, PolicyFailure, PolicyRequest};
use super::standing::{self, Asked, Standing};
use super::{Gateway, hex};
use crate::domain::decision::{Effect, Level, Stage};
use crate::domain::facts::{FactValue, Facts};
use crate::domain::mandate::Authority;
use crate::domain::names::{CallbackId, Name, OperationId};
use crate::domain::operation::{Held, KeptFact, Params, Substance};
use crate::domain::reason::Reason;

/// What one run came to.
#[derive(Debug, Clone)]
pub(super) struct Evaluated {
    /// What was resolved and found out, as far as it came.
    pub(super) substance: Substance,
    /// The resolved case, where it came that far.
    pub(super) case: Option<Arc<dyn Case>>,
    /// The facts, where they were found out.
    pub(super) facts: Facts,
    /// What had gone out without a human when it was decided.
    pub(super) volume: Option<Volume>,
    /// The digest of the policy text, where policy was asked.
    pub(super) policy: Option<String>,
    /// Whether the right humans have voted for it, at the level and with the hash that came out.
    pub(super) approved: bool,
    /// Permitted at a level, or denied.
    pub(super) verdict: Result<Permitted, Denial>,
}

impl Evaluated {
    /// The canonical text that the operation hash is made of, so that auditors can make it again.
    pub(super) fn hashed(&self) -> Option<&str> {
        self.verdict.as_ref().ok().map(|permitted| permitted.hashed.as_str())
    }
}

/// What the policy permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Permitted {
    /// The smallest level that permits.
    pub(super) level: Level,
    /// For a level above none the rules that barred the one below, else the permits.
    pub(super) reasons: Vec<String>,
    /// The same in the words of the rules.
    pub(super) because: String,
    /// The canonical text of all that was decided on.
    pub(super) hashed: String,
    /// Its SHA-256: what votes are bound to.
    pub(super) hash: String,
}

/// What is to be decided about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) operation: &'a OperationId,
    pub(super) action: &'a str,
    pub(super) args: &'a str,
    pub(super) authority: &'a Authority,
    /// The level that the operation holds on to.
    pub(super) held: &'a Held,
}

/// What a decision is made with, beside the case itself: pure, so that it can be made once more
/// under the claim's lock.
#[derive(Debug, Clone)]
pub(super) struct Rulebook {
    pub(super) policies: Arc<Policies>,
    pub(super) cooling_off_days: i64,
    pub(super) store: String,
}

impl Gateway {
    /// The policies in force and the settings that they read.
    pub(super) fn rulebook(&self) -> Rulebook {
        Rulebook {
            policies: self.policies(),
            cooling_off_days: self.rules().cooling_off_days(),
            store: self.store().id().to_owned(),
        }
    }

    /// Runs the stages from `contract` to `policy`, and looks whether the votes are there.
    pub(super) async fn evaluate(&self, subject: Subject<'_>) -> Evaluated {
        let mut run = Evaluated {
            substance: Substance::default(),
            case: None,
            facts: Facts::default(),
            volume: None,
            policy: None,
            approved: false,
            verdict: Err(Denial::new(Stage::Error, Reason::PolicyFailed)),
        };
        run.verdict = self.stages(subject, &mut run).await;
        run
    }

    async fn stages(&self, subject: Subject<'_>, run: &mut Evaluated) -> Result<Permitted, Denial> {
        let unknown = || Denial::new(Stage::Contract, Reason::UnknownAction);
        let pack = self.pack_of(subject.action).ok_or_else(unknown)?;
        // What humans begin for themselves no mandate can hold, and the other way round.
        let known = match subject.authority {
            Authority::Mandate(_) => pack.actions(),
            Authority::Own { .. } => pack.own_actions(),
        };
        if !known.contains(&subject.action) {
            return Err(unknown());
        }
        let terms = Terms::parse(subject.args, pack.arguments(subject.action))?;
        let asking = Asking { authority: subject.authority, operation: subject.operation };
        let case = pack.resolve(subject.action, &terms, &asking).await?;
        let resolved = case.resolved();
        run.substance = Substance {
            thing: Some(resolved.thing.clone()),
            counterparty: Some(resolved.counterparty.clone()),
            amount: resolved.sum.map(|sum| sum.amount),
            params: resolved.params.clone(),
            records: resolved
                .records
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            not_by: resolved.not_by.clone(),
            callback: resolved.callback.clone(),
            ..Substance::default()
        };
        run.case = Some(Arc::clone(&case));
        let standing = self.standing(subject, resolved).await?;
        standing.judge(subject.action, resolved)?;

        run.facts = case.facts().await?;
        case.add_volume(&mut run.facts, &standing.volume);
        run.substance.facts = keep(&run.facts);
        run.volume = Some(standing.volume);
        let rulebook = self.rulebook();
        run.policy = Some(rulebook.policies.digest().to_owned());
        let permitted = rulebook.decide(subject, case.as_ref(), &run.facts, &standing)?;
        run.substance.hash = Some(permitted.hash.clone());
        run.approved = standing.is_approved(permitted.level, &permitted.hash, &resolved.not_by);
        Ok(permitted)
    }

    async fn standing(
        &self,
        subject: Subject<'_>,
        resolved: &Resolved,
    ) -> Result<Standing, Denial> {
        let asked = asked(subject.operation, subject.authority, resolved, self.now());
        self.store()
            .ask(standing::of(asked))
            .await
            .map_err(|fault| Denial::error(Reason::StoreUnavailable, fault))
    }
}

/// Of what it is asked how things stand.
pub(super) fn asked(
    operation: &OperationId,
    authority: &Authority,
    resolved: &Resolved,
    at: Timestamp,
) -> Asked {
    Asked {
        company: authority.company().clone(),
        principal: authority.principal().clone(),
        mandate: authority.mandate().map(|mandate| mandate.id.clone()),
        operation: operation.clone(),
        thing: resolved.thing.clone(),
        counterparty: resolved.counterparty.clone(),
        callback: resolved.callback.clone(),
        currency: resolved.sum.map(|sum| sum.amount.currency()),
        at,
    }
}

impl Rulebook {
    /// Stage `policy`, then the floor, then the sums of the thing.
    ///
    /// # Errors
    /// A denial.
    pub(super) fn decide(
        &self,
        subject: Subject<'_>,
        case: &dyn Case,
        facts: &Facts,
        standing: &Standing,
    ) -> Result<Permitted, Denial> {
        let resolved = case.resolved();
        let decided = self
            .policies
            .decide(&PolicyRequest {
                action: subject.action,
                principal: subject.authority.principal().as_str(),
                agent: subject.authority.mandate().map(|mandate| mandate.agent.as_str()),
                company: subject.authority.company().as_str(),
                facts,
                cooling_off_days: self.cooling_off_days,
            })
            .map_err(|failure| failed(&failure))?;
        let level = self.level_of(decided.effect, &decided.reasons)?;
        // INVARIANT (I11): the floor stands below the policy text and is asked whatever it said.
        let floor = case.floor(facts);
        if let Some(first) = floor.first() {
            let reasons = floor.iter().map(|reason| reason.code().to_owned()).collect();
            return Err(Denial { reasons, ..Denial::new(Stage::Policy, *first) });
        }
        standing.judge_sums(resolved)?;
        let (level, reasons) = not_below(subject.held, level, decided.reasons);
        let hashed = self.hashed(subject, resolved, facts, level, &reasons)?;
        let hash = hex(digest::digest(&digest::SHA256, hashed.as_bytes()).as_ref());
        let because = self.in_words(&reasons);
        Ok(Permitted { level, reasons, because, hashed, hash })
    }

    fn level_of(&self, effect: Effect, reasons: &[String]) -> Result<Level, Denial> {
        match effect {
            Effect::Allow => Ok(Level::None),
            Effect::StepUp => Ok(Level::StepUp),
            Effect::FourEyes => Ok(Level::FourEyes),
            Effect::Deny => Err(Denial {
                stage: Stage::Policy,
                reasons: reasons.to_vec(),
                detail: self.in_words(reasons),
                evidence: BTreeMap::new(),
            }),
        }
    }

    /// What the rules of those ids say of themselves.
    fn in_words(&self, ids: &[String]) -> String {
        let words = ids.iter().map(|id| self.policies.reason_text(id).unwrap_or(id));
        words.collect::<Vec<&str>>().join(" ")
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
    ) -> Result<String, Denial> {
        let bound = Bound {
            v: 1,
            action: subject.action,
            barred_by: if level == Level::None { &[] } else { reasons },
            callback: resolved.callback.as_ref().map(CallbackId::as_str),
            company: subject.authority.company().as_str(),
            facts: facts
                .iter()
                .filter(|(_, fact)| fact.binds)
                .map(|(name, fact)| (name, plain(&fact.value)))
                .collect(),
            level: level.number(),
            mandate: subject.authority.mandate().map(|mandate| mandate.id.as_str()),
            not_by: resolved.not_by.iter().map(Name::as_str).collect(),
            operation: subject.operation.as_str(),
            params: &resolved.params,
            policy: Some(self.policies.digest()),
            principal: subject.authority.principal().as_str(),
            records: &resolved.records,
            store: &self.store,
        };
        serde_json_canonicalizer::to_string(&bound)
            .map_err(|fault| Denial::error(Reason::PolicyFailed, fault))
    }
}

/// The level that counts, with the rules that asked for it: it never falls below the one that is
/// held, and at the same level no rule that once asked is forgotten (API 3).
fn not_below(held: &Held, level: Level, reasons: Vec<String>) -> (Level, Vec<String>) {
    match level.cmp(&held.level) {
        Ordering::Greater => (level, reasons),
        Ordering::Less => (held.level, held.barred_by.clone()),
        Ordering::Equal if level == Level::None => (level, reasons),
        Ordering::Equal => {
            let all: BTreeSet<String> = reasons.into_iter().chain(held.barred_by.clone()).collect();
            (level, all.into_iter().collect())
        }
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
    mandate: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_by: Vec<&'a str>,
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
        FactValue::Text(text) => text.as_str().into(),
    }
}

pub(super) fn keep(facts: &Facts) -> BTreeMap<String, KeptFact> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(held: (Level, &[&str]), now: (Level, &[&str]), expected: (Level, &[&str])) {
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let before = Held { level: held.0, barred_by: texts(held.1) };
        assert_eq!(not_below(&before, now.0, texts(now.1)), (expected.0, texts(expected.1)));
    }

    #[test]
    fn a_level_never_falls_and_forgets_no_rule_that_asked_for_it() {
        use Level::{FourEyes, None, StepUp};
        check((None, &[]), (None, &["permit"]), (None, &["permit"]));
        check((None, &[]), (StepUp, &["a"]), (StepUp, &["a"]));
        check((StepUp, &["a"]), (None, &["permit"]), (StepUp, &["a"]));
        check((StepUp, &["a"]), (StepUp, &["b"]), (StepUp, &["a", "b"]));
        check((StepUp, &["a"]), (FourEyes, &["b"]), (FourEyes, &["b"]));
        check((FourEyes, &["b", "c"]), (FourEyes, &["c"]), (FourEyes, &["b", "c"]));
        check((FourEyes, &["b"]), (None, &["permit"]), (FourEyes, &["b"]));
    }
}
