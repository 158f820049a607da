//! The chain and its exports: whole ones verify, and no planted change goes unseen.

use countersign::receipts::{
    ChainFault, Digest, Entry, ExportFault, ExportHeader, ExportWriter, Head, LedgerKey,
    ReceiptKind, SignedHead, genesis, link, verify, verify_export,
};
use countersign_erp_source::Clock;
use proptest::prelude::*;

use crate::support::{StandingClock, receipt};

const STORE: &str = "st_1";
/// A head is signed after each that many entries.
const GROUP: i64 = 3;

#[derive(Debug, Clone)]
struct Ledger {
    entries: Vec<Entry>,
    heads: Vec<(i64, String)>,
}

fn key() -> LedgerKey {
    LedgerKey::from_seed(&[7; 32]).unwrap()
}

fn sign(seq: i64, hash: Digest, key: &LedgerKey) -> SignedHead {
    Head { store: STORE.to_owned(), seq, hash, at: StandingClock.now() }.sign(key)
}

impl Ledger {
    fn of(count: i64) -> Self {
        let mut ledger = Self { entries: Vec::new(), heads: Vec::new() };
        let mut prev = genesis(STORE);
        for seq in 1..=count {
            let entry =
                Entry::behind(prev, seq, receipt(ReceiptKind::Decision, seq), STORE).unwrap();
            prev = entry.hash;
            if seq % GROUP == 0 || seq == count {
                ledger.heads.push((seq, sign(seq, prev, &key()).to_text()));
            }
            ledger.entries.push(entry);
        }
        ledger
    }

    fn kept(&self) -> SignedHead {
        SignedHead::parse(&self.heads.last().unwrap().1).unwrap()
    }

    fn verify(&self, kept: Option<&SignedHead>) -> Result<i64, ChainFault> {
        let (entries, heads) = (self.entries.clone(), self.heads.clone());
        verify(STORE, entries, heads, key().public(), kept).map(|verified| verified.count)
    }

    /// Makes everything from that index on anew, and signs it with that key.
    fn rewrite(&mut self, from: usize, key: &LedgerKey) {
        let mut prev = self.entries[from].prev;
        for entry in &mut self.entries[from..] {
            let other = receipt(ReceiptKind::Alarm, entry.seq);
            *entry = Entry::behind(prev, entry.seq, other, STORE).unwrap();
            prev = entry.hash;
        }
        for (seq, note) in &mut self.heads {
            let index = usize::try_from(*seq).unwrap() - 1;
            if index >= from {
                *note = sign(*seq, self.entries[index].hash, key).to_text();
            }
        }
    }

    /// Takes away everything after the first `count`.
    fn cut(&mut self, count: usize) {
        self.entries.truncate(count);
        self.heads.retain(|(seq, _)| usize::try_from(*seq).unwrap() <= count);
        // As a thief of the key would do.
        if let Some(last) = self.entries.last()
            && self.heads.last().is_none_or(|(seq, _)| *seq < last.seq)
        {
            self.heads.push((last.seq, sign(last.seq, last.hash, &key()).to_text()));
        }
    }
}

#[derive(Debug, Clone)]
enum Change {
    Byte(usize, usize, u8),
    Hash(usize, usize, u8),
    Column(usize, u8),
    Delete(usize),
    Double(usize),
    Swap(usize, usize),
    SwapWithNumbers(usize, usize),
    Cut(usize),
    RewriteWithoutKey(usize),
    RewriteWithKey(usize),
    DropNewestHead,
    Note(usize, usize),
    SwapHeads,
}

fn flip(digest: &mut Digest, at: usize, bit: u8) {
    let mut bytes = *digest.as_bytes();
    bytes[at % 32] ^= 1 << bit;
    *digest = Digest::from_bytes(bytes);
}

impl Change {
    fn any() -> impl Strategy<Value = Self> {
        let index = any::<usize>;
        prop_oneof![
            (index(), index(), 0..8_u8).prop_map(|(i, at, bit)| Self::Byte(i, at, bit)),
            (index(), 0..96_usize, 0..8_u8).prop_map(|(i, at, bit)| Self::Hash(i, at, bit)),
            (index(), 0..4_u8).prop_map(|(i, column)| Self::Column(i, column)),
            index().prop_map(Self::Delete),
            index().prop_map(Self::Double),
            (index(), index()).prop_map(|(i, j)| Self::Swap(i, j)),
            (index(), index()).prop_map(|(i, j)| Self::SwapWithNumbers(i, j)),
            index().prop_map(Self::Cut),
            index().prop_map(Self::RewriteWithoutKey),
            index().prop_map(Self::RewriteWithKey),
            Just(Self::DropNewestHead),
            (index(), index()).prop_map(|(i, at)| Self::Note(i, at)),
            Just(Self::SwapHeads),
        ]
    }

