//! Which element may stand at which place in an answer. Checked before the parser sees a byte,
//! since the parser accepts cut-off documents, several values in one place and tags inside strings,
//! and runs out of stack on deep ones.
//!
//! It is stricter than XML-RPC: exactly the form that Odoo writes, no attributes, no comments, no
//! DOCTYPE, no CDATA, no empty-element tags, and a type around every value.

use std::collections::HashSet;

use super::text::is_plain_character_data;

/// The most values that may be nested in each other.
const DEPTH_MAX: u8 = 32;

/// What does not fit, without a word of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} near byte {at}")]
pub(crate) struct Misplaced {
    what: &'static str,
    at: usize,
}

/// Whether the text is one whole answer.
pub(super) fn check_answer(text: &str) -> Result<(), Misplaced> {
    let mut scan = Scan { whole: text, rest: text };
    scan.prologue()?;
    scan.tag("<methodResponse>")?;
    scan.blank();
    if scan.take("<fault>") {
        scan.blank();
        scan.value(DEPTH_MAX)?;
        scan.blank();
        scan.tag("</fault>")?;
    } else {
        scan.tag("<params>")?;
        scan.blank();
        scan.tag("<param>")?;
        scan.blank();
        scan.value(DEPTH_MAX)?;
        scan.blank();
        scan.tag("</param>")?;
        scan.blank();
        scan.tag("</params>")?;
    }
    scan.blank();
    scan.tag("</methodResponse>")?;
    scan.blank();
    if scan.rest.is_empty() { Ok(()) } else { Err(scan.misplaced("something after the answer")) }
}

struct Scan<'a> {
    whole: &'a str,
    rest: &'a str,
}

impl<'a> Scan<'a> {
    fn misplaced(&self, what: &'static str) -> Misplaced {
        Misplaced { what, at: self.whole.len().saturating_sub(self.rest.len()) }
    }

    fn take(&mut self, exact: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(exact) else { return false };
        self.rest = rest;
        true
    }

    fn tag(&mut self, exact: &str) -> Result<(), Misplaced> {
        if self.take(exact) { Ok(()) } else { Err(self.misplaced("another element than expected")) }
    }

    fn blank(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// `<?xml … ?>` and nothing else may stand before the root, and only at the very start.
    fn prologue(&mut self) -> Result<(), Misplaced> {
        if !self.take("<?xml ") {
            return Err(self.misplaced("no prologue"));
        }
        let Some((declared, rest)) = self.rest.split_once("?>") else {
            return Err(self.misplaced("a prologue without end"));
        };
        let declared = declared.trim_end().replace('"', "'").to_ascii_lowercase();
        if declared != "version='1.0'" && declared != "version='1.0' encoding='utf-8'" {
            return Err(self.misplaced("another prologue than XML 1.0 in UTF-8"));
        }
        self.rest = rest;
        self.blank();
        Ok(())
    }

    /// The text up to the next tag, which must be the given one.
    fn text_until(&mut self, end: &str) -> Result<&'a str, Misplaced> {
        let Some(at) = self.rest.find('<') else {
            return Err(self.misplaced("a document cut off"));
        };
        let (text, rest) = self.rest.split_at(at);
        let Some(rest) = rest.strip_prefix(end) else {
            return Err(self.misplaced("an element inside a text"));
        };
        self.rest = rest;
        Ok(text)
    }

    fn value(&mut self, deeper: u8) -> Result<(), Misplaced> {
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(self.misplaced("values nested too deep"));
        };
        self.tag("<value>")?;
        self.blank();
        if self.take("<string>") {
            let text = self.text_until("</string>")?;
            self.expect(is_plain_character_data(text), "a string that is no character data")?;
        } else if self.take("<int>") {
            let text = self.text_until("</int>")?;
            let fits = text.parse::<i32>().is_ok() && !text.starts_with('+');
            self.expect(fits, "an int that is not one of 32 bit")?;
        } else if self.take("<boolean>") {
            let text = self.text_until("</boolean>")?;
            self.expect(matches!(text, "0" | "1"), "a boolean that is neither 0 nor 1")?;
        } else if self.take("<double>") {
            let text = self.text_until("</double>")?;
            self.expect(is_double(text), "a double that is no number")?;
        } else if self.take("<array>") {
            self.array(deeper)?;
        } else if self.take("<struct>") {
            self.members(deeper)?;
        } else {
            return Err(self.misplaced("a value without a type that Odoo uses"));
        }
        self.blank();
        self.tag("</value>")
    }

    fn array(&mut self, deeper: u8) -> Result<(), Misplaced> {
        self.blank();
        self.tag("<data>")?;
        self.blank();
        while !self.take("</data>") {
            self.value(deeper)?;
            self.blank();
        }
        self.blank();
        self.tag("</array>")
    }

    fn members(&mut self, deeper: u8) -> Result<(), Misplaced> {
        let mut names = HashSet::new();
        self.blank();
        while !self.take("</struct>") {
            self.tag("<member>")?;
            self.blank();
            self.tag("<name>")?;
            let name = self.text_until("</name>")?;
            let fits = !name.is_empty() && is_plain_character_data(name);
            self.expect(fits, "a name that is empty or no character data")?;
            self.expect(names.insert(name), "a name twice in one struct")?;
            self.blank();
            self.value(deeper)?;
            self.blank();
            self.tag("</member>")?;
            self.blank();
        }
        Ok(())
    }

    fn expect(&self, holds: bool, what: &'static str) -> Result<(), Misplaced> {
        if holds { Ok(()) } else { Err(self.misplaced(what)) }
    }
}

/// A decimal number with an optional exponent, or one of Python's words for what is none.
fn is_double(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if matches!(unsigned, "nan" | "inf") {
        return true;
    }
    let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some((whole, decimals)) => digits(whole) && digits(decimals),
        None => digits(mantissa),
    };
    mantissa_fits && digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
}
