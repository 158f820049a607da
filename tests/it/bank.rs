//! A vendor's bank details change only by procedure: a call-back on a number that was on file before,
//! and a second person (I3, I4). Everything through a running daemon, on the sandbox.

mod beginning;
mod calls;
mod confirming;
mod denied;
mod frozen;
mod requested;
mod restored;
mod watched;

use serde_json::{Value, json};

use crate::daemon::{ACME, Agent, Answer, COMPANY, Daemon, Installation, pay};
use crate::support::{Place, on_both};
use crate::votes::{Office, approve, is_pending, reject};

/// An account that belongs to nobody, in the Netherlands.
pub(crate) const NEW: &str = "NL91ABNA0417164300";
/// The number that the world has on file for V-100.
pub(crate) const PHONE: &str = "+33140000000";

/// A company with its people, where an agent may ask for changes as well.
pub(crate) struct Bank {
    pub(crate) office: Office,
    pub(crate) agent: Agent,
}

impl Bank {
    pub(crate) async fn at(place: &Place) -> Self {
        Self::of(Installation::at(place)).await
    }

    pub(crate) async fn new() -> Self {
        Self::of(Installation::new()).await
    }

    pub(crate) async fn of(installation: Installation) -> Self {
        let office = Office::of(installation).await;
        let token = office.installation.mandate(&["--scope", "vendor.update_bank_details"]);
        let agent = office.daemon.agent(&token);
        office.daemon.put_vop("ACME SAS", NEW, "match").await;
        Self { office, agent }
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        &self.office.daemon
    }

    /// The agent asks for the change.
    pub(crate) async fn ask(&self, key: &str, iban: &str) -> Answer {
        self.agent.propose(key, &change("V-100", iban)).await
    }

    /// anna calls the vendor and hears what she is to hear.
    pub(crate) async fn called(&self, iban: &str) -> Answer {
        let anna = self.daemon().sign_in("anna").await;
        let answer = call(&anna, "V-100", &confirmed(iban)).await;
        assert_eq!(answer.json["counts"], json!(true), "{}", answer.json);
        answer
    }

    /// The account that the ERP has for the vendor.
    pub(crate) async fn account(&self, vendor: &str) -> String {
        let path = format!("/sandbox/companies/{COMPANY}/vendors/{vendor}");
        self.daemon().stranger().get(&path).await.text("/iban")
    }
}

pub(crate) fn change(vendor: &str, iban: &str) -> Value {
    let args = json!({ "vendor_id": vendor, "new_iban": iban, "reason": "they wrote so" });
    json!({ "action": "vendor.update_bank_details", "args": args })
}

pub(crate) fn confirmed(iban: &str) -> Value {
    let tail: String = iban.chars().skip(iban.len() - 6).collect();
    json!({
        "new_iban": iban, "number_dialled": PHONE, "spoke_to": "Ms Martin", "read_back": tail,
        "outcome": "confirmed",
    })
}

pub(crate) async fn call(human: &Agent, vendor: &str, body: &Value) -> Answer {
    human.post_json(&format!("/v1/vendors/{vendor}/callbacks"), body).await
}

pub(crate) async fn history(human: &Agent, vendor: &str) -> Value {
    human.get(&format!("/v1/vendors/{vendor}/bank-history")).await.json
}

pub(crate) async fn alarms(human: &Agent, kind: &str) -> Vec<Value> {
    let answer = human.get("/v1/alarms?limit=200").await;
    let items = answer.json["items"].as_array().cloned().unwrap_or_default();
    items.into_iter().filter(|item| item["kind"] == json!(kind)).collect()
}

