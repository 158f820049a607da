//! What each fact of a payment is, whatever its value: whether an approval is bound to it, and
//! whether agents see it.

use countersign_erp_source::Timestamp;

use crate::domain::facts::{Fact, FactValue, Facts};

/// A fact by name, with what is fixed of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ap) struct FactKind {
    pub(in crate::ap) name: &'static str,
    binds: bool,
    agents_see: bool,
}

impl FactKind {
    pub(in crate::ap) const INVOICE_OPEN: Self = Self::decisive("invoice_open");
    pub(in crate::ap) const BILL_CONSISTENT: Self = Self::decisive("bill_consistent");
    pub(in crate::ap) const PAYEE_IS_INVOICE_VENDOR: Self =
        Self::decisive("payee_is_invoice_vendor");
    pub(in crate::ap) const AMOUNT_WITHIN_RESIDUAL: Self = Self::decisive("amount_within_residual");
    pub(in crate::ap) const CURRENCY_MATCHES_INVOICE: Self =
        Self::decisive("currency_matches_invoice");
    pub(in crate::ap) const IS_PARTIAL: Self = Self::decisive("is_partial");
    pub(in crate::ap) const HAS_VENDOR_REFERENCE: Self = Self::decisive("has_vendor_reference");
    pub(in crate::ap) const VENDOR_UNAPPLIED: Self = Self::decisive("vendor_unapplied");
    pub(in crate::ap) const DUPLICATE: Self = Self::decisive("duplicate");
    pub(in crate::ap) const BANK_STATUS: Self = Self::decisive("bank_status");
    pub(in crate::ap) const IBAN_AGE_DAYS: Self = Self::age("iban_age_days");
    pub(in crate::ap) const IN_COOLING_OFF: Self = Self::decisive("in_cooling_off");
    pub(in crate::ap) const ERP_ALLOWS_ACCOUNT: Self = Self::decisive("erp_allows_account");
    pub(in crate::ap) const IS_OWN_ACCOUNT: Self = Self::decisive("is_own_account");
    /// Another caller's operation.
    pub(in crate::ap) const BANK_CHANGE_PENDING: Self =
        Self::decisive("bank_change_pending").for_humans();
    /// About other vendors.
    pub(in crate::ap) const SHARED_WITH: Self = Self::decisive("shared_with").for_humans();
    /// What humans did.
    pub(in crate::ap) const DAYS_SINCE_APPROVED_PAYMENT: Self =
        Self::age("days_since_approved_payment").for_humans();
    pub(in crate::ap) const VOP: Self = Self::decisive("vop");
    /// The name that the bank gave. It tells who holds an account.
    pub(in crate::ap) const VOP_NAME: Self = Self::decisive("vop_name").for_humans();
    /// The bills and payments that a suspicion rests on.
    pub(in crate::ap) const LIKE_BILLS: Self = Self::decisive("like_bills").for_humans();
    pub(in crate::ap) const PAYEE_SANCTIONED: Self = Self::decisive("payee_sanctioned");
    pub(in crate::ap) const SANCTIONS_LIST_CONFIGURED: Self =
        Self::decisive("sanctions_list_configured").for_humans();
    pub(in crate::ap) const AMOUNT_E2: Self = Self::decisive("amount_e2").for_humans();
    pub(in crate::ap) const CALLBACK_VALID: Self = Self::decisive("callback_valid");
    pub(in crate::ap) const PHONE_TRUSTED: Self = Self::decisive("phone_trusted").for_humans();
    pub(in crate::ap) const PHONE_AGE_DAYS: Self = Self::age("phone_age_days").for_humans();
    pub(in crate::ap) const PHONE_SHARED: Self = Self::decisive("phone_shared").for_humans();
    pub(in crate::ap) const PHONE_ON_FILE: Self = Self::decisive("phone_on_file").for_humans();
    pub(in crate::ap) const NEW_IBAN_IS_OWN: Self = Self::decisive("new_iban_is_own").for_humans();
    pub(in crate::ap) const NEW_IBAN_SANCTIONED: Self =
        Self::decisive("new_iban_sanctioned").for_humans();
    pub(in crate::ap) const NEW_IBAN_SHARED_WITH: Self =
        Self::decisive("new_iban_shared_with").for_humans();
    pub(in crate::ap) const NEW_ACCOUNT_VOP: Self = Self::decisive("vop");
    pub(in crate::ap) const COUNTRY_CHANGES: Self = Self::decisive("country_changes").for_humans();
    pub(in crate::ap) const VENDOR_HAS_SEVERAL_ACCOUNTS: Self =
        Self::decisive("vendor_has_several_accounts");
    pub(in crate::ap) const ACCOUNT_ON_FILE: Self = Self::decisive("account_on_file");
    /// For the floor: name, tax number, parent and order of accounts are as they were.
    pub(in crate::ap) const VENDOR_AS_KNOWN: Self = Self::decisive("vendor_as_known");
    pub(in crate::ap) const VENDOR_AUTO_24H_E2: Self = Self::total("vendor_auto_24h_e2");
    pub(in crate::ap) const COMPANY_AUTO_24H_E2: Self = Self::total("company_auto_24h_e2");
    pub(in crate::ap) const VENDOR_AUTO_30D_E2: Self = Self::total("vendor_auto_30d_e2");
    pub(in crate::ap) const COMPANY_AUTO_30D_E2: Self = Self::total("company_auto_30d_e2");

