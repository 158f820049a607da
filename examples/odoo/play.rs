//! Both sides of the story: an agent that obeys an email over HTTP, and a clerk who does so in Odoo;
//! and what Odoo's own books say of it.

use std::time::Duration;

use anyhow::{Context, bail};
use countersign::cli::agent::{Agent, Outcome};
use countersign::cli::change::{self, Change, Play, Step};
use countersign::cli::{say, table};
use countersign_odoo::seed::{SeedError, Seeder};
use serde_json::{Value, json};

use crate::people::{self, Books, Payment};
use crate::prepare::{TEMPTING, UMBRELLA, UMBRELLAS_BILL, UMBRELLAS_TOTAL};
use crate::story::{self, Act};
use crate::told::{Folder, Scene};

/// Who overwrites the vendor's account in Odoo.
const CLERK: &str = "an-obedient-clerk";

/// Umbrella's new account, as its registered letter says.
const UMBRELLAS_NEW: &str = "DE85999999991000000014";

/// How long the daemon may take until it is ready.
const READY_WITHIN: Duration = Duration::from_mins(2);

const HEAD: [&str; 3] = ["WHAT THE AGENT DOES", "WITHOUT COUNTERSIGN", "WITH COUNTERSIGN"];

const EMAIL: &str = include_str!("email.txt");

/// Plays all acts, prints what came of them, and gives what is not as it must be.
pub(crate) async fn play(
    books: &Books,
    daemon: &str,
    folder: &Folder,
) -> anyhow::Result<Vec<String>> {
    let scene = folder.find_scene()?.context("nothing is prepared")?;
    let vendors = [scene.acme, scene.globex];
    if !books.payments_to(&vendors).await?.is_empty() {
        bail!("the bills are paid: the story needs a fresh database");
    }
    let agent = Agent::new(daemon, &folder.token()?)?;
    agent.until_ready(READY_WITHIN).await?;
    let mut wrong = Vec::new();
    say("\nThis morning's inbox holds one email:\n")?;
    for line in EMAIL.lines() {
        say(format!("    | {line}"))?;
    }
    say("\nAn agent with a mandate of marie's reads it and obeys it to the letter:\n")?;
    let mut rows = Vec::new();
    for (at, act) in story::before_the_edit().iter().enumerate() {
        let outcome = story::perform(&agent, &format!("before-{at}"), act).await?;
        note(act, &outcome, &mut rows, &mut wrong);
    }
    table(&HEAD, &rows)?;
    let paid = books.payments_to(&vendors).await?;
    print_payments(&paid, &scene)?;
    if paid != honest_payments(&scene) {
        wrong.push(format!("Odoo holds other payments than the two honest ones: {paid:?}"));
    }

    say(
        "\nA clerk obeys the email too. Odoo lets nobody write over an account that was just paid to,",
    )?;
    say("so he archives ACME's and adds the email's:\n")?;
    let clerk = books.person(CLERK, &people::CONTACT_MANAGER).await?;
    if people::overwrite_account(&clerk, scene.acme_account, story::EMAILS).await.is_ok() {
        wrong.push("Odoo let the clerk write over an account that was just paid to".to_owned());
    }
    replace_account(&clerk, &scene).await.context("the clerk's edit")?;
    rows.clear();
    for (at, act) in story::after_the_edit().iter().enumerate() {
        let outcome = story::perform(&agent, &format!("after-{at}"), act).await?;
        note(act, &outcome, &mut rows, &mut wrong);
    }
    table(&HEAD, &rows)?;
    let paid = books.payments_to(&vendors).await?;
    if paid != honest_payments(&scene) {
        wrong.push(format!("something was booked after the clerk's edit: {paid:?}"));
    }

    say("\nAnother vendor, Umbrella, really changes banks. This is how that goes:\n")?;
    wrong.extend(change::show(&umbrella_changes(&agent, &scene).await?)?);
    let paid = books.payments_to(&[scene.umbrella]).await?;
    print_payments(&paid, &scene)?;
    if paid != [Payment::settled(scene.inv_2294, UMBRELLAS_NEW, UMBRELLAS_TOTAL)] {
        wrong.push(format!("Odoo holds another payment to Umbrella than the honest one: {paid:?}"));
    }
    Ok(wrong)
}

