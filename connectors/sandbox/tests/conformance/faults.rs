//! Each fault does what it says, so many times, to those calls.

use std::process::Command;
use std::time::Duration;

use countersign_erp_source::{
    ErpSource, Iban, LookUp, OrderError, PayeeVerifier, ReadError, Refusal, Review, VendorId,
    VopResult,
};
use countersign_sandbox::{FaultKind, FaultPoint, FaultRequest, Options, Sandbox};

use crate::world::{ACME_IBAN, Place, UNUSED_IBAN, acme_bill, company, looking_for};

/// Names the folder of the sandbox to the process that is to die.
const CHILD_FILE: &str = "COUNTERSIGN_SANDBOX_CHILD_FILE";

fn fault(on: FaultPoint, what: FaultKind) -> FaultRequest {
    FaultRequest { on, what, times: 1, lasts: None }
}

#[tokio::test]
async fn an_order_is_refused_not_sent_or_its_answer_lost() {
    let place = Place::new();
    let sandbox = place.open().await;
    let on = FaultPoint::RegisterPayment;
    sandbox.put_fault(&fault(on, FaultKind::Refuse)).await.unwrap();
    sandbox.put_fault(&fault(on, FaultKind::Unreachable)).await.unwrap();
    let order = place.sealed("1200.00");
    let refused = sandbox.register_payment(&order).await;
    assert_eq!(refused, Err(OrderError::Refused(Refusal::Other)));
    let unsent = sandbox.register_payment(&order).await;
    assert!(matches!(unsent, Err(OrderError::NotSent { .. })), "{unsent:?}");
    assert_eq!(sandbox.payments().await.unwrap(), vec![]);

    sandbox.put_fault(&fault(on, FaultKind::LostAnswer)).await.unwrap();
    let lost = sandbox.register_payment(&order).await;
    assert!(matches!(lost, Err(OrderError::OutcomeUnknown { .. })), "{lost:?}");
    assert_eq!(sandbox.payments().await.unwrap().len(), 1);
    sandbox.register_payment(&order).await.unwrap();
}

#[tokio::test]
async fn a_change_is_refused_not_sent_or_its_answer_lost() {
    let place = Place::new();
    let sandbox = place.open().await;
    let on = FaultPoint::UpdateBankDetails;
    for what in [FaultKind::Refuse, FaultKind::Unreachable, FaultKind::LostAnswer] {
        sandbox.put_fault(&fault(on, what)).await.unwrap();
    }
    // A payment meets none of them.
    sandbox.register_payment(&place.sealed("1.00")).await.unwrap();
    let order = place.change(UNUSED_IBAN);
    let refused = sandbox.change_bank_details(&order).await;
    assert_eq!(refused, Err(OrderError::Refused(Refusal::Other)));
    let unsent = sandbox.change_bank_details(&order).await;
    assert!(matches!(unsent, Err(OrderError::NotSent { .. })), "{unsent:?}");
    assert_eq!(sandbox.list_changes(&company(), 0, 10).await, Ok(vec![]));
    let lost = sandbox.change_bank_details(&order).await;
    assert!(matches!(lost, Err(OrderError::OutcomeUnknown { .. })), "{lost:?}");
    let found = sandbox.look_up_change(&looking_for(&order)).await.unwrap();
    assert_eq!(sandbox.change_bank_details(&order).await.ok(), found.booked);
}

#[tokio::test]
async fn a_look_up_of_a_change_gives_no_answer_and_the_log_does() {
    let place = Place::new();
    let sandbox = place.open().await;
    let wanted = looking_for(&place.change(UNUSED_IBAN));
    let review = Review { company: company(), orders: Vec::new() };
    for on in [FaultPoint::FindPayment, FaultPoint::Read] {
        sandbox.put_fault(&fault(on, FaultKind::Unreachable)).await.unwrap();
    }
    sandbox.list_changes(&company(), 0, 10).await.unwrap();
    sandbox.review(&review).await.unwrap();
    let found = sandbox.look_up_change(&wanted).await;
    assert!(matches!(found, Err(ReadError::Unavailable { .. })), "{found:?}");
    assert_eq!(sandbox.look_up_change(&wanted).await.unwrap().booked, None);
}

