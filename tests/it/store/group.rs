//! Units of work that share one transaction do not harm each other.

use countersign::receipts::ReceiptKind;
use countersign::store::{Store, StoreError};
use tokio::sync::oneshot;

use super::{append, assert_whole};
use crate::support::{Place, on_both, receipt};

/// Holds the writer in a group of its own until the gate is opened, so that what is queued
/// meanwhile makes the next group.
async fn hold(store: &Store, started: oneshot::Sender<()>, gate: oneshot::Receiver<()>) {
    store
        .write(move |_| {
            Box::pin(async move {
                started.send(()).unwrap();
                gate.await.unwrap();
                Ok(())
            })
        })
        .await
        .unwrap();
}

async fn bad<T: Send + 'static>(store: &Store, how: &'static str) -> Result<T, StoreError> {
    store
        .write(move |unit| {
            Box::pin(async move {
                unit.receipt(receipt(ReceiptKind::Decision, 99))?;
                unit.next_order_seq().await?;
                match how {
                    "panic" => panic!("planted"),
                    "statement" => unit.execute("select nothing from nowhere", &[]).await?,
                    _ => 0,
                };
                Err(StoreError::Busy)
            })
        })
        .await
        .map(|written| written.value)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_unit_harms_no_other_of_its_group() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        let (started, has_started) = oneshot::channel();
        let (open, gate) = oneshot::channel();
        let queue = async {
            has_started.await.unwrap();
            tokio::join!(
                biased;
                append(&store, 1),
                bad::<()>(&store, "panic"),
                append(&store, 2),
                bad::<()>(&store, "statement"),
                bad::<()>(&store, "error"),
                append(&store, 3),
                async { open.send(()).unwrap() },
            )
        };
        let ((), (first, panicked, second, statement, error, third, ())) =
            tokio::join!(hold(&store, started, gate), queue);

        assert_eq!([first, second, third].map(|head| head.unwrap().seq), [2, 3, 4]);
        assert!(matches!(panicked, Err(StoreError::Panicked)), "{panicked:?}");
        assert!(matches!(statement, Err(StoreError::Refused(_))), "{statement:?}");
        assert!(matches!(error, Err(StoreError::Busy)), "{error:?}");
        assert_whole(place, &store, 4).await;
        let (heads, orders) = store
            .read(|conn| {
                Box::pin(async move {
                    let heads = "select count(*) as n from signed_heads";
                    let orders = "select order_seq from store";
                    let heads = conn.fetch_one(heads, &[]).await?.int("n")?;
                    Ok((heads, conn.fetch_one(orders, &[]).await?.int("order_seq")?))
                })
            })
            .await
            .unwrap();
        assert_eq!((heads, orders), (2, 0), "one group signs one head and keeps no undone number");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_unit_alone_leaves_nothing_and_the_writer_lives() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        for how in ["panic", "statement", "error"] {
            assert!(bad::<()>(&store, how).await.is_err());
            append(&store, 1).await.unwrap();
        }
        assert_whole(place, &store, 4).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_could_not_begin_is_not_written_into() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        append(&store, 1).await.unwrap();
        // It opens, and then there is no head to lock.
        place.tamper("alter table ledger_head rename to away").await;
        assert!(append(&store, 2).await.is_err());
        place.tamper("alter table away rename to ledger_head").await;
        append(&store, 3).await.unwrap();
        assert_whole(place, &store, 3).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_a_unit_hides_undoes_it_alone() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        let (started, has_started) = oneshot::channel();
        let (open, gate) = oneshot::channel();
        let hiding = store.write(|unit| {
            Box::pin(async move {
                unit.receipt(receipt(ReceiptKind::Decision, 99))?;
                drop(unit.execute("select nothing from nowhere", &[]).await);
                Ok(())
            })
        });
        let queue = async {
            has_started.await.unwrap();
            tokio::join!(
                biased;
                append(&store, 1),
                hiding,
                append(&store, 2),
                async { open.send(()).unwrap() },
            )
        };
        let ((), (first, hidden, second, ())) = tokio::join!(hold(&store, started, gate), queue);
        first.unwrap();
        second.unwrap();
        // PostgreSQL undoes what follows an error, SQLite only the statement.
        assert_eq!(hidden.is_ok(), place.is_sqlite());
        assert_whole(place, &store, if place.is_sqlite() { 4 } else { 3 }).await;
    })
    .await;
}
