//! Stage `contract`: what was sent, read strictly. A proposal has an action, its arguments and a
//! mode, and the caller has no field for anything else.
//!
//! It knows names and forms of JSON, not what an argument means: that is the pack's.

use std::collections::BTreeMap;
use std::fmt;

use aws_lc_rs::digest;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::hex;
use super::pack::Denial;
use crate::domain::decision::Stage;
use crate::domain::reason::Reason;

/// The most characters that a text argument may have before its own form is looked at.
const TEXT_CHARS_MAX: usize = 500;

/// Whether to execute what is permitted, or only to say what would happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Decide and execute.
    Commit,
    /// Decide only.
    Prepare,
}

/// A body that is no proposal at all: no operation comes of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

/// A proposal that could be read. What is wrong inside is decided at stage `contract`.
#[derive(Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The action as it was sent; other JSON than a text is kept as its text.
    pub action: String,
    /// The arguments as they were sent.
    pub args: String,
    /// The mode; `None` if it was neither of the two.
    pub mode: Option<Mode>,
    /// SHA-256 over the canonical form: the same content in another spelling has the same.
    pub digest: String,
}

impl fmt::Debug for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What was sent may hold whole account numbers.
        f.debug_struct("Proposal").field("digest", &self.digest).finish_non_exhaustive()
    }
}

/// The members of a body, each at most once. What is refused is not repeated: it is the caller's
/// own text, of any length.
#[derive(Default)]
struct Body<'a> {
    action: Option<&'a RawValue>,
    args: Option<&'a RawValue>,
    mode: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for Body<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BodyVisitor;
        impl<'de> Visitor<'de> for BodyVisitor {
            type Value = Body<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Body<'de>, A::Error> {
                let mut body = Body::default();
                while let Some(key) = entries.next_key::<String>()? {
                    let member = match key.as_str() {
                        "action" => &mut body.action,
                        "args" => &mut body.args,
                        "mode" => &mut body.mode,
                        _ => {
                            let text = "a key besides `action`, `args` and `mode`";
                            return Err(de::Error::custom(text));
                        }
                    };
                    if member.replace(entries.next_value()?).is_some() {
                        return Err(de::Error::custom("a key stands twice"));
                    }
                }
                Ok(body)
            }
        }
        deserializer.deserialize_map(BodyVisitor)
    }
}

impl Proposal {
    /// What a human begins by a call of its own, to be committed.
    pub fn of(action: &str, args: &serde_json::Value) -> Self {
        let args = args.to_string();
        let digest = sha256(&format!("{action} {args}"));
        Self { action: action.to_owned(), args, mode: Some(Mode::Commit), digest }
    }

    /// Reads a body.
    ///
    /// # Errors
    /// [`Unreadable`] if it is no JSON object, or one with a duplicate or unknown key.
    pub fn from_body(body: &[u8]) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(body)
            .map_err(|fault| Unreadable(format!("the body is not UTF-8: {fault}")))?;
        if !text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{') {
            return Err(Unreadable("the body is not a JSON object".to_owned()));
        }
        let parts: Body<'_> = serde_json::from_str(text)
            .map_err(|fault| Unreadable(format!("the body is not a proposal: {fault}")))?;
        let raw = |part: Option<&RawValue>| part.map_or("null", RawValue::get).to_owned();
        let action = raw(parts.action);
        let mode = match parts.mode.map(RawValue::get) {
            None => Some(Mode::Commit),
            Some(text) => match serde_json::from_str::<String>(text).as_deref() {
                Ok("commit") => Some(Mode::Commit),
                Ok("prepare") => Some(Mode::Prepare),
                Ok(_) | Err(_) => None,
            },
        };
        let args = raw(parts.args);
        let mode_text = parts.mode.map_or("\"commit\"", RawValue::get);
        let canonical = canonical(&[("action", &action), ("args", &args), ("mode", mode_text)]);
        // What has no canonical form (duplicate keys, too deep) is itself only, spelling included.
        let digest = sha256(canonical.as_deref().unwrap_or(text));
        let action = serde_json::from_str::<String>(&action).unwrap_or(action);
        Ok(Self { action: printable(&action), args, mode, digest })
    }
}

