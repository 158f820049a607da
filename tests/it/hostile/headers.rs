//! Headers: keys, hosts, lengths, what proxies say, and calls that hide another call.

use serde_json::json;

use super::arena::{Arena, NO_SUCH_BILL, Refused, args};
use super::raw::Call;

const KEY_MISSING: Refused = Refused::Problem(400, "idempotency_key_missing");
const KEY_INVALID: Refused = Refused::Problem(400, "idempotency_key_invalid");
const TWICE: Refused = Refused::Problem(400, "duplicate_header");
const HOST: Refused = Refused::Problem(403, "host_not_allowed");
const ORIGIN: Refused = Refused::Problem(403, "origin_not_allowed");

#[tokio::test]
async fn a_key_is_one_plain_short_word() {
    let arena = Arena::open().await;
    let none = arena.harmless().without("Idempotency-Key");
    arena.refuses("none", &none, KEY_MISSING).await;
    for name in ["X-Idempotency-Key", "Idempotency_Key", "IdempotencyKey", "Idempotence-Key"] {
        arena.refuses(name, &none.clone().with(name, "k"), KEY_MISSING).await;
    }
    for (what, key) in [
        ("empty", &b""[..]),
        ("65 long", &[b'k'; 65]),
        ("very long", &[b'k'; 8_000]),
        ("a blank inside", b"a b"),
        ("a tab inside", b"a\tb"),
        ("a comma", b"a,b"),
        ("a semicolon", b"a;b"),
        ("a slash", b"a/b"),
        ("a quote", b"\"a\""),
        ("a star", b"*"),
        ("a percent", b"a%00"),
        ("not ASCII", "cl\u{e9}".as_bytes()),
        ("a byte that is no text", b"a\xff"),
        ("a wide digit", "\u{ff11}".as_bytes()),
        ("markup", b"<b>"),
        ("SQL", b"a'--"),
    ] {
        let call = arena.harmless().set("Idempotency-Key", key);
        arena.refuses(what, &call, KEY_INVALID).await;
    }
    let twice = arena.harmless().with("Idempotency-Key", "other");
    arena.refuses("two", &twice, TWICE).await;
    let same = arena.harmless().set("Idempotency-Key", "same").with("idempotency-key", "same");
    arena.refuses("the same twice", &same, TWICE).await;
    for key in
        ["k".repeat(64), "A-z.0_9:".to_owned(), "-".to_owned(), "  blanks-around ".to_owned()]
    {
        let call = arena.harmless().set("Idempotency-Key", &key);
        arena.refuses(&key, &call, NO_SUCH_BILL).await;
    }
    arena.close().await;
}

#[tokio::test]
async fn a_key_holds_for_its_content_however_it_is_spelt() {
    let arena = Arena::open().await;
    let first = arena.harmless().set("Idempotency-Key", "one");
    let body = args(&[("invoice_ref", "\"INV-9\"")]);
    let heard = arena.refuses("first", &first, NO_SUCH_BILL).await;
    let respelt = body.replace("\"INV-9\"", "\"\\u0049NV-9\"").replace(',', " ,\n");
    for (what, same) in [("again", body.clone()), ("spelt otherwise", respelt)] {
        let call = arena.proposal(same).set("Idempotency-Key", "one");
        let again = arena.refuses(what, &call, NO_SUCH_BILL).await;
        assert_eq!(
            (again.text("/id"), again.header("idempotent-replayed")),
            (heard.text("/id"), Some("true"))
        );
    }
    let reused = Refused::Problem(409, "idempotency_key_reused");
    for (what, other) in [
        ("another bill", args(&[("invoice_ref", "\"INV-8\"")])),
        ("another amount", body.replace("1200.00", "1200.0")),
        ("another mode", body.replacen('{', "{\"mode\":\"prepare\",", 1)),
        ("more in it", body.replacen("\"args\":{", "\"args\":{\"x\":1,", 1)),
        ("another spelling of the payee", body.replace("{\"ref\":\"V-100\"}", "\"FR76\"")),
    ] {
        let call = arena.proposal(other).set("Idempotency-Key", "one");
        arena.refuses(what, &call, reused).await;
    }
    arena
        .refuses("another key", &arena.proposal(body).set("Idempotency-Key", "One"), NO_SUCH_BILL)
        .await;
    arena.close().await;
}

