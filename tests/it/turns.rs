//! I2, I6: operations that cannot be settled keep no other from being settled.

use countersign::domain::names::OperationId;
use countersign::domain::operation::Status;
use countersign_erp_source::{BillId, OrderError, ReadError};
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use crate::bent::{Scene, round};
use crate::daemon::{COMPANY, Installation, WORLD, pay};

/// More than a round of the worker reads, and much more than it takes up.
const STUCK: usize = 210;

/// A world with two small bills more.
fn world() -> String {
    let table = |(bill, amount): (&str, &str)| {
        format!(
            "[company.{COMPANY}.bill.{bill}]\nvendor = \"V-100\"\nvendor_reference = \"{bill}\"\n\
             amount = \"{amount}\"\ncurrency = \"EUR\"\ndue = \"2099-12-31\"\n"
        )
    };
    let bills: String = [("FIRST", "1.00"), ("LAST", "1.01")].map(table).concat();
    WORLD.replace("[company.red-fox]", &format!("{bills}[company.red-fox]"))
}

/// Copies the only operation and its attempt, under other ids and for other things.
async fn copy_the_only_one(scene: &Scene, times: usize) {
    let url = format!("sqlite://{}", scene.installation().path("countersign.db").display());
    let mut conn = SqliteConnection::connect(&url).await.unwrap();
    for table in ["operation", "attempt"] {
        let columns = format!("select name from pragma_table_info('{table}') order by cid");
        let columns = sqlx::query(AssertSqlSafe(columns)).fetch_all(&mut conn).await.unwrap();
        let columns: Vec<String> = columns.iter().map(|row| row.get("name")).collect();
        let values = columns.iter().map(|column| match (table, column.as_str()) {
            ("operation", "id") | ("attempt", "operation") => "printf('op_%032x', n)",
            ("operation", "idempotency_key") => "'copy-' || n",
            ("attempt", "marker") => "printf('%032x', n)",
            ("attempt", "seq") => "1000 + n",
            (_, "thing") => "thing || '-' || n",
            _ => column,
        });
        let insert = format!(
            "with recursive copy(n) as (select 1 union all select n + 1 from copy where n < {times}) \
             insert into {table} ({}) select {} from {table}, copy",
            columns.join(", "),
            values.collect::<Vec<_>>().join(", ")
        );
        let added = sqlx::query(AssertSqlSafe(insert)).execute(&mut conn).await.unwrap();
        assert_eq!(added.rows_affected(), u64::try_from(times).unwrap());
    }
    conn.close().await.unwrap();
}

async fn unknown(scene: &Scene, bill: &str, amount: &str) -> OperationId {
    let operation = scene.propose(bill, &pay(bill, "V-100", amount)).await;
    assert_eq!(operation.status, Status::Unknown, "{:?}", operation.decision);
    operation.id
}

/// Goes on with rounds until that operation is executed.
async fn until_executed(scene: &Scene, id: &OperationId) {
    for _ in 0..=STUCK {
        round(&scene.gateway, true).await;
        let caller = scene.caller().await;
        // The copies come before it.
        let after = "op_01".to_owned();
        let found = scene.gateway.own_operations(&caller, Some(Status::Executed), after, 10).await;
        if found.unwrap().iter().any(|operation| operation.id == *id) {
            return;
        }
    }
    panic!("the turn of {id} does not come");
}

#[tokio::test]
async fn one_that_can_be_settled_is_settled_behind_more_than_a_round_of_others_that_cannot() {
    let scene = Scene::of(Installation::with(&world(), "sqlite://countersign.db", "")).await;
    // The ERP books each, and its answers are lost.
    scene.bends.booked.set(|answer| {
        *answer = Err(OrderError::OutcomeUnknown { reason: "the answer was lost".to_owned() });
    });
    let first = unknown(&scene, "FIRST", "1.00").await;
    copy_the_only_one(&scene, STUCK).await;
    let last = unknown(&scene, "LAST", "1.01").await;
    // It finds none of them but the last one.
    scene.bends.looked_up.set(|answer| {
        let found = answer.as_ref().is_ok_and(|answer| {
            let booked = answer.booked.iter().flat_map(|booked| &booked.bills);
            booked.map(BillId::as_str).any(|bill| bill == "LAST")
        });
        if !found {
            *answer = Err(ReadError::Unavailable { reason: "still executing".to_owned() });
        }
    });
    until_executed(&scene, &last).await;
    // Nor do those wait for ever that had their turn: it comes again in the next lap.
    scene.bends.looked_up.clear();
    scene.advance("1m").await;
    until_executed(&scene, &first).await;
    let paid = scene.paid().await;
    assert_eq!((paid["FIRST"], paid["LAST"], scene.bends.sent()), (1, 1, 2));
    scene.close().await;
}
