//! The verifier in another language (`examples/verify`): it and the daemon's own are given the same
//! exports of a daemon that paid, whole ones and ones with a planted change, and each says what is
//! so. Tried where `COUNTERSIGN_TEST_PYTHON` names an interpreter that has what its
//! `requirements.txt` names.

mod meant;
mod planted;
mod signed;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use countersign::receipts::{Digest, Head, LedgerKey, ReceiptKind, SignedHead, genesis, link};
use serde_json::{Value, json};

use crate::daemon::{FOX_SOURCE, Installation, NOBODYS, pay, pay_to};
use crate::support::report;
use crate::votes::{Office, approve, is_pending};

const PYTHON: &str = "COUNTERSIGN_TEST_PYTHON";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/verify")
}

/// The interpreter, if there is one.
fn python() -> Option<PathBuf> {
    let found = std::env::var_os(PYTHON).filter(|path| !path.is_empty()).map(PathBuf::from);
    if found.is_none() {
        report(&format!("not tried: {PYTHON} is not set"));
    }
    found
}

/// An export in its parts.
#[derive(Debug, Clone)]
struct Export {
    header: Value,
    entries: Vec<Value>,
    head: String,
}

impl Export {
    fn read(text: &str) -> Self {
        let mut lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let head = lines.pop().unwrap()["head"].as_str().unwrap().to_owned();
        let header = lines.remove(0);
        Self { header, entries: lines, head }
    }

    fn write(&self) -> String {
        let head = json!({ "head": self.head });
        let lines = [&self.header].into_iter().chain(&self.entries).chain([&head]);
        let lines: Vec<String> = lines.map(ToString::to_string).collect();
        lines.join("\n") + "\n"
    }

    fn store(&self) -> &str {
        self.header["store"].as_str().unwrap()
    }

    fn content(entry: &Value) -> Digest {
        match entry["receipt"].as_str() {
            Some(text) => Digest::of(&[text.as_bytes()]),
            None => Digest::parse(entry["content"].as_str().unwrap()).unwrap(),
        }
    }

    /// Numbers and links everything anew, as anybody can who can write.
    fn chain_anew(&mut self) {
        let mut last = genesis(self.store());
        for (at, entry) in self.entries.iter_mut().enumerate() {
            last = link(last, Self::content(entry));
            entry["seq"] = (at + 1).into();
            entry["hash"] = last.to_string().into();
        }
        self.header["count"] = self.entries.len().into();
    }

    /// Does so and signs it, as only somebody with a key can.
    fn seal(&mut self, key: &LedgerKey) {
        self.chain_anew();
        let before = SignedHead::parse(&self.head).unwrap();
        let last = self.entries.last().unwrap();
        let head = Head {
            store: self.store().to_owned(),
            seq: last["seq"].as_i64().unwrap(),
            hash: Digest::parse(last["hash"].as_str().unwrap()).unwrap(),
            at: before.head().at,
        };
        self.head = head.sign(key).to_text();
        self.header["public_key"] = key.public().to_hex().into();
    }

    /// Where the first readable receipt of that kind stands.
    #[track_caller]
    fn find(&self, kind: ReceiptKind) -> usize {
        let wanted = format!("\"kind\":\"{}\"", kind.code());
        let found = self
            .entries
            .iter()
            .position(|entry| entry["receipt"].as_str().is_some_and(|text| text.contains(&wanted)));
        found.unwrap_or_else(|| panic!("no receipt of kind {}", kind.code()))
    }

    /// Where the first receipt stands that cannot be read.
    fn hidden(&self) -> usize {
        self.entries.iter().position(|entry| entry.get("content").is_some()).unwrap()
    }

    /// Replaces a part of a receipt's text by another of whatever length.
    #[track_caller]
    fn edit(&mut self, at: usize, from: &str, to: &str) {
        let text = self.entries[at]["receipt"].as_str().unwrap().to_owned();
        assert!(text.contains(from), "no {from} in {text}");
        self.entries[at]["receipt"] = text.replacen(from, to, 1).into();
    }
}

