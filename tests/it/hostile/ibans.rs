//! Account numbers in disguise: one number has one electronic form, spaces and small letters beside
//! it, and no other sign passes for a part of it.

use super::arena::{Arena, INVALID, Refused, args};
use crate::daemon::{ACME, FOX_SOURCE, GLOBEX, NOBODYS, SOURCE};

const PAYEE: Refused = Refused::Denied(403, "provenance", "payee_not_on_file");
const NOT_IN_MANDATE: Refused = Refused::Denied(403, "provenance", "not_in_mandate");
/// More than the bill says: what is refused for that has passed as the payee.
const OVER: Refused = Refused::Denied(403, "policy", "amount-within-residual");

/// Signs that are no part of a number, however they look.
const DISGUISES: [char; 46] = [
    '\u{a0}',
    '\u{ad}',
    '\u{34f}',
    '\u{61c}',
    '\u{115f}',
    '\u{1680}',
    '\u{180e}',
    '\u{2000}',
    '\u{2003}',
    '\u{2007}',
    '\u{2009}',
    '\u{200a}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{200e}',
    '\u{200f}',
    '\u{2010}',
    '\u{2011}',
    '\u{2028}',
    '\u{2029}',
    '\u{202a}',
    '\u{202d}',
    '\u{202e}',
    '\u{202f}',
    '\u{205f}',
    '\u{2060}',
    '\u{2066}',
    '\u{2069}',
    '\u{3000}',
    '\u{3164}',
    '\u{fe0f}',
    '\u{feff}',
    '\u{fff9}',
    '\u{e0001}',
    '\u{e0030}',
    '-',
    '_',
    '.',
    '/',
    ':',
    ',',
    '\'',
    '\u{301}',
    '\u{660}',
    '\u{ff10}',
];

/// Letters and digits that look like one of ours.
const LOOK_ALIKES: [(char, char); 16] = [
    ('F', '\u{3dc}'),
    ('F', '\u{ff26}'),
    ('R', '\u{13a1}'),
    ('R', '\u{ff32}'),
    ('7', '\u{ff17}'),
    ('7', '\u{667}'),
    ('6', '\u{431}'),
    ('6', '\u{ff16}'),
    ('3', '\u{417}'),
    ('3', '\u{1d7d1}'),
    ('0', 'O'),
    ('0', '\u{41e}'),
    ('0', '\u{966}'),
    ('1', 'l'),
    ('1', 'I'),
    ('1', '\u{2081}'),
];

fn payee(text: &str) -> String {
    args(&[("payee_iban", &serde_json::to_string(text).unwrap())])
}

#[tokio::test]
async fn no_other_sign_passes_in_any_place_of_a_number() {
    let arena = Arena::open().await;
    for sign in DISGUISES {
        for place in [0, 1, 4, 14, ACME.len() - 1, ACME.len()] {
            let mut text = ACME.to_owned();
            text.insert(place, sign);
            let what = format!("U+{:04X} at {place}", u32::from(sign));
            let heard = arena.refuses(&what, &arena.proposal(payee(&text)), INVALID).await;
            // Refused by name, so that a person can find it.
            let detail = heard.text("/decision/detail");
            assert!(detail.contains(&format!("U+{:04X}", u32::from(sign))), "{what}: {detail}");
        }
    }
    arena.close().await;
}

#[tokio::test]
async fn no_look_alike_passes_for_a_letter_or_a_digit() {
    let arena = Arena::open().await;
    for (real, false_one) in LOOK_ALIKES {
        let text = ACME.replacen(real, &false_one.to_string(), 1);
        assert_ne!(text, ACME);
        let what = format!("U+{:04X} for {real}", u32::from(false_one));
        arena.refuses(&what, &arena.proposal(payee(&text)), INVALID).await;
        let of_source = SOURCE.replacen(real, &false_one.to_string(), 1);
        if of_source != SOURCE {
            let sent = args(&[("source_account", &format!("\"{of_source}\""))]);
            arena.refuses(&what, &arena.proposal(sent), INVALID).await;
        }
    }
    arena.close().await;
}

