//! Money: one spelling, in each currency its own decimals, and limits to the last minor unit.

use serde_json::json;

use super::arena::{Arena, INVALID, Refused, args, mandate};
use super::raw::Call;
use crate::daemon::Installation;

const OVER: Refused = Refused::Denied(403, "policy", "amount-within-residual");

fn of(amount: &str) -> String {
    args(&[("amount", &serde_json::to_string(amount).unwrap())])
}

#[tokio::test]
async fn an_amount_has_one_spelling() {
    let arena = Arena::open().await;
    for amount in [
        "",
        "0",
        "0.0",
        "0.00",
        "00.00",
        "-0.00",
        "-1",
        "-1200.00",
        "+1",
        "+1200.00",
        "--1",
        "1e3",
        "1E3",
        "1e+3",
        "1.2e3",
        "12e2",
        "1200e0",
        "1,200.00",
        "1.200,00",
        "1200,00",
        "1 200.00",
        "1'200.00",
        "1_200.00",
        "1200.",
        ".5",
        ".",
        "..",
        "1.2.3",
        "1200.000",
        "1200.001",
        "0.001",
        "0.009",
        "1200.00000000000000000000",
        " 1200.00",
        "1200.00 ",
        "\u{a0}1200.00",
        "1200.00\u{200b}",
        "\u{feff}1200.00",
        "\u{202e}00.0021",
        "1200\u{ff0e}00",
        "1200\u{2024}00",
        "\u{ff11}\u{ff12}\u{ff10}\u{ff10}",
        "\u{661}\u{662}\u{660}\u{660}",
        "\u{2212}1",
        "\u{b9}",
        "\u{2460}",
        "\u{bd}",
        "\u{221e}",
        "NaN",
        "nan",
        "Infinity",
        "-inf",
        "null",
        "true",
        "0x4b0",
        "0b1",
        "0o7",
        "1200.00 EUR",
        "EUR 1200.00",
        "\u{20ac}1200.00",
        "1200,-",
        "1/2",
        "50%",
        "1200.00-",
        "(1200.00)",
        "one",
        "1200.00;0.01",
        "1200.00'",
        "$(1)",
        "1200.0a",
        "a",
        "1.2e400",
        "1000000000000000.00",
        "9999999999999999",
        "99999999999999999999",
        "1234567890123456789012345678901234567890",
        "0.1234567890123456789012345678901234567890",
        "1234567890123456789012345678901234567890e-38",
        "9223372036854775807",
        "9223372036854775808",
        "92233720368547758.07",
        "-92233720368547758.08",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
        "79228162514264337593543950335",
        "79228162514264337593543950336",
        "1200.0000000000000000000000000abc",
    ] {
        arena.refuses(amount, &arena.proposal(of(amount)), INVALID).await;
    }
    arena.close().await;
}

#[tokio::test]
async fn an_amount_is_at_most_what_is_left_to_the_last_cent() {
    let arena = Arena::open().await;
    for amount in [
        "1200.01",
        "1201",
        "12000",
        "1200.1",
        "120000.00",
        "999999999999999",
        "999999999999999.99",
        "100000000000000.00",
    ] {
        arena.refuses(amount, &arena.proposal(of(amount)), OVER).await;
    }
    let less = of("1199.99").replacen('{', "{\"mode\":\"prepare\",", 1);
    let part = arena.takes("a cent less", &arena.proposal(less), 200).await;
    assert_eq!(part.text("/decision/effect"), "four_eyes", "{}", part.body);
    assert_eq!(part.text("/params/amount/bound"), "1200.00", "{}", part.body);
    // Zeros in front are digits, and the record's own spelling is what is used.
    let spelled = of("0001200.0").replacen('{', "{\"mode\":\"prepare\",", 1);
    let spelled = arena.takes("zeros", &arena.proposal(spelled), 200).await;
    assert_eq!(spelled.text("/params/amount/value"), "1200.00", "{}", spelled.body);
    assert_eq!(spelled.text("/decision/effect"), "allow", "{}", spelled.body);
    arena.close().await;
}

