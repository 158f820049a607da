//! Changes by whoever has the key, in receipts that nothing kept vouches for: other spellings of the
//! same thing, and receipts that contradict themselves or each other.

use countersign::receipts::{Digest, ReceiptKind};
use serde_json::Value;

use super::planted::{
    ANOTHER_AMOUNT,
    Own::{Bad, Good},
    Scene, claim, decision,
};

pub(super) fn spellings(scene: &Scene<'_>) {
    let canonical = "its bytes are not in canonical form";
    let once = "written in the one way";
    scene.signed(
        "a member twice",
        |export| {
            let at = claim(export);
            export.edit(
                at,
                ANOTHER_AMOUNT.0,
                &format!("{},{}", ANOTHER_AMOUNT.1, ANOTHER_AMOUNT.0),
            );
        },
        "the member `amount` is there twice",
        Bad(once),
    );
    scene.signed(
        "a receipt's own member twice",
        |export| export.edit(claim(export), "\"v\":1}", "\"v\":1,\"v\":1}"),
        "the member `v` is there twice",
        Bad("not a receipt of this version"),
    );
    scene.signed(
        "white space",
        |export| export.edit(claim(export), "\"kind\":", "\"kind\": "),
        canonical,
        Bad(once),
    );
    scene.signed(
        "another order of members",
        |export| {
            let at = claim(export);
            export.edit(at, ",\"v\":1}", "}");
            export.edit(at, "{\"at\"", "{\"v\":1,\"at\"");
        },
        canonical,
        Bad(once),
    );
    scene.signed(
        "a letter written as an escape",
        |export| export.edit(claim(export), "\"kind\":\"claim\"", "\"kind\":\"cl\\u0061im\""),
        canonical,
        Bad(once),
    );
    scene.signed(
        "a number with a fraction",
        |export| export.edit(claim(export), "\"seq\":1,\"thing\"", "\"seq\":1.0,\"thing\""),
        "`1.0` is not a whole number",
        Bad(once),
    );
    scene.signed(
        "a number that doubles do not keep",
        |export| {
            export.edit(claim(export), "\"seq\":1,\"thing\"", "\"seq\":9007199254740993,\"thing\"");
        },
        "is not kept exactly",
        Bad(once),
    );
    scene.signed(
        "data nested too deeply",
        |export| {
            let deep = format!("\"seq\":{}1{},\"thing\"", "[".repeat(40), "]".repeat(40));
            export.edit(claim(export), "\"seq\":1,\"thing\"", &deep);
        },
        "nested deeper than 32",
        Bad(once),
    );
    scene.signed(
        "data nested as no reader can follow",
        |export| {
            let deep = format!("\"seq\":{}1{},\"thing\"", "[".repeat(9000), "]".repeat(9000));
            export.edit(claim(export), "\"seq\":1,\"thing\"", &deep);
        },
        "nested too deeply",
        Bad("not a receipt of this version"),
    );
    scene.signed(
        "a member too many",
        |export| export.edit(claim(export), ",\"v\":1}", ",\"v\":1,\"w\":1}"),
        "the member `w` is missing, or must not be there",
        Bad("not a receipt of this version"),
    );
    scene.signed(
        "another version",
        |export| export.edit(claim(export), ",\"v\":1}", ",\"v\":2}"),
        "it is not of version 1",
        Bad("not a receipt of this version"),
    );
    scene.signed(
        "a receipt of another store",
        |export| {
            let at = export.entries.len() - 1;
            let ours = format!("\"store\":\"{}\",\"v\"", export.store());
            export.edit(at, &ours, "\"store\":\"st_another\",\"v\"");
        },
        "it is of store st_another",
        Bad("of store `st_another`"),
    );
}

/// Members that hold another kind of thing than they must.
pub(super) fn kinds_of_values(scene: &Scene<'_>) {
    let unreadable = Bad("not a receipt of this version");
    for (from, to, python) in [
        ("{\"at\":\"20", "{\"at\":\"a20", "`at` is not a time"),
        ("{\"at\":\"20", "{\"at\":\"19", "`at` is not a time"),
        ("Z\",\"company\"", "+00:00\",\"company\"", "`at` is not a time"),
        ("\"kind\":\"claim\"", "\"kind\":\"Claim\"", "`kind` is not a word"),
        ("\"kind\":\"claim\"", "\"kind\":[]", "`kind` is not a word"),
        ("\"company\":\"blue-sparrow\",\"data\"", "\"company\":7,\"data\"", "`company` is not"),
        ("\"operation\":\"op_", "\"operation\":{},\"z\":\"op_", "the member `z`"),
        (",\"v\":1}", ",\"v\":true}", "it is not of version 1"),
    ] {
        scene.signed(to, |export| export.edit(claim(export), from, to), python, unreadable);
    }
    scene.signed(
        "a receipt of more than a mebibyte",
        |export| {
            let long = format!("\"seq\":\"{}\",\"thing\"", "x".repeat(1 << 20));
            export.edit(claim(export), "\"seq\":1,\"thing\"", &long);
        },
        "it has more than 1048576 bytes",
        Bad("written in the one way"),
    );
}

