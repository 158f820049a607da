//! Runs `policies/cases` against the default policies: request to expected effect and policy ids.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use countersign_erp_source::Timestamp;
use serde::Deserialize;

use crate::domain::facts::{Fact, FactValue};

use super::properties::policies_of;
use super::*;

/// A file of cases: a base, and what is different in each.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseFile {
    pub(super) action: String,
    pub(super) cooling_off_days: i64,
    pub(super) facts: BTreeMap<String, CaseValue>,
    #[serde(rename = "case")]
    pub(super) cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    name: String,
    cooling_off_days: Option<i64>,
    #[serde(default)]
    change: BTreeMap<String, CaseValue>,
    effect: String,
    reasons: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum CaseValue {
    Bool(bool),
    Long(i64),
    Word(String),
}

impl CaseFile {
    pub(super) fn invoice_pay() -> Self {
        Self::read("invoice_pay")
    }

    fn read(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies/cases");
        let path = path.join(name).with_extension("toml");
        toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    /// The file for each action of the schema.
    fn all() -> Vec<Self> {
        let actions = Policies::embedded().unwrap().actions;
        actions.keys().map(|action| Self::read(&action.replace('.', "_"))).collect()
    }

    /// The base with those changes.
    pub(super) fn facts(&self, policies: &Policies, change: &BTreeMap<String, CaseValue>) -> Facts {
        let mut facts = Facts::default();
        for name in change.keys() {
            assert!(self.facts.contains_key(name), "`{name}` is not in the base");
        }
        for (name, value) in &self.facts {
            let value = change.get(name).unwrap_or(value).clone();
            set(&mut facts, name, fact_value(policies, &self.action, name, value));
        }
        facts
    }

    /// What is not as expected, by the name of the case.
    fn failures(&self, policies: &Policies) -> Vec<String> {
        let mut failures = Vec::new();
        for case in &self.cases {
            let facts = self.facts(policies, &case.change);
            let days = case.cooling_off_days.unwrap_or(self.cooling_off_days);
            let expected = PolicyDecision {
                effect: Effect::from_code(&case.effect).unwrap(),
                reasons: case.reasons.clone(),
            };
            let decided = ask(policies, &self.action, &facts, days);
            if decided.as_ref() != Ok(&expected) {
                failures
                    .push(format!("`{}`: expected {expected:?}, and it is {decided:?}", case.name));
            }
        }
        failures
    }
}

pub(super) fn ask(
    policies: &Policies,
    action: &str,
    facts: &Facts,
    cooling_off_days: i64,
) -> Result<PolicyDecision, PolicyFailure> {
    let (principal, company) = ("marie", "blue-sparrow");
    let own = ["vendor.confirm_bank_details", "vendor.confirm_phone"].contains(&action);
    let agent = (!own).then_some("ap-agent");
    policies.decide(&PolicyRequest { action, principal, agent, company, facts, cooling_off_days })
}

pub(super) fn set(facts: &mut Facts, name: &str, value: FactValue) {
    let fact = Fact {
        value,
        source: "case".to_owned(),
        at: Timestamp::from_millis(0),
        binds: true,
        agents_see: true,
    };
    facts.set(name.to_owned().leak(), fact);
}

fn fact_value(policies: &Policies, action: &str, name: &str, value: CaseValue) -> FactValue {
    match value {
        CaseValue::Bool(value) => FactValue::Bool(value),
        CaseValue::Long(value) => FactValue::Long(value),
        CaseValue::Word(word) => {
            let list = policies.actions[action].list_of(name).unwrap_or("not a list");
            FactValue::Word { list: list.to_owned().leak(), word: word.leak() }
        }
    }
}

/// The default policies but one.
fn without(id: &str) -> Policies {
    let mut policies = Policies::embedded().unwrap();
    policies.set.remove_static(cedar_policy::PolicyId::new(id)).unwrap();
    policies
}

#[test]
fn every_case_is_decided_as_expected() {
    for file in CaseFile::all() {
        let failures = file.failures(&Policies::embedded().unwrap());
        assert!(failures.is_empty(), "{}: {}", file.action, failures.join("\n"));
    }
}

#[test]
fn every_case_has_a_name_of_its_own() {
    for file in CaseFile::all() {
        let mut names: Vec<&str> = file.cases.iter().map(|case| case.name.as_str()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{}", file.action);
    }
}

#[test]
fn no_policy_can_be_taken_away_unnoticed() {
    let files = CaseFile::all();
    for id in Policies::embedded().unwrap().ids() {
        let needed = files.iter().any(|file| !file.failures(&without(id)).is_empty());
        assert!(needed, "no case needs `{id}`");
    }
}

#[test]
fn each_rule_is_the_only_reason_of_some_case() {
    let files = CaseFile::all();
    // A permit is the reason where nobody is needed, and a change of details always needs two.
    let needs_nobody = |id: &&str| !id.ends_with("-permitted") || *id == "invoice-pay-permitted";
    for id in Policies::embedded().unwrap().ids().filter(needs_nobody) {
        let mut cases = files.iter().flat_map(|file| &file.cases);
        assert!(cases.any(|case| case.reasons == [id]), "no case is about `{id}` alone");
    }
}

/// All whole numbers of a policy text, outside comments and quotes, each with the text before and
/// after it.
fn numbers_of(text: &str) -> Vec<[&str; 3]> {
    let (mut found, mut at) = (Vec::new(), 0);
    let bytes = text.as_bytes();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let end_of = |from: usize, holds: &dyn Fn(u8) -> bool| {
        bytes[from..].iter().position(|byte| !holds(*byte)).map_or(bytes.len(), |n| from + n)
    };
    while at < bytes.len() {
        at = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => end_of(at, &|byte| byte != b'\n'),
            b'"' => end_of(at + 1, &|byte| byte != b'"') + 1,
            byte if byte.is_ascii_digit() => {
                let end = end_of(at, &|byte| byte.is_ascii_digit());
                let (before, rest) = text.split_at(at);
                let (number, after) = rest.split_at(end - at);
                found.push([before, number, after]);
                end
            }
            byte if is_name(byte) => end_of(at, &is_name),
            _ => at + 1,
        };
    }
    found
}

#[test]
fn no_number_in_a_policy_can_be_moved_unnoticed() {
    let file = CaseFile::invoice_pay();
    let numbers = numbers_of(include_str!("../../../policies/invoice_pay.cedar"));
    // Each limit that the design names, and each level.
    let values: BTreeSet<&str> = numbers.iter().map(|[_, number, _]| *number).collect();
    let known = ["0", "1", "1000000", "14", "2", "500000", "5000000"];
    assert_eq!(values, BTreeSet::from(known));
    for [before, number, after] in numbers {
        let value: i64 = number.parse().unwrap();
        for moved in [value - 1, value + 1] {
            let policies = policies_of(&format!("{before}{moved}{after}"));
            let line = before.lines().count();
            assert!(
                !file.failures(&policies).is_empty(),
                "no case notices {moved} in the place of {value}, in line {line}"
            );
        }
    }
}

#[test]
fn a_number_is_found_where_it_counts() {
    let text = "// 1\n@id(\"a-2\") x3 y_4.z > 56-7 && \"8\" >= 9";
    let found: Vec<&str> = numbers_of(text).into_iter().map(|[_, number, _]| number).collect();
    assert_eq!(found, ["56", "7", "9"]);
}

#[test]
fn an_absent_fact_is_named_before_the_policies_are_asked() {
    let (file, policies) = (CaseFile::invoice_pay(), Policies::embedded().unwrap());
    let whole = file.facts(&policies, &BTreeMap::new());
    let wanted: Vec<&str> = policies.actions[&file.action].facts().collect();
    assert_eq!(wanted, file.facts.keys().collect::<Vec<_>>());
    for absent in &wanted {
        let mut facts = Facts::default();
        for (name, fact) in whole.iter().filter(|(name, _)| name != absent) {
            facts.set(name, fact.clone());
        }
        let failure = ask(&policies, &file.action, &facts, 7).unwrap_err();
        assert_eq!(failure, PolicyFailure::MissingFacts(vec![(*absent).to_owned()]));
        assert_eq!(failure.to_string(), format!("no fact `{absent}`"));
    }
    let failure = ask(&policies, &file.action, &Facts::default(), 7).unwrap_err();
    let all = wanted.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(failure, PolicyFailure::MissingFacts(all));
}

#[test]
fn a_fact_of_another_kind_or_word_is_named_and_nothing_else() {
    let (file, policies) = (CaseFile::invoice_pay(), Policies::embedded().unwrap());
    let base = file.facts(&policies, &BTreeMap::new());
    let word = |list, word| FactValue::Word { list, word };
    let (yes, number) = (FactValue::Bool(true), FactValue::Long(1));
    for (name, unfit) in [
        ("invoice_open", number.clone()),
        ("invoice_open", word("Vop", "match")),
        ("amount_e2", yes.clone()),
        ("amount_e2", FactValue::Long(-1)),
        ("amount_e2", word("Vop", "match")),
        ("iban_age_days", FactValue::Long(i64::MIN)),
        ("vop", yes),
        ("vop", number),
        ("vop", word("Vop", "matched")),
        ("vop", word("Vop", "MATCH")),
        ("vop", word("Vop", "")),
        ("vop", word("BankStatus", "verified")),
        ("vop", word("BankStatus", "match")),
        ("payee_sanctioned", word("Sanctions", "false")),
    ] {
        let mut facts = base.clone();
        set(&mut facts, name, unfit.clone());
        let failure = ask(&policies, &file.action, &facts, 7).unwrap_err();
        assert_eq!(failure, PolicyFailure::UnfitFacts(vec![name.to_owned()]), "{unfit:?}");
    }
    let failure = ask(&policies, &file.action, &base, -1).unwrap_err();
    assert_eq!(failure, PolicyFailure::UnfitFacts(vec!["cooling_off_days".to_owned()]));
}

#[test]
fn a_fact_that_the_schema_does_not_want_changes_nothing() {
    let (file, policies) = (CaseFile::invoice_pay(), Policies::embedded().unwrap());
    let mut facts = file.facts(&policies, &BTreeMap::new());
    let decided = ask(&policies, &file.action, &facts, 7);
    set(&mut facts, "weather_is_fine", FactValue::Bool(false));
    // The level is the daemon's to say.
    set(&mut facts, "approval_level", FactValue::Long(2));
    set(&mut facts, "cooling_off_days", FactValue::Long(0));
    assert_eq!(ask(&policies, &file.action, &facts, 7), decided);
    set(&mut facts, "iban_age_days", FactValue::Long(0));
    assert_eq!(ask(&policies, &file.action, &facts, 7).unwrap().effect, Effect::FourEyes);
}

#[test]
fn an_unknown_action_or_an_unclear_caller_is_a_failure() {
    let (file, policies) = (CaseFile::invoice_pay(), Policies::embedded().unwrap());
    let facts = file.facts(&policies, &BTreeMap::new());
    let failure = ask(&policies, "invoice.delete", &facts, 7).unwrap_err();
    assert_eq!(failure, PolicyFailure::UnknownAction("invoice.delete".to_owned()));
    for (principal, agent, company) in
        [("a/b", "c", "d"), ("a", "b/c", "d"), ("a", "b", "c/d"), ("", "b", "c"), ("a", "", "c")]
    {
        let (action, facts, agent) = (file.action.as_str(), &facts, Some(agent));
        let request =
            PolicyRequest { action, principal, agent, company, facts, cooling_off_days: 7 };
        assert_eq!(policies.decide(&request), Err(PolicyFailure::CallerName));
    }
}
