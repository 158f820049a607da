//! What agents read: bills and how they are filtered, what deserves a look, and their own mandate.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::daemon::{ACME, Agent, COMPANY, Daemon, Installation, NOBODYS, SOURCE, WORLD, pay};

/// The usual installation in that world, with a daemon and an agent of marie's.
async fn ready(world: &str) -> (Installation, Daemon, Agent) {
    let installation = Installation::with(world, "sqlite://countersign.db", "");
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    (installation, daemon, agent)
}

fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|bill| bill["invoice_ref"].as_str().unwrap().to_owned()).collect()
}

async fn listed(agent: &Agent, query: &str) -> Vec<String> {
    let page = agent.get(&format!("/v1/bills{query}")).await;
    assert_eq!(page.status.as_u16(), 200, "{query}: {}", page.json);
    assert_eq!(page.json["next_cursor"], Value::Null, "{query}");
    ids(&page.json)
}

#[tokio::test]
async fn each_filter_of_bills_leaves_what_it_says() {
    let (_installation, daemon, agent) = ready(WORLD).await;
    agent.propose("paid", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    daemon.put_bill("INV-4", json!({ "due": "2026-12-31" })).await;
    // What is no bill yet, or no more, is in no list.
    for (bill, state) in [("INV-5", "draft"), ("INV-6", "cancelled")] {
        let fields = json!({ "vendor": "V-200", "amount": "1.00", "state": state });
        daemon.put_bill(bill, fields).await;
        assert_eq!(agent.get(&format!("/v1/bills/{bill}")).await.text("/state"), state);
        let list = agent.get(&format!("/v1/bills?state={state}")).await;
        list.is_problem(400, "invalid_query");
    }
    let all = ["INV-1", "INV-2", "INV-3", "INV-4"];
    for (query, expected) in [
        ("", &all[..]),
        ("?state=open", &["INV-1", "INV-3", "INV-4"]),
        ("?state=paid", &["INV-2"]),
        ("?vendor_id=V-200", &["INV-2"]),
        ("?vendor_id=F-1", &[]),
        // In any spelling of the reference, and of the whole of it.
        ("?vendor_reference=A-3", &["INV-3"]),
        ("?vendor_reference=a%20%2F%20003", &["INV-3"]),
        ("?vendor_reference=A-33", &[]),
        ("?vendor_reference=-", &[]),
        ("?due_before=2026-12-30", &[]),
        ("?due_before=2026-12-31", &["INV-4"]),
        ("?state=open&vendor_id=V-100&due_before=2099-12-31", &["INV-1", "INV-3", "INV-4"]),
    ] {
        assert_eq!(listed(&agent, query).await, expected, "{query}");
    }
}

#[tokio::test]
async fn bills_come_ascending_in_pages_of_at_most_200() {
    let mut bills = String::new();
    for at in 0..230 {
        write!(
            bills,
            "[company.blue-sparrow.bill.P-{at:03}]\nvendor = \"V-100\"\n\
             vendor_reference = \"P-{at}\"\namount = \"{}.00\"\n",
            at + 1
        )
        .unwrap();
    }
    let world = WORLD.replacen("[company.red-fox]", &format!("{bills}[company.red-fox]"), 1);
    let (_installation, _daemon, agent) = ready(&world).await;
    for (limit, sizes) in
        [("", &[50, 50, 50, 50, 34][..]), ("&limit=200", &[200, 34]), ("&limit=117", &[117, 117])]
    {
        let (mut seen, mut pages) = (Vec::new(), Vec::new());
        let mut cursor = String::new();
        for _page in sizes {
            let page = agent.get(&format!("/v1/bills?state=open{limit}{cursor}")).await.json;
            pages.push(ids(&page).len());
            seen.extend(ids(&page));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(pages, sizes, "{limit}");
        let mut sorted = seen.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!((seen.len(), &seen), (234, &sorted), "{limit}");
    }
    agent.get("/v1/bills?limit=1").await.json["items"].as_array().unwrap();
    for limit in ["0", "201"] {
        agent.get(&format!("/v1/bills?limit={limit}")).await.is_problem(400, "invalid_query");
    }
}

#[tokio::test]
async fn each_word_of_attention_says_what_it_is_for() {
    let two = format!("iban = \"{ACME}\"\niban_age_days = 400");
    let mut world = WORLD.to_owned();
    for (vendor, accounts) in [
        ("K-1", format!("accounts = [{{ iban = \"{NOBODYS}\", age_days = 400 }}]")),
        ("K-2", format!("accounts = [{{ iban = \"{SOURCE}\", age_days = 400 }}]")),
        (
            "K-3",
            "accounts = [{ iban = \"DE96999999997000000000\", age_days = 400 }, \
                 { iban = \"DE69999999997000000001\", age_days = 400 }]"
                .to_owned(),
        ),
        ("K-4", String::new()),
        ("K-5", "iban = \"DE42999999997000000002\"\niban_age_days = 3".to_owned()),
    ] {
        write!(
            world,
            "[company.blue-sparrow.vendor.{vendor}]\nname = \"Vendor {vendor}\"\n{accounts}\n\
             [company.blue-sparrow.bill.{vendor}]\nvendor = \"{vendor}\"\n\
             vendor_reference = \"{vendor}\"\namount = \"100.00\"\ncurrency = \"EUR\"\n\
             due = \"2099-12-31\"\n"
        )
        .unwrap();
    }
    assert!(world.contains(&two));
    let (installation, daemon, agent) = ready(&world).await;
    let looks = async |bill: &str, attention: &[&str], payee: Value| {
        let seen = agent.get(&format!("/v1/bills/{bill}")).await.json;
        assert_eq!(seen["attention"], json!(attention), "{bill}: {seen}");
        assert_eq!(seen["payee_iban"], payee, "{bill}: {seen}");
        // The list says the same.
        let list = agent.get("/v1/bills?limit=200").await.json;
        let items = list["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["invoice_ref"] == *bill).unwrap();
        assert_eq!(item, &seen);
    };
    looks("INV-1", &[], json!("FR76…0189")).await;
    looks("K-1", &[], json!("NL91…4300")).await;
    looks("K-2", &["account_not_payable"], json!("FR14…2606")).await;
    looks("K-4", &["no_account"], Value::Null).await;
    looks("K-5", &["iban_changed_recently"], json!("DE42…0002")).await;
    // Which of two is meant is not to be told, once the one that the bill names is gone.
    let archived = json!([
        { "iban": "DE96999999997000000000", "active": false },
        { "iban": "DE69999999997000000001" },
    ]);
    daemon.put_vendor("K-3", json!({ "accounts": archived })).await;
    looks("K-3", &["account_ambiguous"], Value::Null).await;
    // One of a vendor that nobody knew, one that somebody changed.
    daemon
        .put_vendor("K-6", json!({ "name": "Vendor K-6", "iban": "DE15999999997000000003" }))
        .await;
    daemon
        .put_bill("K-6", json!({ "vendor": "K-6", "vendor_reference": "K-6", "amount": "100.00" }))
        .await;
    looks("K-6", &["iban_changed_recently", "account_not_verified"], json!("DE15…0003")).await;
    daemon.put_vendor("K-1", json!({ "iban": "DE85999999997000000004" })).await;
    looks("K-1", &["iban_changed_recently", "account_changed_in_erp"], json!("DE85…0004")).await;
    daemon.pay_by_hand("INV-1", "200.00").await;
    looks("INV-1", &["partially_paid"], json!("FR76…0189")).await;
    let freeze = ["freeze", "add", "--company", COMPANY, "--vendor", "V-200", "--reason", "odd"];
    installation.ok(&freeze, "");
    looks("INV-2", &["vendor_frozen"], json!("DE89…3000")).await;
    let note = json!({ "vendor": "V-100", "amount": "30.00", "kind": "credit_note" });
    daemon.put_bill("CN-1", note).await;
    looks("INV-3", &["open_credit"], json!("FR76…0189")).await;
    let twin = json!({ "vendor": "V-100", "vendor_reference": "A-3", "amount": "7.00", "date": "2025-01-15" });
    daemon.put_bill("TWIN", twin).await;
    looks("INV-3", &["possible_duplicate", "open_credit"], json!("FR76…0189")).await;
}

#[tokio::test]
async fn a_vendor_is_shown_with_its_account_and_how_that_is_on_file() {
    let (_installation, daemon, agent) = ready(WORLD).await;
    let shows = async |vendor: &str, payee: Value, status: Value| {
        let seen = agent.get(&format!("/v1/vendors/{vendor}")).await;
        let name = seen.text("/name");
        let expected = json!({
            "vendor_id": vendor, "name": name, "payee_iban": payee, "bank_status": status,
        });
        assert_eq!(seen.json, expected);
    };
    shows("V-100", json!("FR76…0189"), json!("adopted")).await;
    daemon.put_vendor("V-100", json!({ "iban": NOBODYS })).await;
    shows("V-100", json!("NL91…4300"), json!("changed_in_erp")).await;
    daemon.put_vendor("V-200", json!({ "iban": null })).await;
    shows("V-200", Value::Null, Value::Null).await;
    daemon.put_vendor("V-300", json!({ "name": "Newcomer", "iban": NOBODYS })).await;
    shows("V-300", json!("NL91…4300"), json!("unverified")).await;
    let both = json!([{ "iban": NOBODYS }, { "iban": "BE62510007547061" }]);
    daemon.put_vendor("V-300", json!({ "accounts": both })).await;
    shows("V-300", Value::Null, json!("ambiguous")).await;
}

#[tokio::test]
async fn a_mandate_says_what_it_grants_and_what_is_left_of_it() {
    let installation = Installation::new();
    installation.add_principal();
    let bounded = installation.mandate(&[
        "--scope",
        "vendor.update_bank_details",
        "--budget",
        "9000.00",
        "--max-calls",
        "3",
    ]);
    let free = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&bounded);
    let shown = async |agent: &Agent| {
        let mut seen = agent.get("/v1/mandates/current").await.json;
        assert!(seen["id"].take().as_str().unwrap().starts_with("md_"));
        assert!(seen["expires_at"].take().as_str().unwrap().ends_with('Z'));
        seen
    };
    let expected = |scopes: Value, budget: Value, calls: Value| {
        json!({
            "id": null, "company": COMPANY, "principal": "marie", "agent": "ap-agent",
            "scopes": scopes, "source_account": { "journal": "BNK1", "iban": "FR14…2606" },
            "currency": "EUR", "budget": budget, "calls": calls, "expires_at": null,
        })
    };
    let both = json!(["invoice.pay", "vendor.update_bank_details"]);
    let left = |budget: &str, calls: i64| {
        let budget = json!({ "amount": "9000.00", "left": budget });
        expected(both.clone(), budget, json!({ "max": 3, "left": calls }))
    };
    assert_eq!(shown(&agent).await, left("9000.00", 3));
    // What only waits is no claim; what was paid is one.
    let waits = agent.propose("w", &pay("INV-3", "V-100", "8000.00")).await;
    assert_eq!(waits.text("/status"), "pending");
    assert_eq!(shown(&agent).await, left("9000.00", 3));
    agent.propose("k", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    assert_eq!(shown(&agent).await, left("7800.00", 2));
    let free = daemon.agent(&free);
    let scope = json!(["invoice.pay"]);
    assert_eq!(shown(&free).await, expected(scope.clone(), Value::Null, Value::Null));
    free.propose("k2", &pay("INV-2", "V-200", "340.00")).await.is_executed();
    assert_eq!(shown(&free).await, expected(scope, Value::Null, Value::Null));
}

#[tokio::test]
async fn an_agents_own_operations_come_in_pages_and_by_status() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    let other = installation.mandate_of("marie", "other", COMPANY, SOURCE, &[]);
    let daemon = installation.start().await;
    let (agent, other) = (daemon.agent(&token), daemon.agent(&other));
    let mut own = Vec::new();
    for (key, proposal) in [
        ("a", pay("INV-3", "V-100", "8000.00")),
        ("b", pay("INV-2", "V-200", "340.00")),
        ("c", pay("INV-999", "V-100", "1.00")),
    ] {
        own.push(agent.propose(key, &proposal).await.text("/id"));
    }
    other.propose("d", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    let listed = async |query: &str| {
        let page = agent.get(&format!("/v1/operations{query}")).await;
        let items = page.json["items"].as_array().unwrap();
        let ids = items.iter().map(|item| item["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), page.json["next_cursor"].as_str().map(str::to_owned))
    };
    assert_eq!(listed("").await, (own.clone(), None));
    for (status, at) in [("pending", 0), ("executed", 1), ("denied", 2)] {
        let found = listed(&format!("?status={status}")).await;
        assert_eq!(found, (vec![own[at].clone()], None), "{status}");
    }
    assert_eq!(listed("?status=prepared").await, (Vec::new(), None));
    let (first, cursor) = listed("?limit=2").await;
    assert_eq!(first, own[..2]);
    let rest = listed(&format!("?limit=2&cursor={}", cursor.unwrap())).await;
    assert_eq!(rest, (own[2..].to_vec(), None));
}
