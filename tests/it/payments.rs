//! Paying bills through a running daemon: honest ones once, and nothing else.

use serde_json::json;

use crate::daemon::{
    ACME, Agent, COMPANY, Daemon, FOX_SOURCE, GLOBEX, Installation, NOBODYS, SOURCE, pay, pay_to,
};
use crate::support::on_both;

/// The usual installation with a daemon and an agent of marie's.
async fn ready() -> (Installation, Daemon, Agent) {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    (installation, daemon, agent)
}

fn acme_paid() -> Vec<(String, String, String)> {
    vec![("INV-1".to_owned(), ACME.to_owned(), "1200.00".to_owned())]
}

#[tokio::test]
async fn an_honest_bill_is_paid_once_and_leaves_two_receipts() {
    on_both(async |place| {
        let installation = Installation::at(place);
        installation.add_principal();
        let token = installation.mandate(&["--budget", "5000.00", "--max-calls", "3"]);
        let daemon = installation.start().await;
        let agent = daemon.agent(&token);
        let paid = agent.propose("k1", &pay("INV-1", "V-100", "1200.00")).await;
        paid.is_executed();
        assert_eq!(paid.text("/decision/effect"), "allow");
        assert_eq!(paid.text("/params/payee_iban/value"), "FR76…0189");
        assert_eq!(paid.text("/params/payee_iban/origin"), "system_of_record");
        assert_eq!(paid.text("/params/source_account/origin"), "mandate");
        assert_eq!(paid.text("/result/amount"), "1200.00");
        assert_eq!(paid.text("/result/bill_state"), "paid");
        assert_eq!(paid.text("/result/amount_due"), "0.00");
        assert_eq!(daemon.payments().await, acme_paid());
        let mandate = agent.get("/v1/mandates/current").await;
        assert_eq!(mandate.text("/budget/left"), "3800.00");
        let export = installation.ok(&["receipts", "export"], "");
        for kind in ["decision", "claim", "outcome"] {
            assert!(
                export.contains(&format!("\\\"kind\\\":\\\"{kind}\\\"")),
                "no `{kind}`: {export}"
            );
        }
        daemon.stop();
        let verified = installation.ok(&["receipts", "verify"], "");
        assert!(verified.contains("the kept checkpoint is in it"), "{verified}");
    })
    .await;
}

