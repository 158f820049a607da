//! Signing in and out, and what a session opens.

use reqwest::Method;

use crate::daemon::{COMPANY, Installation, PASSWORD};
use crate::support::on_both;

#[tokio::test]
async fn a_human_signs_in_and_out() {
    on_both(async |place| {
        let installation = Installation::at(place);
        installation.add_principal();
        let daemon = installation.start().await;
        let answer = daemon.stranger().sign_in("marie", PASSWORD).await;
        assert_eq!(answer.status.as_u16(), 201, "{}", answer.json);
        let token = answer.text("/token");
        assert!(token.starts_with("cs_") && token.len() == 46, "{token}");
        assert!(answer.text("/expires_at").ends_with('Z'), "{}", answer.json);
        let marie = daemon.agent(&token);
        // Let in, to a call that only humans have.
        assert_ne!(marie.get("/v1/alarms").await.status.as_u16(), 401);
        let another = daemon.sign_in("marie").await;
        let out = marie.delete("/v1/sessions/current").await;
        assert_eq!((out.status.as_u16(), out.json.as_str()), (204, Some("")));
        marie.get("/v1/alarms").await.is_problem(401, "session_invalid");
        marie.delete("/v1/sessions/current").await.is_problem(401, "session_invalid");
        assert_ne!(another.get("/v1/alarms").await.status.as_u16(), 401, "the other session");
        daemon.stop();
    })
    .await;
}

#[tokio::test]
async fn a_session_opens_nothing_that_is_for_agents() {
    let installation = Installation::new();
    installation.add_user("marie", "accountant", COMPANY);
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
