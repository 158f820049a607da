//! `countersign check`: a row for each thing, and one that is wrong hides no other.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::daemon::{Installation, WORLD, pay};
use crate::exactly_once::{copy_store, restore_store};

const ODOO: &str = r#"
[server]
listen = "127.0.0.1:0"
public_url = "http://127.0.0.1"
[store]
url = "sqlite://countersign.db"
allow_plaintext = true
[keys]
dir = "keys"
[policy]
dir = "@POLICIES@"
[erp]
kind = "odoo"
call_deadline = "2s"
[erp.odoo]
url = "http://127.0.0.1:1"
database = "none"
reader = { login = "reader", password_file = "reader" }
payer = { login = "payer", password_file = "payer" }
bank_admin = { login = "bank-admin", password_file = "bank-admin" }
[erp.odoo.companies]
blue-sparrow = 1
[vop]
kind = "file"
path = "vop.toml"
"#;

/// What `check` showed: its exit code, its rows, and what it said on standard error.
struct Shown {
    code: Option<i32>,
    text: String,
    error: String,
}

fn check(installation: &Installation) -> Shown {
    let output = installation.run(&["check"], "");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Shown { code: output.status.code(), text: text(output.stdout), error: text(output.stderr) }
}

impl Shown {
    /// State and text of the row of that thing.
    #[track_caller]
    fn row(&self, what: &str) -> (String, String) {
        let lines: Vec<&str> = self.text.lines().skip(1).collect();
        let at = lines
            .iter()
            .position(|line| line.strip_prefix(what).is_some_and(|rest| rest.starts_with("  ")));
        let at = at.unwrap_or_else(|| panic!("no row `{what}` in {}", self.text));
        let (_, rest) = lines[at].split_at(what.len());
        let (state, said) = rest.trim_start().split_once(' ').unwrap();
        let more = lines[at + 1..].iter().take_while(|line| line.starts_with(' '));
        let said: Vec<&str> = [said].into_iter().chain(more.copied()).map(str::trim).collect();
        (state.to_owned(), said.join(" "))
    }

    #[track_caller]
    fn is_ok(&self, what: &str, said: &str) {
        let (state, found) = self.row(what);
        assert!(state == "ok" && found.contains(said), "{what}: {state} {found}");
    }

    #[track_caller]
    fn is_wrong(&self, what: &str, said: &str) {
        let (state, found) = self.row(what);
        assert!(state == "wrong" && found.contains(said), "{what}: {state} {found}");
        assert!(self.error.contains(&format!("{what}: ")), "{}", self.error);
    }

    /// What the rows are about, in their order.
    fn things(&self) -> Vec<&str> {
        let rows = self.text.lines().skip(1).filter(|line| !line.starts_with(' '));
        rows.map(|line| line.split("  ").next().unwrap()).collect()
    }
}

const THINGS: [&str; 16] = [
    "configuration",
    "plaintext",
    "policies",
    "keys",
    "store",
    "ERP",
    "ERP reader",
    "ERP payer",
    "ERP bank-admin",
    "ERP clock",
    "ERP orders",
    "vendors of blue-sparrow",
    "vendors of red-fox",
    "VoP",
    "sanctions",
    "checkpoint",
];

