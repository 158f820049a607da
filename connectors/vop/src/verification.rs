//! Verification of Payee from a file, and none.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use countersign_erp_source::{Clock, Iban, NoAnswer, PayeeVerifier, VopReport, VopResult};
use serde::Deserialize;

use crate::file::{File, FileError, Problem, numbered};

/// Answers from a TOML file with the `[[vop]]` table of a world file, read once. A test provider:
/// no bank is asked.
pub struct FileVop {
    answers: HashMap<(String, Iban), VopResult>,
    clock: Arc<dyn Clock>,
}

/// No provider: every check is one that could not be made.
#[derive(Debug)]
pub struct NoVop {
    clock: Arc<dyn Clock>,
}

impl FileVop {
    /// Reads the file.
    ///
    /// # Errors
    /// [`FileError`] names the file and the row.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, FileError> {
        let (file, rows) = File::rows(path, "vop")?;
        let mut read: HashMap<(String, Iban), (usize, VopResult)> = HashMap::new();
        for (number, row) in numbered(rows) {
            let row: Row = file.fields(number, row)?;
            let iban = file.iban(number, &row.iban)?;
            let name = one_spaced(&row.name);
            let result = row.answer().map_err(|problem| file.wrong_row(number, problem))?;
            let (first, before) =
                read.entry((name, iban)).or_insert_with(|| (number, result.clone()));
            if *before != result {
                return Err(file.wrong_row(number, Problem::Contradiction(*first)));
            }
        }
        let answers = read.into_iter().map(|(pair, (_, result))| (pair, result)).collect();
        Ok(Self { answers, clock })
    }
}

impl NoVop {
    /// Makes it.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

/// Names and numbers stay out of it.
impl std::fmt::Debug for FileVop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileVop").field("answers", &self.answers.len()).finish_non_exhaustive()
    }
}

#[async_trait]
impl PayeeVerifier for FileVop {
    async fn verify(&self, name: &str, iban: &Iban) -> Result<VopReport, NoAnswer> {
        let answer = self.answers.get(&(one_spaced(name), iban.clone()));
        Ok(VopReport {
            result: answer.cloned().unwrap_or(VopResult::NoMatch),
            provider: "file".to_owned(),
            at: self.clock.now(),
        })
    }
}

#[async_trait]
impl PayeeVerifier for NoVop {
    async fn verify(&self, _name: &str, _iban: &Iban) -> Result<VopReport, NoAnswer> {
        Ok(VopReport {
            result: VopResult::NotPossible,
            provider: "none".to_owned(),
            at: self.clock.now(),
        })
    }
}

/// A row as in a world file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    iban: String,
    result: String,
    actual_name: Option<String>,
}

impl Row {
    fn answer(self) -> Result<VopResult, Problem> {
        let names = [Some(&self.name), self.actual_name.as_ref()];
        if names.into_iter().flatten().any(|name| one_spaced(name).is_empty()) {
            return Err(Problem::EmptyName);
        }
        let result = match self.result.as_str() {
            "match" => VopResult::Match,
            "close_match" => {
                return Ok(VopResult::CloseMatch { actual_name: self.actual_name });
            }
            "no_match" => VopResult::NoMatch,
            "not_possible" => VopResult::NotPossible,
            _ => return Err(Problem::UnknownResult),
        };
        if self.actual_name.is_some() {
            return Err(Problem::ActualName);
        }
        Ok(result)
    }
}

