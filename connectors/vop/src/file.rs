//! Reading a provider's file: TOML with the tables of a world file. It does not know what the rows
//! mean.

use std::io;
use std::path::{Path, PathBuf};

use countersign_erp_source::{Iban, IbanError};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// The most bytes that a provider's file may have.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A provider's file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file as a whole is wrong.
    #[error("`{}`: {problem}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        problem: Problem,
    },
    /// A row is wrong.
    #[error("`{}`, {table} row {row}: {problem}", path.display())]
    Row {
        /// Which file.
        path: PathBuf,
        /// `vop` or `sanctioned_ibans`.
        table: &'static str,
        /// Which row, counted from 1.
        row: usize,
        /// What is wrong.
        problem: Problem,
    },
}

/// What is wrong with a file or row. No IBAN and no vendor's name is in it, so that a log may hold
/// it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Larger than any list that belongs here.
    #[error("it is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    /// Not TOML.
    #[error("line {line}: {message}")]
    NotToml {
        /// Counted from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A key that means nothing here.
    #[error("unknown key `{0}`")]
    UnknownKey(String),
    /// The key that the file is there for is missing, or not a list.
    #[error("`{0}` must be a list; write `{0} = []` if it is empty")]
    NotAList(&'static str),
    /// A row that is no table of fields.
    #[error("it must be a table")]
    NotATable,
    /// A row that is no text.
    #[error("it must be a text")]
    NotAText,
    /// A field that is unknown, missing or of another type.
    #[error("{0}")]
    Field(String),
    /// Not one of the words that Verification of Payee answers.
    #[error("`result` must be `match`, `close_match`, `no_match` or `not_possible`")]
    UnknownResult,
    /// Not an IBAN.
    #[error("{0}")]
    Iban(IbanError),
    /// No name.
    #[error("the name is empty")]
    EmptyName,
    /// The holder's name where the scheme gives none.
    #[error("`actual_name` goes only with `close_match`")]
    ActualName,
    /// Another row has the same name and IBAN, and another answer.
    #[error("row {0} has the same name and IBAN and says something else")]
    Contradiction(usize),
}

/// A file being read, so that every error can name it.
pub(crate) struct File<'a> {
    path: &'a Path,
    table: &'static str,
}

impl<'a> File<'a> {
    /// Reads the file and gives the rows of its one list, which has that name.
    pub(crate) fn rows(
        path: &'a Path,
        table: &'static str,
    ) -> Result<(Self, Vec<Value>), FileError> {
        let file = Self { path, table };
        let text = file.content()?;
        let mut content: Table = toml::from_str(&text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count();
            let (line, message) = (line.saturating_add(1), error.message().to_owned());
            file.wrong(Problem::NotToml { line, message })
        })?;
        let Some(Value::Array(rows)) = content.remove(table) else {
            return Err(file.wrong(Problem::NotAList(table)));
        };
        if let Some(key) = content.keys().next() {
            return Err(file.wrong(Problem::UnknownKey(key.clone())));
        }
        Ok((file, rows))
    }

    /// A row's fields. They are all texts, so that what serde says repeats none of them.
    pub(crate) fn fields<T: DeserializeOwned>(
        &self,
        row: usize,
        value: Value,
    ) -> Result<T, FileError> {
        let Value::Table(fields) = value else {
            return Err(self.wrong_row(row, Problem::NotATable));
        };
        fields
            .try_into()
            .map_err(|error| self.wrong_row(row, Problem::Field(error.message().to_owned())))
    }

    /// A row that is a text by itself.
    pub(crate) fn text_of(&self, row: usize, value: Value) -> Result<String, FileError> {
        match value {
            Value::String(text) => Ok(text),
            Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::Array(_)
            | Value::Table(_) => Err(self.wrong_row(row, Problem::NotAText)),
        }
    }

    /// A row's IBAN.
    pub(crate) fn iban(&self, row: usize, text: &str) -> Result<Iban, FileError> {
        Iban::parse(text).map_err(|error| self.wrong_row(row, Problem::Iban(error)))
    }

    pub(crate) fn wrong_row(&self, row: usize, problem: Problem) -> FileError {
        FileError::Row { path: self.path.to_owned(), table: self.table, row, problem }
    }

    fn wrong(&self, problem: Problem) -> FileError {
        FileError::File { path: self.path.to_owned(), problem }
    }

    fn content(&self) -> Result<String, FileError> {
        let unreadable = |source| FileError::Unreadable { path: self.path.to_owned(), source };
        if std::fs::metadata(self.path).map_err(unreadable)?.len() > FILE_BYTES_MAX {
            return Err(self.wrong(Problem::TooLarge));
        }
        std::fs::read_to_string(self.path).map_err(unreadable)
    }
}

/// Rows with their numbers, counted from 1 as a person counts.
pub(crate) fn numbered(rows: Vec<Value>) -> impl Iterator<Item = (usize, Value)> {
    rows.into_iter().enumerate().map(|(index, row)| (index.saturating_add(1), row))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;

    /// A file with that text, in a directory that lives as long as the guard.
    pub(crate) fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("answers.toml");
        fs::write(&path, text).unwrap();
        (dir, path)
    }

    #[track_caller]
    fn refused(text: &str) -> String {
        let (_dir, path) = written(text);
        let error = File::rows(&path, "vop").map(|(_, rows)| rows).unwrap_err();
        let shown = error.to_string();
        shown.strip_prefix(&format!("`{}`", path.display())).unwrap().to_owned()
    }

    #[test]
    fn a_list_may_be_empty_but_not_missing() {
        let (_dir, path) = written("vop = []");
        assert!(File::rows(&path, "vop").is_ok_and(|(_, rows)| rows.is_empty()));
        let missing = ": `vop` must be a list; write `vop = []` if it is empty";
        assert_eq!(refused(""), missing);
        assert_eq!(refused("vop = 1"), missing);
        assert_eq!(refused("[vop]\nname = \"ACME SAS\""), missing);
    }

    #[test]
    fn what_means_nothing_here_is_refused() {
        assert_eq!(refused("vop = []\nvopp = []"), ": unknown key `vopp`");
        let text = refused("vop = []\n\nvop = [");
        assert!(text.starts_with(": line 3: "), "{text}");
    }

    #[test]
    fn an_error_never_shows_a_number() {
        let text = refused("[[vop]]\niban = \"FR7630006000011234567890189\" x");
        assert!(text.starts_with(": line 2: ") && !text.contains("FR76"), "{text}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("nowhere.toml");
        let error = File::rows(&path, "vop").map(|(_, rows)| rows).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot read `{}`", path.display()));
        assert!(std::error::Error::source(&error).is_some());
    }
}
