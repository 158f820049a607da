//! Changes planted into exports one by one. Of each is said what the verifier in Python finds and
//! what the daemon's own does; only what a receipt means is left to the first alone.

use std::path::Path;
use std::process::Command;

use countersign::receipts::{Digest, LedgerKey, ReceiptKind};
use serde_json::json;

use super::{Export, Exports, Given, Said, examples, python};
use super::{meant, signed};

/// What the daemon's own verifier says of a change.
#[derive(Debug, Clone, Copy)]
pub(super) enum Own {
    Bad(&'static str),
    /// It does not look at what a receipt means.
    Good,
}

use Own::{Bad, Good};

/// A store's exports, and both verifiers.
pub(super) struct Scene<'a> {
    pub(super) exports: &'a Exports,
    python: &'a Path,
}

pub(super) fn another_key() -> LedgerKey {
    LedgerKey::from_seed(&[9; 32]).unwrap()
}

impl Scene<'_> {
    /// Plants a change into the whole export, which is compared with nothing kept.
    #[track_caller]
    pub(super) fn alone(&self, what: &str, plant: impl Fn(&mut Export), python: &str, own: Own) {
        self.change(what, &self.exports.whole, plant, false, python, own);
    }

    /// The same in the export of one company.
    #[track_caller]
    pub(super) fn company(&self, what: &str, plant: impl Fn(&mut Export), python: &str, own: Own) {
        self.change(what, &self.exports.company, plant, false, python, own);
    }

    /// Plants a change into the whole export, of which the checkpoint file was kept.
    #[track_caller]
    pub(super) fn kept(&self, what: &str, plant: impl Fn(&mut Export), python: &str, own: Own) {
        self.change(what, &self.exports.whole, plant, true, python, own);
    }

    /// Plants a change that whoever has the key signs: nothing is kept to show it by the chain.
    #[track_caller]
    pub(super) fn signed(&self, what: &str, plant: impl Fn(&mut Export), python: &str, own: Own) {
        let sealed = |export: &mut Export| {
            plant(export);
            export.seal(&self.exports.key);
        };
        self.alone(what, sealed, python, own);
    }

    #[track_caller]
    fn change(
        &self,
        what: &str,
        before: &Export,
        plant: impl Fn(&mut Export),
        kept: bool,
        python: &str,
        own: Own,
    ) {
        let mut export = before.clone();
        plant(&mut export);
        let text = export.write();
        assert_ne!(text, before.write(), "{what}: nothing was changed");
        let checkpoint = kept.then(|| self.exports.checkpoint());
        self.both(what, &Given { export: text, checkpoint, public_key: None }, python, own);
    }

    /// The whole export's text with a change that its parts cannot hold.
    #[track_caller]
    fn text(&self, what: &str, plant: impl Fn(String) -> String, python: &str, own: &'static str) {
        let before = self.exports.text.clone();
        let export = plant(before.clone());
        assert_ne!(export, before, "{what}: nothing was changed");
        self.both(what, &Given { export, ..Given::default() }, python, Bad(own));
    }

    /// Says of a limit that the documentation names that it is one.
    #[track_caller]
    pub(super) fn unseen(&self, export: &Export, checkpoint: Option<&str>) {
        let checkpoint = checkpoint.map(ToOwned::to_owned);
        let given = Given { export: export.write(), checkpoint, public_key: None };
        given.ask_python(self.python).is_good("form one chain");
        given.ask_own().is_good("receipts verify");
    }

    #[track_caller]
    pub(super) fn both(&self, what: &str, given: &Given, python: &str, own: Own) {
        let (pythons, said) = std::thread::scope(|scope| {
            let own = scope.spawn(|| given.ask_own());
            (given.ask_python(self.python), own.join().unwrap())
        });
        pythons.is_bad(what, python);
        match own {
            Bad(expected) => said.is_bad(what, expected),
            Good => assert_eq!(said.code, Some(0), "{what}: {said:?}"),
        }
    }
}

