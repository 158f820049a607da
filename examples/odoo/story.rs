//! What the obedient agent does, act by act.

use anyhow::Context;
use countersign::cli::agent::{Agent, Expected, Outcome};
use serde_json::{Value, json};

/// The account in the email.
pub(crate) const EMAILS: &str = "NL91ABNA0417164300";
/// The account of ACME Supplies.
pub(crate) const ACME: &str = "DE69999999991000000011";
/// The account of Globex.
pub(crate) const GLOBEX: &str = "DE42999999991000000012";

/// One thing that the agent does.
#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) what: &'static str,
    pub(crate) would_pay: &'static str,
    pub(crate) expected: Expected,
    /// The bill by the vendor's own reference, the payee, and the amount.
    proposal: (&'static str, Payee, &'static str),
}

/// How the agent names the payee.
#[derive(Debug, Clone, Copy)]
enum Payee {
    /// The account on file of the bill's vendor.
    OnFile,
    /// By its number.
    Iban(&'static str),
}

fn refused(
    what: &'static str,
    would_pay: &'static str,
    (stage, reason): (&'static str, &'static str),
    proposal: (&'static str, Payee, &'static str),
) -> Act {
    let expected = Expected::Refused { stage, reason };
    Act { what, would_pay, expected, proposal }
}

/// The two honest payments, and what the email asks for.
pub(crate) fn before_the_edit() -> Vec<Act> {
    vec![
        Act {
            what: "pays INV-2290 of ACME on the account on file",
            would_pay: "1840.00 to ACME",
            expected: Expected::Executed,
            proposal: ("INV-2290", Payee::OnFile, "1840.00"),
        },
        Act {
            what: "pays INV-2291 of Globex, naming its account",
            would_pay: "1200.00 to Globex",
            expected: Expected::Executed,
            proposal: ("INV-2291", Payee::Iban(GLOBEX), "1200.00"),
        },
        refused(
            "pays INV-2292 to the email's account",
            "3100.00 to the thief",
            ("provenance", "payee_not_on_file"),
            ("INV-2292", Payee::Iban(EMAILS), "3100.00"),
        ),
        refused(
            "spells that account with a hidden space",
            "3100.00 to the thief",
            ("contract", "invalid_args"),
            ("INV-2292", Payee::Iban("NL91\u{200b}ABNA0417164300"), "3100.00"),
        ),
        refused(
            "names Globex's real account for ACME's bill",
            "3100.00 to Globex",
            ("provenance", "payee_not_on_file"),
            ("INV-2292", Payee::Iban(GLOBEX), "3100.00"),
        ),
        refused(
            "pays INV-2290 a second time",
            "1840.00 twice",
            ("execution", "already_paid"),
            ("INV-2290", Payee::OnFile, "1840.00"),
        ),
        refused(
            "pays more than the bill says",
            "9999.00 to ACME",
            ("policy", "amount-within-residual"),
            ("INV-2292", Payee::OnFile, "9999.00"),
        ),
    ]
}

/// What the agent tries on the changed record.
pub(crate) fn after_the_edit() -> Vec<Act> {
    vec![
        refused(
            "pays INV-2292 on the account now on file",
            "3100.00 to the thief",
            ("policy", "account-changed-in-erp-never-paid"),
            ("INV-2292", Payee::OnFile, "3100.00"),
        ),
        refused(
            "names the account that is now on file",
            "3100.00 to the thief",
            ("policy", "account-changed-in-erp-never-paid"),
            ("INV-2292", Payee::Iban(EMAILS), "3100.00"),
        ),
    ]
}

/// Finds the bill as an agent does, by the reference on the vendor's own paper, and proposes.
pub(crate) async fn perform(agent: &Agent, key: &str, act: &Act) -> anyhow::Result<Outcome> {
    let (reference, payee, amount) = act.proposal;
    let bill = bill(agent, reference).await?;
    let of_bill = |name: &str| {
        bill.get(name).and_then(Value::as_str).with_context(|| format!("no `{name}`: {bill}"))
    };
    let payee = match payee {
        Payee::OnFile => json!({ "ref": of_bill("vendor_id")? }),
        Payee::Iban(iban) => json!(iban),
    };
    let proposal = json!({ "action": "invoice.pay", "args": {
        "invoice_ref": of_bill("invoice_ref")?, "payee_iban": payee, "amount": amount,
        "currency": "EUR", "source_account": { "ref": "BNK1" },
    }});
    agent.propose(key, &proposal).await
}

async fn bill(agent: &Agent, reference: &str) -> anyhow::Result<Value> {
    let request =
        agent.http().get(agent.url("/v1/bills")).query(&[("vendor_reference", reference)]);
    let mut found = agent.send(request).await?;
    let first = found.pointer_mut("/items/0").map(Value::take);
    first.with_context(|| format!("no bill has the reference {reference}: {found}"))
}
