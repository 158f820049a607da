//! Tokens: forged, altered in each part, of another kind, of another store, over, revoked, or sent
//! in another way than the one. Nobody is let in, and nobody learns why but where the token is ours.

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::arena::{Arena, NO_SUCH_BILL, NOT_LET_IN, Refused, args};
use super::raw::Call;
use crate::daemon::{COMPANY, FOX_SOURCE, Installation, SOURCE};

const EXPIRED: Refused = Refused::Problem(401, "mandate_expired");
const REVOKED: Refused = Refused::Problem(401, "mandate_revoked");

/// The three parts of a token, as they are written.
struct Parts {
    header: Value,
    claims: Value,
    signature: String,
}

impl Parts {
    fn of(token: &str) -> Self {
        let parts: Vec<&str> = token.split('.').collect();
        let read =
            |part: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        Self { header: read(parts[0]), claims: read(parts[1]), signature: parts[2].to_owned() }
    }

    fn signed_part(&self) -> String {
        let write = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}", write(&self.header), write(&self.claims))
    }

    /// The token with the signature that it had before.
    fn token(&self) -> String {
        format!("{}.{}", self.signed_part(), self.signature)
    }

    fn signed_by(&self, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
        let signed = self.signed_part();
        let signature = URL_SAFE_NO_PAD.encode(sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }
}

fn altered(token: &str, change: impl Fn(&mut Parts)) -> String {
    let mut parts = Parts::of(token);
    change(&mut parts);
    parts.token()
}

fn key_pair(installation: &Installation, name: &str) -> Ed25519KeyPair {
    let file = installation.path("keys").join(format!("{name}.key"));
    let seed = STANDARD.decode(std::fs::read_to_string(file).unwrap().trim()).unwrap();
    Ed25519KeyPair::from_seed_unchecked(&seed).unwrap()
}

fn with_token(arena: &Arena, token: impl AsRef<[u8]>) -> Call {
    let value = [b"Bearer ", token.as_ref()].concat();
    arena.harmless().set("Authorization", value)
}

#[tokio::test]
async fn a_token_that_differs_in_anything_is_none() {
    let mut arena = Arena::open().await;
    let elsewhere = Installation::new();
    elsewhere.add_principal();
    let foreign = elsewhere.mandate(&[]);
    arena.keep_secret(&foreign);
    let token = arena.token.clone();
    arena.refuses("the token itself", &with_token(&arena, &token), NO_SUCH_BILL).await;
    let header = |name: &'static str, value: Value| {
        altered(&token, move |parts| parts.header[name] = value.clone())
    };
    let claim = |name: &'static str, value: Value| {
        altered(&token, move |parts| parts.claims[name] = value.clone())
    };
    let mut rows = vec![
        ("of another store", foreign.clone()),
        ("alg none", header("alg", json!("none"))),
        ("alg None", header("alg", json!("None"))),
        ("alg HS256", header("alg", json!("HS256"))),
        ("alg ES256", header("alg", json!("ES256"))),
        ("alg null", header("alg", Value::Null)),
        ("another type", header("typ", json!("JWT"))),
        ("no type", header("typ", Value::Null)),
        ("another key", header("kid", json!("other"))),
        ("a key in a file", header("kid", json!("../../keys/mandate.key"))),
        ("a key in the token", header("jwk", json!({ "kty": "OKP", "crv": "Ed25519", "x": "AA" }))),
        ("a key at an address", header("jku", json!("http://127.0.0.1:1/keys"))),
        ("critical", header("crit", json!(["b64"]))),
        ("another principal", claim("sub", json!("renard"))),
        ("never over", claim("exp", json!(99_999_999_999_i64))),
        ("another store's", claim("aud", json!("st_other"))),
        ("two stores'", claim("aud", json!(["st_other"]))),
        ("another mandate", claim("jti", json!("md_00000000000000000000000000000001"))),
        ("another journal", claim("jrn", json!("BNK9"))),
        ("another account", claim("fpr", json!("0".repeat(64)))),
        ("a scope", claim("scopes", json!(["*"]))),
        ("no signature", token.rsplit_once('.').unwrap().0.to_owned() + "."),
        ("two parts", token.rsplit_once('.').unwrap().0.to_owned()),
        ("four parts", format!("{token}.")),
        ("something after it", format!("{token}A")),
        ("something before it", format!("A{token}")),
        ("padded", format!("{token}==")),
        ("in large letters", token.to_uppercase()),
        ("twice", format!("{token}, Bearer {token}")),
        ("the parts of two", {
            let (own, other) = (Parts::of(&token), Parts::of(&foreign));
            Parts { signature: other.signature, ..own }.token()
        }),
        ("empty", String::new()),
        ("dots", "..".to_owned()),
        ("nonsense", "nonsense".to_owned()),
        ("huge", "A".repeat(9_000)),
        ("a mandate's id", "md_00000000000000000000000000000001".to_owned()),
    ];
    // Each part with one letter changed, at several places.
    for part in 0..3 {
        let start: usize = token.split('.').take(part).map(|text| text.len() + 1).sum();
        let length = token.split('.').nth(part).unwrap().len();
        for place in [start, start + length / 3, start + length / 2] {
            let mut bytes = token.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            rows.push(("one letter", String::from_utf8(bytes).unwrap()));
        }
    }
    for (what, wrong) in rows {
        arena.refuses(what, &with_token(&arena, &wrong), NOT_LET_IN).await;
    }
    arena.close().await;
}