#[tokio::test]
async fn decimals_are_those_of_the_currency_that_is_said() {
    let arena = Arena::open().await;
    let sent = |amount: &str, currency: &str| {
        args(&[("amount", &format!("\"{amount}\"")), ("currency", &format!("\"{currency}\""))])
    };
    let other = Refused::Denied(403, "provenance", "not_in_mandate");
    for (amount, currency, refused) in [
        ("1200.00", "JPY", INVALID),
        ("1200.0", "JPY", INVALID),
        ("1200.", "JPY", INVALID),
        ("1200", "JPY", other),
        ("1200.0001", "KWD", INVALID),
        ("1200.001", "KWD", other),
        ("1200", "KWD", other),
        ("1200.001", "EUR", INVALID),
        ("0", "JPY", INVALID),
        ("0.000", "KWD", INVALID),
    ] {
        let what = format!("{amount} {currency}");
        arena.refuses(&what, &arena.proposal(sent(amount, currency)), refused).await;
    }
    arena.close().await;
}

#[tokio::test]
async fn a_bill_in_another_currency_than_the_companys_is_not_paid() {
    let arena = Arena::open().await;
    let rate = Refused::Denied(403, "policy", "currency_needs_rate");
    for (bill, amount) in [
        ("INV-JPY", "1200.00"),
        ("INV-JPY", "120000"),
        ("INV-JPY", "120000.00"),
        ("INV-KWD", "120.00"),
        ("INV-KWD", "0.01"),
    ] {
        let (bill, amount) = (format!("\"{bill}\""), format!("\"{amount}\""));
        let sent = args(&[("invoice_ref", &bill), ("amount", &amount)]);
        arena.refuses(&bill, &arena.proposal(sent), rate).await;
    }
    arena.close().await;
}

/// An agent of a company with another currency.
struct Other {
    token: String,
    vendor: &'static str,
    currency: &'static str,
}

impl Other {
    fn new(
        installation: &Installation,
        company: &str,
        source: &str,
        vendor: &'static str,
        currency: &'static str,
    ) -> Self {
        installation.add_user("marie", "accountant", company);
        let token = mandate(installation, "marie", "ap-agent", company, source, currency);
        Self { token, vendor, currency }
    }

    fn pays(&self, arena: &Arena, bill: &str, amount: &str) -> Call {
        let sent = args(&[
            ("invoice_ref", &format!("\"{bill}\"")),
            ("payee_iban", &format!("{{\"ref\":\"{}\"}}", self.vendor)),
            ("amount", &format!("\"{amount}\"")),
            ("currency", &format!("\"{}\"", self.currency)),
        ]);
        arena.proposal(sent).set("Authorization", format!("Bearer {}", self.token))
    }
}

#[tokio::test]
async fn yen_and_fils_are_paid_as_they_are_and_limits_round_up() {
    let installation = Installation::with(super::arena::WORLD, "sqlite://countersign.db", "");
    let crane = Other::new(&installation, "grey-crane", "CH9300762011623852957", "C-1", "JPY");
    let heron = Other::new(&installation, "white-heron", "ES9121000418450200051332", "H-1", "KWD");
    let token = crane.token.clone();
    let arena = Arena::of(installation, token).await;
    for (other, bill, amount, refused) in [
        (&crane, "CR-1", "5000.00", INVALID),
        (&crane, "CR-1", "5001", OVER),
        (&crane, "CR-1", "500000", OVER),
        (&heron, "HE-1", "5000", OVER),
        (&heron, "HE-1", "4999.9991", INVALID),
    ] {
        arena.refuses(amount, &other.pays(&arena, bill, amount), refused).await;
    }
    arena.takes("5000 yen", &crane.pays(&arena, "CR-1", "5000"), 201).await;
    let over = arena.takes("5001 yen", &crane.pays(&arena, "CR-2", "5001"), 202).await;
    assert_eq!(over.text("/approval/level"), "step_up", "{}", over.body);
    arena.takes("4999.999 dinars", &heron.pays(&arena, "HE-1", "4999.999"), 201).await;
    // 5000.001 is 5000.01 in hundredths, rounded up: above the limit of 5000.00.
    let over = arena.takes("5000.001 dinars", &heron.pays(&arena, "HE-2", "5000.001"), 202).await;
    assert_eq!(over.text("/approval/level"), "step_up", "{}", over.body);
    let paid: Vec<_> = arena
        .paid()
        .iter()
        .map(|paid| (paid["amount"].clone(), paid["currency"].clone()))
        .collect();
    let expected = [(json!("5000"), json!("JPY")), (json!("4999.999"), json!("KWD"))];
    assert_eq!(paid, expected);
    arena.close().await;
}
