//! Addresses: other spellings of a path, ids that are none, parameters, cursors, methods.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::arena::{Arena, NOT_FOUND, Refused, args};

const QUERY: Refused = Refused::Problem(400, "invalid_query");
const METHOD: Refused = Refused::Problem(405, "method_not_allowed");

#[tokio::test]
async fn an_address_has_one_spelling() {
    let arena = Arena::open().await;
    for path in [
        "/",
        "//",
        "/v1",
        "/v1/",
        "/v1/bill",
        "/v1/bills/",
        "//v1/bills",
        "/v1//bills",
        "/V1/bills",
        "/v1/Bills",
        "/v2/bills",
        "/./v1/bills",
        "/v1/./bills",
        "/v1/x/../bills",
        "/v1/../sandbox/payments",
        "/v1/bills/../../sandbox/payments",
        "/v1/bills/..",
        "/v1/bills/INV-1/",
        "/v1/bills/INV-1/..",
        "/v1/bills/INV-1/x",
        "/%76%31/bills",
        "/v1%2fbills",
        "/v1/%62ills",
        "/v1/bills;x=1",
        "/v1/bills.json",
        "/v1/bills%00",
        "/v1/bills%3fstate=open",
        "/sandbox",
        "/sandbox/payments/",
        "/sandbox/../v1/bills",
        "/console",
        "/mcp",
        "/admin",
        "/.git/config",
        "/.env",
        "/countersign.toml",
        "/keys/mandate.key",
        "/etc/passwd",
        "/v1/operations/op_00000000000000000000000000000001/approve/x",
    ] {
        arena.refuses(path, &arena.get(path), NOT_FOUND).await;
    }
    arena.close().await;
}

#[tokio::test]
async fn an_id_that_is_none_is_as_good_as_nothing() {
    let arena = Arena::open().await;
    let none = arena.refuses("none", &arena.get("/v1/bills/INV-9"), NOT_FOUND).await;
    for id in [
        "inv-1",
        "INV-1%20",
        "%20INV-1",
        "INV-1%00",
        "%00",
        "INV-1%0d%0aX-A:%20b",
        "INV-1%0a",
        "INV-1%2f",
        "INV-1%2F..%2FINV-2",
        "..%2f..%2fsandbox%2fpayments",
        "%2e%2e",
        "%2e%2e%2fINV-1",
        "INV%2D1%252f",
        "%ef%bb%bfINV-1",
        "INV-1%e2%80%8b",
        "INV-%ef%bc%91",
        "%c3%28",
        "%ff",
        "%zz",
        "%",
        "INV-1%",
        "*",
        "INV-1,INV-2",
        "INV-1;x",
        "INV-1&x",
        "INV-1'--",
        "INV-1%27",
        "'",
        "1=1",
        "FOX-1",
        "V-100",
        "A-1",
        "-1",
        "0",
        "null",
        "undefined",
        "[object%20Object]",
        "true",
    ] {
        for path in ["bills", "vendors", "operations"] {
            let target = format!("/v1/{path}/{id}");
            if target == "/v1/vendors/V-100" {
                continue;
            }
            let heard = arena.refuses(&target, &arena.get(&target), NOT_FOUND).await;
            assert_eq!(heard.body, none.body, "{target}");
        }
        for call in ["commit", "cancel"] {
            let target = format!("/v1/operations/{id}/{call}");
            let heard = arena.refuses(&target, &arena.call("POST", &target), NOT_FOUND).await;
            assert_eq!(heard.body, none.body, "{target}");
        }
    }
    let long = format!("/v1/bills/{}", "I".repeat(5_000));
    let heard = arena.refuses("long", &arena.get(&long), NOT_FOUND).await;
    assert_eq!(heard.body, none.body);
    // An escape is the letter that it stands for: one address, one bill.
    let escaped = arena.takes("escaped", &arena.get("/v1/bills/%49NV-1"), 200).await;
    assert_eq!(escaped.text("/invoice_ref"), "INV-1");
    arena.close().await;
}

