//! Questions that go to the database together.

use std::future::{Future, poll_fn};
use std::task::Poll;

use countersign::receipts::ReceiptKind;
use countersign::store::{Question, Questions, Store, StoreError};

use super::{append, append_many};
use crate::support::{Place, on_both};

/// More asks than there are connections, so that each of them is lent again.
const ROUNDS: usize = 40;

fn seqs_after(seq: i64, but: i64) -> Question<Vec<i64>> {
    let sql = "select seq from receipts where seq > $1 and seq <> $2 order by seq";
    Question::all(sql, [seq.into(), but.into()], |row| row.int("seq"))
}

fn count() -> Question<i64> {
    Question::one("select count(*) as found from receipts", [], |row| row.int("found"))
}

fn kind_of(seq: i64) -> Question<Option<String>> {
    let sql = "select kind from receipts where seq = $1";
    Question::optional(sql, [seq.into()], |row| row.text("kind"))
}

fn nonsense() -> Question<bool> {
    Question::any("select found from nowhere", [])
}

#[tokio::test(flavor = "multi_thread")]
async fn each_question_gets_its_own_answer() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        append_many(&store, 3).await;
        let asked = || {
            (
                seqs_after(1, 3),
                // Nobody answers with a row, and nobody is asked.
                (seqs_after(100, 0), None::<Question<i64>>),
                vec![kind_of(2), kind_of(200), kind_of(1)],
                Some(count().then(|count| Ok(count * 10))),
                Question::any("select count(*) as found from receipts where seq = $1", [4.into()]),
            )
        };
        let decision = ReceiptKind::Decision.code().to_owned();
        let created = ReceiptKind::StoreCreated.code().to_owned();
        let kinds = vec![Some(decision), None, Some(created)];
        let expected = (vec![2, 4], (vec![], None), kinds, Some(40), true);
        assert_eq!(store.ask(asked()).await.unwrap(), expected);
        // The same within a transaction of one's own.
        let within = store.read(|conn| Box::pin(async move { conn.ask(asked()).await })).await;
        assert_eq!(within.unwrap(), expected);
        assert_eq!(store.ask(Vec::<Question<i64>>::new()).await.unwrap(), Vec::<i64>::new());
        let none = store.ask(Question::one(
            "select seq from receipts where seq < $1",
            [0.into()],
            |row| row.int("seq"),
        ));
        assert!(matches!(none.await, Err(StoreError::Inconsistent { .. })));
    })
    .await;
}

/// Whether all connections that read see what was written last.
async fn all_see_what_is_new(store: &Store) {
    for _ in 0..ROUNDS {
        let head = append(store, 7).await.unwrap();
        let asked = (count(), seqs_after(head.seq - 1, 0));
        assert_eq!(store.ask(asked).await.unwrap(), (head.seq, vec![head.seq]));
        assert_eq!(store.ask(count()).await.unwrap(), head.seq);
        let read = store.read(|conn| Box::pin(async move { conn.ask(count()).await })).await;
        assert_eq!(read.unwrap(), head.seq);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_fails_leaves_no_old_state_behind() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        for _ in 0..ROUNDS {
            let failed = store.ask((count(), nonsense(), count())).await;
            assert!(matches!(failed, Err(StoreError::Refused(_))), "{failed:?}");
            let unread = store.ask((count(), count().then(|_| Err::<i64, _>(StoreError::Busy))));
            assert!(matches!(unread.await, Err(StoreError::Busy)));
        }
        all_see_what_is_new(&store).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_leaves_no_old_state_behind() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        append_many(&store, 2).await;
        for polls in 0..ROUNDS {
            let mut asked = Box::pin(store.ask((count(), seqs_after(0, 0), count())));
            for _ in 0..polls {
                let once = poll_fn(|context| Poll::Ready(asked.as_mut().poll(context).is_ready()));
                if once.await {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        all_see_what_is_new(&store).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_together_is_true_at_one_moment() {
    on_both(async |place: &Place| {
        let store = place.open().await;
        let writing = async {
            for number in 0..200 {
                append(&store, number).await.unwrap();
            }
        };
        let reading = async {
            for _ in 0..200 {
                let (first, all, last) =
                    store.ask((count(), seqs_after(0, 0), count())).await.unwrap();
                assert_eq!((first, all.len()), (last, usize::try_from(first).unwrap()));
            }
        };
        tokio::join!(writing, reading);
    })
    .await;
}