    /// A fact that an approval is bound to.
    const fn decisive(name: &'static str) -> Self {
        Self { name, binds: true, agents_see: true }
    }

    /// A number of days. It grows by itself, so no approval is bound to it.
    const fn age(name: &'static str) -> Self {
        Self { name, binds: false, agents_see: true }
    }

    /// A sum over payments. It moves with every other payment, so no approval is bound to it; and
    /// it is no agent's business.
    const fn total(name: &'static str) -> Self {
        Self { name, binds: false, agents_see: false }
    }

    /// No agent sees it: it tells of others, or of what the gateway goes by.
    const fn for_humans(self) -> Self {
        Self { agents_see: false, ..self }
    }
}

/// Collects facts with their source and time.
#[derive(Debug)]
pub(in crate::ap) struct Collector {
    pub(in crate::ap) facts: Facts,
    at: Timestamp,
}

impl Collector {
    /// Of facts that are found out at that moment.
    pub(in crate::ap) fn at(at: Timestamp) -> Self {
        Self { facts: Facts::default(), at }
    }

    pub(in crate::ap) fn set(&mut self, kind: FactKind, value: FactValue, source: &str) {
        let FactKind { name, binds, agents_see } = kind;
        let fact = Fact { value, source: source.to_owned(), at: self.at, binds, agents_see };
        self.facts.set(name, fact);
    }

    pub(in crate::ap) fn flag(&mut self, kind: FactKind, value: bool, source: &str) {
        self.set(kind, FactValue::Bool(value), source);
    }

    pub(in crate::ap) fn long(&mut self, kind: FactKind, value: i64, source: &str) {
        self.set(kind, FactValue::Long(value), source);
    }

    /// A text for the humans, where there is something to say.
    pub(in crate::ap) fn text(&mut self, kind: FactKind, text: Option<&str>, source: &str) {
        if let Some(text) = text {
            self.set(kind, FactValue::Text(text.to_owned()), source);
        }
    }

