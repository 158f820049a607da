//! An approver's word that two bills are two: when it counts, for whom, and for how long.

use countersign::ap::duplicates::NotCleared;
use countersign::domain::names::Name;
use countersign::domain::operation::Status;
use countersign_erp_source::{BillId, CompanyId};
use countersign_sandbox::{BillFields, KindWord};
use serde_json::json;

use crate::bent::{Scene, company};
use crate::daemon::{COMPANY, Installation, pay};
use crate::support::{Place, on_both};
use crate::votes::Office;

fn bill_id(id: &str) -> BillId {
    BillId::new(id).unwrap()
}

async fn put(scene: &Scene, bill: &str, fields: serde_json::Value) {
    let fields: BillFields = serde_json::from_value(fields).unwrap();
    let sandbox = scene.app.base.sandbox.as_ref().unwrap();
    sandbox.put_bill(COMPANY, bill, &fields).await.unwrap();
}

/// The usual scene with an approver, and a bill that has INV-1's reference.
async fn scene_at(place: &Place) -> Scene {
    let installation = Installation::at(place);
    for (name, role) in [("paul", "approver"), ("nora", "approver"), ("ines", "accountant")] {
        installation.add_user(name, role, COMPANY);
    }
    installation.add_user("gustav", "approver", "red-fox");
    let scene = Scene::of(installation).await;
    // Marie is both, as in a small company.
    scene.installation.add_user("marie", "approver", COMPANY);
    let twin = json!({
        "vendor": "V-100", "vendor_reference": "a 1", "amount": "10.00", "date": "2026-01-15",
    });
    put(&scene, "TWIN", twin).await;
    scene
}

async fn clears(scene: &Scene, by: &str, bill: &str, other: &str) -> Result<(), NotCleared> {
    let by = Name::parse(by).unwrap();
    let (bill, other) = (bill_id(bill), bill_id(other));
    let reason = "two deliveries, one per week";
    let cleared = scene.pack.clear_duplicate(&company(), &by, &bill, &other, reason).await?;
    assert_eq!((&cleared.bill, &cleared.other, &cleared.cleared_by), (&bill, &other, &by));
    Ok(())
}

/// What a payment of TWIN would need.
async fn reasons(scene: &Scene, key: &str) -> Vec<String> {
    let mut proposal = pay("TWIN", "V-100", "10.00");
    proposal["mode"] = json!("prepare");
    scene.propose(key, &proposal).await.decision.reasons
}

const LIKELY: [&str; 1] = ["likely-duplicate-never-paid"];
const PERMITTED: [&str; 1] = ["invoice-pay-permitted"];