#[tokio::test]
async fn each_address_takes_its_own_methods() {
    let arena = Arena::open().await;
    for (method, path) in [
        ("PUT", "/v1/operations"),
        ("PATCH", "/v1/operations"),
        ("DELETE", "/v1/operations"),
        ("OPTIONS", "/v1/operations"),
        ("TRACE", "/v1/operations"),
        ("PROPFIND", "/v1/operations"),
        ("post", "/v1/operations"),
        ("XYZ", "/v1/operations"),
        ("DELETE", "/v1/operations/op_00000000000000000000000000000001"),
        ("GET", "/v1/operations/op_00000000000000000000000000000001/commit"),
        ("GET", "/v1/operations/op_00000000000000000000000000000001/cancel"),
        ("HEAD", "/v1/operations/op_00000000000000000000000000000001/cancel"),
        ("PUT", "/v1/operations/op_00000000000000000000000000000001/commit"),
        ("POST", "/v1/bills"),
        ("PUT", "/v1/bills/INV-1"),
        ("DELETE", "/v1/bills/INV-1"),
        ("PUT", "/v1/vendors/V-100"),
        ("POST", "/v1/mandates/current"),
        ("POST", "/healthz"),
        ("POST", "/readyz"),
    ] {
        let what = format!("{method} {path}");
        let heard = arena.refuses(&what, &arena.call(method, path), METHOD).await;
        assert!(
            heard.header("allow").is_some_and(|allowed| !allowed.contains(method)),
            "{heard:?}"
        );
    }
    let head = arena.takes("HEAD reads", &arena.call("HEAD", "/v1/bills/INV-1"), 200).await;
    assert_eq!(head.body, "");
    arena.close().await;
}

#[tokio::test]
async fn parameters_are_known_stand_once_and_have_a_form() {
    let arena = Arena::open().await;
    for target in [
        "/v1/bills?x=1",
        "/v1/bills?State=open",
        "/v1/bills?state%20=open",
        "/v1/bills?state=open&state=paid",
        "/v1/bills?state=open&st%61te=open",
        "/v1/bills?state[]=open",
        "/v1/bills?state=OPEN",
        "/v1/bills?state=open,paid",
        "/v1/bills?state=",
        "/v1/bills?state=all",
        "/v1/bills?state=%00",
        "/v1/bills?limit=0",
        "/v1/bills?limit=201",
        "/v1/bills?limit=-1",
        "/v1/bills?limit=1e2",
        "/v1/bills?limit=+1",
        "/v1/bills?limit=%2B1",
        "/v1/bills?limit=1.0",
        "/v1/bills?limit=%201",
        "/v1/bills?limit=",
        "/v1/bills?limit=999999999999999999999",
        "/v1/bills?limit=%EF%BC%91",
        "/v1/bills?limit=1&limit=2",
        "/v1/bills?limit",
        "/v1/bills?due_before=tomorrow",
        "/v1/bills?due_before=2026-13-01",
        "/v1/bills?due_before=2026-02-30",
        "/v1/bills?due_before=31.12.2026",
        "/v1/bills?due_before=2026-12-31T00:00:00Z",
        "/v1/bills?due_before=",
        "/v1/bills?vendor_id=",
        "/v1/bills?vendor_id=%00",
        "/v1/bills?cursor=",
        "/v1/bills?cursor=INV-1",
        "/v1/bills?cursor=%00",
        "/v1/bills?company=red-fox",
        "/v1/bills?fields=*",
        "/v1/bills?%ff=1",
        "/v1/bills/INV-1?x=1",
        "/v1/vendors/V-100?expand=accounts",
        "/v1/mandates/current?id=1",
        "/v1/operations?status=all",
        "/v1/operations?status=Pending",
        "/v1/operations?agent=other",
        "/v1/operations?limit=0",
        "/v1/operations?limit=201",
        "/v1/operations?cursor=b3BlcmF0aW9ucw",
        "/v1/operations/op_00000000000000000000000000000001?wait=61s",
        "/v1/operations/op_00000000000000000000000000000001?wait=-1s",
        "/v1/operations/op_00000000000000000000000000000001?wait=30",
        "/v1/operations/op_00000000000000000000000000000001?wait=1h",
        "/v1/operations/op_00000000000000000000000000000001?wait=",
        "/v1/operations/op_00000000000000000000000000000001?wait=1s&wait=2s",
    ] {
        arena.refuses(target, &arena.get(target), QUERY).await;
    }
    for target in ["/v1/operations?mode=commit", "/v1/operations?dry_run=false"] {
        let call = arena.proposal(args(&[])).to(target);
        arena.refuses(target, &call, QUERY).await;
    }
    let commit = "/v1/operations/op_00000000000000000000000000000001/commit?force=true";
    arena.refuses("force", &arena.call("POST", commit), QUERY).await;
    let long = format!("/v1/bills?vendor_reference={}", "9".repeat(8_000));
    let heard = arena.takes("a long reference", &arena.get(&long), 200).await;
    assert_eq!(heard.json["items"], json!([]));
    arena.close().await;
}

