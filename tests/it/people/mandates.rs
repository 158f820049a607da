//! Mandates over HTTP: who issues and revokes them, and what they may grant.

use std::net::{IpAddr, Ipv4Addr};

use countersign::domain::names::Name;
use countersign::domain::role::Role;
use countersign::gateway::mandates::{Grant, MandateError};
use countersign::gateway::people::{self, By};
use countersign_erp_source::{Currency, Iban};
use reqwest::Method;
use serde_json::{Value, json};

use super::receipts_of;
use super::users::let_in;
use super::{FOX, add, are_as_good_as_none, company, embedded, grant, installation, issue, name};
use crate::bent::Scene;
use crate::daemon::{ACME, COMPANY, FOX_SOURCE, NOBODYS, PASSWORD, SOURCE, pay};
use crate::support::on_both;

#[tokio::test]
async fn an_admin_issues_a_mandate_that_its_agent_pays_under() {
    on_both(async |place| {
        let installation = installation(place).await;
        let daemon = installation.start().await;
        let ada = daemon.sign_in("ada").await;
        let mut body = grant("marie");
        body["budget"] = json!("1500.00");
        body["max_calls"] = json!(3);
        let issued = ada.post_json("/v1/mandates", &body).await;
        assert_eq!(issued.status.as_u16(), 201, "{}", issued.json);
        let (id, token) = (issued.text("/id"), issued.text("/token"));
        let mut shown = issued.json.clone();
        for (member, form) in
            [("id", "md_"), ("token", "ey"), ("issued_at", "2"), ("expires_at", "2")]
        {
            let text = shown[member].take();
            assert!(text.as_str().unwrap().starts_with(form), "{member}: {text}");
        }
        let expected = json!({
            "id": null, "company": COMPANY, "principal": "marie", "agent": "ap-agent",
            "scopes": ["invoice.pay"], "source_account": { "journal": "BNK1", "iban": SOURCE },
            "currency": "EUR", "budget": "1500.00", "max_calls": 3, "issued_at": null,
            "expires_at": null, "revoked_at": null, "status": "in_force", "token": null,
        });
        assert_eq!(shown, expected);
        daemon.agent(&token).propose("k", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
        // The token is shown this once.
        let listed = ada.get("/v1/mandates").await;
        let mut kept = issued.json.clone();
        kept.as_object_mut().unwrap().remove("token");
        kept["source_account"] = json!({ "journal": "BNK1" });
        assert_eq!(listed.json, json!({ "items": [kept], "next_cursor": null }));
        daemon.advance("8h").await;
        assert_eq!(ada.get("/v1/mandates").await.text("/items/0/status"), "expired");
        daemon.stop();
        let receipts = receipts_of(&installation, "mandate_issued");
        assert_eq!(receipts.len(), 1);
        assert_eq!(receipts[0]["data"]["by"], "ada");
        assert_eq!(receipts[0]["data"]["mandate"], id.as_str());
        assert!(!receipts[0].to_string().contains(&token));
    })
    .await;
}

#[tokio::test]
async fn only_an_admin_issues() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    for user in ["marie", "paul", "otto"] {
        let human = daemon.sign_in(user).await;
        human.post_json("/v1/mandates", &grant("marie")).await.is_problem(403, "not_an_admin");
        // Before anything is asked of the ERP.
        let mut unknown = grant("marie");
        unknown["source_account"] = json!(NOBODYS);
        human.post_json("/v1/mandates", &unknown).await.is_problem(403, "not_an_admin");
    }
    let vera = daemon.sign_in("vera").await;
    vera.post_json("/v1/mandates", &grant("marie")).await.is_problem(400, "company_required");
    let named = vera.post_json("/v1/mandates?company=blue-sparrow", &grant("marie")).await;
    assert_eq!(named.status.as_u16(), 201, "{}", named.json);
    let foreign = daemon.sign_in("fanny").await;
    let foreign = foreign.post_json("/v1/mandates?company=blue-sparrow", &grant("marie")).await;
    foreign.is_problem(404, "not_found");
    let all = daemon.sign_in("ada").await.get("/v1/mandates").await;
    assert_eq!(all.json["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_mandate_grants_what_can_be_granted() {
    let installation = embedded().await;
    installation.ok(&["user", "disable", "jean"], "");
    let daemon = installation.start().await;
    let ada = daemon.sign_in("ada").await;
    let check = async |member: &str, value: Value, status: u16, code: &str| {
        let mut body = grant("marie");
        body[member] = value;
        let answer = ada.post_json("/v1/mandates", &body).await;
        let found = (answer.status.as_u16(), answer.text("/code"));
        assert_eq!(found, (status, code.to_owned()), "{member}: {}", answer.json);
        let said = answer.text("/detail");
        assert!(
            ![SOURCE, ACME, NOBODYS, FOX_SOURCE].iter().any(|iban| said.contains(iban)),
            "{said}"
        );
    };
    // An approver, an admin, somebody of another company, somebody disabled, nobody.
    for principal in ["paul", "ada", "renard", "jean", "nobody"] {
        check("principal", json!(principal), 422, "not_a_principal").await;
    }
    check("principal", json!("no name"), 400, "invalid_field").await;
    check("agent", json!(""), 400, "invalid_field").await;
    check("agent", json!("an agent"), 400, "invalid_field").await;
    let of_humans = json!(["vendor.confirm_phone"]);
    for scopes in [json!(["invoice.pay", "invoice.steal"]), of_humans, json!([])] {
        check("scopes", scopes, 422, "unknown_scope").await;
    }
    for scopes in [json!("invoice.pay"), json!([7]), json!([null]), Value::Null] {
        check("scopes", scopes, 400, "invalid_field").await;
    }
    for iban in [ACME, NOBODYS, FOX_SOURCE] {
        check("source_account", json!(iban), 422, "unknown_source_account").await;
    }
    for iban in [
        json!("FR1420041010050500013M02607"),
        json!("FR14-2004-1010-0505-0001-3M02-606"),
        json!({ "ref": "BNK1" }),
        json!(""),
    ] {
        check("source_account", iban, 400, "invalid_field").await;
    }
    check("currency", json!("USD"), 422, "other_currency").await;
    for currency in [json!("eur"), json!("EURO"), json!(978)] {
        check("currency", currency, 400, "invalid_field").await;
    }
    for budget in [
        json!(1500),
        json!(1500.0),
        json!("1e3"),
        json!("-1.00"),
        json!("+1.00"),
        json!("1.005"),
        json!("1,500.00"),
        json!("1500."),
        json!(".5"),
        json!("1234567890123456"),
        Value::Null,
    ] {
        check("budget", budget, 400, "invalid_field").await;
    }
    for budget in ["0", "0.00"] {
        check("budget", json!(budget), 422, "limit_out_of_range").await;
    }
    for calls in [json!(0), json!(-1), json!(1.5), json!("3"), Value::Null] {
        check("max_calls", calls, 400, "invalid_field").await;
    }
    check("max_calls", json!(1_000_000_001), 422, "limit_out_of_range").await;
    for ttl in ["0s", "91d", "2161h", "90d 1s", "1000y"] {
        check("ttl", json!(ttl), 422, "limit_out_of_range").await;
    }
    for ttl in [json!("8"), json!(8), json!("-8h"), json!("soon"), json!("")] {
        check("ttl", ttl, 400, "invalid_field").await;
    }
    check("company", json!(COMPANY), 400, "malformed_body").await;
    for member in ["principal", "agent", "scopes", "source_account", "currency", "ttl"] {
        let mut body = grant("marie");
        body.as_object_mut().unwrap().remove(member);
        ada.post_json("/v1/mandates", &body).await.is_problem(400, "invalid_field");
    }
    assert_eq!(ada.get("/v1/mandates").await.json["items"], json!([]));
    // The spelling of an account number and the longest time are taken.
    let mut body = grant("marie");
    body["source_account"] = json!("fr14 2004 1010 0505 0001 3m02 606");
    body["ttl"] = json!("90d");
    assert_eq!(ada.post_json("/v1/mandates", &body).await.status.as_u16(), 201);
}

#[tokio::test]
async fn the_command_line_has_the_same_limits() {
    let installation = embedded().await;
    let issue = |more: [&str; 2]| {
        let mut all = vec![
            "mandate",
            "issue",
            "--principal",
            "marie",
            "--agent",
            "a",
            "--company",
            COMPANY,
            "--scope",
            "invoice.pay",
            "--source-account",
            SOURCE,
            "--currency",
            "EUR",
        ];
        all.extend(more);
        if more[0] != "--ttl" {
            all.extend(["--ttl", "8h"]);
        }
        let output = installation.run(&all, "");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for more in [["--ttl", "91d"], ["--max-calls", "1000000001"]] {
        assert!(issue(more).contains("at most 90 days and 1000000000 calls"), "{more:?}");
    }
    for more in [["--ttl", "0s"], ["--max-calls", "0"], ["--budget", "0.00"]] {
        assert!(issue(more).contains("greater than zero"), "{more:?}");
    }
    assert_eq!(issue(["--ttl", "90d"]), "");
}

#[tokio::test]
async fn an_admin_or_its_principal_revokes_a_mandate_at_once() {
    on_both(async |place| {
        let installation = installation(place).await;
        let daemon = installation.start().await;
        let (ada, marie) = (daemon.sign_in("ada").await, daemon.sign_in("marie").await);
        let (own, agent) = issue(&daemon, &ada, "marie").await;
        let (jeans, jeans_agent) = issue(&daemon, &ada, "jean").await;
        let pending = agent.propose("w", &pay("INV-3", "V-100", "8000.00")).await;
        assert_eq!(pending.text("/status"), "pending", "{}", pending.json);
        let mut prepare = pay("INV-1", "V-100", "1200.00");
        prepare["mode"] = json!("prepare");
        let prepared = agent.propose("p", &prepare).await;
        assert_eq!(prepared.text("/status"), "prepared", "{}", prepared.json);

        let revoke = |id: &str| format!("/v1/mandates/{id}/revoke");
        let reason = json!({ "reason": "stolen" });
        // Nobody else's, whatever one is there.
        for user in ["jean", "paul", "otto"] {
            let human = daemon.sign_in(user).await;
            human.post_json(&revoke(&own), &reason).await.is_problem(403, "not_an_admin");
        }
        marie.post_json(&revoke(&jeans), &reason).await.is_problem(403, "not_an_admin");
        let revoked = marie.post_json(&revoke(&own), &reason).await;
        assert_eq!((revoked.status.as_u16(), revoked.text("/status").as_str()), (200, "revoked"));
        agent.get("/v1/bills").await.is_problem(401, "mandate_revoked");
        for operation in [&pending, &prepared] {
            let path = format!("/v1/operations/{}", operation.text("/id"));
            assert_eq!(marie.get(&path).await.text("/status"), "cancelled");
        }
        // Twice is once: the first reason and time stay.
        daemon.advance("1m").await;
        let again = ada.post_json(&revoke(&own), &json!({ "reason": "another" })).await;
        assert_eq!((again.status.as_u16(), &again.json), (200, &revoked.json));
        assert_eq!(jeans_agent.get("/v1/bills").await.status.as_u16(), 200);
        let by_admin = ada.post_json(&revoke(&jeans), &reason).await;
        assert_eq!(by_admin.status.as_u16(), 200, "{}", by_admin.json);
        jeans_agent.get("/v1/bills").await.is_problem(401, "mandate_revoked");
        daemon.stop();
        let receipts: Vec<_> = receipts_of(&installation, "mandate_revoked")
            .into_iter()
            .map(|receipt| receipt["data"].clone())
            .collect();
        let data = |by: &str, id: &str| json!({ "because": "stolen", "by": by, "mandate": id });
        assert_eq!(receipts, [data("marie", &own), data("ada", &jeans)]);
        assert_eq!(receipts_of(&installation, "cancelled").len(), 2);
    })
    .await;
}

#[tokio::test]
async fn the_mandate_of_another_company_is_as_good_as_none() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let (ada, fanny) = (daemon.sign_in("ada").await, daemon.sign_in("fanny").await);
    let (id, agent) = issue(&daemon, &ada, "marie").await;
    let reason = json!({ "reason": "none of hers" });
    let foreign = fanny.post_json(&format!("/v1/mandates/{id}/revoke"), &reason).await;
    let none = "/v1/mandates/md_00000000000000000000000000000007/revoke";
    let missing = fanny.post_json(none, &reason).await;
    missing.is_problem(404, "not_found");
    assert_eq!((foreign.status, foreign.json), (missing.status, missing.json));
    fanny.post_json("/v1/mandates/7/revoke", &reason).await.is_problem(404, "not_found");
    assert_eq!(agent.get("/v1/bills").await.status.as_u16(), 200);
    assert_eq!(fanny.get("/v1/mandates").await.json["items"], json!([]));
    are_as_good_as_none(&fanny, "/v1/mandates?company=blue-sparrow", "/v1/mandates?company=x")
        .await;
    for body in
        [json!({}), json!({ "reason": "" }), json!({ "reason": "a\nb" }), json!({ "reason": 7 })]
    {
        let answer = ada.post_json(&format!("/v1/mandates/{id}/revoke"), &body).await;
        answer.is_problem(400, "invalid_field");
    }
    let request = ada.request(Method::POST, &format!("/v1/mandates/{id}/revoke"));
    ada.send(request).await.is_problem(415, "unsupported_media_type");
    let query = format!("/v1/mandates/{id}/revoke?company=blue-sparrow");
    ada.post_json(&query, &reason).await.is_problem(400, "invalid_query");
    assert_eq!(agent.get("/v1/bills").await.status.as_u16(), 200);
}

#[tokio::test]
async fn an_accountant_sees_his_own_mandates_and_an_admin_all() {
    on_both(async |place| {
        let installation = installation(place).await;
        let daemon = installation.start().await;
        let ada = daemon.sign_in("ada").await;
        let mut ids = Vec::new();
        for principal in ["marie", "jean", "marie"] {
            ids.push(issue(&daemon, &ada, principal).await.0);
        }
        let listed = async |user: &str, path: &str| {
            let answer = daemon.sign_in(user).await.get(path).await;
            assert_eq!(answer.status.as_u16(), 200, "{user}: {}", answer.json);
            let items = answer.json["items"].as_array().unwrap();
            let found = items.iter().map(|item| item["id"].as_str().unwrap().to_owned());
            (found.collect::<Vec<_>>(), answer.json["next_cursor"].as_str().map(str::to_owned))
        };
        assert_eq!(listed("ada", "/v1/mandates").await, (ids.clone(), None));
        assert_eq!(listed("otto", "/v1/mandates").await.0, ids, "an auditor reads everything");
        let own = vec![ids[0].clone(), ids[2].clone()];
        assert_eq!(listed("marie", "/v1/mandates").await.0, own);
        assert_eq!(listed("jean", "/v1/mandates").await.0, [ids[1].clone()]);
        daemon.sign_in("paul").await.get("/v1/mandates").await.is_problem(403, "not_an_admin");
        let (first, cursor) = listed("marie", "/v1/mandates?limit=1").await;
        assert_eq!(first, [ids[0].clone()]);
        let next = format!("/v1/mandates?limit=1&cursor={}", cursor.unwrap());
        assert_eq!(listed("marie", &next).await, (vec![ids[2].clone()], None));
        for query in ["limit=201", "cursor=md_1", "principal=jean", "limit=1&limit=2"] {
            ada.get(&format!("/v1/mandates?{query}")).await.is_problem(400, "invalid_query");
        }
    })
    .await;
}

#[tokio::test]
async fn an_admin_who_was_disabled_after_he_was_let_in_issues_nothing() {
    let scene = Scene::new().await;
    let (gateway, now) = (&scene.gateway, scene.gateway.now());
    add(gateway.store(), &[("ada", Role::Admin, COMPANY)], now).await;
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    gateway.sign_in("ada", PASSWORD.into(), here).await.unwrap();
    people::disable(gateway.store(), &name("ada"), now).await.unwrap();
    let iban = Iban::parse(SOURCE).unwrap();
    let source = scene.pack.source_account(&company(COMPANY), &iban).await.unwrap().unwrap();
    let grant = Grant {
        company: company(COMPANY),
        principal: name("marie"),
        agent: Name::parse("ap-agent").unwrap(),
        scopes: ["invoice.pay".to_owned()].into(),
        source,
        currency: Currency::from_code("EUR").unwrap(),
        budget: None,
        calls_max: None,
        ttl: std::time::Duration::from_hours(8),
    };
    let issued = gateway.issue(grant.clone(), By::Human(name("ada"))).await;
    assert!(matches!(issued, Err(MandateError::NotAnAdmin { .. })), "{issued:?}");
    let by_another = gateway.issue(grant.clone(), By::Human(name("marie"))).await;
    assert!(matches!(by_another, Err(MandateError::NotAnAdmin { .. })), "{by_another:?}");
    assert!(gateway.issue(grant, By::Operator).await.is_ok());
    let all = gateway.mandates_of(&company(COMPANY), None, String::new(), 50).await.unwrap();
    assert_eq!(all.len(), 2, "the scene's own, and the operator's");
    assert!(gateway.mandates_of(&company(FOX), None, String::new(), 50).await.unwrap().is_empty());
    scene.close().await;
}

#[tokio::test]
async fn an_admin_who_was_disabled_after_he_was_let_in_revokes_nothing() {
    let scene = Scene::new().await;
    let (gateway, now) = (&scene.gateway, scene.gateway.now());
    let cast = [("ada", Role::Admin, COMPANY), ("otto", Role::Auditor, COMPANY)];
    add(gateway.store(), &cast, now).await;
    let id = scene.caller().await.mandate.id;
    let (ada, marie) = (let_in(&scene, "ada").await, let_in(&scene, "marie").await);
    people::disable(gateway.store(), &name("ada"), now).await.unwrap();
    for human in [ada, let_in(&scene, "otto").await] {
        let refused = gateway.revoke_for(&human, &id, "a grudge").await;
        assert!(matches!(refused, Err(MandateError::NotAnAdmin { .. })), "{refused:?}");
        scene.caller().await;
    }
    let revoked = gateway.revoke_for(&marie, &id, "stolen").await.unwrap();
    assert!(revoked.revoked_at.is_some());
    scene.close().await;
}
