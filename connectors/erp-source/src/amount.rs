//! Money: whole minor units of a currency, and nothing that rounds.
#![deny(clippy::arithmetic_side_effects)]

use serde::{Deserialize, Serialize};

/// The most digits that may stand before the point (API 1).
const MAJOR_DIGITS_MAX: usize = 15;

/// An ISO 4217 currency with a number of decimals of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency {
    code: iso_currency::Currency,
    exponent: u8,
}

/// A code that is no ISO 4217 currency with decimals (`XXX` and metals have none).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an ISO 4217 currency code")]
pub struct UnknownCurrency;

impl Currency {
    /// Reads a code of three upper-case letters.
    ///
    /// # Errors
    /// [`UnknownCurrency`] for anything else.
    pub fn from_code(code: &str) -> Result<Self, UnknownCurrency> {
        let known = iso_currency::Currency::from_code(code).ok_or(UnknownCurrency)?;
        let exponent = known.exponent().ok_or(UnknownCurrency)?;
        let exponent = u8::try_from(exponent).ok().ok_or(UnknownCurrency)?;
        Ok(Self { code: known, exponent })
    }

    /// The three letters.
    pub fn code(self) -> &'static str {
        self.code.code()
    }

    /// How many decimals the currency has: JPY 0, EUR 2, KWD 3.
    pub fn exponent(self) -> u8 {
        self.exponent
    }
}

impl std::fmt::Display for Currency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

impl TryFrom<String> for Currency {
    type Error = UnknownCurrency;
    fn try_from(code: String) -> Result<Self, UnknownCurrency> {
        Self::from_code(&code)
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.code().to_owned()
    }
}

/// An amount of money in whole minor units of its currency; may be zero or negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Amount {
    minor: i64,
    currency: Currency,
}

/// Why a text or a calculation gives no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Something but digits and one point, or no digit on a side of the point.
    #[error("an amount is written in digits with at most one point, like `1240.00`")]
    Grammar,
    /// More decimals than the currency has.
    #[error("{currency} has {exponent} decimals, not more")]
    TooManyDecimals {
        /// The currency.
        currency: Currency,
        /// Its number of decimals.
        exponent: u8,
    },
    /// More digits than may stand before the point, or more than can be held.
    #[error("an amount has at most 15 digits before the point")]
    TooLarge,
    /// Two currencies in one calculation.
    #[error("{left} and {right} cannot be calculated with each other")]
    CurrencyMismatch {
        /// The left currency.
        left: Currency,
        /// The right currency.
        right: Currency,
    },
}

impl Amount {
    /// That many minor units (cents for EUR, yen for JPY).
    pub fn from_minor(minor: i64, currency: Currency) -> Self {
        Self { minor, currency }
    }

    /// Nothing, in that currency.
    pub fn zero(currency: Currency) -> Self {
        Self { minor: 0, currency }
    }

    /// Reads the one spelling that the API allows (API 1): digits and at most one point, no sign,
    /// no exponent, no more decimals than the currency has. Zero is an amount here; whoever needs a
    /// positive one asks [`Amount::is_positive`].
    ///
    /// # Errors
    /// [`AmountError`] says which rule the text breaks.
    pub fn parse(text: &str, currency: Currency) -> Result<Self, AmountError> {
        let (major, decimals) = match text.split_once('.') {
            Some((major, decimals)) if !decimals.is_empty() => (major, decimals),
            Some(_) => return Err(AmountError::Grammar),
            None => (text, ""),
        };
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if major.is_empty() || !digits(major) || !digits(decimals) {
            return Err(AmountError::Grammar);
        }
        if major.len() > MAJOR_DIGITS_MAX {
            return Err(AmountError::TooLarge);
        }
        let exponent = usize::from(currency.exponent);
        let Some(missing) = exponent.checked_sub(decimals.len()) else {
            return Err(AmountError::TooManyDecimals { currency, exponent: currency.exponent });
        };
        let written = format!("{major}{decimals}{}", "0".repeat(missing));
        let minor = written.parse::<i64>().ok().ok_or(AmountError::TooLarge)?;
        Ok(Self { minor, currency })
    }

    /// Minor units.
    pub fn minor(self) -> i64 {
        self.minor
    }

    /// The currency.
    pub fn currency(self) -> Currency {
        self.currency
    }

    /// Above zero.
    pub fn is_positive(self) -> bool {
        self.minor > 0
    }

    /// The sum.
    ///
    /// # Errors
    /// Another currency, or more than can be held.
    pub fn checked_add(self, other: Self) -> Result<Self, AmountError> {
        self.same_currency(other)?;
        let minor = self.minor.checked_add(other.minor).ok_or(AmountError::TooLarge)?;
        Ok(Self { minor, currency: self.currency })
    }

    /// The difference.
    ///
    /// # Errors
    /// Another currency, or more than can be held.
    pub fn checked_sub(self, other: Self) -> Result<Self, AmountError> {
        self.same_currency(other)?;
        let minor = self.minor.checked_sub(other.minor).ok_or(AmountError::TooLarge)?;
        Ok(Self { minor, currency: self.currency })
    }

    /// Which is more.
    ///
    /// # Errors
    /// Another currency.
    pub fn compare(self, other: Self) -> Result<std::cmp::Ordering, AmountError> {
        self.same_currency(other)?;
        Ok(self.minor.cmp(&other.minor))
    }