#[tokio::test]
async fn without_a_call_back_nothing_changes_and_finance_is_told_once() {
    on_both(async |place| {
        let bank = Bank::at(place).await;
        let denied = bank.ask("k1", NEW).await;
        denied.is_denied(403, "policy", "bank-change-needs-callback");
        assert_eq!(denied.text("/params/new_iban/value"), "NL91…4300");
        assert_eq!(denied.text("/params/new_iban/origin"), "untrusted");
        assert_eq!(bank.account("V-100").await, ACME);
        // Told once for each account, however often the agent asks.
        bank.ask("k2", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
        bank.ask("k3", "BE68539007547034").await;
        let anna = bank.daemon().sign_in("anna").await;
        let told = alarms(&anna, "bank_change_requested").await;
        assert_eq!(told.len(), 2, "{told:?}");
        let detail = told[0]["detail"].as_str().unwrap();
        assert!(detail.contains(PHONE) && detail.contains("on file since"), "{detail}");
        // Who is to hear the account does not read it before.
        assert!(!detail.contains("4300") && detail.contains("NL"), "{detail}");
        let seen = anna.get(&format!("/v1/operations/{}", denied.text("/id"))).await;
        assert_eq!(seen.text("/params/new_iban/value"), "NL…");
        // The bank is asked nothing before somebody called.
        assert_eq!(seen.text("/facts/vop"), "not_asked");
        let export = bank.office.installation.ok(&["receipts", "export"], "");
        let alarm = "\\\"kind\\\":\\\"alarm\\\"";
        assert_eq!(export.matches(alarm).count(), 2, "a receipt for each alarm");
    })
    .await;
}

#[tokio::test]
async fn an_agent_that_asks_for_one_account_after_the_other_does_not_flood_the_alarms() {
    let bank = Bank::new().await;
    for at in 0..12 {
        let bban = format!("99999999{at:010}");
        let whole: u128 = format!("{bban}131400").parse().unwrap();
        let iban = format!("DE{:02}{bban}", 98 - whole % 97);
        let denied = bank.ask(&format!("k{at}"), &iban).await;
        denied.is_denied(403, "policy", "bank-change-needs-callback");
    }
    let anna = bank.daemon().sign_in("anna").await;
    let told = alarms(&anna, "bank_change_requested").await;
    assert_eq!(told.len(), 6, "five, and one that says so: {told:?}");
    let last = told[5]["detail"].as_str().unwrap();
    assert!(last.contains("revoke its mandate"), "{last}");
    // Another vendor's requests are told all the same, and so are this one's once somebody looked.
    let other = bank.agent.propose("other", &change("V-200", NEW)).await;
    other.is_denied(403, "policy", "bank-change-needs-callback");
    assert_eq!(alarms(&anna, "bank_change_requested").await.len(), 7);
    for alarm in &told {
        let close = format!("/v1/alarms/{}/close", alarm["id"].as_str().unwrap());
        assert_eq!(anna.post_json(&close, &json!({ "reason": "seen" })).await.status, 200);
    }
    bank.ask("again", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
    assert_eq!(alarms(&anna, "bank_change_requested").await.len(), 8);
}

#[tokio::test]
async fn with_a_call_back_and_a_second_person_the_account_changes_once() {
    on_both(async |place| {
        let bank = Bank::at(place).await;
        bank.called(NEW).await;
        let pending = bank.ask("k1", NEW).await;
        is_pending(&pending, "four_eyes");
        assert_eq!(pending.reasons(), ["bank-change-needs-four-eyes"]);
        assert_eq!(pending.text("/params/new_iban/origin"), "system_of_record");
        let daemon = bank.daemon();
        // Neither the principal of the mandate, nor who made the call, nor who has no say.
        approve(&daemon.sign_in("marie").await, &pending).await.is_problem(403, "self_approval");
        approve(&daemon.sign_in("anna").await, &pending)
            .await
            .is_problem(403, "caller_cannot_approve");
        approve(&daemon.sign_in("axel").await, &pending).await.is_problem(403, "not_an_approver");
        let paul = daemon.sign_in("paul").await;
        let seen = paul.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
        assert_eq!(seen.text("/params/new_iban/value"), NEW, "old and new side by side");
        assert_eq!(seen.text("/records/old_number"), ACME);
        let executed = approve(&paul, &pending).await;
        executed.is_executed();
        assert_eq!(executed.text("/result/iban"), NEW);
        assert_eq!(bank.account("V-100").await, NEW);
        // The open bills name the new account, and it is in its cooling-off.
        let bill = bank.agent.get("/v1/bills/INV-1").await;
        assert_eq!(bill.text("/payee_iban"), "NL91…4300");
        assert!(bill.json["attention"].to_string().contains("iban_changed_recently"));
        let paid = bank.agent.propose("p1", &pay("INV-1", "V-100", "1200.00")).await;
        is_pending(&paid, "four_eyes");
        assert_eq!(paid.reasons(), ["fresh-account-needs-four-eyes"]);
        assert_eq!(paid.text("/facts/bank_status"), "verified");
        // Seven days later a payment goes by itself.
        reject(&paul, &paid, "later").await;
        daemon.advance("8d").await;
        let token = bank.office.installation.mandate(&[]);
        let agent = daemon.agent(&token);
        let paid = agent.propose("p2", &pay("INV-1", "V-100", "1200.00")).await;
        paid.is_executed();
        assert_eq!(daemon.payments().await[0].1, NEW);
        let shown = history(&daemon.sign_in("paul").await, "V-100").await;
        let accounts = shown["accounts"].as_array().unwrap();
        let of = |iban: &str| accounts.iter().find(|a| a["iban"] == json!(iban)).unwrap();
        assert_eq!((&of(NEW)["payable"], &of(ACME)["payable"]), (&json!(true), &json!(false)));
    })
    .await;
}

#[tokio::test]
async fn the_one_who_called_never_approves_even_as_an_approver() {
    let bank = Bank::new().await;
    let paul = bank.daemon().sign_in("paul").await;
    let answer = call(&paul, "V-100", &confirmed(NEW)).await;
    assert_eq!(answer.json["counts"], json!(true), "{}", answer.json);
    let pending = bank.ask("k1", NEW).await;
    approve(&paul, &pending).await.is_problem(403, "caller_cannot_approve");
    let waiting = paul.get("/v1/approvals").await;
    assert_eq!(waiting.json["items"], json!([]), "what he cannot approve does not wait for him");
    approve(&bank.daemon().sign_in("olga").await, &pending).await.is_executed();
}

#[tokio::test]
async fn who_calls_while_a_change_waits_does_not_approve_it() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    let pending = bank.ask("k1", NEW).await;
    let paul = bank.daemon().sign_in("paul").await;
    let waiting = async || paul.get("/v1/approvals").await.json["items"].clone();
    assert_eq!(waiting().await.as_array().unwrap().len(), 1);
    let also = call(&paul, "V-100", &confirmed(NEW)).await;
    assert_eq!(also.json["counts"], json!(true), "{}", also.json);
    assert_eq!(waiting().await, json!([]), "what he cannot approve does not wait for him");
    approve(&paul, &pending).await.is_problem(403, "caller_cannot_approve");
    let seen = paul.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
    assert_eq!(seen.json["approval"]["granted_by"], json!([]), "{}", seen.json);
    reject(&paul, &pending, "no").await.is_problem(403, "not_an_approver");
    // Who may not approve it is another one now, and so is what is approved.
    let olga = bank.daemon().sign_in("olga").await;
    let looked_at_again = approve(&olga, &pending).await;
    is_pending(&looked_at_again, "four_eyes");
    approve(&olga, &looked_at_again).await.is_executed();
}

#[tokio::test]
async fn a_call_back_is_spent_once_and_for_one_account() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    bank.ask("k1", "BE68539007547034").await.is_denied(403, "policy", "bank-change-needs-callback");
    bank.agent.propose("k2", &change("V-200", NEW)).await.is_denied(
        403,
        "policy",
        "bank-change-needs-callback",
    );
    let pending = bank.ask("k3", NEW).await;
    // One change of a vendor at a time.
    bank.ask("k4", NEW).await.is_denied(403, "execution", "operation_in_progress");
    let paul = bank.daemon().sign_in("paul").await;
    approve(&paul, &pending).await.is_executed();
    // Somebody takes the change back in the ERP; the call-back is spent.
    let undone = json!({ "accounts": [
        { "iban": ACME, "active": true }, { "iban": NEW, "active": false },
    ] });
    bank.daemon().put_vendor("V-100", undone).await;
    bank.ask("k5", NEW).await.is_denied(403, "policy", "bank-change-needs-callback");
}

