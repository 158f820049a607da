//! What the checks share: a bill to pay, a store that orders come from, and the ground truth.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use aws_lc_rs::rand;

use super::Fixture;
use crate::{
    AccountId, AccountNumber, Amount, BankChange, BillId, BillReading, Booked, Changed, CompanyId,
    Currency, ErpCompanyId, Iban, Marker, OldAccount, OrderError, PaymentOrder, Refusal,
    SourceAccount, Vendor, VendorId,
};

/// Long enough for any check, and no longer than a daemon would give an order.
const ORDER_LIFE: Duration = Duration::from_mins(5);

/// A new open bill with all that an order for it must say.
pub(super) struct OpenBill {
    pub(super) company: CompanyId,
    pub(super) erp_company: ErpCompanyId,
    pub(super) bill: BillId,
    pub(super) total: Amount,
    pub(super) vendor: VendorId,
    pub(super) account: AccountId,
    pub(super) iban: Iban,
    pub(super) source: SourceAccount,
}

/// Makes an open bill and reads it through the connector.
pub(super) async fn open_bill(fixture: &dyn Fixture, total: &str) -> OpenBill {
    let (bill, vendor, account) = fixture.open_bill(total).await;
    let reading = read(fixture, &bill).await;
    let on_file = reading.vendor.as_ref().expect("the bill's vendor is shown");
    let number = &on_file.account(&account).expect("the vendor's account is shown").number;
    let iban = number.iban().expect("the vendor's account has an IBAN").clone();
    let sources = fixture.erp().source_accounts(fixture.company()).await;
    let source = sources
        .expect("the company's accounts can be read")
        .into_iter()
        .find(|source| source.currency == eur())
        .expect("the company pays from an account in EUR");
    OpenBill {
        company: fixture.company().clone(),
        erp_company: reading.bill.erp_company,
        bill,
        total: euros(total),
        vendor,
        account,
        iban,
        source,
    }
}

/// Reads a bill that must be there.
pub(super) async fn read(fixture: &dyn Fixture, bill: &BillId) -> BillReading {
    let found = fixture.erp().find_bill(fixture.company(), bill).await;
    found.expect("the bill can be read").expect("the bill is there")
}

/// A store of its own for each check, so that checks can run again against the same ERP.
pub(super) struct Store {
    pub(super) name: String,
    seq: u64,
}

impl Store {
    pub(super) fn new() -> Self {
        Self { name: format!("st_{}", Marker::from_bytes(random()).to_hex()), seq: 0 }
    }

    /// An order for that part of the bill, with a marker and a sequence number of its own.
    pub(super) async fn order(
        &mut self,
        fixture: &dyn Fixture,
        bill: &OpenBill,
        amount: &str,
    ) -> PaymentOrder {
        self.seq = self.seq.saturating_add(1);
        let now = fixture.erp_time().await;
        PaymentOrder {
            marker: new_marker(),
            store: self.name.clone(),
            seq: self.seq,
            company: bill.company.clone(),
            erp_company: bill.erp_company.clone(),
            bill: bill.bill.clone(),
            total: bill.total,
            vendor: bill.vendor.clone(),
            account: bill.account.clone(),
            iban: bill.iban.clone(),
            amount: euros(amount),
            journal: bill.source.journal.clone(),
            source_iban: bill.source.iban.clone(),
            memo: "CS conformance".to_owned(),
            date: now.to_utc().date_naive(),
            not_after: now.plus(ORDER_LIFE),
        }
    }
}

impl Store {
    /// A change of the vendor's account to that number, with a marker and a sequence number of its
    /// own.
    pub(super) async fn change(
        &mut self,
        fixture: &dyn Fixture,
        bill: &OpenBill,
        new_iban: &str,
    ) -> BankChange {
        self.seq = self.seq.saturating_add(1);
        BankChange {
            marker: new_marker(),
            store: self.name.clone(),
            seq: self.seq,
            company: bill.company.clone(),
            erp_company: bill.erp_company.clone(),
            vendor: bill.vendor.clone(),
            old: Some(OldAccount {
                account: bill.account.clone(),
                number: AccountNumber::Iban(bill.iban.clone()),
            }),
            new_iban: Iban::parse(new_iban).expect("the new number is a valid IBAN"),
            not_after: fixture.erp_time().await.plus(ORDER_LIFE),
        }
    }
}

