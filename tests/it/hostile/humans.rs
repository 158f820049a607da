//! Who makes a human's call, about whose things, and with which parameters: agents, nobody, sessions
//! that ended, roles that are missing, what is another company's, lists asked for oddly.

use super::arena::{NOT_FOUND, NOT_LET_IN, Refused};
use super::office::{HumanCall, JSON, Office};
use super::raw::Call;

const HUMANS_ONLY: Refused = Refused::Problem(403, "humans_only");
const AGENTS_ONLY: Refused = Refused::Problem(403, "agents_only");
const ENDED: Refused = Refused::Problem(401, "session_invalid");
const INVALID_QUERY: Refused = Refused::Problem(400, "invalid_query");

fn all(office: &Office) -> Vec<HumanCall> {
    let mut all = office.changes();
    all.extend(Office::reads());
    all
}

fn with_token(call: Call, token: &str) -> Call {
    call.set("Authorization", format!("Bearer {token}"))
}

#[tokio::test]
async fn no_agent_and_nobody_makes_a_call_of_humans() {
    let office = Office::open().await;
    let arena = &office.arena;
    for call in all(&office) {
        let right = office.right(&call);
        let agents = with_token(right.clone(), &arena.token);
        arena.refuses(&call.target, &agents, HUMANS_ONLY).await;
        let nobodys = right.clone().without("Authorization");
        arena.refuses(&call.target, &nobodys, NOT_LET_IN).await;
        let both = right.with("Authorization", format!("Bearer {}", arena.token));
        arena.refuses(&call.target, &both, NOT_LET_IN).await;
    }
    let signing_in = arena.call("POST", "/v1/sessions").with("Content-Type", JSON);
    let body = "{\"user\":\"paul\",\"password\":\"a password of hers\"}";
    arena.refuses("signing in", &signing_in.body(body), HUMANS_ONLY).await;
    office.close().await;
}

#[tokio::test]
async fn a_session_that_is_none_or_ended_makes_no_call() {
    let office = Office::open().await;
    let arena = &office.arena;
    let ended = office.call("otto", "DELETE", "/v1/sessions/current");
    office.hear(&ended, 204).await;
    for call in all(&office) {
        let ended = with_token(office.right(&call), office.token("otto"));
        arena.refuses(&call.target, &ended, ENDED).await;
    }
    let token = office.token("paul");
    let (start, end) = token.split_at(token.len() - 1);
    let other = if end == "A" { "B" } else { "A" };
    let read = office.get("paul", "/v1/approvals");
    for (what, token, expected) in [
        ("shorter", start.to_owned(), ENDED),
        ("another end", format!("{start}{other}"), ENDED),
        ("longer", format!("{token}A"), ENDED),
        ("only the beginning", "cs_".to_owned(), ENDED),
        ("long", format!("cs_{}", "A".repeat(8_000)), ENDED),
        ("SQL", "cs_' or '1'='1".to_owned(), ENDED),
        ("percent signs", "cs_%".to_owned(), ENDED),
        ("in capitals", token.to_uppercase(), NOT_LET_IN),
        ("a blank before it", format!(" {token}"), NOT_LET_IN),
        ("in quotes", format!("\"{token}\""), NOT_LET_IN),
        ("without its beginning", token.trim_start_matches("cs_").to_owned(), NOT_LET_IN),
    ] {
        arena.refuses(what, &with_token(read.clone(), &token), expected).await;
    }
    for scheme in ["Basic", "Token", "Session", "Bearer:", ""] {
        let sent = read.clone().set("Authorization", format!("{scheme} {token}"));
        arena.refuses(scheme, &sent, NOT_LET_IN).await;
    }
    let cookie = read.without("Authorization").with("Cookie", format!("session={token}"));
    arena.refuses("a cookie", &cookie, NOT_LET_IN).await;
    office.close().await;
}

#[tokio::test]
async fn a_session_makes_no_call_of_agents() {
    let office = Office::open().await;
    let arena = &office.arena;
    let operation = &office.waiting.0;
    for who in ["marie", "paul", "ada", "otto"] {
        let proposal = with_token(arena.harmless(), office.token(who));
        arena.refuses(who, &proposal, AGENTS_ONLY).await;
        for what in ["commit", "cancel"] {
            let target = format!("/v1/operations/{operation}/{what}");
            arena.refuses(who, &office.call(who, "POST", &target), AGENTS_ONLY).await;
        }
        let mandate = office.get(who, "/v1/mandates/current");
        arena.refuses(who, &mandate, AGENTS_ONLY).await;
    }
    office.close().await;
}

