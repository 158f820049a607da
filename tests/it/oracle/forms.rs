//! What a proposal says, read by the rules of API 1 and 3 alone.

use serde_json::{Map, Value};

use super::world::is_iban;

/// A proposal in its forms.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) bill: String,
    pub(super) payee: Payee,
    /// Minor units of the currency.
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Payee {
    Number(String),
    OnFile(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Number(String),
    Journal(String),
}

/// The currencies that anybody here names, with their decimals.
const CURRENCIES: [(&str, usize); 4] = [("EUR", 2), ("USD", 2), ("JPY", 0), ("KWD", 3)];

/// Reads a proposal that says its mode; else the codes with which stage `contract` may refuse it.
pub(super) fn read(body: &Value) -> Result<Asked, Vec<&'static str>> {
    let mut wrong = Vec::new();
    let mode = body.get("mode").unwrap_or(&Value::Null);
    if !["commit", "prepare"].iter().any(|known| mode == known) {
        wrong.push("invalid_mode");
    }
    if body["action"] != "invoice.pay" {
        wrong.push("unknown_action");
    }
    let asked = body.get("args").and_then(Value::as_object).and_then(arguments);
    if asked.is_none() {
        wrong.push("invalid_args");
    }
    asked.filter(|_| wrong.is_empty()).ok_or(wrong)
}

fn arguments(args: &Map<String, Value>) -> Option<Asked> {
    let names = ["invoice_ref", "payee_iban", "amount", "currency", "source_account"];
    if args.len() != names.len() || names.iter().any(|name| !args.contains_key(*name)) {
        return None;
    }
    let bill = text(&args["invoice_ref"])?;
    let currency = text(&args["currency"])?;
    let (_, decimals) = CURRENCIES.iter().find(|(code, _)| *code == currency)?;
    let amount = amount(&text(&args["amount"])?, *decimals)?;
    let payee = match reference(&args["payee_iban"]) {
        Some(vendor) => Payee::OnFile(vendor),
        None => Payee::Number(number(&text(&args["payee_iban"])?)?),
    };
    let source = match reference(&args["source_account"]) {
        Some(journal) => Source::Journal(journal),
        None => Source::Number(number(&text(&args["source_account"])?)?),
    };
    Some(Asked { bill, payee, amount, currency, source })
}

fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let fits = !text.is_empty() && text.chars().count() <= 500;
    (fits && !text.chars().any(char::is_control)).then(|| text.to_owned())
}

fn reference(value: &Value) -> Option<String> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    text(members.get("ref")?)
}

/// An account number in any spelling that is accepted: ASCII spaces and small letters.
fn number(text: &str) -> Option<String> {
    let electronic = text.replace(' ', "").to_ascii_uppercase();
    is_iban(&electronic).then_some(electronic)
}

/// Digits and one point, at most so many decimals, at most 15 digits before it, above zero.
fn amount(text: &str, decimals: usize) -> Option<i64> {
    let (whole, part) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (1..=15).contains(&whole.len()) && part.len() <= decimals;
    if !fits || !digits(whole) || !digits(part) {
        return None;
    }
    let zeros = "0".repeat(decimals - part.len());
    format!("{whole}{part}{zeros}").parse().ok().filter(|minor| *minor > 0)
}
