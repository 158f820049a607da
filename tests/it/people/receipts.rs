//! Receipts over HTTP: for auditors of the company, and as they stand in an export.

use countersign::app::Base;
use countersign::receipts::{Digest, Receipt, ReceiptKind};
use countersign::settings::Settings;
use countersign::store::Role;
use serde_json::{Value, json};

use super::{are_as_good_as_none, embedded, installation, issue};
use crate::daemon::{Agent, COMPANY, pay};
use crate::support::on_both;

fn digest(text: &Value) -> Digest {
    Digest::parse(text.as_str().unwrap()).unwrap()
}

/// All receipts of the human's company, in pages of that size.
async fn all(human: &Agent, limit: u16) -> Vec<Value> {
    let mut found = Vec::new();
    let mut after = 0;
    loop {
        let page = human.get(&format!("/v1/receipts?after={after}&limit={limit}")).await;
        assert_eq!(page.status.as_u16(), 200, "{}", page.json);
        let items = page.json["items"].as_array().unwrap();
        assert!(items.len() <= usize::from(limit));
        found.extend(items.iter().cloned());
        let Some(next) = page.json["next_after"].as_i64() else { return found };
        assert_eq!(next, items.last().unwrap()["seq"].as_i64().unwrap());
        after = next;
    }
}

#[tokio::test]
async fn an_auditor_reads_receipts_as_an_export_has_them() {
    on_both(async |place| {
        let installation = installation(place).await;
        let daemon = installation.start().await;
        let (ada, otto) = (daemon.sign_in("ada").await, daemon.sign_in("otto").await);
        let (_, agent) = issue(&daemon, &ada, "marie").await;
        agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
        let found = all(&otto, 3).await;
        assert_eq!(all(&otto, 200).await, found);
        for item in &found {
            let text = item["receipt"].as_str().unwrap();
            let (content, prev) = (digest(&item["content_hash"]), digest(&item["prev_hash"]));
            assert_eq!(Digest::of(&[text.as_bytes()]), content);
            let link = Digest::of(&[prev.as_bytes(), content.as_bytes()]);
            assert_eq!(link, digest(&item["hash"]));
            let receipt: Value = serde_json::from_str(text).unwrap();
            assert_eq!(receipt["company"], COMPANY);
            let one = otto.get(&format!("/v1/receipts/{}", item["seq"])).await;
            assert_eq!((one.status.as_u16(), &one.json), (200, item));
        }
        // The very texts and hashes of an export for the company, and all of them.
        let export = installation.ok(&["receipts", "export", "--company", COMPANY], "");
        let exported: Vec<_> = export
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line["receipt"].is_string())
            .map(|line| (line["seq"].clone(), line["hash"].clone(), line["receipt"].clone()))
            .collect();
        let read =
            |item: &Value| (item["seq"].clone(), item["hash"].clone(), item["receipt"].clone());
        assert_eq!(found.iter().map(read).collect::<Vec<_>>(), exported);
        assert!(exported.len() > 10, "{exported:?}");
        // An operation names its newest receipt.
        let operation = otto.get("/v1/operations").await.json["items"][0].clone();
        let newest = otto.get(&format!("/v1/receipts/{}", operation["receipt"]["seq"])).await;
        assert_eq!(newest.json["hash"], operation["receipt"]["hash"]);
    })
    .await;
}

#[tokio::test]
async fn receipts_are_for_auditors_of_their_company() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let (otto, felix) = (daemon.sign_in("otto").await, daemon.sign_in("felix").await);
    let seq = all(&otto, 200).await[0]["seq"].clone();
    for user in ["marie", "paul", "ada"] {
        let human = daemon.sign_in(user).await;
        human.get("/v1/receipts").await.is_problem(403, "not_an_auditor");
        human.get(&format!("/v1/receipts/{seq}")).await.is_problem(403, "not_an_auditor");
    }
    let vera = daemon.sign_in("vera").await;
    vera.get("/v1/receipts").await.is_problem(400, "company_required");
    let named = vera.get("/v1/receipts?company=red-fox").await;
    named.is_problem(403, "not_an_auditor");
    // Another company's, and what is the whole store's, are as good as none.
    are_as_good_as_none(&felix, &format!("/v1/receipts/{seq}"), "/v1/receipts/99999").await;
    are_as_good_as_none(&otto, "/v1/receipts/1", "/v1/receipts/99999").await;
    let foreign = "/v1/receipts?company=blue-sparrow";
    are_as_good_as_none(&felix, foreign, "/v1/receipts?company=no-company").await;
    for seq in ["0", "-1", "+1", "1.0", "x", "%31%30x", "99999999999999999999"] {
        otto.get(&format!("/v1/receipts/{seq}")).await.is_problem(404, "not_found");
    }
    for query in
        ["after=-1", "after=x", "after=", "limit=0", "limit=201", "cursor=1", "after=1&after=2"]
    {
        otto.get(&format!("/v1/receipts?{query}")).await.is_problem(400, "invalid_query");
    }
    let foreign: Vec<_> =
        all(&felix, 200).await.into_iter().map(|item| item["receipt"].clone()).collect();
    assert!(!foreign.is_empty());
    assert!(foreign.iter().all(|text| text.as_str().unwrap().contains("red-fox")), "{foreign:?}");
}

#[tokio::test]
async fn a_page_of_large_receipts_is_a_short_one() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let otto = daemon.sign_in("otto").await;
    // No caller leaves receipts as large as these: they are written beside the daemon.
    let settings = Settings::load(&installation.path("countersign.toml")).unwrap();
    let base = Base::open(settings, Role::Command).await.unwrap();
    for _number in 0..25 {
        let receipt = Receipt {
            kind: ReceiptKind::Decision,
            at: base.clock.now(),
            company: Some(COMPANY.to_owned()),
            operation: None,
            data: json!({ "more": "x".repeat(60_000) }),
        };
        let written =
            base.store.write(|unit| Box::pin(async move { unit.receipt(receipt).map(drop) }));
        written.await.unwrap();
    }
    base.close().await;
    let first = otto.get("/v1/receipts?limit=200").await;
    let items = first.json["items"].as_array().unwrap();
    let bytes: usize = items.iter().map(|item| item["receipt"].as_str().unwrap().len()).sum();
    assert!((1 << 20..(1 << 20) + 70_000).contains(&bytes), "{bytes}");
    assert_eq!(first.json["next_after"], items.last().unwrap()["seq"]);
    let whole = all(&otto, 200).await;
    let large = |item: &&Value| item["receipt"].as_str().unwrap().len() > 60_000;
    assert_eq!(whole.iter().filter(large).count(), 25);
}

#[tokio::test]
async fn reading_changes_nothing() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let otto = daemon.sign_in("otto").await;
    let before = all(&otto, 200).await;
    for path in [
        "/v1/users",
        "/v1/mandates",
        "/v1/operations",
        "/v1/bills",
        "/v1/receipts",
        "/v1/sessions/current",
    ] {
        for method in [reqwest::Method::GET, reqwest::Method::HEAD, reqwest::Method::OPTIONS] {
            otto.send(otto.request(method, path)).await;
        }
    }
    assert_eq!(all(&otto, 200).await, before);
}