/// Exports of one store, taken while its daemon paid for two companies.
struct Exports {
    installation: Installation,
    key: LedgerKey,
    /// After the first payment.
    early: Export,
    /// At the end.
    whole: Export,
    /// The same as it was written.
    text: String,
    /// The same for one of the two companies.
    company: Export,
}

impl Exports {
    async fn make() -> Self {
        let installation = Installation::new();
        Office::people(&installation);
        installation.add_user("otto", "accountant", "red-fox");
        let tokens = [
            installation.mandate(&["--budget", "20000.00"]),
            installation.mandate_of("otto", "fox-agent", "red-fox", FOX_SOURCE, &[]),
        ];
        let daemon = installation.start().await;
        let [agent, fox] = tokens.map(|token| daemon.agent(&token));
        agent.propose("a", &pay("INV-1", "V-100", "1200.00")).await.is_executed();
        let export = |more: &[&str]| {
            let arguments = [&["receipts", "export"], more].concat();
            String::from_utf8(installation.run(&arguments, "").stdout).unwrap()
        };
        let early = Export::read(&export(&[]));
        fox.propose("a", &pay("FOX-1", "F-1", "50.00")).await.is_executed();
        let thiefs = agent.propose("b", &pay_to("INV-2", &json!(NOBODYS), "340.00")).await;
        thiefs.is_denied(403, "provenance", "payee_not_on_file");
        let large = agent.propose("c", &pay("INV-3", "V-100", "8000.00")).await;
        is_pending(&large, "step_up");
        approve(&daemon.sign_in("marie").await, &large).await.is_executed();
        agent.propose("d", &pay("INV-2", "V-200", "340.00")).await.is_executed();
        daemon.stop();
        let (text, company) = (export(&[]), export(&["--company", "blue-sparrow"]));
        let (whole, company) = (Export::read(&text), Export::read(&company));
        let key = installation.ledger_key();
        Self { installation, key, early, whole, text, company }
    }

    /// The checkpoint file as the daemon left it.
    fn checkpoint(&self) -> String {
        std::fs::read_to_string(self.installation.path("checkpoint.txt")).unwrap()
    }
}

/// What is given to both verifiers.
#[derive(Debug, Clone, Default)]
struct Given {
    export: String,
    checkpoint: Option<String>,
    public_key: Option<String>,
}

impl Given {
    /// The options after the export's name; both verifiers have the same.
    fn options(&self, folder: &Path) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(checkpoint) = &self.checkpoint {
            let path = folder.join("kept.txt");
            std::fs::write(&path, checkpoint).unwrap();
            options.extend(["--checkpoint".to_owned(), path.display().to_string()]);
        }
        if let Some(key) = &self.public_key {
            options.extend(["--public-key".to_owned(), key.clone()]);
        }
        options
    }

    /// What the verifier in Python says.
    fn ask_python(&self, python: &Path) -> Said {
        self.ask(|path| {
            let mut command = Command::new(python);
            command.arg(examples().join("verify.py")).arg(path);
            command
        })
    }

    /// What the daemon's own says.
    fn ask_own(&self) -> Said {
        self.ask(|path| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
            command.args(["receipts", "verify", "--from"]).arg(path);
            command
        })
    }

    fn ask(&self, command: impl Fn(&Path) -> Command) -> Said {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("export.jsonl");
        std::fs::write(&path, &self.export).unwrap();
        Said::from(command(&path).args(self.options(folder.path())).output().unwrap())
    }
}

/// What a verifier said.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    error: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), error: text(output.stderr) }
    }
}

impl Said {
    #[track_caller]
    fn is_good(&self, expected: &str) {
        assert_eq!(self.code, Some(0), "{self:?}");
        assert!(self.out.contains(expected), "no `{expected}` in {self:?}");
    }

    #[track_caller]
    fn is_bad(&self, what: &str, expected: &str) {
        assert_eq!(self.code, Some(1), "{what}: {self:?}");
        assert!(self.error.contains(expected), "{what}: no `{expected}` in {self:?}");
        assert_eq!(self.out, "", "{what}");
        // One sentence, not what an interpreter prints when it falls over.
        assert_eq!(self.error.lines().count(), 1, "{what}: {self:?}");
    }
}

