//! Each call is told once, with how it ended.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign_erp_source::{
    Call, CompanyId, Ended, ErpSource, Iban, LookUp, Measured, Observer, OrderError, PayeeVerifier,
    PaymentOrder, Review, SanctionsScreen,
};
use countersign_sandbox::{FaultKind, FaultPoint, FaultRequest};

use crate::world::{ACME_IBAN, Place, UNUSED_IBAN, acme_bill, company, looking_for};

/// What was told.
#[derive(Debug, Default)]
pub(crate) struct Noted(Mutex<Vec<(Call, Ended, Duration)>>);

impl Observer for Noted {
    fn ended(&self, call: Call, ended: Ended, took: Duration) {
        self.0.lock().unwrap().push((call, ended, took));
    }
}

impl Noted {
    /// What was told since the last time.
    fn told(&self) -> Vec<(Call, Ended)> {
        let told = std::mem::take(&mut *self.0.lock().unwrap());
        told.into_iter().map(|(call, ended, _)| (call, ended)).collect()
    }
}

#[tokio::test]
async fn every_call_is_told_once_with_how_it_ended() {
    let place = Place::new();
    let sandbox = Arc::new(place.open().await);
    let noted = Arc::<Noted>::default();
    let measured = Measured::new(Arc::clone(&sandbox), Arc::<Noted>::clone(&noted));
    let fault = async |on, what| {
        let request = FaultRequest { on, what, times: 1, lasts: None };
        sandbox.put_fault(&request).await.unwrap();
    };
    let (order, iban) = (place.sealed("1200.00"), Iban::parse(ACME_IBAN).unwrap());

    measured.find_bill(&company(), &acme_bill()).await.unwrap();
    assert_eq!(noted.told(), [(Call::FindBill, Ended::Answered)]);
    let nowhere = CompanyId::new("nowhere").unwrap();
    measured.source_accounts(&nowhere).await.unwrap_err();
    assert_eq!(noted.told(), [(Call::SourceAccounts, Ended::UnknownCompany)]);
    fault(FaultPoint::Read, FaultKind::Unreachable).await;
    measured.find_bill(&company(), &acme_bill()).await.unwrap_err();
    assert_eq!(noted.told(), [(Call::FindBill, Ended::Unavailable)]);

    for (what, ended) in [
        (FaultKind::Refuse, Ended::Refused),
        (FaultKind::Unreachable, Ended::NotSent),
        (FaultKind::LostAnswer, Ended::OutcomeUnknown),
    ] {
        fault(FaultPoint::RegisterPayment, what).await;
        measured.register_payment(&order).await.unwrap_err();
        assert_eq!(noted.told(), [(Call::RegisterPayment, ended)]);
    }
    measured.register_payment(&order).await.unwrap();
    assert_eq!(noted.told(), [(Call::RegisterPayment, Ended::Answered)]);
    let other = PaymentOrder { amount: place.order("1100.00").amount, ..order.order().clone() };
    let refused = measured.register_payment(&place.key.seal(other)).await.unwrap_err();
    assert!(matches!(refused, OrderError::Contradicted(_)), "{refused:?}");
    assert_eq!(noted.told(), [(Call::RegisterPayment, Ended::Contradicted)]);

    let wanted =
        LookUp { company: company(), bill: acme_bill(), marker: order.order().marker.clone() };
    measured.look_up(&wanted).await.unwrap();
    let change = place.change(UNUSED_IBAN);
    measured.change_bank_details(&change).await.unwrap();
    measured.look_up_change(&looking_for(&change)).await.unwrap();
    measured.list_changes(&company(), 0, 10).await.unwrap();
    let review = Review { company: company(), orders: Vec::new() };
    measured.review(&review).await.unwrap();
    measured.list_orders("st_none", 0, 10).await.unwrap();
    measured.attest("st_none").await.unwrap();
    measured.list_vendors(&company(), None, 10).await.unwrap();
    measured.verify("ACME SAS", &iban).await.unwrap();
    measured.screen(&iban).await.unwrap();
    let calls: Vec<Call> = noted.told().into_iter().map(|(call, _)| call).collect();
    let expected = [
        Call::LookUp,
        Call::ChangeBankDetails,
        Call::LookUpChange,
        Call::ListChanges,
        Call::Review,
        Call::ListOrders,
        Call::Attest,
        Call::ListVendors,
        Call::VerifyPayee,
        Call::ScreenPayee,
    ];
    assert_eq!(calls, expected);
    assert_eq!((measured.companies(), measured.list()), (sandbox.companies(), sandbox.list()));
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_is_told_with_its_time() {
    let place = Place::new();
    let sandbox = Arc::new(place.open().await);
    let noted = Arc::<Noted>::default();
    let measured = Measured::new(Arc::clone(&sandbox), Arc::<Noted>::clone(&noted));
    let slow = FaultRequest {
        on: FaultPoint::Read,
        what: FaultKind::Slow,
        times: 1,
        lasts: Some("3s".to_owned()),
    };
    sandbox.put_fault(&slow).await.unwrap();
    let waited = Duration::from_millis(50);
    let (company, bill) = (company(), acme_bill());
    tokio::time::timeout(waited, measured.find_bill(&company, &bill)).await.unwrap_err();
    let told = noted.0.lock().unwrap().clone();
    let [(Call::FindBill, Ended::Dropped, took)] = told.as_slice() else { panic!("{told:?}") };
    assert!(*took >= waited, "{took:?}");
}
