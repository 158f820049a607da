//! What is never booked, though the daemon sealed it: the world moved, or the daemon is wrong.

use super::scene::{Store, assert_refused, euros, open_bill, pay, read, standing};
use super::{Edit, Fixture};
use crate::{Amount, Currency, Iban, JournalId, Refusal};

/// A bill that does not exist.
pub async fn a_missing_bill_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "100.00").await;
    order.bill = fixture.unused_ids().0;
    assert_refused(fixture, &order, &[Refusal::NoSuchBill]).await;
}

/// A bill of another company, named as one of ours.
pub async fn a_foreign_bill_is_not_paid(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "100.00").await;
    order.bill = fixture.foreign_bill().await.1;
    assert_refused(fixture, &order, &[Refusal::NoSuchBill]).await;
}

/// A bill that was withdrawn after the decision.
pub async fn a_cancelled_bill_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let order = Store::new().order(fixture, &open, "100.00").await;
    fixture.edit(Edit::CancelBill(open.bill.clone())).await;
    assert_refused(fixture, &order, &[Refusal::BillNotPayable]).await;
    assert!(!read(fixture, &open.bill).await.bill.is_open(), "a cancelled bill is open");
}

/// An order that names another vendor than the bill's.
pub async fn a_vendor_that_is_not_the_bills_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let other = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "100.00").await;
    order.vendor = other.vendor;
    assert_refused(fixture, &order, &[Refusal::VendorInconsistent]).await;
}

/// An account that is on file, of another vendor.
pub async fn an_account_of_another_vendor_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let other = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "100.00").await;
    order.account = other.account;
    order.iban = other.iban;
    let reasons = [Refusal::VendorInconsistent, Refusal::AccountMismatch];
    assert_refused(fixture, &order, &reasons).await;
    // The vendor's own record, with the other's number, is no better.
    order.account = open.account;
    assert_refused(fixture, &order, &[Refusal::AccountMismatch]).await;
}

/// An account that was archived after the decision.
pub async fn an_archived_account_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let order = Store::new().order(fixture, &open, "100.00").await;
    fixture.edit(Edit::ArchiveAccount(open.account.clone())).await;
    assert_refused(fixture, &order, &[Refusal::AccountMismatch]).await;
    let vendor = read(fixture, &open.bill).await.vendor.expect("the vendor");
    let account = vendor.account(&open.account).expect("an archived account is still shown");
    assert!(!account.active, "an archived account is active");
}

/// A number that was changed in place after the decision.
pub async fn a_changed_number_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let order = Store::new().order(fixture, &open, "100.00").await;
    let number = fixture.unused_iban().to_owned();
    fixture.edit(Edit::ChangeNumber(open.account.clone(), number.clone())).await;
    assert_refused(fixture, &order, &[Refusal::AccountMismatch]).await;
    let vendor = read(fixture, &open.bill).await.vendor.expect("the vendor");
    let account = vendor.account(&open.account).expect("the record outlives its number");
    assert_eq!(account.number.whole(), number);
    assert!(account.changed_after_creation, "the ERP's record shows no change");
}

/// An account that the ERP itself does not allow paying to.
pub async fn a_distrusted_account_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let order = Store::new().order(fixture, &open, "100.00").await;
    fixture.edit(Edit::Distrust(open.account.clone())).await;
    assert_refused(fixture, &order, &[Refusal::AccountUntrusted]).await;
    let vendor = read(fixture, &open.bill).await.vendor.expect("the vendor");
    let account = vendor.account(&open.account).expect("the account");
    assert!(!account.erp_allows, "a distrusted account reads as allowed");
}

/// A vendor's account that has come to be one of the company's own numbers.
pub async fn an_account_of_our_own_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let own = open.source.iban.clone();
    let edit = Edit::ChangeNumber(open.account.clone(), own.electronic().to_owned());
    fixture.edit(edit).await;
    let mut order = Store::new().order(fixture, &open, "100.00").await;
    order.iban = own;
    // An ERP may take its permission away from a record whose number changes.
    let reasons = [Refusal::AccountIsOwn, Refusal::AccountUntrusted];
    assert_refused(fixture, &order, &reasons).await;
}

/// A total that is not the pinned one: the bill was edited, or another was meant.
pub async fn a_total_that_is_not_the_pinned_one_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "50.00").await;
    for total in ["99.99", "100.01", "1000.00"] {
        order.total = euros(total);
        assert_refused(fixture, &order, &[Refusal::FiguresInconsistent]).await;
    }
}

/// The right figures in another currency.
pub async fn another_currency_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut order = Store::new().order(fixture, &open, "100.00").await;
    let usd = Currency::from_code("USD").expect("USD is a currency");
    order.amount = Amount::from_minor(order.amount.minor(), usd);
    order.total = Amount::from_minor(order.total.minor(), usd);
    assert_refused(fixture, &order, &[Refusal::FiguresInconsistent]).await;
}

/// Nothing, less than nothing, and a cent too much.
pub async fn an_amount_that_is_not_there_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    for minor in [0, -100, 10_001, i64::MAX] {
        let mut order = store.order(fixture, &open, "100.00").await;
        order.amount = Amount::from_minor(minor, order.amount.currency());
        let reasons = [Refusal::AmountExceedsResidual, Refusal::BadRequest];
        assert_refused(fixture, &order, &reasons).await;
    }
    let order = store.order(fixture, &open, "100.00").await;
    pay(fixture, &order).await.expect("the whole of it is booked");
}

/// Somebody paid a part by hand after the decision.
pub async fn a_bill_paid_in_part_by_hand_takes_only_the_rest(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let whole = store.order(fixture, &open, "100.00").await;
    fixture.edit(Edit::PayByHand(open.bill.clone(), "30.00".to_owned())).await;
    assert_eq!(read(fixture, &open.bill).await.bill.header.residual, euros("70.00"));
    assert_refused(fixture, &whole, &[Refusal::AmountExceedsResidual]).await;
    let rest = store.order(fixture, &open, "70.00").await;
    let booked = pay(fixture, &rest).await.expect("the rest is booked");
    assert_eq!((booked.differences(&rest), booked.residual), (vec![], euros("0.00")));
    assert_eq!(standing(fixture, &open.bill).await, [3_000, 7_000]);
}

/// A source account that is not the company's, by number or by journal.
pub async fn a_journal_that_is_not_ours_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let mut number = store.order(fixture, &open, "100.00").await;
    number.source_iban = Iban::parse(fixture.unused_iban()).expect("the unused IBAN is valid");
    let mut journal = store.order(fixture, &open, "100.00").await;
    journal.journal = JournalId::new("XXX9").expect("a journal's code");
    for order in [&number, &journal] {
        assert_refused(fixture, order, &[Refusal::JournalMismatch]).await;
    }
}
