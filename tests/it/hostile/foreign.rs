//! What is another's: the same status and the very same bytes as for what does not exist.

use serde_json::{Value, json};

use super::arena::{Arena, NO_SUCH_BILL, NOT_FOUND, Refused, args};
use super::raw::{Call, Heard};
use crate::daemon::{COMPANY, FOX_SOURCE, Installation, SOURCE};

/// The arena with another company's agent, and others of the same company.
struct Neighbours {
    arena: Arena,
    fox: String,
    /// Another agent of the same principal, and the same agent of another principal.
    near: [String; 2],
}

impl Neighbours {
    async fn open() -> Self {
        let installation = Installation::with(super::arena::WORLD, "sqlite://countersign.db", "");
        installation.add_principal();
        installation.add_user("jean", "accountant", COMPANY);
        installation.add_user("renard", "accountant", "red-fox");
        let fox = installation.mandate_of("renard", "ap-agent", "red-fox", FOX_SOURCE, &[]);
        let near = [
            installation.mandate_of("marie", "other", COMPANY, SOURCE, &[]),
            installation.mandate_of("jean", "ap-agent", COMPANY, SOURCE, &[]),
        ];
        let token = installation.mandate(&[]);
        let mut arena = Arena::of(installation, token).await;
        for token in near.iter().chain([&fox]) {
            arena.keep_secret(token);
        }
        Self { arena, fox, near }
    }

    /// An operation of somebody else, prepared.
    async fn prepared_by(&self, token: &str) -> String {
        let changes: &[_] = if token == self.fox {
            &[
                ("invoice_ref", "\"FOX-1\""),
                ("payee_iban", "{\"ref\":\"F-1\"}"),
                ("amount", "\"50.00\""),
            ]
        } else {
            &[]
        };
        let sent = args(changes).replacen('{', "{\"mode\":\"prepare\",", 1);
        let call = as_(self.arena.proposal(sent), token);
        self.arena.takes_of_another(&call, 200).await.text("/id").to_owned()
    }
}

fn as_(call: Call, token: &str) -> Call {
    call.set("Authorization", format!("Bearer {token}"))
}

/// The answer without what is new in each.
fn lasting(heard: &Heard) -> (u16, Value) {
    let mut json = heard.json.clone();
    for member in ["id", "receipt", "created_at", "updated_at"] {
        json.as_object_mut().unwrap().remove(member);
    }
    (heard.status, json)
}

#[tokio::test]
async fn an_operation_of_somebody_else_is_as_good_as_none() {
    let all = Neighbours::open().await;
    let arena = &all.arena;
    let nobodys = "op_01a22a2c4a5a78adae90585f17b6ff14";
    for whose in [&all.fox, &all.near[0], &all.near[1]] {
        let theirs = all.prepared_by(whose).await;
        for (method, call) in [
            ("GET", ""),
            ("GET", "?wait=1s"),
            ("POST", "/commit"),
            ("POST", "/cancel"),
            ("HEAD", ""),
        ] {
            let of = |id: &str| arena.call(method, &format!("/v1/operations/{id}{call}"));
            let theirs = arena.refuses("theirs", &of(&theirs), NOT_FOUND).await;
            let none = arena.refuses("none", &of(nobodys), NOT_FOUND).await;
            assert_eq!((theirs.status, &theirs.body), (none.status, &none.body), "{method} {call}");
        }
        let still = as_(arena.get(&format!("/v1/operations/{theirs}")), whose);
        let still = arena.takes_of_another(&still, 200).await;
        assert_eq!(still.text("/status"), "prepared");
    }
    let own = arena.takes("own", &arena.get("/v1/operations?limit=200"), 200).await;
    assert_eq!(own.json, json!({ "items": [], "next_cursor": null }));
    all.arena.close().await;
}

#[tokio::test]
async fn bills_and_vendors_of_another_company_are_as_good_as_none() {
    let all = Neighbours::open().await;
    let arena = &all.arena;
    for (theirs, none) in
        [("/v1/bills/FOX-1", "/v1/bills/FOX-9"), ("/v1/vendors/F-1", "/v1/vendors/F-9")]
    {
        let theirs = arena.refuses(theirs, &arena.get(theirs), NOT_FOUND).await;
        let none = arena.refuses(none, &arena.get(none), NOT_FOUND).await;
        assert_eq!((theirs.status, theirs.body), (none.status, none.body));
    }
    for (theirs, none) in [
        ("/v1/bills?vendor_id=F-1", "/v1/bills?vendor_id=F-9"),
        ("/v1/bills?vendor_reference=U-1", "/v1/bills?vendor_reference=U-9"),
    ] {
        let theirs = arena.takes(theirs, &arena.get(theirs), 200).await;
        let none = arena.takes(none, &arena.get(none), 200).await;
        assert_eq!(theirs.body, none.body);
        assert_eq!(theirs.json["items"], json!([]));
    }
    let bills = arena.takes("bills", &arena.get("/v1/bills?limit=200"), 200).await;
    assert!(bills.body.contains("INV-1"), "{}", bills.body);
    all.arena.close().await;
}

