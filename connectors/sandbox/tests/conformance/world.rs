//! A sandbox in a folder of its own, with a clock that the test moves.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use countersign_erp_source::{
    AccountId, AccountNumber, Amount, BankChange, BillId, ChangeLookUp, Clock, CompanyId, Currency,
    ErpCompanyId, Iban, JournalId, Marker, OldAccount, PaymentOrder, SealKey, SealedBankChange,
    SealedOrder, Timestamp, VendorId,
};
use countersign_sandbox::{Options, Sandbox};

pub(crate) const ACME_IBAN: &str = "FR7630006000011234567890189";
pub(crate) const OWN_IBAN: &str = "FR1420041010050500013M02606";
pub(crate) const UNUSED_IBAN: &str = "NL91ABNA0417164300";

pub(crate) const WORLD: &str = r#"
sanctioned_ibans = ["GB33BUKB20201555555555"]
[company.blue-sparrow]
name = "Blue Sparrow SAS"
currency = "EUR"
accounts = [{ journal = "BNK1", iban = "FR1420041010050500013M02606" }]
[company.blue-sparrow.vendor.V-100]
name = "ACME SAS"
phone = "+33140000000"
phone_age_days = 400
iban = "FR7630006000011234567890189"
iban_age_days = 400
[company.blue-sparrow.bill.INV-2291]
vendor = "V-100"
vendor_reference = "A-2291"
amount = "1200.00"
due = "2026-12-31"
[company.red-heron]
name = "Red Heron GmbH"
currency = "EUR"
accounts = [{ journal = "BNK1", iban = "DE89370400440532013000" }]
[company.red-heron.vendor.V-900]
name = "Far Away GmbH"
iban = "BE68539007547034"
[company.red-heron.bill.INV-9]
vendor = "V-900"
amount = "5.00"
[[vop]]
name = "ACME SAS"
iban = "FR7630006000011234567890189"
result = "match"
"#;

/// The host's clock, as the test has it.
#[derive(Debug)]
pub(crate) struct TestClock(AtomicI64);

impl TestClock {
    pub(crate) fn start() -> Arc<Self> {
        let start = Timestamp::parse("2026-11-29T10:00:00Z").unwrap();
        Arc::new(Self(AtomicI64::new(start.as_millis())))
    }

    pub(crate) fn set_back(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap();
        self.0.fetch_sub(by, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// A folder with a world file and the place of a sandbox file.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) key: SealKey,
    next: AtomicU64,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::with_world(WORLD)
    }

    pub(crate) fn with_world(world: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("world.toml"), world).unwrap();
        Self {
            folder,
            clock: TestClock::start(),
            key: SealKey::from_bytes([7; 32]),
            next: AtomicU64::new(0),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("sandbox.db")
    }

    pub(crate) fn world_file(&self) -> PathBuf {
        self.folder.path().join("world.toml")
    }

    pub(crate) fn options(&self) -> Options {
        Options {
            file: self.file(),
            world: Some(self.world_file()),
            call_deadline: Duration::from_secs(30),
            base_clock: Arc::<TestClock>::clone(&self.clock),
            seal_key: Some(self.key.clone()),
        }
    }

    pub(crate) async fn open(&self) -> Sandbox {
        Sandbox::open(self.options()).await.unwrap()
    }

    pub(crate) fn count(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// An order for a part of ACME's bill, each with its own marker and number.
    pub(crate) fn order(&self, amount: &str) -> PaymentOrder {
        let eur = Currency::from_code("EUR").unwrap();
        let seq = self.count();
        PaymentOrder {
            marker: marker(seq),
            store: "st_1".to_owned(),
            seq,
            company: company(),
            erp_company: ErpCompanyId::new("blue-sparrow").unwrap(),
            bill: acme_bill(),
            total: Amount::parse("1200.00", eur).unwrap(),
            vendor: VendorId::new("V-100").unwrap(),
            account: AccountId::new("V-100/1").unwrap(),
            iban: Iban::parse(ACME_IBAN).unwrap(),
            amount: Amount::parse(amount, eur).unwrap(),
            journal: JournalId::new("BNK1").unwrap(),
            source_iban: Iban::parse(OWN_IBAN).unwrap(),
            memo: "CS A-2291".to_owned(),
            date: self.clock.now().to_utc().date_naive(),
            not_after: self.clock.now().plus(Duration::from_mins(5)),
        }
    }

    /// A change of ACME's account, each with its own marker and number.
    pub(crate) fn change(&self, new_iban: &str) -> SealedBankChange {
        let seq = self.count();
        self.key.seal(BankChange {
            marker: marker(seq),
            store: "st_1".to_owned(),
            seq,
            company: company(),
            erp_company: ErpCompanyId::new("blue-sparrow").unwrap(),
            vendor: VendorId::new("V-100").unwrap(),
            old: Some(OldAccount {
                account: AccountId::new("V-100/1").unwrap(),
                number: AccountNumber::from_erp(ACME_IBAN),
            }),
            new_iban: Iban::parse(new_iban).unwrap(),
            not_after: self.clock.now().plus(Duration::from_mins(5)),
        })
    }

    pub(crate) fn sealed(&self, amount: &str) -> SealedOrder {
        self.key.seal(self.order(amount))
    }
}

/// What looks for that change.
pub(crate) fn looking_for(change: &SealedBankChange) -> ChangeLookUp {
    let order = change.order();
    ChangeLookUp {
        company: order.company.clone(),
        vendor: order.vendor.clone(),
        marker: order.marker.clone(),
    }
}

fn marker(seq: u64) -> Marker {
    let mut marker = [0; 16];
    marker[..8].copy_from_slice(&seq.to_be_bytes());
    Marker::from_bytes(marker)
}

pub(crate) fn company() -> CompanyId {
    CompanyId::new("blue-sparrow").unwrap()
}

pub(crate) fn acme_bill() -> BillId {
    BillId::new("INV-2291").unwrap()
}

/// A valid IBAN under a bank code that no German bank has.
pub(crate) fn nobody_s_iban(number: u64) -> String {
    let account = format!("00000000{number:010}");
    // `DE00` at the end, letters as numbers: ISO 13616's way to the check digits.
    let digits = format!("{account}131400");
    let rest = digits.bytes().fold(0_u32, |rest, digit| (rest * 10 + u32::from(digit - b'0')) % 97);
    format!("DE{:02}{account}", 98 - rest)
}
