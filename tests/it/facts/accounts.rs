//! Facts about the account that is to be paid, its history, and what went out before.

use std::fmt::Write as _;

use countersign::domain::operation::Status;
use serde_json::json;

use super::{bill, cancel, ready, ready_at, tables_of, waits};
use crate::bent::Scene;
use crate::daemon::{ACME, GLOBEX, Installation, NOBODYS, WORLD, pay};
use crate::support::on_both;
use crate::votes::{Office, approve};

#[tokio::test]
async fn an_account_that_another_vendor_has_needs_a_second_person_and_agents_learn_no_more() {
    let (_installation, daemon, agent) = ready().await;
    let twin = json!({ "name": "Doppelganger Ltd", "iban": ACME });
    daemon.put_vendor("V-777", twin).await;
    let answer = agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await;
    waits(&answer, "four_eyes", &["shared-account-needs-four-eyes"]);
    let text = answer.json.to_string();
    for secret in ["V-777", "Doppelganger", "shared_with"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let facts: Vec<&str> =
        answer.json["facts"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        facts,
        [
            "amount_within_residual",
            "bank_status",
            "bill_consistent",
            "currency_matches_invoice",
            "duplicate",
            "erp_allows_account",
            "has_vendor_reference",
            "iban_age_days",
            "in_cooling_off",
            "invoice_open",
            "is_own_account",
            "is_partial",
            "payee_is_invoice_vendor",
            "payee_sanctioned",
            "vendor_unapplied",
            "vop",
        ]
    );
    cancel(&agent, &answer).await;
    let archived = json!({ "accounts": [{ "iban": ACME, "active": false }] });
    daemon.put_vendor("V-777", archived).await;
    agent.propose("b", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
}

#[tokio::test]
async fn an_account_shared_in_the_baseline_counts_after_the_erp_shows_it_no_more() {
    on_both(async |place| {
        let twin = format!(
            "[company.blue-sparrow.vendor.V-777]\nname = \"Twin\"\niban = \"{GLOBEX}\"\n\
             iban_age_days = 400\n[company.red-fox]"
        );
        let world = WORLD.replacen("[company.red-fox]", &twin, 1);
        let store = if place.is_sqlite() { "sqlite://countersign.db" } else { &place.url };
        let (_installation, daemon, agent) = ready_at(Installation::with(&world, store, "")).await;
        let archived = json!({ "accounts": [{ "iban": GLOBEX, "active": false }] });
        daemon.put_vendor("V-777", archived).await;
        let answer = agent.propose("a", &pay("INV-2", "V-200", "340.00")).await;
        waits(&answer, "four_eyes", &["shared-account-needs-four-eyes"]);
    })
    .await;
}

#[tokio::test]
async fn a_payment_that_a_human_approved_releases_an_unverified_account_after_fourteen_days() {
    on_both(async |place| {
        let (installation, daemon, agent) = ready_at(Installation::at(place)).await;
        let tables = tables_of(&installation, place);
        agent.propose("paid", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
        for (at, amount) in ["10.00", "11.00", "12.00"].into_iter().enumerate() {
            let unlike = json!({ "vendor_reference": format!("U-{at}"), "amount": amount });
            daemon.put_bill(&format!("U-{at}"), bill(&unlike)).await;
        }
        tables
            .tamper("update baseline_account set status = 'unverified' where vendor = 'V-100'")
            .await;
        let mut tries = 0;
        // The mandates of before are over by then.
        let mut needs_four_eyes = async |what: &str| {
            tries += 1;
            let agent = daemon.agent(&installation.mandate(&[]));
            let answer = agent.propose(&format!("t{tries}"), &pay("U-0", "V-100", "10.00")).await;
            waits(&answer, "four_eyes", &["unverified-account-needs-four-eyes"]);
            assert!(answer.json["facts"]["iban_age_days"].as_i64() >= Some(400), "{what}");
            cancel(&agent, &answer).await;
        };
        daemon.advance("336h").await;
        needs_four_eyes("nobody approved that payment").await;
        tables.tamper("update precedent set level = 2").await;
        // The same payment as a human's decision, at other moments and to other accounts.
        for other in [
            "update precedent set payee = payee || 'x'",
            "update precedent set counterparty = 'V-200'",
            "update precedent set company = 'red-fox'",
            "update precedent set claimed_at = claimed_at - 40000000000",
            "update attempt set state = 'withdrawn'",
            "update attempt set settled_at = settled_at + 3600000",
            "update operation set status = 'failed' where status = 'executed'",
            "update operation set reasons = '[\"booked_otherwise\"]' where status = 'executed'",
        ] {
            tables.tamper("create table kept_p as select * from precedent").await;
            tables.tamper("create table kept_a as select * from attempt").await;
            tables.tamper("create table kept_o as select id, status, reasons from operation").await;
            tables.tamper(other).await;
            needs_four_eyes(other).await;
            for back in [
                "update precedent set payee = (select payee from kept_p), counterparty = \
                 (select counterparty from kept_p), company = (select company from kept_p), \
                 claimed_at = (select claimed_at from kept_p)",
                "update attempt set state = (select state from kept_a), \
                 settled_at = (select settled_at from kept_a)",
                "update operation set status = (select status from kept_o where kept_o.id = \
                 operation.id), reasons = (select reasons from kept_o where kept_o.id = \
                 operation.id) where id in (select id from kept_o)",
                "drop table kept_p",
                "drop table kept_a",
                "drop table kept_o",
            ] {
                tables.tamper(back).await;
            }
        }
        let agent = daemon.agent(&installation.mandate(&[]));
        agent.propose("released", &pay("U-1", "V-100", "11.00")).await.is_executed();
        // Unless the account is another one since.
        tables
            .tamper(
                "update baseline_account set since = (select max(claimed_at) + 1 from precedent), \
                 status = 'unverified' where vendor = 'V-100'",
            )
            .await;
        let answer = agent.propose("anew", &pay("U-2", "V-100", "12.00")).await;
        let reasons = ["fresh-account-needs-four-eyes", "unverified-account-needs-four-eyes"];
        waits(&answer, "four_eyes", &reasons);
    })
    .await;
}

#[tokio::test]
async fn a_bank_change_under_way_needs_a_second_person() {
    on_both(async |place| {
        let installation = Installation::at(place);
        let tables = tables_of(&installation, place);
        let scene = Scene::of(installation).await;
        // One is made of a payment that waits.
        let waiting = scene.propose("w", &pay("INV-2", "V-200", "1.00")).await;
        assert_eq!(waiting.status, Status::Pending);
        let becomes = async |vendor: &str, action: &str, status: &str| {
            let sql = format!(
                "update operation set action = '{action}', thing = 'vendor/{vendor}', \
                 counterparty = '{vendor}', status = '{status}' where idempotency_key = 'w'"
            );
            assert_eq!(tables.tamper(&sql).await, 1);
        };
        let change = "vendor.update_bank_details";
        let mut proposed = 0;
        let mut propose = async || {
            proposed += 1;
            let mut proposal = pay("INV-1", "V-100", "1200.00");
            proposal["mode"] = json!("prepare");
            scene.propose(&format!("k{proposed}"), &proposal).await.decision.reasons
        };
        for (vendor, action, status) in [
            ("V-200", change, "pending"),
            ("V-100", "invoice.pay", "pending"),
            ("V-100", change, "prepared"),
            ("V-100", change, "executed"),
            ("V-100", change, "rejected"),
        ] {
            becomes(vendor, action, status).await;
            assert_eq!(propose().await, ["invoice-pay-permitted"], "{vendor} {action} {status}");
        }
        becomes("V-100", change, "pending").await;
        assert_eq!(propose().await, ["pending-bank-change-needs-four-eyes"]);
        // While it is at the ERP nobody can say what is changed behind our back.
        for status in ["executing", "unknown"] {
            becomes("V-100", change, status).await;
            assert_eq!(propose().await, ["fact_unavailable"], "{status}");
        }
        scene.close().await;
    })
    .await;
}

#[tokio::test]
async fn an_account_that_a_human_let_pay_pays_by_itself_two_weeks_later() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let daemon = &office.daemon;
        daemon.put_vop("Newcomer", NOBODYS, "match").await;
        daemon.put_vendor("V-300", json!({ "name": "Newcomer", "iban": NOBODYS })).await;
        for at in 0..3 {
            let fields = json!({
                "vendor": "V-300", "vendor_reference": format!("W-{at}"),
                "amount": format!("{}.00", 10 + at),
            });
            daemon.put_bill(&format!("W-{at}"), bill(&fields)).await;
        }
        let first = office.agent.propose("a", &pay("W-0", "V-300", "10.00")).await;
        let both = ["fresh-account-needs-four-eyes", "unverified-account-needs-four-eyes"];
        waits(&first, "four_eyes", &both);
        // It is the payment that counts, not that the account was seen.
        daemon.advance("24h").await;
        approve(&daemon.sign_in("paul").await, &first).await.is_executed();
        daemon.advance("335h").await;
        let agent = daemon.agent(&office.installation.mandate(&[]));
        let early = agent.propose("b", &pay("W-1", "V-300", "11.00")).await;
        waits(&early, "four_eyes", &["unverified-account-needs-four-eyes"]);
        daemon.advance("1h").await;
        agent.propose("c", &pay("W-2", "V-300", "12.00")).await.is_executed();
    })
    .await;
}