#[tokio::test]
async fn what_cannot_be_a_number_is_refused_by_its_form() {
    let arena = Arena::open().await;
    for text in [
        "FR0030006000011234567890189",
        "FR0130006000011234567890189",
        "FR9930006000011234567890189",
        "FR7530006000011234567890189",
        "FR7630006000011234567890188",
        "FR763000600001123456789018",
        "FR76300060000112345678901890",
        "RF7630006000011234567890189",
        "FR76 3000 6000 0112 3456 7890 18",
        "30006000011234567890189",
        "7630006000011234567890189",
        "XX7630006000011234567890189",
        "UK29NWBK60161331926819",
        "GB29NWBK6016133192681",
        "GB00NWBK60161331926819",
        "GB29N1BK60161331926819",
        "DE8937040044053201300",
        "DE89370400440532013001",
        "FR76",
        "F",
        " ",
        "    ",
        "IBAN FR7630006000011234567890189",
        "FR7630006000011234567890189 BIC AGRIFRPP",
        "FR7630006000011234567890189 NL91ABNA0417164300",
        "FR7630006000011234567890189;DE89370400440532013000",
        "V-100",
        "ACME SAS",
        "null",
        "0",
    ] {
        arena.refuses(text, &arena.proposal(payee(text)), INVALID).await;
    }
    // Raw line breaks never reach the form: JSON has none in a text.
    let raw = args(&[("payee_iban", &format!("\"{}\n\"", "FR76"))]);
    arena.refuses("raw", &arena.proposal(raw), super::arena::MALFORMED).await;
    arena.close().await;
}

#[tokio::test]
async fn spaces_and_small_letters_are_the_same_number() {
    let arena = Arena::open().await;
    for text in [
        ACME.to_owned(),
        ACME.to_lowercase(),
        "FR76 3000 6000 0112 3456 7890 189".to_owned(),
        "fR76 3000 6000 0112 3456 7890 189".to_owned(),
        format!("  {ACME}  "),
        "F R 7 6 3 0 0 0 6 0 0 0 0 1 1 2 3 4 5 6 7 8 9 0 1 8 9".to_owned(),
    ] {
        let mut sent = payee(&text);
        sent = sent.replace("\"1200.00\"", "\"1200.01\"");
        let heard = arena.refuses(&text, &arena.proposal(sent), OVER).await;
        assert_eq!(heard.text("/params/payee_iban/value"), "FR76\u{2026}0189", "{}", heard.body);
    }
    // Escapes are the letters that they stand for.
    let escaped = args(&[
        ("payee_iban", &format!("\"\\u0046\\u0052{}\"", ACME.trim_start_matches("FR"))),
        ("amount", "\"1200.01\""),
    ]);
    arena.refuses("escaped", &arena.proposal(escaped), OVER).await;
    arena.close().await;
}

#[tokio::test]
async fn a_real_number_of_anybody_else_is_not_on_file() {
    let arena = Arena::open().await;
    let mut answers = Vec::new();
    for (whose, number) in [
        ("nobody's", NOBODYS),
        ("another vendor's", GLOBEX),
        ("the company's own", SOURCE),
        ("another company's own", FOX_SOURCE),
        ("another company's vendor's", "GB29NWBK60161331926819"),
        ("nobody's, in small letters", "nl91 abna 0417 1643 00"),
    ] {
        let heard = arena.refuses(whose, &arena.proposal(payee(number)), PAYEE).await;
        answers.push((heard.text("/decision/detail").to_owned(), heard.json["params"].clone()));
    }
    // Nobody learns from the answer whose it is.
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    for (whose, number) in [
        ("nobody's", NOBODYS),
        ("the vendor's", ACME),
        ("another company's own", FOX_SOURCE),
        ("another company's second", "BE62510007547061"),
    ] {
        let sent = args(&[("source_account", &format!("\"{number}\""))]);
        arena.refuses(whose, &arena.proposal(sent), NOT_IN_MANDATE).await;
    }
    arena.close().await;
}
