//! A prepared database, the connector, and the hands of people who work in Odoo.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use countersign_erp_source::{
    AccountId, Amount, BillId, Booked, Clock, CompanyId, Currency, ErpCompanyId, ErpSource, Iban,
    JournalId, Marker, OrderError, PaymentOrder, SealKey, SealedOrder, Timestamp, VendorId,
};
use countersign_odoo::guard::{self, InstallOptions};
use countersign_odoo::seed::{
    BillSeed, CompanySeed, DEMO_COMPANY, SeedError, SeedOptions, SeededVendor, Seeder, VendorSeed,
};
use countersign_odoo::{Credential, Odoo, Options};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value as Json, json};

pub(crate) const OTHER_COMPANY: CompanySeed<'_> = CompanySeed {
    name: "Other Side GmbH",
    country: "DE",
    currency: "EUR",
    iban: "DE66999999990000000002",
};

const CLOCK: &str = "The clock of a test";

const CLOCK_CODE: &str = "
env.cr.execute('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text')
action = {'said': env.cr.fetchone()[0]}
";

const CLERK_PASSWORD: &str = "clerk in a test";

/// The wall clock.
#[derive(Debug)]
pub(crate) struct WallClock;

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
    }
}

/// Which Odoo.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) database: String,
    pub(crate) admin: Credential,
}

/// Everything a test needs.
pub(crate) struct Scene {
    pub(crate) place: Place,
    pub(crate) odoo: Odoo,
    pub(crate) admin: Seeder,
    pub(crate) company: CompanyId,
    pub(crate) other_company: CompanyId,
    pub(crate) other_erp_company: i32,
    pub(crate) key: SealKey,
    pub(crate) store: String,
    seq: AtomicU64,
    clock_action: i32,
    // Held for as long as the test runs, so that one that breaks the guard is alone.
    _lock: File,
}

/// A bill with whom and where it pays.
#[derive(Debug, Clone)]
pub(crate) struct Scenery {
    pub(crate) vendor: SeededVendor,
    pub(crate) iban: Iban,
    pub(crate) bill: i32,
    pub(crate) total: Amount,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Payment {
    pub(crate) id: i32,
    pub(crate) amount: f64,
}

/// The scene for a test that leaves the guard alone; `None` where no Odoo is named.
pub(crate) async fn enter() -> Option<Scene> {
    Scene::enter(false).await
}

/// The scene for a test that breaks the guard: no other test runs meanwhile.
pub(crate) async fn enter_alone() -> Option<Scene> {
    Scene::enter(true).await
}

impl Scene {
    async fn enter(alone: bool) -> Option<Self> {
        let place = Place::of_environment()?;
        let admin = Seeder::new(place.seed_options()).unwrap();
        let other_erp_company = prepare(&place, &admin).await;
        let clock_action = clock_action(&admin).await.unwrap();
        let lock = place.lock_file("run");
        let locked = if alone { lock.lock() } else { lock.lock_shared() };
        locked.unwrap();
        let (company, other_company) = (company("blue-sparrow"), company("other-side"));
        let odoo = Odoo::new(place.options(&place.url, other_erp_company)).unwrap();
        let store = format!("st_{:x}", random());
        let (key, seq) = (seal_key(), AtomicU64::new(1));
        Some(Self {
            place,
            odoo,
            admin,
            company,
            other_company,
            other_erp_company,
            key,
            store,
            seq,
            clock_action,
            _lock: lock,
        })
    }

    /// A new vendor with one trusted account and an open bill.
    pub(crate) async fn open_bill(&self, total: &str) -> Scenery {
        self.open_bill_in(1, total).await
    }

    pub(crate) async fn open_bill_in(&self, company: i32, total: &str) -> Scenery {
        let iban = new_iban();
        let name = format!("Vendor {:x}", random());
        let seed = VendorSeed {
            name: &name,
            phone: "+49 30 5550 1",
            iban: iban.electronic(),
            trusted: true,
        };
        let vendor = self.admin.vendor(&seed).await.unwrap();
        let bill = self.bill_of(company, vendor, total).await;
        let total = Amount::parse(total, eur()).unwrap();
        Scenery { vendor, iban, bill, total }
    }

    pub(crate) async fn bill_of(&self, company: i32, vendor: SeededVendor, total: &str) -> i32 {
        let reference = format!("R-{:x}", random());
        let (date, due) = ("2026-11-15", "2026-12-31");
        let (vendor, reference) = (vendor.vendor, reference.as_str());
        let seed = BillSeed { company, vendor, reference, total, date, due };
        self.admin.bill(&seed).await.unwrap()
    }

