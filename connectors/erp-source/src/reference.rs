//! A vendor's own reference, as references are compared: people write one and the same in many
//! ways, and text recognition confuses letters and digits.
//!
//! It knows no document. Which references of a vendor are one decides whether a bill was entered
//! twice, so whatever searches for them uses this.

use std::iter::once;

/// Letters of other alphabets that look like one of ours.
const LETTERS: [(char, &str); 19] = [
    ('A', "АаΑα"),
    ('B', "ВвΒ"),
    ('C', "Сс"),
    ('E', "ЕеΕ"),
    ('H', "НнΗ"),
    ('I', "ІіΙι"),
    ('J', "Јј"),
    ('K', "КкΚκ"),
    ('M', "МмΜ"),
    ('N', "Ν"),
    ('O', "ОоΟο"),
    ('P', "РрΡρ"),
    ('S', "Ѕѕ"),
    ('T', "ТтΤτ"),
    ('U', "υ"),
    ('V', "ν"),
    ('X', "ХхΧχ"),
    ('Y', "УуΥ"),
    ('Z', "Ζ"),
];

/// The zeros of other scripts whose digits follow each other.
const ZEROS: [char; 4] = ['０', '٠', '۰', '०'];

/// The first of the full-width letters, of each case.
const FULL_WIDTH: [(char, char); 2] = [('Ａ', 'A'), ('ａ', 'A')];

/// A reference as it is compared: two texts of letters and digits, in one case and one alphabet,
/// with `O` as `0`, and `I` and `L` as `1`.
///
/// In one of them leading zeros are left out of each run of digits as it was written, in the other
/// of each run that is left when all signs are gone: `2026/001` is `2026-1`, and it is `2026001`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReferenceKey {
    by_part: String,
    as_one: String,
}

impl ReferenceKey {
    /// The key of a reference; `None` if there is no letter and no digit in it, which is none.
    pub fn of(reference: &str) -> Option<Self> {
        let parts: Vec<String> = reference
            .split(|c: char| !c.is_alphanumeric() || matches!(c, 'º' | 'ª'))
            .map(|part| part.chars().flat_map(folded).collect())
            .collect();
        let by_part: String = parts.iter().map(|part| without_leading_zeros(part)).collect();
        let as_one = without_leading_zeros(&parts.concat());
        (!as_one.is_empty()).then_some(Self { by_part, as_one })
    }

    /// The key whose two texts were kept.
    pub fn from_kept(by_part: String, as_one: String) -> Self {
        Self { by_part, as_one }
    }

    /// Leading zeros are left out of each run of digits as it was written.
    pub fn by_part(&self) -> &str {
        &self.by_part
    }

    /// Leading zeros are left out of each run of digits without the signs between them.
    pub fn as_one(&self) -> &str {
        &self.as_one
    }

    /// Whether the two are spellings of one reference.
    pub fn is_same(&self, other: &Self) -> bool {
        self.by_part == other.by_part || self.as_one == other.as_one
    }

    /// The letters and digits that every spelling has, in this order, as themselves or as one of
    /// [`look_alikes`]; for a search that is wider than the comparison. Not `0` and `1`, which are
    /// written in too many ways, and no letter of another alphabet.
    pub fn landmarks(&self) -> impl Iterator<Item = char> {
        self.as_one.chars().filter(|c| c.is_ascii() && !matches!(c, '0' | '1'))
    }
}

/// What stands for that letter or digit beside itself and its other case: characters beyond ASCII
/// that are compared as if they were it.
pub fn look_alikes(of: char) -> impl Iterator<Item = char> {
    let letters = LETTERS.iter().filter(move |(letter, _)| *letter == of);
    let digit = of.to_digit(10);
    let digits = ZEROS.iter().filter_map(move |zero| after(*zero, digit?));
    let wide = FULL_WIDTH.iter().filter_map(move |(first, ascii)| {
        let from_first =
            of.is_ascii_uppercase().then(|| u32::from(of).checked_sub(u32::from(*ascii)));
        after(*first, from_first??)
    });
    letters.flat_map(|(_, alike)| alike.chars()).chain(digits).chain(wide)
}

fn after(first: char, by: u32) -> Option<char> {
    char::from_u32(u32::from(first).checked_add(by)?)
}

/// A letter or digit as it is compared.
fn folded(c: char) -> impl Iterator<Item = char> {
    let ascii = ascii_of(c);
    let ours = ascii.map(|c| match c.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    });
    let others = if ours.is_none() { Some(c.to_uppercase()) } else { None };
    ours.into_iter().chain(others.into_iter().flatten())
}

/// The letter or digit of ours that it is, or looks like.
fn ascii_of(c: char) -> Option<char> {
    if c.is_ascii() {
        return Some(c);
    }
    let place = |first: char, count: u32| {
        u32::from(c).checked_sub(u32::from(first)).filter(|place| *place < count)
    };
    let digit = ZEROS.iter().find_map(|zero| char::from_digit(place(*zero, 10)?, 10));
    let wide = || FULL_WIDTH.iter().find_map(|(first, ascii)| after(*ascii, place(*first, 26)?));
    let letter = || LETTERS.iter().find(|(_, alike)| alike.contains(c)).map(|(letter, _)| *letter);
    digit.or_else(wide).or_else(letter)
}