#[tokio::test]
async fn while_a_change_waits_payments_need_four_eyes() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    is_pending(&bank.ask("k1", NEW).await, "four_eyes");
    let paid = bank.agent.propose("p1", &pay("INV-1", "V-100", "1200.00")).await;
    is_pending(&paid, "four_eyes");
    assert_eq!(paid.reasons(), ["pending-bank-change-needs-four-eyes"]);
}

#[tokio::test]
async fn what_the_floor_refuses_no_call_back_opens() {
    let bank = Bank::new().await;
    let own = "FR1420041010050500013M02606";
    bank.called(own).await;
    bank.daemon().put_vop("ACME SAS", own, "match").await;
    bank.ask("k1", own).await.is_denied(403, "policy", "bank-change-own-account-never");
    let other = "BE68539007547034";
    bank.called(other).await;
    bank.ask("k2", other).await.is_denied(403, "policy", "bank-change-vop-no-match-never");
    bank.called(NEW).await;
    bank.daemon().put_sanctions(NEW, true).await;
    bank.ask("k3", NEW).await.is_denied(403, "policy", "bank-change-sanctioned-never");
    bank.daemon().put_sanctions(NEW, false).await;
    // A vendor that was renamed is another one, whatever the bank says about the name.
    bank.daemon().put_vendor("V-100", json!({ "name": "ACME Supplies" })).await;
    bank.daemon().put_vop("ACME Supplies", NEW, "match").await;
    bank.ask("k4", NEW).await.is_denied(403, "policy", "floor_changed_in_erp");
    assert_eq!(bank.account("V-100").await, ACME);
}