    /// The amount with exactly two decimals as a whole number, rounded up (away from zero where
    /// the currency has three decimals or more): what limits in policies are written in.
    pub fn hundredths_rounded_up(self) -> i64 {
        let exponent = u32::from(self.currency.exponent);
        if exponent <= 2 {
            let factor = 10_i64.saturating_pow(2_u32.saturating_sub(exponent));
            return self.minor.saturating_mul(factor);
        }
        let divisor = 10_i64.saturating_pow(exponent.saturating_sub(2));
        let whole = self.minor.checked_div_euclid(divisor).unwrap_or(i64::MAX);
        let rest = self.minor.checked_rem_euclid(divisor).unwrap_or(0);
        if rest == 0 { whole } else { whole.saturating_add(1) }
    }

    /// The decimal text without the currency, with exactly the currency's decimals: `1240.00`.
    pub fn to_decimal_string(self) -> String {
        let exponent = usize::from(self.currency.exponent);
        let sign = if self.minor < 0 { "-" } else { "" };
        let digits = self.minor.unsigned_abs().to_string();
        let digits = format!(
            "{}{digits}",
            "0".repeat(exponent.saturating_add(1).saturating_sub(digits.len()))
        );
        let (major, decimals) = digits.split_at(digits.len().saturating_sub(exponent));
        if decimals.is_empty() {
            format!("{sign}{major}")
        } else {
            format!("{sign}{major}.{decimals}")
        }
    }

    fn same_currency(self, other: Self) -> Result<(), AmountError> {
        if self.currency == other.currency {
            return Ok(());
        }
        Err(AmountError::CurrencyMismatch { left: self.currency, right: other.currency })
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.to_decimal_string(), self.currency)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn currency(code: &str) -> Currency {
        Currency::from_code(code).unwrap()
    }

    #[track_caller]
    fn check(text: &str, code: &str, expected: &Result<i64, AmountError>) {
        assert_eq!(&Amount::parse(text, currency(code)).map(Amount::minor), expected, "`{text}`");
    }

    #[test]
    fn only_digits_and_one_point_are_an_amount() {
        check("1240.00", "EUR", &Ok(124_000));
        check("1240", "EUR", &Ok(124_000));
        check("1240.5", "EUR", &Ok(124_050));
        check("0.01", "EUR", &Ok(1));
        check("10000", "JPY", &Ok(10_000));
        check("1.001", "KWD", &Ok(1001));
        check("999999999999999.99", "EUR", &Ok(99_999_999_999_999_999));
        for wrong in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "1E3",
            "1,200.00",
            "1 200",
            " 1",
            "1 ",
            "NaN",
            "inf",
            "0x10",
            "1.2.3",
            "١٢",
            "１２",
            "1_000",
            "1.0\u{200b}",
            "\u{2212}1",
        ] {
            check(wrong, "EUR", &Err(AmountError::Grammar));
        }
    }

    #[test]
    fn decimals_and_digits_have_a_limit() {
        let eur = currency("EUR");
        check("1.001", "EUR", &Err(AmountError::TooManyDecimals { currency: eur, exponent: 2 }));
        let jpy = currency("JPY");
        check("1.0", "JPY", &Err(AmountError::TooManyDecimals { currency: jpy, exponent: 0 }));
        check("1000000000000000", "EUR", &Err(AmountError::TooLarge));
        check(&"9".repeat(40), "EUR", &Err(AmountError::TooLarge));
        check("999999999999999.0000", "CLF", &Err(AmountError::TooLarge));
    }

    #[test]
    fn metals_and_nonsense_are_no_currency() {
        for code in ["XXX", "XAU", "eur", "EURO", "", "E€R"] {
            assert_eq!(Currency::from_code(code), Err(UnknownCurrency), "`{code}`");
        }
    }

    #[test]
    fn hundredths_never_make_an_amount_smaller() {
        assert_eq!(Amount::from_minor(5, currency("JPY")).hundredths_rounded_up(), 500);
        assert_eq!(Amount::from_minor(5, currency("EUR")).hundredths_rounded_up(), 5);
        assert_eq!(Amount::from_minor(1001, currency("KWD")).hundredths_rounded_up(), 101);
        assert_eq!(Amount::from_minor(1000, currency("KWD")).hundredths_rounded_up(), 100);
    }

    #[test]
    fn two_currencies_do_not_mix() {
        let euro = Amount::from_minor(1, currency("EUR"));
        let yen = Amount::from_minor(1, currency("JPY"));
        assert!(euro.checked_add(yen).is_err());
        assert!(euro.checked_sub(yen).is_err());
        assert!(euro.compare(yen).is_err());
        let most = Amount::from_minor(i64::MAX, currency("EUR"));
        assert_eq!(most.checked_add(euro), Err(AmountError::TooLarge));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(minor in 0..=999_999_999_999_999_i64, code in "EUR|JPY|KWD|CLF") {
            let amount = Amount::from_minor(minor, currency(&code));
            prop_assert_eq!(Amount::parse(&amount.to_decimal_string(), amount.currency()), Ok(amount));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            drop(Amount::parse(&text, currency("EUR")));
        }
    }
}
