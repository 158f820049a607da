//! A prepared Odoo, an installation on it, and vendors with bills for one test.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use countersign::clock::SystemClock;
use countersign::gateway::policy::Policies;
use countersign_erp_source::Clock as _;
use countersign_odoo::Credential;
use countersign_odoo::seed::{
    BillSeed, CompanySeed, DEMO_COMPANY, SeedOptions, SeededVendor, Seeder, VendorSeed,
};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::people::{Books, Payment};
use crate::daemon::{Agent, Answer, COMPANY, Daemon, Installation, pay_to};

const CONFIGURATION: &str = include_str!("../../../examples/odoo/countersign.toml");

/// A company that no mandate of these tests is for.
const OTHER_COMPANY: CompanySeed<'_> = CompanySeed {
    name: "Other Side GmbH",
    country: "DE",
    currency: "EUR",
    iban: "DE66999999990000000002",
};

/// One Odoo holds one seal key, and every test has an installation of its own: so the key and the
/// passwords are the same in all of them, and in the connector's own live tests, which may run on
/// the same database at the same time.
const SEAL_KEY: [u8; 32] = [0x5a; 32];

/// The identities, by login and by the name of their password's file.
const IDENTITIES: [(&str, &str); 3] =
    [("cs-reader", "reader"), ("cs-payer", "payer"), ("cs-bank-admin", "bank-admin")];

/// Long enough that nothing is late while many tests pay from one journal.
const DEADLINE: &str = "60s";

/// A prepared Odoo.
pub(super) struct Scene {
    place: Place,
    pub(super) books: Books,
    pub(super) other_company: i32,
    // Held for as long as the test runs, so that one that breaks the guard is alone.
    _lock: File,
}

/// A vendor with one bill.
pub(super) struct Payable {
    pub(super) name: String,
    /// A telephone number that no other vendor has.
    pub(super) phone: String,
    pub(super) iban: String,
    pub(super) vendor: SeededVendor,
    pub(super) bill: i32,
    pub(super) reference: String,
    pub(super) total: String,
}

/// An installation with a principal and the vendors' baseline.
pub(super) struct House {
    pub(super) installation: Installation,
    pub(super) daemon: Daemon,
    pub(super) agent: Agent,
}

struct Place {
    url: String,
    database: String,
    login: String,
    password: String,
}

impl Scene {
    /// For a test that leaves the guard alone; `None` where no Odoo is named.
    pub(super) async fn enter() -> Option<Self> {
        Self::open(false).await
    }

    /// For a test that breaks the guard: no other test runs meanwhile.
    pub(super) async fn enter_alone() -> Option<Self> {
        Self::open(true).await
    }

    async fn open(alone: bool) -> Option<Self> {
        let place = Place::of_environment()?;
        let books = Books::open(place.options()).unwrap();
        let other_company = prepare(&place, &books).await;
        let lock = place.lock_file("run");
        let locked = if alone { lock.lock() } else { lock.lock_shared() };
        locked.unwrap();
        Some(Self { place, books, other_company, _lock: lock })
    }

    /// Host and port of Odoo.
    pub(super) fn host(&self) -> &str {
        self.place.url.strip_prefix("http://").unwrap().trim_end_matches('/')
    }

    /// A new vendor with one trusted account and an open bill.
    pub(super) async fn payable(&self, total: &str) -> Payable {
        self.payable_in(1, total).await
    }

    pub(super) async fn payable_in(&self, company: i32, total: &str) -> Payable {
        let (name, phone, iban) = (format!("Vendor {:x}", random()), new_phone(), new_iban());
        let seed = VendorSeed { name: &name, phone: &phone, iban: &iban, trusted: true };
        let vendor = self.books.admin.vendor(&seed).await.unwrap();
        let reference = format!("R-{:x}", random());
        let (billed, due) = (day(-14), day(30));
        let bill = BillSeed {
            company,
            vendor: vendor.vendor,
            reference: &reference,
            total,
            date: &billed,
            due: &due,
        };
        let bill = self.bill(&bill).await;
        Payable { name, phone, iban, vendor, bill, reference, total: total.to_owned() }
    }