fn sha256(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

fn canonical(parts: &[(&str, &str)]) -> Option<String> {
    let values: BTreeMap<&str, Strict> = parts
        .iter()
        .map(|(name, text)| serde_json::from_str::<Strict>(text).map(|value| (*name, value)))
        .collect::<Result<_, _>>()
        .ok()?;
    let values: BTreeMap<&str, &serde_json::Value> =
        values.iter().map(|(name, value)| (*name, &value.0)).collect();
    serde_json_canonicalizer::to_string(&values).ok()
}

/// Reads a JSON text in which no object has a key twice.
///
/// # Errors
/// [`Unreadable`].
pub fn strict_json(body: &[u8]) -> Result<serde_json::Value, Unreadable> {
    serde_json::from_slice::<Strict>(body)
        .map(|value| value.0)
        .map_err(|fault| Unreadable(format!("the body is not JSON that can be read: {fault}")))
}

/// Any JSON value in which no object has a key twice.
struct Strict(serde_json::Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StrictVisitor;
        impl<'de> Visitor<'de> for StrictVisitor {
            type Value = serde_json::Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(serde_json::Value::Null)
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
                Ok(value.into())
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                Ok(value.into())
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
                Ok(value.into())
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
                Ok(value.into())
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
                Ok(value.into())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(Strict(item)) = items.next_element()? {
                    all.push(item);
                }
                Ok(all.into())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut all = serde_json::Map::new();
                while let Some((key, Strict(value))) = entries.next_entry::<String, Strict>()? {
                    if all.insert(key, value).is_some() {
                        return Err(de::Error::custom("a key stands twice in one object"));
                    }
                }
                Ok(all.into())
            }
        }
        deserializer.deserialize_any(StrictVisitor).map(Self)
    }
}

/// The value of an argument: a text, or a reference that the gateway resolves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Term {
    /// A text.
    Text(String),
    /// `{"ref":"…"}`.
    Reference(String),
}

impl Term {
    fn read(name: &str, value: &serde_json::Value) -> Result<Self, Denial> {
        let neither = || invalid(&format!("`{name}` is neither a text nor {{\"ref\":\"…\"}}"));
        let (term, text) = match value {
            serde_json::Value::String(text) => (Self::Text(text.clone()), text),
            serde_json::Value::Object(members) if members.len() == 1 => {
                let text = members.get("ref").and_then(as_text).ok_or_else(neither)?;
                (Self::Reference(text.clone()), text)
            }
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::Array(_)
            | serde_json::Value::Object(_) => return Err(neither()),
        };
        if text.chars().any(char::is_control) {
            return Err(invalid(&format!("`{name}` holds a control character")));
        }
        if text.is_empty() || text.chars().count() > TEXT_CHARS_MAX {
            return Err(invalid(&format!("`{name}` has 1 to {TEXT_CHARS_MAX} characters")));
        }
        Ok(term)
    }
}

fn as_text(value: &serde_json::Value) -> Option<&String> {
    match value {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_) => None,
    }
}

/// The arguments of an action, each exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms(BTreeMap<String, Term>);

impl Terms {
    /// Reads arguments that are exactly those named.
    ///
    /// # Errors
    /// A denial at stage `contract` that names the argument.
    pub fn parse(args: &str, names: &[&str]) -> Result<Self, Denial> {
        // What was sent is not repeated in the answer: it may be long, or a whole account number.
        let Strict(value) = serde_json::from_str(args)
            .map_err(|_fault| invalid("`args` has a key twice, or is nested too deep"))?;
        let serde_json::Value::Object(members) = value else {
            return Err(invalid("`args` is not an object"));
        };
        if members.keys().any(|key| !names.contains(&key.as_str())) {
            let known = names.join("`, `");
            return Err(invalid(&format!("`args` has a key besides `{known}`")));
        }
        let mut terms = BTreeMap::new();
        for name in names {
            let value =
                members.get(*name).ok_or_else(|| invalid(&format!("`{name}` is missing")))?;
            terms.insert((*name).to_owned(), Term::read(name, value)?);
        }
        Ok(Self(terms))
    }

    /// An argument that must be a text.
    ///
    /// # Errors
    /// A denial at stage `contract`.
    pub fn text(&self, name: &str) -> Result<&str, Denial> {
        match self.term(name)? {
            Term::Text(text) => Ok(text),
            Term::Reference(_) => Err(invalid(&format!("`{name}` cannot be a reference"))),
        }
    }

    /// An argument that may be a text or a reference.
    ///
    /// # Errors
    /// A denial at stage `contract`.
    pub fn term(&self, name: &str) -> Result<&Term, Denial> {
        self.0.get(name).ok_or_else(|| invalid(&format!("`{name}` is missing")))
    }
}

/// A denial at stage `contract`.
pub fn invalid(detail: &str) -> Denial {
    Denial::saying(Stage::Contract, Reason::InvalidArgs, detail)
}

