//! A human ends an `unknown` that the daemon could not settle.

use countersign::domain::names::Name;
use countersign::domain::operation::{OperationResult, Status};
use countersign::gateway::{ByHand, ByHandError};
use countersign_erp_source::OrderError;
use serde_json::{Value, json};

use super::{Office, approve};
use crate::bank::{Bank, NEW, call, confirmed};
use crate::bent::Scene;
use crate::daemon::{Agent, Answer, COMPANY, pay};
use crate::support::on_both;

/// More failed look-ups than any test waits for.
const FOR_LONG: u32 = 100_000;

async fn settle(human: &Agent, operation: &Answer, body: Value) -> Answer {
    let path = format!("/v1/operations/{}/settle", operation.text("/id"));
    human.post_json(&path, &body).await
}

fn booked() -> Value {
    json!({ "outcome": "booked", "payment_ref": "P-77", "reason": "seen in the ERP" })
}

fn not_booked() -> Value {
    json!({ "outcome": "not_booked", "reason": "no such payment in the ERP" })
}

/// An operation whose answer was lost, with an ERP that cannot be asked about it.
async fn unknown(office: &Office) -> Answer {
    office.daemon.fault("register_payment", "lost_answer", 1).await;
    office.daemon.fault("find_payment", "unreachable", FOR_LONG).await;
    office.agent.propose("k1", &pay("INV-1", "V-100", "1200.00")).await;
    office.agent.until_only(&office.daemon, "unknown").await
}

#[tokio::test]
async fn an_approver_who_is_not_the_principal_settles_what_is_unknown() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let daemon = &office.daemon;
        let unknown = unknown(&office).await;
        let marie = daemon.sign_in("marie").await;
        settle(&marie, &unknown, booked()).await.is_problem(403, "self_approval");
        for other in ["anna", "adam", "axel"] {
            let human = daemon.sign_in(other).await;
            settle(&human, &unknown, booked()).await.is_problem(403, "not_an_approver");
        }
        let fritz = daemon.sign_in("fritz").await;
        settle(&fritz, &unknown, booked()).await.is_problem(404, "not_found");
        settle(&office.agent, &unknown, booked()).await.is_problem(403, "humans_only");
        let paul = daemon.sign_in("paul").await;
        let bad = [
            json!({ "outcome": "booked", "reason": "no id" }),
            json!({ "outcome": "not_booked", "payment_ref": "P-1", "reason": "an id" }),
            json!({ "outcome": "perhaps", "reason": "who knows" }),
            json!({ "outcome": "not_booked" }),
        ];
        for body in bad {
            settle(&paul, &unknown, body).await.is_problem(400, "invalid_field");
        }
        let settled = settle(&paul, &unknown, booked()).await;
        settled.is_executed();
        assert_eq!(settled.text("/result/payment_ref"), "P-77");
        assert_eq!(settled.text("/result/amount"), "1200.00");
        assert_eq!(settled.json["result"]["amount_due"], Value::Null);
        settle(&paul, &unknown, not_booked()).await.is_problem(409, "already_decided");
        // It counts for the bill.
        let again = office.agent.propose("k2", &pay("INV-1", "V-100", "1200.00")).await;
        again.is_denied(403, "execution", "already_paid");
        assert_eq!(daemon.payments().await.len(), 1);
        let export = office.installation.ok(&["receipts", "export"], "");
        assert!(export.contains("settled_by_hand"), "{export}");
    })
    .await;
}

