//! IBANs in the one form that the outside may use (API 1), masked unless asked by name.

/// Characters that stay readable at either end of a masked number.
const READABLE: usize = 4;

/// A valid IBAN in electronic form. `Debug` and `Display` show it masked; only
/// [`Iban::electronic`] gives the whole, so that a log line cannot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Iban(String);

/// Why a text is no IBAN that we accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IbanError {
    /// A character but ASCII letters, digits and spaces.
    #[error(
        "an IBAN has only the letters A to Z, digits and spaces, not U+{code:04X} at place {place}"
    )]
    Character {
        /// The character's code point.
        code: u32,
        /// Its place, counted from 1.
        place: usize,
    },
    /// Check digits that ISO 13616 cannot produce (00, 01, 99).
    #[error("the check digits of an IBAN are 02 to 98")]
    CheckDigits,
    /// Unknown country, wrong length or form, or a checksum that does not fit.
    #[error("not a valid IBAN: country, length or checksum do not fit")]
    Invalid,
}

impl Iban {
    /// Reads an IBAN. ASCII spaces and lower case are accepted; any other character is refused by
    /// name, hyphens, no-break and zero-width spaces and look-alike letters too.
    ///
    /// # Errors
    /// [`IbanError`] says what is wrong, and never repeats the number.
    pub fn parse(text: &str) -> Result<Self, IbanError> {
        if let Some((at, wrong)) =
            text.chars().enumerate().find(|(_, c)| !c.is_ascii_alphanumeric() && *c != ' ')
        {
            return Err(IbanError::Character {
                code: u32::from(wrong),
                place: at.saturating_add(1),
            });
        }
        let electronic: String =
            text.chars().filter(|c| *c != ' ').map(|c| c.to_ascii_uppercase()).collect();
        let check = electronic.get(2..4).ok_or(IbanError::Invalid)?;
        if matches!(check, "00" | "01" | "99") {
            return Err(IbanError::CheckDigits);
        }
        electronic.parse::<iban::Iban>().ok().ok_or(IbanError::Invalid)?;
        Ok(Self(electronic))
    }

    /// The whole number, without spaces. For the ERP, receipts and signed-in humans only.
    pub fn electronic(&self) -> &str {
        &self.0
    }

    /// The two letters of the country.
    pub fn country(&self) -> &str {
        self.0.get(..2).unwrap_or_default()
    }

    /// What a caller with a mandate may see: `FR76…0189`.
    pub fn masked(&self) -> String {
        mask(&self.0)
    }
}

impl std::fmt::Debug for Iban {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Iban({})", self.masked())
    }
}

impl std::fmt::Display for Iban {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.masked())
    }
}

/// The number of a bank account as an ERP holds it. Anything that is no IBAN is kept apart and is
/// never payable here.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccountNumber {
    /// A valid IBAN.
    Iban(Iban),
    /// Anything else, exactly as the ERP holds it.
    Other(String),
}

impl AccountNumber {
    /// Takes what an ERP holds: an IBAN where it is a valid one, else the text as it is.
    pub fn from_erp(text: &str) -> Self {
        Iban::parse(text).map_or_else(|_| Self::Other(text.to_owned()), Self::Iban)
    }

    /// The IBAN, where it is one.
    pub fn iban(&self) -> Option<&Iban> {
        match self {
            Self::Iban(iban) => Some(iban),
            Self::Other(_) => None,
        }
    }

    /// The whole number, for the store, receipts and signed-in humans only.
    pub fn whole(&self) -> &str {
        match self {
            Self::Iban(iban) => iban.electronic(),
            Self::Other(text) => text,
        }
    }

    /// What a caller with a mandate may see.
    pub fn masked(&self) -> String {
        mask(self.whole())
    }
}

impl std::fmt::Debug for AccountNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.iban().is_some() { "Iban" } else { "Other" };
        write!(f, "{kind}({})", self.masked())
    }
}

fn mask(number: &str) -> String {
    let chars: Vec<char> = number.chars().collect();
    // A short number would be shown nearly whole by its ends.
    if chars.len() < READABLE.saturating_mul(3) {
        return "…".to_owned();
    }
    let head: String = chars.iter().take(READABLE).collect();
    let tail: String = chars.iter().skip(chars.len().saturating_sub(READABLE)).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ACME: &str = "FR7630006000011234567890189";

    #[track_caller]
    fn accept(text: &str, electronic: &str) {
        assert_eq!(
            Iban::parse(text).map(|iban| iban.electronic().to_owned()),
            Ok(electronic.to_owned())
        );
    }

    #[test]
    fn spaces_and_lower_case_are_the_same_number() {
        accept(ACME, ACME);
        accept("FR76 3000 6000 0112 3456 7890 189", ACME);
        accept(" fr76 30006000011234567890189 ", ACME);
        accept("nl91abna0417164300", "NL91ABNA0417164300");
    }

    #[test]
    fn any_other_character_is_refused_by_name() {
        for wrong in [
            '\u{a0}', '\u{200b}', '\u{feff}', '\u{202e}', '\u{ad}', '\t', '\n', '-', '.', '_',
            '\u{410}', '\u{391}', '\u{ff11}', '\u{661}', '\u{2010}', '\u{3000}', '\0',
        ] {
            for place in [0, 4, ACME.len()] {
                let mut text = ACME.to_owned();
                text.insert(place, wrong);
                let expected = IbanError::Character { code: u32::from(wrong), place: place + 1 };
                assert_eq!(Iban::parse(&text), Err(expected));
            }
        }
    }

    #[test]
    fn impossible_check_digits_are_refused() {
        for text in [
            "FR0030006000011234567890189",
            "FR0130006000011234567890189",
            "FR9930006000011234567890189",
        ] {
            assert_eq!(Iban::parse(text), Err(IbanError::CheckDigits));
        }
        for text in
            ["", "F", "FR76", "FR7630006000011234567890188", "GP7630006000011234567890189", "HELLO"]
        {
            assert_eq!(Iban::parse(text), Err(IbanError::Invalid), "`{text}`");
        }
    }

    #[test]
    fn nothing_prints_the_whole_number_by_accident() {
        let iban = Iban::parse(ACME).unwrap();
        assert_eq!(iban.to_string(), "FR76…0189");
        assert_eq!(format!("{iban:?}"), "Iban(FR76…0189)");
        let other = AccountNumber::from_erp("123456");
        assert_eq!(format!("{other:?}"), "Other(…)");
        assert_eq!(format!("{:?}", AccountNumber::Iban(iban)), "Iban(FR76…0189)");
    }

    proptest! {
        #[test]
        fn what_is_accepted_reads_back(text in "[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}|\\PC*") {
            if let Ok(iban) = Iban::parse(&text) {
                prop_assert_eq!(Iban::parse(iban.electronic()), Ok(iban));
            }
        }
    }
}
