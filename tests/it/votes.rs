//! Stage `approval` through a running daemon: who may vote, what a vote counts for, and what becomes
//! of it (API 3 and 4, I5).

mod between;
mod by_hand;
mod lock;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::daemon::{ACME, Agent, Answer, COMPANY, Daemon, Installation, pay};
use crate::support::{Place, on_both};

/// An installation with its people, a daemon and an agent of marie's.
pub(crate) struct Office {
    pub(crate) installation: Installation,
    pub(crate) daemon: Daemon,
    pub(crate) agent: Agent,
}

impl Office {
    pub(crate) async fn at(place: &Place) -> Self {
        Self::of(Installation::at(place)).await
    }

    pub(crate) async fn new() -> Self {
        Self::of(Installation::new()).await
    }

    pub(crate) async fn of(installation: Installation) -> Self {
        Self::people(&installation);
        let token = installation.mandate(&[]);
        let daemon = installation.start().await;
        let agent = daemon.agent(&token);
        Self { installation, daemon, agent }
    }

    /// Everybody of the company, and somebody of another one.
    pub(crate) fn people(installation: &Installation) {
        installation.add_principal();
        // marie holds every role: it must not help her.
        for role in ["approver", "admin", "auditor"] {
            installation.add_user("marie", role, COMPANY);
        }
        installation.add_user("paul", "approver", COMPANY);
        installation.add_user("olga", "approver", COMPANY);
        installation.add_user("anna", "accountant", COMPANY);
        installation.add_user("adam", "admin", COMPANY);
        installation.add_user("axel", "auditor", COMPANY);
        installation.add_user("fritz", "approver", "red-fox");
    }

    /// Pays a part of INV-1, which takes four eyes.
    pub(crate) async fn four_eyes(&self, key: &str) -> Answer {
        let pending = self.agent.propose(key, &pay("INV-1", "V-100", "700.00")).await;
        is_pending(&pending, "four_eyes");
        pending
    }

    /// Pays INV-3, whose amount takes a step-up.
    pub(crate) async fn step_up(&self, key: &str) -> Answer {
        let pending = self.agent.propose(key, &pay("INV-3", "V-100", "8000.00")).await;
        is_pending(&pending, "step_up");
        pending
    }
}

#[track_caller]
pub(crate) fn is_pending(answer: &Answer, level: &str) {
    let found = (answer.status.as_u16(), answer.text("/status"), answer.text("/approval/level"));
    assert_eq!(found, (202, "pending".to_owned(), level.to_owned()), "{}", answer.json);
}

pub(crate) async fn approve(human: &Agent, operation: &Answer) -> Answer {
    vote(human, &operation.text("/id"), &operation.text("/operation_hash")).await
}

pub(crate) async fn vote(human: &Agent, id: &str, hash: &str) -> Answer {
    let body = json!({ "operation_hash": hash });
    human.post_json(&format!("/v1/operations/{id}/approve"), &body).await
}

pub(crate) async fn reject(human: &Agent, operation: &Answer, reason: &str) -> Answer {
    let path = format!("/v1/operations/{}/reject", operation.text("/id"));
    human.post_json(&path, &json!({ "reason": reason })).await
}

async fn waiting_for(human: &Agent) -> Vec<String> {
    let answer = human.get("/v1/approvals").await;
    let items = answer.json.pointer("/items").and_then(Value::as_array).cloned();
    let id = |item: &Value| item.pointer("/id").and_then(Value::as_str).map(ToOwned::to_owned);
    items.into_iter().flatten().filter_map(|item| id(&item)).collect()
}