#[tokio::test]
async fn only_our_own_host_is_served() {
    let arena = Arena::open().await;
    let host = arena.host().to_owned();
    let (_, port) = host.rsplit_once(':').unwrap();
    let bare = |target: &str| Call::new("GET", target, "x").without("Host");
    for (what, call) in [
        ("none", bare("/healthz")),
        ("empty", bare("/healthz").with("Host", "")),
        ("another", bare("/healthz").with("Host", "evil.test")),
        ("another with our port", bare("/healthz").with("Host", format!("evil.test:{port}"))),
        ("localhost", bare("/healthz").with("Host", format!("localhost:{port}"))),
        ("all addresses", bare("/healthz").with("Host", format!("0.0.0.0:{port}"))),
        ("another port", bare("/healthz").with("Host", "127.0.0.1:1")),
        ("another spelling of the address", bare("/healthz").with("Host", format!("127.1:{port}"))),
        ("the address as a number", bare("/healthz").with("Host", format!("2130706433:{port}"))),
        ("IPv6", bare("/healthz").with("Host", format!("[::1]:{port}"))),
        ("a dot after it", bare("/healthz").with("Host", format!("127.0.0.1.:{port}"))),
        ("a user before it", bare("/healthz").with("Host", format!("a@{host}"))),
        ("a path after it", bare("/healthz").with("Host", format!("{host}/x"))),
        ("two in one", bare("/healthz").with("Host", format!("{host}, {host}"))),
        ("twice", bare("/healthz").with("Host", &host).with("Host", &host)),
        ("and another", bare("/healthz").with("Host", &host).with("Host", "evil.test")),
        ("not ASCII", bare("/healthz").with("Host", b"127.0.0.1\xff")),
        ("in an address of another", bare("http://evil.test/healthz").with("Host", &host)),
        (
            "in an address of a user",
            bare(&format!("http://a:b@{host}/healthz")).with("Host", &host),
        ),
        (
            "ours in the address only",
            bare(&format!("http://{host}/healthz")).with("Host", "evil.test"),
        ),
        ("ours in the address alone", bare(&format!("http://{host}/healthz"))),
        ("forwarded", bare("/healthz").with("Host", "evil.test").with("X-Forwarded-Host", &host)),
        ("an old version without", bare("/healthz").version("HTTP/1.0")),
    ] {
        arena.refuses(what, &call, HOST).await;
    }
    for (what, call) in [
        ("ours", bare("/healthz").with("Host", &host)),
        ("ours in the address too", bare(&format!("http://{host}/healthz")).with("Host", &host)),
        ("the public one", bare("/healthz").with("Host", "127.0.0.1")),
        ("the public one with its port", bare("/healthz").with("Host", "127.0.0.1:80")),
    ] {
        arena.takes(what, &call, 200).await;
    }
    arena.close().await;
}

#[tokio::test]
async fn a_page_of_somebody_else_calls_nothing_that_changes_anything() {
    let arena = Arena::open().await;
    for origin in [
        "null",
        "http://evil.test",
        "https://127.0.0.1",
        "http://127.0.0.1.evil.test",
        "file://",
        "",
    ] {
        let call = arena.harmless().with("Origin", origin);
        arena.refuses(origin, &call, ORIGIN).await;
    }
    let ours = format!("http://{}", arena.host());
    let two = arena.harmless().with("Origin", &ours).with("Origin", "http://evil.test");
    arena.refuses("two", &two, ORIGIN).await;
    arena.refuses("ours", &arena.harmless().with("Origin", &ours), NO_SUCH_BILL).await;
    // No answer invites a page of another origin to read it.
    let ask = arena
        .nobodys("OPTIONS", "/v1/operations")
        .with("Origin", "http://evil.test")
        .with("Access-Control-Request-Method", "POST");
    let heard =
        arena.refuses("asked before", &ask, Refused::Problem(405, "method_not_allowed")).await;
    let read = arena.get("/v1/bills/INV-1").with("Origin", "http://evil.test");
    let read = arena.takes("read", &read, 200).await;
    for heard in [heard, read] {
        assert!(
            !heard.headers.iter().any(|(name, _)| name.starts_with("access-control")),
            "{heard:?}"
        );
    }
    arena.close().await;
}

#[tokio::test]
async fn what_a_proxy_claims_changes_nothing() {
    let arena = Arena::open().await;
    let forwarded = |call: Call| {
        call.with("X-Forwarded-For", "203.0.113.7")
            .with("X-Real-IP", "203.0.113.7")
            .with("Forwarded", "for=203.0.113.7;host=evil.test;proto=https")
            .with("X-Forwarded-Host", "evil.test")
            .with("X-Forwarded-Proto", "https")
            .with("X-Forwarded-Prefix", "/evil")
            .with("X-Original-URL", "/sandbox/payments")
            .with("X-Rewrite-URL", "/sandbox/payments")
    };
    let sent = args(&[("invoice_ref", "\"INV-3\""), ("amount", "\"8000.00\"")]);
    let waits = arena.takes("waits", &forwarded(arena.proposal(sent)), 202).await;
    let url = waits.text("/approval/url");
    assert!(url.starts_with("http://127.0.0.1/console/"), "{url}");
    let nobody = forwarded(arena.nobodys("GET", "/v1/bills"));
    arena.refuses("nobody", &nobody, super::arena::NOT_LET_IN).await;
    let export = arena.close().await;
    assert!(!export.contains("203.0.113.7") && !export.contains("evil.test"), "{export}");
}