#[tokio::test]
async fn a_slow_order_is_booked_after_its_caller_gave_up() {
    let place = Place::new();
    let deadline = Options { call_deadline: Duration::from_secs(1), ..place.options() };
    let sandbox = Sandbox::open(deadline).await.unwrap();
    let slow = FaultRequest {
        lasts: Some("1500ms".to_owned()),
        ..fault(FaultPoint::RegisterPayment, FaultKind::Slow)
    };
    sandbox.put_fault(&slow).await.unwrap();
    let late = sandbox.register_payment(&place.sealed("1200.00")).await;
    assert!(matches!(late, Err(OrderError::OutcomeUnknown { .. })), "{late:?}");
    // Closing waits for the orders under way.
    sandbox.close().await;
    assert_eq!(place.open().await.payments().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_caller_that_hangs_up_stops_nothing() {
    let place = Place::new();
    let sandbox = place.open().await;
    let slow = FaultRequest {
        lasts: Some("200ms".to_owned()),
        ..fault(FaultPoint::RegisterPayment, FaultKind::Slow)
    };
    sandbox.put_fault(&slow).await.unwrap();
    let order = place.sealed("1200.00");
    let sent = async {
        while sandbox.orders_under_way() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = sent => {}
        answer = sandbox.register_payment(&order) => panic!("the order was not slow: {answer:?}"),
    }
    sandbox.close().await;
    assert_eq!(place.open().await.payments().await.unwrap().len(), 1);
}

#[tokio::test]
async fn reads_look_ups_and_vop_give_no_answer() {
    let place = Place::new();
    let sandbox = place.open().await;
    let order = place.order("1.00");
    let wanted = LookUp { company: company(), bill: acme_bill(), marker: order.marker };
    let iban = Iban::parse(ACME_IBAN).unwrap();
    for what in [FaultKind::Refuse, FaultKind::Unreachable, FaultKind::LostAnswer] {
        for on in [FaultPoint::Read, FaultPoint::FindPayment, FaultPoint::Vop] {
            sandbox.put_fault(&fault(on, what)).await.unwrap();
        }
        let read = sandbox.find_bill(&company(), &acme_bill()).await;
        assert!(matches!(read, Err(ReadError::Unavailable { .. })), "{what:?}: {read:?}");
        let found = sandbox.look_up(&wanted).await;
        assert!(matches!(found, Err(ReadError::Unavailable { .. })), "{what:?}: {found:?}");
        assert!(sandbox.verify("ACME SAS", &iban).await.is_err(), "{what:?}");
    }
    assert!(sandbox.find_bill(&company(), &acme_bill()).await.unwrap().is_some());
    sandbox.look_up(&wanted).await.unwrap();
    assert_eq!(sandbox.verify("ACME SAS", &iban).await.unwrap().result, VopResult::Match);
}

#[tokio::test]
async fn a_slow_read_is_cut_off_at_the_deadline() {
    let place = Place::new();
    let deadline = Options { call_deadline: Duration::from_millis(100), ..place.options() };
    let sandbox = Sandbox::open(deadline).await.unwrap();
    let slow =
        FaultRequest { lasts: Some("5m".to_owned()), ..fault(FaultPoint::Read, FaultKind::Slow) };
    sandbox.put_fault(&slow).await.unwrap();
    let read = sandbox.find_bill(&company(), &acme_bill()).await;
    assert!(matches!(read, Err(ReadError::Unavailable { .. })), "{read:?}");
}

#[tokio::test]
async fn a_fault_hits_so_many_calls_of_operations_only() {
    let place = Place::new();
    let sandbox = place.open().await;
    let twice = FaultRequest { times: 2, ..fault(FaultPoint::Read, FaultKind::Refuse) };
    sandbox.put_fault(&twice).await.unwrap();
    let plain = sandbox.without_faults();
    plain.find_bill(&company(), &acme_bill()).await.unwrap();
    sandbox.list_vendors(&company(), None, 10).await.unwrap();
    sandbox.source_accounts(&company()).await.unwrap();
    sandbox.find_bill(&company(), &acme_bill()).await.unwrap_err();
    // Another daemon on the same file finds what is left of it.
    let other = place.open().await;
    other.find_vendor(&company(), &VendorId::new("V-100").unwrap()).await.unwrap_err();
    sandbox.find_bill(&company(), &acme_bill()).await.unwrap();
    // None any more takes back what has not happened, of that kind and place.
    sandbox.put_fault(&twice).await.unwrap();
    sandbox.put_fault(&FaultRequest { times: 0, ..twice.clone() }).await.unwrap();
    sandbox.find_bill(&company(), &acme_bill()).await.unwrap();
    for wrong in [
        fault(FaultPoint::Read, FaultKind::Slow),
        FaultRequest { lasts: Some("soon".to_owned()), ..twice.clone() },
    ] {
        assert!(sandbox.put_fault(&wrong).await.is_err(), "{wrong:?}");
    }
}

/// Runs in a process of its own, which the fault kills.
#[tokio::test]
async fn child_that_pays_and_dies() {
    let Some(folder) = std::env::var_os(CHILD_FILE) else { return };
    let place = Place::new();
    let options = Options { file: folder.into(), world: None, ..place.options() };
    let sandbox = Sandbox::open(options).await.unwrap();
    let answer = sandbox.register_payment(&place.sealed("1200.00")).await;
    panic!("the fault did not kill this process: {answer:?}");
}

/// Runs in a process of its own, which the fault kills.
#[tokio::test]
async fn child_that_changes_details_and_dies() {
    let Some(folder) = std::env::var_os(CHILD_FILE) else { return };
    let place = Place::new();
    let options = Options { file: folder.into(), world: None, ..place.options() };
    let sandbox = Sandbox::open(options).await.unwrap();
    let answer = sandbox.change_bank_details(&place.change(UNUSED_IBAN)).await;
    panic!("the fault did not kill this process: {answer:?}");
}

fn run_child(place: &Place, name: &str) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD_FILE, place.file())
        .output()
        .unwrap();
    assert!(!child.status.success(), "the child lives");
    let said = String::from_utf8_lossy(&child.stderr).into_owned();
    assert!(!said.contains("did not kill"), "{said}");
}

