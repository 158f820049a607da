//! The rules themselves: each takes a file, or all files, and gives what is wrong there.

use std::fmt;

use super::source::{Source, names};

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

fn finding(source: &Source, line: usize, what: impl Into<String>) -> Finding {
    Finding { path: source.path.clone(), line, what: what.into() }
}

/// Which modules of the daemon a module may name beside itself. A module without a row may not
/// exist: whoever adds one says here where it stands.
const MAY_NAME: [(&str, &[&str]); 17] = [
    // Pure.
    ("domain", &[]),
    ("receipts", &[]),
    ("clock", &[]),
    ("ids", &[]),
    ("settings", &[]),
    ("telemetry", &["settings"]),
    // What is counted, in words of the domain.
    ("metrics", &["domain"]),
    // What keeps, and what signs what is kept.
    ("keys", &["receipts"]),
    ("store", &["domain", "metrics", "receipts"]),
    // What decides. It names no pack: packs come to it through `gateway::pack`.
    ("gateway", &["domain", "ids", "keys", "metrics", "receipts", "store"]),
    ("ap", &["domain", "gateway", "ids", "keys", "receipts", "store"]),
    // Ways in.
    ("worker", &["ap", "domain", "gateway", "metrics", "receipts", "store"]),
    ("http", &["ap", "domain", "gateway", "metrics"]),
    ("mcp", &["ap", "domain", "gateway", "http"]),
    ("console", &["ap", "domain", "gateway", "http"]),
    // What puts it together, and what starts it.
    (
        "app",
        &[
            "ap", "clock", "console", "domain", "gateway", "http", "ids", "keys", "mcp", "metrics",
            "receipts", "settings", "store", "worker",
        ],
    ),
    (
        "cli",
        &["ap", "app", "domain", "gateway", "keys", "receipts", "settings", "store", "telemetry"],
    ),
];

/// Where a module may name only some of another: a pack sees the seam of the gateway, not its
/// pipeline.
const ONLY: [(&str, &str, &[&str]); 1] = [("ap", "gateway", &["contract", "pack"])];

/// Where a crate may be named. Inside `src/` and the connectors; tests and examples may use what
/// they need.
const CRATES: [(&str, &[&str]); 13] = [
    ("sqlx", &["src/store.rs", "src/store/", "connectors/sandbox/src/"]),
    ("axum", HTTP),
    ("tower", HTTP),
    ("tower_http", HTTP),
    ("hyper", HTTP),
    ("hyper_util", HTTP),
    ("cedar_policy", &["src/gateway/policy.rs", "src/gateway/policy/"]),
    ("countersign_odoo", APP),
    ("countersign_sandbox", APP),
    ("countersign_vop", APP),
    ("clap", &["src/cli.rs", "src/cli/"]),
    ("serde_xmlrpc", &["connectors/odoo/src/"]),
    ("metrics_exporter_prometheus", &["src/metrics.rs", "src/metrics/"]),
];
const HTTP: &[&str] =
    &["src/http.rs", "src/http/", "src/mcp.rs", "src/mcp/", "src/console.rs", "src/console/"];
const APP: &[&str] = &["src/app.rs", "src/app/"];

/// Where the name of that ERP may stand: its connector, what composes it, what configures it.
const ODOO: [&str; 7] = [
    "connectors/odoo/",
    "examples/odoo/",
    "src/app.rs",
    "src/app/",
    "src/settings.rs",
    "src/cli.rs",
    "src/cli/odoo.rs",
];

/// Words of accounts payable, which the gateway does not know.
const TRADE: [&str; 4] = ["invoice", "vendor", "bill", "iban"];
/// Names in the gateway that hold such a word, and why they may.
const TRADE_EXCEPTIONS: [(&str, &str, &str); 7] = [
    (
        "src/gateway/policy/cases.rs",
        "invoice_pay",
        "tests: the cases are those of the pack's policy",
    ),
    ("src/gateway/policy/properties.rs", "invoice_pay", "tests: the same cases"),
    ("src/gateway/mandates.rs", "iban", "the company's own account, in any mandate"),
    ("src/gateway/freeze.rs", "Vendor", "the scope of a freeze, by the name it has for people"),
    ("src/gateway/freeze.rs", "vendor", "the same"),
    ("src/gateway/settling.rs", "Vendor", "the same"),
    ("src/gateway/settling.rs", "vendor", "the same"),
];

