//! I1, I2, I6, I8: an ERP, a bank or a list that answers wrongly, or not at all, pays nothing that
//! was not decided, and the gateway says what it saw.

use std::sync::Arc;
use std::time::Duration;

use countersign::ap::adoption;
use countersign::ap::reading::Eyes;
use countersign::domain::decision::Level;
use countersign::domain::operation::{Operation, OperationResult, Status};
use countersign_erp_source::{
    AccountId, Amount, BillId, BillKind, BillState, CompanyId, Contradiction, Currency,
    ErpCompanyId, Iban, JournalId, Marker, NoAnswer, OrderError, ReadError, Refusal, Screening,
    VendorId, VopResult,
};
use serde_json::json;
use tokio::sync::Notify;

use crate::bent::{Scene, company, round};
use crate::daemon::{Installation, NOBODYS, SOURCE, WORLD, pay};

#[track_caller]
fn denied(operation: &Operation, stage: &str, reason: &str) {
    let decision = &operation.decision;
    assert_eq!((operation.status, decision.stage.code()), (Status::Denied, stage), "{decision:?}");
    assert!(decision.reasons.iter().any(|found| found == reason), "{decision:?}");
}

fn acme(amount: &str) -> serde_json::Value {
    pay("INV-1", "V-100", amount)
}

#[tokio::test]
async fn a_record_of_another_company_is_as_good_as_none_whatever_the_connector_says() {
    let scene = Scene::new().await;
    scene.bends.bill.set(|answer| {
        if let Ok(Some(reading)) = answer {
            reading.bill.company = CompanyId::new("red-fox").unwrap();
        }
    });
    scene.bends.vendor.set(|answer| {
        if let Ok(Some(vendor)) = answer {
            vendor.company = CompanyId::new("red-fox").unwrap();
        }
    });
    denied(&scene.propose("k", &acme("1200.00")).await, "provenance", "bill_not_found");
    let (bill, vendor) = (BillId::new("INV-1").unwrap(), VendorId::new("V-100").unwrap());
    assert!(scene.pack.bill(&company(), &bill, Eyes::Human).await.unwrap().is_none());
    assert!(scene.pack.vendor(&company(), &vendor, Eyes::Human).await.unwrap().is_none());
    scene.close().await;
}

#[tokio::test]
async fn only_an_active_account_of_the_bills_own_vendor_is_on_file() {
    let scene = Scene::new().await;
    scene.bends.bill.set(|answer| {
        if let Ok(Some(reading)) = answer {
            reading.vendor.as_mut().unwrap().accounts[0].owner = VendorId::new("V-200").unwrap();
        }
    });
    let other = scene.propose("owner", &acme("1200.00")).await;
    denied(&other, "provenance", "payee_not_on_file");
    scene.bends.bill.set(|answer| {
        if let Ok(Some(reading)) = answer {
            reading.vendor.as_mut().unwrap().accounts[0].active = false;
        }
    });
    let archived = scene.propose("archived", &acme("1200.00")).await;
    denied(&archived, "provenance", "payee_not_on_file");
    scene.bends.bill.set(|answer| {
        if let Ok(Some(reading)) = answer {
            reading.vendor = None;
        }
    });
    denied(&scene.propose("none", &acme("1200.00")).await, "provenance", "payee_not_on_file");
    scene.close().await;
}