#[tokio::test]
async fn the_same_key_answers_the_same_operation() {
    let (_installation, daemon, agent) = ready().await;
    let first = agent.propose("k1", &pay("INV-1", "V-100", "1200.00")).await;
    let again = agent.propose("k1", &pay("INV-1", "V-100", "1200.00")).await;
    again.is_executed();
    assert_eq!(first.text("/id"), again.text("/id"));
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let other = agent.propose("k1", &pay("INV-2", "V-200", "340.00")).await;
    assert_eq!(
        (other.status.as_u16(), other.text("/code").as_str()),
        (409, "idempotency_key_reused")
    );
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn a_second_try_is_refused_as_already_paid() {
    let (_installation, daemon, agent) = ready().await;
    agent.propose("k1", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    let second = agent.propose("k2", &pay("INV-1", "V-100", "1200.00")).await;
    second.is_denied(403, "execution", "already_paid");
    // Even when somebody reopens the bill in the ERP.
    daemon.put_bill("INV-1", json!({ "state": "open", "paid": "0.00" })).await;
    let reopened = agent.propose("k3", &pay("INV-1", "V-100", "1200.00")).await;
    reopened.is_denied(403, "execution", "already_paid");
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn a_forged_total_does_not_get_a_second_payment() {
    let (_installation, daemon, agent) = ready().await;
    agent.propose("k1", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    daemon
        .put_bill("INV-1", json!({ "state": "open", "amount": "2400.00", "paid": "1200.00" }))
        .await;
    let more = agent.propose("k2", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(
        (more.status.as_u16(), more.text("/status").as_str()),
        (403, "denied"),
        "{}",
        more.json
    );
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn eight_agents_on_one_bill_give_one_payment() {
    on_both(async |place| {
        let installation = Installation::at(place);
        installation.add_principal();
        let tokens: Vec<String> = (0..8)
            .map(|at| {
                installation.mandate_of("marie", &format!("agent-{at}"), COMPANY, SOURCE, &[])
            })
            .collect();
        let daemon = installation.start().await;
        let mut calls = tokio::task::JoinSet::new();
        for token in tokens {
            let agent = daemon.agent(&token);
            calls.spawn(async move { agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await });
        }
        let answers = calls.join_all().await;
        let executed = answers.iter().filter(|answer| answer.text("/status") == "executed").count();
        assert_eq!(executed, 1, "{answers:?}");
        for answer in answers.iter().filter(|answer| answer.text("/status") != "executed") {
            assert_eq!(answer.text("/decision/stage"), "execution", "{answer:?}");
        }
        assert_eq!(daemon.payments().await, acme_paid());
    })
    .await;
}

#[tokio::test]
async fn the_payee_is_the_bills_own_vendor_or_nobody() {
    let (_installation, daemon, agent) = ready().await;
    for (key, payee) in [
        ("a", json!(NOBODYS)),
        ("b", json!(GLOBEX)),
        ("c", json!(SOURCE)),
        ("d", json!({ "ref": "V-200" })),
        ("e", json!({ "ref": "V-999" })),
    ] {
        let answer = agent.propose(key, &pay_to("INV-1", &payee, "1200.00")).await;
        answer.is_denied(403, "provenance", "payee_not_on_file");
    }
    // Any accepted spelling of the record's own number is the record.
    let spelled = json!("fr76 3000 6000 0112 3456 7890 189");
    agent.propose("f", &pay_to("INV-1", &spelled, "1200.00")).await.is_executed();
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn another_companys_bill_is_as_good_as_none() {
    let (installation, daemon, agent) = ready().await;
    let foreign = agent.propose("a", &pay("FOX-1", "F-1", "50.00")).await;
    let missing = agent.propose("b", &pay("INV-999", "V-1", "50.00")).await;
    foreign.is_denied(403, "provenance", "bill_not_found");
    missing.is_denied(403, "provenance", "bill_not_found");
    assert_eq!(foreign.text("/decision/detail"), missing.text("/decision/detail"));
    assert!(!foreign.json.to_string().contains("Umbrella"));
    let (bill, none) = (agent.get("/v1/bills/FOX-1").await, agent.get("/v1/bills/INV-999").await);
    assert_eq!((bill.status.as_u16(), &bill.json["code"]), (404, &none.json["code"]));
    installation.add_user("renard", "accountant", "red-fox");
    let token = installation.mandate_of("renard", "ap-agent", "red-fox", FOX_SOURCE, &[]);
    let fox = daemon.agent(&token);
    let own = fox.propose("a", &pay("FOX-1", "F-1", "50.00")).await;
    own.is_executed();
    let id = own.text("/id");
    let other = agent.get(&format!("/v1/operations/{id}")).await;
    let nobodys = agent.get("/v1/operations/op_00000000000000000000000000000000").await;
    assert_eq!(other.status.as_u16(), 404);
    assert_eq!(other.json["detail"], nobodys.json["detail"]);
    assert!(!agent.get("/v1/operations").await.json.to_string().contains(&id));
}

#[tokio::test]
async fn amounts_stay_within_bill_budget_and_calls() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&["--budget", "1300.00"]);
    let one_call = installation.mandate_of("marie", "once", COMPANY, SOURCE, &["--max-calls", "1"]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    let over = agent.propose("a", &pay("INV-1", "V-100", "1200.01")).await;
    over.is_denied(403, "policy", "amount-within-residual");
    agent.propose("b", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    let budget = agent.propose("c", &pay("INV-2", "V-200", "340.00")).await;
    budget.is_denied(403, "budget", "budget_exceeded");
    let once = daemon.agent(&one_call);
    once.propose("a", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    let calls = once.propose("b", &pay("INV-3", "V-100", "8000.00")).await;
    calls.is_denied(403, "budget", "calls_exceeded");
}

#[tokio::test]
async fn what_needs_a_human_waits_and_can_be_withdrawn() {
    let (_installation, daemon, agent) = ready().await;
    let large = agent.propose("a", &pay("INV-3", "V-100", "8000.00")).await;
    assert_eq!(
        (large.status.as_u16(), large.text("/status").as_str()),
        (202, "pending"),
        "{}",
        large.json
    );
    assert_eq!(large.text("/approval/level"), "step_up");
    assert_eq!(large.reasons(), ["large-amount-needs-step-up"]);
    let other = agent.propose("b", &pay("INV-3", "V-100", "8000.00")).await;
    other.is_denied(403, "execution", "operation_in_progress");
    assert!(other.text("/decision/detail").contains(&large.text("/id")));
    let cancelled = agent.post(&format!("/v1/operations/{}/cancel", large.text("/id"))).await;
    assert_eq!((cancelled.status.as_u16(), cancelled.text("/status").as_str()), (200, "cancelled"));
    let partial = agent.propose("c", &pay("INV-1", "V-100", "100.00")).await;
    assert_eq!(partial.text("/approval/level"), "four_eyes");
    assert_eq!(partial.text("/params/amount/origin"), "bounded_by_system_of_record");
    let hard = agent.propose("d", &pay("INV-4", "V-100", "90000.00")).await;
    hard.is_denied(403, "policy", "amount-above-hard-limit");
    daemon.advance("73h").await;
    let id = partial.text("/id");
    daemon
        .until("expired", async || {
            agent.get(&format!("/v1/operations/{id}")).await.text("/status") == "expired"
        })
        .await;
    assert!(daemon.payments().await.is_empty());
}

#[tokio::test]
async fn an_account_that_changed_behind_our_back_pays_nothing() {
    let (_installation, daemon, agent) = ready().await;
    daemon.put_vop("ACME SAS", NOBODYS, "match").await;
    daemon.put_vendor("V-100", json!({ "iban": NOBODYS })).await;
    let changed = agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await;
    changed.is_denied(403, "policy", "account-changed-in-erp-never-paid");
    // Editing it back does not help.
    daemon.put_vendor("V-100", json!({ "iban": ACME })).await;
    let back = agent.propose("b", &pay("INV-1", "V-100", "1200.00")).await;
    back.is_denied(403, "policy", "account-changed-in-erp-never-paid");
    assert!(daemon.payments().await.is_empty());
}

#[tokio::test]
async fn a_vendor_first_seen_later_needs_four_eyes() {
    let (_installation, daemon, agent) = ready().await;
    daemon.put_vop("Newcomer", NOBODYS, "match").await;
    let newcomer = json!({ "name": "Newcomer", "iban": NOBODYS, "iban_age_days": 900 });
    daemon.put_vendor("V-300", newcomer).await;
    let bill = json!({ "vendor": "V-300", "amount": "10.00", "currency": "EUR", "due": "2099-12-31", "state": "open" });
    daemon.put_bill("INV-9", bill).await;
    let answer = agent.propose("a", &pay("INV-9", "V-300", "10.00")).await;
    assert_eq!(answer.text("/status"), "pending", "{}", answer.json);
    assert_eq!(answer.text("/approval/level"), "four_eyes");
    assert_eq!(answer.text("/facts/bank_status"), "unverified");
    assert_eq!(answer.json["facts"]["iban_age_days"], 0);
}

#[tokio::test]
async fn an_unverified_account_beside_another_is_not_paid_even_where_the_bill_names_it() {
    let (_installation, daemon, agent) = ready().await;
    daemon.put_vop("Newcomer", NOBODYS, "match").await;
    let accounts = json!([{ "iban": NOBODYS }, { "iban": "BE62510007547061" }]);
    daemon.put_vendor("V-300", json!({ "name": "Newcomer", "accounts": accounts })).await;
    let bill = json!({ "vendor": "V-300", "amount": "10.00", "payee_iban": NOBODYS });
    daemon.put_bill("INV-9", bill).await;
    let answer = agent.propose("a", &pay("INV-9", "V-300", "10.00")).await;
    answer.is_denied(403, "policy", "ambiguous-account-never-paid");
}

#[tokio::test]
async fn payee_checks_decide() {
    let (_installation, daemon, agent) = ready().await;
    daemon.put_vop("ACME SAS", ACME, "no_match").await;
    let no = agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await;
    no.is_denied(403, "policy", "vop-no-match-never-paid");
    daemon.fault("vop", "unreachable", 1).await;
    let silent = agent.propose("b", &pay("INV-1", "V-100", "1200.00")).await;
    silent.is_denied(503, "error", "fact_unavailable");
    daemon.put_vop("ACME SAS", ACME, "match").await;
    // A denial at `error` binds nothing: the same key decides anew, on the same operation.
    daemon.put_sanctions(ACME, true).await;
    let listed = agent.propose("b", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(listed.text("/id"), silent.text("/id"));
    listed.is_denied(403, "policy", "sanctioned-payee-never-paid");
    daemon.put_sanctions(ACME, false).await;
    daemon.fault("read", "unreachable", 1).await;
    let down = agent.propose("c", &pay("INV-1", "V-100", "1200.00")).await;
    down.is_denied(503, "error", "erp_unavailable");
    agent.propose("c", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
}

#[tokio::test]
async fn a_revoked_mandate_and_a_disabled_principal_are_shut_out() {
    let (installation, daemon, agent) = ready().await;
    let waiting = agent.propose("a", &pay("INV-3", "V-100", "8000.00")).await;
    assert_eq!(waiting.text("/status"), "pending");
    let list = installation.ok(&["mandate", "list"], "");
    let id = list.split_whitespace().find(|word| word.starts_with("md_")).unwrap().to_owned();
    installation.ok(&["mandate", "revoke", &id], "");
    let shut = agent.propose("b", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(shut.status.as_u16(), 401);
    let fresh = daemon.agent(&installation.mandate(&[]));
    let was = fresh.get(&format!("/v1/operations/{}", waiting.text("/id"))).await;
    assert_eq!(was.text("/status"), "cancelled");
    installation.ok(&["user", "disable", "marie"], "");
    let disabled = fresh.propose("c", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(disabled.status.as_u16(), 401);
    assert!(daemon.payments().await.is_empty());
}

#[tokio::test]
async fn a_freeze_stops_at_once() {
    let (installation, daemon, agent) = ready().await;
    let freeze = installation.ok(
        &["freeze", "add", "--company", COMPANY, "--vendor", "V-100", "--reason", "a call"],
        "",
    );
    let frozen = agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await;
    frozen.is_denied(403, "execution", "frozen");
    agent.propose("b", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    installation.ok(&["freeze", "remove", &freeze, "--reason", "cleared"], "");
    agent.propose("c", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    assert_eq!(daemon.payments().await.len(), 2);
    // Of a company all vendors, of everything all companies.
    installation.add_user("renard", "accountant", "red-fox");
    let fox = installation.mandate_of("renard", "ap-agent", "red-fox", FOX_SOURCE, &[]);
    let fox = daemon.agent(&fox);
    installation.ok(&["freeze", "add", "--company", COMPANY, "--reason", "a call"], "");
    let frozen = agent.propose("d", &pay("INV-3", "V-100", "8000.00")).await;
    frozen.is_denied(403, "execution", "frozen");
    let all = installation.ok(&["freeze", "add", "--reason", "a call"], "");
    let frozen = fox.propose("a", &pay("FOX-1", "F-1", "50.00")).await;
    frozen.is_denied(403, "execution", "frozen");
    installation.ok(&["freeze", "remove", &all, "--reason", "cleared"], "");
    fox.propose("b", &pay("FOX-1", "F-1", "50.00")).await.is_executed();
}

#[tokio::test]
async fn a_credit_note_is_no_bill() {
    let (_installation, daemon, agent) = ready().await;
    let note = json!({ "vendor": "V-100", "amount": "10.00", "kind": "credit_note" });
    daemon.put_bill("CN-1", note).await;
    assert_eq!(agent.get("/v1/bills/CN-1").await.status.as_u16(), 404);
    assert!(!agent.get("/v1/bills").await.json.to_string().contains("CN-1"));
    let paid = agent.propose("a", &pay("CN-1", "V-100", "10.00")).await;
    paid.is_denied(403, "policy", "bill-must-be-open");
}

#[tokio::test]
async fn a_prepared_payment_books_nothing_until_its_commit() {
    let (_installation, daemon, agent) = ready().await;
    let mut proposal = pay("INV-1", "V-100", "1200.00");
    proposal["mode"] = json!("prepare");
    let prepared = agent.propose("a", &proposal).await;
    assert_eq!((prepared.status.as_u16(), prepared.text("/status").as_str()), (200, "prepared"));
    assert!(daemon.payments().await.is_empty());
    let commit = format!("/v1/operations/{}/commit", prepared.text("/id"));
    agent.post(&commit).await.is_executed();
    agent.post(&commit).await.is_executed();
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn what_was_paid_by_hand_is_not_paid_again() {
    let (_installation, daemon, agent) = ready().await;
    daemon.pay_by_hand("INV-1", "1000.00").await;
    let whole = agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await;
    whole.is_denied(403, "policy", "amount-within-residual");
    daemon.pay_by_hand("INV-1", "200.00").await;
    let rest = agent.propose("b", &pay("INV-1", "V-100", "200.00")).await;
    rest.is_denied(403, "policy", "bill-must-be-open");
    assert_eq!(daemon.bill("INV-1").await["state"], "paid");
}

#[tokio::test]
async fn a_commit_that_meets_an_error_can_be_sent_again() {
    let (_installation, daemon, agent) = ready().await;
    let mut proposal = pay("INV-1", "V-100", "1200.00");
    proposal["mode"] = json!("prepare");
    let prepared = agent.propose("a", &proposal).await;
    let commit = format!("/v1/operations/{}/commit", prepared.text("/id"));
    daemon.fault("read", "unreachable", 1).await;
    let failed = agent.post(&commit).await;
    assert_eq!((failed.status.as_u16(), failed.text("/status").as_str()), (503, "prepared"));
    assert_eq!(failed.reasons(), ["erp_unavailable"]);
    agent.post(&commit).await.is_executed();
    assert_eq!(daemon.payments().await, acme_paid());
}

#[tokio::test]
async fn what_is_refused_for_its_form_is_not_kept_whole() {
    let (installation, daemon, agent) = ready().await;
    let long = "x".repeat(60_000);
    let mut proposal = pay("INV-1", "V-100", "1.00");
    proposal["args"]["invoice_ref"] = json!(long);
    agent.propose("k", &proposal).await.is_denied(422, "contract", "invalid_args");
    // The key is bound all the same, by the digest of what was sent.
    let again = agent.propose("k", &proposal).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    proposal["args"]["invoice_ref"] = json!(long + "x");
    agent.propose("k", &proposal).await.is_problem(409, "idempotency_key_reused");
    let export = installation.ok(&["receipts", "export"], "");
    assert!(!export.contains(&"x".repeat(3000)), "the ledger grows by what is refused");
    daemon.stop();
}