    fn apply(&self, ledger: &mut Ledger) {
        let count = ledger.entries.len();
        let two = |i: usize, j: usize| {
            let i = i % count;
            (i, (i + 1 + j % (count - 1)) % count)
        };
        match *self {
            Self::Byte(i, at, bit) => {
                let bytes = &mut ledger.entries[i % count].bytes;
                let at = at % bytes.len();
                bytes[at] ^= 1 << bit;
            }
            Self::Hash(i, at, bit) => {
                let entry = &mut ledger.entries[i % count];
                let which = [&mut entry.content, &mut entry.prev, &mut entry.hash];
                for (number, digest) in which.into_iter().enumerate() {
                    if number == at / 32 {
                        flip(digest, at, bit);
                    }
                }
            }
            Self::Column(i, column) => {
                let entry = &mut ledger.entries[i % count];
                match column {
                    0 => entry.kind = "alarm".to_owned(),
                    1 => entry.company = Some("other".to_owned()),
                    2 => entry.operation = None,
                    _ => entry.at_ms += 1,
                }
            }
            Self::Delete(i) => drop(ledger.entries.remove(i % count)),
            Self::Double(i) => ledger.entries.insert(i % count, ledger.entries[i % count].clone()),
            Self::Swap(i, j) => {
                let (i, j) = two(i, j);
                ledger.entries.swap(i, j);
            }
            Self::SwapWithNumbers(i, j) => {
                let (i, j) = two(i, j);
                ledger.entries.swap(i, j);
                let seq = ledger.entries[i].seq;
                ledger.entries[i].seq = ledger.entries[j].seq;
                ledger.entries[j].seq = seq;
            }
            Self::Cut(to) => ledger.cut(to % count),
            Self::RewriteWithoutKey(from) => {
                ledger.rewrite(from % count, &LedgerKey::from_seed(&[8; 32]).unwrap());
            }
            Self::RewriteWithKey(from) => ledger.rewrite(from % count, &key()),
            Self::DropNewestHead => drop(ledger.heads.pop()),
            Self::Note(i, at) => {
                let head = i % ledger.heads.len();
                let note = &mut ledger.heads[head].1;
                let at = at % (note.len() - 1);
                let bytes: Vec<u8> =
                    note.bytes().enumerate().map(|(i, b)| b ^ u8::from(i == at)).collect();
                *note = String::from_utf8_lossy(&bytes).into_owned();
            }
            Self::SwapHeads => {
                let note = ledger.heads[0].1.clone();
                ledger.heads[0].1 = ledger.heads[1].1.clone();
                ledger.heads[1].1 = note;
            }
        }
    }
}

proptest! {
    #[test]
    fn no_planted_change_goes_unseen(count in 4..20_i64, change in Change::any()) {
        let mut ledger = Ledger::of(count);
        let kept = ledger.kept();
        prop_assert_eq!(ledger.verify(Some(&kept)), Ok(count));
        change.apply(&mut ledger);
        prop_assert!(ledger.verify(Some(&kept)).is_err(), "{change:?}");
    }

    #[test]
    fn no_changed_byte_of_an_export_goes_unseen(at in any::<usize>(), bit in 0..7_u8) {
        let ledger = Ledger::of(7);
        let mut text = export(&ledger, Some("blue-sparrow"));
        let at = at % text.len();
        text[at] ^= 1 << bit;
        let found = verify_export(&*text, Some(key().public()), Some(&ledger.kept()));
        prop_assert!(found.is_err(), "byte {at}, bit {bit}");
    }
}

fn export(ledger: &Ledger, company: Option<&str>) -> Vec<u8> {
    let mut out = Vec::new();
    let header = ExportHeader {
        store: STORE.to_owned(),
        key: *key().public(),
        company: company.map(str::to_owned),
        count: ledger.kept().head().seq,
    };
    let mut writer = ExportWriter::new(&mut out, header).unwrap();
    for entry in &ledger.entries {
        writer.entry(entry).unwrap();
    }
    writer.finish(&ledger.kept()).unwrap();
    out
}

