//! A sanctions list from a file, and none.

use std::collections::HashSet;
use std::path::Path;

use async_trait::async_trait;
use countersign_erp_source::{Iban, NoAnswer, SanctionsScreen, Screening};

use crate::file::{File, FileError, numbered};

/// A list from a TOML file with the `sanctioned_ibans` of a world file, read once.
pub struct FileSanctions {
    listed: HashSet<Iban>,
}

/// No list: nothing is checked, and nothing is said to be clean.
#[derive(Debug)]
pub struct NoSanctions;

impl FileSanctions {
    /// Reads the file.
    ///
    /// # Errors
    /// [`FileError`] names the file and the row.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let (file, rows) = File::rows(path, "sanctioned_ibans")?;
        let mut listed = HashSet::new();
        for (number, row) in numbered(rows) {
            let text = file.text_of(number, row)?;
            listed.insert(file.iban(number, &text)?);
        }
        Ok(Self { listed })
    }
}

/// Numbers stay out of it.
impl std::fmt::Debug for FileSanctions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSanctions").field("listed", &self.listed.len()).finish()
    }
}

#[async_trait]
impl SanctionsScreen for FileSanctions {
    #[expect(clippy::unnecessary_literal_bound, reason = "the port leaves the name to its owner")]
    fn list(&self) -> &str {
        "file"
    }

    async fn screen(&self, iban: &Iban) -> Result<Screening, NoAnswer> {
        Ok(if self.listed.contains(iban) { Screening::Listed } else { Screening::NotListed })
    }
}

#[async_trait]
impl SanctionsScreen for NoSanctions {
    #[expect(clippy::unnecessary_literal_bound, reason = "the port leaves the name to its owner")]
    fn list(&self) -> &str {
        "none"
    }

    async fn screen(&self, _iban: &Iban) -> Result<Screening, NoAnswer> {
        Ok(Screening::NotChecked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::written;

    const ACME: &str = "FR7630006000011234567890189";
    const OTHER: &str = "FR1420041010050500013M02606";

    async fn screened(list: &dyn SanctionsScreen, iban: &str) -> Screening {
        list.screen(&Iban::parse(iban).unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn what_is_on_the_list_is_listed_however_it_is_written() {
        for spelling in [ACME, "FR76 3000 6000 0112 3456 7890 189", "fr7630006000011234567890189"] {
            let (_dir, path) = written(&format!("sanctioned_ibans = [\"{spelling}\"]"));
            let list = FileSanctions::open(&path).unwrap();
            assert_eq!(list.list(), "file");
            assert_eq!(screened(&list, ACME).await, Screening::Listed);
            assert_eq!(screened(&list, OTHER).await, Screening::NotListed);
            assert_eq!(format!("{list:?}"), "FileSanctions { listed: 1 }");
        }
    }

    #[test]
    fn a_list_that_is_missing_or_holds_something_else_is_refused() {
        let refused = |text: &str| {
            let (_dir, path) = written(text);
            FileSanctions::open(&path).unwrap_err().to_string()
        };
        assert!(refused("").ends_with("write `sanctioned_ibans = []` if it is empty"));
        assert!(refused("sanctioned_iban = []").contains("`sanctioned_ibans` must be a list"));
        let text = refused(&format!("sanctioned_ibans = [\"{ACME}\", \"Evil Corp\"]"));
        assert!(text.contains("sanctioned_ibans row 2: not a valid IBAN"), "{text}");
        let text = refused("sanctioned_ibans = [7]");
        assert!(text.contains("sanctioned_ibans row 1: it must be a text"), "{text}");
        assert!(refused("sanctioned_ibans = []\nx = 1").contains("unknown key `x`"));
    }

    #[tokio::test]
    async fn without_a_list_nothing_is_said_to_be_clean() {
        assert_eq!(NoSanctions.list(), "none");
        assert_eq!(screened(&NoSanctions, ACME).await, Screening::NotChecked);
    }
}
