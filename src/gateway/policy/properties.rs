//! What holds for any facts, and for policies of somebody else's making.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;

use crate::domain::facts::FactValue;

use super::cases::{CaseFile, ask, set};
use super::load::SourceFile;
use super::*;

const PERMIT: &str = r#"@id("permitted") @reason("Nothing holds it back.")
permit (principal, action == Action::"invoice.pay", resource);
"#;

static DEFAULTS: LazyLock<Policies> = LazyLock::new(|| Policies::embedded().unwrap());
static CASES: LazyLock<CaseFile> = LazyLock::new(CaseFile::invoice_pay);

/// Policies of this text and the default schema.
pub(super) fn policies_of(text: &str) -> Policies {
    let schema = include_bytes!("../../../policies/schema.cedarschema").to_vec();
    let files = vec![
        SourceFile { name: "own.cedar".to_owned(), bytes: text.as_bytes().to_vec() },
        SourceFile { name: "schema.cedarschema".to_owned(), bytes: schema },
    ];
    Policies::from_files("here", files).unwrap()
}

/// A rule of that id, with this body.
fn rule(id: &str, effect: &str, body: &str) -> String {
    format!(
        "@id(\"{id}\") @reason(\"A rule.\")\n{effect} (principal, action == \
         Action::\"invoice.pay\", resource) {body};\n"
    )
}

fn decide(text: &str) -> Result<PolicyDecision, PolicyFailure> {
    let facts = CASES.facts(&DEFAULTS, &BTreeMap::new());
    ask(&policies_of(text), &CASES.action, &facts, CASES.cooling_off_days)
}

#[track_caller]
fn decides(text: &str, effect: Effect, reasons: &[&str]) {
    let reasons = reasons.iter().map(|id| (*id).to_owned()).collect();
    assert_eq!(decide(text), Ok(PolicyDecision { effect, reasons }));
}

#[test]
fn a_policy_that_does_not_evaluate_is_never_an_allow() {
    let overflow = "context.amount_e2 * 9223372036854775807 > 0";
    let fails = |policies: &[&str]| {
        let policies = policies.iter().map(|id| (*id).to_owned()).collect();
        Err(PolicyFailure::Evaluation { policies })
    };
    // Cedar leaves the failing forbid out and would allow by the permit.
    let forbid = rule("overflows", "forbid", &format!("when {{ {overflow} }}"));
    assert_eq!(decide(&format!("{PERMIT}{forbid}")), fails(&["overflows"]));
    // It is no allow either where the failing policy is a permit beside one that applies.
    let permit = rule("overflows", "permit", &format!("when {{ {overflow} }}"));
    assert_eq!(decide(&format!("{PERMIT}{permit}")), fails(&["overflows"]));
    // Nor where it fails only at a level below the highest.
    let body = format!("when {{ context.approval_level < 2 && {overflow} }}");
    let below = rule("overflows-below", "forbid", &body);
    assert_eq!(decide(&format!("{PERMIT}{below}")), fails(&["overflows-below"]));
    // Nor beside a forbid that applies; all that fail are named.
    let applies = rule("applies", "forbid", "");
    let all = format!("{PERMIT}{forbid}{below}{applies}");
    assert_eq!(decide(&all), fails(&["overflows"]));
    let other = forbid.replace("\"overflows\"", "\"also-overflows\"");
    let failure = decide(&format!("{PERMIT}{forbid}{other}")).unwrap_err();
    assert_eq!(failure.to_string(), "evaluating `also-overflows`, `overflows` failed");
}

#[test]
fn what_nothing_permits_is_denied() {
    decides(&rule("never", "forbid", "when { context.is_partial }"), Effect::Deny, &[NO_PERMIT]);
    let only_large = rule("large", "permit", "when { context.amount_e2 > 900000 }");
    decides(&only_large, Effect::Deny, &[NO_PERMIT]);
    let only_humans = rule("humans", "permit", "when { context.approval_level >= 1 }");
    decides(&only_humans, Effect::StepUp, &[NO_PERMIT]);
    let only_four_eyes = rule("four-eyes", "permit", "when { context.approval_level >= 2 }");
    decides(&only_four_eyes, Effect::FourEyes, &[NO_PERMIT]);
}

#[test]
fn a_level_is_the_smallest_that_is_permitted() {
    decides(PERMIT, Effect::Allow, &["permitted"]);
    let principal = rule("principal", "forbid", "unless { context.approval_level >= 1 }");
    decides(&format!("{PERMIT}{principal}"), Effect::StepUp, &["principal"]);
    let approver = rule("approver", "forbid", "unless { context.approval_level >= 2 }");
    decides(&format!("{PERMIT}{principal}{approver}"), Effect::FourEyes, &["approver"]);
    let nobody = rule("nobody", "forbid", "");
    let all = format!("{PERMIT}{principal}{approver}{nobody}");
    decides(&all, Effect::Deny, &["nobody"]);
    // A rule that reads levels the wrong way round opens nothing.
    let inverted = rule("inverted", "forbid", "when { context.approval_level == 2 }");
    decides(&format!("{PERMIT}{inverted}"), Effect::Deny, &["inverted"]);
}

#[test]
fn a_policy_can_name_company_and_agent() {
    let company = rule("company", "forbid", "when { resource == Company::\"blue-sparrow\" }");
    decides(&format!("{PERMIT}{company}"), Effect::Deny, &["company"]);
    let name = "blue-sparrow/marie/ap-agent";
    let agent = rule("agent", "forbid", &format!("when {{ principal == Agent::\"{name}\" }}"));
    decides(&format!("{PERMIT}{agent}"), Effect::Deny, &["agent"]);
    decides(&format!("{PERMIT}{}", agent.replace("marie", "paul")), Effect::Allow, &["permitted"]);
}