/// What a decision says that it was about.
pub(super) fn decisions(scene: &Scene<'_>) {
    scene.signed(
        "a decision on another amount under the old hash",
        |export| {
            export.edit(
                decision(export),
                "\\\"bill_residual\\\":\\\"1200.00 EUR\\\"",
                "\\\"bill_residual\\\":\\\"1300.00 EUR\\\"",
            );
        },
        "`hash` is not that of `hashed`",
        Good,
    );
    scene.signed(
        "a decision whose text has another spelling",
        |export| {
            let at = decision(export);
            let receipt = export.entries[at]["receipt"].as_str().unwrap().to_owned();
            let mut receipt: Value = serde_json::from_str(&receipt).unwrap();
            let hashed = receipt["data"]["hashed"].as_str().unwrap().replacen(':', ": ", 1);
            receipt["data"]["hash"] = Digest::of(&[hashed.as_bytes()]).to_string().into();
            receipt["data"]["hashed"] = hashed.into();
            // The member stands where it stood, so that the rest stays canonical.
            export.entries[at]["receipt"] = receipt.to_string().into();
        },
        "`hashed` is not canonical",
        Good,
    );
    for (from, to, python) in [
        (
            ",\"facts\":{\"amount_e2\"",
            ",\"facts\":7,\"factz\":{\"amount_e2\"",
            "there are no facts",
        ),
        (",\"hashed\":\"", ",\"hashed\":7,\"hashez\":\"", "`hashed` is not a text"),
    ] {
        scene.signed(to, |export| export.edit(decision(export), from, to), python, Good);
    }
    scene.signed(
        "a decision that says nothing",
        |export| {
            let at = decision(export);
            let text = export.entries[at]["receipt"].as_str().unwrap();
            let (before, _) = text.split_once("\"data\":").unwrap();
            let (_, after) = text.split_once(",\"kind\"").unwrap();
            let text = format!("{before}\"data\":7,\"kind\"{after}");
            export.entries[at]["receipt"] = text.into();
        },
        "the decision's `data` is not an object",
        Good,
    );
}

/// Receipts that contradict themselves or each other.
pub(super) fn contradictions(scene: &Scene<'_>) {
    scene.signed(
        "parameters that were not decided on",
        |export| export.edit(decision(export), "\"value\":\"1200.00\"}", "\"value\":\"1300.00\"}"),
        "`params` of `hashed` is not what the receipt says",
        Good,
    );
    scene.signed(
        "a fact that was not decided on",
        |export| {
            export.edit(
                decision(export),
                "\"source\":\"baseline\",\"value\":\"adopted\"",
                "\"source\":\"baseline\",\"value\":\"verified\"",
            );
        },
        "the fact `bank_status` of `hashed` is not what the receipt says",
        Good,
    );
    scene.signed(
        "a decision of somebody else",
        |export| {
            let at = decision(export);
            export.edit(
                at,
                ",\"principal\":\"marie\",\"request\"",
                ",\"principal\":\"otto\",\"request\"",
            );
        },
        "`principal` of `hashed` is not what the receipt says",
        Good,
    );
    scene.signed(
        "a claim of what was not decided",
        |export| {
            let at = claim(export);
            export.edit(at, ",\"hash\":\"", ",\"hash\":\"00");
        },
        "it is a claim on what was not decided before it",
        Good,
    );
    scene.signed(
        "a vote on what was not decided",
        |export| export.edit(export.find(ReceiptKind::Vote), ",\"hash\":\"", ",\"hash\":\"00"),
        "it is a vote on what was not decided before it",
        Good,
    );
    scene.signed(
        "a claim without its decision",
        |export| drop(export.entries.remove(decision(export))),
        "it is a claim on what was not decided before it",
        Good,
    );
    scene.signed(
        "a chain without its beginning",
        |export| drop(export.entries.remove(0)),
        "a chain begins with the making of its store",
        Good,
    );
}