#[tokio::test]
async fn a_daemon_that_dies_before_or_after_a_change_has_made_none_or_one() {
    for (what, made) in [(FaultKind::AbortBefore, false), (FaultKind::AbortAfter, true)] {
        let place = Place::new();
        let sandbox = place.open().await;
        sandbox.put_fault(&fault(FaultPoint::UpdateBankDetails, what)).await.unwrap();
        run_child(&place, "faults::child_that_changes_details_and_dies");
        let log = sandbox.list_changes(&company(), 0, 10).await.unwrap();
        assert_eq!(!log.is_empty(), made, "{what:?}");
        sandbox.change_bank_details(&place.change(UNUSED_IBAN)).await.unwrap();
        assert_eq!(sandbox.list_changes(&company(), 0, 10).await.unwrap().len(), 2, "{what:?}");
    }
}

async fn payments_after(what: FaultKind) -> usize {
    let place = Place::new();
    let sandbox = place.open().await;
    sandbox.put_fault(&fault(FaultPoint::RegisterPayment, what)).await.unwrap();
    run_child(&place, "faults::child_that_pays_and_dies");
    let booked = sandbox.payments().await.unwrap().len();
    // The count went down before the fault struck, so the same order now goes through.
    sandbox.register_payment(&place.sealed("1200.00")).await.unwrap();
    assert_eq!(sandbox.payments().await.unwrap().len(), 1);
    booked
}

#[tokio::test]
async fn a_daemon_that_dies_before_the_work_has_paid_nothing() {
    assert_eq!(payments_after(FaultKind::AbortBefore).await, 0);
}

#[tokio::test]
async fn a_daemon_that_dies_after_the_work_has_paid() {
    assert_eq!(payments_after(FaultKind::AbortAfter).await, 1);
}
