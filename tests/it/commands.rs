//! The command line as an operator uses it.

use crate::daemon::{COMPANY, Installation, WORLD};

#[test]
fn the_demonstration_plays_by_itself_and_leaves_two_payments() {
    let installation = Installation::new();
    let shown = installation.ok(&["demo", "--auto"], "");
    assert!(shown.contains("two payments, both to the vendors' own accounts"), "{shown}");
    // Two payments, and the vendor that really changed banks.
    assert_eq!(shown.matches("executed").count(), 3, "{shown}");
}

#[test]
fn a_mandate_needs_an_active_accountant_and_an_account_of_the_company() {
    let installation = Installation::new();
    let issue_in = |currency: &str, principal: &str, source: &str| {
        installation.run(
            &[
                "mandate",
                "issue",
                "--principal",
                principal,
                "--agent",
                "a",
                "--company",
                "blue-sparrow",
                "--scope",
                "invoice.pay",
                "--source-account",
                source,
                "--currency",
                currency,
                "--ttl",
                "8h",
            ],
            "",
        )
    };
    let issue = |principal: &str, source: &str| issue_in("EUR", principal, source);
    let refused = |output: std::process::Output, expected: &str| {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(output.stdout.is_empty());
    };
    refused(issue("marie", crate::daemon::SOURCE), "no active accountant");
    installation.add_user("marie", "approver", "blue-sparrow");
    refused(issue("marie", crate::daemon::SOURCE), "no active accountant");
    installation.add_user("marie", "accountant", "red-fox");
    refused(issue("marie", crate::daemon::SOURCE), "no active accountant");
    installation.add_principal();
    refused(issue("marie", crate::daemon::ACME), "pays from no such account");
    refused(issue_in("USD", "marie", crate::daemon::SOURCE), "is in EUR, not in USD");
    let issued = issue("marie", crate::daemon::SOURCE);
    assert_eq!(String::from_utf8_lossy(&issued.stdout).trim().split('.').count(), 3);
    installation.ok(&["user", "disable", "marie"], "");
    refused(issue("marie", crate::daemon::SOURCE), "no active accountant");
}

#[test]
fn wrong_usage_and_wrong_configuration_have_codes_of_their_own() {
    let installation = Installation::new();
    assert_eq!(installation.run(&["nonsense"], "").status.code(), Some(2));
    std::fs::remove_file(installation.path("world.toml")).unwrap();
    let output = installation.run(&["user", "list"], "");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("world.toml"), "{error}");
    let broken = Installation::with(WORLD, "sqlite://countersign.db", "\n[colours]\nblue = 1\n");
    let error = String::from_utf8_lossy(&broken.run(&["check"], "").stderr).into_owned();
    assert!(error.contains("colours") && error.contains("countersign.toml"), "{error}");
}

#[test]
fn a_store_or_a_checkpoint_that_cannot_be_used_is_named_by_its_own_key() {
    let installation = Installation::new();
    let file = installation.path("countersign.toml");
    let whole = std::fs::read_to_string(&file).unwrap();
    let refused = |from: &str, to: &str| {
        let text = whole.replace(from, to);
        assert_ne!(text, whole, "nothing to replace");
        std::fs::write(&file, text).unwrap();
        let output = installation.run(&["user", "list"], "");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused("checkpoint.txt", "nowhere/checkpoint.txt");
    assert!(said.contains("`receipts.checkpoint_file`: cannot use the checkpoint file"), "{said}");
    let said = refused("sqlite://", "sqlite://nowhere/");
    assert!(said.contains("`store.url`: cannot use"), "{said}");
}

#[tokio::test]
async fn a_healthcheck_asks_the_daemon_that_listens_there() {
    let installation = Installation::new();
    let asked = |of: &Installation, more: &[&str]| {
        let output = of.run(&[&["healthcheck"], more].concat(), "");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &error)
    };
    let daemon = installation.start().await;
    // It took any port that was free, which no other process can know.
    let (code, said) = asked(&installation, &[]);
    assert!(code == Some(1) && said.contains("port 0"), "{said}");

    let text = std::fs::read_to_string(installation.path("countersign.toml")).unwrap();
    let (_, port) = daemon.base.rsplit_once(':').unwrap();
    let here = Installation::of(&text.replace("127.0.0.1:0", &format!("127.0.0.1:{port}")));
    assert_eq!(asked(&here, &[]), (Some(0), "{\"status\":\"alive\"}\n".to_owned()));
    assert_eq!(asked(&here, &["--ready"]), (Some(0), "{\"status\":\"ready\"}\n".to_owned()));

    // One that listens on all addresses is asked by its public name.
    let text = include_str!("../../docker/countersign.toml")
        .replace("0.0.0.0:8490", &format!("0.0.0.0:{port}"));
    let public = "http://countersign.localhost:8490";
    let named = Installation::of(&text.replace(public, "http://127.0.0.1"));
    assert_eq!(asked(&named, &[]).0, Some(0));
    let (code, said) = asked(&Installation::of(&text), &[]);
    assert!(code == Some(1) && said.contains("host_not_allowed"), "{said}");

    daemon.stop();
    let (code, said) = asked(&here, &[]);
    assert!(code == Some(1) && said.contains("no answer from 127.0.0.1"), "{said}");
}

#[test]
fn vendors_are_adopted_once() {
    let installation = Installation::new();
    let adopt = ["vendors", "adopt", "--company", "blue-sparrow", "--since", "2020-01-01"];
    assert!(installation.ok(&adopt, "").contains("2 vendors with 2 accounts"));
    let output = installation.run(&adopt, "");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("adopted before"));
}

#[test]
fn a_freeze_of_a_vendor_that_nobody_has_seen_stands_and_is_told() {
    let installation = Installation::new();
    installation.ok(&["vendors", "adopt", "--company", COMPANY], "");
    for (vendor, is_known) in [("V-100", true), ("V-999", false)] {
        let arguments =
            ["freeze", "add", "--company", COMPANY, "--vendor", vendor, "--reason", "a call"];
        let output = installation.run(&arguments, "");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        assert_eq!(error.contains("has never seen a vendor `V-999`"), !is_known, "{error}");
    }
    assert_eq!(installation.ok(&["freeze", "list"], "").matches("a call").count(), 2);
}

#[test]
fn a_freeze_and_a_revocation_need_no_policies() {
    let installation = Installation::new();
    installation.add_principal();
    installation.mandate(&[]);
    let list = installation.ok(&["mandate", "list"], "");
    let mandate = list.split_whitespace().find(|word| word.starts_with("md_")).unwrap().to_owned();
    let file = installation.path("countersign.toml");
    let broken = std::fs::read_to_string(&file).unwrap().replace("/policies\"", "/no-policies\"");
    std::fs::write(&file, broken).unwrap();
    installation.ok(&["freeze", "add", "--reason", "something is wrong"], "");
    assert!(installation.ok(&["freeze", "list"], "").contains("something is wrong"));
    installation.ok(&["mandate", "revoke", &mandate], "");
    assert!(installation.ok(&["mandate", "list"], "").contains("revoked"));
}