#[tokio::test]
async fn money_leaves_only_from_the_account_that_the_mandate_was_issued_for() {
    let scene = Scene::new().await;
    let other = || Currency::from_code("USD").unwrap();
    scene.bends.sources.set(|answer| {
        answer.as_mut().unwrap()[0].iban = Iban::parse(NOBODYS).unwrap();
    });
    denied(&scene.propose("number", &acme("1200.00")).await, "provenance", "not_in_mandate");
    scene.bends.sources.set(|answer| {
        answer.as_mut().unwrap()[0].journal = JournalId::new("BNK2").unwrap();
    });
    let mut by_number = acme("1200.00");
    by_number["args"]["source_account"] = json!(SOURCE);
    denied(&scene.propose("journal", &by_number).await, "provenance", "not_in_mandate");
    scene.bends.sources.set(move |answer| answer.as_mut().unwrap()[0].currency = other());
    denied(&scene.propose("currency", &acme("1200.00")).await, "provenance", "not_in_mandate");
    scene.bends.sources.set(|answer| {
        let all = answer.as_mut().unwrap();
        all.push(all[0].clone());
    });
    denied(&scene.propose("twice", &acme("1200.00")).await, "provenance", "not_in_mandate");
    scene.bends.sources.clear();
    for (name, value) in [
        ("currency", json!("USD")),
        ("source_account", json!({ "ref": "BNK2" })),
        ("source_account", json!(NOBODYS)),
    ] {
        let mut proposal = acme("1200.00");
        proposal["args"][name] = value.clone();
        let found = scene.propose(&format!("{name}{value}"), &proposal).await;
        denied(&found, "provenance", "not_in_mandate");
    }
    assert!(scene.paid().await.is_empty());
    scene.close().await;
}

#[tokio::test]
async fn a_bill_that_contradicts_itself_or_is_none_is_not_paid() {
    let scene = Scene::new().await;
    let bends = &scene.bends.bill;
    bends.set(|answer| {
        let bill = &mut answer.as_mut().unwrap().as_mut().unwrap().bill;
        bill.payable.vendors = vec![VendorId::new("V-200").unwrap()];
    });
    let lines = scene.propose("lines", &acme("1200.00")).await;
    denied(&lines, "policy", "bill-must-be-consistent");
    denied(&lines, "policy", "payee-must-be-invoice-vendor");
    bends.set(|answer| {
        let bill = &mut answer.as_mut().unwrap().as_mut().unwrap().bill;
        bill.header.total = bill.header.total.checked_add(bill.header.total).unwrap();
    });
    let total = scene.propose("total", &acme("1200.00")).await;
    denied(&total, "policy", "bill-must-be-consistent");
    bends.set(|answer| {
        let bill = &mut answer.as_mut().unwrap().as_mut().unwrap().bill;
        bill.kind = BillKind::CreditNote;
    });
    denied(&scene.propose("note", &acme("1200.00")).await, "policy", "bill-must-be-open");
    let id = BillId::new("INV-1").unwrap();
    assert!(
        scene.pack.bill(&company(), &id, Eyes::Human).await.unwrap().is_none(),
        "a credit note is shown"
    );
    bends.set(|answer| {
        let reading = answer.as_mut().unwrap().as_mut().unwrap();
        reading.company_currency = Currency::from_code("USD").unwrap();
    });
    denied(&scene.propose("rate", &acme("1200.00")).await, "policy", "currency_needs_rate");
    scene.close().await;
}

#[tokio::test]
async fn a_list_that_does_not_answer_is_a_denial() {
    let scene = Scene::new().await;
    let silent = || NoAnswer { provider: "test".to_owned(), reason: "asleep".to_owned() };
    scene.bends.screening.set(move |answer| *answer = Err(silent()));
    denied(&scene.propose("k", &acme("1200.00")).await, "error", "fact_unavailable");
    scene.bends.screening.clear();
    scene.bends.vop.set(move |answer| *answer = Err(silent()));
    denied(&scene.propose("k", &acme("1200.00")).await, "error", "fact_unavailable");
    scene.bends.vop.clear();
    assert_eq!(scene.propose("k", &acme("1200.00")).await.status, Status::Executed);
    scene.close().await;
}

