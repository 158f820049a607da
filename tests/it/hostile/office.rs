//! Signed-in humans of two companies in the arena, and the calls that only they make.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::arena::{Arena, WORLD, args};
use super::raw::{Call, Heard, exchange};
use crate::daemon::{COMPANY, FOX_SOURCE, Installation, PASSWORD, SOURCE};

/// Who is there. `fanny` and `felix` are of the other company, `vera` of both.
const CAST: [(&str, &str, &str); 9] = [
    ("marie", "accountant", COMPANY),
    ("paul", "approver", COMPANY),
    ("ada", "admin", COMPANY),
    ("otto", "auditor", COMPANY),
    ("renard", "accountant", "red-fox"),
    ("fanny", "admin", "red-fox"),
    ("felix", "approver", "red-fox"),
    ("vera", "admin", COMPANY),
    ("vera", "admin", "red-fox"),
];

/// The arena with people, and an operation of each company that waits for four eyes.
pub(crate) struct Office {
    pub(crate) arena: Arena,
    tokens: BTreeMap<&'static str, String>,
    /// Ours, and its hash.
    pub(crate) waiting: (String, String),
    /// The other company's.
    pub(crate) foreign: String,
    /// The mandates of both.
    pub(crate) mandates: [String; 2],
    /// What stood before.
    before: Vec<Value>,
}

/// A call that only humans make.
#[derive(Debug, Clone)]
pub(crate) struct HumanCall {
    pub(crate) who: &'static str,
    pub(crate) method: &'static str,
    pub(crate) target: String,
    /// The members of its body with a value of the right form each; none where it takes no body.
    pub(crate) body: Option<Value>,
    /// Whether it is about one company.
    pub(crate) of_company: bool,
}

impl Office {
    pub(crate) async fn open() -> Self {
        let installation = Installation::with(WORLD, "sqlite://countersign.db", "");
        for (name, role, company) in CAST {
            installation.add_user(name, role, company);
        }
        let token = installation.mandate(&[]);
        let fox = installation.mandate_of("renard", "ap-agent", "red-fox", FOX_SOURCE, &[]);
        let mut arena = Arena::of(installation, token).await;
        arena.keep_secret(&fox);
        arena.keep_secret(PASSWORD);
        let waiting = arena.takes("ours", &arena.proposal(large()), 202).await;
        let waiting = (waiting.text("/id"), waiting.text("/operation_hash"));
        let waiting = (waiting.0.to_owned(), waiting.1.to_owned());
        let theirs = arena.proposal(args(&[
            ("invoice_ref", "\"FOX-1\""),
            ("payee_iban", "{\"ref\":\"F-1\"}"),
            ("amount", "\"20.00\""),
        ]));
        let theirs = theirs.set("Authorization", format!("Bearer {fox}"));
        let foreign = arena.takes_of_another(&theirs, 202).await.text("/id").to_owned();
        let mut office = Self {
            arena,
            tokens: BTreeMap::new(),
            waiting,
            foreign,
            mandates: [String::new(), String::new()],
            before: Vec::new(),
        };
        for name in ["marie", "paul", "ada", "otto", "renard", "fanny", "felix", "vera"] {
            let token = office.sign_in(name).await;
            office.arena.keep_secret(&token);
            office.tokens.insert(name, token);
        }
        for (at, admin) in ["ada", "fanny"].into_iter().enumerate() {
            let list = office.hear(&office.get(admin, "/v1/mandates"), 200).await;
            office.mandates[at] = list.text("/items/0/id").to_owned();
        }
        office.before = office.standing().await;
        office
    }

    async fn sign_in(&self, name: &str) -> String {
        let body = json!({ "user": name, "password": PASSWORD }).to_string();
        let call = self.arena.nobodys("POST", "/v1/sessions").with("Content-Type", JSON).body(body);
        self.hear(&call, 201).await.text("/token").to_owned()
    }

    /// An answer that whoever asks may see.
    pub(crate) async fn hear(&self, call: &Call, status: u16) -> Heard {
        let heard = exchange(self.arena.host(), &call.bytes(), call.is_head()).await.unwrap();
        assert_eq!(heard.status, status, "{call:?}: {}", heard.body);
        call.with_answer(&heard).is_described();
        heard
    }

