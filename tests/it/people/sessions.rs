//! Signing in and out, what a session opens, and when it ends.

use countersign::domain::names::SessionId;
use countersign::domain::role::Role;
use countersign::gateway::authn::AuthnError;
use countersign::gateway::sessions::{SESSION_LIFE, SignInError};
use countersign::store::{people as kept, sessions};
use reqwest::Method;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::{FOX, NO_BODIES, add, embedded, installation, receipts_of};
use crate::bent::Scene;
use crate::daemon::{Answer, COMPANY, PASSWORD};
use crate::support::on_both;

const HERE: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

#[tokio::test]
async fn a_human_signs_in_and_out() {
    on_both(async |place| {
        let installation = installation(place).await;
        let daemon = installation.start().await;
        let answer = daemon.stranger().sign_in("marie", PASSWORD).await;
        assert_eq!(answer.status.as_u16(), 201, "{}", answer.json);
        assert_eq!(answer.headers["cache-control"], "no-store");
        let token = answer.text("/token");
        assert!(token.starts_with("cs_") && token.len() == 46, "{token}");
        let marie = daemon.agent(&token);
        assert_eq!(marie.get("/v1/operations").await.status.as_u16(), 200);
        let another = daemon.sign_in("marie").await;
        let out = marie.delete("/v1/sessions/current").await;
        assert_eq!((out.status.as_u16(), out.json.as_str()), (204, Some("")));
        marie.get("/v1/operations").await.is_problem(401, "session_invalid");
        marie.delete("/v1/sessions/current").await.is_problem(401, "session_invalid");
        assert_eq!(another.get("/v1/operations").await.status.as_u16(), 200, "the other session");
        daemon.stop();
        let signed_in = receipts_of(&installation, "signed_in");
        assert_eq!(signed_in.len(), 2, "{signed_in:?}");
        for receipt in &signed_in {
            assert_eq!(receipt["company"], COMPANY);
            assert_eq!(receipt["data"]["user"], "marie");
            assert!(receipt["data"]["session"].as_str().unwrap().starts_with("se_"));
        }
    })
    .await;
}

#[tokio::test]
async fn wrong_user_wrong_password_and_disabled_user_have_one_answer() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    installation.ok(&["user", "disable", "jean"], "");
    let stranger = daemon.stranger();
    let wrong = stranger.sign_in("marie", "another password").await;
    wrong.is_problem(401, "credentials_invalid");
    assert_eq!(wrong.headers["www-authenticate"], "Bearer");
    let long = "a".repeat(60_000);
    for (user, password) in [
        ("nobody", PASSWORD),
        ("jean", PASSWORD),
        ("no name at all", PASSWORD),
        ("Marie", PASSWORD),
        ("marie", ""),
        ("marie", "a password of hers\n"),
        ("marie", long.as_str()),
    ] {
        let answer = stranger.sign_in(user, password).await;
        assert_eq!((answer.status, &answer.json), (wrong.status, &wrong.json), "{user}");
    }
    daemon.stop();
    let counted: u64 = receipts_of(&installation, "denial_count")
        .iter()
        .filter(|receipt| receipt["data"]["reason"] == "credentials_invalid")
        .map(|receipt| receipt["data"]["count"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, 8, "failures are counted, by address, reason and minute");
}

#[tokio::test]
async fn who_does_not_exist_costs_one_comparison_like_everybody() {
    let scene = Scene::new().await;
    add(scene.gateway.store(), &[("jean", Role::Approver, COMPANY)], scene.gateway.now()).await;
    let at = Some(scene.gateway.now());
    let disabled = scene.gateway.store().write(move |unit| {
        Box::pin(async move { kept::set_disabled(unit.conn(), &super::name("jean"), at).await })
    });
    assert!(disabled.await.unwrap().value);
    for (count, user) in [(1, "marie"), (2, "nobody"), (3, "no name"), (4, "jean")] {
        let refused = scene.gateway.sign_in(user, SecretString::from("a wrong one"), HERE).await;
        assert!(matches!(refused, Err(SignInError::Refused)), "{user}: {refused:?}");
        assert_eq!(scene.gateway.passwords_hashed(), count, "{user}");
    }
    scene.close().await;
}

#[tokio::test]
async fn a_session_lives_twelve_hours_by_the_daemons_clock() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let marie = daemon.sign_in("marie").await;
    daemon.advance("11h 59m").await;
    assert_eq!(marie.get("/v1/operations").await.status.as_u16(), 200);
    daemon.advance("1m").await;
    marie.get("/v1/operations").await.is_problem(401, "session_invalid");
}