#[tokio::test]
async fn what_a_bank_or_a_list_leaves_open_needs_four_eyes() {
    let scene = Scene::new().await;
    let waits = async |key: &str, rule: &str| {
        let waits = scene.propose(key, &acme("1200.00")).await;
        assert_eq!((waits.status, waits.level), (Status::Pending, Level::FourEyes), "{key}");
        assert_eq!(waits.decision.reasons, [rule]);
        scene.gateway.cancel(&scene.caller().await, &waits.id).await.unwrap();
    };
    scene.bends.vop.set(|answer| {
        answer.as_mut().unwrap().result = VopResult::CloseMatch { actual_name: None };
    });
    waits("close", "vop-close-match-needs-four-eyes").await;
    scene.bends.vop.set(|answer| answer.as_mut().unwrap().result = VopResult::NotPossible);
    waits("not possible", "vop-not-possible-needs-four-eyes").await;
    scene.bends.vop.clear();
    scene.bends.screening.set(|answer| *answer = Ok(Screening::NotChecked));
    waits("not checked", "unscreened-payee-needs-four-eyes").await;
    scene.close().await;
}

#[tokio::test]
async fn an_account_in_cooling_off_needs_four_eyes_until_it_is_over() {
    let world = WORLD.replacen("iban_age_days = 400", "iban_age_days = 2", 1);
    let scene = Scene::of(Installation::with(&world, "sqlite://countersign.db", "")).await;
    let waits = scene.propose("a", &acme("1200.00")).await;
    assert_eq!((waits.status, waits.level), (Status::Pending, Level::FourEyes));
    assert_eq!(waits.decision.reasons, ["fresh-account-needs-four-eyes"]);
    assert_eq!(waits.substance.facts["in_cooling_off"].value, json!(true));
    scene.gateway.cancel(&scene.caller().await, &waits.id).await.unwrap();
    scene.bends.move_clock(scene.pack.rules().cooling_off);
    let done = scene.propose("b", &acme("1200.00")).await;
    assert_eq!(done.substance.facts["in_cooling_off"].value, json!(false));
    assert_ne!(done.status, Status::Pending, "{:?}", done.decision);
    scene.close().await;
}

#[tokio::test]
async fn before_the_first_contact_nothing_is_paid() {
    let scene = Scene::before_first_contact(Installation::new()).await;
    denied(&scene.propose("k", &acme("1200.00")).await, "policy", "baseline_missing");
    scene.close().await;
}

#[tokio::test]
async fn what_was_booked_otherwise_is_written_down_as_it_is_and_freezes_the_vendor() {
    let scene = Scene::new().await;
    scene.bends.booked.set(|answer| {
        let booked = answer.as_mut().unwrap();
        booked.amount = booked.amount.checked_add(booked.amount).unwrap();
    });
    let odd = scene.propose("a", &acme("1200.00")).await;
    assert_eq!(
        (odd.status, odd.decision.reasons.as_slice()),
        (Status::Executed, ["booked_otherwise".to_owned()].as_slice())
    );
    assert!(matches!(odd.result, Some(OperationResult::Payment(paid)) if paid.amount == "2400.00"));
    assert_eq!(scene.causes_of_freezes().await, ["booked_otherwise"]);
    scene.bends.booked.clear();
    denied(&scene.propose("b", &pay("INV-3", "V-100", "1.00")).await, "execution", "frozen");
    let other = scene.propose("c", &pay("INV-2", "V-200", "300.00")).await;
    assert_eq!(other.decision.stage.code(), "policy", "{:?}", other.decision);
    scene.close().await;
}

#[tokio::test]
async fn an_erp_that_contradicts_the_store_stops_everything() {
    for what in
        [Contradiction::BadSeal, Contradiction::StoreBehind, Contradiction::MarkerUsedOtherwise]
    {
        let scene = Scene::new().await;
        *scene.bends.instead.lock().unwrap() = Some(OrderError::Contradicted(what));
        let odd = scene.propose("a", &acme("1200.00")).await;
        assert_eq!(odd.status, Status::Unknown, "{:?}", odd.decision);
        assert_eq!(odd.decision.reasons, ["erp_contradicts_store"]);
        assert_eq!(scene.causes_of_freezes().await, [what.code()]);
        let other = scene.propose("b", &pay("INV-2", "V-200", "300.00")).await;
        denied(&other, "execution", "frozen");
        assert_eq!(scene.reserved().await, 120_000, "it may be booked");
        scene.close().await;
    }
}

