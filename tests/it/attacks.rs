//! Each invariant attacked from outside: by a policy that permits everything, by policies that fail,
//! by parallel calls, by foreign keys. Hostile input stands in `hostile`.

use std::fs;

use serde_json::json;

use crate::daemon::{
    ACME, Agent, Daemon, GLOBEX, Installation, NOBODYS, SOURCE, WORLD, pay, pay_to,
};
use crate::support::on_both;

/// A policy set that permits everything, on the same schema.
pub(crate) fn permit_everything(installation: &Installation, more: &str) {
    let folder = installation.path("policies");
    fs::create_dir(&folder).unwrap();
    let schema = include_str!("../../policies/schema.cedarschema");
    fs::write(folder.join("schema.cedarschema"), schema).unwrap();
    let all =
        "@id(\"everything\")\n@reason(\"anything goes\")\npermit (principal, action, resource);\n";
    fs::write(folder.join("all.cedar"), format!("{all}{more}")).unwrap();
    let file = installation.path("countersign.toml");
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().map(|line| {
        if line.ends_with("policies\"") { "dir = \"policies\"".to_owned() } else { line.to_owned() }
    });
    fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
}

async fn permissive(more: &str) -> (Installation, Daemon, Agent) {
    let installation = Installation::new();
    permit_everything(&installation, more);
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    (installation, daemon, agent)
}

#[tokio::test]
async fn the_floor_holds_under_a_policy_that_permits_everything() {
    let (_installation, daemon, agent) = permissive("").await;
    let try_it = async |key: &str, amount: &str, reason: &str| {
        let answer = agent.propose(key, &pay("INV-1", "V-100", amount)).await;
        answer.is_denied(403, "policy", reason);
    };
    try_it("residual", "1200.01", "floor_over_residual").await;
    daemon.put_vop("ACME SAS", ACME, "no_match").await;
    try_it("vop", "1200.00", "floor_vop_no_match").await;
    daemon.put_vop("ACME SAS", ACME, "match").await;
    daemon.put_sanctions(ACME, true).await;
    try_it("sanctions", "1200.00", "floor_sanctioned").await;
    daemon.put_sanctions(ACME, false).await;
    daemon.put_bill("INV-1", json!({ "state": "draft" })).await;
    try_it("draft", "1200.00", "floor_bill_not_open").await;
    daemon.put_bill("INV-1", json!({ "state": "open" })).await;
    daemon.put_vendor("V-100", json!({ "accounts": [{ "iban": ACME, "allowed": false }] })).await;
    try_it("forbidden", "1200.00", "floor_erp_forbids").await;
    daemon
        .put_vendor("V-100", json!({ "accounts": [{ "iban": ACME }, { "iban": NOBODYS }] }))
        .await;
    let other = agent.propose("several", &pay_to("INV-1", &json!(NOBODYS), "1200.00")).await;
    other.is_denied(403, "policy", "floor_changed_in_erp");
    daemon.put_vendor("V-200", json!({ "iban": SOURCE })).await;
    daemon.put_vop("Globex", SOURCE, "match").await;
    let own = agent.propose("own", &pay("INV-2", "V-200", "340.00")).await;
    own.is_denied(403, "policy", "floor_own_account");
    assert!(daemon.payments().await.is_empty());
}

