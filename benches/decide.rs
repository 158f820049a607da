//! The policy's part of a decision, beside one bare evaluation of the same request by Cedar.
#![expect(clippy::expect_used, reason = "a bench that cannot be set up has nothing to say")]

use std::hint::black_box;

use cedar_policy::{
    Authorizer, Context, Entities, EntityUid, PolicySet, Request, RestrictedExpression, Schema,
};
use countersign::domain::facts::{Fact, FactValue, Facts};
use countersign::gateway::policy::{Policies, PolicyRequest};
use countersign_erp_source::Timestamp;
use criterion::{Criterion, criterion_group, criterion_main};

const FLAGS: [(&str, bool); 13] = [
    ("invoice_open", true),
    ("bill_consistent", true),
    ("payee_is_invoice_vendor", true),
    ("amount_within_residual", true),
    ("currency_matches_invoice", true),
    ("is_partial", false),
    ("has_vendor_reference", true),
    ("vendor_unapplied", false),
    ("bank_change_pending", false),
    ("in_cooling_off", false),
    ("erp_allows_account", true),
    ("is_own_account", false),
    ("sanctions_list_configured", true),
];
const WORDS: [(&str, &str, &str); 4] = [
    ("bank_status", "BankStatus", "adopted"),
    ("duplicate", "Duplicate", "none"),
    ("vop", "Vop", "match"),
    ("payee_sanctioned", "Sanctions", "no"),
];
const NUMBERS: [(&str, i64); 8] = [
    ("iban_age_days", 400),
    ("days_since_approved_payment", 0),
    ("shared_with", 0),
    ("amount_e2", 120_000),
    ("vendor_auto_24h_e2", 0),
    ("vendor_auto_30d_e2", 0),
    ("company_auto_24h_e2", 0),
    ("company_auto_30d_e2", 0),
];

fn facts() -> Facts {
    let mut facts = Facts::default();
    let mut set = |name, value| {
        let at = Timestamp::from_millis(0);
        facts
            .set(name, Fact { value, source: "erp".to_owned(), at, binds: true, agents_see: true });
    };
    for (name, yes) in FLAGS {
        set(name, FactValue::Bool(yes));
    }
    for (name, list, word) in WORDS {
        set(name, FactValue::Word { list, word });
    }
    for (name, number) in NUMBERS {
        set(name, FactValue::Long(number));
    }
    facts
}

fn uid(kind: &str, id: &str) -> EntityUid {
    format!("{kind}::\"{id}\"").parse().expect("an entity")
}

/// One request as Cedar takes it, validated.
fn bare_request(schema: &Schema) -> Request {
    let flags = FLAGS.iter().map(|(name, yes)| (*name, RestrictedExpression::new_bool(*yes)));
    let words = WORDS
        .iter()
        .map(|(name, list, word)| (*name, RestrictedExpression::new_entity_uid(uid(list, word))));
    let more = [("cooling_off_days", 7), ("approval_level", 2)];
    let numbers = NUMBERS.iter().chain(&more);
    let numbers = numbers.map(|(name, number)| (*name, RestrictedExpression::new_long(*number)));
    let pairs = flags.chain(words).chain(numbers).map(|(name, value)| (name.to_owned(), value));
    let context = Context::from_pairs(pairs).expect("a context");
    let (agent, company) = (uid("Agent", "c/p/a"), uid("Company", "c"));
    Request::new(agent, uid("Action", "invoice.pay"), company, context, Some(schema))
        .expect("a request")
}

fn decide(c: &mut Criterion) {
    let policies = Policies::embedded().expect("the embedded policies");
    let facts = facts();
    let request = PolicyRequest {
        action: "invoice.pay",
        principal: "p",
        agent: Some("a"),
        company: "c",
        facts: &facts,
        cooling_off_days: 7,
    };
    // Without all facts of the schema a refusal to decide would be measured.
    policies.decide(&request).expect("a decision");
    c.bench_function("decide, up to three levels", |bencher| {
        bencher.iter(|| policies.decide(black_box(&request)));
    });
    let schema: Schema = include_str!("../policies/schema.cedarschema").parse().expect("a schema");
    let set: PolicySet = include_str!("../policies/invoice_pay.cedar").parse().expect("policies");
    let (authorizer, entities) = (Authorizer::new(), Entities::empty());
    c.bench_function("bare validated is_authorized", |bencher| {
        bencher.iter(|| {
            let request = bare_request(&schema);
            authorizer.is_authorized(black_box(&request), &set, &entities)
        });
    });
}

criterion_group!(benches, decide);
criterion_main!(benches);
