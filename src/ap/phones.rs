//! Telephone numbers: every spelling of a number is the same number, extensions are kept apart, and
//! what cannot be called back on is refused.

use std::fmt;

use phonenumber::country::Id as Country;
use phonenumber::metadata::DATABASE;
use phonenumber::{Mode, Type};

/// The most characters of a number as it is written.
const TEXT_CHARS_MAX: usize = 64;
/// The most digits of an extension.
const EXTENSION_DIGITS_MAX: usize = 11;
/// So many digits at the end of a number find it in any spelling; no country's numbers are shorter.
const ENDING_DIGITS: usize = 4;
/// What introduces an extension, in lower case.
const EXTENSION_MARKS: [&str; 10] =
    ["extension", "ext.", "ext", "poste", "durchwahl", "dw", "interne", "int.", "x", "#"];

/// A number in its one spelling.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    /// As in E.164: `+` and digits.
    e164: String,
    /// The digits without those of the country.
    national: String,
    extension: Option<String>,
}

/// A text that is no number that can be called back on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PhoneError {
    /// Too long, or empty.
    #[error("a telephone number has 1 to {TEXT_CHARS_MAX} characters")]
    Length,
    /// A character that no number has.
    #[error(
        "a telephone number has no `{0}`: digits, spaces and + ( ) - . / only, then `ext.` and digits"
    )]
    Character(char),
    /// No number of any country.
    #[error("this is no valid telephone number; write it with its country, like +33 1 40 00 00 00")]
    Invalid,
    /// A number of a kind that anybody can rent, or that costs the caller.
    #[error("premium, shared-cost and personal numbers are not called back on")]
    Kind,
}

impl Number {
    /// Reads a number. One without its country is taken for one of `home`.
    ///
    /// # Errors
    /// [`PhoneError`].
    pub fn parse(text: &str, home: Option<&str>) -> Result<Self, PhoneError> {
        let text = text.trim_matches(' ');
        if text.is_empty() || text.chars().count() > TEXT_CHARS_MAX {
            return Err(PhoneError::Length);
        }
        let (number, extension) = split_extension(text)?;
        let foreign = |c: &char| !c.is_ascii_digit() && !" +()-./".contains(*c);
        if let Some(found) = number.chars().find(foreign) {
            return Err(PhoneError::Character(found));
        }
        let home = home.and_then(|code| code.parse::<Country>().ok());
        let read = phonenumber::parse(home, &number).ok().ok_or(PhoneError::Invalid)?;
        if !read.is_valid() || read.extension().is_some() {
            return Err(PhoneError::Invalid);
        }
        let kind = read.number_type(&DATABASE);
        let rentable = [
            Type::PremiumRate,
            Type::SharedCost,
            Type::PersonalNumber,
            Type::Pager,
            Type::Voicemail,
        ];
        if rentable.contains(&kind) {
            return Err(PhoneError::Kind);
        }
        let e164 = read.format().mode(Mode::E164).to_string();
        let country = format!("+{}", read.country().code());
        let national = e164.strip_prefix(&country).ok_or(PhoneError::Invalid)?.to_owned();
        Ok(Self { e164, national, extension })
    }

    /// The country that it belongs to, as ISO 3166 says it.
    pub fn country(&self) -> Option<String> {
        let read = phonenumber::parse(None, &self.e164).ok()?;
        read.country().id().map(|id| id.as_ref().to_owned())
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.e164)?;
        match &self.extension {
            Some(extension) => write!(f, " ext. {extension}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Number(…)")
    }
}

/// The last digits of a text, by which a number is found in whatever spelling it was written. Empty
/// where the text has too few.
pub fn ending(text: &str) -> String {
    let digits = digits(text).0;
    let from = digits.len().checked_sub(ENDING_DIGITS);
    from.and_then(|from| digits.get(from..)).unwrap_or_default().to_owned()
}

/// Whether what somebody wrote may be that number. A text that does not say its country is taken for
/// any country's: the number of another vendor is not called for this one.
pub fn may_be(text: &str, number: &Number) -> bool {
    if let Ok(read) = Number::parse(text, None) {
        return read == *number;
    }
    let (digits, extension) = digits(text);
    extension == number.extension && digits.ends_with(&number.national)
}

/// The digits of a text without those of its extension, and the extension.
fn digits(text: &str) -> (String, Option<String>) {
    let only = |text: &str| text.chars().filter(char::is_ascii_digit).collect();
    split_extension(text)
        .map_or_else(|_fault| (only(text), None), |(number, extension)| (only(&number), extension))
}

/// Whether two spellings are one number. What is no number is only itself.
pub fn same(one: &str, other: &str) -> bool {
    one == other || Number::parse(one, None).is_ok_and(|one| Number::parse(other, None) == Ok(one))
}