#[tokio::test]
async fn a_token_signed_with_what_an_attacker_may_know_is_none() {
    let arena = Arena::open().await;
    let parts = Parts::of(&arena.token);
    let ours = key_pair(&arena.installation, "mandate");
    let public = ours.public_key().as_ref().to_vec();
    let mac = |key: &[u8]| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        move |text: &[u8]| hmac::sign(&key, text).as_ref().to_vec()
    };
    let hs256 = || Parts {
        header: json!({ "alg": "HS256", "kid": parts.header["kid"], "typ": parts.header["typ"] }),
        claims: parts.claims.clone(),
        signature: String::new(),
    };
    let number = u128::from_be_bytes(public[..16].try_into().unwrap());
    let rest = u128::from_be_bytes(public[16..].try_into().unwrap());
    let hex = format!("{number:032x}{rest:032x}");
    for (what, key) in [
        ("the public key as a secret", public.clone()),
        ("its base64 as a secret", STANDARD.encode(&public).into_bytes()),
        ("its hex as a secret", hex.into_bytes()),
        ("no secret", b"\0".to_vec()),
        ("the key's name as a secret", parts.header["kid"].as_str().unwrap().into()),
    ] {
        let forged = hs256().signed_by(mac(&key));
        arena.refuses(what, &with_token(&arena, forged), NOT_LET_IN).await;
    }
    let ledger = key_pair(&arena.installation, "ledger");
    let stranger = Ed25519KeyPair::generate().unwrap();
    for (what, pair) in [("the ledger's key", &ledger), ("a stranger's key", &stranger)] {
        let forged = parts.signed_by(|text| pair.sign(text).as_ref().to_vec());
        arena.refuses(what, &with_token(&arena, forged), NOT_LET_IN).await;
    }
    // Signed with the very key: also then only what stands in the registry as it was issued.
    let resigned = |change: &dyn Fn(&mut Parts)| {
        let mut parts = Parts::of(&arena.token);
        change(&mut parts);
        parts.signed_by(|text| ours.sign(text).as_ref().to_vec())
    };
    assert_eq!(resigned(&|_| ()), arena.token, "the test does not write tokens as the daemon does");
    let turned = resigned(&|parts| {
        let members = parts.claims.as_object().unwrap().clone();
        parts.claims = members.into_iter().rev().collect();
    });
    for (what, forged) in [
        ("another order of members", turned),
        ("no such mandate", resigned(&|parts| parts.claims["jti"] = json!("md_0"))),
        ("longer", resigned(&|parts| parts.claims["exp"] = json!(99_999_999_999_i64))),
        ("a JWT", resigned(&|parts| parts.header["typ"] = json!("JWT"))),
    ] {
        arena.refuses(what, &with_token(&arena, forged), NOT_LET_IN).await;
    }
    arena.close().await;
}

#[tokio::test]
async fn a_token_comes_in_one_header_and_in_no_other_way() {
    let arena = Arena::open().await;
    let token = arena.token.clone();
    let bearer = format!("Bearer {token}");
    let bare = arena.harmless().without("Authorization");
    for (what, call) in [
        ("no header", bare.clone()),
        ("the header twice", arena.harmless().with("Authorization", &bearer)),
        ("another one beside it", arena.harmless().with("Authorization", "Bearer x")),
        ("the token alone", bare.clone().with("Authorization", &token)),
        (
            "as a password",
            bare.clone().with(
                "Authorization",
                format!("Basic {}", STANDARD.encode(format!("ap-agent:{token}"))),
            ),
        ),
        ("as another scheme", bare.clone().with("Authorization", format!("Token {token}"))),
        ("two blanks", bare.clone().with("Authorization", format!("Bearer  {token}"))),
        ("a tab", bare.clone().with("Authorization", format!("Bearer\t{token}"))),
        ("in quotes", bare.clone().with("Authorization", format!("Bearer \"{token}\""))),
        ("not ASCII", bare.clone().with("Authorization", format!("Bearer {token}\u{e9}"))),
        ("as a proxy's", bare.clone().with("Proxy-Authorization", &bearer)),
        ("as forwarded", bare.clone().with("X-Forwarded-Authorization", &bearer)),
        ("as a cookie", bare.clone().with("Cookie", format!("token={token}; session={token}"))),
        (
            "as a user",
            bare.clone().with("X-Remote-User", "marie").with("X-Forwarded-User", "marie"),
        ),
        ("in the query", bare.clone().to(&format!("/v1/operations?access_token={token}"))),
        (
            "in the query as bearer",
            bare.clone().to(&format!("/v1/operations?authorization={token}")),
        ),
        ("in a fragment", bare.clone().to(&format!("/v1/operations#access_token={token}"))),
        ("as the key", bare.clone().set("Idempotency-Key", "k-token").with("X-Api-Key", &token)),
    ] {
        arena.refuses(what, &call, NOT_LET_IN).await;
    }
    let in_body = args(&[]).replacen('{', &format!("{{\"token\":\"{token}\","), 1);
    let in_body = arena.proposal(in_body).without("Authorization");
    arena.refuses("in the body", &in_body, NOT_LET_IN).await;
    for scheme in ["bearer", "BEARER"] {
        let call = bare.clone().with("Authorization", format!("{scheme} {token}"));
        let call = call.set("Idempotency-Key", scheme);
        arena.refuses("a scheme has no case", &call, NO_SUCH_BILL).await;
    }
    arena.close().await;
}

