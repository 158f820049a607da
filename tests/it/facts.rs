//! Each fact about duplicates, credits, accounts and history, seen from outside: what somebody does
//! in the ERP or did before, and what a payment needs then.

mod accounts;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::ap::reading::{Attention, BillFilter, BillView, Eyes};
use countersign::domain::decision::{Level, Stage};
use countersign::domain::operation::Status;
use countersign_erp_source::{BillId, ReadError, VendorId};
use serde_json::{Value, json};

use crate::bent::{Scene, company};
use crate::daemon::{ACME, Agent, Answer, Daemon, Installation, WORLD, pay};
use crate::support::{Place, on_both};

/// The usual installation with a daemon and an agent of marie's.
async fn ready() -> (Installation, Daemon, Agent) {
    ready_at(Installation::new()).await
}

async fn ready_at(installation: Installation) -> (Installation, Daemon, Agent) {
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    (installation, daemon, agent)
}

/// The tables of that installation, for a test that changes them behind the daemon's back.
fn tables_of(installation: &Installation, place: &Place) -> Place {
    if !place.is_sqlite() {
        return Place::of(place.url.clone());
    }
    Place::of(format!("sqlite://{}", installation.path("countersign.db").display()))
}

#[track_caller]
fn waits(answer: &Answer, level: &str, reasons: &[&str]) {
    assert_eq!(answer.text("/status"), "pending", "{}", answer.json);
    assert_eq!(
        (answer.text("/approval/level").as_str(), answer.reasons()),
        (level, owned(reasons))
    );
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

async fn cancel(agent: &Agent, answer: &Answer) {
    let cancelled = agent.post(&format!("/v1/operations/{}/cancel", answer.text("/id"))).await;
    assert_eq!(cancelled.text("/status"), "cancelled", "{}", cancelled.json);
}

/// A small bill of ACME's, unlike all others but in what is said.
fn bill(fields: &Value) -> Value {
    let mut bill = json!({
        "vendor": "V-100", "amount": "10.00", "vendor_reference": "A-9", "date": "2026-01-15",
    });
    for (name, value) in fields.as_object().unwrap() {
        bill[name] = value.clone();
    }
    bill
}

async fn attention_of(agent: &Agent, bill: &str) -> Vec<String> {
    let read = agent.get(&format!("/v1/bills/{bill}")).await;
    let found: Vec<String> = serde_json::from_value(read.json["attention"].clone()).unwrap();
    let listed = agent.get("/v1/bills?limit=200").await;
    let items = listed.json["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["invoice_ref"] == *bill).unwrap();
    assert_eq!(item, &read.json, "list and reading tell different things");
    found
}

#[tokio::test]
async fn a_bill_without_a_reference_needs_the_principal() {
    let (_installation, daemon, agent) = ready().await;
    for (id, reference) in [("N-1", json!(null)), ("N-2", json!(" - / - "))] {
        daemon
            .put_bill(
                id,
                bill(&json!({ "vendor_reference": reference, "amount": id.replace("N-", "1") })),
            )
            .await;
        let answer = agent.propose(id, &pay(id, "V-100", &id.replace("N-", "1"))).await;
        waits(&answer, "step_up", &["no-vendor-reference-needs-step-up"]);
        assert_eq!(answer.json["facts"]["has_vendor_reference"], false);
    }
    daemon.put_bill("N-1", json!({ "vendor_reference": "A-9" })).await;
    let id = agent.get("/v1/operations").await.text("/items/0/id");
    agent.post(&format!("/v1/operations/{id}/cancel")).await;
    agent.propose("with-one", &pay("N-1", "V-100", "11")).await.is_executed();
}

#[tokio::test]
async fn a_reference_that_was_paid_is_not_paid_again_in_any_spelling() {
    on_both(async |place| {
        let (_installation, daemon, agent) = ready_at(Installation::at(place)).await;
        agent.propose("first", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
        for (at, spelling) in ["A-1", "a 1", "A/0001", "A-l", "А-１"].into_iter().enumerate() {
            let id = format!("DUP-{at}");
            let amount = format!("{}.00", 20 + at);
            let date = format!("2025-0{}-01", at + 1);
            let again = json!({ "vendor_reference": spelling, "amount": amount, "date": date });
            daemon.put_bill(&id, bill(&again)).await;
            let answer = agent.propose(&id, &pay(&id, "V-100", &amount)).await;
            answer.is_denied(403, "policy", "likely-duplicate-never-paid");
            assert_eq!(answer.text("/facts/duplicate"), "likely", "{spelling}");
            assert_eq!(attention_of(&agent, &id).await, ["possible_duplicate"]);
            daemon.put_bill(&id, json!({ "state": "cancelled" })).await;
        }
        // Another reference, or the same one of another vendor.
        daemon.put_bill("OTHER", bill(&json!({ "vendor_reference": "A-10" }))).await;
        agent.propose("other", &pay("OTHER", "V-100", "10.00")).await.is_executed();
        let globex = json!({ "vendor": "V-200", "vendor_reference": "A-1", "amount": "11.00" });
        daemon.put_bill("GLOBEX", bill(&globex)).await;
        agent.propose("globex", &pay("GLOBEX", "V-200", "11.00")).await.is_executed();
        assert_eq!(daemon.payments().await.len(), 3);
    })
    .await;
}

#[tokio::test]
async fn of_two_bills_with_one_reference_neither_is_paid_until_one_is_withdrawn() {
    let (_installation, daemon, agent) = ready().await;
    daemon.put_bill("TWIN", bill(&json!({ "vendor_reference": "A 1" }))).await;
    for (key, id, amount) in [("a", "INV-1", "1200.00"), ("b", "TWIN", "10.00")] {
        let answer = agent.propose(key, &pay(id, "V-100", amount)).await;
        answer.is_denied(403, "policy", "likely-duplicate-never-paid");
        assert_eq!(attention_of(&agent, id).await, ["possible_duplicate"]);
    }
    // A draft is no bill yet.
    for state in ["draft", "cancelled"] {
        daemon.put_bill("TWIN", json!({ "state": state })).await;
        assert_eq!(attention_of(&agent, "INV-1").await, Vec::<String>::new());
    }
    agent.propose("c", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    daemon.put_bill("TWIN", json!({ "state": "open" })).await;
    let answer = agent.propose("d", &pay("TWIN", "V-100", "10.00")).await;
    answer.is_denied(403, "policy", "likely-duplicate-never-paid");
}

#[tokio::test]
async fn what_we_paid_counts_as_it_was_whatever_became_of_the_bill() {
    on_both(async |place| {
        let (_installation, daemon, agent) = ready_at(Installation::at(place)).await;
        daemon.put_bill("PAID", bill(&json!({}))).await;
        agent.propose("first", &pay("PAID", "V-100", "10.00")).await.is_executed();
        // A clerk hides it, and enters it anew.
        let hidden = json!({
            "vendor_reference": "X-1", "amount": "77.00", "date": "2020-01-01", "state": "cancelled",
        });
        daemon.put_bill("PAID", hidden).await;
        daemon.put_bill("ANEW", bill(&json!({ "vendor_reference": "a9", "amount": "12.00" }))).await;
        let answer = agent.propose("again", &pay("ANEW", "V-100", "12.00")).await;
        answer.is_denied(403, "policy", "likely-duplicate-never-paid");
        assert!(attention_of(&agent, "ANEW").await.contains(&"possible_duplicate".to_owned()));
        // Without its reference the same total some days later is similar; six days later it is not.
        let similar = json!({ "vendor_reference": "B-1", "date": "2026-01-20" });
        daemon.put_bill("ANEW", json!({ "state": "cancelled" })).await;
        daemon.put_bill("LATER", bill(&similar)).await;
        let answer = agent.propose("later", &pay("LATER", "V-100", "10.00")).await;
        let reasons = ["open-credit-needs-four-eyes", "similar-bill-needs-four-eyes"];
        waits(&answer, "four_eyes", &reasons);
        assert_eq!(answer.text("/facts/duplicate"), "similar");
        cancel(&agent, &answer).await;
        daemon.put_bill("LATER", json!({ "date": "2026-01-21" })).await;
        let answer = agent.propose("day-six", &pay("LATER", "V-100", "10.00")).await;
        waits(&answer, "four_eyes", &["open-credit-needs-four-eyes"]);
        assert_eq!(answer.text("/facts/duplicate"), "none");
    })
    .await;
}

#[tokio::test]
async fn the_same_total_days_apart_needs_a_second_person() {
    let (_installation, daemon, agent) = ready().await;
    daemon.put_bill("S-1", bill(&json!({ "vendor_reference": "S-1" }))).await;
    let near = json!({ "vendor_reference": "S-2", "date": "2026-01-10" });
    daemon.put_bill("S-2", bill(&near)).await;
    let answer = agent.propose("a", &pay("S-1", "V-100", "10.00")).await;
    waits(&answer, "four_eyes", &["similar-bill-needs-four-eyes"]);
    assert_eq!(attention_of(&agent, "S-1").await, ["possible_duplicate"]);
    cancel(&agent, &answer).await;
    for other in
        [json!({ "date": "2026-01-09" }), json!({ "date": "2026-01-15", "amount": "10.01" })]
    {
        daemon.put_bill("S-2", other).await;
        assert_eq!(attention_of(&agent, "S-1").await, Vec::<String>::new());
    }
    agent.propose("b", &pay("S-1", "V-100", "10.00")).await.is_executed();
}

#[tokio::test]
async fn a_payment_that_failed_is_no_precedent_and_an_unknown_one_is() {
    let (_installation, daemon, agent) = ready().await;
    daemon.put_bill("FIRST", bill(&json!({}))).await;
    daemon.put_bill("SECOND", bill(&json!({ "amount": "11.00", "state": "draft" }))).await;
    daemon.fault("register_payment", "refuse", 1).await;
    let failed = agent.propose("a", &pay("FIRST", "V-100", "10.00")).await;
    assert_eq!(failed.text("/status"), "failed", "{}", failed.json);
    daemon.put_bill("FIRST", json!({ "state": "cancelled" })).await;
    daemon.put_bill("SECOND", json!({ "state": "open" })).await;
    daemon.fault("register_payment", "lost_answer", 1).await;
    daemon.fault("find_payment", "unreachable", 1000).await;
    let unknown = agent.propose("b", &pay("SECOND", "V-100", "11.00")).await;
    assert_eq!(unknown.text("/status"), "unknown", "{}", unknown.json);
    daemon.put_bill("SECOND", json!({ "vendor_reference": "hidden" })).await;
    daemon.put_bill("THIRD", bill(&json!({ "amount": "12.00" }))).await;
    let answer = agent.propose("c", &pay("THIRD", "V-100", "12.00")).await;
    answer.is_denied(403, "policy", "likely-duplicate-never-paid");
}

#[tokio::test]
async fn open_credit_of_the_vendor_needs_a_second_person_until_it_is_used_up() {
    let (_installation, daemon, agent) = ready().await;
    let note = json!({ "vendor": "V-100", "amount": "30.00", "kind": "credit_note" });
    daemon.put_bill("CN-1", note).await;
    let answer = agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await;
    waits(&answer, "four_eyes", &["open-credit-needs-four-eyes"]);
    assert_eq!(answer.json["facts"]["vendor_unapplied"], true);
    assert_eq!(attention_of(&agent, "INV-1").await, ["open_credit"]);
    assert_eq!(attention_of(&agent, "INV-2").await, Vec::<String>::new());
    cancel(&agent, &answer).await;
    // Of another vendor it is no matter.
    agent.propose("b", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    daemon.put_bill("CN-1", json!({ "paid": "30.00" })).await;
    // What somebody paid by hand beyond a bill is owed back too.
    daemon.put_bill("OVER", bill(&json!({}))).await;
    daemon.pay_by_hand("OVER", "10.01").await;
    let answer = agent.propose("c", &pay("INV-1", "V-100", "1200.00")).await;
    waits(&answer, "four_eyes", &["open-credit-needs-four-eyes"]);
    cancel(&agent, &answer).await;
    daemon.put_bill("OVER", json!({ "paid": "10.00" })).await;
    agent.propose("d", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
}

#[tokio::test]
async fn what_the_erp_does_not_tell_is_no_fact() {
    let scene = Scene::new().await;
    let silent = || ReadError::Unavailable { reason: "asleep".to_owned() };
    scene.bends.beside.set(move |answer| *answer = Err(silent()));
    let denied = scene.propose("a", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!((denied.status, denied.decision.stage), (Status::Denied, Stage::Error));
    assert_eq!(denied.decision.reasons, ["fact_unavailable"]);
    for fact in ["duplicate", "shared_with", "vendor_unapplied"] {
        assert!(denied.decision.detail.contains(fact), "{}", denied.decision.detail);
    }
    // More than could be looked at is not `none`.
    scene.bends.beside.set(|answer| {
        let answer = answer.as_mut().unwrap();
        answer.cut.insert(BillId::new("INV-1").unwrap());
    });
    let denied = scene.propose("b", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(denied.decision.reasons, ["fact_unavailable"]);
    assert!(denied.decision.detail.contains("`duplicate`"), "{}", denied.decision.detail);
    let (page, _) = scene.pack.bills(&company(), &open_bills(), Eyes::Agent).await.unwrap();
    let cut: Vec<&str> = page
        .iter()
        .filter(|bill| bill.attention.contains(&Attention::PossibleDuplicate))
        .map(|bill| bill.invoice_ref.as_str())
        .collect();
    assert_eq!(cut, ["INV-1"]);
    assert_eq!(scene.bends.sent(), 0);
    scene.close().await;
}

#[tokio::test]
async fn what_appears_beside_a_bill_after_the_claim_is_seen_before_the_order() {
    let scene = Scene::new().await;
    scene.bends.beside.set_after_first(|answer| {
        let answer = answer.as_mut().unwrap();
        let mut twin =
            answer.documents.iter().find(|bill| bill.id.as_str() == "INV-1").unwrap().clone();
        twin.id = BillId::new("TWIN").unwrap();
        answer.documents.push(twin);
    });
    let denied = scene.propose("a", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(denied.decision.reasons, ["likely-duplicate-never-paid"], "{:?}", denied.decision);
    scene.bends.beside.set_after_first(|answer| {
        answer.as_mut().unwrap().with_credit.insert(VendorId::new("V-100").unwrap());
    });
    let waits = scene.propose("b", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!((waits.status, waits.level), (Status::Pending, Level::FourEyes));
    assert_eq!(scene.bends.sent(), 0);
    scene.close().await;
}

#[tokio::test]
async fn a_whole_list_of_bills_is_looked_beside_in_one_call() {
    let bill = |at: usize| {
        format!(
            "[company.blue-sparrow.bill.L-{at:03}]\nvendor = \"V-100\"\n\
             vendor_reference = \"L-{}\"\namount = \"{}.00\"\n",
            at % 150,
            at + 1
        )
    };
    let bills: String = (0..300).map(bill).collect();
    let world = WORLD.replacen("[company.red-fox]", &format!("{bills}[company.red-fox]"), 1);
    let scene = Scene::of(Installation::with(&world, "sqlite://countersign.db", "")).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    scene.bends.beside.set(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let filter = BillFilter { limit: 200, ..open_bills() };
    let (page, _) = scene.pack.bills(&company(), &filter, Eyes::Agent).await.unwrap();
    assert_eq!((page.len(), calls.load(Ordering::SeqCst)), (200, 1));
    let suspicious = |bill: &&BillView| bill.attention == [Attention::PossibleDuplicate];
    assert_eq!(page.iter().filter(suspicious).count(), 196, "all but the four usual ones");
    scene.close().await;
}

fn open_bills() -> BillFilter {
    BillFilter { state: Some("open".to_owned()), limit: 50, ..BillFilter::default() }
}

#[tokio::test]
async fn what_another_company_holds_makes_nothing_suspicious() {
    let (_installation, daemon, agent) = ready().await;
    // The same vendor's id, account, reference and total in the other company.
    let other = |path: &str| format!("{}/sandbox/companies/red-fox/{path}", daemon.base);
    let put = async |path: &str, body: Value| {
        let answer = crate::daemon::http().put(other(path)).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}");
    };
    put("vendors/V-100", json!({ "name": "ACME SAS", "iban": ACME })).await;
    let twin = json!({ "vendor": "V-100", "vendor_reference": "A-1", "amount": "1200.00" });
    put("bills/INV-1", twin).await;
    let note = json!({ "vendor": "V-100", "amount": "5.00", "kind": "credit_note" });
    put("bills/CN-1", note).await;
    assert_eq!(attention_of(&agent, "INV-1").await, Vec::<String>::new());
    agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    assert_eq!(daemon.payments().await.len(), 1);
}
