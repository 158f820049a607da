//! I2, I10: told to stop while many callers propose, the daemon loses nothing that it acknowledged
//! and pays nothing twice, and so does the next one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::daemon::{Agent, COMPANY, Installation, SOURCE, WORLD, pay};
use crate::support::on_both;

const CALLERS: usize = 4;
const BILLS_EACH: usize = 9;
/// How many more answers there are before each stop.
const ANSWERS: usize = 5;
const STOPS: usize = 2;

/// What a caller was told: the operation and its status, by bill.
type Told = Arc<Mutex<BTreeMap<String, (String, String)>>>;

fn amount(caller: usize, at: usize) -> String {
    format!("{}.{at:02}", 1 + caller)
}

/// Numbers that differ in more than signs, so that no bill looks like another.
fn bill(caller: usize, at: usize) -> String {
    format!("S-{}", 1000 + 100 * caller + at)
}

/// Every bill, by its caller and its number.
fn all() -> impl Iterator<Item = (usize, usize)> {
    (0..CALLERS).flat_map(|caller| (0..BILLS_EACH).map(move |at| (caller, at)))
}

fn world() -> String {
    let table = |(caller, at): (usize, usize)| {
        format!(
            "[company.{COMPANY}.bill.{0}]\nvendor = \"V-100\"\nvendor_reference = \"{0}\"\n\
             amount = \"{1}\"\ncurrency = \"EUR\"\ndue = \"2099-12-31\"\n",
            bill(caller, at),
            amount(caller, at)
        )
    };
    let bills: String = all().map(table).collect();
    WORLD.replace("[company.red-fox]", &format!("{bills}[company.red-fox]"))
}

/// Proposes all its bills, the same ones under the same keys each time, until nobody answers.
async fn call(agent: Agent, caller: usize, told: Told) {
    for at in 0..BILLS_EACH {
        let bill = bill(caller, at);
        let proposal = pay(&bill, "V-100", &amount(caller, at));
        let request =
            agent.request(Method::POST, "/v1/operations").header("Idempotency-Key", &bill);
        let Ok(answer) = request.json(&proposal).send().await else { return };
        let Ok(json) = answer.json::<Value>().await else { return };
        let (Some(id), Some(status)) = (json["id"].as_str(), json["status"].as_str()) else {
            panic!("{json}");
        };
        told.lock().unwrap().insert(bill, (id.to_owned(), status.to_owned()));
    }
}

/// Whether an operation that was in the first state can be in the second one now.
fn may_have_become(before: &str, now: &str) -> bool {
    before == now || (["executing", "unknown"].contains(&before) && now == "executed")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_many_call_loses_no_answer_and_pays_nothing_twice() {
    on_both(async |place| {
        let store = if place.is_sqlite() { "sqlite://countersign.db" } else { &place.url };
        let installation = Installation::with(&world(), store, "");
        installation.add_principal();
        let tokens: Vec<String> = (0..CALLERS)
            .map(|at| {
                installation.mandate_of("marie", &format!("agent-{at}"), COMPANY, SOURCE, &[])
            })
            .collect();
        let told = Told::default();
        let count = || told.lock().unwrap().len();
        for _ in 0..STOPS {
            let daemon = installation.start().await;
            let before = count();
            let mut calls = JoinSet::new();
            for (caller, token) in tokens.iter().enumerate() {
                calls.spawn(call(daemon.agent(token), caller, Arc::clone(&told)));
            }
            daemon.until("answered", async || count() >= before + ANSWERS).await;
            // What is on its way to the ERP then, is there for a while.
            daemon.slow("register_payment", "500ms").await;
            daemon.stop();
            calls.join_all().await;
        }
        let every = CALLERS * BILLS_EACH;
        assert!(count() < every, "every call was answered before the stop");
        let daemon = installation.start().await;
        for (caller, token) in tokens.iter().enumerate() {
            let agent = daemon.agent(token);
            let known = told.lock().unwrap().clone();
            let own = (0..BILLS_EACH).map(|at| bill(caller, at));
            for (bill, (id, before)) in own.filter_map(|bill| known.get_key_value(&bill)) {
                let found = agent.get(&format!("/v1/operations/{id}")).await;
                let now = found.text("/status");
                assert!(may_have_become(before, &now), "{bill}: {before} became {now}");
            }
            call(agent.clone(), caller, Arc::clone(&told)).await;
            daemon
                .until("executed", async || {
                    let found = agent.get("/v1/operations?status=executed&limit=100").await;
                    found.json["items"].as_array().is_some_and(|all| all.len() == BILLS_EACH)
                })
                .await;
        }
        let payments = daemon.payments().await;
        let bills: BTreeMap<&str, &str> =
            payments.iter().map(|(bill, _, amount)| (bill.as_str(), amount.as_str())).collect();
        assert_eq!((payments.len(), bills.len()), (every, every), "{payments:?}");
        for (caller, at) in all() {
            assert_eq!(bills[bill(caller, at).as_str()], amount(caller, at));
        }
        daemon.stop();
        installation.ok(&["receipts", "verify"], "");
    })
    .await;
}
