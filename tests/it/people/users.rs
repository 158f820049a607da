//! Users: who adds them, who disables them, and what ends with them.

use countersign::domain::role::Role;
use countersign::gateway::passwords::NewPassword;
use countersign::gateway::people::{self as gateway_people, NewRole, PeopleError};
use countersign::gateway::sessions::Human;
use reqwest::Method;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::{FOX, add, company, embedded, installation, issue, name, receipts_of};
use crate::bent::Scene;
use crate::daemon::{Agent, COMPANY, PASSWORD, pay};
use crate::support::on_both;

fn new(user: &str, role: &str) -> Value {
    json!({ "name": user, "role": role, "password": PASSWORD })
}

async fn names(human: &Agent, path: &str) -> Vec<String> {
    let listed = human.get(path).await;
    assert_eq!(listed.status.as_u16(), 200, "{}", listed.json);
    let items = listed.json["items"].as_array().unwrap();
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_admin_adds_users_and_roles() {
    on_both(async |place| {
        let installation = installation(place).await;
        let daemon = installation.start().await;
        let ada = daemon.sign_in("ada").await;
        let added = ada.post_json("/v1/users", &new("nina", "accountant")).await;
        assert_eq!(added.status.as_u16(), 201, "{}", added.json);
        let expected = json!({ "name": "nina", "roles": ["accountant"], "active": true });
        assert_eq!(added.json, expected);
        daemon.sign_in("nina").await;
        // Whoever is there gets the role and keeps the password.
        let role = json!({ "name": "nina", "role": "approver" });
        let more = ada.post_json("/v1/users", &role).await;
        assert_eq!(
            (more.status.as_u16(), &more.json["roles"]),
            (201, &json!(["accountant", "approver"]))
        );
        daemon.sign_in("nina").await;
        ada.post_json("/v1/users", &role).await.is_problem(409, "role_held");
        let mut again = new("nina", "auditor");
        again["password"] = json!("a password of ada's");
        ada.post_json("/v1/users", &again).await.is_problem(409, "user_exists");
        daemon
            .stranger()
            .sign_in("nina", "a password of ada's")
            .await
            .is_problem(401, "credentials_invalid");
        let nobody = json!({ "name": "nobody", "role": "auditor" });
        ada.post_json("/v1/users", &nobody).await.is_problem(400, "password_missing");
        let all = names(&ada, "/v1/users").await;
        assert_eq!(all, ["ada", "jean", "marie", "nina", "otto", "paul", "vera"]);
        daemon.stop();
        let receipts: Vec<_> = receipts_of(&installation, "user_added")
            .into_iter()
            .filter(|receipt| receipt["data"]["user"] == "nina")
            .map(|receipt| (receipt["company"].clone(), receipt["data"].clone()))
            .collect();
        let data = |new: bool, role: &str| {
            (json!(COMPANY), json!({ "by": "ada", "new": new, "role": role, "user": "nina" }))
        };
        assert_eq!(receipts, [data(true, "accountant"), data(false, "approver")]);
    })
    .await;
}

#[tokio::test]
async fn only_an_admin_changes_users_and_an_auditor_may_look() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    for user in ["marie", "paul", "otto"] {
        let human = daemon.sign_in(user).await;
        human.post_json("/v1/users", &new("nina", "admin")).await.is_problem(403, "not_an_admin");
        human.post("/v1/users/jean/disable").await.is_problem(403, "not_an_admin");
        let listed = human.get("/v1/users").await;
        if user == "otto" {
            assert_eq!(listed.status.as_u16(), 200, "{}", listed.json);
        } else {
            listed.is_problem(403, "not_an_admin");
        }
    }
    daemon.stranger().sign_in("nina", PASSWORD).await.is_problem(401, "credentials_invalid");
    daemon.sign_in("jean").await;
}

