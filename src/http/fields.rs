//! The body of a human's call: one JSON object, of which every member is known and of its type.
//! What was sent is not repeated in an answer.

use secrecy::SecretString;
use serde_json::{Map, Number, Value};

use super::call::{Field, names};
use super::code::Code;
use super::problem::Problem;
use crate::gateway::contract;

/// The most characters of a text.
const TEXT_CHARS_MAX: usize = 500;
/// The most texts in a list.
const TEXTS_MAX: usize = 50;

/// The members of a body.
pub(super) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads a body that has no member besides those.
    pub(super) fn read(body: &[u8], known: &[Field]) -> Result<Self, Problem> {
        let Value::Object(members) = contract::strict_json(body)? else {
            let detail = "the body is not a JSON object";
            return Err(Problem::new(Code::MALFORMED_BODY, detail));
        };
        if members.keys().any(|key| !known.iter().any(|known| known.name == key)) {
            let detail = format!("the members of this body are `{}`", names(known).join("`, `"));
            return Err(Problem::new(Code::MALFORMED_BODY, detail));
        }
        Ok(Self(members))
    }

    /// A text that must be there.
    pub(super) fn text(&self, name: &str) -> Result<&str, Problem> {
        self.opt_text(name)?.ok_or_else(|| missing(name))
    }

    /// A text that may be left out. `null` is not left out.
    pub(super) fn opt_text(&self, name: &str) -> Result<Option<&str>, Problem> {
        self.0.get(name).map(|value| plain_text(name, value)).transpose()
    }

    /// A text in a form of its own that must be there.
    pub(super) fn parse<T>(
        &self,
        name: &str,
        form: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Problem> {
        parse(self.text(name)?).ok_or_else(|| invalid(name, form))
    }

    /// A list of texts that must be there; it may be empty.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<&str>, Problem> {
        let value = self.0.get(name).ok_or_else(|| missing(name))?;
        let items = value.as_array().filter(|items| items.len() <= TEXTS_MAX);
        let items = items.ok_or_else(|| invalid(name, "a list of texts"))?;
        items.iter().map(|item| plain_text(name, item)).collect()
    }

    /// A whole number above zero that may be left out.
    pub(super) fn opt_count(&self, name: &str) -> Result<Option<i64>, Problem> {
        let read = |value: &Value| {
            let number = value.as_number().and_then(Number::as_i64).filter(|number| *number > 0);
            number.ok_or_else(|| invalid(name, "a whole number above zero"))
        };
        self.0.get(name).map(read).transpose()
    }

    /// A text that nobody prints, of any characters, that must be there.
    pub(super) fn secret(&self, name: &str) -> Result<SecretString, Problem> {
        self.opt_secret(name)?.ok_or_else(|| missing(name))
    }

    /// The same where it may be left out.
    pub(super) fn opt_secret(&self, name: &str) -> Result<Option<SecretString>, Problem> {
        let read = |value: &Value| {
            value.as_str().map(SecretString::from).ok_or_else(|| invalid(name, "a text"))
        };
        self.0.get(name).map(read).transpose()
    }
}

/// A member whose value cannot be taken.
pub(super) fn invalid(name: &str, form: &str) -> Problem {
    Problem::new(Code::INVALID_FIELD, format!("`{name}` is {form}"))
}

fn missing(name: &str) -> Problem {
    Problem::new(Code::INVALID_FIELD, format!("`{name}` is missing"))
}

fn plain_text<'v>(name: &str, value: &'v Value) -> Result<&'v str, Problem> {
    let text = value.as_str().ok_or_else(|| invalid(name, "a text"))?;
    if text.chars().any(char::is_control) {
        return Err(invalid(name, "a text without control characters"));
    }
    if text.is_empty() || text.chars().count() > TEXT_CHARS_MAX {
        let form = format!("a text of 1 to {TEXT_CHARS_MAX} characters");
        return Err(invalid(name, &form));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Field; 2] =
        [Field::may("a", super::super::forms::text), Field::may("b", super::super::forms::text)];

    fn read(body: &str) -> Result<Fields, Problem> {
        Fields::read(body.as_bytes(), &KNOWN)
    }

    #[test]
    fn a_body_is_one_object_of_known_members() {
        assert!(read("{}").is_ok());
        assert!(read(r#"{"a":"x","b":["y"]}"#).is_ok());
        for bad in ["", "null", "[]", r#"["x"]"#, r#""a""#, "{", r#"{"c":"x"}"#, "{}x"] {
            assert!(read(bad).is_err(), "`{bad}`");
        }
        for twice in [r#"{"a":"x","a":"x"}"#, r#"{"a":"x","\u0061":"x"}"#] {
            assert!(read(twice).is_err(), "`{twice}`");
        }
        assert!(Fields::read(b"{\"a\":\"\xff\"}", &KNOWN).is_err());
    }

    #[test]
    fn a_member_is_of_its_type() {
        let text = |value: &str| read(&format!(r#"{{"a":{value}}}"#)).unwrap().text("a").is_ok();
        assert!(text(r#""é x""#));
        assert!(text(&format!("\"{}\"", "é".repeat(500))));
        for bad in ["null", "1", "true", "{}", "[]", r#""""#, r#""a\nb""#, r#""\u0000""#] {
            assert!(!text(bad), "{bad}");
        }
        assert!(!text(&format!("\"{}\"", "é".repeat(501))));
        assert!(read("{}").unwrap().text("a").is_err());
        assert_eq!(read("{}").unwrap().opt_text("a"), Ok(None));
        assert!(read(r#"{"a":null}"#).unwrap().opt_text("a").is_err(), "null is a value");

        let count = |value: &str| read(&format!(r#"{{"a":{value}}}"#)).unwrap().opt_count("a").ok();
        assert_eq!(count("3"), Some(Some(3)));
        for bad in ["0", "-1", "1.5", "1.0", "1e3", "\"3\"", "null", "9223372036854775808"] {
            assert_eq!(count(bad), None, "{bad}");
        }

        let texts = |value: &str| read(&format!(r#"{{"a":{value}}}"#)).unwrap().texts("a").is_ok();
        assert!(texts(r#"["x","y"]"#));
        for bad in [r#""x""#, "[1]", "[null]", r#"{"x":"y"}"#, r#"[["x"]]"#, "null"] {
            assert!(!texts(bad), "{bad}");
        }
        let many = vec![r#""x""#; 51].join(",");
        assert!(!texts(&format!("[{many}]")));

        let half = |text: &str| text.strip_prefix("half ").map(str::to_owned);
        let read_half = |body: &str| read(body).unwrap().parse("a", "half of something", half);
        assert_eq!(read_half(r#"{"a":"half moon"}"#), Ok("moon".to_owned()));
        assert!(read_half(r#"{"a":"moon"}"#).is_err() && read_half("{}").is_err());

        assert!(read(r#"{"a":"\u0000\n"}"#).unwrap().secret("a").is_ok(), "any characters");
        assert!(read(r#"{"a":7}"#).unwrap().secret("a").is_err());
    }
}