    /// A posted document of that type, with one line.
    pub(crate) async fn document(
        &self,
        kind: &str,
        vendor: i32,
        reference: Option<&str>,
        total: &str,
        date: &str,
    ) -> i32 {
        let line = json!({
            "name": "Goods", "quantity": 1, "price_unit": total, "tax_ids": [[6, 0, []]],
        });
        let values = json!({
            "move_type": kind, "partner_id": vendor, "ref": reference.unwrap_or_default(),
            "invoice_date": date, "invoice_date_due": "2026-12-31",
            "invoice_line_ids": [[0, 0, line]],
        });
        let id: i32 = self.admin.call("account.move", "create", json!([values])).await.unwrap();
        let posted = self.admin.call::<bool>("account.move", "action_post", json!([[id]]));
        posted.await.unwrap();
        id
    }

    /// An order for the whole bill that is good in every respect.
    pub(crate) fn order(&self, scenery: &Scenery) -> PaymentOrder {
        PaymentOrder {
            marker: new_marker(),
            store: self.store.clone(),
            seq: self.seq.fetch_add(1, Ordering::Relaxed),
            company: self.company.clone(),
            erp_company: ErpCompanyId::new("1").unwrap(),
            bill: bill_id(scenery.bill),
            total: scenery.total,
            vendor: vendor_id(scenery.vendor.vendor),
            account: account_id(scenery.vendor.account),
            iban: scenery.iban.clone(),
            amount: scenery.total,
            journal: JournalId::new("BNK1").unwrap(),
            source_iban: Iban::parse(DEMO_COMPANY.iban).unwrap(),
            memo: "CS-1 R-1".to_owned(),
            date: WallClock.now().to_utc().date_naive(),
            not_after: WallClock.now().plus(Duration::from_mins(2)),
        }
    }

    /// The number of one of our actions in Odoo.
    pub(crate) async fn action(&self, name: &str) -> i32 {
        let domain = json!([[["name", "=", name]]]);
        let found: Vec<i32> = self.admin.call("ir.actions.server", "search", domain).await.unwrap();
        *found.first().unwrap()
    }

    pub(crate) fn sealed(&self, order: PaymentOrder) -> SealedOrder {
        self.key.seal(order)
    }

    pub(crate) async fn pay(&self, order: PaymentOrder) -> Result<Booked, OrderError> {
        self.odoo.register_payment(&self.sealed(order)).await
    }

    /// The vendor of a bill, as entered.
    pub(crate) async fn vendor_of(&self, bill: i32) -> i32 {
        #[derive(Deserialize)]
        struct Found {
            partner_id: (i32, String),
        }
        let fields = json!([[bill], ["partner_id"]]);
        let found: Vec<Found> = self.admin.call("account.move", "read", fields).await.unwrap();
        found.first().unwrap().partner_id.0
    }

    /// Every payment to that vendor that stands, whatever it settles.
    pub(crate) async fn payments_to(&self, vendor: i32) -> Vec<Payment> {
        let domain = json!([["partner_id", "=", vendor], ["state", "=", "posted"]]);
        self.admin
            .call("account.payment", "search_read", json!([domain, ["amount"]]))
            .await
            .unwrap()
    }

    pub(crate) async fn write(&self, model: &str, id: i32, values: Json) -> Result<(), SeedError> {
        self.admin.call::<bool>(model, "write", json!([[id], values])).await.map(drop)
    }

    /// A person with no more rights than everybody who works there.
    pub(crate) async fn employee(&self) -> Seeder {
        self.person("employee", &[]).await
    }

    /// A person of the accounting department: everything but bank accounts and settings.
    pub(crate) async fn clerk(&self) -> Seeder {
        self.person("clerk", &["account.group_account_manager"]).await
    }

    /// A person who enters bills.
    pub(crate) async fn billing_clerk(&self) -> Seeder {
        self.person("billing", &["account.group_account_invoice"]).await
    }

    /// A person who keeps vendors and their accounts, but may trust none.
    pub(crate) async fn contact_manager(&self) -> Seeder {
        self.person("contacts", &["base.group_partner_manager"]).await
    }

    /// A person who buys, where Odoo can.
    pub(crate) async fn buyer(&self) -> Option<Seeder> {
        let buys = json!([[["name", "=", "purchase"], ["state", "=", "installed"]]]);
        let buys: i32 = self.admin.call("ir.module.module", "search_count", buys).await.unwrap();
        if buys == 0 {
            return None;
        }
        Some(self.person("buyer", &["purchase.group_purchase_manager"]).await)
    }