    /// A posted bill.
    pub(super) async fn bill(&self, seed: &BillSeed<'_>) -> i32 {
        // The first drafts of a month that are made at once get the same number from Odoo.
        let lock = self.place.lock_file("seed");
        lock.lock().unwrap();
        self.books.admin.bill(seed).await.unwrap()
    }

    pub(super) async fn vendor(&self, seed: &VendorSeed<'_>) -> SeededVendor {
        self.books.admin.vendor(seed).await.unwrap()
    }

    /// The date of a bill.
    pub(super) async fn dated(&self, bill: i32) -> String {
        #[derive(serde::Deserialize)]
        struct Found {
            invoice_date: String,
        }
        let found: Vec<Found> =
            self.call("account.move", "read", json!([[bill], ["invoice_date"]])).await;
        found[0].invoice_date.clone()
    }

    /// A posted credit note of that vendor's.
    pub(super) async fn credit_note(&self, payable: &Payable, total: &str) -> i32 {
        let line = json!({
            "name": "Returned", "quantity": 1, "price_unit": total, "tax_ids": [[6, 0, []]],
        });
        let note = json!([{
            "move_type": "in_refund", "partner_id": payable.vendor.vendor, "ref": "CN-1",
            "invoice_date": self.dated(payable.bill).await, "invoice_line_ids": [[0, 0, line]],
        }]);
        let note: i32 = self.call("account.move", "create", note).await;
        self.call::<bool>("account.move", "action_post", json!([[note]])).await;
        note
    }

    /// Somebody uses a credit note up for that vendor's bill.
    pub(super) async fn use_up(&self, payable: &Payable, note: i32) {
        let lines = json!([[
            ["move_id", "in", [payable.bill, note]],
            ["account_id.account_type", "=", "liability_payable"],
        ]]);
        let lines: Vec<i32> = self.call("account.move.line", "search", lines).await;
        self.tries("account.move.line", "reconcile", json!([lines])).await;
    }

    /// Somebody pays a vendor by hand, and not for a bill.
    pub(super) async fn paid_ahead(&self, payable: &Payable, amount: &str) {
        let values = json!([{
            "payment_type": "outbound", "partner_type": "supplier",
            "partner_id": payable.vendor.vendor, "amount": amount,
            "partner_bank_id": payable.vendor.account,
        }]);
        let payment: i32 = self.call("account.payment", "create", values).await;
        self.tries("account.payment", "action_post", json!([[payment]])).await;
    }

    /// Somebody withdraws a bill.
    pub(super) async fn withdraw(&self, bill: i32) {
        for method in ["button_draft", "button_cancel"] {
            self.tries("account.move", method, json!([[bill]])).await;
        }
    }

    /// What returns nothing in Odoo, and is therefore reported as failed after it worked.
    async fn tries(&self, model: &str, method: &str, args: Value) {
        drop(self.books.admin.call::<bool>(model, method, args).await);
    }

    /// What an administrator does in Odoo.
    pub(super) async fn call<T: serde::de::DeserializeOwned>(
        &self,
        model: &str,
        method: &str,
        args: Value,
    ) -> T {
        self.books.admin.call(model, method, args).await.unwrap()
    }

    /// An installation that adopted its vendors as long on file, with marie as principal.
    pub(super) fn installation(&self, payables: &[&Payable]) -> Installation {
        let installation = configure(&self.place, self.other_company);
        let rows: Vec<String> = payables.iter().map(|payable| payable.verified()).collect();
        let vop = if rows.is_empty() { "vop = []\n".to_owned() } else { rows.concat() };
        fs::write(installation.path("vop.toml"), vop).unwrap();
        let adopt = ["vendors", "adopt", "--company", COMPANY, "--since", "2025-01-01"];
        installation.ok(&adopt, "");
        installation.add_principal();
        installation
    }

    /// The usual: an installation, a daemon that is ready, an agent of marie's.
    pub(super) async fn house(&self, payables: &[&Payable]) -> House {
        let installation = self.installation(payables);
        let token = mandate(&installation, "ap-agent");
        let daemon = installation.start().await;
        let agent = daemon.agent(&token);
        House { installation, daemon, agent }
    }