/// Calls that write to the ERP, and the one place each is made from.
const WRITES: [(&str, &str); 2] =
    [("register_payment", "src/ap/orders.rs"), ("change_bank_details", "src/ap/orders.rs")];

fn is_under(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path == *place || (place.ends_with('/') && path.starts_with(place)))
}

/// The modules on the way to a file of the daemon: `src/gateway/policy/load.rs` is `gateway`,
/// `policy`, `load`.
fn module_of(path: &str) -> Option<Vec<&str>> {
    let inside = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    Some(if inside == "lib" || inside == "main" { Vec::new() } else { inside.split('/').collect() })
}

/// Dependencies inside the daemon.
pub(super) fn dependencies(source: &Source) -> Vec<Finding> {
    let Some(module) = module_of(&source.path).filter(|_| source.is_rust()) else {
        return Vec::new();
    };
    let Some(own) = module.first() else { return Vec::new() };
    let Some((_, may)) = MAY_NAME.iter().find(|(name, _)| name == own) else {
        return vec![finding(source, 1, format!("`{own}` has no row in the table of modules"))];
    };
    let mut findings = Vec::new();
    for (line, path) in named(source.code_but_tests(), module.len()) {
        let mut parts = path.split("::");
        let (Some(named), part) = (parts.next(), parts.next().unwrap_or("*")) else { continue };
        if named != *own && !may.contains(&named) {
            findings.push(finding(source, line, format!("`{own}` names `{named}`")));
        }
        let only = ONLY.iter().find(|(of, what, _)| of == own && *what == named);
        if only.is_some_and(|(_, _, parts)| !parts.contains(&part)) {
            let what = format!("`{own}` names `{named}::{part}`");
            findings.push(finding(source, line, what));
        }
    }
    findings
}

/// Paths from the crate's root that the code names, without `crate`, each with its line. A `super`
/// that climbs to the root counts as well.
fn named(code: &str, depth: usize) -> Vec<(usize, String)> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some((_, token)) = tokens.get(at) {
        let begins = at == 0 || tokens[at - 1].1 != "::";
        let mut next = at + 1;
        if begins && *token == "super" {
            let mut climbed = 1;
            while is(&tokens, next, "::") && is(&tokens, next + 1, "super") {
                (climbed, next) = (climbed + 1, next + 2);
            }
            if climbed >= depth && is(&tokens, next, "::") {
                next = tree(&tokens, next + 1, "", &mut found);
            }
        } else if begins && *token == "crate" && is(&tokens, next, "::") {
            next = tree(&tokens, next + 1, "", &mut found);
        }
        at = next;
    }
    found
}

type Tokens<'a> = [(usize, &'a str)];

fn is(tokens: &Tokens<'_>, at: usize, wanted: &str) -> bool {
    tokens.get(at).is_some_and(|(_, token)| *token == wanted)
}

/// Reads a path, or the braces of a `use`, into whole paths; gives where it ends.
fn tree(
    tokens: &Tokens<'_>,
    start: usize,
    before: &str,
    found: &mut Vec<(usize, String)>,
) -> usize {
    let (mut at, mut path) = (start, before.to_owned());
    while let Some((line, token)) = tokens.get(at) {
        if *token == "{" {
            at += 1;
            while at < tokens.len() && !is(tokens, at, "}") {
                at = tree(tokens, at, &path, found);
                if is(tokens, at, "as") {
                    at += 2;
                }
                if is(tokens, at, ",") {
                    at += 1;
                }
            }
            return at + 1;
        }
        let joint = if path.is_empty() { "" } else { "::" };
        path = format!("{path}{joint}{token}");
        if !is(tokens, at + 1, "::") || is(tokens, at + 2, "<") {
            found.push((*line, path));
            return at + 1;
        }
        at += 2;
    }
    at
}

/// Names, `::`, and every other sign by itself, each with its line.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            let length = if is_name(first) {
                rest.find(|c| !is_name(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (token, after) = rest.split_at(length);
            found.push((at + 1, token));
            rest = after.trim_start();
        }
    }
    found
}