#[tokio::test]
async fn a_step_up_is_the_principals_vote_and_executes_by_itself() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let pending = office.step_up("k1").await;
        assert_eq!(pending.reasons(), ["large-amount-needs-step-up"]);
        assert_eq!(pending.json["approval"]["granted_by"], json!([]));
        let marie = office.daemon.sign_in("marie").await;
        let paul = office.daemon.sign_in("paul").await;
        assert_eq!(waiting_for(&marie).await, [pending.text("/id")]);
        assert_eq!(waiting_for(&paul).await, [""; 0]);
        let refused = approve(&paul, &pending).await;
        refused.is_problem(403, "not_an_approver");
        assert_eq!(office.daemon.payments().await, []);
        let executed = approve(&marie, &pending).await;
        executed.is_executed();
        assert_eq!(executed.json["approval"]["granted_by"], json!(["marie"]));
        assert_eq!(executed.text("/params/payee_iban/value"), ACME, "humans see it whole");
        assert_eq!(office.daemon.payments().await.len(), 1);
        let again = approve(&marie, &pending).await;
        again.is_problem(409, "already_decided");
        let seen = office.agent.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
        assert_eq!(seen.text("/status"), "executed");
        assert_eq!(waiting_for(&marie).await, [""; 0]);
        // The vote, the decision after it and the claim each left a receipt.
        let export = office.installation.ok(&["receipts", "export"], "");
        for kind in ["vote", "decision", "claim", "outcome"] {
            let kind = format!("\\\"kind\\\":\\\"{kind}\\\"");
            assert!(export.contains(&kind), "no `{kind}`: {export}");
        }
        office.daemon.stop();
        office.installation.ok(&["receipts", "verify"], "");
    })
    .await;
}

