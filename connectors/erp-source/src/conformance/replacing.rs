//! Which account a change replaces and with what; what is never changed, though the daemon sealed
//! it; and that only what it sealed is.

use super::changing::number;
use super::scene::{Store, assert_not_changed, change, held, named, open_bill, standing, vendor};
use super::{Edit, Fixture};
use crate::{
    AccountNumber, Contradiction, Iban, OldAccount, OrderError, Refusal, SealKey, SealedBankChange,
    SealedOrder,
};

/// The account that the order replaces is not the vendor's: by record, by number, or both.
pub async fn an_old_account_that_is_not_there_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let other = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let ours = (open.account.clone(), AccountNumber::Iban(open.iban.clone()));
    let theirs = (other.account.clone(), AccountNumber::Iban(other.iban.clone()));
    let wrong = [
        (theirs.0.clone(), ours.1.clone()),
        (ours.0.clone(), theirs.1.clone()),
        (ours.0.clone(), number(&fixture.another_iban())),
        theirs,
    ];
    for (account, number) in wrong {
        let mut order = store.change(fixture, &open, &fixture.another_iban()).await;
        order.old = Some(OldAccount { account, number });
        assert_not_changed(fixture, &order, &[Refusal::AccountMismatch]).await;
    }
    // The number was edited after the decision.
    let order = store.change(fixture, &open, &fixture.another_iban()).await;
    fixture.edit(Edit::ChangeNumber(open.account, fixture.another_iban())).await;
    assert_not_changed(fixture, &order, &[Refusal::AccountMismatch]).await;
}

/// Where a vendor has several active accounts, it cannot be said which is replaced.
pub async fn a_vendor_with_several_accounts_is_not_changed(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let second = fixture.another_iban();
    fixture.edit(Edit::AddAccount(open.vendor.clone(), second.clone())).await;
    let read = vendor(fixture, &open.vendor).await;
    let added = read.accounts.iter().find(|account| account.number == number(&second));
    let added = added.expect("the added account").id.clone();
    let old = Some(OldAccount { account: added, number: number(&second) });
    let named = store.change(fixture, &open, &fixture.another_iban()).await;
    let mut other = store.change(fixture, &open, &fixture.another_iban()).await;
    other.old.clone_from(&old);
    let mut none = store.change(fixture, &open, &fixture.another_iban()).await;
    none.old = None;
    let mut there = store.change(fixture, &open, &second).await;
    for order in [&named, &other, &none, &there] {
        assert_not_changed(fixture, order, &[Refusal::SeveralAccounts]).await;
    }
    // With one of them archived it can be said.
    fixture.edit(Edit::ArchiveAccount(open.account)).await;
    there.old = old;
    there.new_iban = Iban::parse(&fixture.another_iban()).expect("a valid IBAN");
    change(fixture, &there).await.expect("the change is made");
}

/// An order that names no account where there is one, and the other way round.
pub async fn an_account_is_named_exactly_where_there_is_one(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let mut first = store.change(fixture, &open, &fixture.another_iban()).await;
    first.old = None;
    assert_not_changed(fixture, &first, &[Refusal::AccountMismatch]).await;
    fixture.edit(Edit::ArchiveAccount(open.account.clone())).await;
    let named = store.change(fixture, &open, &fixture.another_iban()).await;
    assert_not_changed(fixture, &named, &[Refusal::AccountMismatch]).await;

    let changed = change(fixture, &first).await.expect("the first account is added");
    assert_eq!(changed.differences(&first), vec![]);
    let new = AccountNumber::Iban(first.new_iban);
    assert!(held(fixture, &open.vendor).await.contains(&(new, true, true)));
}

/// The vendor's archived account with the new number is brought back as the record that it is, and
/// may be paid though the ERP did not allow it.
pub async fn an_archived_account_is_brought_back(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let away = store.change(fixture, &open, &fixture.another_iban()).await;
    let made = change(fixture, &away).await.expect("the change is made").account;
    let made = made.expect("the new account").id;
    fixture.edit(Edit::Distrust(open.account.clone())).await;

    let mut back = store.change(fixture, &open, open.iban.electronic()).await;
    let number = AccountNumber::Iban(away.new_iban.clone());
    back.old = Some(OldAccount { account: made.clone(), number: number.clone() });
    let changed = change(fixture, &back).await.expect("the change back is made");
    assert_eq!(changed.differences(&back), vec![]);
    assert_eq!(changed.account.expect("the account").id, open.account, "another record was made");
    let after = held(fixture, &open.vendor).await;
    let back_again = (AccountNumber::Iban(open.iban.clone()), true, true);
    assert_eq!(after.len(), 2, "{after:?}");
    assert!(after.contains(&back_again), "{after:?}");
    assert_eq!(after.iter().filter(|(_, active, _)| *active).count(), 1);
    let read = vendor(fixture, &open.vendor).await;
    let account = read.account(&open.account).expect("the record that was there");
    assert!(account.changed_after_creation, "an account that came back was never away");
    assert_eq!(named(fixture, &open.bill).await, Some(AccountNumber::Iban(open.iban)));
}