/// Crates where they do not belong.
pub(super) fn crates(source: &Source) -> Vec<Finding> {
    if !source.is_rust() || source.is_test() || source.path.starts_with("examples/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (line, name) in names(source.code_but_tests(), 1) {
        if let Some((_, places)) = CRATES.iter().find(|(krate, _)| *krate == name)
            && !is_under(&source.path, places)
        {
            findings.push(finding(source, line, format!("`{name}` is not known here")));
        }
    }
    findings
}

/// The name of one ERP where no ERP is known.
pub(super) fn odoo(source: &Source) -> Vec<Finding> {
    let beyond = source.path.starts_with("tests/") || is_under(&source.path, &ODOO);
    if !source.is_rust() || beyond {
        return Vec::new();
    }
    names(&source.code, 1)
        .into_iter()
        .filter(|(_, name)| name.to_lowercase().contains("odoo"))
        .map(|(line, name)| finding(source, line, format!("`{name}`: only the connector knows it")))
        .collect()
}

/// The words of a name: `FloorOtherVendor` and `other_vendors` both hold `vendor`.
fn holds_trade_word(name: &str) -> bool {
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_uppercase() || c == '_' {
            spaced.push(' ');
        }
        spaced.extend(c.to_lowercase());
    }
    spaced
        .split([' ', '_'])
        .any(|word| TRADE.iter().any(|trade| word.strip_suffix('s').unwrap_or(word) == *trade))
}

fn trade_names(source: &Source) -> Vec<(usize, &str)> {
    if !source.is_rust() || !is_under(&source.path, &["src/gateway.rs", "src/gateway/"]) {
        return Vec::new();
    }
    let all = names(source.code_but_tests(), 1);
    all.into_iter().filter(|(_, name)| holds_trade_word(name)).collect()
}

/// Accounts payable in the gateway.
pub(super) fn trade_words(source: &Source) -> Vec<Finding> {
    trade_names(source)
        .into_iter()
        .filter(|(_, name)| {
            !TRADE_EXCEPTIONS.iter().any(|(path, may, _)| *path == source.path && may == name)
        })
        .map(|(line, name)| finding(source, line, format!("`{name}`: the gateway knows no trade")))
        .collect()
}

/// Exceptions that nothing needs any more.
pub(super) fn stale_exceptions(tree: &[Source]) -> Vec<Finding> {
    TRADE_EXCEPTIONS
        .iter()
        .filter(|(path, name, _)| {
            !tree.iter().any(|source| {
                source.path == *path && trade_names(source).iter().any(|(_, found)| found == name)
            })
        })
        .map(|(path, name, why)| Finding {
            path: (*path).to_owned(),
            line: 1,
            what: format!("`{name}` is not there any more; nothing is left of: {why}"),
        })
        .collect()
}

/// Writes to the ERP from anywhere but their one place.
pub(super) fn writes(tree: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (call, place) in WRITES {
        let mut made = 0;
        for source in tree.iter().filter(|source| source.path.starts_with("src/")) {
            let tokens = tokens(source.code_but_tests());
            for (at, (line, _)) in tokens.iter().enumerate().filter(|(_, (_, t))| *t == call) {
                if !is(&tokens, at + 1, "(") {
                    continue;
                }
                made += 1;
                if source.path != place || made > 1 {
                    let what = format!("`{call}` is called once, in {place}");
                    findings.push(finding(source, *line, what));
                }
            }
        }
        if made == 0 {
            let (path, what) = (place.to_owned(), format!("`{call}` is not called here any more"));
            findings.push(Finding { path, line: 1, what });
        }
    }
    findings
}

/// Tests that wait for time to pass, or that do not run.
pub(super) fn tests_that_wait_or_hide(source: &Source) -> Vec<Finding> {
    if !source.is_rust() {
        return Vec::new();
    }
    let (first_line, code) = source.tests();
    let tokens = tokens(code);
    let mut findings = Vec::new();
    for (at, (line, token)) in tokens.iter().enumerate() {
        let line = first_line + line - 1;
        if *token == "sleep" && is(&tokens, at + 1, "(") {
            findings.push(finding(source, line, "a test waits for a condition, it does not sleep"));
        }
        let attribute = at >= 2 && is(&tokens, at - 1, "[") && is(&tokens, at - 2, "#");
        if *token == "ignore" && attribute {
            findings.push(finding(source, line, "a test that is skipped tests nothing"));
        }
    }
    findings
}