#[tokio::test]
async fn of_several_accounts_only_the_one_that_the_bill_names_is_paid() {
    let two = format!(
        "accounts = [{{ iban = \"{ACME}\", age_days = 400 }}, {{ iban = \"{NOBODYS}\", age_days = 400 }}]"
    );
    let world = WORLD.replacen(&format!("iban = \"{ACME}\"\niban_age_days = 400"), &two, 1);
    assert_ne!(world, WORLD);
    let installation = Installation::with(&world, "sqlite://countersign.db", "");
    permit_everything(&installation, "");
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    daemon.put_vop("ACME SAS", NOBODYS, "match").await;
    let other = agent.propose("a", &pay_to("INV-1", &json!(NOBODYS), "1200.00")).await;
    other.is_denied(403, "policy", "floor_ambiguous");
    agent.propose("b", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    // Also where that is not the first one.
    daemon.put_bill("INV-3", json!({ "payee_iban": NOBODYS })).await;
    agent.propose("c", &pay("INV-3", "V-100", "8000.00")).await.is_executed();
    let paid = daemon.payments().await;
    let expected = [("INV-1", ACME, "1200.00"), ("INV-3", NOBODYS, "8000.00")];
    assert_eq!(
        paid,
        expected.map(|(bill, to, much)| (bill.to_owned(), to.to_owned(), much.to_owned()))
    );
}

#[tokio::test]
async fn an_archived_account_that_the_bill_names_is_not_replaced_by_the_one_that_is_left() {
    let two = format!(
        "accounts = [{{ iban = \"{ACME}\", age_days = 400 }}, {{ iban = \"{NOBODYS}\", age_days = 400 }}]"
    );
    let world = WORLD.replacen(&format!("iban = \"{ACME}\"\niban_age_days = 400"), &two, 1);
    let installation = Installation::with(&world, "sqlite://countersign.db", "");
    permit_everything(&installation, "");
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    daemon.put_vop("ACME SAS", NOBODYS, "match").await;
    let archived = json!([{ "iban": ACME, "active": false }, { "iban": NOBODYS }]);
    daemon.put_vendor("V-100", json!({ "accounts": archived })).await;
    let left = daemon.agent(&token).propose("a", &pay("INV-1", "V-100", "1200.00")).await;
    left.is_denied(403, "policy", "floor_ambiguous");
    assert!(daemon.payments().await.is_empty());
}

#[tokio::test]
async fn under_such_a_policy_an_honest_bill_is_paid() {
    let (_installation, daemon, agent) = permissive("").await;
    agent.propose("k", &pay("INV-4", "V-100", "90000.00")).await.is_executed();
    assert_eq!(daemon.payments().await.len(), 1);
}

#[tokio::test]
async fn no_policy_opens_a_change_of_bank_details_without_a_call_back() {
    let (installation, daemon, _) = permissive("").await;
    let agent = daemon.agent(&installation.mandate(&["--scope", "vendor.update_bank_details"]));
    let denied = agent.propose("k", &crate::bank::change("V-100", crate::bank::NEW)).await;
    denied.is_denied(403, "policy", "floor_no_callback");
}

#[tokio::test]
async fn a_forbid_that_fails_to_evaluate_denies() {
    let overflow = "@id(\"overflows\")\n@reason(\"none\")\n\
                    forbid (principal, action == Action::\"invoice.pay\", resource)\n\
                    when { context.amount_e2 * 9223372036854775807 > 0 };\n";
    let (_installation, daemon, agent) = permissive(overflow).await;
    let answer = agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    answer.is_denied(503, "error", "policy_failed");
    assert!(daemon.payments().await.is_empty());
}

fn ten_bills() -> String {
    // Far enough apart that none looks like another.
    let bill = |at: usize| {
        format!(
            "[company.blue-sparrow.bill.TEN-{at}]\nvendor = \"V-100\"\namount = \"100.00\"\n\
             vendor_reference = \"TEN-{at}\"\ndate = \"2025-{:02}-01\"\n\
             currency = \"EUR\"\ndue = \"2099-12-31\"\n",
            at + 1
        )
    };
    let bills: String = (0..10).map(bill).collect();
    WORLD.replace("[company.red-fox]", &format!("{bills}[company.red-fox]"))
}

#[tokio::test]
async fn a_budget_is_not_passed_by_many_at_once() {
    on_both(async |place| {
        let store = if place.is_sqlite() { "sqlite://countersign.db" } else { &place.url };
        let installation = Installation::with(&ten_bills(), store, "");
        installation.add_principal();
        let token = installation.mandate(&["--budget", "350.00"]);
        let daemon = installation.start().await;
        let mut calls = tokio::task::JoinSet::new();
        for at in 0..10 {
            let agent = daemon.agent(&token);
            let proposal = pay(&format!("TEN-{at}"), "V-100", "100.00");
            calls.spawn(async move { agent.propose(&format!("k{at}"), &proposal).await });
        }
        let answers = calls.join_all().await;
        let executed = answers.iter().filter(|answer| answer.text("/status") == "executed").count();
        assert_eq!(executed, 3, "{answers:?}");
        for answer in answers.iter().filter(|answer| answer.text("/status") != "executed") {
            answer.is_denied(403, "budget", "budget_exceeded");
        }
        assert_eq!(daemon.payments().await.len(), 3);
    })
    .await;
}

#[tokio::test]
async fn a_daemon_whose_key_the_erp_does_not_know_pays_nothing() {
    let installation = Installation::new();
    installation.add_principal();
    // The ERP's side knows the first key; this daemon has another one.
    fs::remove_dir_all(installation.path("keys")).unwrap();
    for name in ["countersign.db", "countersign.db-wal", "countersign.db-shm", "checkpoint.txt"] {
        if installation.path(name).exists() {
            fs::remove_file(installation.path(name)).unwrap();
        }
    }
    installation.add_principal();
    let token = installation.mandate(&[]);
    installation.ok(&["vendors", "adopt", "--company", "blue-sparrow"], "");
    let daemon = installation.start_unready(&[]);
    let answer = daemon.agent(&token).propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    answer.is_denied(503, "error", "erp_not_ready");
    assert!(daemon.payments().await.is_empty());
}

#[tokio::test]
async fn a_claim_is_durable_before_the_erp_is_called() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start_to_abort_at("before_send").await;
    daemon.agent(&token).propose_into_the_void("k", &pay("INV-1", "V-100", "1200.00")).await;
    daemon.until_dead().await;
    let export = installation.ok(&["receipts", "export"], "");
    assert!(export.contains("\\\"kind\\\":\\\"claim\\\""), "{export}");
    assert!(!export.contains("\\\"kind\\\":\\\"outcome\\\""), "{export}");
    installation.ok(&["receipts", "verify"], "");
}