#[tokio::test]
async fn an_order_that_came_too_late_is_made_anew() {
    let scene = Scene::new().await;
    *scene.bends.instead.lock().unwrap() = Some(OrderError::Refused(Refusal::TooLate));
    scene.propose_beside("k", &acme("1200.00"));
    let waiting = scene.until_written(2).await;
    assert_eq!(waiting.status, Status::Executing, "{:?}", waiting.decision);
    scene.settle().await;
    let done = scene.until_written(4).await;
    assert_eq!(done.status, Status::Executed, "{:?}", done.decision);
    assert_eq!((scene.bends.sent(), scene.paid().await["INV-1"]), (2, 1));
    scene.close().await;
}

fn lost() -> OrderError {
    OrderError::OutcomeUnknown { reason: "the line was cut".to_owned() }
}

#[tokio::test]
async fn only_a_look_up_after_the_deadline_proves_that_an_order_was_not_booked() {
    let scene = Scene::new().await;
    *scene.bends.instead.lock().unwrap() = Some(lost());
    let odd = scene.propose("k", &acme("1200.00")).await;
    assert_eq!(odd.status, Status::Unknown);
    scene.settle().await;
    assert_eq!(scene.until_written(2).await.status, Status::Unknown);
    assert_eq!(scene.bends.sent(), 1, "sent again while it may still be booked");
    scene.advance("3s").await;
    scene.settle().await;
    assert_eq!(scene.until_written(4).await.status, Status::Executed);
    assert_eq!((scene.bends.sent(), scene.paid().await["INV-1"]), (2, 1));
    scene.close().await;
}

#[tokio::test]
async fn what_is_proved_absent_and_does_not_stand_any_more_fails() {
    for what in ["denied", "changed"] {
        let scene = Scene::new().await;
        *scene.bends.instead.lock().unwrap() = Some(lost());
        let odd = scene.propose("k", &acme("1200.00")).await;
        assert_eq!(odd.status, Status::Unknown);
        scene.bends.bill.set(move |answer| {
            let bill = &mut answer.as_mut().unwrap().as_mut().unwrap().bill;
            if what == "denied" {
                bill.state = BillState::Cancelled;
            } else {
                bill.reference = Some("another".to_owned());
            }
        });
        scene.advance("3s").await;
        scene.settle().await;
        let ended = scene.until_written(3).await;
        assert_eq!((ended.status, scene.bends.sent()), (Status::Failed, 1), "{what}");
        assert_eq!(ended.decision.reasons, ["proved_absent"]);
        assert_eq!(scene.reserved().await, 0);
        scene.close().await;
    }
}

#[tokio::test]
async fn a_clock_a_guard_or_a_silence_that_is_wrong_stops_paying() {
    let scene = Scene::new().await;
    let workers = scene.workers();
    assert!(workers.prove().await);
    scene.bends.proof.set(|answer| {
        let proof = answer.as_mut().unwrap();
        proof.erp_time = proof.erp_time.plus(Duration::from_mins(1));
    });
    assert!(!workers.prove().await, "a clock a minute ahead");
    scene.bends.proof.set(|answer| {
        let proof = answer.as_mut().unwrap();
        proof.erp_time = proof.erp_time.minus(Duration::from_mins(1));
    });
    assert!(!workers.prove().await, "a clock a minute behind");
    scene.bends.proof.set(|answer| {
        answer.as_mut().unwrap().identities[1].problems.push("edits vendors".to_owned());
    });
    assert!(!workers.prove().await, "a payer that can do more");
    scene.bends.proof.set(|answer| {
        *answer = Err(ReadError::Unavailable { reason: "asleep".to_owned() });
    });
    assert!(!workers.prove().await, "no proof");
    denied(&scene.propose("k", &acme("1200.00")).await, "error", "erp_not_ready");
    scene.bends.proof.clear();
    assert!(workers.prove().await);
    assert_eq!(scene.propose("k", &acme("1200.00")).await.status, Status::Executed);
    assert!(scene.causes_of_freezes().await.is_empty());
    scene.bends.proof.set(|answer| answer.as_mut().unwrap().newest_seq = 2);
    assert!(!workers.prove().await, "the store is behind");
    assert_eq!(scene.causes_of_freezes().await, ["store_behind"]);
    scene.close().await;
}