/// Output beside the log and the command line's writer.
pub(super) fn printing(source: &Source) -> Vec<Finding> {
    let tokens = if source.is_rust() { tokens(&source.code) } else { Vec::new() };
    let mut findings = Vec::new();
    for (at, (line, token)) in tokens.iter().enumerate() {
        if matches!(*token, "println" | "print" | "dbg") && is(&tokens, at + 1, "!") {
            findings.push(finding(source, *line, format!("`{token}!` prints past the log")));
        }
    }
    findings
}

/// Policies without a name or a reason.
pub(super) fn policies(source: &Source) -> Vec<Finding> {
    if !source.is_cedar() {
        return Vec::new();
    }
    let tokens = tokens(&source.code);
    let mut findings = Vec::new();
    let mut annotations = Vec::new();
    for (at, (line, token)) in tokens.iter().enumerate() {
        let starts = at == 0 || is(&tokens, at - 1, ";") || is(&tokens, at - 1, ")");
        match *token {
            "@" => annotations.extend(tokens.get(at + 1).map(|(_, name)| *name)),
            "permit" | "forbid" if starts => {
                for wanted in ["id", "reason"] {
                    if !annotations.contains(&wanted) {
                        findings.push(finding(
                            source,
                            *line,
                            format!("a policy without @{wanted}"),
                        ));
                    }
                }
            }
            ";" => annotations.clear(),
            _ => {}
        }
    }
    findings
}

/// Notes to somebody who will not come.
pub(super) fn left_for_later(source: &Source) -> Vec<Finding> {
    // Written apart, so that this file passes. `XXX` by itself is a currency code.
    let banned =
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("// X", "XX"), concat!("# X", "XX")];
    let mut findings = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        if let Some(word) = banned.iter().find(|word| line.contains(**word)) {
            findings.push(finding(
                source,
                at + 1,
                format!("`{word}`: do it, or say it in the docs"),
            ));
        }
    }
    findings
}

