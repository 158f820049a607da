//! Every row of the tables of API 3 and 4, and every rule of the prose below them, has a test by
//! name. The names are looked up in the sources, and the lists that the code closes (calls, states,
//! reasons, refusals, words of attention, origins) are looked up in the table: a row without a test is
//! found, and so is a word without a row.

mod agents;
mod humans;
mod stages;

use std::collections::{BTreeMap, BTreeSet};

use countersign::domain::operation::Status;
use countersign::domain::reason::Reason;
use serde_json::Value;

use super::source::Source;

/// What is promised, and the tests that try it: the module below `tests/it` and the function, or a
/// file of `src/` and the function.
type Row = (&'static str, &'static [&'static str]);

/// The document that was reviewed: each call, and the words of each list.
const REVIEWED: &str =
    include_str!("../snapshots/it__openapi__the_document_is_the_one_that_was_reviewed.snap");

fn rows() -> impl Iterator<Item = Row> {
    agents::ROWS.iter().chain(stages::ROWS).chain(humans::ROWS).copied()
}

/// The file that holds a test, and its function.
fn place_of(test: &str) -> (String, &str) {
    let (module, function) = test.rsplit_once("::").unwrap_or(("", test));
    let file = if module.starts_with("src/") {
        format!("{module}.rs")
    } else {
        format!("tests/it/{}.rs", module.replace("::", "/"))
    };
    (file, function)
}

/// The functions of a source that are run as tests.
fn tests_of(source: &Source) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_test = false;
    for line in source.code.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((_, after)) = line.split_once("fn ") {
            let name = after.split(['(', '<']).next().unwrap_or_default();
            if std::mem::take(&mut is_test) {
                found.insert(name.to_owned());
            }
        }
    }
    found
}

/// What is wrong with a table: a row without a test, a test that is not there, a row twice.
fn faults(rows: impl Iterator<Item = Row>, tree: &[Source]) -> Vec<String> {
    let tests: BTreeMap<&str, BTreeSet<String>> = tree
        .iter()
        .filter(|source| source.is_rust())
        .map(|source| (source.path.as_str(), tests_of(source)))
        .collect();
    let (mut faults, mut seen) = (Vec::new(), BTreeSet::new());
    for (what, by) in rows {
        if !seen.insert(what) {
            faults.push(format!("`{what}` stands twice"));
        }
        if by.is_empty() {
            faults.push(format!("`{what}` has no test"));
        }
        for test in by {
            let (file, function) = place_of(test);
            if !tests.get(file.as_str()).is_some_and(|tests| tests.contains(function)) {
                faults.push(format!("`{what}`: there is no test `{function}` in {file}"));
            }
        }
    }
    faults
}

/// The words of a list in the reviewed document.
fn words_of(list: &str) -> Vec<String> {
    let line = REVIEWED.lines().find_map(|line| line.strip_prefix(list)?.strip_prefix(' '));
    let schema: Value = serde_json::from_str(line.unwrap()).unwrap();
    let words = schema["enum"].as_array().unwrap();
    words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// What must have a row, as the code has it.
fn wanted(tree: &[Source]) -> Vec<String> {
    let mut wanted = Vec::new();
    for line in REVIEWED.lines() {
        let mut parts = line.split(' ');
        if let (Some("GET" | "POST" | "PUT" | "DELETE"), Some(path)) = (parts.next(), parts.next())
            && path.starts_with("/v1/")
        {
            let method = line.split(' ').next().unwrap_or_default();
            wanted.push(format!("call {method} {path}"));
        }
    }
    wanted.extend(Status::ALL.iter().map(|status| format!("status {}", status.code())));
    wanted.extend(Reason::ALL.iter().map(|reason| format!("reason {}", reason.code())));
    wanted.extend(words_of("Attention").iter().map(|word| format!("attention {word}")));
    wanted.extend(words_of("Origin").iter().map(|word| format!("origin {word}")));
    let codes = tree.iter().find(|source| source.path == "src/http/code.rs").unwrap();
    for line in codes.text.lines().map(str::trim) {
        for status in ["= FORBIDDEN \"", "= CONFLICT \""] {
            if let Some((_, code)) = line.split_once(status) {
                wanted.push(format!("refusal {}", code.trim_end_matches("\";")));
            }
        }
    }
    wanted
}

#[test]
fn every_row_has_a_test_that_is_there() {
    let found = faults(rows(), &super::tree());
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn every_word_that_the_code_has_is_a_row() {
    let wanted = wanted(&super::tree());
    for (kind, least) in [("call", 34), ("status", 10), ("reason", 50), ("refusal", 28)] {
        let of_kind = wanted.iter().filter(|row| row.starts_with(&format!("{kind} "))).count();
        assert!(of_kind >= least, "{of_kind} of {kind}");
    }
    let there: BTreeSet<&str> = rows().map(|(what, _)| what).collect();
    let missing: Vec<_> = wanted.iter().filter(|row| !there.contains(row.as_str())).collect();
    assert!(missing.is_empty(), "without a row: {missing:#?}");
}

#[test]
fn a_row_without_a_test_is_found() {
    let text = "#[test]\nfn there() {}\nfn helper() {}\n#[tokio::test]\n#[expect(x)]\nasync fn too() {}\n\
                // #[test]\nfn only_said() {}\n";
    let tree = [Source::new("tests/it/a/b.rs", text), Source::new("src/c.rs", text)];
    let good: [Row; 2] = [("one", &["a::b::there", "src/c::too"]), ("two", &["a::b::too"])];
    assert_eq!(faults(good.into_iter(), &tree), Vec::<String>::new());
    for bad in [
        ("one", &[][..]),
        ("one", &["a::b::gone"]),
        ("one", &["a::there"]),
        ("one", &["a::b::helper"]),
        ("one", &["a::b::only_said"]),
        ("two", &["a::b::there"]),
    ] {
        let rows = [("two", &["a::b::there"][..]), bad];
        assert_eq!(faults(rows.into_iter(), &tree).len(), 1, "{bad:?}");
    }
}