#[tokio::test]
async fn nothing_is_said_to_be_absent_before_the_orders_time_is_over() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let daemon = &office.daemon;
        let unknown = unknown(&office).await;
        let paul = daemon.sign_in("paul").await;
        settle(&paul, &unknown, not_booked()).await.is_problem(409, "order_still_valid");
        daemon.advance("1h").await;
        let settled = settle(&paul, &unknown, not_booked()).await;
        assert_eq!((settled.status.as_u16(), settled.text("/status").as_str()), (200, "failed"));
        assert_eq!(settled.reasons(), ["not_booked"]);
        // He was wrong, and the ERP's own record keeps the bill from being paid twice.
        let again = office.agent.propose("k2", &pay("INV-1", "V-100", "1200.00")).await;
        again.is_denied(403, "policy", "bill-must-be-open");
        assert_eq!(daemon.payments().await.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn what_the_erp_can_say_by_now_is_what_is_written_down() {
    let office = Office::new().await;
    let daemon = &office.daemon;
    let unknown = unknown(&office).await;
    let paul = daemon.sign_in("paul").await;
    daemon.advance("1h").await;
    daemon.fault("find_payment", "unreachable", 0).await;
    let settled = settle(&paul, &unknown, not_booked()).await;
    assert_eq!(settled.text("/status"), "executed", "{}", settled.json);
    assert_ne!(settled.text("/result/payment_ref"), "P-77");
    assert_eq!(settled.text("/result/amount_due"), "0.00");
}

#[tokio::test]
async fn who_calls_about_a_change_that_is_unknown_does_not_settle_it() {
    let bank = Bank::new().await;
    let daemon = bank.daemon();
    bank.called(NEW).await;
    let pending = bank.ask("k1", NEW).await;
    daemon.fault("update_bank_details", "lost_answer", 1).await;
    daemon.fault("find_payment", "unreachable", FOR_LONG).await;
    let (paul, olga) = (daemon.sign_in("paul").await, daemon.sign_in("olga").await);
    approve(&paul, &pending).await;
    let unknown = bank.agent.until_only(daemon, "unknown").await;
    let also = call(&olga, "V-100", &confirmed(NEW)).await;
    assert_eq!(also.json["counts"], json!(true), "{}", also.json);
    settle(&olga, &unknown, booked()).await.is_problem(403, "caller_cannot_approve");
    settle(&paul, &unknown, booked()).await.is_executed();
}

#[tokio::test]
async fn only_what_is_unknown_is_settled_by_hand() {
    let office = Office::new().await;
    let paul = office.daemon.sign_in("paul").await;
    let pending = office.four_eyes("k1").await;
    settle(&paul, &pending, booked()).await.is_problem(409, "already_decided");
    let executed = office.agent.propose("k2", &pay("INV-2", "V-200", "340.00")).await;
    settle(&paul, &executed, not_booked()).await.is_problem(409, "already_decided");
}

#[tokio::test]
async fn a_word_that_was_not_true_is_found_once_the_erp_answers() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let daemon = &office.daemon;
        let unknown = unknown(&office).await;
        daemon.advance("5s").await;
        let paul = daemon.sign_in("paul").await;
        let failed = settle(&paul, &unknown, not_booked()).await;
        assert_eq!(failed.text("/status"), "failed", "{}", failed.json);
        daemon.fault("find_payment", "unreachable", 0).await;
        daemon.advance("11m").await;
        let found = async || paul.get("/v1/freezes").await.json["items"][0]["cause"].clone();
        daemon.until("found", async || found().await == json!("booked_after_all")).await;
        let again = office.agent.propose("k2", &pay("INV-3", "V-100", "100.00")).await;
        again.is_denied(403, "execution", "frozen");
        // Whose word it was does not thaw.
        let freezes = paul.get("/v1/freezes").await;
        let path = format!("/v1/freezes/{}", freezes.text("/items/0/id"));
        let thaw = async |human: &Agent| {
            let request = human.request(reqwest::Method::DELETE, &path);
            human.send(request.json(&json!({ "reason": "looked" }))).await
        };
        thaw(&paul).await.is_problem(403, "self_approval");
        assert_eq!(thaw(&daemon.sign_in("olga").await).await.status, 200);
    })
    .await;
}

/// A human of the scene.
fn human(name: &str) -> Name {
    Name::parse(name).unwrap()
}

fn as_booked() -> ByHand {
    ByHand::Booked { payment_ref: "P-77".to_owned() }
}

#[tokio::test]
async fn what_the_erp_proves_not_to_be_booked_is_not_said_to_be() {
    let scene = Scene::new().await;
    scene.installation.add_user("paul", "approver", COMPANY);
    let lost = OrderError::OutcomeUnknown { reason: "the line was cut".to_owned() };
    *scene.bends.instead.lock().unwrap() = Some(lost);
    let odd = scene.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!(odd.status, Status::Unknown);
    scene.advance("1h").await;
    let paul = human("paul");
    let refused = scene.gateway.settle_by_hand(&paul, &odd.id, as_booked(), "I saw it").await;
    assert!(matches!(refused, Err(ByHandError::ProvedAbsent)), "{refused:?}");
    assert_eq!(scene.operations().await, std::slice::from_ref(&odd));
    let word = scene.gateway.settle_by_hand(&paul, &odd.id, ByHand::NotBooked, "not there").await;
    assert_eq!(word.unwrap().status, Status::Failed);
    scene.close().await;
}

#[tokio::test]
async fn nobody_else_makes_the_gateway_take_the_erps_word() {
    let scene = Scene::new().await;
    for (name, role) in [("paul", "approver"), ("anna", "accountant")] {
        scene.installation.add_user(name, role, COMPANY);
    }
    scene.installation.add_user("fritz", "approver", "red-fox");
    // It is booked, and the answer is lost.
    scene.bends.booked.set(|answer| {
        *answer = Err(OrderError::OutcomeUnknown { reason: "the line was cut".to_owned() });
    });
    let odd = scene.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    assert_eq!((odd.status, scene.paid().await["INV-1"]), (Status::Unknown, 1));
    for who in ["marie", "anna", "fritz", "nobody"] {
        let word = scene.gateway.settle_by_hand(&human(who), &odd.id, as_booked(), "so").await;
        assert!(matches!(word, Err(ByHandError::Approval(_))), "{who}: {word:?}");
        assert_eq!(scene.operations().await, std::slice::from_ref(&odd), "{who}");
    }
    let done = scene.gateway.settle_by_hand(&human("paul"), &odd.id, as_booked(), "so").await;
    let done = done.unwrap();
    assert_eq!(done.status, Status::Executed);
    let Some(OperationResult::Payment(paid)) = done.result else { panic!("{:?}", done.result) };
    assert_ne!(paid.payment_ref, "P-77", "what the ERP said counts");
    scene.close().await;
}