    /// Every payment to that vendor, as Odoo holds it.
    pub(super) async fn payments(&self, payable: &Payable) -> Vec<Payment> {
        self.books.payments_to(&[payable.vendor.vendor]).await.unwrap()
    }

    /// Fails unless Odoo holds exactly one payment to that vendor, and it settles the bill whole.
    pub(super) async fn assert_paid_once(&self, payable: &Payable) {
        let expected = Payment::settled(payable.bill, &payable.iban, &payable.total);
        assert_eq!(self.payments(payable).await, [expected]);
    }

    /// Fails if Odoo holds any payment to that vendor.
    pub(super) async fn assert_unpaid(&self, payable: &Payable) {
        assert_eq!(self.payments(payable).await, []);
    }

    /// One of the daemon's own identities.
    pub(super) fn identity(&self, login: &str) -> Seeder {
        self.books.sign_in(login, &password_of(login)).unwrap()
    }

    /// A person with those rights.
    pub(super) async fn person(&self, name: &str, groups: &[&str]) -> Seeder {
        self.books.person(&format!("{name}-{:x}", random()), groups).await.unwrap()
    }

    /// The guard's action of that name.
    pub(super) async fn action(&self, name: &str) -> i32 {
        let domain = json!([["name", "=", name]]);
        let found: Vec<i32> =
            self.books.admin.call("ir.actions.server", "search", json!([domain])).await.unwrap();
        found[0]
    }

    /// Installs the guard again, as its operator would.
    pub(super) fn install(&self, installation: &Installation) {
        install(&self.place, installation);
    }
}

impl Payable {
    /// What Verification of Payee is to say of the vendor.
    fn verified(&self) -> String {
        self.verified_at(&self.iban)
    }

    /// The same of that account.
    pub(super) fn verified_at(&self, iban: &str) -> String {
        let name = &self.name;
        format!("[[vop]]\nname = \"{name}\"\niban = \"{iban}\"\nresult = \"match\"\n")
    }

    /// A payment of the whole bill on the account on file.
    pub(super) fn whole(&self) -> Value {
        self.to(&json!({ "ref": self.vendor.vendor.to_string() }))
    }

    /// A payment of the whole bill to that payee.
    pub(super) fn to(&self, payee: &Value) -> Value {
        pay_to(&self.bill.to_string(), payee, &self.total)
    }
}

/// The operation when it is executed: a busy Odoo may leave it executing for longer than the call
/// that began it waits.
pub(super) async fn executed(caller: &Agent, answer: Answer) -> Answer {
    let status = answer.text("/status");
    assert!(["executing", "executed"].contains(&status.as_str()), "{}", answer.json);
    let path = format!("/v1/operations/{}?wait=50s", answer.text("/id"));
    let ended = caller.get(&path).await;
    assert_eq!(ended.text("/status"), "executed", "{}", ended.json);
    ended
}

/// A mandate of marie's for that agent.
pub(super) fn mandate(installation: &Installation, agent: &str) -> String {
    mandate_with(installation, agent, &[])
}

/// The same with more options.
pub(super) fn mandate_with(installation: &Installation, agent: &str, more: &[&str]) -> String {
    installation.mandate_of("marie", agent, COMPANY, DEMO_COMPANY.iban, more)
}

/// A valid number of a bank that does not exist.
pub(super) fn new_iban() -> String {
    let bban = format!("99999999{:010}", random() % 10_000_000_000);
    // D is 13, E is 14, and the check digits stand as zeros while they are calculated.
    let whole: u128 = format!("{bban}131400").parse().unwrap();
    format!("DE{:02}{bban}", 98 - whole % 97)
}

/// A number that can be called, of no other vendor: one that two have is called for neither.
pub(super) fn new_phone() -> String {
    format!("+49 30 5{:07}", random() % 10_000_000)
}

/// Different in every process and at every call.
fn random() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one(CALLS.fetch_add(1, Ordering::Relaxed))
}