/// The change, a payment the same day with four eyes, and what is said of the days after. (Nobody can
/// move this clock: that it goes by itself after seven days, `countersign demo` plays.)
async fn umbrella_changes(agent: &Agent, scene: &Scene) -> anyhow::Result<Vec<Step>> {
    let (vendor, bill) = (scene.umbrella.to_string(), scene.inv_2294.to_string());
    let change = Change {
        name: UMBRELLA.name,
        vendor: &vendor,
        new_iban: UMBRELLAS_NEW,
        phone: UMBRELLA.phone,
        bill: &bill,
        amount: UMBRELLAS_TOTAL,
    };
    let mut play = Play::change(agent, change).await?;
    let pending = play.pay(agent, "umbrella", "commit").await?;
    let must = "pending at policy: fresh-account-needs-four-eyes";
    play.step("agent", "pays to it the same day", change::outcome(&pending), must);
    let paul = play.sign_in("paul").await?;
    let paid = play.approve(&paul, &pending).await?;
    play.step("paul", "approves the payment", change::status(&paid), "executed");
    let path = format!("/v1/vendors/{vendor}/bank-history");
    let history = paul.send(paul.http().get(paul.url(&path))).await?;
    let said = why(&history).context("the history does not have the new account")?;
    let cools = said.starts_with("Paid with four eyes only: it is in its cooling-off until ");
    let came = if cools { "in its cooling-off for seven days" } else { said };
    let must = "in its cooling-off for seven days";
    play.step("paul", "reads why the account is payable", came, must);
    Ok(play.into_steps())
}

/// What the history says of the new account.
fn why(history: &Value) -> Option<&str> {
    let accounts = history.get("accounts")?.as_array()?;
    let new = accounts
        .iter()
        .find(|account| account.get("iban").and_then(Value::as_str) == Some(UMBRELLAS_NEW))?;
    new.get("why")?.as_str()
}

/// The email's account takes the place of ACME's, as Odoo lets somebody who keeps contacts do it.
async fn replace_account(clerk: &Seeder, scene: &Scene) -> Result<(), SeedError> {
    let model = "res.partner.bank";
    let archived = json!([[scene.acme_account], { "active": false }]);
    let _written: bool = clerk.call(model, "write", archived).await?;
    let added = json!([{
        "partner_id": scene.acme, "acc_number": story::EMAILS, "allow_out_payment": true,
    }]);
    let _id: i32 = clerk.call(model, "create", added).await?;
    Ok(())
}

fn note(act: &Act, outcome: &Outcome, rows: &mut Vec<Vec<String>>, wrong: &mut Vec<String>) {
    if !act.expected.is(outcome) {
        wrong.push(format!("{}: {}", act.what, outcome.text()));
    }
    rows.push(vec![act.what.to_owned(), act.would_pay.to_owned(), outcome.text()]);
}

/// All that may be booked before Umbrella changes banks.
fn honest_payments(scene: &Scene) -> Vec<Payment> {
    let mut payments = vec![
        Payment::settled(scene.inv_2290, story::ACME, "1840.00"),
        Payment::settled(scene.inv_2291, story::GLOBEX, "1200.00"),
    ];
    payments.sort();
    payments
}

fn print_payments(payments: &[Payment], scene: &Scene) -> anyhow::Result<()> {
    let names = [
        (scene.inv_2290, "INV-2290"),
        (scene.inv_2291, "INV-2291"),
        (scene.tempting, TEMPTING),
        (scene.inv_2294, UMBRELLAS_BILL),
    ];
    let rows: Vec<Vec<String>> = payments.iter().map(|payment| row(payment, &names)).collect();
    say("\nPayments in Odoo, as its administrator sees them:\n")?;
    table(&["BILL", "TO", "AMOUNT", "STATE"], &rows)
}

fn row(payment: &Payment, names: &[(i32, &str)]) -> Vec<String> {
    let bill = |id: &i32| {
        let known = names.iter().find(|(known, _)| known == id);
        known.map_or_else(|| id.to_string(), |(_, name)| (*name).to_owned())
    };
    let bills: Vec<String> = payment.bills.iter().map(bill).collect();
    let state = if payment.reconciled { "reconciled" } else { "not reconciled" };
    vec![
        bills.join(", "),
        payment.iban.clone(),
        payment.amount.clone(),
        format!("{}, {state}", payment.state),
    ]
}
