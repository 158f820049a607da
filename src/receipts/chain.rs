//! Verification: whether entries and signed heads are the one line that was written.

use countersign_erp_source::Timestamp;

use super::receipt::ReceiptText;
use super::{Digest, Entry, HeadError, LedgerPublicKey, ReceiptKind, SignedHead, genesis, link};

/// A chain that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub store: String,
    pub count: i64,
    /// The hash of the newest entry.
    pub last: Digest,
}

/// The first thing that is wrong with a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainFault {
    #[error("there are no receipts")]
    Empty,
    #[error("receipt {expected} is missing or out of place: {found} stands there")]
    OutOfPlace { expected: i64, found: i64 },
    #[error("receipt {seq} does not follow the one before it")]
    Broken { seq: i64 },
    #[error("receipt {seq} was altered")]
    Altered { seq: i64 },
    #[error("receipt {seq} is not a receipt of this version")]
    Unreadable { seq: i64 },
    #[error("receipt {seq} is not written in the one way that a receipt is")]
    NotCanonical { seq: i64 },
    #[error("receipt {seq} is of store `{store}`")]
    OtherStore { seq: i64, store: String },
    #[error("column `{column}` of receipt {seq} is not what the receipt says")]
    ColumnDiffers { seq: i64, column: &'static str },
    #[error("the signed head at {seq} cannot be believed")]
    HeadForged {
        seq: i64,
        #[source]
        source: HeadError,
    },
    #[error("the signed head at {seq} is not of this chain: it was signed for another")]
    HeadDiffers { seq: i64 },
    #[error("the last receipt {last} has no signed head")]
    HeadMissing { last: i64 },
    #[error("a head is signed for receipt {seq}, but the last one is {last}")]
    HeadBeyond { seq: i64, last: i64 },
    #[error("the kept checkpoint cannot be believed")]
    KeptForged(#[source] HeadError),
    #[error("the kept checkpoint is of store `{kept}`, not of `{store}`")]
    KeptOfOtherStore { kept: String, store: String },
    #[error("the chain ends at {last}, but the kept checkpoint vouches for {kept}")]
    Cut { last: i64, kept: i64 },
    #[error("receipt {seq} is not the one that the kept checkpoint vouches for")]
    Forked { seq: i64 },
}

/// Verifies a whole chain in memory.
///
/// `heads` are the stored heads with the number in their column, in order; `kept` is the newest
/// checkpoint that was kept elsewhere, without which a cut at the end cannot be seen.
pub fn verify(
    store: &str,
    entries: impl IntoIterator<Item = Entry>,
    heads: impl IntoIterator<Item = (i64, String)>,
    key: &LedgerPublicKey,
    kept: Option<&SignedHead>,
) -> Result<Verified, ChainFault> {
    let mut verifier = Verifier::new(store, key, kept)?;
    verifier.part(entries, heads)?;
    verifier.finish()
}

/// Verifies a chain that comes in parts, each as long as it likes.
#[derive(Debug)]
pub struct Verifier {
    store: String,
    key: LedgerPublicKey,
    kept: Option<SignedHead>,
    /// Number and hash of the newest entry seen.
    seq: i64,
    hash: Digest,
    /// The number of the newest signed head seen.
    signed: i64,
}

impl Verifier {
    pub fn new(
        store: &str,
        key: &LedgerPublicKey,
        kept: Option<&SignedHead>,
    ) -> Result<Self, ChainFault> {
        if let Some(kept) = kept {
            let head = kept.verify(key).map_err(ChainFault::KeptForged)?;
            if head.store != store {
                let (kept, store) = (head.store.clone(), store.to_owned());
                return Err(ChainFault::KeptOfOtherStore { kept, store });
            }
        }
        Ok(Self {
            store: store.to_owned(),
            key: *key,
            kept: kept.cloned(),
            seq: 0,
            hash: genesis(store),
            signed: 0,
        })
    }

    /// The next entries, and the signed heads that are for them.
    pub fn part(
        &mut self,
        entries: impl IntoIterator<Item = Entry>,
        heads: impl IntoIterator<Item = (i64, String)>,
    ) -> Result<(), ChainFault> {
        let mut heads = heads.into_iter().peekable();
        for entry in entries {
            self.entry(&entry)?;
            while let Some((seq, note)) = heads.next_if(|(seq, _)| *seq <= entry.seq) {
                self.head(seq, &note)?;
            }
        }
        heads.try_for_each(|(seq, note)| self.head(seq, &note))
    }

    /// The number of the newest entry seen.
    pub fn seq(&self) -> i64 {
        self.seq
    }

    /// The next entry, as the store keeps it.
    fn entry(&mut self, entry: &Entry) -> Result<(), ChainFault> {
        let seq = entry.seq;
        self.expect(seq)?;
        if entry.prev != self.hash {
            return Err(ChainFault::Broken { seq });
        }
        if entry.content != Digest::of(&[&entry.bytes]) {
            return Err(ChainFault::Altered { seq });
        }
        self.advance(seq, entry.content, entry.hash)?;
        let text = self.read(seq, &entry.bytes)?;
        let differs = |column| Err(ChainFault::ColumnDiffers { seq, column });
        if text.kind != entry.kind {
            return differs("kind");
        }
        if text.company != entry.company {
            return differs("company");
        }
        if text.operation != entry.operation {
            return differs("operation");
        }
        match Timestamp::parse(&text.at) {
            Ok(at) if at.as_millis() == entry.at_ms => Ok(()),
            Ok(_) | Err(_) => differs("at"),
        }
    }

    /// The next entry as nothing but its bytes and its hash; gives its company.
    pub(super) fn whole(
        &mut self,
        seq: i64,
        bytes: &[u8],
        hash: Digest,
    ) -> Result<Option<String>, ChainFault> {
        self.expect(seq)?;
        self.advance(seq, Digest::of(&[bytes]), hash)?;
        Ok(self.read(seq, bytes)?.company)
    }

    /// The next entry when only the digest of its bytes may be seen.
    pub(super) fn hashed(
        &mut self,
        seq: i64,
        content: Digest,
        hash: Digest,
    ) -> Result<(), ChainFault> {
        self.expect(seq)?;
        self.advance(seq, content, hash)
    }

    /// A signed head for the newest entry, with the number in its column.
    pub(super) fn head(&mut self, seq: i64, note: &str) -> Result<(), ChainFault> {
        let forged = |source| ChainFault::HeadForged { seq, source };
        let signed = SignedHead::parse(note).map_err(forged)?;
        let head = signed.verify(&self.key).map_err(forged)?;
        if seq > self.seq {
            return Err(ChainFault::HeadBeyond { seq, last: self.seq });
        }
        if head.store != self.store
            || head.seq != seq
            || seq != self.seq
            || head.hash != self.hash
            || seq <= self.signed
        {
            return Err(ChainFault::HeadDiffers { seq });
        }
        self.signed = seq;
        Ok(())
    }

    /// Says that nothing follows.
    pub fn finish(self) -> Result<Verified, ChainFault> {
        if let Some(kept) = &self.kept
            && kept.head().seq > self.seq
        {
            return Err(ChainFault::Cut { last: self.seq, kept: kept.head().seq });
        }
        if self.seq == 0 {
            // Every store begins with the receipt of its making.
            return Err(ChainFault::Empty);
        }
        if self.signed != self.seq {
            return Err(ChainFault::HeadMissing { last: self.seq });
        }
        Ok(Verified { store: self.store, count: self.seq, last: self.hash })
    }

    fn expect(&self, found: i64) -> Result<(), ChainFault> {
        let expected = self.seq.saturating_add(1);
        if found == expected { Ok(()) } else { Err(ChainFault::OutOfPlace { expected, found }) }
    }

    fn advance(&mut self, seq: i64, content: Digest, hash: Digest) -> Result<(), ChainFault> {
        if hash != link(self.hash, content) {
            return Err(ChainFault::Broken { seq });
        }
        if let Some(kept) = &self.kept
            && kept.head().seq == seq
            && kept.head().hash != hash
        {
            return Err(ChainFault::Forked { seq });
        }
        (self.seq, self.hash) = (seq, hash);
        Ok(())
    }

    fn read(&self, seq: i64, bytes: &[u8]) -> Result<ReceiptText, ChainFault> {
        let text: ReceiptText =
            serde_json::from_slice(bytes).ok().ok_or(ChainFault::Unreadable { seq })?;
        let at = Timestamp::parse(&text.at).ok().map(|at| at.to_string());
        if text.v != 1 || ReceiptKind::find(&text.kind).is_none() || at.as_ref() != Some(&text.at) {
            return Err(ChainFault::Unreadable { seq });
        }
        if text.store != self.store {
            return Err(ChainFault::OtherStore { seq, store: text.store });
        }
        // Bytes with a member twice would say one thing to this reader and another to the next.
        if text.canonical().is_ok_and(|canonical| canonical == bytes) {
            Ok(text)
        } else {
            Err(ChainFault::NotCanonical { seq })
        }
    }
}
