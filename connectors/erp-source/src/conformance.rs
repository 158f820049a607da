//! What every connector must pass. A connector brings a [`Fixture`]: a real ERP of its kind with
//! the hands of somebody who edits it behind the gateway's back. Each check is a claim and asks the
//! fixture's own ground truth, never the connector, what was booked.
//!
//! [`conformance_tests!`](crate::conformance_tests) makes one test of each check. Checks may run
//! side by side and again and again against one ERP: each makes its own bills and its own store.
#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a check is a test: it fails by a panic that says what was wrong"
)]

use async_trait::async_trait;
use chrono::NaiveDate;

use crate::{AccountId, BillId, CompanyId, ErpSource, SealKey, Timestamp, VendorId};

mod beside;
mod booking;
mod changing;
mod concurrency;
mod logging;
mod looking_up;
mod reading;
mod refusing;
mod replacing;
mod scene;
mod sealing;

pub use beside::{
    many_bills_are_looked_beside_at_once, other_vendors_with_the_same_number_are_found,
    what_a_vendor_owes_back_is_found, what_resembles_a_bill_is_found,
};
pub use booking::{
    a_known_marker_with_any_other_field_is_a_contradiction, a_part_is_booked_and_the_rest_stays,
    a_payment_books_once_and_reads_back_equal, a_sequence_number_is_used_once,
    after_an_undone_payment_no_second_one_is_booked, an_order_after_its_deadline_is_too_late,
    an_order_with_a_deadline_far_away_is_refused, orders_are_listed_ascending,
    the_same_order_again_answers_the_same_booking,
};
pub use changing::{
    a_change_has_its_time, a_change_is_made_once_and_reads_back_equal,
    a_known_marker_with_any_other_field_of_a_change_is_a_contradiction,
    a_look_up_of_a_change_proves_what_it_says, a_marker_of_a_payment_changes_nothing,
    a_number_serves_one_payment_or_one_change, after_a_change_only_the_new_account_is_paid,
    concurrent_copies_of_a_change_change_once, of_several_changes_at_once_one_is_made,
    open_bills_are_pointed_to_the_new_account, the_same_change_again_answers_the_same,
};
pub use concurrency::{
    concurrent_copies_of_one_order_book_once, concurrent_orders_for_one_bill_book_one_payment,
    concurrent_parts_never_exceed_the_total,
};
pub use logging::{
    a_merge_is_in_the_log, a_review_finds_a_payment_that_was_undone,
    a_review_finds_an_overpaid_bill, an_account_given_away_is_in_the_log,
    changes_of_an_unknown_company_are_no_answer, every_edit_is_in_the_log,
    only_what_an_order_did_is_logged_as_ordered, the_log_is_read_in_pages,
};
pub use looking_up::{
    a_booked_order_is_found, a_look_up_proves_absence_only_after_the_deadline,
    a_look_up_with_another_bill_never_proves_absence,
};
pub use reading::{
    a_bill_of_another_company_is_none, a_missing_record_is_none, a_new_guard_attests_clean,
    a_reading_has_the_figures_of_the_bill, an_unknown_company_is_no_answer,
    bills_are_listed_ascending_without_gaps, vendors_are_listed_ascending_without_gaps,
};
pub use refusing::{
    a_bill_paid_in_part_by_hand_takes_only_the_rest, a_cancelled_bill_is_refused,
    a_changed_number_is_refused, a_distrusted_account_is_refused, a_foreign_bill_is_not_paid,
    a_journal_that_is_not_ours_is_refused, a_missing_bill_is_refused,
    a_total_that_is_not_the_pinned_one_is_refused, a_vendor_that_is_not_the_bills_is_refused,
    an_account_of_another_vendor_is_refused, an_account_of_our_own_is_refused,
    an_amount_that_is_not_there_is_refused, an_archived_account_is_refused,
    another_currency_is_refused,
};
pub use replacing::{
    a_change_that_was_not_sealed_is_a_bad_seal, a_number_of_our_own_or_the_old_one_is_refused,
    a_payment_is_no_change_and_a_change_no_payment, a_vendor_that_is_not_ours_is_not_changed,
    a_vendor_with_several_accounts_is_not_changed, an_account_is_named_exactly_where_there_is_one,
    an_archived_account_is_brought_back, an_old_account_that_is_not_there_is_refused,
};
pub use sealing::{
    an_altered_text_is_a_bad_seal, an_order_under_another_key_is_a_bad_seal,
    only_the_sealed_text_counts,
};

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
    /// Changes a vendor's name.
    Rename(VendorId, String),
    /// Changes a vendor's main telephone number.
    ChangePhone(VendorId, String),
    /// Adds an account to a vendor, which the ERP allows paying to.
    AddAccount(VendorId, String),
    /// Deletes an account that no bill names.
    RemoveAccount(AccountId),
    /// Makes an account that no bill names another vendor's.
    GiveAccount(AccountId, VendorId),
    /// Merges a vendor into another.
    Merge(VendorId, VendorId),
}