#[test]
fn policies_are_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Policies>();
}

/// What the default policies must say, written a second time and in another way.
fn expected(facts: &Facts, cooling_off_days: i64) -> Effect {
    let long = |name| match facts.get(name).map(|fact| &fact.value) {
        Some(FactValue::Long(value)) => *value,
        other => panic!("`{name}` is {other:?}"),
    };
    let (amount, age) = (long("amount_e2"), long("iban_age_days"));
    let (vop, status) = (facts.word("vop").unwrap(), facts.word("bank_status").unwrap());
    let sanctioned = facts.word("payee_sanctioned").unwrap();
    let duplicate = facts.word("duplicate").unwrap();
    let sound = [
        "invoice_open",
        "bill_consistent",
        "payee_is_invoice_vendor",
        "amount_within_residual",
        "currency_matches_invoice",
        "erp_allows_account",
    ]
    .iter()
    .all(|name| facts.is_true(name));
    if !sound
        || facts.is_true("is_own_account")
        || matches!(status, "changed_in_erp" | "ambiguous")
        || vop == "no_match"
        || sanctioned == "yes"
        || duplicate == "likely"
        || amount >= 5_000_001
    {
        return Effect::Deny;
    }
    let unscreened = sanctioned == "not_checked" && facts.is_true("sanctions_list_configured");
    let released = long("days_since_approved_payment") >= 14;
    if facts.is_true("in_cooling_off")
        || age < cooling_off_days
        || facts.is_true("is_partial")
        || facts.is_true("vendor_unapplied")
        || facts.is_true("bank_change_pending")
        || (status == "unverified" && !released)
        || duplicate != "none"
        || long("shared_with") != 0
        || vop != "match"
        || unscreened
    {
        return Effect::FourEyes;
    }
    // With this payment, in figures that cannot overflow.
    let reaches = |sum| i128::from(long(sum)) + i128::from(amount);
    if amount >= 500_001
        || !facts.is_true("has_vendor_reference")
        || reaches("vendor_auto_24h_e2") > 1_000_000
        || reaches("vendor_auto_30d_e2") > 5_000_000
        || reaches("company_auto_24h_e2") > 5_000_000
    {
        Effect::StepUp
    } else {
        Effect::Allow
    }
}

fn word(list: &'static str, words: &'static [&'static str]) -> impl Strategy<Value = FactValue> {
    prop::sample::select(words).prop_map(move |word| FactValue::Word { list, word })
}

fn long(near: i64) -> impl Strategy<Value = FactValue> {
    prop_oneof![0..=near, near.saturating_sub(2)..=near.saturating_add(2), 0..=i64::MAX]
        .prop_map(FactValue::Long)
}

prop_compose! {
    /// Facts of which mostly one or two are unusual, so that every effect is met.
    fn any_facts()(
        changed in prop::collection::btree_set(0_usize..25, 0..4),
        status in word("BankStatus", &["verified", "unverified", "changed_in_erp", "ambiguous"]),
        vop in word("Vop", &["close_match", "no_match", "not_possible"]),
        sanctioned in word("Sanctions", &["yes", "not_checked"]),
        duplicate in word("Duplicate", &["similar", "likely"]),
        age in prop_oneof![long(7), long(14)],
        amount in prop_oneof![long(500_000), long(5_000_000)],
        // Around the limits once a usual or an unusual amount is added.
        sum in prop_oneof![
            long(880_000), long(4_880_000), long(500_000), long(4_500_000), long(1_000_000),
            long(5_000_000),
        ],
        shared in prop_oneof![0_i64..3, 0..=i64::MAX].prop_map(FactValue::Long),
    ) -> Facts {
        let mut facts = CASES.facts(&DEFAULTS, &BTreeMap::new());
        let usual: Vec<(&str, FactValue)> =
            facts.iter().map(|(name, fact)| (name, fact.value.clone())).collect();
        for index in changed {
            let (name, value) = &usual[index];
            let unusual = match (*name, value) {
                ("bank_status", _) => status.clone(),
                ("vop", _) => vop.clone(),
                ("payee_sanctioned", _) => sanctioned.clone(),
                ("duplicate", _) => duplicate.clone(),
                ("iban_age_days" | "days_since_approved_payment", _) => age.clone(),
                ("shared_with", _) => shared.clone(),
                ("amount_e2", _) => amount.clone(),
                (name, _) if name.ends_with("h_e2") || name.ends_with("d_e2") => sum.clone(),
                (_, FactValue::Bool(value)) => FactValue::Bool(!value),
                (name, value) => panic!("`{name}` is {value:?}"),
            };
            set(&mut facts, name, unusual);
        }
        facts
    }
}

proptest! {
    #[test]
    fn the_default_policies_never_fail_and_say_what_the_design_says(
        facts in any_facts(),
        cooling_off_days in prop_oneof![Just(7), Just(0), 0..=i64::MAX],
    ) {
        let decision = ask(&DEFAULTS, "invoice.pay", &facts, cooling_off_days).unwrap();
        prop_assert_eq!(decision.effect, expected(&facts, cooling_off_days));
        prop_assert!(decision.reasons.iter().all(|id| DEFAULTS.reason_text(id).is_some()));
    }
}
