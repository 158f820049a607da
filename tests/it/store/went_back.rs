//! A database that a copy of itself took the place of, while the store is open.

use countersign::store::{Store, StoreError};

use super::opening::put_back;
use super::{append, append_many, assert_whole};
use crate::support::{Place, on_both};

#[track_caller]
fn is_refused<T: std::fmt::Debug>(refused: &Result<T, StoreError>, last: i64) {
    let Err(StoreError::WentBack { seq }) = refused else { panic!("{refused:?}") };
    assert_eq!(*seq, last);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_went_back_is_not_written_or_read_any_more() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        append_many(&store, 5).await;
        let kept = store.receipts_after(0, 100).await.unwrap();
        assert_eq!((kept.len(), store.trouble()), (6, None));
        put_back(place, 3).await;
        is_refused(&append(&store, 6).await, 6);
        assert!(store.trouble().is_some_and(|trouble| trouble.contains("went back")));
        is_refused(&store.receipts_after(0, 100).await, 6);
        is_refused(&store.newest_signed_head().await, 6);
        is_refused(&append(&store, 7).await, 6);
        // Nothing was added to what is left.
        let left = Store::open(place.options()).await.unwrap();
        assert_whole(place, &left, 3).await;
        // It stays so when the database has gone on: what it lacks was acknowledged.
        append_many(&left, 10).await;
        is_refused(&append(&store, 8).await, 6);
        store.close().await;
        assert_whole(place, &left, 13).await;
        left.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_went_on_under_another_daemon_is_found_out() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        append_many(&store, 5).await;
        put_back(place, 3).await;
        let other = place.open().await;
        append_many(&other, 10).await;
        is_refused(&append(&store, 6).await, 6);
        append(&other, 11).await.unwrap();
        assert_whole(place, &other, 14).await;
        store.close().await;
        other.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_found_out_where_nothing_is_written() {
    on_both(async |place: &Place| {
        let (store, other) = (place.open().await, place.open().await);
        append_many(&store, 5).await;
        store.prove().await.unwrap();
        // What another process writes meanwhile is no fault, and counts from then on.
        append_many(&other, 2).await;
        store.prove().await.unwrap();
        assert_eq!(store.newest_signed_head().await.unwrap().unwrap().head().seq, 8);
        put_back(place, 7).await;
        is_refused(&store.prove().await, 8);
        assert!(store.trouble().is_some());
        store.close().await;
        other.close().await;
    })
    .await;
}
