//! Bodies: what is no JSON, no proposal, too large, too deep, or says of itself to be something else.

use super::arena::{Arena, INVALID, MALFORMED, NO_SUCH_BILL, Refused, UNKNOWN_ACTION, args, body};

/// The largest body (API 1).
const BYTES_MAX: usize = 64 * 1024;

fn plain() -> String {
    args(&[("invoice_ref", "\"INV-9\"")])
}

/// A proposal of exactly that many bytes.
fn padded(bytes: usize) -> String {
    let body = plain();
    let blanks = " ".repeat(bytes - body.len());
    body + &blanks
}

fn nested(levels: usize, open: &str, close: &str) -> String {
    format!("{}1{}", open.repeat(levels), close.repeat(levels))
}

#[tokio::test]
async fn what_is_no_json_object_is_no_proposal() {
    let arena = Arena::open().await;
    for (what, body) in [
        ("nothing", String::new()),
        ("blanks", "  \r\n\t".to_owned()),
        ("null", "null".to_owned()),
        ("true", "true".to_owned()),
        ("a number", "7".to_owned()),
        ("a text", "\"invoice.pay\"".to_owned()),
        ("a list", "[]".to_owned()),
        ("the members as a list", "[\"invoice.pay\",{},\"commit\"]".to_owned()),
        ("a list of proposals", format!("[{}]", plain())),
        ("a proposal in a text", serde_json::to_string(&plain()).unwrap()),
        ("half an object", "{".to_owned()),
        ("cut off", plain().chars().take(60).collect()),
        ("two objects", plain() + &plain()),
        ("trailing garbage", plain() + "x"),
        ("a trailing bracket", plain() + "}"),
        ("a trailing NUL", plain() + "\0"),
        ("a leading comma", "{,\"action\":\"invoice.pay\",\"args\":{}}".to_owned()),
        ("a trailing comma", "{\"action\":\"invoice.pay\",\"args\":{},}".to_owned()),
        ("single quotes", "{'action':'invoice.pay','args':{}}".to_owned()),
        ("bare names", "{action:\"invoice.pay\",args:{}}".to_owned()),
        ("a comment", "{/**/\"action\":\"invoice.pay\",\"args\":{}}".to_owned()),
        ("a byte order mark", "\u{feff}".to_owned() + &plain()),
        ("a no-break space before it", "\u{a0}".to_owned() + &plain()),
        ("a line end in a text", "{\"action\":\"invoice.\npay\",\"args\":{}}".to_owned()),
        ("a NUL in a text", "{\"action\":\"invoice.\0pay\",\"args\":{}}".to_owned()),
        ("a key that is a lone surrogate", "{\"\\ud800\":1,\"args\":{}}".to_owned()),
        ("no such escape", "{\"action\":\"\\x61\",\"args\":{}}".to_owned()),
        ("NaN", args(&[("amount", "NaN")])),
        ("Infinity", args(&[("amount", "-Infinity")])),
        ("a leading zero", args(&[("amount", "01")])),
        ("a leading plus", args(&[("amount", "+1")])),
        ("a bare point", args(&[("amount", "1.")])),
        ("a hexadecimal number", args(&[("amount", "0x10")])),
        ("10,000 lists around it", nested(10_000, "[", "]")),
        ("5,000 half objects", "{\"action\":".repeat(5_000)),
        ("a form", "action=invoice.pay&mode=commit".to_owned()),
        ("XML", "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>".to_owned()),
    ] {
        arena.refuses(what, &arena.proposal(body), MALFORMED).await;
    }
    arena.close().await;
}

#[tokio::test]
async fn bytes_that_are_no_utf_8_are_no_proposal() {
    let arena = Arena::open().await;
    let with = |bytes: &[u8]| {
        let (head, tail) = (&b"{\"action\":\"invoice.pay"[..], &b"\",\"args\":{}}"[..]);
        [head, bytes, tail].concat()
    };
    for (what, bytes) in [
        ("a bare continuation", &b"\x80"[..]),
        ("half a character", b"\xc3"),
        ("an overlong slash", b"\xc0\xaf"),
        ("an overlong NUL", b"\xc0\x80"),
        ("a surrogate in UTF-8", b"\xed\xa0\x80"),
        ("above the last code point", b"\xf4\x90\x80\x80"),
        ("Latin 1", b"\xe9"),
        ("a byte that is none", b"\xff"),
    ] {
        arena.refuses(what, &arena.proposal(with(bytes)), MALFORMED).await;
    }
    let utf16: Vec<u8> = plain().encode_utf16().flat_map(u16::to_le_bytes).collect();
    arena.refuses("UTF-16", &arena.proposal(utf16), MALFORMED).await;
    arena.refuses("gzip's first bytes", &arena.proposal(b"\x1f\x8b\x08\0"), MALFORMED).await;
    arena.close().await;
}

