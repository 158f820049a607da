//! What humans read of their companies: operations, bills and vendors.

use serde_json::{Value, json};

use super::{are_as_good_as_none, embedded, installation, issue};
use crate::daemon::{ACME, Agent, Answer, pay};
use crate::support::on_both;

async fn ok(human: &Agent, path: &str) -> Answer {
    let answer = human.get(path).await;
    assert_eq!(answer.status.as_u16(), 200, "{path}: {}", answer.json);
    answer
}

fn ids(answer: &Answer) -> Vec<String> {
    let items = answer.json["items"].as_array().unwrap();
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn every_role_reads_all_of_the_company_and_sees_whole_numbers() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let ada = daemon.sign_in("ada").await;
    let (_, agent) = issue(&daemon, &ada, "marie").await;
    let done = agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await;
    done.is_executed();
    let path = format!("/v1/operations/{}", done.text("/id"));
    let masked = agent.get(&path).await.json;
    assert_eq!(masked["params"]["payee_iban"]["value"], "FR76…0189");
    assert_eq!(masked["receipt"].as_object().unwrap().len(), 1);
    for user in ["marie", "jean", "paul", "ada", "otto"] {
        let human = daemon.sign_in(user).await;
        let seen = ok(&human, &path).await.json;
        assert_eq!(seen["params"]["payee_iban"]["value"], ACME, "{user}");
        let (all, some) = (&seen["facts"], &masked["facts"]);
        let (all, some) = (all.as_object().unwrap(), some.as_object().unwrap());
        assert!(all.len() > some.len(), "{user}: {all:?}");
        assert!(some.iter().all(|(name, value)| all.get(name) == Some(value)));
        assert!(seen["receipt"]["seq"].as_i64().unwrap() > 0);
        assert_eq!(seen["receipt"]["hash"], masked["receipt"]["hash"]);
        assert_eq!(ok(&human, "/v1/operations").await.json["items"], json!([seen]));
        let bill = ok(&human, "/v1/bills/INV-1").await.json;
        assert_eq!((&bill["payee_iban"], &bill["state"]), (&json!(ACME), &json!("paid")));
        let bills = ok(&human, "/v1/bills?state=open").await;
        assert_eq!(bills.json["items"].as_array().unwrap().len(), 3);
        assert!(bills.json.to_string().contains(ACME), "{}", bills.json);
        assert_eq!(ok(&human, "/v1/vendors/V-100").await.json["payee_iban"], ACME);
    }
    // The agent sees them masked, as before.
    for path in ["/v1/bills", "/v1/bills/INV-1", "/v1/vendors/V-100", "/v1/operations"] {
        let seen = ok(&agent, path).await.json.to_string();
        assert!(seen.contains("FR76…0189") && !seen.contains(ACME), "{path}: {seen}");
    }
}

#[tokio::test]
async fn the_operations_of_all_agents_come_in_pages_and_by_status() {
    on_both(async |place| {
        let installation = installation(place).await;
        let daemon = installation.start().await;
        let ada = daemon.sign_in("ada").await;
        let (_, marie) = issue(&daemon, &ada, "marie").await;
        let (_, jean) = issue(&daemon, &ada, "jean").await;
        let mut all = Vec::new();
        for (agent, key, proposal) in [
            (&marie, "a", pay("INV-3", "V-100", "8000.00")),
            (&jean, "b", pay("INV-2", "V-200", "340.00")),
            (&marie, "c", pay("INV-999", "V-100", "1.00")),
        ] {
            all.push(agent.propose(key, &proposal).await.text("/id"));
        }
        let paul = daemon.sign_in("paul").await;
        assert_eq!(ids(&ok(&paul, "/v1/operations").await), all);
        for (status, expected) in [("pending", &all[0]), ("executed", &all[1]), ("denied", &all[2])]
        {
            let found = ok(&paul, &format!("/v1/operations?status={status}")).await;
            assert_eq!(ids(&found), std::slice::from_ref(expected), "{status}");
        }
        let first = ok(&paul, "/v1/operations?limit=2").await;
        assert_eq!(ids(&first), all[..2]);
        let next = format!("/v1/operations?limit=2&cursor={}", first.text("/next_cursor"));
        let last = ok(&paul, &next).await;
        assert_eq!((ids(&last), &last.json["next_cursor"]), (all[2..].to_vec(), &Value::Null));
        paul.get("/v1/operations?status=paid").await.is_problem(400, "invalid_query");
        // Each agent still sees its own only.
        assert_eq!(ids(&ok(&jean, "/v1/operations").await), [all[1].clone()]);
    })
    .await;
}