#[tokio::test]
async fn a_role_that_is_missing_closes_the_call() {
    let office = Office::open().await;
    let arena = &office.arena;
    for call in office.changes() {
        let (others, code): (&[_], _) = match call.target.as_str() {
            "/v1/sessions/current" => continue,
            of if of.ends_with("/approve") => (&["ada", "otto"], "not_an_approver"),
            of if of.ends_with("/settle") || of.ends_with("/not-duplicate") => {
                (&["marie", "ada", "otto"], "not_an_approver")
            }
            of if of.ends_with("/reject") => (&["otto"], "not_an_approver"),
            of if of.ends_with("/revoke") => (&["paul", "otto"], "not_an_admin"),
            _ => (&["marie", "paul", "otto"], "not_an_admin"),
        };
        for who in others {
            let code = match (*who, call.target.rsplit('/').next()) {
                // The principal, whose own mandate it is.
                ("marie", Some("settle")) => "self_approval",
                _ => code,
            };
            let sent = with_token(office.right(&call), office.token(who));
            let said = format!("{who}: {}", call.target);
            arena.refuses(&said, &sent, Refused::Problem(403, code)).await;
        }
    }
    let own = office.changes().into_iter().find(|call| call.target.ends_with("/approve")).unwrap();
    let own = with_token(office.right(&own), office.token("marie"));
    arena.refuses("her own", &own, Refused::Problem(403, "self_approval")).await;
    for (target, others, code) in [
        ("/v1/users", &["marie", "paul"][..], "not_an_admin"),
        ("/v1/mandates", &["paul"], "not_an_admin"),
        ("/v1/receipts", &["marie", "paul", "ada"], "not_an_auditor"),
    ] {
        for who in others {
            let said = format!("{who}: {target}");
            let refused = Refused::Problem(403, code);
            arena.refuses(&said, &office.get(who, target), refused).await;
        }
    }
    office.close().await;
}

#[tokio::test]
async fn what_is_another_companys_is_as_good_as_none_for_humans() {
    let office = Office::open().await;
    let arena = &office.arena;
    let foreign = office.get("fanny", &format!("/v1/operations/{}", office.foreign));
    let seq = office.hear(&foreign, 200).await.json["receipt"]["seq"].as_i64().unwrap();
    let none = "op_01a22a2c4a5a78adae90585f17b6ff14";
    let no_mandate = "md_01a22a2c4a5a78adae90585f17b6ff14";
    for call in office.changes() {
        let targets = [
            (&office.waiting.0, &office.foreign, none),
            (&office.mandates[0], &office.mandates[1], no_mandate),
            (&"INV-3".to_owned(), &"FOX-1".to_owned(), "FOX-9"),
            (&"paul".to_owned(), &"felix".to_owned(), "nobody"),
        ];
        let at = |id: &str, by: &str| call.target.replacen(id, by, 1);
        for (own, theirs, none) in targets {
            if !call.target.contains(&format!("/{own}/")) {
                continue;
            }
            let theirs = office.right(&call).to(&at(own, theirs));
            let none = office.right(&call).to(&at(own, none));
            let theirs = arena.refuses("theirs", &theirs, NOT_FOUND).await;
            let none = arena.refuses("none", &none, NOT_FOUND).await;
            assert_eq!((theirs.status, theirs.body), (none.status, none.body), "{call:?}");
        }
        if call.of_company {
            let sent = |company: &str| {
                let target = format!("{}?company={company}", call.target);
                let mut call = call.clone();
                if let Some(body) = call.body.as_mut().and_then(|body| body.as_object_mut()) {
                    body.remove("company");
                }
                office.right(&call).to(&target)
            };
            let theirs = arena.refuses("theirs", &sent("red-fox"), NOT_FOUND).await;
            let none = arena.refuses("none", &sent("no-company"), NOT_FOUND).await;
            assert_eq!((theirs.status, theirs.body), (none.status, none.body), "{call:?}");
        }
    }
    for (who, theirs, none) in [
        ("otto", format!("/v1/receipts/{seq}"), "/v1/receipts/999999"),
        ("ada", format!("/v1/operations/{}", office.foreign), &*format!("/v1/operations/{none}")),
        ("ada", "/v1/bills/FOX-1".to_owned(), "/v1/bills/FOX-9"),
        ("ada", "/v1/vendors/F-1".to_owned(), "/v1/vendors/F-9"),
        ("paul", "/v1/approvals?company=red-fox".to_owned(), "/v1/approvals?company=none"),
        ("ada", "/v1/users?company=red-fox".to_owned(), "/v1/users?company=none"),
        ("ada", "/v1/mandates?company=red-fox".to_owned(), "/v1/mandates?company=none"),
        ("otto", "/v1/receipts?company=red-fox".to_owned(), "/v1/receipts?company=none"),
        ("ada", "/v1/operations?company=red-fox".to_owned(), "/v1/operations?company=none"),
        ("ada", "/v1/bills?company=red-fox".to_owned(), "/v1/bills?company=none"),
    ] {
        let theirs = arena.refuses(&theirs, &office.get(who, &theirs), NOT_FOUND).await;
        let none = arena.refuses(none, &office.get(who, none), NOT_FOUND).await;
        assert_eq!((theirs.status, theirs.body), (none.status, none.body));
    }
    // In the body, what the other company has is as unknown as what nobody has.
    let call = |end: &str| {
        let mut calls = office.changes().into_iter();
        calls.find(|call| call.target.ends_with(end)).unwrap()
    };
    let other = |call: &HumanCall, name: &str, value: &str| {
        let mut call = call.clone();
        call.body.as_mut().unwrap()[name] = value.into();
        office.right(&call)
    };
    let unknown = Refused::Problem(422, "unknown_source_account");
    let principal = Refused::Problem(422, "not_a_principal");
    for (end, name, theirs, none, refused) in [
        ("/not-duplicate", "other", "FOX-1", "FOX-9", NOT_FOUND),
        ("/v1/users", "company", "red-fox", "no-company", NOT_FOUND),
        ("/v1/mandates", "principal", "renard", "nobody", principal),
        (
            "/v1/mandates",
            "source_account",
            crate::daemon::FOX_SOURCE,
            "NL91ABNA0417164300",
            unknown,
        ),
    ] {
        let call = call(end);
        let theirs = arena.refuses(name, &other(&call, name, theirs), refused).await;
        let none = arena.refuses(name, &other(&call, name, none), refused).await;
        assert_eq!((theirs.status, theirs.body), (none.status, none.body), "{name}");
    }
    office.close().await;
}

