//! A chain in a file that verifies without the store: one JSON line for each entry between a header
//! and the newest signed head.
//!
//! In an export for one company the entries of all others are there as digests only, so that the
//! chain can be followed and nothing of theirs be read.

use std::io::{BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use super::{ChainFault, Digest, Entry, LedgerPublicKey, SignedHead, Verified, Verifier};

const FORMAT: &str = "countersign/export/v1";
/// More than the largest receipt takes as a text within a text.
const LINE_MAX: u64 = 16 << 20;

/// What an export says of itself in its first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportHeader {
    pub store: String,
    pub key: LedgerPublicKey,
    /// Whose entries are whole; all are if there is none.
    pub company: Option<String>,
    pub count: i64,
}

/// An export that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedExport {
    pub header: ExportHeader,
    pub chain: Verified,
    /// How many entries can be read; the others are there as digests.
    pub readable: i64,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportFault {
    #[error("cannot read the export")]
    Io(#[source] std::io::Error),
    #[error("line {line} is not what an export of this version holds there")]
    Malformed { line: u64 },
    #[error("line {line} is too long")]
    TooLong { line: u64 },
    #[error("the export ends before its last line")]
    Unfinished,
    #[error("something follows the export's last line")]
    Trailing,
    #[error("the export is signed by ledger key `{found}`, not by `{trusted}`")]
    OtherKey { found: String, trusted: String },
    #[error("receipt {seq} cannot be read, in an export of everything")]
    Hidden { seq: i64 },
    #[error("receipt {seq} is of another company than the export")]
    OtherCompany { seq: i64 },
    #[error(transparent)]
    Chain(#[from] ChainFault),
}

/// Writes an export, entry by entry.
#[derive(Debug)]
pub struct ExportWriter<W> {
    out: W,
    company: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderLine {
    format: String,
    store: String,
    public_key: String,
    company: Option<String>,
    count: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryLine {
    seq: i64,
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadLine {
    head: String,
}

impl<W: Write> ExportWriter<W> {
    pub fn new(out: W, header: ExportHeader) -> std::io::Result<Self> {
        let ExportHeader { store, key, company, count } = header;
        let mut writer = Self { out, company: company.clone() };
        let (format, public_key) = (FORMAT.to_owned(), key.to_hex());
        writer.line(&HeaderLine { format, store, public_key, company, count })?;
        Ok(writer)
    }

    /// The next entry: whole if it may be read, else its digest.
    pub fn entry(&mut self, entry: &Entry) -> std::io::Result<()> {
        let readable = self.company.is_none() || self.company == entry.company;
        let text = String::from_utf8(entry.bytes.clone()).ok().filter(|_| readable);
        let content = text.is_none().then(|| entry.content.to_string());
        let hash = entry.hash.to_string();
        self.line(&EntryLine { seq: entry.seq, hash, receipt: text, content })
    }

    pub fn finish(mut self, head: &SignedHead) -> std::io::Result<()> {
        self.line(&HeadLine { head: head.to_text() })?;
        self.out.flush()
    }

    fn line(&mut self, line: &impl Serialize) -> std::io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }
}

/// Verifies an export against the key that is trusted and the checkpoint that was kept elsewhere.
///
/// Without a trusted key the export vouches for itself only, by the key in its header: compare
/// that with one had from elsewhere. Whether an entry of the company was left unreadable among the
/// others' cannot be seen.
pub fn verify_export(
    mut reader: impl BufRead,
    trusted: Option<&LedgerPublicKey>,
    kept: Option<&SignedHead>,
) -> Result<VerifiedExport, ExportFault> {
    let mut lines = Lines { reader: &mut reader, number: 0 };
    let header = header_of(&lines.required()?)?;
    if let Some(trusted) = trusted.filter(|trusted| **trusted != header.key) {
        let (found, trusted) = (header.key.id(), trusted.id());
        return Err(ExportFault::OtherKey { found, trusted });
    }
    let mut verifier = Verifier::new(&header.store, &header.key, kept)?;
    let mut readable: i64 = 0;
    let mut seq: i64 = 0;
    while seq < header.count {
        let line: EntryLine = lines.parsed()?;
        seq = line.seq;
        let malformed = ExportFault::Malformed { line: lines.number };
        let hash = Digest::parse(&line.hash);
        match (hash, line.receipt, line.content.as_deref().map(Digest::parse)) {
            (Ok(hash), Some(text), None) => {
                let company = verifier.whole(seq, text.as_bytes(), hash)?;
                if header.company.is_some() && header.company != company {
                    return Err(ExportFault::OtherCompany { seq });
                }
                readable = readable.saturating_add(1);
            }
            (Ok(hash), None, Some(Ok(content))) => {
                verifier.hashed(seq, content, hash)?;
                if header.company.is_none() {
                    return Err(ExportFault::Hidden { seq });
                }
            }
            _ => return Err(malformed),
        }
    }
    let last: HeadLine = lines.parsed()?;
    verifier.head(seq, &last.head)?;
    let chain = verifier.finish()?;
    if lines.next()?.is_some() {
        return Err(ExportFault::Trailing);
    }
    Ok(VerifiedExport { header, chain, readable })
}

fn header_of(text: &str) -> Result<ExportHeader, ExportFault> {
    let malformed = || ExportFault::Malformed { line: 1 };
    let line: HeaderLine = serde_json::from_str(text).ok().ok_or_else(malformed)?;
    let key = LedgerPublicKey::parse(&line.public_key).ok().ok_or_else(malformed)?;
    if line.format != FORMAT {
        return Err(malformed());
    }
    Ok(ExportHeader { store: line.store, key, company: line.company, count: line.count })
}

struct Lines<R> {
    reader: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<String>, ExportFault> {
        self.number = self.number.saturating_add(1);
        let line = self.number;
        let mut text = String::new();
        let read = self.reader.by_ref().take(LINE_MAX).read_line(&mut text);
        match read.map_err(ExportFault::Io)? {
            0 => Ok(None),
            _ if text.ends_with('\n') => Ok(Some(text)),
            length if u64::try_from(length).is_ok_and(|length| length >= LINE_MAX) => {
                Err(ExportFault::TooLong { line })
            }
            _ => Err(ExportFault::Unfinished),
        }
    }

    fn required(&mut self) -> Result<String, ExportFault> {
        self.next()?.ok_or(ExportFault::Unfinished)
    }

    fn parsed<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, ExportFault> {
        let text = self.required()?;
        let line = self.number;
        serde_json::from_str(&text).ok().ok_or(ExportFault::Malformed { line })
    }
}