#[tokio::test]
async fn four_eyes_are_an_approver_who_is_not_the_principal() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let pending = office.four_eyes("k1").await;
        let daemon = &office.daemon;
        approve(&daemon.sign_in("marie").await, &pending).await.is_problem(403, "self_approval");
        for other in ["anna", "adam", "axel"] {
            let refused = approve(&daemon.sign_in(other).await, &pending).await;
            refused.is_problem(403, "not_an_approver");
        }
        let fritz = daemon.sign_in("fritz").await;
        let foreign = approve(&fritz, &pending).await;
        let none = vote(&fritz, &format!("op_{:032}", 7), &pending.text("/operation_hash")).await;
        foreign.is_problem(404, "not_found");
        assert_eq!(foreign.json, none.json, "another company's is as good as none");
        approve(&office.agent, &pending).await.is_problem(403, "humans_only");
        approve(&daemon.stranger(), &pending).await.is_problem(401, "token_invalid");
        assert_eq!(daemon.payments().await, []);
        let paul = daemon.sign_in("paul").await;
        assert_eq!(waiting_for(&paul).await, [pending.text("/id")]);
        assert_eq!(waiting_for(&daemon.sign_in("marie").await).await, [""; 0]);
        let executed = approve(&paul, &pending).await;
        executed.is_executed();
        assert_eq!(executed.text("/result/amount_due"), "500.00");
        assert_eq!(daemon.payments().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn eight_votes_at_once_give_one_payment() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let pending = office.four_eyes("k1").await;
        let mut voters = Vec::new();
        for name in ["paul", "olga"] {
            voters.push(office.daemon.sign_in(name).await);
        }
        let mut cast = JoinSet::new();
        for human in voters.iter().cycle().take(8) {
            let (human, id) = (human.clone(), pending.text("/id"));
            let hash = pending.text("/operation_hash");
            cast.spawn(async move { vote(&human, &id, &hash).await });
        }
        let mut executed = 0;
        for answer in cast.join_all().await {
            match answer.status.as_u16() {
                201 => executed += 1,
                409 => answer.is_problem(409, "already_decided"),
                202 => {}
                other => panic!("{other}: {}", answer.json),
            }
        }
        assert!(executed > 0);
        let seen = office.agent.until_only(&office.daemon, "executed").await;
        assert_eq!(seen.text("/result/amount"), "700.00");
        assert_eq!(office.daemon.payments().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_vote_is_for_one_hash() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let paul = office.daemon.sign_in("paul").await;
        let pending = office.four_eyes("k1").await;
        let (id, hash) = (pending.text("/id"), pending.text("/operation_hash"));
        vote(&paul, &id, &"0".repeat(64)).await.is_problem(409, "operation_changed");
        for bad in [json!({}), json!({ "operation_hash": "x" }), json!({ "operation_hash": null })]
        {
            let path = format!("/v1/operations/{id}/approve");
            paul.post_json(&path, &bad).await.is_problem(400, "invalid_field");
        }
        // Somebody edits what the approver looked at.
        office.daemon.put_bill("INV-1", json!({ "vendor_reference": "A-77" })).await;
        let changed = vote(&paul, &id, &hash).await;
        is_pending(&changed, "four_eyes");
        assert_ne!(changed.text("/operation_hash"), hash);
        assert_eq!(changed.json["approval"]["granted_by"], json!([]), "the vote is void");
        assert_eq!(changed.json["records"]["bill_reference"], "A-77", "what is true now");
        vote(&paul, &id, &hash).await.is_problem(409, "operation_changed");
        assert_eq!(office.daemon.payments().await, []);
        approve(&paul, &changed).await.is_executed();
        assert_eq!(office.daemon.payments().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_vote_is_for_one_operation() {
    let office = Office::new().await;
    let paul = office.daemon.sign_in("paul").await;
    let first = office.four_eyes("k1").await;
    approve(&paul, &first).await.is_executed();
    // The same payment once more is another operation, and another hash.
    let second = office.agent.propose("k2", &pay("INV-1", "V-100", "400.00")).await;
    is_pending(&second, "four_eyes");
    let hash = first.text("/operation_hash");
    vote(&paul, &second.text("/id"), &hash).await.is_problem(409, "operation_changed");
    assert_eq!(office.daemon.payments().await.len(), 1);
}

#[tokio::test]
async fn a_level_never_falls_while_an_operation_is_pending() {
    let office = Office::new().await;
    office.daemon.put_vop("ACME SAS", ACME, "close_match").await;
    let pending = office.agent.propose("k1", &pay("INV-1", "V-100", "1200.00")).await;
    is_pending(&pending, "four_eyes");
    office.daemon.put_vop("ACME SAS", ACME, "match").await;
    let paul = office.daemon.sign_in("paul").await;
    let changed = approve(&paul, &pending).await;
    is_pending(&changed, "four_eyes");
    assert_eq!(changed.reasons(), ["vop-close-match-needs-four-eyes"]);
    assert_eq!(changed.json["facts"]["vop"], "match");
    approve(&paul, &changed).await.is_executed();
    // Withdrawn and proposed anew, it needs nobody.
    office.daemon.put_vop("Globex", "DE89370400440532013000", "close_match").await;
    let globex = office.agent.propose("k2", &pay("INV-2", "V-200", "340.00")).await;
    is_pending(&globex, "four_eyes");
    office.daemon.put_vop("Globex", "DE89370400440532013000", "match").await;
    office.agent.post(&format!("/v1/operations/{}/cancel", globex.text("/id"))).await;
    office.agent.propose("k3", &pay("INV-2", "V-200", "340.00")).await.is_executed();
}

#[tokio::test]
async fn a_vote_is_for_the_name_that_the_bank_gave_and_the_bills_that_are_alike() {
    let office = Office::new().await;
    let daemon = &office.daemon;
    let close = async |name: &str| daemon.put_close_vop("ACME SAS", ACME, name).await;
    close("ACME S.A.S.").await;
    let pending = office.agent.propose("k1", &pay("INV-1", "V-100", "1200.00")).await;
    is_pending(&pending, "four_eyes");
    assert_eq!(pending.json["facts"].get("vop_name"), None, "no agent's business");
    let paul = daemon.sign_in("paul").await;
    let path = format!("/v1/operations/{}", pending.text("/id"));
    let seen = paul.get(&path).await;
    assert_eq!(seen.json["facts"]["vop_name"], "ACME S.A.S.", "{}", seen.json);
    close("Thief Ltd").await;
    let changed = approve(&paul, &pending).await;
    is_pending(&changed, "four_eyes");
    assert_eq!(changed.json["facts"]["vop_name"], "Thief Ltd", "{}", changed.json);
    close("ACME S.A.S.").await;
    // A bill that is like it, and then another one.
    let twin = json!({ "vendor": "V-100", "vendor_reference": "B-7", "amount": "1200.00",
        "currency": "EUR", "due": "2099-12-31" });
    daemon.put_bill("INV-71", twin.clone()).await;
    let now = approve(&paul, &changed).await;
    is_pending(&now, "four_eyes");
    assert_eq!(now.json["facts"]["like_bills"], "erp bills/INV-71", "{}", now.json);
    let mut second = twin;
    second["vendor_reference"] = json!("B-8");
    daemon.put_bill("INV-72", second).await;
    let now = approve(&paul, &now).await;
    is_pending(&now, "four_eyes");
    assert!(now.text("/facts/like_bills").contains("bills/INV-72"), "{}", now.json);
    assert!(daemon.payments().await.is_empty());
    approve(&paul, &now).await.is_executed();
}

#[tokio::test]
async fn a_level_rises_and_voids_the_votes() {
    let office = Office::new().await;
    let pending = office.step_up("k1").await;
    office.daemon.put_vop("ACME SAS", ACME, "not_possible").await;
    let marie = office.daemon.sign_in("marie").await;
    let risen = approve(&marie, &pending).await;
    is_pending(&risen, "four_eyes");
    assert_eq!(risen.reasons(), ["vop-not-possible-needs-four-eyes"]);
    approve(&marie, &risen).await.is_problem(403, "self_approval");
    approve(&office.daemon.sign_in("paul").await, &risen).await.is_executed();
}

#[tokio::test]
async fn what_denies_after_the_last_vote_ends_the_operation() {
    let office = Office::new().await;
    let pending = office.four_eyes("k1").await;
    office.daemon.put_sanctions(ACME, true).await;
    let paul = office.daemon.sign_in("paul").await;
    let denied = approve(&paul, &pending).await;
    denied.is_denied(403, "policy", "sanctioned-payee-never-paid");
    approve(&paul, &pending).await.is_problem(409, "already_decided");
    assert_eq!(office.daemon.payments().await, []);
}

#[tokio::test]
async fn nobody_approves_after_the_time_is_over() {
    let office = Office::new().await;
    let pending = office.four_eyes("k1").await;
    office.daemon.advance("71h").await;
    let seen = office.agent.get(&format!("/v1/operations/{}", pending.text("/id"))).await;
    assert_eq!(seen.text("/status"), "pending");
    office.daemon.advance("61m").await;
    let paul = office.daemon.sign_in("paul").await;
    approve(&paul, &pending).await.is_problem(409, "approval_expired");
    reject(&paul, &pending, "too late").await.is_problem(409, "approval_expired");
    let expired = office.agent.until_only(&office.daemon, "expired").await;
    assert_eq!(expired.status.as_u16(), 200);
    approve(&paul, &pending).await.is_problem(409, "approval_expired");
    assert_eq!(office.daemon.payments().await, []);
    // The bill is free again.
    office.agent.propose("k2", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
}

#[tokio::test]
async fn who_could_approve_the_principal_and_an_admin_may_reject() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let daemon = &office.daemon;
        let bills =
            [("INV-1", "V-100", "1.00"), ("INV-2", "V-200", "2.00"), ("INV-3", "V-100", "3.00")];
        for (name, (bill, vendor, amount)) in ["paul", "marie", "adam"].into_iter().zip(bills) {
            let pending = office.agent.propose(bill, &pay(bill, vendor, amount)).await;
            is_pending(&pending, "four_eyes");
            for other in ["anna", "axel"] {
                let refused = reject(&daemon.sign_in(other).await, &pending, "no").await;
                refused.is_problem(403, "not_an_approver");
            }
            let fritz = daemon.sign_in("fritz").await;
            reject(&fritz, &pending, "no").await.is_problem(404, "not_found");
            let human = daemon.sign_in(name).await;
            let rejected = reject(&human, &pending, "not agreed").await;
            assert_eq!(rejected.status.as_u16(), 200);
            assert_eq!(rejected.text("/status"), "rejected");
            assert_eq!(rejected.text("/decision/stage"), "approval");
            assert_eq!(rejected.reasons(), ["rejected"]);
            let detail = format!("rejected by {name}: not agreed");
            assert_eq!(rejected.text("/decision/detail"), detail);
            approve(&daemon.sign_in("olga").await, &pending)
                .await
                .is_problem(409, "already_decided");
            reject(&human, &pending, "no").await.is_problem(409, "already_decided");
        }
        assert_eq!(daemon.payments().await, []);
    })
    .await;
}

#[tokio::test]
async fn a_rejected_bill_is_not_accepted_again_from_the_same_principals_agents_for_a_day() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let daemon = &office.daemon;
        let more = ["mandate", "issue", "--principal", "anna", "--agent", "ap-agent"];
        let rest = ["--company", COMPANY, "--scope", "invoice.pay", "--source-account"];
        let last = [crate::daemon::SOURCE, "--currency", "EUR", "--ttl", "200h"];
        let annas = office.installation.ok(&[&more[..], &rest, &last].concat(), "");
        let twin = office.installation.mandate_of(
            "marie",
            "another-agent",
            COMPANY,
            crate::daemon::SOURCE,
            &[],
        );
        let pending = office.four_eyes("k1").await;
        let prepared = daemon.agent(&twin);
        let mut proposal = pay("INV-1", "V-100", "1200.00");
        proposal["mode"] = json!("prepare");
        let prepared_before = prepared.propose("p1", &proposal).await;
        // Another operation holds the bill.
        prepared_before.is_denied(403, "execution", "operation_in_progress");
        reject(&daemon.sign_in("paul").await, &pending, "wrong amount").await;
        let whole = pay("INV-1", "V-100", "1200.00");
        for (agent, key) in [(&office.agent, "k2"), (&daemon.agent(&twin), "k3")] {
            let again = agent.propose(key, &whole).await;
            again.is_denied(403, "execution", "recently_rejected");
        }
        daemon.advance("23h").await;
        let again = office.agent.propose("k4", &whole).await;
        again.is_denied(403, "execution", "recently_rejected");
        // Other bills, and other principals' agents, are not concerned.
        office.agent.propose("k5", &pay("INV-2", "V-200", "340.00")).await.is_executed();
        daemon.advance("61m").await;
        let agent = daemon.agent(&annas);
        let part = agent.propose("a1", &pay("INV-1", "V-100", "700.00")).await;
        is_pending(&part, "four_eyes");
        agent.post(&format!("/v1/operations/{}/cancel", part.text("/id"))).await;
        office.agent.propose("k6", &whole).await.is_executed();
    })
    .await;
}

#[tokio::test]
async fn approvals_are_listed_page_by_page() {
    let office = Office::new().await;
    let bills = [("INV-1", "V-100"), ("INV-2", "V-200"), ("INV-3", "V-100")];
    for (bill, vendor) in bills {
        is_pending(&office.agent.propose(bill, &pay(bill, vendor, "1.00")).await, "four_eyes");
    }
    let paul = office.daemon.sign_in("paul").await;
    let mut seen = Vec::new();
    let mut path = "/v1/approvals?limit=2".to_owned();
    loop {
        let page = paul.get(&path).await;
        let items = page.json["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|item| item["params"]["invoice_ref"]["value"].clone()));
        let Some(cursor) = page.json["next_cursor"].as_str() else { break };
        path = format!("/v1/approvals?limit=2&cursor={cursor}");
    }
    assert_eq!(Value::Array(seen), json!(["INV-1", "INV-2", "INV-3"]));
    paul.get("/v1/approvals?limit=0").await.is_problem(400, "invalid_query");
    paul.get("/v1/approvals?company=red-fox").await.is_problem(404, "not_found");
    office.agent.get("/v1/approvals").await.is_problem(403, "humans_only");
}
