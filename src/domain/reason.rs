//! Why the gateway itself refuses: a closed, append-only list of stable codes. (At stage `policy`
//! the ids of Cedar policies stand beside these.)

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// A reason of the gateway's own.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable code.
            pub fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// What it means, for whoever has to act on it.
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// The token is absent, malformed, not ours, or its signature does not verify.
    TokenInvalid = "token_invalid", "the token is not valid here";
    /// The mandate's time is over.
    MandateExpired = "mandate_expired", "the mandate has expired";
    /// The mandate was revoked, or its principal is no active accountant any more.
    MandateRevoked = "mandate_revoked", "the mandate was revoked";
    /// The human holds no role that he began it with any more.
    RoleNotHeld = "role_not_held", "who began it may not act in this company any more";
    /// The action is not one that is known.
    UnknownAction = "unknown_action", "there is no such action";
    /// The parameters are not exactly those of the action, in type and form.
    InvalidArgs = "invalid_args", "the arguments are not those of the action";
    /// The mode is neither commit nor prepare.
    InvalidMode = "invalid_mode", "the mode is `commit` or `prepare`";
    /// No such bill in the mandate's company.
    BillNotFound = "bill_not_found", "the company has no such bill";
    /// The payee is no active account of the bill's vendor.
    PayeeNotOnFile = "payee_not_on_file", "the payee is not an account on file of the bill's vendor";
    /// The agent named too many accounts that are not the ones on file.
    TooManyGuesses = "too_many_guesses", "too many accounts were named that are not on file; for a day, name them by reference";
    /// Source account or currency is not the mandate's.
    NotInMandate = "not_in_mandate", "source account or currency is not the mandate's";
    /// No such vendor in the mandate's company.
    VendorNotFound = "vendor_not_found", "the company has no such vendor";
    /// The mandate does not hold the scope.
    ScopeNotHeld = "scope_not_held", "the mandate does not hold the scope of this action";
    /// The amount does not fit into what is left of the budget.
    BudgetExceeded = "budget_exceeded", "the amount is more than what is left of the mandate's budget";
    /// No call is left.
    CallsExceeded = "calls_exceeded", "the mandate has no calls left";
    /// The bill is not in the company's currency.
    CurrencyNeedsRate = "currency_needs_rate", "bills in another currency than the company's are not paid yet";
    /// The company has no baseline yet.
    BaselineMissing = "baseline_missing", "the company's vendors have not been adopted yet";
    /// Floor: the bill is not open.
    FloorBillNotOpen = "floor_bill_not_open", "the bill is not open";
    /// Floor: header and lines disagree.
    FloorBillInconsistent = "floor_bill_inconsistent", "header and lines of the bill contradict each other";
    /// Floor: the account is another vendor's.
    FloorOtherVendor = "floor_other_vendor", "the account is not the bill's vendor's";
    /// Floor: more than is left.
    FloorOverResidual = "floor_over_residual", "the amount is more than what is left of the bill";
    /// Floor: another currency than the bill's.
    FloorOtherCurrency = "floor_other_currency", "the bill is in another currency";
    /// Floor: the account changed behind the gateway's back.
    FloorChangedInErp = "floor_changed_in_erp", "the account was changed in the ERP without the gateway";
    /// Floor: which account is meant cannot be told.
    FloorAmbiguous = "floor_ambiguous", "the vendor has several accounts and the bill does not name a verified one";
    /// Floor: the ERP does not allow paying to the account.
    FloorErpForbids = "floor_erp_forbids", "the ERP does not allow paying to this account";
    /// Floor: one of the company's own accounts.
    FloorOwnAccount = "floor_own_account", "the account is one of the company's own";
    /// Floor: sanctioned.
    FloorSanctioned = "floor_sanctioned", "the payee is on a sanctions list";
    /// Floor: Verification of Payee said no.
    FloorVopNoMatch = "floor_vop_no_match", "the account is not held under the vendor's name";
    /// Floor: the bill's total is not the one it was first claimed with.
    FloorTotalChanged = "floor_total_changed", "the bill's total is not the one that its first payment was decided on";
    /// Floor: no call-back carries the change.
    FloorNoCallback = "floor_no_callback", "no call-back that counts carries this";
    /// Floor: the number dialled is not a trusted one.
    FloorPhoneUntrusted = "floor_phone_untrusted", "the number that was called is not a trusted one";
    /// Floor: nothing of the vendor's in the ERP is that.
    FloorNotOnFile = "floor_not_on_file", "the ERP does not have it on file for the vendor";
    /// The vendor has exactly that account.
    AccountOnFile = "account_on_file", "the vendor has this account on file already, and no other";
    /// The vendor said that the change is not its own.
    CallbackDenied = "callback_denied", "the vendor said on the telephone that the account is not theirs";
    /// An operation of ours already paid it.
    AlreadyPaid = "already_paid", "the bill was already paid through the gateway";
    /// The ERP has an order for it that this store, restored from a copy, does not know of.
    OrderAdopted = "order_adopted", "the store was restored from a copy, and the ERP has a payment of this bill that the copy does not know of; look at the bill and propose anew";
    /// Another operation for the same thing is under way.
    OperationInProgress = "operation_in_progress", "another operation for the same bill or vendor is under way";
    /// A freeze is in force.
    Frozen = "frozen", "a freeze of the vendor, the company or everything is in force; nothing is done before it is thawed";
    /// Too many of the mandate's operations wait.
    TooManyPending = "too_many_pending", "too many operations of this mandate, or of this human's own, are pending";
    /// A human rejected the same thing not long ago.
    RecentlyRejected = "recently_rejected", "a human rejected the same payment or change within the last 24 hours";
    /// A human said no.
    Rejected = "rejected", "a human rejected it";
    /// The ERP did not answer.
    ErpUnavailable = "erp_unavailable", "the ERP did not answer";
    /// The ERP's side is not safe to pay through.
    ErpNotReady = "erp_not_ready", "the ERP's side is not ready to pay";
    /// The store did not answer.
    StoreUnavailable = "store_unavailable", "the store did not answer";
    /// A fact could not be had.
    FactUnavailable = "fact_unavailable", "a fact could not be had";
    /// A policy did not evaluate.
    PolicyFailed = "policy_failed", "the policy could not be evaluated";
    /// The ERP refused the order and booked nothing.
    ErpRefused = "erp_refused", "the ERP refused the order and booked nothing";
    /// The order could not be sent for too long.
    NeverSent = "never_sent", "the ERP was out of reach for too long; nothing was sent";
    /// The order is proved not to have been booked, and the operation no longer stands.
    ProvedAbsent = "proved_absent", "the ERP proved that nothing was booked";
    /// A human found that nothing was booked.
    NotBooked = "not_booked", "a human looked in the ERP and found that nothing was booked";
    /// The ERP and the store contradict each other.
    ErpContradicts = "erp_contradicts_store", "the ERP and the store contradict each other; everything is frozen";
    /// What was booked is not what was approved.
    BookedOtherwise = "booked_otherwise", "what the ERP booked is not what was decided";
    /// No such human, another password, or a human who may not act.
    CredentialsInvalid = "credentials_invalid", "user or password is not right";
    /// The session has ended, or there never was one.
    SessionInvalid = "session_invalid", "the session has ended; sign in again";
    /// Too many attempts to sign in.
    SignInLimited = "sign_in_limited", "too many attempts to sign in";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_is_its_own() {
        let codes: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        assert_eq!(codes.len(), Reason::ALL.len());
        assert!(Reason::ALL.iter().all(|reason| !reason.text().is_empty()));
    }
}
