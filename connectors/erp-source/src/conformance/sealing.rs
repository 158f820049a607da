//! That only what the daemon sealed is booked, to the letter.

use super::Fixture;
use super::scene::{Store, open_bill, pay, standing};
use crate::{Contradiction, OrderError, SealKey, SealedOrder};

async fn assert_bad_seal(fixture: &dyn Fixture, order: &SealedOrder, what: &str) {
    let answer = fixture.erp().register_payment(order).await;
    assert_eq!(answer, Err(OrderError::Contradicted(Contradiction::BadSeal)), "{what}");
    assert_eq!(standing(fixture, &order.order().bill).await, [0_i64; 0], "{what}");
}

/// The payer's credential alone pays nothing: an order under another key is not booked.
pub async fn an_order_under_another_key_is_a_bad_seal(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let order = Store::new().order(fixture, &open, "100.00").await;
    let mut bytes = *fixture.seal_key().bytes();
    if let Some(first) = bytes.first_mut() {
        *first ^= 1;
    }
    let forged = SealKey::from_bytes(bytes).seal(order.clone());
    assert_bad_seal(fixture, &forged, "another key").await;
    pay(fixture, &order).await.expect("the same order under the right key is booked");
}

/// One other character in text or seal, and nothing is booked.
pub async fn an_altered_text_is_a_bad_seal(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let order = Store::new().order(fixture, &open, "40.00").await;
    let sealed = fixture.seal_key().seal(order.clone());
    let (text, seal) = (sealed.text(), sealed.seal());
    let altered = [
        ("another amount", text.replace("\"40.00\"", "\"41.00\""), seal.to_owned()),
        ("a space at the end", format!("{text} "), seal.to_owned()),
        ("a space within", text.replacen(':', ": ", 1), seal.to_owned()),
        ("no text", String::new(), seal.to_owned()),
        ("no seal", text.to_owned(), String::new()),
        ("half a seal", text.to_owned(), seal.chars().take(32).collect()),
        ("a seal in upper case", text.to_owned(), seal.to_ascii_uppercase()),
        ("a longer seal", text.to_owned(), format!("{seal}00")),
    ];
    for (what, text, seal) in altered {
        let forged = SealedOrder::forge(order.clone(), text, seal);
        assert_bad_seal(fixture, &forged, what).await;
    }
}

/// What was sealed is booked, whatever the order beside it says: both sides of a wire see the text
/// alone.
pub async fn only_the_sealed_text_counts(fixture: &dyn Fixture) {
    let open = open_bill(fixture, "100.00").await;
    let mut store = Store::new();
    let small = store.order(fixture, &open, "40.00").await;
    let large = store.order(fixture, &open, "100.00").await;
    let sealed = fixture.seal_key().seal(small.clone());
    let forged = SealedOrder::forge(large, sealed.text().to_owned(), sealed.seal().to_owned());
    // A connector may also notice the contradiction by itself; it must not book what is not sealed.
    if let Ok(booked) = fixture.erp().register_payment(&forged).await {
        assert_eq!(booked.amount, small.amount);
        assert_eq!(standing(fixture, &open.bill).await, [4_000]);
    } else {
        let stands = standing(fixture, &open.bill).await;
        assert!(stands.iter().all(|amount| *amount == 4_000) && stands.len() <= 1, "{stands:?}");
    }
}