#[tokio::test]
async fn a_lost_answer_is_settled_and_changes_nothing_twice() {
    on_both(async |place| {
        for what in ["lost_answer", "unreachable"] {
            let bank = Bank::at(place).await;
            bank.called(NEW).await;
            let pending = bank.ask("k1", NEW).await;
            bank.daemon().fault("update_bank_details", what, 1).await;
            let paul = bank.daemon().sign_in("paul").await;
            approve(&paul, &pending).await;
            let path = format!("/v1/operations/{}?wait=30s", pending.text("/id"));
            let done = bank.agent.get(&path).await;
            assert_eq!(done.text("/status"), "executed", "{what}: {}", done.json);
            assert_eq!(bank.account("V-100").await, NEW);
            let paid = bank.agent.propose("p1", &pay("INV-1", "V-100", "1200.00")).await;
            assert_eq!(paid.text("/facts/bank_status"), "verified", "{}", paid.json);
            bank.office.daemon.stop();
            bank.office.installation.ok(&["receipts", "verify"], "");
            if !place.is_sqlite() {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_change_that_the_erp_refuses_gives_the_call_back_back() {
    let bank = Bank::new().await;
    bank.called(NEW).await;
    let pending = bank.ask("k1", NEW).await;
    bank.daemon().fault("update_bank_details", "refuse", 1).await;
    let paul = bank.daemon().sign_in("paul").await;
    let failed = approve(&paul, &pending).await;
    assert_eq!(failed.text("/status"), "failed", "{}", failed.json);
    assert_eq!(bank.account("V-100").await, ACME);
    let again = bank.ask("k2", NEW).await;
    is_pending(&again, "four_eyes");
    approve(&paul, &again).await.is_executed();
}
