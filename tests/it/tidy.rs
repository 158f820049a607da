//! The source tree keeps the rules of its architecture (`src/ARCHITECTURE.md`): which module may
//! name which, where SQL, HTTP, Cedar and Odoo are known, and that the ERP is written in one place.
//!
//! It reads text, not types: comments and texts are blanked first, and what is left is names. Each
//! checker is tried on a planted fault, so that a rule that finds nothing is known to look.

mod rows;
mod rules;
mod source;

use std::path::Path;

use rules::Finding;
use source::Source;

/// A longer file has more than one subject.
const LINES_MAX: usize = 600;
/// From here on a file is worth a look.
const LINES_LONG: usize = 500;

/// Every file of ours that is read by people or machines, but not what was recorded.
fn tree() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = source::read_tree(root);
    // A walk that finds nothing would find no fault either.
    let must_be_there = ["src/lib.rs", "src/ap/orders.rs", "policies/invoice_pay.cedar"];
    for path in must_be_there {
        assert!(found.iter().any(|source| source.path == path), "`{path}` was not read");
    }
    found
}

#[track_caller]
fn none(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}

#[test]
fn dependencies_point_one_way() {
    none(&tree().iter().flat_map(rules::dependencies).collect::<Vec<_>>());
}

#[test]
fn each_crate_is_known_where_it_belongs() {
    none(&tree().iter().flat_map(rules::crates).collect::<Vec<_>>());
}

#[test]
fn odoo_is_named_in_its_connector_and_where_it_is_configured() {
    none(&tree().iter().flat_map(rules::odoo).collect::<Vec<_>>());
}

#[test]
fn the_gateway_knows_no_accounts_payable() {
    let tree = tree();
    none(&tree.iter().flat_map(rules::trade_words).collect::<Vec<_>>());
    none(&rules::stale_exceptions(&tree));
}

#[test]
fn the_erp_is_written_in_one_place() {
    none(&rules::writes(&tree()));
}

#[test]
fn tests_do_not_sleep_and_are_not_skipped() {
    none(&tree().iter().flat_map(rules::tests_that_wait_or_hide).collect::<Vec<_>>());
}

#[test]
fn output_goes_through_the_log_or_the_command_line() {
    none(&tree().iter().flat_map(rules::printing).collect::<Vec<_>>());
}

#[test]
fn every_policy_has_an_id_and_a_reason() {
    none(&tree().iter().flat_map(rules::policies).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_for_later_in_a_comment() {
    none(&tree().iter().flat_map(rules::left_for_later).collect::<Vec<_>>());
}

#[test]
fn no_file_is_too_long() {
    let tree = tree();
    for source in tree.iter().filter(|source| source.line_count() > LINES_LONG) {
        report(&format!("worth a look: {} has {} lines", source.path, source.line_count()));
    }
    none(&tree.iter().filter_map(|source| rules::too_long(source, LINES_MAX)).collect::<Vec<_>>());
}

#[expect(clippy::print_stderr, reason = "a test says what is worth a look")]
fn report(text: &str) {
    eprintln!("{text}");
}