/// Without the zeros that begin a run of digits; one is left of a run of nothing else.
fn without_leading_zeros(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut before = None;
    let mut chars = text.chars().chain(once(' ')).peekable();
    while let Some(c) = chars.next() {
        let Some(next) = chars.peek() else { break };
        let begins = !before.is_some_and(|before: char| before.is_ascii_digit());
        if c == '0' && begins && next.is_ascii_digit() {
            continue;
        }
        kept.push(c);
        before = Some(c);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &str, other: &str) -> bool {
        match (ReferenceKey::of(one), ReferenceKey::of(other)) {
            (Some(one), Some(other)) => one.is_same(&other) && other.is_same(&one),
            (one, other) => one == other,
        }
    }

    #[test]
    fn spellings_of_one_reference_are_one() {
        for (one, other) in [
            ("A-2291", "a2291"),
            ("A-2291", "A 2291"),
            ("A-2291", " a/2291 "),
            ("A-2291", "A.22.91"),
            ("A-2291", "A_2291"),
            ("A-2291", "A\u{a0}22\u{200b}91"),
            ("A-2291", "Ａ－２２９１"),
            ("A-2291", "ａ２２９１"),
            ("A-2291", "А-2291"),
            ("A-2291", "Α-2291"),
            ("A-2291", "A-٢٢٩١"),
            ("A-2291", "A-۲۲۹۱"),
            ("A-2291", "A-२२९१"),
            ("INV-001", "inv 001"),
            ("INV-001", "INV001"),
            ("INV-001", "INV-1"),
            ("INV-001", "INV0001"),
            ("INV-001", "INV-OO1"),
            ("INV-001", "lNV-00l"),
            ("INV-001", "1NV 0O1"),
            ("2026/00012", "2026-12"),
            ("2026/00012", "202600012"),
            ("0012", "12"),
            ("000", "0"),
            ("0", "O"),
            ("INVOICE 7", "lNV0lCE-7"),
            ("Rechnung № 5", "RECHNUNG №5"),
            ("Счёт-17", "СЧЁТ 17"),
            ("发票-12", "发票12"),
            ("", "-"),
            (" ", "/.№"),
            ("Nº 12", "N° 12"),
        ] {
            assert!(same(one, other), "`{one}` and `{other}`");
        }
    }

    #[test]
    fn other_references_stay_others() {
        for (one, other) in [
            ("A-2291", "A-22910"),
            ("A-2291", "A-2219"),
            ("A-2291", "B-2291"),
            ("A-2291", "2291"),
            ("A-2291", ""),
            ("INV-10", "INV-1"),
            ("INV-100", "INV-10"),
            ("INV-0100", "INV-010"),
            ("1001", "101"),
            ("2026-12", "2025-12"),
            ("发票-12", "12"),
            ("0", ""),
            ("5", "S"),
            ("8", "B"),
        ] {
            assert!(!same(one, other), "`{one}` and `{other}`");
        }
    }

    #[test]
    fn what_holds_no_letter_and_no_digit_is_no_reference() {
        for none in ["", " ", "-", "--/--", "\u{200b}", "…", "°"] {
            assert_eq!(ReferenceKey::of(none), None, "`{none}`");
        }
    }

    /// What a database can be asked: all landmarks in their order, in either case, or a look-alike
    /// of one.
    fn is_found(wanted: &ReferenceKey, text: &str) -> bool {
        if wanted.landmarks().flat_map(look_alikes).any(|alike| text.contains(alike)) {
            return true;
        }
        let mut rest = text.chars();
        wanted.landmarks().all(|mark| rest.any(|c| c.to_ascii_uppercase() == mark))
    }

    #[test]
    fn a_search_by_landmarks_is_wider_than_the_comparison() {
        let every: Vec<char> = ('!'..='~')
            .chain(('A'..='Z').flat_map(look_alikes))
            .chain(('0'..='9').flat_map(look_alikes))
            .collect();
        // Every character, beside every other, and in the place of every character of a reference.
        let mut texts = Vec::new();
        for c in &every {
            texts.extend([format!("{c}"), format!("A{c}"), format!("{c}-07"), format!("X1{c}2Z")]);
        }
        let keyed: Vec<(String, ReferenceKey)> = texts
            .into_iter()
            .filter_map(|text| ReferenceKey::of(&text).map(|key| (text, key)))
            .collect();
        let mut pairs = 0;
        for (one, key) in &keyed {
            for (other, other_key) in &keyed {
                if key.is_same(other_key) {
                    pairs += 1;
                    assert!(is_found(key, other), "`{other}` is not found beside `{one}`");
                }
            }
        }
        assert!(pairs > keyed.len(), "no two spellings were tried");
    }

    #[test]
    fn every_look_alike_is_compared_as_what_it_looks_like() {
        for c in ('A'..='Z').chain('0'..='9') {
            for alike in look_alikes(c) {
                assert!(!alike.is_ascii(), "{alike}");
                assert!(same(&format!("X{alike}9"), &format!("X{c}9")), "{alike} is not {c}");
            }
        }
        assert_eq!(look_alikes('Q').collect::<String>(), "Ｑｑ");
        assert_eq!(look_alikes('7').collect::<String>(), "７٧۷७");
    }
}