#[tokio::test]
async fn an_order_that_is_taken_over_counts_for_the_company_that_it_was_for() {
    let world = WORLD.replace("bill.FOX-1]", "bill.INV-2]");
    let scene = Scene::of(Installation::with(&world, "sqlite://countersign.db", "")).await;
    // An order of the fox for a bill that has the same id in both companies, in a table that the
    // store knows nothing of.
    scene.propose("k", &acme("1200.00")).await;
    scene.bends.orders.set(|answer| {
        for order in answer.as_mut().unwrap() {
            order.marker = Marker::from_bytes([9; 16]);
            order.seq = 7;
            order.erp_company = ErpCompanyId::new("red-fox").unwrap();
            order.bill = BillId::new("INV-2").unwrap();
            order.amount = Amount::from_minor(34_000, order.amount.currency());
            order.total = order.amount;
        }
    });
    let taken = adoption::take_orders_over(scene.pack.ports(), 0, "test").await;
    assert_eq!(taken.unwrap(), 1);
    let ours = scene.propose("b", &pay("INV-2", "V-200", "300.00")).await;
    assert_eq!(ours.decision.reasons, ["partial-payment-needs-four-eyes"]);
    assert_eq!(scene.gateway.newest_order().await.unwrap(), 7);
    scene.close().await;
}

#[tokio::test]
async fn a_daemon_at_work_is_no_orphan() {
    let scene = Scene::new().await;
    let (own, other) = (scene.gateway.clone(), scene.another());
    *scene.bends.meanwhile.lock().unwrap() = Some(Box::pin(async move {
        round(&own, true).await;
        round(&other, false).await;
    }));
    let done = scene.propose("k", &acme("1200.00")).await;
    assert_eq!((done.status, done.version), (Status::Executed, 2), "{:?}", done.decision);
    scene.close().await;
}

#[tokio::test]
async fn who_comes_second_with_an_outcome_changes_nothing() {
    let scene = Scene::new().await;
    let (other, sandbox) = (scene.another(), scene.app.base.sandbox.clone().unwrap());
    *scene.bends.meanwhile.lock().unwrap() = Some(Box::pin(async move {
        // The lease is over, another daemon asks the ERP, and makes a new order.
        sandbox.advance_clock("1m").await.unwrap();
        round(&other, false).await;
        round(&other, false).await;
        other.finish().await;
    }));
    scene.propose("k", &acme("1200.00")).await;
    scene.gateway.finish().await;
    // Decided, unknown, claimed again, executed; the late refusal is no fifth.
    let done = scene.until_written(4).await;
    assert_eq!((done.status, done.version), (Status::Executed, 4), "{:?}", done.decision);
    assert_eq!((scene.bends.sent(), scene.paid().await["INV-1"]), (2, 1));
    scene.close().await;
}

#[tokio::test]
async fn an_outcome_of_an_order_that_was_given_up_says_nothing_about_the_next_one() {
    let scene = Scene::new().await;
    let (other, sandbox) = (scene.another(), scene.app.base.sandbox.clone().unwrap());
    let (bends, gate) = (Arc::clone(&scene.bends), Arc::new(Notify::new()));
    let (again, held) = (other.clone(), Arc::clone(&gate));
    *scene.bends.meanwhile.lock().unwrap() = Some(Box::pin(async move {
        // The next order is on its way until the test lets it arrive.
        *bends.meanwhile.lock().unwrap() = Some(Box::pin(async move { held.notified().await }));
        sandbox.advance_clock("1m").await.unwrap();
        round(&again, false).await;
        round(&again, false).await;
    }));
    *scene.bends.instead.lock().unwrap() = Some(lost());
    scene.propose_beside("k", &acme("1200.00"));
    scene.until_written(3).await;
    scene.gateway.finish().await;
    let under_way = scene.until_written(3).await;
    assert_eq!((under_way.status, under_way.version), (Status::Executing, 3));
    gate.notify_one();
    other.finish().await;
    let done = scene.until_written(4).await;
    assert_eq!((done.status, done.version), (Status::Executed, 4), "{:?}", done.decision);
    assert_eq!(scene.paid().await["INV-1"], 1);
    scene.close().await;
}

