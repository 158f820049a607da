//! API 2 and 4: humans who sign in, what they may do, and what ends with them.

mod keeping;
mod mandates;
mod reading;
mod receipts;
mod sessions;
mod users;

use std::collections::BTreeSet;

use countersign::app::Base;
use countersign::domain::names::Name;
use countersign::domain::role::Role;
use countersign::gateway::passwords::NewPassword;
use countersign::gateway::people::{self, By, NewRole};
use countersign::settings::Settings;
use countersign::store::{self, Store};
use countersign_erp_source::{CompanyId, Timestamp};
use serde_json::{Value, json};

use crate::daemon::{Agent, COMPANY, Daemon, Installation, PASSWORD};
use crate::support::Place;

/// The other company.
const FOX: &str = "red-fox";

/// Everybody: who, what and where. `vera` acts in both companies.
const CAST: [(&str, Role, &str); 10] = [
    ("marie", Role::Accountant, COMPANY),
    ("jean", Role::Accountant, COMPANY),
    ("paul", Role::Approver, COMPANY),
    ("ada", Role::Admin, COMPANY),
    ("otto", Role::Auditor, COMPANY),
    ("renard", Role::Accountant, FOX),
    ("fanny", Role::Admin, FOX),
    ("felix", Role::Auditor, FOX),
    ("vera", Role::Admin, COMPANY),
    ("vera", Role::Admin, FOX),
];

/// The members of a body that a call refuses, each for what it is.
const NO_BODIES: [&str; 7] = ["", "null", "[]", "{", "\"x\"", "{}{}", "{\"a\":1,\"a\":1}"];

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn company(text: &str) -> CompanyId {
    CompanyId::new(text).unwrap()
}

/// Adds humans as the operator does, in this process.
async fn add(store: &Store, cast: &[(&str, Role, &str)], now: Timestamp) {
    let hash = NewPassword::new(PASSWORD.into()).unwrap().hash().unwrap();
    let mut there = BTreeSet::new();
    for (who, role, of) in cast {
        let new = NewRole { name: name(who), company: company(of), role: *role };
        let hash = there.insert(*who).then(|| hash.clone());
        people::add(store, new, hash, By::Operator, now).await.unwrap();
    }
}

/// An installation with everybody.
async fn installation(place: &Place) -> Installation {
    let installation = Installation::at(place);
    populate(&installation).await;
    installation
}

/// Everybody on the embedded default.
async fn embedded() -> Installation {
    let installation = Installation::new();
    populate(&installation).await;
    installation
}

async fn populate(installation: &Installation) {
    let settings = Settings::load(&installation.path("countersign.toml")).unwrap();
    let base = Base::open(settings, store::Role::Command).await.unwrap();
    add(&base.store, &CAST, base.clock.now()).await;
    base.close().await;
}

/// A mandate of the first company for `ap-agent`, as an admin asks for it.
fn grant(principal: &str) -> Value {
    json!({
        "principal": principal, "agent": "ap-agent", "scopes": ["invoice.pay"],
        "source_account": crate::daemon::SOURCE, "currency": "EUR", "ttl": "8h",
    })
}

/// Issues such a mandate and gives its id and its agent.
async fn issue(daemon: &Daemon, admin: &Agent, principal: &str) -> (String, Agent) {
    let issued = admin.post_json("/v1/mandates", &grant(principal)).await;
    assert_eq!(issued.status.as_u16(), 201, "{}", issued.json);
    (issued.text("/id"), daemon.agent(&issued.text("/token")))
}

/// Fails unless both addresses give the very same answer that there is nothing.
async fn are_as_good_as_none(human: &Agent, foreign: &str, missing: &str) {
    let (foreign_answer, missing_answer) = (human.get(foreign).await, human.get(missing).await);
    missing_answer.is_problem(404, "not_found");
    assert_eq!(foreign_answer.status, missing_answer.status, "{foreign}");
    assert_eq!(foreign_answer.json, missing_answer.json, "{foreign}");
}

/// The data of all receipts of that kind, by an export.
fn receipts_of(installation: &Installation, kind: &str) -> Vec<Value> {
    let export = installation.ok(&["receipts", "export"], "");
    let receipts = export.lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = line.get("receipt").and_then(Value::as_str)?;
        Some(serde_json::from_str::<Value>(text).unwrap())
    });
    receipts.filter(|receipt| receipt["kind"] == kind).collect()
}