/// The name without ASCII spaces around it and with single ones inside. Any other white space is
/// part of the name: what looks alike is not the same.
fn one_spaced(name: &str) -> String {
    let words: Vec<&str> = name.split(' ').filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use countersign_erp_source::Timestamp;

    use super::*;
    use crate::file::tests::written;

    const ACME: &str = "FR7630006000011234567890189";
    const OTHER: &str = "FR1420041010050500013M02606";

    #[derive(Debug)]
    struct Noon;

    impl Clock for Noon {
        fn now(&self) -> Timestamp {
            Timestamp::parse("2026-11-30T12:00:00Z").unwrap()
        }
    }

    fn row(name: &str, iban: &str, rest: &str) -> String {
        format!("[[vop]]\nname = \"{name}\"\niban = \"{iban}\"\n{rest}\n")
    }

    fn opened(text: &str) -> FileVop {
        let (_dir, path) = written(text);
        FileVop::open(&path, Arc::new(Noon)).unwrap()
    }

    /// What is wrong with that text, without the name of the file.
    #[track_caller]
    fn refused(text: &str) -> String {
        let (_dir, path) = written(text);
        let shown = FileVop::open(&path, Arc::new(Noon)).unwrap_err().to_string();
        shown.strip_prefix(&format!("`{}`", path.display())).unwrap().to_owned()
    }

    async fn asked(verifier: &dyn PayeeVerifier, name: &str, iban: &str) -> VopReport {
        verifier.verify(name, &Iban::parse(iban).unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn each_word_is_its_answer() {
        let close =
            |name: Option<&str>| VopResult::CloseMatch { actual_name: name.map(ToOwned::to_owned) };
        for (rest, expected) in [
            ("result = \"match\"", VopResult::Match),
            ("result = \"no_match\"", VopResult::NoMatch),
            ("result = \"not_possible\"", VopResult::NotPossible),
            ("result = \"close_match\"", close(None)),
            ("result = \"close_match\"\nactual_name = \"ACME SARL\"", close(Some("ACME SARL"))),
        ] {
            let vop = opened(&row("ACME SAS", ACME, rest));
            let report = asked(&vop, "ACME SAS", ACME).await;
            assert_eq!(report.result, expected, "{rest}");
            assert_eq!((report.provider.as_str(), report.at), ("file", Noon.now()));
        }
    }

    #[tokio::test]
    async fn a_pair_that_is_not_listed_does_not_match() {
        let vop = opened(&row("ACME SAS", ACME, "result = \"match\""));
        for (name, iban) in [
            ("ACME SAS", OTHER),
            ("ACME", ACME),
            ("Acme SAS", ACME),
            ("ACMESAS", ACME),
            ("ACME\u{a0}SAS", ACME),
            ("ACME\tSAS", ACME),
            ("АCME SAS", ACME),
            ("", ACME),
        ] {
            assert_eq!(asked(&vop, name, iban).await.result, VopResult::NoMatch, "`{name}`");
        }
        let report = asked(&opened("vop = []"), "ACME SAS", ACME).await;
        assert_eq!(report.result, VopResult::NoMatch);
    }

    #[tokio::test]
    async fn spaces_around_and_between_do_not_count() {
        let grouped = "fr76 3000 6000 0112 3456 7890 189";
        let vop = opened(&row(" ACME  SAS", grouped, "result = \"match\""));
        for name in ["ACME SAS", "  ACME   SAS "] {
            assert_eq!(asked(&vop, name, ACME).await.result, VopResult::Match, "`{name}`");
        }
    }

    #[test]
    fn a_wrong_row_is_named() {
        let sound = row("ACME SAS", OTHER, "result = \"match\"");
        let second = |row: String| refused(&format!("{sound}{row}"));
        let text = second(row("ACME SAS", "FR7630006000011234567890188", "result = \"match\""));
        assert!(text.starts_with(", vop row 2: not a valid IBAN"), "{text}");
        for wrong in ["maybe", "Match", "", ACME] {
            let text = second(row("ACME SAS", ACME, &format!("result = \"{wrong}\"")));
            assert_eq!(
                text,
                ", vop row 2: `result` must be `match`, `close_match`, `no_match` or `not_possible`"
            );
        }
        let text = second(row("ACME SAS", ACME, "result = 1"));
        assert!(text.starts_with(", vop row 2: invalid type"), "{text}");
        let text = second(row("ACME SAS", ACME, "result = \"match\"\nnote = \"x\""));
        assert!(text.starts_with(", vop row 2: unknown field `note`"), "{text}");
        let text = second(row("ACME SAS", ACME, ""));
        assert_eq!(text, ", vop row 2: missing field `result`");
        let text = second(row("  ", ACME, "result = \"match\""));
        assert_eq!(text, ", vop row 2: the name is empty");
        let text = second(row("ACME SAS", ACME, "result = \"match\"\nactual_name = \"ACME\""));
        assert_eq!(text, ", vop row 2: `actual_name` goes only with `close_match`");
        assert_eq!(refused(&format!("vop = [\"{ACME}\"]")), ", vop row 1: it must be a table");
    }

    #[test]
    fn two_rows_of_one_pair_agree() {
        let one = row("ACME SAS", ACME, "result = \"match\"");
        let same = row("ACME  SAS", "FR76 30006000011234567890189", "result = \"match\"");
        assert_eq!(opened(&format!("{one}{same}")).answers.len(), 1);
        let differs = row("ACME SAS ", ACME, "result = \"no_match\"");
        assert_eq!(
            refused(&format!("{one}{same}{differs}")),
            ", vop row 3: row 1 has the same name and IBAN and says something else"
        );
        let close = |name: &str| {
            row("ACME SAS", ACME, &format!("result = \"close_match\"\nactual_name = \"{name}\""))
        };
        assert!(refused(&format!("{}{}", close("A"), close("B"))).contains("row 2: row 1"));
    }

    #[test]
    fn nothing_of_the_file_is_printed() {
        let vop = opened(&row("ACME SAS", ACME, "result = \"match\""));
        assert_eq!(format!("{vop:?}"), "FileVop { answers: 1, .. }");
    }

    #[tokio::test]
    async fn no_provider_is_never_a_match() {
        let report = asked(&NoVop::new(Arc::new(Noon)), "ACME SAS", ACME).await;
        assert_eq!(report.result, VopResult::NotPossible);
        assert_eq!((report.provider.as_str(), report.at), ("none", Noon.now()));
    }
}
