//! What every connector must pass. A connector brings a [`Fixture`]: a real ERP of its kind with
//! the hands of somebody who edits it behind the gateway's back. Each check is a claim and asks the
//! fixture's own ground truth, never the connector, what was booked.

use async_trait::async_trait;

use crate::{AccountId, BillId, CompanyId, ErpSource, SealKey, Timestamp, VendorId};

/// What somebody with ordinary rights does in the ERP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Archives an account of a vendor.
    ArchiveAccount(AccountId),
    /// Changes the number of an account in place.
    ChangeNumber(AccountId, String),
    /// Takes away the ERP's own permission to pay to the account, where it has one.
    Distrust(AccountId),
    /// Cancels (or drafts) a bill.
    CancelBill(BillId),
    /// Pays a part of a bill by hand, as a decimal text in the bill's currency.
    PayByHand(BillId, String),
    /// Drafts or cancels the payment that was booked for a bill, so that the bill is open again.
    UndoPayment(BillId),
}

/// A real ERP of the connector's kind.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The connector under test.
    fn erp(&self) -> &dyn ErpSource;
    /// The key that is installed on the ERP's side.
    fn seal_key(&self) -> &SealKey;
    /// The company of all bills.
    fn company(&self) -> &CompanyId;
    /// Another company of the same ERP with at least one bill: its id and that bill.
    async fn foreign_bill(&self) -> (CompanyId, BillId);
    /// A new open bill in EUR of a new vendor that has one payable account.
    async fn open_bill(&self, total: &str) -> (BillId, VendorId, AccountId);
    /// The number of a second valid IBAN that belongs to nobody in this ERP.
    fn unused_iban(&self) -> &str;
    /// Somebody edits the ERP.
    async fn edit(&self, edit: Edit);
    /// Every payment that the ERP holds for the bill and that stands, as decimal texts.
    async fn payments_of(&self, bill: &BillId) -> Vec<String>;
    /// The ERP's clock now.
    async fn erp_time(&self) -> Timestamp;
    /// Returns when the ERP's clock is past that moment.
    async fn wait_past(&self, moment: Timestamp);
}