#[tokio::test]
async fn nobody_gives_a_role_to_himself() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let ada = daemon.sign_in("ada").await;
    let role = json!({ "name": "ada", "role": "approver" });
    ada.post_json("/v1/users", &role).await.is_problem(403, "self_grant");
    let roles = ada.get("/v1/users?limit=1").await.json["items"][0]["roles"].clone();
    assert_eq!(roles, json!(["admin"]));
}

#[tokio::test]
async fn what_is_sent_for_a_new_user_is_read_strictly() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let ada = daemon.sign_in("ada").await;
    let changed = |member: &str, value: Value| {
        let mut body = new("nina", "accountant");
        body[member] = value;
        body
    };
    for (body, code) in [
        (changed("role", json!("owner")), "invalid_field"),
        (changed("role", json!(["admin"])), "invalid_field"),
        (changed("role", Value::Null), "invalid_field"),
        (changed("name", json!("nina smith")), "invalid_field"),
        (changed("name", json!("")), "invalid_field"),
        (changed("name", json!("n".repeat(65))), "invalid_field"),
        (changed("name", json!("operator")), "name_reserved"),
        (changed("name", json!("countersign")), "name_reserved"),
        (changed("password", json!("short")), "password_length"),
        (changed("password", json!("l".repeat(129))), "password_length"),
        (changed("password", Value::Null), "invalid_field"),
        (changed("password", json!(12_345_678)), "invalid_field"),
        (changed("active", json!(true)), "malformed_body"),
        (json!([]), "malformed_body"),
    ] {
        ada.post_json("/v1/users", &body).await.is_problem(400, code);
    }
    let request = ada.request(Method::POST, "/v1/users").body("name=nina");
    ada.send(request).await.is_problem(415, "unsupported_media_type");
    for (path, code) in [
        ("/v1/users?limit=0", "invalid_query"),
        ("/v1/users?cursor=nina", "invalid_query"),
        ("/v1/users?name=nina", "invalid_query"),
    ] {
        ada.get(path).await.is_problem(400, code);
    }
    let with_body = ada.post_json("/v1/users/jean/disable", &json!({ "reason": "x" })).await;
    with_body.is_problem(400, "malformed_body");
    assert!(!names(&ada, "/v1/users").await.contains(&"nina".to_owned()));
}

#[tokio::test]
async fn an_admin_of_two_companies_says_which() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let (vera, ada) = (daemon.sign_in("vera").await, daemon.sign_in("ada").await);
    vera.get("/v1/users").await.is_problem(400, "company_required");
    vera.post_json("/v1/users", &new("nina", "auditor")).await.is_problem(400, "company_required");
    vera.post("/v1/users/marie/disable").await.is_problem(400, "company_required");
    let mut named = new("nina", "auditor");
    named["company"] = json!(FOX);
    let both = vera.post_json("/v1/users?company=blue-sparrow", &named).await;
    both.is_problem(400, "invalid_field");
    assert_eq!(vera.post_json("/v1/users", &named).await.status.as_u16(), 201);
    let other = vera.post_json("/v1/users?company=blue-sparrow", &new("nora", "auditor")).await;
    assert_eq!(other.status.as_u16(), 201, "{}", other.json);
    assert!(names(&vera, "/v1/users?company=red-fox").await.contains(&"nina".to_owned()));
    assert!(names(&ada, "/v1/users").await.contains(&"nora".to_owned()));
    // A company in which one holds no role is as good as none.
    let mut foreign = new("eve", "admin");
    for of in [FOX, "no-company"] {
        ada.get(&format!("/v1/users?company={of}")).await.is_problem(404, "not_found");
        foreign["company"] = json!(of);
        ada.post_json("/v1/users", &foreign).await.is_problem(404, "not_found");
    }
}

