//! One line, however many write it, and every change behind the store's back is found.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use countersign::receipts::{ChainFault, verify_export};
use countersign::store::{Store, StoreOptions, verify_unopened};
use tokio::task::JoinSet;

use super::{append, append_many, assert_whole, wait_until};
use crate::support::{Place, on_both};

/// Tells a copy of this binary which store to append to.
const CHILD_URL: &str = "COUNTERSIGN_TEST_CHILD_URL";

#[tokio::test(flavor = "multi_thread")]
async fn many_stores_on_one_database_write_one_line() {
    on_both(async |place: &Place| {
        let mut stores = JoinSet::new();
        for _ in 0..6 {
            let options = place.options();
            stores.spawn(async move {
                let store = Store::open(options).await.unwrap();
                append_many(&store, 50).await;
                store.close().await;
            });
        }
        while let Some(done) = stores.join_next().await {
            done.unwrap();
        }
        let store = place.open().await;
        assert_whole(place, &store, 301).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_on_one_database_write_one_line() {
    on_both(async |place: &Place| {
        let mut children: Vec<_> = (0..4)
            .map(|_| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "store::chain::a_child_appends"])
                    .env(CHILD_URL, &place.url)
                    .stdout(Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in &mut children {
            assert!(child.wait().unwrap().success());
        }
        let store = place.open().await;
        assert_whole(place, &store, 101).await;
    })
    .await;
}

/// Does nothing but in a process that the test above has started.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_appends() {
    let Some(url) = std::env::var_os(CHILD_URL) else { return };
    let place = Place::of(url.into_string().unwrap());
    let store = place.open().await;
    append_many(&store, 25).await;
    store.close().await;
}

/// Tells a copy of this binary where to note what was acknowledged.
const CHILD_NOTES: &str = "COUNTERSIGN_TEST_CHILD_NOTES";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_outlives_a_killed_process() {
    on_both(async |place: &Place| {
        let notes = place.checkpoint().with_extension("notes");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::chain::a_child_appends_until_it_is_killed"])
            .env(CHILD_URL, &place.url)
            .env(CHILD_NOTES, &notes)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let acknowledged = || fs::read_to_string(&notes).unwrap_or_default().lines().count();
        wait_until(|| acknowledged() >= 20).await;
        child.kill().unwrap();
        child.wait().unwrap();

        let options =
            StoreOptions { checkpoint_file: Some(notes.with_extension("txt")), ..place.options() };
        let store = Store::open(options).await.unwrap();
        let count = store.newest_signed_head().await.unwrap().unwrap().head().seq;
        // The first receipt is the store's own, and one may have been kept without being noted.
        let least = i64::try_from(acknowledged()).unwrap();
        assert!(count > least && count <= least + 2, "{count} of {least}");
        assert_whole(place, &store, count).await;
    })
    .await;
}

/// Does nothing but in a process that the test above has started.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_appends_until_it_is_killed() {
    let Some(notes) = std::env::var_os(CHILD_NOTES).map(PathBuf::from) else { return };
    let place = Place::of(std::env::var_os(CHILD_URL).unwrap().into_string().unwrap());
    let checkpoint_file = Some(notes.with_extension("txt"));
    let store = Store::open(StoreOptions { checkpoint_file, ..place.options() }).await.unwrap();
    let mut notes = fs::OpenOptions::new().create(true).append(true).open(notes).unwrap();
    for number in 0..100_000 {
        let head = append(&store, number).await.unwrap();
        writeln!(notes, "{}", head.seq).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_appends_to_an_empty_store_make_one_genesis() {
    on_both(async |place: &Place| {
        let mut stores = JoinSet::new();
        for number in 0..20 {
            let options = place.options();
            stores.spawn(async move {
                let store = Store::open(options).await.unwrap();
                append(&store, number).await.unwrap();
                store.id().to_owned()
            });
        }
        let ids = stores.join_all().await;
        let store = place.open().await;
        assert!(ids.iter().all(|id| id == store.id()), "{ids:?}");
        assert_whole(place, &store, 21).await;
        let entries = store.receipts_after(0, 100).await.unwrap();
        let made = entries.iter().filter(|entry| entry.kind == "store_created").count();
        assert_eq!(made, 1);
    })
    .await;
}

/// What is found after that statement, with the checkpoint of before.
async fn found(place: &Place, sql: &[&str]) -> ChainFault {
    let store = place.open().await;
    append_many(&store, 5).await;
    let kept = store.newest_signed_head().await.unwrap().unwrap();
    for statement in sql {
        place.tamper(statement).await;
    }
    let key = place.options().key;
    let fault = store.verify_chain(key.public(), Some(&kept)).await.unwrap();
    store.close().await;
    let unopened = verify_unopened(&place.url, false, key.public(), Some(&kept)).await.unwrap();
    assert_eq!(fault, unopened);
    fault.unwrap_err()
}

async fn check(sql: &[&str], fault: ChainFault) {
    on_both(async |place: &Place| assert_eq!(found(place, sql).await, fault, "{sql:?}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_changed_behind_the_stores_back_are_found() {
    let column = |column| ChainFault::ColumnDiffers { seq: 3, column };
    check(&["update receipts set kind = 'alarm' where seq = 3"], column("kind")).await;
    check(&["update receipts set company = 'other' where seq = 3"], column("company")).await;
    check(&["update receipts set operation = null where seq = 3"], column("operation")).await;
    check(&["update receipts set at = at - 1 where seq = 3"], column("at")).await;
    let bytes = "update receipts set bytes = (select r.bytes from receipts r where r.seq = 2)
        where seq = 3";
    check(&[bytes], ChainFault::Altered { seq: 3 }).await;
    let swap = [
        "update receipts set seq = 100 where seq = 3",
        "update receipts set seq = 3 where seq = 4",
        "update receipts set seq = 4 where seq = 100",
    ];
    check(&swap, ChainFault::Broken { seq: 3 }).await;
    let note = "update signed_heads set note = (select h.note from signed_heads h where h.seq = 2)
        where seq = 3";
    check(&[note], ChainFault::HeadDiffers { seq: 3 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_deleted_behind_the_stores_back_are_found() {
    let first = ChainFault::OutOfPlace { expected: 1, found: 2 };
    check(&["delete from receipts where seq = 1"], first).await;
    let middle = ChainFault::OutOfPlace { expected: 4, found: 5 };
    check(&["delete from receipts where seq = 4"], middle).await;
    let last = ChainFault::HeadBeyond { seq: 6, last: 5 };
    check(&["delete from receipts where seq = 6"], last).await;
    let head = ChainFault::HeadMissing { last: 6 };
    check(&["delete from signed_heads where seq = 6"], head).await;
    let cut = ["delete from receipts where seq > 4", "delete from signed_heads where seq > 4"];
    check(&cut, ChainFault::Cut { last: 4, kept: 6 }).await;
    let all = ["delete from receipts", "delete from signed_heads"];
    check(&all, ChainFault::Cut { last: 0, kept: 6 }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_chain_verifies_in_pages_and_exports() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        store
            .write(|unit| {
                Box::pin(async move {
                    for number in 0..1200 {
                        unit.receipt(crate::support::receipt(
                            countersign::receipts::ReceiptKind::Decision,
                            number,
                        ))?;
                    }
                    Ok(())
                })
            })
            .await
            .unwrap();
        assert_whole(place, &store, 1201).await;

        let StoreOptions { key, .. } = place.options();
        let mut out = Vec::new();
        store.export(&mut out, key.public(), Some("blue-sparrow")).await.unwrap();
        let kept = store.newest_signed_head().await.unwrap();
        let verified = verify_export(&*out, Some(key.public()), kept.as_ref()).unwrap();
        assert_eq!((verified.chain.count, verified.readable), (1201, 600));
    })
    .await;
}