fn not_sent() -> OrderError {
    OrderError::NotSent { reason: "no route".to_owned() }
}

#[tokio::test]
async fn two_daemons_that_try_again_at_once_make_one_order() {
    let scene = Scene::new().await;
    *scene.bends.instead.lock().unwrap() = Some(not_sent());
    scene.propose_beside("k", &acme("1200.00"));
    assert_eq!(scene.until_written(2).await.status, Status::Executing);
    let other = scene.another();
    *scene.bends.while_verifying.lock().unwrap() = Some(Box::pin(async move {
        round(&other, false).await;
        other.finish().await;
    }));
    scene.settle().await;
    scene.gateway.finish().await;
    let done = scene.until_written(4).await;
    assert_eq!((done.status, done.version), (Status::Executed, 4), "{:?}", done.decision);
    assert_eq!((scene.bends.sent(), scene.paid().await["INV-1"]), (2, 1));
    scene.close().await;
}

#[tokio::test]
async fn what_cannot_be_sent_is_given_up_a_quarter_of_an_hour_after_the_first_try() {
    let scene = Scene::new().await;
    *scene.bends.instead.lock().unwrap() = Some(not_sent());
    scene.propose_beside("k", &acme("1200.00"));
    for tried in [2, 4] {
        assert_eq!(scene.until_written(tried).await.status, Status::Executing);
        *scene.bends.instead.lock().unwrap() = Some(not_sent());
        scene.advance("6m").await;
        scene.settle().await;
    }
    scene.until_written(6).await;
    scene.advance("6m").await;
    scene.settle().await;
    let ended = scene.until_written(7).await;
    assert_eq!((ended.status, scene.bends.sent()), (Status::Failed, 3), "{:?}", ended.decision);
    assert_eq!(ended.decision.reasons, ["never_sent"]);
    assert_eq!(scene.reserved().await, 0);
    scene.close().await;
}

#[tokio::test]
async fn a_bill_of_a_vendor_that_was_made_a_contact_of_another_one_is_not_paid() {
    let scene = Scene::new().await;
    scene.bends.bill.set(|answer| {
        let bill = &mut answer.as_mut().unwrap().as_mut().unwrap().bill;
        bill.header.entered = VendorId::new("V-200").unwrap();
    });
    let moved = scene.propose("known", &acme("1200.00")).await;
    denied(&moved, "policy", "account-changed-in-erp-never-paid");
    scene.bends.bill.set(|answer| {
        let bill = &mut answer.as_mut().unwrap().as_mut().unwrap().bill;
        bill.header.entered = VendorId::new("V-100-contact").unwrap();
    });
    // A contact that never was a vendor is the vendor's own.
    let contact = scene.propose("contact", &acme("1200.00")).await;
    assert_eq!(contact.status, Status::Executed, "{:?}", contact.decision);
    scene.close().await;
}

#[tokio::test]
async fn a_vendor_that_holds_an_account_of_another_one_is_not_paid() {
    let scene = Scene::new().await;
    scene.bends.bill.set(|answer| {
        let vendor = answer.as_mut().unwrap().as_mut().unwrap().vendor.as_mut().unwrap();
        let mut merged = vendor.accounts[0].clone();
        merged.id = AccountId::new("V-200/1").unwrap();
        merged.active = false;
        vendor.accounts.push(merged);
    });
    let merged = scene.propose("k", &acme("1200.00")).await;
    denied(&merged, "policy", "account-changed-in-erp-never-paid");
    scene.close().await;
}
