//! What opens, what does not, and what is left as it was.

use std::fs;
use std::sync::Arc;

use countersign::receipts::{ChainFault, LedgerKey, SignedHead};
use countersign::store::{
    OpenRefusal, Role, Store, StoreError, StoreOptions, read_checkpoint, verify_unopened,
};
use tokio::task::JoinSet;

use super::{append, append_many, assert_whole, wait_until};
use crate::support::{Place, on_both};

#[tokio::test(flavor = "multi_thread")]
async fn openers_at_once_make_one_store() {
    on_both(async |place: &Place| {
        let mut openers = JoinSet::new();
        for _ in 0..8 {
            let options = place.kept();
            openers.spawn(async move { Store::open(options).await.unwrap().id().to_owned() });
        }
        let ids = openers.join_all().await;
        let store = place.open().await;
        assert!(ids.iter().all(|id| id == store.id()), "{ids:?}");
        assert_whole(place, &store, 1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_daemon_on_one_file_is_refused_also_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::of(format!("sqlite://{}", folder.path().join("store.db").display()));
    let daemon = || StoreOptions { role: Role::Daemon, ..place.options() };
    let first = Store::open(daemon()).await.unwrap();

    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(folder.path().join("store.db"), &link).unwrap();
    let through_link = StoreOptions { url: format!("sqlite://{}", link.display()), ..daemon() };
    for options in [daemon(), through_link.clone()] {
        let refused = place.refused(options).await;
        let StoreError::Open(OpenRefusal::OtherDaemon { .. }) = refused else {
            panic!("{refused:?}")
        };
        assert!(refused.to_string().contains("another daemon uses the store"), "{refused}");
    }
    let command = place.open().await;
    append(&command, 1).await.unwrap();
    append(&first, 2).await.unwrap();
    first.close().await;

    let next = Store::open(through_link).await.unwrap();
    assert_whole(&place, &next, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_daemons_share_a_postgres() {
    on_both(async |place: &Place| {
        if place.is_sqlite() {
            return;
        }
        let daemon = || StoreOptions { role: Role::Daemon, ..place.options() };
        let (first, second) =
            (Store::open(daemon()).await.unwrap(), Store::open(daemon()).await.unwrap());
        append(&first, 1).await.unwrap();
        append(&second, 2).await.unwrap();
        assert_whole(place, &first, 3).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_opened_again_goes_on_where_it_was() {
    on_both(async |place: &Place| {
        let store = Store::open(place.kept()).await.unwrap();
        let id = store.id().to_owned();
        append_many(&store, 3).await;
        store.close().await;

        let kept = fs::read_to_string(place.checkpoint()).unwrap();
        assert_eq!(kept.len(), 512);
        let store = Store::open(place.kept()).await.unwrap();
        assert_eq!(store.id(), id);
        assert_eq!(store.newest_signed_head().await.unwrap(), SignedHead::parse(&kept).ok());
        append(&store, 4).await.unwrap();
        assert_whole(place, &store, 5).await;
        store.close().await;
        let kept = SignedHead::parse(&fs::read_to_string(place.checkpoint()).unwrap()).unwrap();
        assert_eq!(kept.head().seq, 5);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checkpoint_follows_the_store_and_only_goes_forward() {
    on_both(async |place: &Place| {
        let kept = || read_checkpoint(&place.checkpoint()).unwrap().map(|kept| kept.head().seq);
        let first = Store::open(place.kept()).await.unwrap();
        wait_until(|| kept() == Some(1)).await;
        append_many(&first, 3).await;
        wait_until(|| kept() == Some(4)).await;

        let second = Store::open(place.kept()).await.unwrap();
        append_many(&second, 3).await;
        wait_until(|| kept() == Some(7)).await;
        // The first one's newest head is older than the second one's.
        first.close().await;
        assert_eq!(kept(), Some(7));
        let key = place.options().key;
        let file = read_checkpoint(&place.checkpoint()).unwrap().unwrap();
        assert!(file.verify(key.public()).is_ok());
        second.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_became_anothers_while_the_store_is_open_stays_as_it_is() {
    on_both(async |place: &Place| {
        let store = Store::open(place.kept()).await.unwrap();
        append(&store, 1).await.unwrap();
        let kept = || read_checkpoint(&place.checkpoint()).unwrap().map(|kept| kept.head().seq);
        wait_until(|| kept() == Some(2)).await;
        let foreign = fs::read_to_string(place.checkpoint()).unwrap().replace("st_", "xx_");
        fs::write(place.checkpoint(), &foreign).unwrap();
        append(&store, 2).await.unwrap();
        store.close().await;
        assert_eq!(fs::read_to_string(place.checkpoint()).unwrap(), foreign);
    })
    .await;
}

/// Puts the store back to where it was after that receipt, as a restored copy would be.
pub(super) async fn put_back(place: &Place, seq: i64) {
    let head = format!(
        "update ledger_head set seq = {seq},
            hash = (select entry_hash from receipts where seq = {seq})"
    );
    for sql in [
        head,
        format!("delete from receipts where seq > {seq}"),
        format!("delete from signed_heads where seq > {seq}"),
    ] {
        place.tamper(&sql).await;
    }
}

async fn make(place: &Place, count: i64) -> (String, Vec<u8>) {
    let store = Store::open(place.kept()).await.unwrap();
    append_many(&store, count).await;
    store.close().await;
    (store.id().to_owned(), fs::read(place.checkpoint()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_store_is_refused_and_the_kept_file_stays() {
    on_both(async |place: &Place| {
        // The second store goes on from the cut one, with what was kept of it put away.
        for left in [5, 1] {
            let (id, kept) = make(place, 5).await;
            let count = SignedHead::parse(std::str::from_utf8(&kept).unwrap()).unwrap().head().seq;
            put_back(place, left).await;
            let refused = place.refused(place.kept()).await;
            let text = refused.to_string();
            assert!(matches!(refused, StoreError::Open(OpenRefusal::StoreIsShorter { .. })));
            let says = format!("store `{id}` ends at receipt {left}, but the checkpoint file");
            assert!(
                text.contains(&says) && text.contains(&format!("vouches for {count}")),
                "{text}"
            );
            assert_eq!(fs::read(place.checkpoint()).unwrap(), kept);
            fs::remove_file(place.checkpoint()).unwrap();
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_store_that_went_on_is_refused() {
    on_both(async |place: &Place| {
        let (_, kept) = make(place, 5).await;
        put_back(place, 3).await;
        let store = place.open().await;
        append_many(&store, 10).await;
        let head = SignedHead::parse(std::str::from_utf8(&kept).unwrap()).unwrap();
        let key = place.options().key;
        // The receipts are those of before but for their place, so all differ from 4 on.
        let found = store.verify_chain(key.public(), Some(&head)).await.unwrap();
        assert_eq!(found, Err(ChainFault::Forked { seq: 6 }));
        store.close().await;

        let refused = place.refused(place.kept()).await;
        assert!(matches!(refused, StoreError::Open(OpenRefusal::StoreIsOther { seq: 6, .. })));
        assert!(refused.to_string().contains(&head.head().hash.to_string()), "{refused}");
        assert_eq!(fs::read(place.checkpoint()).unwrap(), kept);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_yesterday_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::of(format!("sqlite://{}", folder.path().join("store.db").display()));
    let (database, copy) = (folder.path().join("store.db"), folder.path().join("copy.db"));
    make(&place, 2).await;
    fs::copy(&database, &copy).unwrap();
    make(&place, 2).await;
    fs::copy(&copy, &database).unwrap();
    let refused = place.refused(place.kept()).await;
    assert!(matches!(
        refused,
        StoreError::Open(OpenRefusal::StoreIsShorter { last: 3, kept: 5, .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checkpoint_of_another_store_is_refused_and_makes_no_store() {
    on_both(async |place: &Place| {
        let folder = tempfile::tempdir().unwrap();
        let other = Place::of(format!("sqlite://{}", folder.path().join("other.db").display()));
        let options =
            || StoreOptions { checkpoint_file: Some(place.checkpoint()), ..other.options() };
        let store = Store::open(options()).await.unwrap();
        store.close().await;
        let kept = fs::read(place.checkpoint()).unwrap();

        let refused = place.refused(place.kept()).await;
        let StoreError::Open(OpenRefusal::CheckpointOfOtherStore { kept: named, .. }) = &refused
        else {
            panic!("{refused:?}")
        };
        assert_eq!(named, store.id());
        assert_eq!(fs::read(place.checkpoint()).unwrap(), kept);
        if place.is_sqlite() {
            let refused = place.tamper_err("select 1 from store").await;
            assert!(refused.contains("no such table"), "{refused}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_cannot_be_believed_is_refused() {
    on_both(async |place: &Place| {
        let (_, kept) = make(place, 2).await;
        for at in [3, 70, 200] {
            let mut altered = kept.clone();
            altered[at] ^= 1;
            fs::write(place.checkpoint(), &altered).unwrap();
            let refused = place.refused(place.kept()).await;
            assert!(matches!(refused, StoreError::Open(_)), "{refused:?}");
            assert!(refused.to_string().contains("checkpoint.txt"), "{refused}");
            assert_eq!(fs::read(place.checkpoint()).unwrap(), altered);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wrong_ledger_key_is_refused() {
    on_both(async |place: &Place| {
        place.open().await.close().await;
        let key = Arc::new(LedgerKey::from_seed(&[8; 32]).unwrap());
        let refused = place.refused(StoreOptions { key, ..place.options() }).await;
        assert!(matches!(refused, StoreError::Open(OpenRefusal::OtherKey { .. })), "{refused:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_head_and_receipts_differ_is_refused() {
    on_both(async |place: &Place| {
        make(place, 2).await;
        place.tamper("delete from receipts where seq = 3").await;
        let refused = place.refused(place.options()).await;
        assert!(matches!(refused, StoreError::Inconsistent { .. }), "{refused:?}");
        let key = place.options().key;
        let found = verify_unopened(&place.url, false, key.public(), None).await.unwrap();
        assert_eq!(found, Err(ChainFault::HeadBeyond { seq: 3, last: 2 }));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_other_or_newer_tables_is_refused() {
    on_both(async |place: &Place| {
        place.open().await.close().await;
        place
            .tamper("insert into schema_migrations (number, name, sha256, applied_at) values (9999, 'later', '', 0)")
            .await;
        let refused = place.refused(place.options()).await;
        assert!(matches!(refused, StoreError::Open(OpenRefusal::NewerSchema { number: 9999, .. })));
        place.tamper("delete from schema_migrations where number = 9999").await;
        place.tamper("update schema_migrations set sha256 = 'other' where number = 1").await;
        let refused = place.refused(place.options()).await;
        assert!(matches!(refused, StoreError::Open(OpenRefusal::OtherSchema { number: 1, .. })));
    })
    .await;
}

const SQLITE_COLUMNS: &str = "
select m.name as table_name, p.name as column_name, p.type as type, p.\"notnull\" as required
from sqlite_schema m join pragma_table_info(m.name) p
where m.type = 'table' and m.name not like 'sqlite_%'";
const POSTGRES_COLUMNS: &str = "
select cast(table_name as text) as table_name, cast(column_name as text) as column_name,
    cast(data_type as text) as type, case is_nullable when 'NO' then 1 else 0 end as required
from information_schema.columns where table_schema = current_schema()";

/// Every column of every table, with the words of PostgreSQL for its type.
async fn columns(place: &Place) -> Vec<(String, String, String, bool)> {
    let sql = if place.is_sqlite() { SQLITE_COLUMNS } else { POSTGRES_COLUMNS };
    let store = place.open().await;
    let mut columns = store
        .read(move |conn| {
            Box::pin(async move {
                let rows = conn.fetch_all(sql, &[]).await?;
                let column = |row: &countersign::store::Row| {
                    let kind = match row.text("type")?.to_lowercase().as_str() {
                        "integer" => "bigint".to_owned(),
                        "blob" => "bytea".to_owned(),
                        other => other.to_owned(),
                    };
                    let name = (row.text("table_name")?, row.text("column_name")?);
                    Ok((name.0, name.1, kind, row.flag("required")?))
                };
                rows.iter().map(column).collect::<Result<Vec<_>, _>>()
            })
        })
        .await
        .unwrap();
    columns.sort();
    columns
}

#[tokio::test(flavor = "multi_thread")]
async fn both_databases_have_the_same_columns() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = Place::of(format!("sqlite://{}", folder.path().join("store.db").display()));
    let expected = columns(&sqlite).await;
    assert!(expected.iter().any(|(table, ..)| table == "receipts"));
    on_both(async |place: &Place| assert_eq!(columns(place).await, expected)).await;
}