#[tokio::test]
async fn a_cleared_pair_is_paid_from_both_sides_and_the_receipt_says_by_whom() {
    on_both(async |place| {
        let scene = scene_at(place).await;
        assert_eq!(reasons(&scene, "a").await, LIKELY);
        clears(&scene, "paul", "TWIN", "INV-1").await.unwrap();
        let paid = scene.propose("b", &pay("TWIN", "V-100", "10.00")).await;
        assert_eq!(paid.status, Status::Executed, "{:?}", paid.decision);
        let paid = scene.propose("c", &pay("INV-1", "V-100", "1200.00")).await;
        assert_eq!(paid.status, Status::Executed, "{:?}", paid.decision);
        // A third one with that reference was seen by nobody.
        let third = json!({ "vendor": "V-100", "vendor_reference": "A/1", "amount": "11.00" });
        put(&scene, "THIRD", third).await;
        let denied = scene.propose("d", &pay("THIRD", "V-100", "11.00")).await;
        assert_eq!(denied.decision.reasons, LIKELY);
        let export = scene.installation.ok(&["receipts", "export"], "");
        for part in ["duplicate_cleared", "two deliveries, one per week", "paul", "TWIN"] {
            assert!(export.contains(part), "no `{part}` in {export}");
        }
        scene.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_similar_pair_can_be_cleared_as_well() {
    on_both(async |place| {
        let scene = scene_at(place).await;
        for (id, reference) in [("S-1", "S-1"), ("S-2", "S-2")] {
            let fields =
                json!({ "vendor": "V-100", "vendor_reference": reference, "amount": "9.00" });
            put(&scene, id, fields).await;
        }
        let mut proposal = pay("S-1", "V-100", "9.00");
        proposal["mode"] = json!("prepare");
        let before = scene.propose("a", &proposal).await;
        assert_eq!(before.decision.reasons, ["similar-bill-needs-four-eyes"]);
        clears(&scene, "paul", "S-2", "S-1").await.unwrap();
        assert_eq!(scene.propose("b", &proposal).await.decision.reasons, PERMITTED);
        scene.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_clearance_counts_while_its_giver_is_an_active_approver_and_not_the_principal() {
    on_both(async |place| {
        let scene = scene_at(place).await;
        // Nobody has proposed it yet, so marie may say so; of her own mandate she is no judge.
        clears(&scene, "marie", "TWIN", "INV-1").await.unwrap();
        assert_eq!(reasons(&scene, "a").await, LIKELY);
        clears(&scene, "paul", "TWIN", "INV-1").await.unwrap();
        assert_eq!(reasons(&scene, "b").await, PERMITTED);
        scene.installation.ok(&["user", "disable", "paul"], "");
        assert_eq!(reasons(&scene, "c").await, LIKELY);
        clears(&scene, "nora", "TWIN", "INV-1").await.unwrap();
        assert_eq!(reasons(&scene, "d").await, PERMITTED);
        scene.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_clearance_holds_for_what_was_seen_and_no_later_edit() {
    on_both(async |place| {
        let scene = scene_at(place).await;
        clears(&scene, "paul", "TWIN", "INV-1").await.unwrap();
        assert_eq!(reasons(&scene, "a").await, PERMITTED);
        for (at, (bill, edit, back)) in [
            ("TWIN", json!({ "amount": "10.01" }), json!({ "amount": "10.00" })),
            ("TWIN", json!({ "date": "2026-01-16" }), json!({ "date": "2026-01-15" })),
            ("INV-1", json!({ "amount": "1200.01" }), json!({ "amount": "1200.00" })),
            ("INV-1", json!({ "vendor_reference": "0A1" }), json!({ "vendor_reference": "A-1" })),
        ]
        .into_iter()
        .enumerate()
        {
            put(&scene, bill, edit.clone()).await;
            let found = reasons(&scene, &format!("edited {at}").replace(' ', "-")).await;
            let gone = edit.get("vendor_reference").is_some();
            assert_eq!(found, if gone { PERMITTED } else { LIKELY }, "{bill} {edit}");
            put(&scene, bill, back).await;
            assert_eq!(reasons(&scene, &format!("back-{at}")).await, PERMITTED, "{bill} {edit}");
        }
        scene.close().await;
    })
    .await;
}

#[tokio::test]
async fn what_we_paid_is_shown_to_the_approver_as_it_was_then() {
    on_both(async |place| {
        let scene = scene_at(place).await;
        put(&scene, "TWIN", json!({ "state": "draft" })).await;
        let paid = scene.propose("paid", &pay("INV-1", "V-100", "1200.00")).await;
        assert_eq!(paid.status, Status::Executed, "{:?}", paid.decision);
        // Somebody makes the paid bill look like another one before the approver looks.
        put(&scene, "INV-1", json!({ "vendor_reference": "X-77" })).await;
        put(&scene, "TWIN", json!({ "state": "open" })).await;
        assert_eq!(reasons(&scene, "a").await, LIKELY);
        clears(&scene, "paul", "TWIN", "INV-1").await.unwrap();
        assert_eq!(reasons(&scene, "b").await, PERMITTED);
        let export = scene.installation.ok(&["receipts", "export"], "");
        let cleared = export.lines().find(|line| line.contains("duplicate_cleared")).unwrap();
        assert!(cleared.contains("X77") && cleared.contains("A1"), "{cleared}");
        scene.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_pair_that_is_none_or_a_person_who_may_not_clears_nothing() {
    on_both(async |place| {
        let scene = scene_at(place).await;
        let note = BillFields {
            vendor: Some("V-100".to_owned()),
            vendor_reference: Some(Some("A-1".to_owned())),
            amount: Some("10.00".to_owned()),
            kind: Some(KindWord::CreditNote),
            ..BillFields::default()
        };
        let sandbox = scene.app.base.sandbox.as_ref().unwrap();
        sandbox.put_bill(COMPANY, "NOTE", &note).await.unwrap();
        for (by, bill, other, code) in [
            ("paul", "TWIN", "TWIN", "same_bill"),
            ("paul", "TWIN", "INV-999", "bill_not_found"),
            ("paul", "INV-999", "TWIN", "bill_not_found"),
            ("paul", "TWIN", "FOX-1", "bill_not_found"),
            ("paul", "TWIN", "NOTE", "bill_not_found"),
            ("paul", "TWIN", "INV-2", "other_vendor"),
            ("ines", "TWIN", "INV-1", "not_an_approver"),
            ("gustav", "TWIN", "INV-1", "not_an_approver"),
            ("nobody", "TWIN", "INV-1", "not_an_approver"),
        ] {
            let refused = clears(&scene, by, bill, other).await.unwrap_err();
            assert_eq!(refused.code(), code, "{by} {bill} {other}: {refused}");
        }
        let paul = Name::parse("paul").unwrap();
        for reason in ["", "  ", "a\nb", "\u{7}", &"x".repeat(501)] {
            let (bill, other) = (bill_id("TWIN"), bill_id("INV-1"));
            let refused =
                scene.pack.clear_duplicate(&company(), &paul, &bill, &other, reason).await;
            assert_eq!(refused.unwrap_err().code(), "invalid_reason", "{reason:?}");
        }
        let fox = CompanyId::new("red-fox").unwrap();
        let (bill, other) = (bill_id("TWIN"), bill_id("INV-1"));
        let refused = scene.pack.clear_duplicate(&fox, &paul, &bill, &other, "why").await;
        assert_eq!(refused.unwrap_err().code(), "bill_not_found");
        assert_eq!(reasons(&scene, "a").await, LIKELY);
        // Marie granted the mandate of that proposal.
        let refused = clears(&scene, "marie", "TWIN", "INV-1").await.unwrap_err();
        assert_eq!(refused.code(), "self_approval");
        assert_eq!(reasons(&scene, "b").await, LIKELY);
        let export = scene.installation.ok(&["receipts", "export"], "");
        assert!(!export.contains("duplicate_cleared"), "{export}");
        scene.close().await;
    })
    .await;
}

#[tokio::test]
async fn an_approver_clears_a_suspicion_over_http() {
    on_both(async |place| {
        let office = Office::at(place).await;
        let daemon = &office.daemon;
        let twin = json!({
            "vendor": "V-100", "vendor_reference": "A-1", "amount": "10.00", "date": "2026-01-15",
        });
        daemon.put_bill("TWIN", twin).await;
        let denied = office.agent.propose("a", &pay("TWIN", "V-100", "10.00")).await;
        denied.is_denied(403, "policy", "likely-duplicate-never-paid");
        let path = "/v1/bills/TWIN/not-duplicate";
        let word = json!({ "other": "INV-1", "reason": "two deliveries" });
        office.agent.post_json(path, &word).await.is_problem(403, "humans_only");
        for other in ["anna", "adam", "axel"] {
            let human = daemon.sign_in(other).await;
            human.post_json(path, &word).await.is_problem(403, "not_an_approver");
        }
        let marie = daemon.sign_in("marie").await;
        marie.post_json(path, &word).await.is_problem(403, "self_approval");
        let paul = daemon.sign_in("paul").await;
        let same = json!({ "other": "TWIN", "reason": "the same" });
        paul.post_json(path, &same).await.is_problem(400, "invalid_field");
        let foreign = json!({ "other": "FOX-1", "reason": "another company's" });
        paul.post_json(path, &foreign).await.is_problem(404, "not_found");
        let nothing = json!({ "other": "INV-1" });
        paul.post_json(path, &nothing).await.is_problem(400, "invalid_field");
        let vendor = json!({ "other": "INV-2", "reason": "another vendor's" });
        paul.post_json(path, &vendor).await.is_problem(409, "other_vendor");
        let cleared = paul.post_json(path, &word).await;
        assert_eq!(cleared.status.as_u16(), 201, "{}", cleared.json);
        assert_eq!(cleared.text("/cleared_by"), "paul");
        office.agent.propose("b", &pay("TWIN", "V-100", "10.00")).await.is_executed();
    })
    .await;
}
