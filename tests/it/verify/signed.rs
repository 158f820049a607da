//! Changes to what is signed, to what was kept of it, and to what an export hides.

use countersign::receipts::{Digest, Head, SignedHead};
use serde_json::{Value, json};

use super::planted::{Own::Bad, Scene, another_key, decision, forge};
use super::{Export, Given};

pub(super) fn heads(scene: &Scene<'_>) {
    let exports = scene.exports;
    scene.alone(
        "another's signature under our key's name",
        |export| {
            let ours = SignedHead::parse(&export.head).unwrap();
            let theirs = ours.head().clone().sign(&another_key()).to_text();
            export.head = theirs.replace(&another_key().public().id(), &exports.key.public().id());
        },
        "the signed head: the signature of key",
        Bad("the signature on the head"),
    );
    scene.alone(
        "another's signature",
        |export| {
            let ours = SignedHead::parse(&export.head).unwrap();
            export.head = ours.head().clone().sign(&another_key()).to_text();
        },
        "the signed head: it is signed by key",
        Bad("is signed by key"),
    );
    scene.alone(
        "another's key in the first line",
        |export| export.header["public_key"] = another_key().public().to_hex().into(),
        "the signed head: it is signed by key",
        Bad("is signed by key"),
    );
    scene.alone(
        "a later time in the head",
        |export| export.head = export.head.replace("\n20", "\n21"),
        "the signed head: the signature of key",
        Bad("the signature on the head"),
    );
    scene.alone(
        "a head of earlier",
        |export| export.head.clone_from(&exports.early.head),
        "the signed head: it is for receipt",
        Bad("was signed for another"),
    );
    scene.alone(
        "a head without its signature",
        |export| export.head = export.head.split_once("\u{2014}").unwrap().0.to_owned(),
        "the signed head: it is not a signed head",
        Bad("not a signed head"),
    );
    scene.alone(
        "a signature with other spare bits",
        |export| {
            let (text, end) = export.head.split_at(export.head.len() - "A==\n".len());
            let next = char::from(end.as_bytes()[0] + 1);
            export.head = format!("{text}{next}==\n");
        },
        "the signed head: its signature",
        Bad("not a signed head"),
    );
    let another = another_key();
    let mut theirs = exports.whole.clone();
    theirs.seal(&another);
    // Nothing in it is wrong; it is just not ours.
    scene.unseen(&theirs, None);
    scene.both(
        "all of it under another's key, of which ours is known",
        &Given {
            export: theirs.write(),
            checkpoint: None,
            public_key: Some(exports.key.public().to_hex()),
        },
        "line 1: it is of key",
        Bad("signed by ledger key"),
    );
    scene.both(
        "all of it under another's key, of which a checkpoint was kept",
        &Given { export: theirs.write(), checkpoint: Some(exports.checkpoint()), public_key: None },
        "checkpoint 1: it is signed by key",
        Bad("the kept checkpoint cannot be believed"),
    );
}

pub(super) fn checkpoints(scene: &Scene<'_>) {
    let exports = scene.exports;
    let fork = |export: &mut Export| {
        forge(export);
        export.seal(&exports.key);
    };
    scene.kept("a fork by who has the key", fork, "the chain was forked", Bad("vouches for"));
    let mut forked = exports.whole.clone();
    fork(&mut forked);
    // The operation hash does not cover what a claim repeats; only a checkpoint shows this.
    scene.unseen(&forked, None);
    let later = |export: &mut Export| {
        let at = export.entries.len() - 1;
        export.edit(at, "\"kind\":\"outcome\"", "\"kind\":\"alarm\"");
        export.seal(&exports.key);
    };
    scene.kept("a fork of the last one", later, "the chain was forked", Bad("vouches for"));
    let mut forked = exports.whole.clone();
    later(&mut forked);
    scene.unseen(&forked, Some(&exports.early.head));

    let cut = |export: &mut Export| *export = exports.early.clone();
    scene.kept("the state of earlier", cut, "its end was cut off", Bad("the chain ends at"));
    // Without the newest checkpoint it is as good as ever.
    scene.unseen(&exports.early, Some(&exports.early.head));
    scene.kept(
        "the last ones cut off by who has the key",
        |export| {
            export.entries.pop();
            export.seal(&exports.key);
        },
        "its end was cut off",
        Bad("the chain ends at"),
    );

    let whole = exports.whole.write();
    let kept = |what, checkpoint: String, python, own| {
        let checkpoint = Some(checkpoint);
        let given = Given { export: whole.clone(), checkpoint, public_key: None };
        scene.both(what, &given, python, Bad(own));
    };
    let newest = exports.checkpoint();
    kept("an empty checkpoint", String::new(), "checkpoint 1: it is not", "holds no signed head");
    kept("no checkpoint", "hello\n".to_owned(), "checkpoint 1: it is not", "--checkpoint");
    kept(
        "half a checkpoint",
        newest.chars().take(90).collect(),
        "checkpoint 1: it is not",
        "--checkpoint",
    );
    kept(
        "a checkpoint with another hash",
        exports.early.head.replacen(['0', '1', '2', '3', '4', '5'], "9", 90),
        "checkpoint 1: ",
        "checkpoint",
    );
    let head = SignedHead::parse(&newest).unwrap().head().clone();
    let elsewhere = Head { store: "st_another".to_owned(), ..head };
    kept(
        "a checkpoint of another store",
        elsewhere.sign(&exports.key).to_text(),
        "checkpoint 1: it is of store st_another",
        "of store `st_another`",
    );
}

pub(super) fn companies(scene: &Scene<'_>) {
    let exports = scene.exports;
    let written = "it is not what was written";
    let digest = Digest::of(&[b"another"]).to_string();
    for (what, member) in
        [("a foreign entry's digest", "content"), ("a foreign entry's hash", "hash")]
    {
        scene.company(
            what,
            |export| {
                let at = export.hidden();
                export.entries[at][member] = digest.clone().into();
            },
            written,
            Bad("does not follow"),
        );
    }
    scene.company(
        "a foreign entry dropped",
        |export| drop(export.entries.remove(export.hidden())),
        "stands there",
        Bad("out of place"),
    );
    let foreign = |export: &Export| {
        let outcome = |entry: &Value| {
            entry["receipt"].as_str().is_some_and(|text| text.contains("\"company\":\"red-fox\""))
        };
        let found = exports.whole.entries.iter().find(|entry| outcome(entry)).unwrap().clone();
        assert!(export.entries[0].get("content").is_some());
        found
    };
    scene.company(
        "another company's receipt shown",
        |export| {
            let shown = foreign(export);
            let at = usize::try_from(shown["seq"].as_u64().unwrap()).unwrap() - 1;
            export.entries[at] = shown;
        },
        "it is of another company",
        Bad("is of another company"),
    );
    scene.company(
        "an export said to be of another company",
        |export| export.header["company"] = "red-fox".into(),
        "it is of another company",
        Bad("is of another company"),
    );
    // What no export of one company can show.
    let mut hiding = exports.company.clone();
    let at = decision(&hiding);
    let content = Export::content(&hiding.entries[at]).to_string();
    let hash = hiding.entries[at]["hash"].clone();
    // Without its decision the claim would be seen.
    for (at, content) in
        [(at, content), (at + 1, { Export::content(&hiding.entries[at + 1]).to_string() })]
    {
        let hash = hiding.entries[at]["hash"].clone();
        hiding.entries[at] = json!({ "seq": at + 1, "hash": hash, "content": content });
    }
    assert_eq!(hiding.entries[at]["hash"], hash);
    scene.unseen(&hiding, Some(&exports.checkpoint()));
}