/// The number without its extension, and the extension. A library would take the letters of an
/// unknown mark for digits.
fn split_extension(text: &str) -> Result<(String, Option<String>), PhoneError> {
    let lower = text.to_ascii_lowercase();
    let after_rfc3966 = lower.split_once(";ext=");
    let found = after_rfc3966.or_else(|| {
        EXTENSION_MARKS
            .iter()
            .find_map(|mark| lower.split_once(mark).filter(|(n, _)| !n.is_empty()))
    });
    let Some((number, extension)) = found else { return Ok((lower, None)) };
    let digits: String = extension.chars().filter(|c| !" .:".contains(*c)).collect();
    let fits = (1..=EXTENSION_DIGITS_MAX).contains(&digits.len());
    if let Some(letter) = digits.chars().find(|c| !c.is_ascii_digit()) {
        return Err(PhoneError::Character(letter));
    }
    if fits {
        Ok((number.trim_matches([' ', ',']).to_owned(), Some(digits)))
    } else {
        Err(PhoneError::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, PhoneError> {
        Number::parse(text, Some("FR")).map(|number| number.to_string())
    }

    #[test]
    fn every_spelling_is_the_same_number() {
        for text in [
            "+33140000000",
            "+33 1 40 00 00 00",
            "+33 (0)1 40 00 00 00",
            "0033 1.40.00.00.00",
            "01 40 00 00 00",
            "01-40-00-00-00",
            " 01/40/00/00/00 ",
        ] {
            assert_eq!(read(text), Ok("+33140000000".to_owned()), "`{text}`");
        }
        assert!(same("+33140000000", "+33 (0)1 40 00 00 00"));
        assert!(!same("+33140000000", "+33140000001"));
        assert!(same("ask Paul", "ask Paul"));
        assert!(!same("ask Paul", "ask Eva"));
    }

    #[test]
    fn extensions_are_kept_apart() {
        let with =
            |text: &str| assert_eq!(read(text), Ok("+33140000000 ext. 12".to_owned()), "`{text}`");
        with("+33140000000 ext. 12");
        with("+33140000000x12");
        with("+33140000000;ext=12");
        with("01 40 00 00 00 poste 12");
        with("01 40 00 00 00, Durchwahl 12");
        assert_ne!(read("+33140000000 ext. 12"), read("+33140000000 ext. 13"));
        assert_ne!(read("+33140000000 ext. 12"), read("+33140000000"));
        assert!(!same("+33140000000 ext. 12", "+33140000000"));
    }

    #[test]
    fn another_vendor_s_number_is_known_in_every_spelling() {
        let number = Number::parse("+33140000000", None).unwrap();
        for text in [
            "+33 1 40 00 00 00",
            "+33 (0)1 40 00 00 00",
            "0033 1 40 00 00 00",
            "01 40 00 00 00",
            "01.40.00.00.00",
            "1 40 00 00 00",
            "tel. 01 40 00 00 00",
        ] {
            assert!(may_be(text, &number), "`{text}`");
            assert_eq!(ending(text), ending("+33140000000"), "`{text}`");
        }
        for text in ["", "ask Paul", "+33140000001", "+49 30 123456", "01 40 00 00 00 poste 12"] {
            assert!(!may_be(text, &number), "`{text}`");
        }
        let inside = Number::parse("01 40 00 00 00 poste 12", Some("FR")).unwrap();
        assert!(may_be("01 40 00 00 00 ext. 12", &inside));
        assert!(!may_be("01 40 00 00 00", &inside));
        assert_eq!(ending("12"), "");
        assert_eq!(ending("01 40 00 00 00 poste 12"), ending("+33140000000"));
    }

    #[test]
    fn what_cannot_be_called_back_on_is_refused() {
        assert_eq!(read(""), Err(PhoneError::Length));
        assert_eq!(
            read("+331400000000000000000000000000000000000000000000000000000000000000"),
            Err(PhoneError::Length)
        );
        assert_eq!(read("1-800-FLOWERS"), Err(PhoneError::Character('f')));
        assert_eq!(read("+33140000000\u{200b}"), Err(PhoneError::Character('\u{200b}')));
        assert_eq!(read("+33１40000000"), Err(PhoneError::Character('１')));
        assert_eq!(read("+33140000000 ext. 1a"), Err(PhoneError::Character('a')));
        assert_eq!(read("12"), Err(PhoneError::Invalid));
        assert_eq!(read("0891 00 00 00"), Err(PhoneError::Kind));
        assert_eq!(read("+44 7012 345678"), Err(PhoneError::Kind));
        assert_eq!(Number::parse("01 40 00 00 00", None), Err(PhoneError::Invalid));
    }

    #[test]
    fn a_number_tells_its_country() {
        assert_eq!(Number::parse("+33140000000", None).unwrap().country().as_deref(), Some("FR"));
        assert_eq!(Number::parse("+4930123456", None).unwrap().country().as_deref(), Some("DE"));
    }
}