#[tokio::test]
async fn the_sessions_of_a_disabled_human_end_at_once_and_for_good() {
    on_both(async |place| {
        let installation = installation(place).await;
        let daemon = installation.start().await;
        let (marie, paul) = (daemon.sign_in("marie").await, daemon.sign_in("paul").await);
        installation.ok(&["user", "disable", "marie"], "");
        marie.get("/v1/operations").await.is_problem(401, "session_invalid");
        assert_eq!(paul.get("/v1/operations").await.status.as_u16(), 200, "nobody else's");
        installation.ok(&["user", "enable", "marie"], "");
        marie.get("/v1/operations").await.is_problem(401, "session_invalid");
        daemon.sign_in("marie").await;
        daemon.stop();
        let changes: Vec<_> = receipts_of(&installation, "user_changed")
            .iter()
            .map(|receipt| (receipt["company"].clone(), receipt["data"]["change"].clone()))
            .collect();
        let expected = [(json!(COMPANY), json!("disabled")), (json!(COMPANY), json!("enabled"))];
        assert_eq!(changes, expected);
    })
    .await;
}

#[tokio::test]
async fn a_human_who_may_not_act_is_not_let_in_whatever_became_of_his_sessions() {
    let scene = Scene::new().await;
    let signed_in = scene.gateway.sign_in("marie", SecretString::from(PASSWORD), HERE).await;
    let token = signed_in.unwrap().token;
    let let_in = scene.gateway.authenticate_human(token.expose_secret()).await.unwrap();
    assert_eq!(let_in.name().as_str(), "marie");
    let at = Some(scene.gateway.now());
    let disabled = scene.gateway.store().write(move |unit| {
        Box::pin(async move { kept::set_disabled(unit.conn(), &super::name("marie"), at).await })
    });
    assert!(disabled.await.unwrap().value);
    let refused = scene.gateway.authenticate_human(token.expose_secret()).await;
    assert!(matches!(refused, Err(AuthnError::Refused(_))), "{refused:?}");
    scene.close().await;
}