#[tokio::test]
async fn what_goes_out_without_a_human_stays_within_its_limits() {
    // Six vendors with bills of 5,000.00, the most that goes out by itself, and of a cent more.
    let numbers = [
        "DE96999999997000000000",
        "DE69999999997000000001",
        "DE42999999997000000002",
        "DE15999999997000000003",
        "DE85999999997000000004",
        "DE58999999997000000005",
    ];
    let mut world = String::new();
    for (vendor, number) in numbers.iter().enumerate() {
        write!(
            world,
            "[[vop]]\nname = \"Vendor {vendor}\"\niban = \"{number}\"\nresult = \"match\"\n\
             [company.blue-sparrow.vendor.M-{vendor}]\nname = \"Vendor {vendor}\"\n\
             iban = \"{number}\"\niban_age_days = 400\n"
        )
        .unwrap();
        for at in 0..12 {
            let amount = if at == 11 { "0.01" } else { "5000.00" };
            write!(
                world,
                "[company.blue-sparrow.bill.M-{vendor}-{at:02}]\nvendor = \"M-{vendor}\"\n\
                 vendor_reference = \"M-{at}\"\ndate = \"20{:02}-01-01\"\namount = \"{amount}\"\n",
                at + 10
            )
            .unwrap();
        }
    }
    let installation =
        Installation::with(&(WORLD.to_owned() + &world), "sqlite://countersign.db", "");
    let (_installation, daemon, agent) = ready_at(installation).await;
    let propose = async |vendor: usize, at: usize| {
        let amount = if at == 11 { "0.01" } else { "5000.00" };
        let (id, vendor) = (format!("M-{vendor}-{at:02}"), format!("M-{vendor}"));
        agent.propose(&id, &pay(&id, &vendor, amount)).await
    };
    // A vendor's day.
    for at in 0..2 {
        propose(0, at).await.is_executed();
    }
    let cent = propose(0, 11).await;
    waits(&cent, "step_up", &["vendor-day-total-needs-step-up"]);
    cancel(&agent, &cent).await;
    // The company's day.
    for vendor in 1..5 {
        for at in 0..2 {
            propose(vendor, at).await.is_executed();
        }
    }
    let cent = propose(5, 11).await;
    waits(&cent, "step_up", &["company-day-total-needs-step-up"]);
    cancel(&agent, &cent).await;
    // A vendor's 30 days, at two payments a day; days pass meanwhile.
    for at in 2..10 {
        if at % 2 == 0 {
            daemon.advance("24h").await;
        }
        propose(0, at).await.is_executed();
    }
    daemon.advance("24h").await;
    let again = propose(0, 10).await;
    waits(&again, "step_up", &["vendor-month-total-needs-step-up"]);
    propose(1, 10).await.is_executed();
    assert_eq!(daemon.payments().await.len(), 19);
}