    pub(crate) fn token(&self, who: &str) -> &str {
        &self.tokens[who]
    }

    pub(crate) fn call(&self, who: &str, method: &str, target: &str) -> Call {
        let call = self.arena.nobodys(method, target);
        call.with("Authorization", format!("Bearer {}", self.token(who)))
    }

    pub(crate) fn get(&self, who: &str, target: &str) -> Call {
        self.call(who, "GET", target)
    }

    /// The call as it should be.
    pub(crate) fn right(&self, call: &HumanCall) -> Call {
        let right = self.call(call.who, call.method, &call.target);
        match &call.body {
            Some(body) => right.with("Content-Type", JSON).body(body.to_string()),
            None => right,
        }
    }

    /// Every call of humans that changes something, by somebody who may make it.
    pub(crate) fn changes(&self) -> Vec<HumanCall> {
        let (waiting, hash) = &self.waiting;
        let of = |what: &str| format!("/v1/operations/{waiting}/{what}");
        let call = |who, method, target: String, body: Option<Value>, of_company| HumanCall {
            who,
            method,
            target,
            body,
            of_company,
        };
        let reason = json!({ "reason": "a reason" });
        let grant = json!({
            "principal": "marie", "agent": "another", "scopes": ["invoice.pay"],
            "source_account": SOURCE, "currency": "EUR", "budget": "10.00", "max_calls": 3,
            "ttl": "8h",
        });
        let user = json!({
            "name": "newcomer", "role": "auditor", "company": COMPANY,
            "password": "a long password",
        });
        let settled =
            json!({ "outcome": "booked", "payment_ref": "PAY-1", "reason": "in the ERP" });
        let clearance = json!({ "other": "INV-4", "reason": "two deliveries" });
        let revoke = format!("/v1/mandates/{}/revoke", self.mandates[0]);
        let clear = "/v1/bills/INV-3/not-duplicate".to_owned();
        vec![
            call("paul", "POST", of("approve"), Some(json!({ "operation_hash": hash })), false),
            call("paul", "POST", of("reject"), Some(reason.clone()), false),
            call("paul", "POST", of("settle"), Some(settled), false),
            call("paul", "POST", clear, Some(clearance), true),
            call("ada", "POST", "/v1/mandates".to_owned(), Some(grant), true),
            call("ada", "POST", revoke, Some(reason), false),
            call("ada", "POST", "/v1/users".to_owned(), Some(user), true),
            call("ada", "POST", "/v1/users/paul/disable".to_owned(), None, true),
            call("paul", "DELETE", "/v1/sessions/current".to_owned(), None, false),
        ]
    }

    /// Every call of humans that only reads, by somebody who may make it.
    pub(crate) fn reads() -> Vec<HumanCall> {
        let call = |who, target: &str, of_company| HumanCall {
            who,
            method: "GET",
            target: target.to_owned(),
            body: None,
            of_company,
        };
        vec![
            call("paul", "/v1/approvals", true),
            call("ada", "/v1/mandates", true),
            call("ada", "/v1/users", true),
            call("otto", "/v1/receipts", true),
            call("otto", "/v1/receipts/1", false),
        ]
    }

    /// What may not move: users, mandates and what waits, of both companies.
    async fn standing(&self) -> Vec<Value> {
        let mut all = Vec::new();
        for (who, target) in [
            ("ada", "/v1/users".to_owned()),
            ("ada", "/v1/mandates".to_owned()),
            ("ada", "/v1/operations".to_owned()),
            ("paul", "/v1/approvals".to_owned()),
            ("fanny", "/v1/users".to_owned()),
            ("fanny", "/v1/mandates".to_owned()),
            ("fanny", "/v1/operations".to_owned()),
        ] {
            all.push(self.hear(&self.get(who, &target), 200).await.json);
        }
        all
    }

    /// Nothing moved; then as [`Arena::close`].
    pub(crate) async fn close(self) {
        assert_eq!(self.standing().await, self.before);
        self.arena.close().await;
    }
}

pub(crate) const JSON: &str = "application/json";

/// A part of a bill, which takes four eyes.
fn large() -> String {
    args(&[("amount", "\"700.00\"")])
}