fn day(from_today: i64) -> String {
    let (now, days) = (SystemClock.now(), Duration::from_hours(24 * from_today.unsigned_abs()));
    let then = if from_today < 0 { now.minus(days) } else { now.plus(days) };
    then.to_utc().date_naive().to_string()
}

fn password_of(login: &str) -> String {
    format!("{login} in a test")
}

/// Prepares Odoo once: two companies, and the guard by `odoo install`.
async fn prepare(place: &Place, books: &Books) -> i32 {
    let lock = place.lock_file("prepare");
    lock.lock().unwrap();
    let search = async |model: &str, domain: Value| -> Vec<i32> {
        books.admin.call(model, "search", json!([domain])).await.unwrap()
    };
    let found = search("res.company", json!([["name", "=", OTHER_COMPANY.name]])).await;
    let other = if let Some(other) = found.first() {
        *other
    } else {
        books.admin.company(1, &DEMO_COMPANY).await.unwrap();
        books.admin.another_company(&OTHER_COMPANY).await.unwrap()
    };
    let installed = json!([["key", "=", "countersign.installed_in"]]);
    if search("ir.config_parameter", installed).await.is_empty() {
        install(place, &configure(place, other));
    }
    other
}

fn install(place: &Place, installation: &Installation) {
    let command = ["odoo", "install", "--admin-login", &place.login, "--admin-password-stdin"];
    installation.ok(&command, &place.password);
}

/// The configuration of the example, with what these tests need beside it.
fn configure(place: &Place, other_company: i32) -> Installation {
    let text = CONFIGURATION
        .replace("@URL@", &place.url)
        .replace("@DATABASE@", &place.database)
        .replace("@PLAINTEXT@", "true")
        .replace("kind = \"odoo\"", &format!("kind = \"odoo\"\ncall_deadline = \"{DEADLINE}\""))
        .replace("blue-sparrow = 1", &format!("blue-sparrow = 1\nother-side = {other_company}"));
    let limits = "[limits]\nproposals_per_minute = 100000\nreads_per_minute = 100000\n";
    let installation = Installation::of(&(text + limits));
    Policies::write_defaults(&installation.path("policies")).unwrap();
    for folder in ["keys", "secrets"] {
        fs::DirBuilder::new().mode(0o700).create(installation.path(folder)).unwrap();
    }
    write_secret(&installation.path("keys/seal.key"), &STANDARD.encode(SEAL_KEY));
    for (login, file) in IDENTITIES {
        write_secret(&installation.path("secrets").join(file), &password_of(login));
    }
    installation
}

fn write_secret(path: &Path, text: &str) {
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    writeln!(file, "{text}").unwrap();
}

impl Place {
    #[expect(clippy::disallowed_methods, reason = "a test has no settings but its environment")]
    #[expect(clippy::print_stderr, reason = "a test that passes over must say so")]
    fn of_environment() -> Option<Self> {
        let names = ["URL", "DATABASE", "ADMIN_LOGIN", "ADMIN_PASSWORD"];
        let given: Vec<String> = names
            .iter()
            .filter_map(|name| std::env::var(format!("COUNTERSIGN_ODOO_{name}")).ok())
            .collect();
        let [url, database, login, password] = given.as_slice() else {
            eprintln!("passed over: COUNTERSIGN_ODOO_{{{}}} are not set", names.join(","));
            return None;
        };
        Some(Self {
            url: url.clone(),
            database: database.clone(),
            login: login.clone(),
            password: password.clone(),
        })
    }

    fn options(&self) -> SeedOptions {
        let password = SecretString::from(self.password.clone());
        SeedOptions {
            url: self.url.clone(),
            database: self.database.clone(),
            allow_plaintext: true,
            admin: Credential { login: self.login.clone(), password },
        }
    }

    /// Tests may run in processes of their own, so what orders them is a lock on a file. The
    /// connector's live tests take the same ones.
    fn lock_file(&self, what: &str) -> File {
        let name = format!("countersign-live-{}-{what}.lock", self.database);
        File::options().create(true).append(true).open(std::env::temp_dir().join(name)).unwrap()
    }
}