    async fn person(&self, name: &str, groups: &[&str]) -> Seeder {
        let login = format!("{name}-{:x}", random());
        let mut ids = vec![self.group("base.group_user").await];
        for group in groups {
            ids.push(self.group(group).await);
        }
        let values = json!({
            "name": login, "login": login, "password": CLERK_PASSWORD,
            "groups_id": [[6, 0, ids]], "company_ids": [[6, 0, [1]]], "company_id": 1,
        });
        let _id: i32 = self.admin.call("res.users", "create", json!([values])).await.unwrap();
        let admin = Credential { login, password: SecretString::from(CLERK_PASSWORD) };
        Seeder::new(SeedOptions { admin, ..self.place.seed_options() }).unwrap()
    }

    pub(crate) async fn group(&self, id: &str) -> i32 {
        #[derive(Deserialize)]
        struct Found {
            res_id: i32,
        }
        let (module, name) = id.split_once('.').unwrap();
        let domain = json!([["module", "=", module], ["name", "=", name]]);
        let found: Vec<Found> = self
            .admin
            .call("ir.model.data", "search_read", json!([domain, ["res_id"]]))
            .await
            .unwrap();
        found.first().unwrap().res_id
    }

    /// A session of one of the identities, to try what it must not do.
    pub(crate) fn identity(&self, credential: Credential) -> Seeder {
        Seeder::new(SeedOptions { admin: credential, ..self.place.seed_options() }).unwrap()
    }

    /// Runs code in Odoo as an administrator could.
    pub(crate) async fn run_code(&self, code: &str) -> Result<String, SeedError> {
        run_code(&self.admin, code).await
    }

    /// The clock of Odoo's database.
    pub(crate) async fn erp_time(&self) -> Timestamp {
        let said = say(&self.admin, self.clock_action).await.unwrap();
        Timestamp::from_millis(said.parse().unwrap())
    }

    pub(crate) fn options(&self) -> Options {
        self.place.options(&self.place.url, self.other_erp_company)
    }

    pub(crate) fn connector_at(&self, url: &str) -> Odoo {
        Odoo::new(self.place.options(url, self.other_erp_company)).unwrap()
    }

    pub(crate) fn install_options(&self) -> InstallOptions {
        self.place.install_options(self.other_erp_company)
    }
}

/// Runs code once. Odoo forgets its caches at that, so the next calls are slow.
async fn run_code(admin: &Seeder, code: &str) -> Result<String, SeedError> {
    let action = keep_code(admin, "A step of a test", code).await?;
    let said = say(admin, action).await;
    admin.call::<bool>("ir.actions.server", "unlink", json!([[action]])).await?;
    said
}

async fn keep_code(admin: &Seeder, name: &str, code: &str) -> Result<i32, SeedError> {
    let domain = json!([["model", "=", "res.users"]]);
    let model: Vec<i32> = admin.call("ir.model", "search", json!([domain])).await?;
    let values = json!({ "name": name, "model_id": model.first(), "state": "code", "code": code });
    admin.call("ir.actions.server", "create", json!([values])).await
}

async fn say(admin: &Seeder, action: i32) -> Result<String, SeedError> {
    #[derive(Deserialize)]
    struct Said {
        said: String,
    }
    let said = admin.call::<Said>("ir.actions.server", "run", json!([[action]])).await?;
    Ok(said.said)
}

impl Place {
    #[expect(clippy::disallowed_methods, reason = "a test has no settings but its environment")]
    #[expect(clippy::print_stderr, reason = "a test that passes over must say so")]
    pub(crate) fn of_environment() -> Option<Self> {
        let names = ["URL", "DATABASE", "ADMIN_LOGIN", "ADMIN_PASSWORD"];
        let given: Vec<String> = names
            .iter()
            .filter_map(|name| std::env::var(format!("COUNTERSIGN_ODOO_{name}")).ok())
            .collect();
        let [url, database, login, password] = given.as_slice() else {
            eprintln!("passed over: COUNTERSIGN_ODOO_{{{}}} are not set", names.join(","));
            return None;
        };
        let password = SecretString::from(password.clone());
        let admin = Credential { login: login.clone(), password };
        Some(Self { url: url.clone(), database: database.clone(), admin })
    }