#[tokio::test]
async fn a_human_waits_for_an_operation_to_change() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let ada = daemon.sign_in("ada").await;
    let (_, agent) = issue(&daemon, &ada, "marie").await;
    let pending = agent.propose("w", &pay("INV-3", "V-100", "8000.00")).await.text("/id");
    let path = format!("/v1/operations/{pending}");
    let paul = daemon.sign_in("paul").await;
    assert_eq!(ok(&paul, &format!("{path}?wait=1ms")).await.text("/status"), "pending");
    let (waiting, cancel) = (format!("{path}?wait=30s"), format!("{path}/cancel"));
    let (seen, cancelled) = tokio::join!(paul.get(&waiting), agent.post(&cancel));
    assert_eq!(cancelled.text("/status"), "cancelled");
    assert_eq!(seen.text("/status"), "cancelled");
    paul.get(&format!("{path}?wait=61s")).await.is_problem(400, "invalid_query");
    paul.get(&format!("{path}?company=blue-sparrow")).await.is_problem(400, "invalid_query");
}

#[tokio::test]
async fn what_is_another_companys_is_as_good_as_none() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let (ada, renard) = (daemon.sign_in("ada").await, daemon.sign_in("renard").await);
    let (_, agent) = issue(&daemon, &ada, "marie").await;
    let id = agent.propose("k", &pay("INV-999", "V-100", "1.00")).await.text("/id");
    let missing = "/v1/operations/op_00000000000000000000000000000007";
    are_as_good_as_none(&renard, &format!("/v1/operations/{id}"), missing).await;
    are_as_good_as_none(&renard, &format!("/v1/operations/{id}?wait=1s"), missing).await;
    are_as_good_as_none(&renard, "/v1/bills/INV-1", "/v1/bills/INV-999").await;
    are_as_good_as_none(&renard, "/v1/vendors/V-100", "/v1/vendors/V-999").await;
    for of in ["/v1/operations", "/v1/bills", "/v1/bills/INV-1", "/v1/vendors/V-100"] {
        let foreign = format!("{of}?company=blue-sparrow");
        are_as_good_as_none(&renard, &foreign, &format!("{of}?company=no-company")).await;
    }
    assert_eq!(ok(&renard, "/v1/operations").await.json["items"], json!([]));
    let bills = ok(&renard, "/v1/bills").await.json["items"].clone();
    assert_eq!((bills.as_array().unwrap().len(), &bills[0]["invoice_ref"]), (1, &json!("FOX-1")));
}

#[tokio::test]
async fn who_acts_in_two_companies_names_one() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let (vera, ada) = (daemon.sign_in("vera").await, daemon.sign_in("ada").await);
    let (_, agent) = issue(&daemon, &ada, "marie").await;
    let id = agent.propose("k", &pay("INV-999", "V-100", "1.00")).await.text("/id");
    for path in [
        "/v1/operations",
        "/v1/bills",
        "/v1/bills/INV-1",
        "/v1/vendors/V-100",
        "/v1/users",
        "/v1/mandates",
        "/v1/receipts",
    ] {
        vera.get(path).await.is_problem(400, "company_required");
    }
    ok(&vera, "/v1/bills/INV-1?company=blue-sparrow").await;
    ok(&vera, "/v1/bills/FOX-1?company=red-fox").await;
    ok(&vera, "/v1/vendors/F-1?company=red-fox").await;
    vera.get("/v1/bills/INV-1?company=red-fox").await.is_problem(404, "not_found");
    let twice = "/v1/bills?company=red-fox&company=blue-sparrow";
    vera.get(twice).await.is_problem(400, "invalid_query");
    // What is named by its own id needs no company.
    ok(&vera, &format!("/v1/operations/{id}")).await;
    // With one company it may be named.
    assert_eq!(ids(&ok(&ada, "/v1/operations?company=blue-sparrow").await), [id]);
    // An agent has no field for it.
    for path in ["/v1/operations", "/v1/bills", "/v1/bills/INV-1", "/v1/vendors/V-100"] {
        let named = agent.get(&format!("{path}?company=blue-sparrow")).await;
        named.is_problem(400, "invalid_query");
    }
}