/// An account as the ERP itself holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldAccount {
    /// Its number, as it stands there.
    pub number: String,
    /// Whether it is not archived.
    pub active: bool,
    /// Whether the ERP allows paying to it.
    pub allowed: bool,
}

/// Another posted document of a vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDocument {
    /// A credit note, and no bill.
    pub credit_note: bool,
    /// The vendor's own reference, where it gives one.
    pub reference: Option<String>,
    /// The total in EUR, as decimal text.
    pub total: String,
    /// The document's date.
    pub date: NaiveDate,
}

/// A real ERP of the connector's kind.
#[async_trait]
pub trait Fixture: Send + Sync {
    /// The connector under test.
    fn erp(&self) -> &dyn ErpSource;
    /// The key that is installed on the ERP's side.
    fn seal_key(&self) -> &SealKey;
    /// The company of all bills. It pays from at least one account in EUR.
    fn company(&self) -> &CompanyId;
    /// Another company of the same ERP with at least one bill: its id and that bill.
    async fn foreign_bill(&self) -> (CompanyId, BillId);
    /// A new open bill in EUR of a new vendor that has one payable account.
    async fn open_bill(&self, total: &str) -> (BillId, VendorId, AccountId);
    /// Somebody enters and confirms another document of that vendor.
    async fn document(&self, vendor: &VendorId, wanted: &NewDocument) -> BillId;
    /// Somebody enters a new vendor with that number, and a bill of its.
    async fn vendor_with(&self, number: &str) -> (VendorId, AccountId);
    /// The number of a second valid IBAN that belongs to nobody in this ERP.
    fn unused_iban(&self) -> &str;
    /// Ids of the right form that no bill and no vendor of the ERP has.
    fn unused_ids(&self) -> (BillId, VendorId);
    /// Somebody edits the ERP.
    async fn edit(&self, edit: Edit);
    /// Every payment that the ERP holds for the bill and that stands, as decimal texts.
    async fn payments_of(&self, bill: &BillId) -> Vec<String>;
    /// A valid IBAN that belongs to nobody in this ERP, another one with each call.
    fn another_iban(&self) -> String;
    /// All accounts of the vendor, archived ones too.
    async fn accounts_of(&self, vendor: &VendorId) -> Vec<HeldAccount>;
    /// The number of the account that the bill names.
    async fn named_by(&self, bill: &BillId) -> Option<String>;
    /// The ERP's clock now.
    async fn erp_time(&self) -> Timestamp;
    /// Returns when the ERP's clock is past that moment.
    async fn wait_past(&self, moment: Timestamp);
}