#[tokio::test]
async fn a_cursor_of_ones_own_making_shows_nothing_more() {
    let arena = Arena::open().await;
    let cursor = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let page = arena.takes("a page", &arena.get("/v1/bills?limit=1"), 200).await;
    let ours = page.text("/next_cursor").to_owned();
    let decoded = String::from_utf8(URL_SAFE_NO_PAD.decode(&ours).unwrap()).unwrap();
    let tag = decoded.split_once(':').unwrap().0.to_owned();
    for (what, altered) in [
        ("cut off", ours.chars().take(ours.len() / 2).collect()),
        ("of the other list", cursor("operations:op_1")),
        ("padded", format!("{ours}==")),
        ("not base64", "!!!!".to_owned()),
        ("not text", URL_SAFE_NO_PAD.encode(b"\xff\xfe")),
        ("huge", cursor(&format!("{tag}:{}", "Z".repeat(5_000)))),
        ("in large letters", ours.to_uppercase()),
        ("without a tag", cursor("INV-1")),
        ("of a control character", cursor(&format!("{tag}:\0"))),
    ] {
        let target = format!("/v1/bills?cursor={altered}");
        arena.refuses(what, &arena.get(&target), QUERY).await;
    }
    // One may say after which id to begin; the items are one's own whatever one says.
    for after in ["A", "FOX-1", "FOX-0", "' or '1'='1", "%", "\u{10ffff}"] {
        let target = format!("/v1/bills?limit=200&cursor={}", cursor(&format!("{tag}:{after}")));
        let heard = arena.takes(after, &arena.get(&target), 200).await;
        let items = heard.json["items"].as_array().unwrap();
        let all_ours =
            |item: &serde_json::Value| item["invoice_ref"].as_str().unwrap().starts_with("INV-");
        assert!(items.iter().all(all_ours), "{}", heard.body);
    }
    let target = format!("/v1/operations?cursor={ours}");
    arena.refuses("of the bills", &arena.get(&target), QUERY).await;
    arena.close().await;
}

#[tokio::test]
async fn a_call_without_a_body_takes_none() {
    let arena = Arena::open().await;
    let prepared = args(&[]).replacen('{', "{\"mode\":\"prepare\",", 1);
    let prepared = arena.takes("prepared", &arena.proposal(prepared), 200).await;
    let commit = format!("/v1/operations/{}/commit", prepared.text("/id"));
    let json = |body: &str| {
        arena.call("POST", &commit).with("Content-Type", "application/json").body(body)
    };
    for body in [
        "null",
        "[]",
        "7",
        "\"\"",
        "{\"amount\":\"1.00\"}",
        "{\"payee_iban\":\"NL91ABNA0417164300\"}",
        "{\"force\":true}",
        "{}{}",
        "{",
        " {} x",
        "{\"operation_hash\":\"0\"}",
    ] {
        arena.refuses(body, &json(body), super::arena::MALFORMED).await;
    }
    let unsupported = Refused::Problem(415, "unsupported_media_type");
    let form = json("{}").set("Content-Type", "text/plain");
    arena.refuses("another kind", &form, unsupported).await;
    let none = json("{}").without("Content-Type");
    arena.refuses("no kind", &none, unsupported).await;
    let twice = json("{}").with("Content-Type", "application/json");
    arena.refuses("two kinds", &twice, Refused::Problem(400, "duplicate_header")).await;
    let cancel = format!("/v1/operations/{}/cancel", prepared.text("/id"));
    let cancelled = arena.takes("nothing", &arena.call("POST", &cancel), 200).await;
    assert_eq!(cancelled.text("/status"), "cancelled");
    arena.refuses("over", &json("{}"), Refused::Problem(409, "not_committable")).await;
    arena.close().await;
}
