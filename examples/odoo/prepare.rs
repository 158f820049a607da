//! What an operator does before the daemon's first start, and the records that the story is about.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use countersign::cli::change;
use countersign::cli::operator::{
    ADD_PRINCIPAL, COMPANY, Operator, PRINCIPALS_PASSWORD, issue_mandate,
};
use countersign::cli::say;
use countersign::clock::SystemClock;
use countersign_erp_source::Clock as _;
use countersign_odoo::Credential;
use countersign_odoo::seed::{BillSeed, DEMO_COMPANY, SeedOptions, VendorSeed};
use secrecy::ExposeSecret as _;
use serde_json::json;

use crate::people::Books;
use crate::told::{self, Folder, Scene};

/// The third bill, which nobody is to pay.
pub(crate) const TEMPTING: &str = "INV-2292";

/// The vendor that really changes banks.
pub(crate) const UMBRELLA: VendorSeed<'_> = VendorSeed {
    name: "Umbrella",
    phone: "+49 30 5550 2294",
    iban: "DE15999999991000000013",
    trusted: true,
};
/// Its bill, and what that is over.
pub(crate) const UMBRELLAS_BILL: &str = "INV-2294";
pub(crate) const UMBRELLAS_TOTAL: &str = "450.00";

/// Since when the vendors' accounts were on file, by the operator's word.
const ON_FILE_SINCE: &str = "2025-01-01";

/// Opens the books. A fresh database lets its administrator in with a password that everybody
/// knows; given that one, it is replaced first.
pub(crate) async fn open_books(
    options: SeedOptions,
    first_password: Option<&str>,
) -> anyhow::Result<Books> {
    let Credential { login, password } = options.admin.clone();
    let books = Books::open(options)?;
    let Some(first_password) = first_password else { return Ok(books) };
    if books.admin.call::<i32>("res.users", "search_count", json!([[]])).await.is_ok() {
        return Ok(books);
    }
    let first = books.sign_in(&login, first_password)?;
    let found: Vec<i32> = first
        .call("res.users", "search", json!([[["login", "=", login]]]))
        .await
        .context("Odoo lets the administrator in with neither password")?;
    let values = json!({ "password": password.expose_secret() });
    let _written: bool = first.call("res.users", "write", json!([found, values])).await?;
    say(format!("Odoo's {login} has the password of the file now"))?;
    Ok(books)
}

/// Writes a password of PostgreSQL where its clients look for it.
pub(crate) fn write_passfile(from: &Path, passfile: &Path) -> anyhow::Result<()> {
    let password = told::read_password(from)?.replace('\\', "\\\\").replace(':', "\\:");
    told::write_private(passfile, &format!("*:*:*:*:{password}\n"))
}

/// Does what is not done yet, and gives the agent a mandate.
pub(crate) async fn prepare(
    books: &Books,
    admin: &Credential,
    operator: &Operator,
    folder: &Folder,
) -> anyhow::Result<()> {
    let mut scene = if let Some(scene) = folder.find_scene()? {
        scene
    } else {
        say(
            "Filling the database: Blue Sparrow GmbH, ACME Supplies, Globex, Umbrella, four bills ...",
        )?;
        let scene = seed(books).await?;
        folder.keep_scene(&scene)?;
        scene
    };
    let Credential { login, password } = admin;
    let install = ["odoo", "install", "--admin-login", login, "--admin-password-stdin"];
    shown(operator, &install, password.expose_secret())?;
    let adopt = ["vendors", "adopt", "--company", COMPANY, "--since", ON_FILE_SINCE];
    for (step, command, input) in
        [("user", ADD_PRINCIPAL.as_slice(), PRINCIPALS_PASSWORD), ("adopt", adopt.as_slice(), "")]
    {
        if !scene.done.contains(step) {
            shown(operator, command, input)?;
            scene.done.insert(step.to_owned());
            folder.keep_scene(&scene)?;
        }
    }
    if scene.done.insert("people".to_owned()) {
        say("$ countersign user add anna --role accountant ..., paul --role approver ...")?;
        change::add_people(operator)?;
        folder.keep_scene(&scene)?;
    }
    let issue = issue_mandate(DEMO_COMPANY.iban);
    say(format!("$ countersign {}", issue.join(" ")))?;
    say("  (the token, which only the agent gets)")?;
    folder.keep_token(operator.run(&issue, "")?.trim())
}

/// Runs a command before everybody's eyes.
fn shown(operator: &Operator, command: &[&str], input: &str) -> anyhow::Result<()> {
    say(format!("$ countersign {}", command.join(" ")))?;
    for line in operator.run(command, input)?.lines() {
        say(format!("  {line}"))?;
    }
    Ok(())
}

async fn seed(books: &Books) -> anyhow::Result<Scene> {
    let booked: i32 = books
        .admin
        .call("account.move", "search_count", json!([[]]))
        .await
        .context("Odoo did not let the administrator in")?;
    if booked != 0 {
        bail!("the database holds {booked} entries: the story needs a fresh one of its own");
    }
    let now = SystemClock.now();
    let date = |days: u64| Duration::from_hours(24 * days);
    let billed = now.minus(date(14)).to_utc().date_naive().to_string();
    let due = now.plus(date(30)).to_utc().date_naive().to_string();
    let demo = books.admin.demo(&billed, &due).await?;
    let tempting = BillSeed {
        company: demo.company,
        vendor: demo.acme.vendor,
        reference: TEMPTING,
        total: "3100.00",
        date: &billed,
        due: &due,
    };
    let tempting = books.admin.bill(&tempting).await?;
    let umbrella = books.admin.vendor(&UMBRELLA).await?.vendor;
    let owed = BillSeed {
        company: demo.company,
        vendor: umbrella,
        reference: UMBRELLAS_BILL,
        total: UMBRELLAS_TOTAL,
        date: &billed,
        due: &due,
    };
    let owed = books.admin.bill(&owed).await?;
    Ok(Scene::new(&demo, tempting, (umbrella, owed)))
}