#[tokio::test]
async fn both_verifiers_say_that_a_real_export_is_good() {
    let Some(python) = python() else { return };
    let exports = Exports::make().await;
    let key = exports.installation.ok(&["receipts", "key"], "");
    assert_eq!(key, exports.key.public().to_hex());
    let count = exports.whole.entries.len();
    for export in [&exports.whole, &exports.company] {
        let given = Given {
            export: export.write(),
            checkpoint: Some(exports.checkpoint()),
            public_key: Some(key.clone()),
        };
        let said = given.ask_python(&python);
        said.is_good(&format!("{count} receipts of store {} form one chain", export.store()));
        said.is_good("the checkpoint of 20");
        said.is_good(&format!("is in it, at receipt {count}"));
        assert!(!said.out.contains("note:"), "{said:?}");
        given.ask_own().is_good(&format!("{count} receipts verify"));
        given.ask_own().is_good("and the kept checkpoint is in it, signed by key");
        given.ask_own().is_good("the one that you trust");

        let alone = Given { export: export.write(), ..Given::default() };
        let said = alone.ask_python(&python);
        said.is_good("note: it vouches for itself");
        said.is_good("note: whether its end was cut off");
        alone.ask_own().is_good("compare that with your own");

        // An older checkpoint vouches for what there was then.
        let early = Given { checkpoint: Some(exports.early.head.clone()), ..alone };
        let then = exports.early.entries.len();
        assert!(then < count);
        early.ask_python(&python).is_good(&format!("is in it, at receipt {then}"));
        early.ask_own().is_good("and the kept checkpoint is in it");
    }
    let hidden = exports.company.entries.iter().filter(|entry| entry.get("content").is_some());
    let (hidden, text) = (hidden.count(), exports.company.write());
    assert!(text.contains("INV-1") && !text.contains("FOX-1") && !text.contains("otto"), "{text}");
    let said = Given { export: text, ..Given::default() }.ask_python(&python);
    said.is_good(&format!("can be read of company blue-sparrow, {hidden} are digests"));
    said.is_good("4 decisions have the hash of what was decided on");
}

#[test]
fn an_export_of_an_earlier_version_still_verifies() {
    let read = |name| std::fs::read_to_string(examples().join(name)).unwrap();
    let given = Given {
        export: read("sample.jsonl"),
        checkpoint: Some(read("sample.checkpoint.txt")),
        public_key: Some(read("sample.key").trim().to_owned()),
    };
    given.ask_own().is_good("and the kept checkpoint is in it");
    let Some(python) = python() else { return };
    let said = given.ask_python(&python);
    said.is_good("the checkpoint of 20");
    let readme = read("README.md");
    for line in said.out.lines() {
        assert!(readme.contains(line), "the README shows another line than `{line}`");
    }
}

#[test]
fn what_cannot_be_tried_has_a_code_of_its_own() {
    let Some(python) = python() else { return };
    let run = |before: &[&str], arguments: &[&str]| {
        let script = examples().join("verify.py");
        let mut command = Command::new(&python);
        Said::from(command.args(before).arg(script).args(arguments).output().unwrap())
    };
    let untried = |said: Said, expected: &str| {
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.error.contains(expected), "{said:?}");
        assert_eq!(said.out, "");
    };
    let sample = examples().join("sample.jsonl").display().to_string();
    untried(run(&[], &["/nowhere/export.jsonl"]), "/nowhere/export.jsonl");
    untried(run(&[], &[&sample, "--checkpoint", "/nowhere/kept.txt"]), "/nowhere/kept.txt");
    untried(run(&[], &[&sample, "--public-key", "ABC"]), "64 lower case hexadecimal digits");
    untried(run(&[], &[]), "EXPORT");
    // Without its library.
    untried(run(&["-I", "-S"], &[&sample]), "see README.md");
}

#[test]
fn the_documentation_names_every_kind_of_receipt() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/RECEIPTS.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, kinds) = text.split_once("\n## Kinds\n").unwrap();
    for kind in ReceiptKind::ALL {
        assert!(kinds.contains(&format!("`{}`", kind.code())), "no `{}`", kind.code());
    }
}