#[tokio::test]
async fn a_method_is_the_one_that_stands_first() {
    let arena = Arena::open().await;
    let wrong = Refused::Problem(405, "method_not_allowed");
    for name in ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"] {
        let read = arena.get("/v1/bills/INV-1").with(name, "DELETE");
        arena.takes(name, &read, 200).await;
        let write = arena.call("POST", "/v1/bills/INV-1").with(name, "GET");
        arena.refuses(name, &write, wrong).await;
        let listed = arena.get("/v1/operations").with(name, "POST");
        let listed = listed.with("Content-Type", "application/json").body(args(&[]));
        let listed = arena.takes(name, &listed, 200).await;
        assert_eq!(listed.json["items"], json!([]), "{}", listed.body);
    }
    let asked = arena.get("/v1/operations?_method=POST");
    arena.refuses("as a parameter", &asked, Refused::Problem(400, "invalid_query")).await;
    arena.close().await;
}

#[tokio::test]
async fn two_lengths_make_no_second_call() {
    let arena = Arena::open().await;
    let hidden = arena.harmless().set("Idempotency-Key", "hidden").bytes();
    let body = args(&[("invoice_ref", "\"INV-9\"")]);
    // Whatever the two say, one call is answered and the line is closed.
    for (what, length, coding) in [
        ("length after coding", "4", "chunked"),
        ("no length after coding", "0", "chunked"),
        ("a length with a sign", "+4", "chunked"),
        ("another case", "4", "Chunked"),
        ("coded twice", "4", "chunked, chunked"),
        ("coded otherwise", "4", "xchunked"),
        ("coded in another way", "4", "gzip, chunked"),
        ("coded at first", "4", "chunked, identity"),
        ("a blank before", "4", "\x0bchunked"),
    ] {
        let call = arena.proposal("").without("Content-Length");
        let call = call.with("Content-Length", length).with("Transfer-Encoding", coding);
        let mut sent = call.body([b"0\r\n\r\n", &hidden[..]].concat()).unannounced().bytes();
        let keep = "Connection: close\r\n\r\n0";
        let at = sent.windows(keep.len()).position(|window| window == keep.as_bytes()).unwrap();
        sent.drain(at..at + "Connection: close\r\n".len());
        arena.cuts_off(what, &sent, &[400, 411, 501]).await;
    }
    for lengths in [["4", "5"], ["5", "4"], ["-1", "5"]] {
        let mut call = arena.proposal(&body).unannounced();
        for length in lengths {
            call = call.with("Content-Length", length);
        }
        arena.cuts_off("two lengths", &call.bytes(), &[400]).await;
    }
    for length in ["-1", "+5", "0x5", "5,6", "5 6", "1e2", "99999999999999999999", "five", ""] {
        let call = arena.proposal(&body).unannounced().with("Content-Length", length);
        arena.cuts_off(length, &call.bytes(), &[400]).await;
    }
    let heard = arena.get("/v1/operations");
    let heard = arena.takes("afterwards", &heard, 200).await;
    assert_eq!(heard.json["items"], json!([]), "a hidden call was taken: {}", heard.body);
    arena.close().await;
}

#[tokio::test]
async fn a_broken_head_is_no_call() {
    let arena = Arena::open().await;
    let whole = String::from_utf8(arena.get("/v1/bills").bytes()).unwrap();
    let broken = |from: &str, to: &str| {
        let changed = whole.replacen(from, to, 1);
        assert_ne!(changed, whole, "{from}");
        changed.into_bytes()
    };
    let many: String = "X-A: 1\r\n".repeat(100) + "Host:";
    let large = format!("X-Large: {}\r\nHost:", "x".repeat(20_000));
    for (what, sent) in [
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("no version", broken(" HTTP/1.1", "")),
        ("another version", broken("HTTP/1.1", "HTTP/3.0")),
        ("a blank before a colon", broken("Host:", "Host :")),
        ("a folded header", broken("Host:", "X-A: 1\r\n folded\r\nHost:")),
        ("a bare line feed in a value", broken("Host:", "X-A: a\nX-B: b\r\nHo st:")),
        ("a NUL in a value", broken("Host:", "X-A: a\0b\r\nHost:")),
        ("a NUL in the target", broken("/v1/bills", "/v1/bi\0lls")),
        ("a blank in the target", broken("/v1/bills", "/v1/bills x")),
        ("a header without a name", broken("Host:", ": x\r\nHost:")),
        ("a header that is no header", broken("Host:", "no colon\r\nHost:")),
        ("too many headers", broken("Host:", &many)),
        ("too large a head", broken("Host:", &large)),
        ("a target that is none", broken("/v1/bills", "\\v1\\bills")),
    ] {
        arena.cuts_off(what, &sent, &[400, 431, 505]).await;
    }
    arena.close().await;
}