#[tokio::test]
async fn an_admin_sees_the_roles_of_his_own_company_only() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let fanny = daemon.sign_in("fanny").await;
    // It takes the operator to let her into a second company.
    installation.add_user("marie", "auditor", FOX);
    let role = json!({ "name": "marie", "role": "approver" });
    let added = fanny.post_json("/v1/users", &role).await;
    // She is the same person; what she is elsewhere is not told.
    let roles = &added.json["roles"];
    assert_eq!((added.status.as_u16(), roles), (201, &json!(["approver", "auditor"])));
    let expected = json!([
        { "name": "fanny", "roles": ["admin"], "active": true },
        { "name": "felix", "roles": ["auditor"], "active": true },
        { "name": "marie", "roles": ["approver", "auditor"], "active": true },
        { "name": "renard", "roles": ["accountant"], "active": true },
        { "name": "vera", "roles": ["admin"], "active": true },
    ]);
    let mut found = Vec::new();
    let mut path = "/v1/users?limit=2".to_owned();
    for _page in 0..3 {
        let answer = fanny.get(&path).await;
        found.extend(answer.json["items"].as_array().unwrap().clone());
        let Some(cursor) = answer.json["next_cursor"].as_str() else { break };
        path = format!("/v1/users?limit=2&cursor={cursor}");
    }
    assert_eq!(Value::from(found), expected);
}

#[tokio::test]
async fn with_a_disabled_human_ends_all_that_was_his() {
    on_both(async |place| {
        let installation = installation(place).await;
        let daemon = installation.start().await;
        let (ada, marie) = (daemon.sign_in("ada").await, daemon.sign_in("marie").await);
        let (mandate, agent) = issue(&daemon, &ada, "marie").await;
        let (other, others_agent) = issue(&daemon, &ada, "jean").await;
        let pending = agent.propose("w", &pay("INV-3", "V-100", "8000.00")).await;
        assert_eq!(pending.text("/status"), "pending", "{}", pending.json);
        let mut prepare = pay("INV-1", "V-100", "1200.00");
        prepare["mode"] = json!("prepare");
        let prepared = agent.propose("p", &prepare).await;
        assert_eq!(prepared.text("/status"), "prepared", "{}", prepared.json);

        let disabled = ada.post("/v1/users/marie/disable").await;
        let expected = json!({ "name": "marie", "roles": ["accountant"], "active": false });
        assert_eq!((disabled.status.as_u16(), &disabled.json), (200, &expected));
        marie.get("/v1/operations").await.is_problem(401, "session_invalid");
        daemon.stranger().sign_in("marie", PASSWORD).await.is_problem(401, "credentials_invalid");
        agent.get("/v1/bills").await.is_problem(401, "mandate_revoked");
        for operation in [&pending, &prepared] {
            let path = format!("/v1/operations/{}", operation.text("/id"));
            assert_eq!(ada.get(&path).await.text("/status"), "cancelled");
        }
        // What is somebody else's stands.
        assert_eq!(others_agent.get("/v1/bills").await.status.as_u16(), 200);
        let listed = ada.get("/v1/mandates").await;
        let status = |id: &str| {
            let items = listed.json["items"].as_array().unwrap();
            items.iter().find(|item| item["id"] == id).unwrap()["status"].clone()
        };
        assert_eq!((status(&mandate), status(&other)), (json!("revoked"), json!("in_force")));
        // Twice is once.
        let again = ada.post("/v1/users/marie/disable").await;
        assert_eq!((again.status.as_u16(), &again.json), (200, &expected));
        daemon.stop();
        let changed = receipts_of(&installation, "user_changed");
        assert_eq!(changed.len(), 1, "{changed:?}");
        assert_eq!(changed[0]["company"], COMPANY);
        let data = json!({
            "callbacks_voided": 0,
            "by": "ada", "change": "disabled", "mandates_revoked": 1, "sessions_ended": 1,
            "user": "marie", "votes_voided": 0,
        });
        assert_eq!(changed[0]["data"], data);
        assert_eq!(receipts_of(&installation, "mandate_revoked").len(), 1);
        assert_eq!(receipts_of(&installation, "cancelled").len(), 2);
    })
    .await;
}