/// One `#[tokio::test]` of each check. Takes the path of an async function without parameters that
/// makes a [`Fixture`](crate::conformance::Fixture); with `if` before it, one that makes an `Option`
/// of it, and where that is `None` the tests pass over. With `paying` before all that, only the
/// checks of a connector that cannot change bank details yet.
#[macro_export]
macro_rules! conformance_tests {
    (paying if $make_fixture:path) => {
        $crate::conformance_tests! { @paying if $make_fixture }
    };
    (paying $make_fixture:path) => {
        $crate::conformance_tests! { @paying always $make_fixture }
    };
    (if $make_fixture:path) => {
        $crate::conformance_tests! { @paying if $make_fixture }
        $crate::conformance_tests! { @changing if $make_fixture }
    };
    ($make_fixture:path) => {
        $crate::conformance_tests! { @paying always $make_fixture }
        $crate::conformance_tests! { @changing always $make_fixture }
    };
    (@changing $when:tt $make_fixture:path) => {
        $crate::conformance_tests! { @each $when $make_fixture;
            a_change_is_made_once_and_reads_back_equal
            the_same_change_again_answers_the_same
            a_known_marker_with_any_other_field_of_a_change_is_a_contradiction
            a_number_serves_one_payment_or_one_change
            a_marker_of_a_payment_changes_nothing
            a_change_has_its_time
            concurrent_copies_of_a_change_change_once
            of_several_changes_at_once_one_is_made
            a_look_up_of_a_change_proves_what_it_says
            open_bills_are_pointed_to_the_new_account
            after_a_change_only_the_new_account_is_paid
            an_old_account_that_is_not_there_is_refused
            a_vendor_with_several_accounts_is_not_changed
            an_account_is_named_exactly_where_there_is_one
            an_archived_account_is_brought_back
            a_number_of_our_own_or_the_old_one_is_refused
            a_vendor_that_is_not_ours_is_not_changed
            a_change_that_was_not_sealed_is_a_bad_seal
            a_payment_is_no_change_and_a_change_no_payment
            every_edit_is_in_the_log
            an_account_given_away_is_in_the_log
            a_merge_is_in_the_log
            only_what_an_order_did_is_logged_as_ordered
            the_log_is_read_in_pages
            a_review_finds_a_payment_that_was_undone
            a_review_finds_an_overpaid_bill
            changes_of_an_unknown_company_are_no_answer
        }
    };
    (@paying $when:tt $make_fixture:path) => {
        $crate::conformance_tests! { @each $when $make_fixture;
            a_bill_of_another_company_is_none
            a_missing_record_is_none
            an_unknown_company_is_no_answer
            a_reading_has_the_figures_of_the_bill
            bills_are_listed_ascending_without_gaps
            vendors_are_listed_ascending_without_gaps
            what_resembles_a_bill_is_found
            many_bills_are_looked_beside_at_once
            what_a_vendor_owes_back_is_found
            other_vendors_with_the_same_number_are_found
            a_new_guard_attests_clean
            a_payment_books_once_and_reads_back_equal
            a_part_is_booked_and_the_rest_stays
            the_same_order_again_answers_the_same_booking
            a_known_marker_with_any_other_field_is_a_contradiction
            a_sequence_number_is_used_once
            an_order_after_its_deadline_is_too_late
            an_order_with_a_deadline_far_away_is_refused
            after_an_undone_payment_no_second_one_is_booked
            orders_are_listed_ascending
            an_order_under_another_key_is_a_bad_seal
            an_altered_text_is_a_bad_seal
            only_the_sealed_text_counts
            a_look_up_proves_absence_only_after_the_deadline
            a_booked_order_is_found
            a_look_up_with_another_bill_never_proves_absence
            concurrent_orders_for_one_bill_book_one_payment
            concurrent_copies_of_one_order_book_once
            concurrent_parts_never_exceed_the_total
            a_missing_bill_is_refused
            a_foreign_bill_is_not_paid
            a_cancelled_bill_is_refused
            a_vendor_that_is_not_the_bills_is_refused
            an_account_of_another_vendor_is_refused
            an_archived_account_is_refused
            a_changed_number_is_refused
            a_distrusted_account_is_refused
            an_account_of_our_own_is_refused
            a_total_that_is_not_the_pinned_one_is_refused
            another_currency_is_refused
            an_amount_that_is_not_there_is_refused
            a_bill_paid_in_part_by_hand_takes_only_the_rest
            a_journal_that_is_not_ours_is_refused
        }
    };
    (@each if $make_fixture:path; $($check:ident)+) => {
        $(
            #[tokio::test]
            async fn $check() {
                let Some(fixture) = $make_fixture().await else { return };
                $crate::conformance::$check(&fixture).await;
            }
        )+
    };
    (@each always $make_fixture:path; $($check:ident)+) => {
        $(
            #[tokio::test]
            async fn $check() {
                let fixture = $make_fixture().await;
                $crate::conformance::$check(&fixture).await;
            }
        )+
    };
}