#[tokio::test]
async fn a_caller_with_a_mandate_never_sees_a_whole_number_and_neither_does_the_log() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    let mut seen = String::new();
    for (key, proposal) in [
        ("a", pay("INV-1", "V-100", "1200.00")),
        ("b", pay_to("INV-2", &json!(GLOBEX), "340.00")),
        ("c", pay("INV-3", "V-100", "8000.00")),
        ("d", pay_to("INV-4", &json!(NOBODYS), "1.00")),
        ("e", pay_to("INV-4", &json!("FR7630006000011234567890188"), "1.00")),
        ("f", pay("FOX-1", "F-1", "50.00")),
    ] {
        seen += &agent.propose(key, &proposal).await.json.to_string();
    }
    for path in [
        "/v1/bills",
        "/v1/bills/INV-1",
        "/v1/vendors/V-100",
        "/v1/vendors/F-1",
        "/v1/mandates/current",
        "/v1/operations",
    ] {
        seen += &agent.get(path).await.json.to_string();
    }
    seen += &daemon.log();
    assert!(seen.contains("FR76…0189"), "{seen}");
    for whole in [
        ACME,
        GLOBEX,
        SOURCE,
        NOBODYS,
        "FR7630006000011234567890188",
        "GB29NWBK60161331926819",
        &token,
    ] {
        assert!(!seen.contains(whole), "`{whole}` is shown");
    }
    assert!(!seen.contains("Umbrella"), "another company is shown");
}

#[tokio::test]
async fn every_failing_read_is_a_denial_and_nothing_moves() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    for (at, (on, what)) in
        [("read", "unreachable"), ("read", "refuse"), ("vop", "refuse"), ("vop", "unreachable")]
            .into_iter()
            .enumerate()
    {
        daemon.fault(on, what, 1).await;
        let answer = agent.propose(&format!("k{at}"), &pay("INV-1", "V-100", "1200.00")).await;
        assert_eq!(
            (answer.status.as_u16(), answer.text("/decision/stage").as_str()),
            (503, "error")
        );
    }
    assert!(daemon.payments().await.is_empty());
    let missing = Installation::new();
    let text = fs::read_to_string(missing.path("countersign.toml")).unwrap();
    let text = text.replace("/policies\"", "/no-policies\"");
    fs::write(missing.path("countersign.toml"), text).unwrap();
    assert!(missing.refused_start().contains("policy.dir"));
}