    pub(in crate::ap) fn word(
        &mut self,
        kind: FactKind,
        list: &'static str,
        word: &'static str,
        source: &str,
    ) {
        self.set(kind, FactValue::Word { list, word }, source);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const OF_PAYMENT: [FactKind; 25] = [
        FactKind::INVOICE_OPEN,
        FactKind::BILL_CONSISTENT,
        FactKind::PAYEE_IS_INVOICE_VENDOR,
        FactKind::AMOUNT_WITHIN_RESIDUAL,
        FactKind::CURRENCY_MATCHES_INVOICE,
        FactKind::IS_PARTIAL,
        FactKind::HAS_VENDOR_REFERENCE,
        FactKind::VENDOR_UNAPPLIED,
        FactKind::DUPLICATE,
        FactKind::BANK_STATUS,
        FactKind::IBAN_AGE_DAYS,
        FactKind::IN_COOLING_OFF,
        FactKind::ERP_ALLOWS_ACCOUNT,
        FactKind::IS_OWN_ACCOUNT,
        FactKind::BANK_CHANGE_PENDING,
        FactKind::SHARED_WITH,
        FactKind::DAYS_SINCE_APPROVED_PAYMENT,
        FactKind::VOP,
        FactKind::PAYEE_SANCTIONED,
        FactKind::SANCTIONS_LIST_CONFIGURED,
        FactKind::AMOUNT_E2,
        FactKind::VENDOR_AUTO_24H_E2,
        FactKind::COMPANY_AUTO_24H_E2,
        FactKind::VENDOR_AUTO_30D_E2,
        FactKind::COMPANY_AUTO_30D_E2,
    ];

    const OF_CHANGE: [FactKind; 11] = [
        FactKind::CALLBACK_VALID,
        FactKind::PHONE_TRUSTED,
        FactKind::PHONE_AGE_DAYS,
        FactKind::PHONE_SHARED,
        FactKind::NEW_IBAN_IS_OWN,
        FactKind::NEW_IBAN_SANCTIONED,
        FactKind::NEW_IBAN_SHARED_WITH,
        FactKind::SANCTIONS_LIST_CONFIGURED,
        FactKind::NEW_ACCOUNT_VOP,
        FactKind::COUNTRY_CHANGES,
        FactKind::VENDOR_HAS_SEVERAL_ACCOUNTS,
    ];

    const OF_CONFIRMATION: [FactKind; 10] = [
        FactKind::CALLBACK_VALID,
        FactKind::PHONE_TRUSTED,
        FactKind::PHONE_AGE_DAYS,
        FactKind::PHONE_SHARED,
        FactKind::ACCOUNT_ON_FILE,
        FactKind::NEW_IBAN_IS_OWN,
        FactKind::NEW_IBAN_SANCTIONED,
        FactKind::NEW_IBAN_SHARED_WITH,
        FactKind::SANCTIONS_LIST_CONFIGURED,
        FactKind::NEW_ACCOUNT_VOP,
    ];

    const OF_PHONE: [FactKind; 2] = [FactKind::PHONE_ON_FILE, FactKind::PHONE_SHARED];

    /// The facts that the policy schema names, with their kinds as it writes them.
    fn of_schema(action: &str) -> BTreeMap<&'static str, &'static str> {
        let schema = include_str!("../../../policies/schema.cedarschema");
        let action = schema.split_once(&format!("action \"{action}\"")).unwrap().1;
        let context = action.split_once("context: {").unwrap().1.split_once("},").unwrap().0;
        context
            .lines()
            .filter_map(|line| line.trim().strip_suffix(',')?.split_once(": "))
            .filter(|(name, _)| !["approval_level", "cooling_off_days"].contains(name))
            .collect()
    }

    #[test]
    fn policies_can_ask_for_exactly_these() {
        for (action, kinds) in [
            ("invoice.pay", &OF_PAYMENT[..]),
            ("vendor.update_bank_details", &OF_CHANGE),
            ("vendor.confirm_bank_details", &OF_CONFIRMATION),
            ("vendor.confirm_phone", &OF_PHONE),
        ] {
            let mut ours: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
            ours.sort_unstable();
            assert_eq!(ours, of_schema(action).into_keys().collect::<Vec<_>>(), "{action}");
        }
    }

    #[test]
    fn an_approval_is_bound_to_all_but_ages_and_totals_and_agents_see_no_total() {
        for kind in OF_PAYMENT.into_iter().chain(OF_CHANGE).chain(OF_CONFIRMATION).chain(OF_PHONE) {
            let counts_days = kind.name.contains("days");
            let is_total = kind.name.contains("_auto_");
            assert_eq!(kind.binds, !counts_days && !is_total, "{kind:?}");
            assert!(!is_total || !kind.agents_see, "{kind:?}");
        }
        let hidden: Vec<&str> =
            OF_PAYMENT.iter().filter(|kind| !kind.agents_see).map(|kind| kind.name).collect();
        assert_eq!(
            hidden,
            [
                "bank_change_pending",
                "shared_with",
                "days_since_approved_payment",
                "sanctions_list_configured",
                "amount_e2",
                "vendor_auto_24h_e2",
                "company_auto_24h_e2",
                "vendor_auto_30d_e2",
                "company_auto_30d_e2",
            ]
        );
    }
}