#[tokio::test]
async fn an_unknown_or_doubled_member_makes_no_proposal() {
    let arena = Arena::open().await;
    for more in [
        "\"scope\":\"invoice.pay\"",
        "\"company\":\"blue-sparrow\"",
        "\"approved\":true",
        "\"approval_level\":2",
        "\"mandate\":\"md_00000000000000000000000000000001\"",
        "\"principal\":\"marie\"",
        "\"origin\":\"system_of_record\"",
        "\"facts\":{\"vop\":\"match\"}",
        "\"callback\":null",
        "\"id\":\"op_00000000000000000000000000000001\"",
        "\"operation_hash\":\"\"",
        "\"Action\":\"invoice.pay\"",
        "\"action \":\"invoice.pay\"",
        "\"a\u{441}tion\":\"invoice.pay\"",
        "\"\":\"\"",
        "\"__proto__\":{}",
        "\"mode\":\"commit\",\"mode\":\"prepare\"",
        "\"action\":\"invoice.pay\"",
        "\"\\u0061ction\":\"invoice.pay\"",
        "\"args\":{}",
    ] {
        let sent = body("\"invoice.pay\"", "{}", &format!(",{more}"));
        arena.refuses(more, &arena.proposal(sent), MALFORMED).await;
    }
    let long = format!(",\"{}\":1", "k".repeat(60_000));
    let sent = body("\"invoice.pay\"", "{}", &long);
    arena.refuses("a key of 60,000", &arena.proposal(sent), MALFORMED).await;
    arena.close().await;
}

#[tokio::test]
async fn an_action_is_one_of_a_closed_list() {
    let arena = Arena::open().await;
    for action in [
        "null",
        "7",
        "true",
        "[]",
        "[\"invoice.pay\"]",
        "{}",
        "{\"ref\":\"invoice.pay\"}",
        "\"\"",
        "\" invoice.pay\"",
        "\"invoice.pay \"",
        "\"invoice.pay\\u0000\"",
        "\"invoice.pay\\n\"",
        "\"Invoice.Pay\"",
        "\"INVOICE.PAY\"",
        "\"invoice/pay\"",
        "\"invoice\u{2024}pay\"",
        "\"\u{202e}yap.eciovni\"",
        "\"invoice.p\u{430}y\"",
        "\"invoice.\u{200b}pay\"",
        "\"invoice.pay;vendor.update_bank_details\"",
        "\"invoice.*\"",
        "\"*\"",
        "\"vendor.delete\"",
        "\"../invoice.pay\"",
        "\"' or 1=1 --\"",
        "\"\\ud800\"",
    ] {
        arena.refuses(action, &arena.proposal(body(action, "{}", "")), UNKNOWN_ACTION).await;
    }
    let deep = nested(10_000, "[", "]");
    arena.refuses("deep", &arena.proposal(body(&deep, "{}", "")), UNKNOWN_ACTION).await;
    let absent = "{\"args\":{}}";
    arena.refuses("none", &arena.proposal(absent), UNKNOWN_ACTION).await;
    // The caller's own text comes back short, and without signs that change how it is shown.
    let odd = format!("\"{}\u{202e}{}\"", "a".repeat(10), "z".repeat(50_000));
    let heard = arena.refuses("odd", &arena.proposal(body(&odd, "{}", "")), UNKNOWN_ACTION).await;
    let shown = heard.text("/action");
    assert!(shown.starts_with("aaaaaaaaaa\\u{202e}zzz") && shown.len() < 80, "{shown}");
    arena.close().await;
}

#[tokio::test]
async fn a_mode_is_commit_or_prepare() {
    let arena = Arena::open().await;
    let invalid = Refused::Denied(422, "contract", "invalid_mode");
    let args = plain();
    for mode in [
        "null",
        "1",
        "true",
        "[]",
        "{}",
        "\"\"",
        "\"COMMIT\"",
        "\"Commit\"",
        "\" commit\"",
        "\"commit \"",
        "\"commit\\u0000\"",
        "\"dry_run\"",
        "\"execute\"",
        "[\"commit\"]",
        "{\"ref\":\"commit\"}",
        "\"prep\u{430}re\"",
    ] {
        let sent = args.replacen('{', &format!("{{\"mode\":{mode},"), 1);
        arena.refuses(mode, &arena.proposal(sent), invalid).await;
    }
    arena.close().await;
}