fn change(installation: &Installation, from: &str, to: &str) {
    let file = installation.path("countersign.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&file, text.replace(from, to)).unwrap();
}

#[tokio::test]
async fn everything_is_well_only_when_the_vendors_are_adopted_and_stays_so_beside_a_daemon() {
    let installation = Installation::new();
    let shown = check(&installation);
    assert_eq!((shown.code, shown.things()), (Some(1), THINGS.to_vec()));
    for company in ["vendors of blue-sparrow", "vendors of red-fox"] {
        shown.is_wrong(company, "To do: run `countersign vendors adopt`");
    }
    for other in THINGS.into_iter().filter(|what| !what.starts_with("vendors")) {
        shown.is_ok(other, "");
    }
    installation.add_principal();
    let token = installation.mandate(&[]);
    let daemon = installation.start().await;
    daemon.agent(&token).propose("k", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    let shown = check(&installation);
    assert_eq!((shown.code, shown.error.as_str()), (Some(0), ""), "{}", shown.text);
    assert_eq!(shown.things(), THINGS);
    shown.is_ok("ERP", "nothing real is paid");
    shown.is_ok("ERP payer", "hands sealed orders over");
    shown.is_ok("ERP clock", "of 30 s at most");
    shown.is_ok("ERP orders", "is 1");
    shown.is_ok("policies", "rules that fit their schema, sha256:");
    shown.is_ok("store", "st_");
    shown.is_ok("VoP", "a test provider");
    shown.is_ok("sanctions", "a test provider");
    shown.is_ok("plaintext", "not allowed");
    shown.is_ok("checkpoint", "vouches for receipt");
    daemon.stop();
}

#[test]
fn one_thing_that_is_wrong_hides_no_other() {
    let wrong_with = |wreck: &dyn Fn(&Installation), wrong: &[(&str, &str)]| {
        let installation = Installation::new();
        for company in ["blue-sparrow", "red-fox"] {
            installation.ok(&["vendors", "adopt", "--company", company], "");
        }
        wreck(&installation);
        let shown = check(&installation);
        assert_eq!(shown.code, Some(1), "{}", shown.text);
        let wrong_ones: Vec<&str> = wrong.iter().map(|(what, _)| *what).collect();
        for what in shown.things() {
            match wrong.iter().find(|(named, _)| *named == what) {
                Some((_, said)) => shown.is_wrong(what, said),
                None => shown.is_ok(what, ""),
            }
        }
        for what in wrong_ones {
            shown.row(what);
        }
    };
    wrong_with(
        &|at| change(at, "/policies\"", "/no-policies\""),
        &[("policies", "`policy.dir`: cannot read")],
    );
    wrong_with(
        &|at| {
            change(
                at,
                "[sanctions]\nkind = \"sandbox\"",
                "[sanctions]\nkind = \"file\"\npath = \"none\"",
            );
        },
        &[("sanctions", "`sanctions.path`: cannot read")],
    );
    wrong_with(
        &|at| fs::write(at.path("checkpoint.txt"), "somebody else's\n").unwrap(),
        &[
            ("store", "not opened, because of the checkpoint"),
            ("ERP orders", "not looked at"),
            ("vendors of blue-sparrow", "not looked at"),
            ("vendors of red-fox", "not looked at"),
            ("checkpoint", "cannot be believed"),
        ],
    );
    // What was never there needs a folder, and no copies.
    wrong_with(
        &|at| change(at, "checkpoint.txt", "kept/elsewhere/checkpoint.txt"),
        &[
            ("store", "not opened, because of the checkpoint"),
            ("ERP orders", "not looked at"),
            ("vendors of blue-sparrow", "not looked at"),
            ("vendors of red-fox", "not looked at"),
            ("checkpoint", "kept/elsewhere`"),
        ],
    );
    wrong_with(
        &|at| change(at, "sqlite://countersign.db", "sqlite://nowhere/countersign.db"),
        &[
            ("store", "mkdir -p"),
            ("ERP orders", "not looked at"),
            ("vendors of blue-sparrow", "not looked at"),
            ("vendors of red-fox", "not looked at"),
            ("checkpoint", "not looked at"),
        ],
    );
    wrong_with(
        &|at| {
            let readable = fs::Permissions::from_mode(0o644);
            fs::set_permissions(at.path("keys/seal.key"), readable).unwrap();
        },
        &[
            ("keys", "seal.key"),
            ("store", "not looked at"),
            ("ERP", "not looked at"),
            ("ERP reader", "not looked at"),
            ("ERP payer", "not looked at"),
            ("ERP bank-admin", "not looked at"),
            ("ERP clock", "not looked at"),
            ("ERP orders", "not looked at"),
            ("VoP", "not looked at"),
            ("sanctions", "not looked at"),
            ("checkpoint", "not looked at"),
        ],
    );
}

#[test]
fn another_seal_key_is_named() {
    let installation = Installation::new();
    installation.ok(&["user", "list"], "");
    fs::copy(installation.path("keys/ledger.key"), installation.path("keys/seal.key")).unwrap();
    check(&installation).is_wrong("ERP", "another seal key is installed");
}

#[tokio::test]
async fn an_older_copy_of_the_store_is_named_and_not_frozen() {
    let installation = Installation::new();
    installation.add_principal();
    let token = installation.mandate(&[]);
    installation.start().await.stop();
    let backup = installation.path("backup");
    copy_store(&installation, &backup);
    let daemon = installation.start().await;
    daemon.agent(&token).propose("k", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
    daemon.stop();
    restore_store(&installation, &backup);
    let shown = check(&installation);
    shown.is_wrong("store", "not opened, because of the checkpoint");
    shown.is_wrong("checkpoint", "the store was cut or restored from a copy");
    // Without the checkpoint the ERP's orders still tell.
    fs::remove_file(installation.path("checkpoint.txt")).unwrap();
    check(&installation).is_wrong("ERP orders", "it is an older copy");
    assert!(!installation.ok(&["freeze", "list"], "").contains("store_behind"));
}

#[test]
fn a_configuration_that_cannot_be_used_is_a_row_too() {
    let installation = Installation::with(WORLD, "sqlite://countersign.db", "\n[colours]\nx = 1\n");
    let shown = check(&installation);
    assert_eq!((shown.code, shown.things()), (Some(1), vec!["configuration"]));
    shown.is_wrong("configuration", "colours");
    fs::remove_file(installation.path("countersign.toml")).unwrap();
    check(&installation).is_wrong("configuration", "there is no configuration");
}

#[test]
fn an_odoo_without_passwords_or_without_an_answer_is_told_apart() {
    let policies = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let text = ODOO.replace("@POLICIES@", &policies.display().to_string());
    let installation = Installation::of(&text);
    fs::write(installation.path("vop.toml"), "vop = []\n").unwrap();
    let password = |of: &str, mode: u32| {
        fs::write(installation.path(of), "a password of it\n").unwrap();
        fs::set_permissions(installation.path(of), fs::Permissions::from_mode(mode)).unwrap();
    };
    password("reader", 0o600);
    password("payer", 0o644);
    let shown = check(&installation);
    assert_eq!(shown.code, Some(1));
    shown.is_wrong("ERP", "not looked at: it needs the three passwords");
    shown.is_wrong("ERP reader", "not looked at");
    shown.is_wrong("ERP payer", "others can read");
    shown.is_wrong("ERP bank-admin", "which cannot be read");
    shown.is_ok("plaintext", "`store.allow_plaintext`: PostgreSQL may be reached without TLS");
    shown.is_ok("VoP", "a test provider: `vop.kind` is `file`");
    shown.is_ok("sanctions", "`none`: nothing is checked");
    shown.is_ok("checkpoint", "none is kept");
    shown.is_ok("store", "st_");
    password("payer", 0o600);
    password("bank-admin", 0o600);
    let shown = check(&installation);
    shown.is_wrong("ERP", "its side could not be proved");
    shown.is_wrong("ERP bank-admin", "not looked at: it needs an answer of the ERP");
    shown.is_wrong("ERP clock", "not looked at");
    shown.is_wrong("vendors of blue-sparrow", "not adopted yet");
    assert!(!(shown.text + &shown.error).contains("a password of it"));
}