/// A file with more than one subject.
pub(super) fn too_long(source: &Source, most: usize) -> Option<Finding> {
    let lines = source.line_count();
    let what = format!("{lines} lines; more than {most} hold more than one subject");
    (source.is_rust() && lines > most).then(|| finding(source, most + 1, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that a rule names in that text.
    #[track_caller]
    fn lines(rule: impl Fn(&Source) -> Vec<Finding>, path: &str, text: &str, expected: &[usize]) {
        let found = rule(&Source::new(path, text));
        let lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, expected, "{path}: {text}: {found:?}");
    }

    #[test]
    fn a_dependency_the_wrong_way_is_found() {
        let check = |path, text, expected: &[usize]| lines(dependencies, path, text, expected);
        check("src/domain/x.rs", "\nuse crate::store::Store;", &[2]);
        check("src/domain/x.rs", "use crate::domain::names::Name;", &[]);
        check("src/domain/x.rs", "fn f() { crate::keys::open::<u8>() }", &[1]);
        check("src/domain/x.rs", "use super::super::store::Store;", &[1]);
        check("src/domain/x.rs", "use super::names::Name;", &[]);
        check("src/domain.rs", "use super::{\n    ids,\n    store as kept,\n};", &[2, 3]);
        check("src/receipts.rs", "use crate::{domain, keys::{self, Keys}};", &[1, 1, 1]);
        check("src/store/x.rs", "use crate::gateway::Gateway;", &[1]);
        check("src/gateway/x.rs", "use crate::ap::AccountsPayable;", &[1]);
        check("src/ap/x.rs", "use crate::gateway::pack::{Case, Pack};", &[]);
        check("src/ap/x.rs", "use crate::gateway::{pack::Case, Gateway};", &[1]);
        check("src/http/x.rs", "use crate::store::Store;", &[1]);
        check("src/brand_new.rs", "", &[1]);
        check("src/domain/x.rs", "// crate::store\nconst A: &str = \"crate::store\";", &[]);
        check("src/domain/x.rs", "#[cfg(test)]\nmod tests {\n use crate::store::Store;", &[]);
    }

    #[test]
    fn a_crate_out_of_its_place_is_found() {
        lines(crates, "src/gateway/x.rs", "use sqlx::Row;", &[1]);
        lines(crates, "src/store/x.rs", "use sqlx::Row;", &[]);
        lines(crates, "src/gateway/pack.rs", "\nfn f(r: axum::Request) {}", &[2]);
        lines(crates, "src/ap/facts.rs", "use cedar_policy::Context;", &[1]);
        lines(crates, "src/cli/demo.rs", "use countersign_sandbox::Sandbox;", &[1]);
        lines(crates, "src/app/daemon.rs", "use countersign_sandbox::Sandbox;", &[]);
    }

    #[test]
    fn a_word_out_of_its_place_is_found() {
        lines(odoo, "src/ap/x.rs", "fn f(o: OdooClient) {}", &[1]);
        lines(odoo, "src/ap/x.rs", "// as Odoo has it\nfn f() -> &str { \"odoo\" }", &[]);
        lines(trade_words, "src/gateway/x.rs", "let vendor = 1;\nlet bills = 2;", &[1, 2]);
        lines(trade_words, "src/gateway/x.rs", "struct BillState;\nstruct NewIban;", &[1, 2]);
        lines(trade_words, "src/gateway/x.rs", "let possibility = billing();", &[]);
        lines(trade_words, "src/gateway/freeze.rs", "let vendor = 1;", &[]);
        lines(trade_words, "src/ap/x.rs", "let vendor = 1;", &[]);
        assert_eq!(stale_exceptions(&[]).len(), TRADE_EXCEPTIONS.len());
    }

    #[test]
    fn a_second_hand_on_the_erp_is_found() {
        let both = "erp.register_payment(&sealed); erp.change_bank_details(&sealed)";
        let first = Source::new("src/ap/orders.rs", both);
        let port = Source::new("connectors/x.rs", "fn register_payment(&self)");
        let second = Source::new("src/worker.rs", "\nerp\n  .register_payment(&sealed)");
        let twice = Source::new("src/ap/orders.rs", "register_payment(a);\nregister_payment(b);");
        assert_eq!(writes(&[first, port]), []);
        let of_payments = |sources: &[Source]| -> Vec<usize> {
            let found = writes(sources);
            found.iter().filter(|f| f.what.contains("register")).map(|f| f.line).collect()
        };
        assert_eq!(of_payments(&[second]), [3]);
        assert_eq!(of_payments(&[twice]), [2]);
        assert_eq!(writes(&[]).len(), 2);
    }

    #[test]
    fn tests_that_sleep_or_are_skipped_are_found() {
        let check = |path, text, expected: &[usize]| {
            lines(tests_that_wait_or_hide, path, text, expected);
        };
        check("tests/it/x.rs", "\ntokio::time::sleep(d).await;", &[2]);
        check("tests/it/x.rs", "#[test]\n#[ignore = \"slow\"]", &[2]);
        check("src/worker.rs", "tokio::time::sleep(d).await;", &[]);
        check("src/worker.rs", "a\n#[cfg(test)]\nmod tests {\n    sleep(d);", &[4]);
    }

    #[test]
    fn printing_notes_and_long_files_are_found() {
        let macros = ["println", "print", "dbg"];
        for name in macros {
            lines(printing, "src/x.rs", &format!("\n{name}!(\"x\");"), &[2]);
        }
        lines(printing, "src/x.rs", "writeln!(out, \"println!\");", &[]);
        lines(left_for_later, "docs/x.md", concat!("a\nTO", "DO b"), &[2]);
        lines(left_for_later, "src/x.rs", "fn currency() -> &str { \"XXX\" }", &[]);
        let long = Source::new("src/x.rs", &"a\n".repeat(7));
        assert_eq!(too_long(&long, 7), None);
        assert_eq!(too_long(&long, 6).map(|found| found.line), Some(7));
    }

    #[test]
    fn a_nameless_policy_is_found() {
        let whole = "@id(\"a\")\n@reason(\"b\")\npermit (principal, action, resource);\n";
        lines(policies, "policies/x.cedar", whole, &[]);
        let second = format!("{whole}// @id(\"c\")\n@reason(\"d\")\nforbid (principal);");
        lines(policies, "policies/x.cedar", &second, &[6]);
        lines(policies, "policies/x.cedar", "permit (principal, action, resource);", &[1, 1]);
    }
}