/// A marker that nobody used.
pub(super) fn new_marker() -> Marker {
    Marker::from_bytes(random())
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).expect("the host has random numbers");
    bytes
}

pub(super) fn eur() -> Currency {
    Currency::from_code("EUR").expect("EUR is a currency")
}

pub(super) fn euros(text: &str) -> Amount {
    Amount::parse(text, eur()).expect("the amount is well written")
}

/// Seals the order with the installed key and hands it over.
pub(super) async fn pay(fixture: &dyn Fixture, order: &PaymentOrder) -> Result<Booked, OrderError> {
    fixture.erp().register_payment(&fixture.seal_key().seal(order.clone())).await
}

/// Seals the change with the installed key and hands it over.
pub(super) async fn change(
    fixture: &dyn Fixture,
    order: &BankChange,
) -> Result<Changed, OrderError> {
    fixture.erp().change_bank_details(&fixture.seal_key().seal(order.clone())).await
}

/// Reads a vendor that must be there.
pub(super) async fn vendor(fixture: &dyn Fixture, vendor: &VendorId) -> Vendor {
    let found = fixture.erp().find_vendor(fixture.company(), vendor).await;
    found.expect("the vendor can be read").expect("the vendor is there")
}

/// The vendor's accounts as the ERP really holds them: number, active, allowed; by number.
pub(super) async fn held(
    fixture: &dyn Fixture,
    vendor: &VendorId,
) -> Vec<(AccountNumber, bool, bool)> {
    let accounts = fixture.accounts_of(vendor).await.into_iter();
    let mut held: Vec<_> = accounts
        .map(|held| (AccountNumber::from_erp(&held.number), held.active, held.allowed))
        .collect();
    held.sort();
    held
}

/// The number of the account that the bill really names.
pub(super) async fn named(fixture: &dyn Fixture, bill: &BillId) -> Option<AccountNumber> {
    fixture.named_by(bill).await.map(|number| AccountNumber::from_erp(&number))
}

/// Asserts that the change is refused for one of those reasons and that the vendor's accounts are
/// as they were.
pub(super) async fn assert_not_changed(
    fixture: &dyn Fixture,
    order: &BankChange,
    reasons: &[Refusal],
) {
    let before = held(fixture, &order.vendor).await;
    match change(fixture, order).await {
        Err(OrderError::Refused(reason)) if reasons.contains(&reason) => {}
        other => panic!("expected one of {reasons:?}, got {other:?}"),
    }
    assert_eq!(held(fixture, &order.vendor).await, before, "a refused change was made");
}

/// What really stands for the bill, in minor units, smallest first.
pub(super) async fn standing(fixture: &dyn Fixture, bill: &BillId) -> Vec<i64> {
    let mut amounts: Vec<_> =
        fixture.payments_of(bill).await.iter().map(|text| euros(text).minor()).collect();
    amounts.sort_unstable();
    amounts
}

/// Asserts that the order is refused for one of those reasons and that nothing was booked for it.
pub(super) async fn assert_refused(
    fixture: &dyn Fixture,
    order: &PaymentOrder,
    reasons: &[Refusal],
) {
    let before = standing(fixture, &order.bill).await;
    match pay(fixture, order).await {
        Err(OrderError::Refused(reason)) if reasons.contains(&reason) => {}
        other => panic!("expected one of {reasons:?}, got {other:?}"),
    }
    assert_eq!(standing(fixture, &order.bill).await, before, "a refused order was booked");
}

/// Polls all futures side by side until each is done. Written out so that the port needs no
/// runtime.
pub(super) async fn join_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<(Pin<Box<_>>, Option<T>)> =
        futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        let mut all_done = true;
        for (future, result) in &mut running {
            if result.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *result = Some(value),
                    Poll::Pending => all_done = false,
                }
            }
        }
        if all_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(|(_, result)| result).collect()
}