#[tokio::test]
async fn who_acts_in_other_companies_too_is_the_operators_to_disable() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let (ada, vera) = (daemon.sign_in("ada").await, daemon.sign_in("vera").await);
    ada.post("/v1/users/vera/disable").await.is_problem(403, "operator_only");
    assert_eq!(vera.get("/v1/users?company=red-fox").await.status.as_u16(), 200);
    // Somebody of another company is as good as nobody.
    let foreign = ada.post("/v1/users/renard/disable").await;
    let nobody = ada.post("/v1/users/nobody/disable").await;
    nobody.is_problem(404, "not_found");
    assert_eq!((foreign.status, foreign.json), (nobody.status, nobody.json));
    ada.post("/v1/users/no%20name/disable").await.is_problem(404, "not_found");
    daemon.sign_in("renard").await;
    // Whoever is an admin in all of them may.
    let role = json!({ "name": "marie", "role": "auditor", "company": FOX });
    assert_eq!(vera.post_json("/v1/users", &role).await.status.as_u16(), 201);
    ada.post("/v1/users/marie/disable").await.is_problem(403, "operator_only");
    let both = vera.post("/v1/users/marie/disable?company=blue-sparrow").await;
    assert_eq!(both.status.as_u16(), 200, "{}", both.json);
    daemon.stop();
    // The auditors of each company see it.
    let changed = receipts_of(&installation, "user_changed");
    let companies: Vec<_> = changed.iter().map(|receipt| receipt["company"].clone()).collect();
    assert_eq!(companies, [json!(COMPANY), json!(FOX)]);
}

#[tokio::test]
async fn the_last_admin_stays() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let (ada, fanny) = (daemon.sign_in("ada").await, daemon.sign_in("fanny").await);
    installation.ok(&["user", "disable", "vera"], "");
    fanny.post("/v1/users/fanny/disable").await.is_problem(409, "last_admin");
    // Others he disables all the same.
    assert_eq!(fanny.post("/v1/users/renard/disable").await.status.as_u16(), 200);
    let second = ada.post_json("/v1/users", &new("nina", "admin")).await;
    assert_eq!(second.status.as_u16(), 201, "{}", second.json);
    let gone = ada.post("/v1/users/ada/disable").await;
    assert_eq!(gone.status.as_u16(), 200, "{}", gone.json);
    ada.get("/v1/users").await.is_problem(401, "session_invalid");
}

#[tokio::test]
async fn two_admins_do_not_disable_each_other() {
    on_both(async |place| {
        let installation = installation(place).await;
        installation.ok(&["user", "disable", "vera"], "");
        let daemon = installation.start().await;
        let ada = daemon.sign_in("ada").await;
        ada.post_json("/v1/users", &new("nina", "admin")).await;
        let nina = daemon.sign_in("nina").await;
        let (one, other) =
            tokio::join!(ada.post("/v1/users/nina/disable"), nina.post("/v1/users/ada/disable"));
        let done = [&one, &other].iter().filter(|answer| answer.status.as_u16() == 200).count();
        assert_eq!(done, 1, "{one:?} {other:?}");
        let left = if one.status.as_u16() == 200 { ada } else { nina };
        assert_eq!(left.get("/v1/users").await.status.as_u16(), 200);
    })
    .await;
}

/// Somebody who was let in a moment before.
pub(super) async fn let_in(scene: &Scene, user: &str) -> Human {
    let from = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    let signed_in = scene.gateway.sign_in(user, SecretString::from(PASSWORD), from).await;
    let token = signed_in.unwrap().token;
    scene.gateway.authenticate_human(token.expose_secret()).await.unwrap()
}