#[tokio::test]
async fn an_id_that_can_be_none_is_none() {
    let office = Office::open().await;
    let arena = &office.arena;
    let (long, hexadecimal) = ("x".repeat(5_000), "01A22A2C4A5A78ADAE90585F17B6FF14");
    let odd = [
        "op_",
        "md_",
        "7",
        "-",
        "null",
        "..%2f",
        "%00",
        "%0a",
        "%ff",
        "%c3%a9",
        "'",
        "%25",
        "*",
        "op_01a22a2c-4a5a-78ad-ae90-585f17b6ff14",
        &format!("op_{hexadecimal}"),
        &format!("md_{hexadecimal}"),
        &long,
    ]
    .map(str::to_owned);
    for call in office.changes() {
        let mut parts: Vec<&str> = call.target.split('/').collect();
        if parts.len() != 5 {
            continue;
        }
        for id in &odd {
            parts[3] = id;
            let target = parts.join("/");
            arena.refuses(&target, &office.right(&call).to(&target), NOT_FOUND).await;
        }
    }
    for seq in ["-1", "+1", "1.0", "1e0", "0x1", "%D9%A1", "0", "9223372036854775808", "%201"] {
        let target = format!("/v1/receipts/{seq}");
        arena.refuses(&target, &office.get("otto", &target), NOT_FOUND).await;
    }
    office.close().await;
}

#[tokio::test]
async fn a_list_is_asked_for_as_it_is_described() {
    let office = Office::open().await;
    let arena = &office.arena;
    for (who, list, is_paged) in [
        ("paul", "/v1/approvals", true),
        ("ada", "/v1/mandates", true),
        ("ada", "/v1/users", true),
        ("ada", "/v1/operations", true),
        ("ada", "/v1/bills", true),
        ("otto", "/v1/receipts", false),
    ] {
        let limits = ["0", "201", "-1", "%2B1", "1.0", "1e1", "", "a", "%D9%A3", "65537", "%00"];
        let mut queries: Vec<String> = limits.map(|limit| format!("limit={limit}")).into();
        queries.extend(
            ["x=1", "limit=1&limit=1", "Limit=1", "limit[]=1", "=", "%"].map(str::to_owned),
        );
        queries.push("company=blue-sparrow&company=blue-sparrow".to_owned());
        queries.push("company=blue-sparrow&c%6fmpany=red-fox".to_owned());
        if is_paged {
            for cursor in
                ["x", "%00", "dXNlcnM6", "b3BlcmF0aW9uczo", "YmlsbHM6", &"A".repeat(2_000)]
            {
                // Cursors of lists, in the form that we write them: each is of one list only.
                let own = match list {
                    "/v1/users" => "dXNlcnM6",
                    "/v1/operations" => "b3BlcmF0aW9uczo",
                    _ => "",
                };
                if cursor != own {
                    queries.push(format!("cursor={cursor}"));
                }
            }
            queries.push("after=1".to_owned());
        } else {
            let after = ["-1", "1.0", "", "a", "9223372036854775808", "%201", "%D9%A1"];
            queries.extend(after.map(|after| format!("after={after}")));
            queries.push("cursor=x".to_owned());
        }
        if list == "/v1/operations" {
            queries.extend(["status=", "status=paid", "status=Pending"].map(str::to_owned));
        }
        if list == "/v1/bills" {
            queries.extend(
                ["state=", "state=all", "due_before=x", "due_before=2026-13-01", "vendor_id="]
                    .map(str::to_owned),
            );
        }
        for query in queries {
            let target = format!("{list}?{query}");
            arena.refuses(&target, &office.get(who, &target), INVALID_QUERY).await;
        }
        let required = Refused::Problem(400, "company_required");
        if who == "ada" {
            arena.refuses(list, &office.get("vera", list), required).await;
        }
    }
    for call in office.changes() {
        let (target, x) = (&call.target, "?x=1");
        arena
            .refuses(target, &office.right(&call).to(&format!("{target}{x}")), INVALID_QUERY)
            .await;
        if !call.of_company {
            let named = office.right(&call).to(&format!("{target}?company=blue-sparrow"));
            arena.refuses(target, &named, INVALID_QUERY).await;
        }
    }
    office.close().await;
}