#[test]
fn each_fault_is_told_apart() {
    #[track_caller]
    fn check(plant: impl Fn(&mut Ledger), kept: bool, fault: &ChainFault) {
        let mut ledger = Ledger::of(6);
        let head = ledger.kept();
        plant(&mut ledger);
        assert_eq!(ledger.verify(kept.then_some(&head)).as_ref(), Err(fault));
    }
    check(|ledger| ledger.cut(0), false, &ChainFault::Empty);
    check(|ledger| ledger.cut(0), true, &ChainFault::Cut { last: 0, kept: 6 });
    check(|ledger| ledger.cut(5), true, &ChainFault::Cut { last: 5, kept: 6 });
    check(
        |ledger| drop(ledger.entries.remove(0)),
        false,
        &ChainFault::OutOfPlace { expected: 1, found: 2 },
    );
    check(|ledger| drop(ledger.entries.pop()), false, &ChainFault::HeadBeyond { seq: 6, last: 5 });
    check(|ledger| drop(ledger.heads.pop()), false, &ChainFault::HeadMissing { last: 6 });
    check(|ledger| ledger.rewrite(4, &key()), true, &ChainFault::Forked { seq: 6 });
    check(
        |ledger| ledger.heads[0].1 = ledger.heads[1].1.clone(),
        false,
        &ChainFault::HeadDiffers { seq: 3 },
    );
    check(|ledger| ledger.entries[1].bytes[9] ^= 1, false, &ChainFault::Altered { seq: 2 });
    check(
        |ledger| ledger.entries[1].company = None,
        false,
        &ChainFault::ColumnDiffers { seq: 2, column: "company" },
    );
}

#[test]
fn a_receipt_of_another_store_is_found_even_when_the_chain_is_made_anew() {
    let mut ledger = Ledger::of(1);
    let foreign =
        Entry::behind(genesis(STORE), 1, receipt(ReceiptKind::Decision, 1), "st_2").unwrap();
    assert_eq!(foreign.hash, link(genesis(STORE), foreign.content));
    ledger.heads = vec![(1, sign(1, foreign.hash, &key()).to_text())];
    ledger.entries = vec![foreign];
    let fault = ChainFault::OtherStore { seq: 1, store: "st_2".to_owned() };
    assert_eq!(ledger.verify(None), Err(fault));
}

#[test]
fn a_receipt_in_another_spelling_is_found_even_when_the_chain_is_made_anew() {
    let first = Ledger::of(1).entries.remove(0);
    let text = String::from_utf8(first.bytes.clone()).unwrap();
    for (from, to) in [
        ("\"number\":1", "\"number\":2,\"number\":1"),
        ("\"number\":1", "\"number\":1.0"),
        ("\"number\":1", "\"number\": 1"),
        ("decision", "d\\u0065cision"),
    ] {
        let bytes = text.replace(from, to).into_bytes();
        assert_ne!(bytes, first.bytes);
        let content = Digest::of(&[&bytes]);
        let hash = link(first.prev, content);
        let head = sign(1, hash, &key()).to_text();
        let entry = Entry { bytes, content, hash, ..first.clone() };
        let ledger = Ledger { entries: vec![entry], heads: vec![(1, head)] };
        assert_eq!(ledger.verify(None), Err(ChainFault::NotCanonical { seq: 1 }), "{to}");
    }
}

#[test]
fn an_export_verifies_by_itself_and_shows_one_company_only() {
    let ledger = Ledger::of(7);
    let kept = ledger.kept();
    let whole = export(&ledger, None);
    let found = verify_export(&*whole, Some(key().public()), Some(&kept)).unwrap();
    assert_eq!((found.chain.count, found.readable), (7, 7));

    let part = export(&ledger, Some("blue-sparrow"));
    let found = verify_export(&*part, Some(key().public()), Some(&kept)).unwrap();
    assert_eq!((found.chain.count, found.readable), (7, 3));
    let text = String::from_utf8(part).unwrap();
    assert!(text.contains("op_2") && !text.contains("op_1"), "{text}");
}

#[test]
fn an_export_of_another_key_or_cut_off_is_refused() {
    let ledger = Ledger::of(7);
    let whole = export(&ledger, None);
    let other = LedgerKey::from_seed(&[8; 32]).unwrap();
    let found = verify_export(&*whole, Some(other.public()), None);
    assert!(matches!(found, Err(ExportFault::OtherKey { .. })), "{found:?}");
    for length in 0..whole.len() {
        assert!(verify_export(&whole[..length], None, None).is_err(), "cut to {length}");
    }
    let twice = [whole.as_slice(), whole.as_slice()].concat();
    assert!(matches!(verify_export(&*twice, None, None), Err(ExportFault::Trailing)));
}