/// The caller's own text, shortened and without characters that change how it is shown.
fn printable(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["payee", "amount"];

    #[track_caller]
    fn refused(args: &str, expected: &str) {
        let denial = Terms::parse(args, &NAMES).unwrap_err();
        assert_eq!(denial.stage, Stage::Contract);
        assert!(denial.detail.contains(expected), "`{args}`: {}", denial.detail);
    }

    #[test]
    fn arguments_are_exactly_those_of_the_action() {
        let terms = Terms::parse(r#"{"payee":{"ref":"V-1"},"amount":"1.00"}"#, &NAMES).unwrap();
        assert_eq!(terms.term("payee"), Ok(&Term::Reference("V-1".to_owned())));
        assert_eq!(terms.text("amount"), Ok("1.00"));
        assert!(terms.text("payee").is_err(), "a reference is no text");
        refused(r#"{"payee":"a"}"#, "`amount` is missing");
        refused(r#"{"payee":"a","amount":"1","scope":"all"}"#, "besides `payee`, `amount`");
        refused(r#"{"payee":"a","payee":"b","amount":"1"}"#, "key twice");
        refused(r#"{"payee":"a","\u0070ayee":"b","amount":"1"}"#, "key twice");
        refused(r#"["a","1"]"#, "not an object");
        refused("null", "not an object");
        for value in ["1", "1.0", "null", "true", "[]", "{}", r#"["1"]"#, r#"{"ref":1}"#] {
            refused(&format!(r#"{{"payee":"a","amount":{value}}}"#), "`amount`");
        }
        for value in [r#"{"ref":"V","x":"y"}"#, r#"{"x":"V"}"#, r#"{"ref":{"ref":"V"}}"#] {
            refused(&format!(r#"{{"payee":{value},"amount":"1"}}"#), "`payee`");
        }
        refused(r#"{"payee":{"ref":"V","ref":"W"},"amount":"1"}"#, "key twice");
        for value in [r#""\u0000""#, r#""a\nb""#, r#"{"ref":"\u007f"}"#] {
            refused(&format!(r#"{{"payee":{value},"amount":"1"}}"#), "control character");
        }
        refused(&format!(r#"{{"payee":"{}","amount":"1"}}"#, "a".repeat(501)), "1 to 500");
        refused(r#"{"payee":"","amount":"1"}"#, "1 to 500");
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        refused(&format!(r#"{{"payee":{deep},"amount":"1"}}"#), "nested too deep");
        let number = "NL91ABNA0417164300";
        for args in [format!("\"{number}\""), format!(r#"{{"{number}":"1"}}"#)] {
            let denial = Terms::parse(&args, &NAMES).unwrap_err();
            assert!(!denial.detail.contains(number), "{}", denial.detail);
        }
    }

    #[test]
    fn a_body_is_one_object_with_known_keys() {
        for body in [
            "",
            "null",
            "[]",
            r#"["invoice.pay",{},"commit"]"#,
            "{",
            r#"{"action":"a"}x"#,
            r#"{"action":"a","args":{},"scope":"x"}"#,
            r#"{"action":"a","action":"b","args":{}}"#,
        ] {
            assert!(Proposal::from_body(body.as_bytes()).is_err(), "`{body}`");
        }
        assert!(Proposal::from_body(b"{\"action\":\"\xff\"}").is_err());
        let proposal = Proposal::from_body(br#"{"action":7,"args":[],"mode":"now"}"#).unwrap();
        assert_eq!((proposal.action.as_str(), proposal.mode), ("7", None));
        let long = format!(r#"{{"action":"{}\\u202e","args":{{}}}}"#, "z".repeat(60_000));
        assert_eq!(Proposal::from_body(long.as_bytes()).unwrap().action, "z".repeat(64));
        let null_mode = Proposal::from_body(br#"{"action":"a","args":{},"mode":null}"#).unwrap();
        assert_eq!(null_mode.mode, None, "null is not a default");
    }

    #[test]
    fn the_same_content_has_the_same_digest() {
        let digest = |body: &str| Proposal::from_body(body.as_bytes()).unwrap().digest;
        let one = digest(r#"{"action":"a","args":{"x":"1","y":"2"}}"#);
        assert_eq!(digest(r#"{"mode":"commit","action":"a","args":{"x":"1","y":"2"}}"#), one);
        assert_eq!(digest(r#"{ "args": {"y":"\u0032", "x":"1"}, "action":"a" }"#), one);
        assert_ne!(digest(r#"{"action":"a","args":{"x":"1","y":"3"}}"#), one);
        assert_ne!(digest(r#"{"action":"a","args":{"x":"1","y":"3","y":"2"}}"#), one);
        assert_ne!(digest(r#"{"action":"a","args":{"x":"1","y":"2"},"mode":"prepare"}"#), one);
    }
}