async fn with_scene(plant: impl Fn(&Scene<'_>)) {
    let Some(python) = python() else { return };
    let exports = Exports::make().await;
    plant(&Scene { exports: &exports, python: &python });
}

#[tokio::test]
async fn every_change_to_the_chain_is_found() {
    with_scene(|scene| {
        receipts(scene);
        hidden(scene);
        places(scene);
    })
    .await;
}

#[tokio::test]
async fn every_change_to_a_line_is_found() {
    with_scene(|scene| {
        lines(scene);
        ends(scene);
    })
    .await;
}

#[tokio::test]
async fn every_change_to_head_and_checkpoint_is_found() {
    with_scene(|scene| {
        signed::heads(scene);
        signed::checkpoints(scene);
        signed::companies(scene);
    })
    .await;
}

#[tokio::test]
async fn what_whoever_has_the_key_writes_is_one_thing_to_every_reader() {
    with_scene(|scene| {
        meant::spellings(scene);
        meant::kinds_of_values(scene);
        meant::decisions(scene);
        meant::contradictions(scene);
    })
    .await;
}

pub(super) const ANOTHER_AMOUNT: (&str, &str) =
    ("\"amount\":\"1200.00 EUR\"", "\"amount\":\"1300.00 EUR\"");

pub(super) fn claim(export: &Export) -> usize {
    export.find(ReceiptKind::Claim)
}

pub(super) fn decision(export: &Export) -> usize {
    export.find(ReceiptKind::Decision)
}

/// Changes a claimed amount.
pub(super) fn forge(export: &mut Export) {
    export.edit(claim(export), ANOTHER_AMOUNT.0, ANOTHER_AMOUNT.1);
}

fn receipts(scene: &Scene<'_>) {
    let written = "it is not what was written";
    scene.alone("a byte in a receipt", forge, written, Bad("does not follow"));
    scene.alone(
        "a byte in a receipt, and its hash made to fit",
        |export| {
            forge(export);
            let at = claim(export);
            let mut other = export.clone();
            other.chain_anew();
            export.entries[at]["hash"] = other.entries[at]["hash"].clone();
        },
        written,
        Bad("does not follow"),
    );
    scene.alone(
        "a byte in a receipt, and the chain made anew",
        |export| {
            forge(export);
            export.chain_anew();
        },
        "the signed head: it was signed for another chain",
        Bad("was signed for another"),
    );
    scene.alone(
        "a receipt replaced by its digest, which fits no more",
        |export| {
            export.entries[3] = json!({ "seq": 4, "hash": export.entries[3]["hash"],
                "content": Digest::of(&[b"another"]).to_string() });
        },
        written,
        Bad("does not follow"),
    );
}

fn hidden(scene: &Scene<'_>) {
    let hide = |export: &mut Export| {
        let entry = &export.entries[3];
        let content = Digest::of(&[entry["receipt"].as_str().unwrap().as_bytes()]).to_string();
        let shown = json!({ "seq": 4, "hash": entry["hash"], "content": content });
        export.entries[3] = shown;
    };
    scene.alone(
        "a receipt hidden behind its own digest, in an export of everything",
        hide,
        "receipt 4: it cannot be read, in an export of everything",
        Bad("receipt 4 cannot be read"),
    );
}

fn places(scene: &Scene<'_>) {
    scene.alone(
        "two swapped",
        |export| export.entries.swap(4, 5),
        "receipt 6 stands there",
        Bad("receipt 5 is missing or out of place"),
    );
    scene.alone(
        "two swapped with their numbers",
        |export| {
            export.entries.swap(4, 5);
            (export.entries[4]["seq"], export.entries[5]["seq"]) = (5.into(), 6.into());
        },
        "receipt 5: it is not what was written, or does not follow",
        Bad("receipt 5 does not follow"),
    );
    let drop_one = |export: &mut Export| drop(export.entries.remove(4));
    scene.alone("one dropped", drop_one, "receipt 6 stands there", Bad("out of place"));
    scene.alone(
        "one dropped, the rest numbered anew",
        |export| {
            export.entries.remove(4);
            for (at, entry) in export.entries.iter_mut().enumerate() {
                entry["seq"] = (at + 1).into();
            }
            export.header["count"] = export.entries.len().into();
        },
        "receipt 5: it is not what was written, or does not follow",
        Bad("receipt 5 does not follow"),
    );
    scene.alone(
        "one inserted",
        |export| export.entries.insert(4, export.entries[4].clone()),
        "receipt 5 stands there",
        Bad("out of place"),
    );
    scene.alone(
        "one inserted, and the chain made anew",
        |export| {
            export.entries.insert(4, export.entries[4].clone());
            export.chain_anew();
        },
        "the signed head: it is for receipt",
        Bad("was signed for another"),
    );
    scene.alone(
        "the last ones cut off under the head of all",
        |export| {
            export.entries.truncate(6);
            export.header["count"] = 6.into();
        },
        "the signed head: it is for receipt",
        Bad("was signed for another"),
    );
    scene.alone(
        "another count",
        |export| export.header["count"] = 6.into(),
        "line 8, the signed head: the member",
        Bad("line 8 is not what"),
    );
    scene.alone(
        "a count beyond the end",
        |export| export.header["count"] = 9999.into(),
        "the member",
        Bad("is not what an export"),
    );
    scene.alone(
        "a count of nothing",
        |export| export.header["count"] = 0.into(),
        "`count` is not the number of receipts",
        Bad("is not what an export"),
    );
}

fn lines(scene: &Scene<'_>) {
    let malformed = "is not what an export of this version holds there";
    scene.text(
        "a member of a line twice",
        |text| text.replacen("{\"seq\":1,", "{\"seq\":1,\"seq\":1,", 1),
        "line 2, receipt 1: the member `seq` is there twice",
        malformed,
    );
    scene.text(
        "a member too many in a line",
        |text| text.replacen("{\"seq\":1,", "{\"extra\":1,\"seq\":1,", 1),
        "the member `extra` is missing, or must not be there",
        malformed,
    );
    scene.text(
        "a number that is not whole in a line",
        |text| text.replacen("{\"seq\":1,", "{\"seq\":1.0,", 1),
        "`1.0` is not a whole number",
        malformed,
    );
    scene.text(
        "a yes for a number in a line",
        |text| text.replacen("{\"seq\":1,", "{\"seq\":true,", 1),
        "receipt True stands there",
        malformed,
    );
    for (from, to, python) in [
        ("{\"format\"", "{\"more\":1,\"format\"", "line 1: the member `more`"),
        ("\"store\":\"st_", "\"store\":7,\"more\":\"st_", "line 1: the member `more`"),
        ("\"company\":null", "\"company\":7", "line 1: `company` is not a text"),
        ("\"public_key\":\"", "\"public_key\":\"g", "line 1: `public_key` is not 64 digits"),
        ("\"hash\":\"", "\"hash\":\"g", "line 2, receipt 1: `hash` is not a digest"),
        ("{\"seq\":1,", "[{\"seq\":1,", "line 2, receipt 1: it is not JSON"),
        ("\"head\":\"", "\"head\":7,\"more\":\"", "the signed head: the member `more`"),
    ] {
        scene.text(to, |text| text.replacen(from, to, 1), python, malformed);
    }
    scene.text(
        "a head that is no text",
        |text| format!("{}\n{{\"head\":7}}\n", text.trim_end().rsplit_once('\n').unwrap().0),
        "`head` is not a text",
        malformed,
    );
    scene.text(
        "a receipt that is no text",
        |text| {
            let (before, after) = text.split_once(",\"receipt\":").unwrap();
            let (_, after) = after.split_once("}\n").unwrap();
            format!("{before},\"receipt\":7}}\n{after}")
        },
        "`receipt` is not a text",
        malformed,
    );
    scene.text(
        "a digest that is none",
        |text| {
            let (before, after) = text.split_once(",\"receipt\":").unwrap();
            let (_, after) = after.split_once("}\n").unwrap();
            format!("{before},\"content\":\"g\"}}\n{after}")
        },
        "`content` is not a digest",
        malformed,
    );
    scene.text(
        "a line that is a list",
        |text| text.replacen("{\"seq\":1,", "[]\n{\"seq\":1,", 1),
        "line 2, receipt 1: it is not an object",
        malformed,
    );
    scene.text(
        "a line that does not end",
        |text| text + &" ".repeat(17 << 20),
        "it is longer than 16777216 bytes",
        "is too long",
    );
    scene.text(
        "a lone surrogate",
        |text| text.replacen("\"receipt\":\"{", "\"receipt\":\"\\ud800{", 1),
        "it holds a lone surrogate",
        malformed,
    );
    scene.text(
        "another format",
        |text| text.replacen("export/v1", "export/v2", 1),
        "line 1: it is not of the format",
        malformed,
    );
}

fn ends(scene: &Scene<'_>) {
    let malformed = "is not what an export of this version holds there";
    scene.text("a line more", |text| text + "{}\n", "something follows", "something follows");
    scene.text(
        "the last newline gone",
        |text| text.trim_end().to_owned(),
        "the export ends within it",
        "ends before its last line",
    );
    scene.text(
        "the last line gone",
        |text| format!("{}\n", text.trim_end().rsplit_once('\n').unwrap().0),
        "the export ends before it",
        "ends before its last line",
    );
    scene.text(
        "nothing",
        |_text| String::new(),
        "line 1: the export ends before it",
        "ends before its last line",
    );
    scene.text("something else", |_text| "hello\n".to_owned(), "line 1: it is not JSON", malformed);
}

/// Turns one bit of one byte at a time, and prints where nothing was found.
const TURN_BITS: &str = r#"
import io, random, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import verify
export, kept = (open(path, "rb").read() for path in sys.argv[2:4])
verify.Verifier(io.BytesIO(export), [kept], None).verify()
tried = 0
for at in range(random.randrange(23), len(export), 23):
    changed = bytearray(export)
    changed[at] ^= 1 << random.randrange(8)
    try:
        verify.Verifier(io.BytesIO(bytes(changed)), [kept], None).verify()
        print("unseen:", at, chr(export[at]), chr(changed[at]))
    except verify.Bad:
        tried += 1
print("found:", tried)
"#;

#[test]
fn no_turned_bit_of_an_export_goes_unseen() {
    let Some(python) = python() else { return };
    let (export, kept) =
        (examples().join("sample.jsonl"), examples().join("sample.checkpoint.txt"));
    let turned = Command::new(python)
        .args(["-c", TURN_BITS])
        .args([examples(), export, kept])
        .output()
        .unwrap();
    let said = Said::from(turned);
    said.is_good("found: ");
    assert!(!said.out.contains("unseen"), "{said:?}");
    let found: usize = said.out.trim().rsplit_once(' ').unwrap().1.parse().unwrap();
    assert!(found > 500, "{said:?}");
}
