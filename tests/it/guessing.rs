//! What a masked number hides is not found out by asking (I8).

use serde_json::{Value, json};

use crate::bank::{Bank, NEW, change};
use crate::daemon::{ACME, Agent, Daemon, GLOBEX, Installation, pay, pay_to};
use crate::support::{Place, on_both};

/// Accounts that belong to nobody, and not to ACME.
const WRONG: [&str; 3] = [NEW, "DE85999999991000000014", "BE68539007547034"];

async fn strict(place: &Place) -> (Installation, Daemon) {
    let installation = Installation::at(place);
    let file = installation.path("countersign.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let few = text.replace("wrong_accounts_per_day = 100000", "wrong_accounts_per_day = 3");
    assert_ne!(few, text);
    std::fs::write(&file, few).unwrap();
    installation.add_principal();
    let daemon = installation.start().await;
    (installation, daemon)
}

fn to(account: &str) -> Value {
    pay_to("INV-1", &json!(account), "1200.00")
}

async fn guesses(agent: &Agent) {
    for wrong in WRONG {
        agent.propose(wrong, &to(wrong)).await.is_denied(403, "provenance", "payee_not_on_file");
    }
}

#[tokio::test]
async fn an_agent_that_guesses_accounts_is_answered_no_more_for_a_day() {
    on_both(async |place| {
        let (installation, daemon) = strict(place).await;
        let agent = daemon.agent(&installation.mandate(&[]));
        guesses(&agent).await;
        for (key, account) in [("right", ACME), ("wrong", GLOBEX)] {
            let told = agent.propose(key, &to(account)).await;
            told.is_denied(403, "provenance", "too_many_guesses");
        }
        // Another mandate of the same agent's is no way around it.
        let again = daemon.agent(&installation.mandate(&[]));
        again.propose("again", &to(ACME)).await.is_denied(403, "provenance", "too_many_guesses");
        // The company's own account is not found out either.
        let mut from = pay("INV-1", "V-100", "1200.00");
        from["args"]["source_account"] = json!("FR1420041010050500013M02606");
        agent.propose("from", &from).await.is_denied(403, "provenance", "too_many_guesses");
        daemon.advance("25h").await;
        let later = daemon.agent(&installation.mandate(&[]));
        later.propose("later", &to(ACME)).await.is_executed();
    })
    .await;
}

#[tokio::test]
async fn a_bill_is_paid_by_reference_whatever_was_guessed_and_by_whom() {
    on_both(async |place| {
        let (installation, daemon) = strict(place).await;
        let agent = daemon.agent(&installation.mandate(&[]));
        // What was prepared before is not undone by what is guessed after it.
        let mut first = to(ACME);
        first["mode"] = json!("prepare");
        let prepared = agent.propose("first", &first).await;
        assert_eq!(prepared.text("/status"), "prepared", "{}", prepared.json);
        guesses(&agent).await;
        let path = format!("/v1/operations/{}/commit", prepared.text("/id"));
        agent.post_json(&path, &json!({})).await.is_executed();
        agent.propose("ref", &pay("INV-2", "V-200", "340.00")).await.is_executed();
        let other = installation.mandate_of("marie", "other-agent", "blue-sparrow", SOURCE, &[]);
        let other = daemon.agent(&other);
        let third = pay_to("INV-3", &json!(ACME), "100.00");
        let told = other.propose("third", &third).await;
        assert_ne!(told.text("/decision/stage"), "provenance", "{}", told.json);
    })
    .await;
}

/// The account of the journal that the mandates are for.
const SOURCE: &str = "FR1420041010050500013M02606";

#[tokio::test]
async fn whether_an_account_is_on_file_already_is_told_only_after_a_call() {
    let bank = Bank::new().await;
    for (key, account) in [("on-file", ACME), ("not", NEW)] {
        let told = bank.agent.propose(key, &change("V-100", account)).await;
        told.is_denied(403, "policy", "bank-change-needs-callback");
        assert_eq!(told.reasons(), ["bank-change-needs-callback"], "{}", told.json);
    }
    bank.called(ACME).await;
    bank.ask("called", ACME).await.is_denied(403, "policy", "account_on_file");
}
