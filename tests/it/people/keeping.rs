//! What the store keeps of sessions, on both databases.

use countersign::domain::names::SessionId;
use countersign::domain::role::Role;
use countersign::store::sessions;
use countersign::store::{Store, people};
use countersign_erp_source::{Clock as _, Timestamp};
use uuid::Uuid;

use super::{FOX, add, company, name};
use crate::daemon::COMPANY;
use crate::support::{StandingClock, on_both};

fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1000)
}

fn id(number: u128) -> SessionId {
    SessionId::from_uuid(Uuid::from_u128(number))
}

/// Sessions of marie's that begin and end one second after another, and one of paul's.
async fn begin(store: &Store) {
    let work = store.write(|unit| {
        Box::pin(async move {
            for number in 1..=5_u8 {
                let (digest, secs) = (format!("m{number}"), i64::from(number));
                let (id, person) = (id(u128::from(number)), name("marie"));
                let conn = unit.conn();
                sessions::insert(conn, &id, &digest, &person, at(secs), at(100 + secs)).await?;
            }
            sessions::insert(unit.conn(), &id(6), "p", &name("paul"), at(1), at(101)).await
        })
    });
    work.await.unwrap();
}

/// The digests of the sessions that stand at that second.
async fn standing(store: &Store, secs: i64) -> Vec<&'static str> {
    let found = store.read(move |conn| {
        Box::pin(async move {
            let mut found = Vec::new();
            for digest in ["m1", "m2", "m3", "m4", "m5", "p"] {
                if conn.ask(sessions::find(digest, at(secs))).await?.is_some() {
                    found.push(digest);
                }
            }
            Ok(found)
        })
    });
    found.await.unwrap()
}

#[tokio::test]
async fn sessions_end_one_by_one_and_together() {
    on_both(async |place| {
        let store = place.open().await;
        let cast = [
            ("marie", Role::Accountant, COMPANY),
            ("marie", Role::Approver, COMPANY),
            ("marie", Role::Auditor, FOX),
            ("paul", Role::Approver, COMPANY),
        ];
        add(&store, &cast, StandingClock.now()).await;
        begin(&store).await;
        assert_eq!(standing(&store, 100).await, ["m1", "m2", "m3", "m4", "m5", "p"]);
        assert_eq!(standing(&store, 103).await, ["m4", "m5"], "the last moment is before its end");

        let found = store.ask(sessions::find("m1", at(1)));
        let found = found.await.unwrap().unwrap();
        assert_eq!((found.id, found.person), (id(1), name("marie")));
        let roles = found.roles.into_iter().map(|(of, roles)| (of, roles.into_iter().collect()));
        let expected: [(_, Vec<Role>); 2] = [
            (company(COMPANY), vec![Role::Accountant, Role::Approver]),
            (company(FOX), vec![Role::Auditor]),
        ];
        assert_eq!(roles.collect::<Vec<_>>(), expected);

        let work = store.write(|unit| {
            Box::pin(async move { sessions::keep_newest(unit.conn(), &name("marie"), 3).await })
        });
        work.await.unwrap();
        assert_eq!(standing(&store, 1).await, ["m3", "m4", "m5", "p"], "the newest, and others'");
        let ended = store.write(|unit| {
            Box::pin(async move {
                let first = sessions::end(unit.conn(), &id(4)).await?;
                Ok((first, sessions::end(unit.conn(), &id(4)).await?))
            })
        });
        assert_eq!(ended.await.unwrap().value, (true, false));
        let forgotten = store.write(|unit| {
            Box::pin(async move { sessions::forget_expired(unit.conn(), at(103)).await })
        });
        forgotten.await.unwrap();
        assert_eq!(standing(&store, 1).await, ["m5"]);
        let all = store.write(|unit| {
            Box::pin(async move { sessions::end_all_of(unit.conn(), &name("marie")).await })
        });
        assert_eq!(all.await.unwrap().value, 1);
        assert_eq!(standing(&store, 1).await, Vec::<&str>::new());
        store.close().await;
    })
    .await;
}

#[tokio::test]
async fn one_token_is_one_session() {
    on_both(async |place| {
        let store = place.open().await;
        add(&store, &[("marie", Role::Accountant, COMPANY)], StandingClock.now()).await;
        let insert = async |number: u128, digest: &'static str, person: &'static str| {
            let work = store.write(move |unit| {
                Box::pin(async move {
                    let (id, person) = (id(number), name(person));
                    sessions::insert(unit.conn(), &id, digest, &person, at(1), at(2)).await
                })
            });
            work.await.is_ok()
        };
        assert!(insert(1, "a", "marie").await);
        assert!(!insert(2, "a", "marie").await, "the same token");
        assert!(!insert(1, "b", "marie").await, "the same id");
        assert!(!insert(3, "c", "nobody").await, "of nobody");
        store.close().await;
    })
    .await;
}

#[tokio::test]
async fn the_humans_of_a_company_come_in_pages_with_their_roles_there() {
    on_both(async |place| {
        let store = place.open().await;
        let cast = [
            ("b", Role::Approver, COMPANY),
            ("a", Role::Auditor, COMPANY),
            ("a", Role::Accountant, COMPANY),
            ("a", Role::Admin, FOX),
            ("c", Role::Admin, COMPANY),
            ("d", Role::Admin, FOX),
        ];
        add(&store, &cast, StandingClock.now()).await;
        let page = async |after: &'static str, limit: i64| {
            let of = company(COMPANY);
            let found = store.read(move |conn| {
                Box::pin(async move { people::people_of(conn, &of, after, limit).await })
            });
            let found = found.await.unwrap().into_iter();
            found.map(|m| (m.name.to_string(), m.roles.len(), m.active)).collect::<Vec<_>>()
        };
        let row = |name: &str, roles: usize| (name.to_owned(), roles, true);
        assert_eq!(page("", 2).await, [row("a", 2), row("b", 1)]);
        assert_eq!(page("b", 2).await, [row("c", 1)]);
        assert_eq!(page("c", 2).await, []);
        store.close().await;
    })
    .await;
}