/// A number that the company pays from, and the number that is there already.
pub async fn a_number_of_our_own_or_the_old_one_is_refused(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let own = store.change(fixture, &open, open.source.iban.electronic()).await;
    assert_not_changed(fixture, &own, &[Refusal::AccountIsOwn]).await;
    let same = store.change(fixture, &open, open.iban.electronic()).await;
    assert_not_changed(fixture, &same, &[Refusal::BadRequest]).await;
}

/// A vendor that does not exist, and one of another company, named as ours.
pub async fn a_vendor_that_is_not_ours_is_not_changed(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let (company, bill) = fixture.foreign_bill().await;
    let there = fixture.erp().find_bill(&company, &bill).await.expect("its own company reads it");
    let foreign = there.and_then(|reading| reading.vendor).expect("its vendor");
    let before = fixture.erp().find_vendor(&company, &foreign.id).await;
    let mut order = Store::new().change(fixture, &open, &fixture.another_iban()).await;
    for missing in [fixture.unused_ids().1, foreign.id.clone()] {
        order.vendor = missing;
        order.old = foreign.active_accounts().next().map(|account| OldAccount {
            account: account.id.clone(),
            number: account.number.clone(),
        });
        let answer = change(fixture, &order).await;
        assert_eq!(answer, Err(OrderError::Refused(Refusal::NoSuchVendor)));
    }
    assert_eq!(fixture.erp().find_vendor(&company, &foreign.id).await, before);
}

/// The credential alone changes nothing: another key, another text, another seal.
pub async fn a_change_that_was_not_sealed_is_a_bad_seal(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let order = Store::new().change(fixture, &open, &fixture.another_iban()).await;
    let before = held(fixture, &open.vendor).await;
    let mut bytes = *fixture.seal_key().bytes();
    if let Some(first) = bytes.first_mut() {
        *first ^= 1;
    }
    let sealed = fixture.seal_key().seal(order.clone());
    let (text, seal) = (sealed.text(), sealed.seal());
    let other = fixture.another_iban();
    let forge =
        |text: String, seal: &str| SealedBankChange::forge(order.clone(), text, seal.to_owned());
    let forged = [
        ("another key", SealKey::from_bytes(bytes).seal(order.clone())),
        ("another number", forge(text.replace(order.new_iban.electronic(), &other), seal)),
        ("a space at the end", forge(format!("{text} "), seal)),
        ("no text", forge(String::new(), seal)),
        ("no seal", forge(text.to_owned(), "")),
        ("a seal in upper case", forge(text.to_owned(), &seal.to_ascii_uppercase())),
    ];
    for (what, forged) in forged {
        let answer = fixture.erp().change_bank_details(&forged).await;
        assert_eq!(answer, Err(OrderError::Contradicted(Contradiction::BadSeal)), "{what}");
        assert_eq!(held(fixture, &open.vendor).await, before, "{what}");
    }
    change(fixture, &order).await.expect("the same change, sealed, is made");
}

/// One key seals both kinds of order, and neither passes for the other.
pub async fn a_payment_is_no_change_and_a_change_no_payment(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let payment = store.order(fixture, &open, "100.00").await;
    let order = store.change(fixture, &open, &fixture.another_iban()).await;
    let before = held(fixture, &open.vendor).await;
    let sealed_payment = fixture.seal_key().seal(payment.clone());
    let sealed_change = fixture.seal_key().seal(order.clone());
    let (text, seal) = (sealed_payment.text().to_owned(), sealed_payment.seal().to_owned());
    let as_change = SealedBankChange::forge(order, text, seal);
    let answer = fixture.erp().change_bank_details(&as_change).await;
    assert_eq!(answer, Err(OrderError::Refused(Refusal::BadRequest)));
    let (text, seal) = (sealed_change.text().to_owned(), sealed_change.seal().to_owned());
    let as_payment = SealedOrder::forge(payment, text, seal);
    let answer = fixture.erp().register_payment(&as_payment).await;
    assert_eq!(answer, Err(OrderError::Refused(Refusal::BadRequest)));
    assert_eq!(held(fixture, &open.vendor).await, before);
    assert_eq!(standing(fixture, &open.bill).await, [0_i64; 0]);
}