#[tokio::test]
async fn what_is_over_or_was_taken_back_lets_nobody_in() {
    let installation = Installation::with(super::arena::WORLD, "sqlite://countersign.db", "");
    for name in ["marie", "jean", "paul"] {
        installation.add_user(name, "accountant", COMPANY);
    }
    let token = installation.mandate(&[]);
    let short = installation.ok(
        &[
            "mandate",
            "issue",
            "--principal",
            "marie",
            "--agent",
            "brief",
            "--company",
            COMPANY,
            "--scope",
            "invoice.pay",
            "--source-account",
            SOURCE,
            "--currency",
            "EUR",
            "--ttl",
            "1h",
        ],
        "",
    );
    let revoked = installation.mandate_of("jean", "taken", COMPANY, SOURCE, &[]);
    let of_disabled = installation.mandate_of("paul", "left", COMPANY, SOURCE, &[]);
    let mut arena = Arena::of(installation, token).await;
    for token in [&short, &revoked, &of_disabled] {
        arena.keep_secret(token);
        arena.refuses("at first", &with_token(&arena, token), NO_SUCH_BILL).await;
    }
    let list = arena.installation.ok(&["mandate", "list"], "");
    let line = list.lines().find(|line| line.contains("jean")).unwrap();
    let id = line.split_whitespace().find(|word| word.starts_with("md_")).unwrap();
    arena.installation.ok(&["mandate", "revoke", id, "--reason", "a test"], "");
    arena.installation.ok(&["user", "disable", "paul"], "");
    arena.daemon.advance("61m").await;
    for (what, token, refused) in [
        ("over", &short, EXPIRED),
        ("revoked", &revoked, REVOKED),
        ("of somebody who left", &of_disabled, REVOKED),
    ] {
        for call in [
            arena.harmless(),
            arena.get("/v1/operations"),
            arena.get("/v1/bills/INV-1"),
            arena.get("/v1/mandates/current"),
            arena.get("/v1/approvals"),
            arena.call("POST", "/v1/operations/op_00000000000000000000000000000001/cancel"),
        ] {
            let call = call.set("Authorization", format!("Bearer {token}"));
            arena.refuses(what, &call, refused).await;
        }
    }
    arena.close().await;
}

#[tokio::test]
async fn a_mandate_of_one_company_is_none_in_another() {
    let installation = Installation::with(super::arena::WORLD, "sqlite://countersign.db", "");
    installation.add_principal();
    installation.add_user("renard", "accountant", "red-fox");
    let fox = installation.mandate_of("renard", "ap-agent", "red-fox", FOX_SOURCE, &[]);
    let token = installation.mandate(&[]);
    let mut arena = Arena::of(installation, token).await;
    arena.keep_secret(&fox);
    // Whoever says in a header that he means the other company means his own.
    for (name, value) in [
        ("X-Company", "red-fox"),
        ("X-Tenant-Id", "red-fox"),
        ("X-Scope-OrgID", "red-fox"),
        ("Cookie", "company=red-fox"),
    ] {
        let sent = args(&[("invoice_ref", "\"FOX-1\""), ("payee_iban", "{\"ref\":\"F-1\"}")]);
        arena.refuses(name, &arena.proposal(sent).with(name, value), NO_SUCH_BILL).await;
    }
    let asked = arena.get("/v1/bills?company=red-fox");
    arena.refuses("as a parameter", &asked, Refused::Problem(400, "invalid_query")).await;
    arena.close().await;
}

#[tokio::test]
async fn knocking_often_is_counted_in_few_receipts() {
    let arena = Arena::open().await;
    let nobody = arena.nobodys("GET", "/v1/operations");
    for _ in 0..200 {
        arena.refuses("nobody", &nobody, NOT_LET_IN).await;
    }
    arena.daemon.advance("2m").await;
    let export = arena.close().await;
    let receipts = export.matches("denial_count").count();
    assert!((1..=6).contains(&receipts), "{receipts} receipts: {export}");
}
