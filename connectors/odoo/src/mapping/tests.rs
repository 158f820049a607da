//! Figures, dates and ids as Odoo sends them.

use proptest::prelude::*;

use super::*;
use crate::xmlrpc::{self, Value};

fn currency(code: &str) -> Currency {
    Currency::from_code(code).unwrap()
}

fn figure(value: Value) -> Option<Figure> {
    xmlrpc::decode(value)
}

#[track_caller]
fn check(double: f64, code: &str, minor: Option<i64>) {
    let amount = figure(Value::Double(double)).and_then(|figure| figure.amount(currency(code)));
    assert_eq!(amount.map(Amount::minor), minor, "{double} {code}");
}

#[test]
fn a_double_becomes_whole_minor_units_or_nothing() {
    check(1840.0, "EUR", Some(184_000));
    check(1234.1, "EUR", Some(123_410));
    check(1_234_567.89, "EUR", Some(123_456_789));
    check(0.1 + 0.2, "EUR", Some(30));
    check(-33.36, "EUR", Some(-3336));
    check(10_000.0, "JPY", Some(10_000));
    check(1.001, "KWD", Some(1001));
    check(0.0, "EUR", Some(0));
    check(1e-7, "EUR", Some(0));
    check(99.999, "EUR", None);
    check(0.5, "JPY", None);
    check(1e30, "EUR", None);
    check(1e16, "EUR", Some(1_000_000_000_000_000_000));
    check(f64::NAN, "EUR", None);
    check(f64::INFINITY, "EUR", None);
}

#[test]
fn a_figure_is_no_text_and_no_truth() {
    assert_eq!(figure(Value::Int(7)).and_then(|f| f.amount(currency("EUR"))).unwrap().minor(), 700);
    assert_eq!(figure(Value::Bool(false)), None);
    assert_eq!(figure(Value::String("x".to_owned())), None);
}

#[test]
fn only_a_number_as_odoo_prints_it_is_an_id() {
    assert_eq!(record_id("42"), Some(42));
    for wrong in ["", "0", "-1", "+1", "042", "1 ", "4.2", "V-100", "2147483648", "٤"] {
        assert_eq!(record_id(wrong), None, "{wrong}");
    }
}

#[test]
fn moments_are_utc_and_nothing_else() {
    let at = moment("2026-11-29 20:38:51").unwrap();
    assert_eq!(at.to_string(), "2026-11-29T20:38:51.000Z");
    for wrong in ["", "2026-11-29", "2026-11-29T20:38:51Z", "2026-13-29 20:38:51"] {
        assert_eq!(moment(wrong), None, "{wrong}");
    }
}

proptest! {
    #[test]
    fn every_amount_survives_its_double(minor in -9_000_000_000_000_i64..9_000_000_000_000) {
        let amount = Amount::from_minor(minor, currency("EUR"));
        let double: f64 = amount.to_decimal_string().parse().unwrap();
        let read = figure(Value::Double(double)).and_then(|figure| figure.amount(currency("EUR")));
        prop_assert_eq!(read, Some(amount));
        prop_assert_eq!(super::amount(&amount.to_decimal_string(), currency("EUR")), Some(amount));
    }
}
