//! `check`: what is configured, what works, what is wrong and what to do.

use std::path::Path;

use super::say;
use crate::app::check::{Finding, examine};

/// How wide the table is at most, but for words that are longer.
const WIDTH: usize = 96;
/// How wide what is said of a thing is at least.
const SAID_MIN: usize = 40;

pub(super) async fn run(file: &Path) -> anyhow::Result<()> {
    let found = examine(file).await;
    for line in table(&found) {
        say(line)?;
    }
    let wrong: Vec<&Finding> = found.iter().filter(|finding| !finding.is_ok).collect();
    let told: Vec<String> =
        wrong.iter().map(|wrong| format!("{}: {}", wrong.what, wrong.says.join("; "))).collect();
    anyhow::ensure!(wrong.is_empty(), "not ready to pay: {}", told.join("; "));
    Ok(())
}

/// One row for each thing, with as many lines as what is said of it takes.
fn table(found: &[Finding]) -> Vec<String> {
    let first = found.iter().map(|finding| finding.what.chars().count());
    let first = first.max().unwrap_or(0).max("WHAT".len());
    let said = WIDTH.saturating_sub(first + "  STATE  ".len()).max(SAID_MIN);
    let line = |what: &str, state: &str, said: &str| {
        format!("{what:first$}  {state:5}  {said}").trim_end().to_owned()
    };
    let mut lines = vec![line("WHAT", "STATE", "WHAT IS SO, AND WHAT TO DO")];
    for finding in found {
        let mut says: Vec<String> = finding.says.iter().flat_map(|text| wrap(text, said)).collect();
        if let Some(to_do) = &finding.to_do {
            says.extend(wrap(&format!("To do: {to_do}."), said));
        }
        let state = if finding.is_ok { "ok" } else { "wrong" };
        let mut says = says.into_iter();
        lines.push(line(&finding.what, state, &says.next().unwrap_or_default()));
        lines.extend(says.map(|text| line("", "", &text)));
    }
    lines
}

/// Breaks a text between words.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(last) = lines.last_mut() else { break };
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(what: &str, is_ok: bool, says: &[&str], to_do: Option<&'static str>) -> Finding {
        let says = says.iter().map(|text| (*text).to_owned()).collect();
        Finding { what: what.to_owned(), says, to_do: to_do.map(Into::into), is_ok }
    }

    #[test]
    fn every_thing_has_a_row_that_says_what_to_do_and_fits() {
        let long = "`more.cedar`, line 3: what stands there is no policy, and the one before it is \
                    not ended by a semicolon as every one must be";
        let found = [
            finding("configuration", true, &["`/etc/countersign.toml`"], None),
            finding(
                "policies",
                false,
                &[long],
                Some("mend them; the older ones decide until then"),
            ),
            finding("ERP", false, &["one thing", "another thing"], None),
        ];
        insta::assert_snapshot!(table(&found).join("\n"), @r"
        WHAT           STATE  WHAT IS SO, AND WHAT TO DO
        configuration  ok     `/etc/countersign.toml`
        policies       wrong  `more.cedar`, line 3: what stands there is no policy, and the one before
                              it is not ended by a semicolon as every one must be
                              To do: mend them; the older ones decide until then.
        ERP            wrong  one thing
                              another thing
        ");
        assert!(table(&found).iter().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn a_word_that_is_too_long_stands_whole() {
        let digest = "sha256:".to_owned() + &"0".repeat(64);
        assert_eq!(wrap(&format!("35 rules, {digest}"), 40), ["35 rules,", digest.as_str()]);
        assert_eq!(wrap("", 40), [""]);
        assert_eq!(wrap("é é é", 3), ["é é", "é"]);
    }
}