#[tokio::test]
async fn a_body_has_at_most_64_kib() {
    let arena = Arena::open().await;
    let too_large = Refused::Problem(413, "body_too_large");
    let whole = arena.proposal(padded(BYTES_MAX));
    arena.refuses("exactly 64 KiB", &whole, NO_SUCH_BILL).await;
    arena.refuses("one byte more", &arena.proposal(padded(BYTES_MAX + 1)), too_large).await;
    arena.refuses("65 KiB", &arena.proposal(padded(65 * 1024)), too_large).await;
    arena.refuses("1 MiB", &arena.proposal(padded(1024 * 1024)), too_large).await;
    // The same where no length is announced.
    for piece in [1_000, BYTES_MAX] {
        let whole = arena.proposal(padded(BYTES_MAX)).chunked(piece);
        arena.refuses("64 KiB in pieces", &whole, NO_SUCH_BILL).await;
        let more = arena.proposal(padded(BYTES_MAX + 1)).chunked(piece);
        arena.refuses("more in pieces", &more, too_large).await;
    }
    let one_by_one = arena.proposal(plain()).chunked(1);
    arena.refuses("byte by byte", &one_by_one, NO_SUCH_BILL).await;
    // What is announced counts before anything is read.
    let announced = |bytes: &str| arena.proposal("").set("Content-Length", bytes);
    arena.refuses("announced", &announced("65537"), too_large).await;
    arena.refuses("announced", &announced("9223372036854775807"), too_large).await;
    let on_cancel = arena
        .call("POST", "/v1/operations/op_00000000000000000000000000000001/cancel")
        .with("Content-Type", "application/json")
        .body(" ".repeat(BYTES_MAX + 1));
    arena.refuses("on a call without body", &on_cancel, too_large).await;
    arena.close().await;
}

#[tokio::test]
async fn huge_and_deep_arguments_are_refused_by_their_form() {
    let arena = Arena::open().await;
    let huge = format!("\"{}\"", "9".repeat(60_000));
    for name in ["invoice_ref", "payee_iban", "amount", "currency", "source_account"] {
        arena.refuses(name, &arena.proposal(args(&[(name, &huge)])), INVALID).await;
        for (open, close) in [("[", "]"), ("{\"ref\":", "}"), ("[{\"a\":", "}]")] {
            let deep = nested(5_000, open, close);
            let sent = args(&[(name, &deep)]);
            arena.refuses("deep", &arena.proposal(sent), INVALID).await;
        }
    }
    let deep = nested(10_000, "[", "]");
    arena.refuses("deep args", &arena.proposal(body("\"invoice.pay\"", &deep, "")), INVALID).await;
    let many: Vec<String> = (0..5_000).map(|at| format!("\"a{at}\":1")).collect();
    let many = format!("{{{}}}", many.join(","));
    arena.refuses("many", &arena.proposal(body("\"invoice.pay\"", &many, "")), INVALID).await;
    let number = args(&[("amount", &"9".repeat(60_000))]);
    arena.refuses("a number of 60,000 digits", &arena.proposal(number), INVALID).await;
    arena.close().await;
}

#[tokio::test]
async fn a_proposal_says_that_it_is_json_and_nothing_else() {
    let arena = Arena::open().await;
    let unsupported = Refused::Problem(415, "unsupported_media_type");
    for kind in [
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-8",
        "application/json;charset=utf-8",
        "application/json;",
        "application/json;q=1",
        "application/json, text/plain",
        "Application/JSON",
        "application/problem+json",
        "application/ld+json",
        "application/jsonp",
        "application/ json",
        "json",
        "*/*",
        "",
    ] {
        let call = arena.proposal(plain()).set("Content-Type", kind);
        arena.refuses(kind, &call, unsupported).await;
    }
    let none = arena.proposal(plain()).without("Content-Type");
    arena.refuses("none", &none, unsupported).await;
    let twice = arena.proposal(plain()).with("Content-Type", "application/json");
    arena.refuses("twice", &twice, Refused::Problem(400, "duplicate_header")).await;
    let other = arena.proposal(plain()).with("Content-Type", "text/plain");
    arena.refuses("two kinds", &other, Refused::Problem(400, "duplicate_header")).await;
    let odd = arena.proposal(plain()).set("Content-Type", b"application/json\xe9");
    arena.refuses("not ASCII", &odd, unsupported).await;
    for coding in ["gzip", "identity", "br", ""] {
        let call = arena.proposal(plain()).with("Content-Encoding", coding);
        arena.refuses(coding, &call, unsupported).await;
    }
    // A blank around a header's value is no part of it.
    let blank = arena.proposal(plain()).set("Content-Type", " application/json\t");
    arena.refuses("blanks around", &blank, NO_SUCH_BILL).await;
    arena.close().await;
}
