//! XML-RPC, fenced. It knows no Odoo: bytes in, values out.
//!
//! The parser behind it accepts much that is no XML-RPC and does not undo escapes in strings.
//! So an answer passes a grammar of our own first, is parsed then, and has its texts and names
//! unescaped exactly once after that. Requests are built from values that cannot carry what the
//! wire cannot.
//!
//! INVARIANT: nothing outside this module uses `serde_xmlrpc`'s parser. One difference from XML
//! remains: a string of nothing but white space arrives empty.

mod grammar;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
pub(crate) use serde_xmlrpc::Value;

use self::grammar::Misplaced;

/// What an answer says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// The method's value.
    Value(Value),
    /// The server says that the call failed, which is not yet to say that nothing happened.
    Fault(Fault),
}

/// A fault as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Its code.
    pub(crate) code: i32,
    /// Its text, in which records of the ERP may stand: not for logs.
    pub(crate) text: String,
}

/// A body that is no answer. Its text is not in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotAnAnswer {
    /// Not UTF-8.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// An element or a character at a wrong place.
    #[error(transparent)]
    Misplaced(#[from] Misplaced),
    /// The parser refused what the grammar let pass, or a fault without code and text.
    #[error("the body is not an XML-RPC answer")]
    Unparsed,
}

/// A value that XML-RPC or XML cannot carry, found before anything was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} cannot be sent")]
pub(crate) struct Unsendable(&'static str);

/// Reads the body of an answer.
pub(crate) fn read_answer(body: &[u8]) -> Result<Answer, NotAnAnswer> {
    let text = std::str::from_utf8(body).map_err(|_not_utf8| NotAnAnswer::NotUtf8)?;
    grammar::check_answer(text)?;
    match serde_xmlrpc::response_from_str::<Value>(text) {
        Ok(value) => Ok(Answer::Value(unescaped(value)?)),
        Err(serde_xmlrpc::Error::Fault(fault)) => {
            let text = plain(&fault.fault_string)?;
            Ok(Answer::Fault(Fault { code: fault.fault_code, text }))
        }
        Err(serde_xmlrpc::Error::DecodingError(_) | serde_xmlrpc::Error::EncodingError(_)) => {
            Err(NotAnAnswer::Unparsed)
        }
    }
}

/// Takes a value as the type that is expected, or says nothing but that it is not one: the text of
/// such an error would repeat records.
pub(crate) fn decode<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_xmlrpc::from_value(value).ok()
}

/// Writes the body of a call.
pub(crate) fn write_call(method: &str, params: Vec<Value>) -> Result<String, Unsendable> {
    for param in &params {
        sendable(param)?;
    }
    serde_xmlrpc::request_to_string(method, params).map_err(|_unwritten| Unsendable("a value"))
}

/// A value of JSON as one of XML-RPC. Numbers are whole numbers of 32 bit: money goes out as text.
pub(crate) fn from_json(json: &Json) -> Result<Value, Unsendable> {
    Ok(match json {
        Json::Null => return Err(Unsendable("nothing")),
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => {
            let whole = number.as_i64().and_then(|whole| i32::try_from(whole).ok());
            Value::Int(whole.ok_or(Unsendable("a number that is not whole and of 32 bit"))?)
        }
        Json::String(text) => Value::String(text.clone()),
        Json::Array(items) => Value::Array(items.iter().map(from_json).collect::<Result<_, _>>()?),
        Json::Object(members) => {
            let member = |(name, value): (&String, &Json)| Ok((name.clone(), from_json(value)?));
            Value::Struct(members.iter().map(member).collect::<Result<_, _>>()?)
        }
    })
}

fn sendable(value: &Value) -> Result<(), Unsendable> {
    const CHARACTER: Unsendable = Unsendable("a character that XML cannot carry");
    match value {
        Value::Int(_) | Value::Bool(_) => Ok(()),
        Value::String(text) if text::survives_the_wire(text) => Ok(()),
        Value::String(_) => Err(CHARACTER),
        Value::Array(items) => items.iter().try_for_each(sendable),
        Value::Struct(members) => members.iter().try_for_each(|(name, value)| {
            if !text::survives_the_wire(name) {
                return Err(CHARACTER);
            }
            sendable(value)
        }),
        Value::Int64(_) | Value::Double(_) | Value::DateTime(_) | Value::Base64(_) | Value::Nil => {
            Err(Unsendable("a value of a type that Odoo does not use"))
        }
    }
}

fn unescaped(value: Value) -> Result<Value, NotAnAnswer> {
    Ok(match value {
        Value::String(text) => Value::String(plain(&text)?),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(unescaped).collect::<Result<_, _>>()?)
        }
        Value::Struct(members) => {
            let mut plain_members = BTreeMap::new();
            for (name, value) in members {
                // Two spellings of one name would leave it to chance which of them counts.
                if plain_members.insert(plain(&name)?, unescaped(value)?).is_some() {
                    return Err(NotAnAnswer::Unparsed);
                }
            }
            Value::Struct(plain_members)
        }
        Value::Int(_) | Value::Bool(_) | Value::Double(_) => value,
        Value::Int64(_) | Value::DateTime(_) | Value::Base64(_) | Value::Nil => {
            return Err(NotAnAnswer::Unparsed);
        }
    })
}

fn plain(text: &str) -> Result<String, NotAnAnswer> {
    text::unescape(text).ok_or(NotAnAnswer::Unparsed)
}
