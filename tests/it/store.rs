//! The store's kernel, on both databases.

mod chain;
mod group;
mod opening;
mod plans;
mod questions;
mod went_back;

use std::time::Duration;

use countersign::receipts::ReceiptKind;
use countersign::store::{ReceiptHead, Store, StoreError, Val};
use countersign_erp_source::Clock;

use crate::support::{Place, StandingClock, on_both, receipt};

/// Leaves one receipt.
async fn append(store: &Store, number: i64) -> Result<ReceiptHead, StoreError> {
    let written = store
        .write(move |unit| {
            Box::pin(async move { unit.receipt(receipt(ReceiptKind::Decision, number)) })
        })
        .await?;
    assert_eq!(written.receipts, std::slice::from_ref(&written.value));
    Ok(written.value)
}

async fn append_many(store: &Store, count: i64) {
    for number in 0..count {
        append(store, number).await.unwrap();
    }
}

async fn wait_until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap();
}

/// The chain as it is must be whole and of that length.
async fn assert_whole(place: &Place, store: &Store, count: i64) {
    let key = place.options().key;
    let verified = store.verify_chain(key.public(), None).await.unwrap();
    assert_eq!(verified.map(|verified| verified.count), Ok(count));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_read() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        let written = store
            .write(|unit| {
                Box::pin(async move {
                    let seq = unit.next_order_seq().await?;
                    unit.receipt(receipt(ReceiptKind::Claim, seq))?;
                    Ok(seq)
                })
            })
            .await
            .unwrap();
        assert_eq!(written.value, 1);

        let (id, order_seq) = store
            .read(|conn| {
                Box::pin(async move {
                    let row = conn.fetch_one("select id, order_seq from store", &[]).await?;
                    Ok((row.text("id")?, row.int("order_seq")?))
                })
            })
            .await
            .unwrap();
        assert_eq!((id.as_str(), order_seq), (store.id(), 1));

        let entries = store.receipts_after(0, 10).await.unwrap();
        let kinds: Vec<_> = entries.iter().map(|entry| entry.kind.as_str()).collect();
        assert_eq!(kinds, ["store_created", "claim"]);
        assert_eq!(entries[1].hash.to_string(), written.receipts[0].hash);
        assert_eq!(store.find_receipt(2).await.unwrap().as_ref(), entries.get(1));
        assert_eq!(store.find_receipt(3).await.unwrap(), None);

        let even = append(&store, 2).await.unwrap();
        let of_company = store.company_receipts_after("blue-sparrow", 0, 10).await.unwrap();
        let numbers: Vec<_> = of_company.iter().map(|entry| entry.seq).collect();
        assert_eq!(numbers, [even.seq]);
        store.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_value_comes_back_as_it_was() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        place.tamper("create table things (id text, n bigint, b bytea, t text)").await;
        if place.is_sqlite() {
            place.tamper("drop table things").await;
            place.tamper("create table things (id text, n integer, b blob, t text) strict").await;
        }
        let rows: Vec<Vec<Val>> = vec![
            vec!["a".into(), i64::MAX.into(), vec![0_u8, 255].into(), Some("é\n").into()],
            vec!["b".into(), Val::Int(None), Val::Blob(None), Val::Text(None)],
            vec!["c".into(), true.into(), b"".as_slice().into(), "".into()],
            vec!["d".into(), StandingClock.now().into(), Val::Blob(None), None::<String>.into()],
        ];
        let changed = store
            .write(move |unit| {
                Box::pin(async move {
                    unit.insert_many(
                        "insert into things (id, n, b, t)",
                        [rows.clone(), rows].concat(),
                        "on conflict do nothing",
                    )
                    .await
                })
            })
            .await
            .unwrap();
        assert_eq!(changed.value, 8);

        store
            .read(|conn| {
                Box::pin(async move {
                    let sql = "select id, n, b, t from things order by id";
                    let rows = conn.fetch_all(sql, &[]).await?;
                    let [a, _, b, _, c, _, d, _] = rows.as_slice() else { panic!("{rows:?}") };
                    assert_eq!((a.int("n")?, a.blob("b")?), (i64::MAX, vec![0, 255]));
                    assert_eq!(a.text("t")?, "é\n");
                    assert_eq!(
                        (b.opt_int("n")?, b.opt_blob("b")?, b.opt_text("t")?),
                        (None, None, None)
                    );
                    assert_eq!(
                        (c.flag("n")?, c.blob("b")?, c.text("t")?),
                        (true, vec![], String::new())
                    );
                    assert_eq!(d.time("n")?, StandingClock.now());
                    for wrong in [
                        b.int("n").unwrap_err(),
                        a.flag("n").unwrap_err(),
                        a.int("t").unwrap_err(),
                        a.text("nothing").unwrap_err(),
                    ] {
                        assert!(matches!(wrong, StoreError::Inconsistent { .. }), "{wrong:?}");
                    }
                    Ok(())
                })
            })
            .await
            .unwrap();
        store.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_read_sees_one_state() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        let writer = store.clone();
        let counts = store
            .read(move |conn| {
                Box::pin(async move {
                    let sql = "select count(*) as n from receipts";
                    let before = conn.fetch_one(sql, &[]).await?.int("n")?;
                    append(&writer, 1).await?;
                    Ok((before, conn.fetch_one(sql, &[]).await?.int("n")?))
                })
            })
            .await
            .unwrap();
        assert_eq!(counts, (1, 1));
        let refused = store
            .read(|conn| Box::pin(async move { conn.execute("delete from receipts", &[]).await }))
            .await;
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
        assert_whole(place, &store, 2).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_finishes_what_is_queued_and_takes_no_more() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        let (first, second, third, ()) = tokio::join!(
            biased;
            append(&store, 1),
            append(&store, 2),
            append(&store, 3),
            store.close(),
        );
        assert_eq!([first, second, third].map(|head| head.unwrap().seq), [2, 3, 4]);
        assert!(matches!(append(&store, 4).await, Err(StoreError::Closed)));

        let store = place.open().await;
        assert_whole(place, &store, 4).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_costs_at_most_its_own_group() {
    on_both(async |place: &Place| {
        if place.is_sqlite() {
            return;
        }
        let store = place.open().await;
        let backend = "select pg_backend_pid() as pid";
        let pid = store
            .write(move |unit| {
                Box::pin(async move { unit.fetch_one(backend, &[]).await?.int("pid") })
            })
            .await
            .unwrap()
            .value;
        place.tamper(&format!("select pg_terminate_backend({pid})")).await;
        append(&store, 1).await.unwrap();

        let cut = store
            .write(|unit| {
                Box::pin(async move {
                    unit.receipt(receipt(ReceiptKind::Decision, 2))?;
                    unit.execute("select pg_terminate_backend(pg_backend_pid())", &[]).await
                })
            })
            .await;
        assert!(matches!(cut, Err(StoreError::Unreachable(_))), "{cut:?}");
        append(&store, 3).await.unwrap();
        assert_whole(place, &store, 3).await;
    })
    .await;
}

/// Makes the server end the connection in the middle of the next commit that appends a receipt of
/// an alarm.
const CUT_AT_COMMIT: &str = "
create function cut() returns trigger language plpgsql as
    $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
create constraint trigger cut after insert on receipts deferrable initially deferred
    for each row when (new.kind = 'alarm') execute function cut()";

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_looked_up() {
    on_both(async |place: &Place| {
        if place.is_sqlite() {
            return;
        }
        let store = place.open().await;
        for statement in CUT_AT_COMMIT.split_inclusive("$$;") {
            place.tamper(statement).await;
        }
        let cut = store
            .write(|unit| Box::pin(async move { unit.receipt(receipt(ReceiptKind::Alarm, 1)) }))
            .await;
        // It was not kept, and that is known although the commit gave no answer.
        assert!(matches!(cut, Err(StoreError::Unreachable(_))), "{cut:?}");
        append(&store, 2).await.unwrap();
        assert_whole(place, &store, 2).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_went_away_does_not_stop_its_unit() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        // Polled once, so that it is in the queue, then dropped.
        let gone = tokio::time::timeout(Duration::ZERO, append(&store, 1)).await;
        let after = append(&store, 2).await.unwrap();
        assert_eq!(after.seq, 3, "{gone:?}");
        assert_whole(place, &store, 3).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn order_numbers_only_rise_and_an_undone_one_is_given_again() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        let next = async |keep: bool| {
            store
                .write_or_undo(move |unit| {
                    Box::pin(async move {
                        let seq = unit.next_order_seq().await?;
                        Ok(if keep { Ok(seq) } else { Err(seq) })
                    })
                })
                .await
                .unwrap()
                .map(|written| written.value)
        };
        assert_eq!(next(true).await, Ok(1));
        assert_eq!(next(false).await, Err(2));
        assert_eq!(next(true).await, Ok(2));
        for used in [40, 7] {
            store
                .write(move |unit| Box::pin(async move { unit.raise_order_seq(used).await }))
                .await
                .unwrap();
        }
        assert_eq!(next(true).await, Ok(41));
    })
    .await;
}