#[tokio::test]
async fn an_admin_who_was_disabled_after_he_was_let_in_changes_nothing() {
    let scene = Scene::new().await;
    let (gateway, now) = (&scene.gateway, scene.gateway.now());
    let cast = [("ada", Role::Admin, COMPANY), ("nina", Role::Admin, COMPANY)];
    add(gateway.store(), &cast, now).await;
    let ada = let_in(&scene, "ada").await;
    gateway_people::disable(gateway.store(), &name("ada"), now).await.unwrap();
    let role = NewRole { name: name("eve"), company: company(COMPANY), role: Role::Admin };
    let password = NewPassword::new(PASSWORD.into()).unwrap();
    let added = gateway.add_person(&ada, role.clone(), Some(password.clone())).await;
    assert!(matches!(added, Err(PeopleError::NotAnAdmin)), "{added:?}");
    // Whoever never was one costs not even a hash.
    let (marie, hashed) = (let_in(&scene, "marie").await, gateway.passwords_hashed());
    let added = gateway.add_person(&marie, role, Some(password)).await;
    assert!(matches!(added, Err(PeopleError::NotAnAdmin)), "{added:?}");
    assert_eq!(gateway.passwords_hashed(), hashed);
    let disabled = gateway.disable_person(&ada, &company(COMPANY), &name("nina")).await;
    assert!(matches!(disabled, Err(PeopleError::NotAnAdmin)), "{disabled:?}");
    let all = gateway.people_of(&company(COMPANY), String::new(), 50).await.unwrap();
    let found: Vec<_> = all.iter().map(|human| (human.name.as_str(), human.active)).collect();
    assert_eq!(found, [("ada", false), ("marie", true), ("nina", true)]);
    scene.close().await;
}

#[tokio::test]
async fn a_human_is_added_once_however_many_ask() {
    on_both(async |place| {
        let installation = installation(place).await;
        let daemon = installation.start().await;
        let (ada, vera) = (daemon.sign_in("ada").await, daemon.sign_in("vera").await);
        let mut others = new("nina", "admin");
        others["password"] = json!("a password of vera's");
        let body = new("nina", "admin");
        let (one, other) = tokio::join!(
            ada.post_json("/v1/users", &body),
            vera.post_json("/v1/users?company=red-fox", &others)
        );
        let mut found = [one.status.as_u16(), other.status.as_u16()];
        found.sort_unstable();
        assert_eq!(found, [201, 409], "{one:?} {other:?}");
        let kept = if one.status.as_u16() == 201 { PASSWORD } else { "a password of vera's" };
        let answer = daemon.stranger().sign_in("nina", kept).await;
        assert_eq!(answer.status.as_u16(), 201, "{}", answer.json);
    })
    .await;
}

#[tokio::test]
async fn no_company_takes_hold_of_anothers_people() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let (ada, vera) = (daemon.sign_in("ada").await, daemon.sign_in("vera").await);
    let renard = daemon.sign_in("renard").await;
    // An admin of one company alone does not add somebody of another one to it.
    let role = json!({ "name": "renard", "role": "auditor" });
    ada.post_json("/v1/users", &role).await.is_problem(403, "operator_only");
    assert_eq!(renard.get("/v1/operations").await.status.as_u16(), 200, "he has one company");
    // Whoever is an admin in all of his companies may; and the operator.
    let role = json!({ "name": "renard", "role": "auditor", "company": COMPANY });
    assert_eq!(vera.post_json("/v1/users", &role).await.status.as_u16(), 201);
    // Once he belongs to the company, its admin gives him more roles there.
    let role = json!({ "name": "renard", "role": "approver" });
    assert_eq!(ada.post_json("/v1/users", &role).await.status.as_u16(), 201);
}

#[tokio::test]
async fn no_two_humans_have_names_that_differ_by_case_only() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let ada = daemon.sign_in("ada").await;
    let twin = json!({ "name": "Marie", "role": "approver", "password": PASSWORD });
    ada.post_json("/v1/users", &twin).await.is_problem(409, "user_exists");
    let add = ["user", "add", "MARIE", "--role", "approver", "--company", COMPANY];
    let refused =
        installation.run(&[&add[..], &["--password-stdin"]].concat(), "a long password\n");
    assert_eq!(refused.status.code(), Some(1));
}