#[tokio::test]
async fn another_password_ends_all_sessions() {
    on_both(async |place| {
        let installation = installation(place).await;
        let daemon = installation.start().await;
        let (one, two) = (daemon.sign_in("marie").await, daemon.sign_in("marie").await);
        let passwd = ["user", "passwd", "marie", "--password-stdin"];
        installation.ok(&passwd, "quite another one\n");
        for session in [one, two] {
            session.get("/v1/operations").await.is_problem(401, "session_invalid");
        }
        let stranger = daemon.stranger();
        stranger.sign_in("marie", PASSWORD).await.is_problem(401, "credentials_invalid");
        let answer = stranger.sign_in("marie", "quite another one").await;
        assert_eq!(answer.status.as_u16(), 201, "{}", answer.json);
        daemon.stop();
        let changed = receipts_of(&installation, "user_changed");
        assert_eq!(changed.len(), 1, "{changed:?}");
        assert_eq!(changed[0]["data"]["change"], "password");
        assert_eq!(changed[0]["data"]["sessions_ended"], 2);
        for length in [7, 129] {
            let refused = installation.run(&passwd, &"é".repeat(length));
            let error = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(error.contains("8 to 128 characters"), "{error}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_token_is_kept_by_its_digest_only_and_is_in_no_log() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let answer = daemon.stranger().sign_in("marie", PASSWORD).await;
    let token = answer.text("/token");
    daemon.agent(&token).get("/v1/operations").await;
    let log = daemon.log();
    daemon.stop();
    let secret = token.strip_prefix("cs_").unwrap();
    assert!(!log.contains(secret));
    let mut found = 0;
    for file in ["countersign.db", "countersign.db-wal", "checkpoint.txt"] {
        let Ok(bytes) = std::fs::read(installation.path(file)) else { continue };
        found += 1;
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{file}");
    }
    assert!(found >= 2);
    let export = installation.ok(&["receipts", "export"], "");
    assert!(!export.contains(secret) && !export.contains(PASSWORD), "{export}");
}

#[tokio::test]
async fn only_the_whole_token_opens_a_session() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let token = daemon.stranger().sign_in("marie", PASSWORD).await.text("/token");
    let mut other = token.clone();
    let last = if other.pop() == Some('A') { 'E' } else { 'A' };
    other.push(last);
    let unprefixed = token.strip_prefix("cs_").unwrap();
    let short: String = token.chars().take(45).collect();
    for (wrong, code) in [
        (other.as_str(), "session_invalid"),
        ("cs_", "session_invalid"),
        (short.as_str(), "session_invalid"),
        (&format!("{token}A"), "session_invalid"),
        (unprefixed, "token_invalid"),
        ("", "token_invalid"),
    ] {
        daemon.agent(wrong).get("/v1/users").await.is_problem(401, code);
    }
    daemon.stop();
    let counted = receipts_of(&installation, "denial_count");
    assert!(counted.iter().any(|receipt| receipt["data"]["reason"] == "session_invalid"));
}

#[tokio::test]
async fn guessing_is_slow_and_shuts_nobody_out_for_long() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let stranger = daemon.stranger();
    for _ in 0..10 {
        stranger.sign_in("marie", "a guess").await.is_problem(401, "credentials_invalid");
    }
    // The right one as well: whether it was right is not told.
    let limited = stranger.sign_in("marie", PASSWORD).await;
    limited.is_problem(429, "rate_limited");
    let wait: u64 = limited.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    daemon.sign_in("jean").await;
    // A name that nobody has is limited in the same way.
    for _ in 0..10 {
        stranger.sign_in("nobody", "a guess").await.is_problem(401, "credentials_invalid");
    }
    stranger.sign_in("nobody", "a guess").await.is_problem(429, "rate_limited");
    daemon.advance("61s").await;
    daemon.sign_in("marie").await;
    daemon.stop();
    let counted = receipts_of(&installation, "denial_count");
    assert!(counted.iter().any(|receipt| receipt["data"]["reason"] == "sign_in_limited"));
}

#[tokio::test]
async fn who_signs_in_often_is_not_limited_as_who_guesses() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    for _ in 0..12 {
        daemon.sign_in("marie").await;
    }
}

#[tokio::test]
async fn one_session_calls_only_so_often() {
    let installation = embedded().await;
    let file = installation.path("countersign.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let few = text.replace("reads_per_minute = 100000", "reads_per_minute = 2");
    assert_ne!(few, text);
    std::fs::write(&file, few).unwrap();
    let daemon = installation.start().await;
    let (one, two) = (daemon.sign_in("marie").await, daemon.sign_in("marie").await);
    for _ in 0..2 {
        assert_eq!(one.get("/v1/operations").await.status.as_u16(), 200);
    }
    let limited = one.get("/v1/operations").await;
    limited.is_problem(429, "rate_limited");
    assert!(limited.headers.contains_key("retry-after"));
    assert_eq!(two.get("/v1/operations").await.status.as_u16(), 200);
    daemon.advance("61s").await;
    assert_eq!(one.get("/v1/operations").await.status.as_u16(), 200);
}

#[tokio::test]
async fn an_agent_that_signs_in_again_and_again_is_limited_as_everywhere() {
    let installation = embedded().await;
    let file = installation.path("countersign.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let few = text.replace("proposals_per_minute = 100000", "proposals_per_minute = 1");
    std::fs::write(&file, few).unwrap();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let agent = daemon.agent(&token);
    agent.sign_in("marie", PASSWORD).await.is_problem(403, "humans_only");
    agent.sign_in("marie", PASSWORD).await.is_problem(429, "rate_limited");
}

#[tokio::test]
async fn one_human_has_a_hundred_sessions_and_those_that_are_over_are_forgotten() {
    let scene = Scene::new().await;
    let (gateway, marie) = (&scene.gateway, super::name("marie"));
    let count = async || {
        let found = gateway.store().read(|conn| {
            Box::pin(async move {
                let row = conn.fetch_one("select count(*) as found from session", &[]).await?;
                row.int("found")
            })
        });
        found.await.unwrap()
    };
    let now = gateway.now();
    let work = gateway.store().write(move |unit| {
        Box::pin(async move {
            for number in 0..100_u128 {
                let id = SessionId::from_uuid(uuid::Uuid::from_u128(number));
                let digest = format!("d{number}");
                let end = now.plus(SESSION_LIFE);
                sessions::insert(unit.conn(), &id, &digest, &marie, now, end).await?;
            }
            Ok(())
        })
    });
    work.await.unwrap();
    gateway.sign_in("marie", SecretString::from(PASSWORD), HERE).await.unwrap();
    assert_eq!(count().await, 100);
    scene.advance("12h").await;
    gateway.sign_in("marie", SecretString::from(PASSWORD), HERE).await.unwrap();
    assert_eq!(count().await, 1);
    scene.close().await;
}

#[tokio::test]
async fn a_session_opens_nothing_that_is_for_agents() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let marie = daemon.sign_in("marie").await;
    for (method, path) in [
        (Method::POST, "/v1/operations"),
        (Method::POST, "/v1/operations/op_00000000000000000000000000000007/commit"),
        (Method::POST, "/v1/operations/op_00000000000000000000000000000007/cancel"),
        (Method::GET, "/v1/mandates/current"),
    ] {
        marie.send(marie.request(method, path)).await.is_problem(403, "agents_only");
    }
}

#[tokio::test]
async fn a_mandate_opens_nothing_that_is_for_humans() {
    let installation = embedded().await;
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    let (agent, nobody) = (daemon.agent(&token), daemon.stranger());
    for (method, path) in [
        (Method::DELETE, "/v1/sessions/current"),
        (Method::GET, "/v1/users"),
        (Method::POST, "/v1/users"),
        (Method::POST, "/v1/users/marie/disable"),
        (Method::GET, "/v1/mandates"),
        (Method::POST, "/v1/mandates"),
        (Method::POST, "/v1/mandates/md_00000000000000000000000000000007/revoke"),
        (Method::GET, "/v1/receipts"),
        (Method::GET, "/v1/receipts/1"),
    ] {
        let answer = agent.send(agent.request(method.clone(), path)).await;
        answer.is_problem(403, "humans_only");
        nobody.send(nobody.request(method, path)).await.is_problem(401, "token_invalid");
    }
    // Signing in takes no credential, but an agent is no stranger.
    agent.sign_in("marie", PASSWORD).await.is_problem(403, "humans_only");
    let stale = daemon.agent("a.b.c").sign_in("marie", PASSWORD).await;
    assert_eq!(stale.status.as_u16(), 201, "{}", stale.json);
}

#[tokio::test]
async fn what_is_sent_to_sign_in_is_read_strictly() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let stranger = daemon.stranger();
    let send = async |kind: Option<&str>, body: String| -> Answer {
        let request = stranger.request(Method::POST, "/v1/sessions").body(body);
        let request = match kind {
            Some(kind) => request.header("Content-Type", kind),
            None => request,
        };
        let answer = stranger.send(request).await;
        assert!(answer.headers.contains_key("x-request-id"));
        answer
    };
    let json = Some("application/json");
    let body =
        |members: &str| format!("{{\"user\":\"marie\",\"password\":\"{PASSWORD}\"{members}}}");
    for bad in NO_BODIES {
        send(json, bad.to_owned()).await.is_problem(400, "malformed_body");
    }
    let doubled = body(",\"user\":\"marie\"");
    send(json, doubled).await.is_problem(400, "malformed_body");
    send(json, body(",\"company\":\"blue-sparrow\"")).await.is_problem(400, "malformed_body");
    for bad in [
        r#"{"user":"marie"}"#,
        r#"{"password":"a password of hers"}"#,
        r#"{"user":null,"password":"a password of hers"}"#,
        r#"{"user":["marie"],"password":"a password of hers"}"#,
        r#"{"user":"marie","password":7}"#,
        r#"{"user":"marie","password":null}"#,
        r#"{"user":"marie\u0000","password":"a password of hers"}"#,
        r#"{"user":"","password":"a password of hers"}"#,
    ] {
        send(json, bad.to_owned()).await.is_problem(400, "invalid_field");
    }
    let other = [None, Some("text/plain"), Some("application/json; charset=utf-8")];
    for kind in other {
        send(kind, body("")).await.is_problem(415, "unsupported_media_type");
    }
    let with_query = stranger.request(Method::POST, "/v1/sessions?company=blue-sparrow");
    let with_query = with_query.header("Content-Type", "application/json").body(body(""));
    stranger.send(with_query).await.is_problem(400, "invalid_query");
    assert_eq!(send(json, body("")).await.status.as_u16(), 201);
}

#[tokio::test]
async fn a_sign_in_of_several_companies_is_the_stores_receipt() {
    let installation = embedded().await;
    let daemon = installation.start().await;
    let vera = daemon.sign_in("vera").await;
    vera.get("/v1/operations").await.is_problem(400, "company_required");
    for of in [COMPANY, FOX] {
        let listed = vera.get(&format!("/v1/operations?company={of}")).await;
        assert_eq!(listed.status.as_u16(), 200, "{}", listed.json);
    }
    daemon.stop();
    let signed_in = receipts_of(&installation, "signed_in");
    assert_eq!((signed_in.len(), &signed_in[0]["company"]), (1, &json!(null)));
}