#[tokio::test]
async fn proposals_about_another_companys_things_tell_nothing() {
    let all = Neighbours::open().await;
    let arena = &all.arena;
    let reference = |vendor: &str| format!("{{\"ref\":\"{vendor}\"}}");
    let number = "\"GB29NWBK60161331926819\"";
    for (theirs, none) in [
        // Their bill, to their vendor, to that one's account, to ours; one that does not exist.
        (("FOX-1", reference("F-1")), ("FOX-9", reference("F-1"))),
        (("FOX-1", number.to_owned()), ("FOX-9", number.to_owned())),
        (("FOX-1", reference("V-100")), ("FOX-9", reference("V-100"))),
    ] {
        let of = |(bill, payee): (&str, String)| {
            let bill = format!("\"{bill}\"");
            args(&[("invoice_ref", &bill), ("payee_iban", &payee), ("amount", "\"50.00\"")])
        };
        let theirs = arena.refuses("theirs", &arena.proposal(of(theirs)), NO_SUCH_BILL).await;
        let none = arena.refuses("none", &arena.proposal(of(none)), NO_SUCH_BILL).await;
        assert_eq!(lasting(&theirs), lasting(&none));
    }
    let payee = Refused::Denied(403, "provenance", "payee_not_on_file");
    for (theirs, none) in [
        (reference("F-1"), reference("F-9")),
        (number.to_owned(), "\"NL91ABNA0417164300\"".to_owned()),
    ] {
        let theirs = arena.proposal(args(&[("payee_iban", &theirs)]));
        let none = arena.proposal(args(&[("payee_iban", &none)]));
        let theirs = arena.refuses("their payee", &theirs, payee).await;
        let none = arena.refuses("nobody's", &none, payee).await;
        assert_eq!(lasting(&theirs), lasting(&none));
    }
    all.arena.close().await;
}

#[tokio::test]
async fn a_key_of_somebody_else_is_no_key_of_ours() {
    let all = Neighbours::open().await;
    let arena = &all.arena;
    let harmless = || arena.harmless().set("Idempotency-Key", "shared");
    let first = arena.refuses("ours", &harmless(), NO_SUCH_BILL).await;
    for token in &all.near {
        let theirs = arena.refuses("theirs", &as_(harmless(), token), NO_SUCH_BILL).await;
        assert_ne!(theirs.text("/id"), first.text("/id"));
        assert_eq!(theirs.header("idempotent-replayed"), None);
        // Another content under it is no conflict with ours.
        let other = args(&[("invoice_ref", "\"INV-8\"")]);
        let other = as_(arena.proposal(other).set("Idempotency-Key", "shared-2"), token);
        arena.refuses("theirs", &other, NO_SUCH_BILL).await;
    }
    let ours = arena.proposal(args(&[("invoice_ref", "\"INV-7\"")]));
    arena.refuses("ours", &ours.set("Idempotency-Key", "shared-2"), NO_SUCH_BILL).await;
    all.arena.close().await;
}

#[tokio::test]
async fn what_is_for_humans_is_closed_whatever_the_id() {
    let all = Neighbours::open().await;
    let arena = &all.arena;
    let humans = Refused::Problem(403, "humans_only");
    let theirs = all.prepared_by(&all.fox).await;
    let large = args(&[("invoice_ref", "\"INV-3\""), ("amount", "\"8000.00\"")]);
    let waiting = arena.takes("waits", &arena.proposal(large), 202).await;
    for (method, of) in [
        ("POST", "/v1/operations/@/approve"),
        ("POST", "/v1/operations/@/reject"),
        ("POST", "/v1/operations/@/settle"),
    ] {
        let at = |id: &str| arena.call(method, &of.replace('@', id));
        let theirs = arena.refuses(of, &at(&theirs), humans).await;
        let none = arena.refuses(of, &at("op_01a22a2c4a5a78adae90585f17b6ff14"), humans).await;
        assert_eq!(theirs.body, none.body);
        let own = arena.refuses(of, &at(waiting.text("/id")), humans).await;
        assert_eq!(own.body, none.body);
    }
    let still = arena.get(&format!("/v1/operations/{}", waiting.text("/id")));
    assert_eq!(arena.takes("still", &still, 200).await.text("/status"), "pending");
    for (method, path) in [
        ("GET", "/v1/approvals"),
        ("POST", "/v1/vendors/V-100/callbacks"),
        ("POST", "/v1/vendors/F-1/callbacks"),
        ("POST", "/v1/vendors/V-100/phone-confirmations"),
        ("POST", "/v1/vendors/V-100/bank-confirmations"),
        ("GET", "/v1/vendors/V-100/bank-history"),
        ("POST", "/v1/bills/INV-1/not-duplicate"),
        ("GET", "/v1/alarms"),
        ("POST", "/v1/alarms/1/close"),
        ("GET", "/v1/freezes"),
        ("POST", "/v1/freezes"),
        ("DELETE", "/v1/freezes/1"),
        ("GET", "/v1/mandates"),
        ("POST", "/v1/mandates"),
        ("POST", "/v1/mandates/1/revoke"),
        ("GET", "/v1/receipts"),
        ("GET", "/v1/receipts/1"),
        ("GET", "/v1/users"),
        ("POST", "/v1/users"),
        ("POST", "/v1/users/marie/disable"),
    ] {
        arena.refuses(path, &arena.call(method, path), humans).await;
    }
    all.arena.close().await;
}