    pub(crate) fn seed_options(&self) -> SeedOptions {
        SeedOptions {
            url: self.url.clone(),
            database: self.database.clone(),
            allow_plaintext: true,
            admin: self.admin.clone(),
        }
    }

    pub(crate) fn options(&self, url: &str, other_company: i32) -> Options {
        Options {
            url: url.to_owned(),
            database: self.database.clone(),
            allow_plaintext: true,
            reader: credential("cs-reader"),
            payer: credential("cs-payer"),
            bank_admin: credential("cs-bank-admin"),
            companies: companies(other_company),
            time_zone: chrono_tz::Tz::UTC,
            call_deadline: Duration::from_mins(2),
            clock: Arc::new(WallClock),
        }
    }

    pub(crate) fn install_options(&self, other_company: i32) -> InstallOptions {
        InstallOptions {
            url: self.url.clone(),
            database: self.database.clone(),
            allow_plaintext: true,
            admin: self.admin.clone(),
            companies: companies(other_company),
            seal_key: seal_key(),
            reader: credential("cs-reader"),
            payer: credential("cs-payer"),
            bank_admin: credential("cs-bank-admin"),
            set_passwords: false,
            replace_seal_key: false,
        }
    }

    /// Tests may run in processes of their own, so what orders them is a lock on a file.
    fn lock_file(&self, what: &str) -> File {
        let name = format!("countersign-live-{}-{what}.lock", self.database);
        File::options().create(true).append(true).open(std::env::temp_dir().join(name)).unwrap()
    }
}

async fn prepare(place: &Place, admin: &Seeder) -> i32 {
    let lock = place.lock_file("prepare");
    lock.lock().unwrap();
    let domain = json!([["name", "=", OTHER_COMPANY.name]]);
    let found: Vec<i32> = admin.call("res.company", "search", json!([domain])).await.unwrap();
    let other = if let Some(id) = found.first() {
        *id
    } else {
        admin.company(1, &DEMO_COMPANY).await.unwrap();
        admin.another_company(&OTHER_COMPANY).await.unwrap()
    };
    if clock_action(admin).await.is_none() {
        keep_code(admin, CLOCK, CLOCK_CODE).await.unwrap();
    }
    let name = json!([[["key", "=", "countersign.installed_in"]]]);
    let installed: i32 = admin.call("ir.config_parameter", "search_count", name).await.unwrap();
    if installed == 0 {
        guard::install(&place.install_options(other)).await.unwrap();
    }
    other
}

async fn clock_action(admin: &Seeder) -> Option<i32> {
    let domain = json!([["name", "=", CLOCK]]);
    let found: Vec<i32> = admin.call("ir.actions.server", "search", json!([domain])).await.unwrap();
    found.first().copied()
}

fn companies(other: i32) -> BTreeMap<CompanyId, i32> {
    BTreeMap::from([(company("blue-sparrow"), 1), (company("other-side"), other)])
}

pub(crate) fn credential(login: &str) -> Credential {
    let password = SecretString::from(format!("{login} in a test"));
    Credential { login: login.to_owned(), password }
}

pub(crate) fn seal_key() -> SealKey {
    SealKey::from_bytes([0x5a; 32])
}

pub(crate) fn eur() -> Currency {
    Currency::from_code("EUR").unwrap()
}

pub(crate) fn euros(text: &str) -> Amount {
    Amount::parse(text, eur()).unwrap()
}

pub(crate) fn company(id: &str) -> CompanyId {
    CompanyId::new(id).unwrap()
}

pub(crate) fn bill_id(id: i32) -> BillId {
    BillId::new(id.to_string()).unwrap()
}

pub(crate) fn vendor_id(id: i32) -> VendorId {
    VendorId::new(id.to_string()).unwrap()
}

pub(crate) fn account_id(id: i32) -> AccountId {
    AccountId::new(id.to_string()).unwrap()
}

/// Different in every process and at every call.
pub(crate) fn random() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one(CALLS.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn new_marker() -> Marker {
    let bits = (u128::from(random()) << 64) | u128::from(random());
    Marker::from_bytes(bits.to_be_bytes())
}

/// A valid number of a bank that does not exist.
pub(crate) fn new_iban() -> Iban {
    let account = random() % 10_000_000_000;
    let bban = format!("99999999{account:010}");
    // D is 13, E is 14, and the check digits stand as zeros while they are calculated.
    let whole: u128 = format!("{bban}131400").parse().unwrap();
    Iban::parse(&format!("DE{:02}{bban}", 98 - whole % 97)).unwrap()
}
