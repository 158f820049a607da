//! The floor: what code refuses, whatever the policy text says.

use crate::domain::facts::{FactValue, Facts};
use crate::domain::reason::Reason;

/// What code refuses, whatever the policy text says (I11).
///
/// INVARIANT: each condition asks for the fact that makes paying right, so that an absent fact
/// refuses as well.
pub(in crate::ap) fn floor(facts: &Facts) -> Vec<Reason> {
    let false_or_absent = |name: &str| {
        !matches!(facts.get(name).map(|fact| &fact.value), Some(FactValue::Bool(false)))
    };
    let status = facts.word("bank_status");
    let vop = facts.word("vop");
    let checks = [
        (!facts.is_true("invoice_open"), Reason::FloorBillNotOpen),
        (!facts.is_true("bill_consistent"), Reason::FloorBillInconsistent),
        (!facts.is_true("payee_is_invoice_vendor"), Reason::FloorOtherVendor),
        (!facts.is_true("amount_within_residual"), Reason::FloorOverResidual),
        (!facts.is_true("currency_matches_invoice"), Reason::FloorOtherCurrency),
        (!facts.is_true("erp_allows_account"), Reason::FloorErpForbids),
        (false_or_absent("is_own_account"), Reason::FloorOwnAccount),
        (
            !matches!(status, Some("verified" | "adopted" | "unverified" | "ambiguous")),
            Reason::FloorChangedInErp,
        ),
        (status == Some("ambiguous"), Reason::FloorAmbiguous),
        (
            !matches!(facts.word("payee_sanctioned"), Some("no" | "not_checked")),
            Reason::FloorSanctioned,
        ),
        (!matches!(vop, Some("match" | "close_match" | "not_possible")), Reason::FloorVopNoMatch),
    ];
    checks.into_iter().filter(|(refused, _)| *refused).map(|(_, reason)| reason).collect()
}

#[cfg(test)]
mod tests {
    use countersign_erp_source::Timestamp;

    use super::super::collected::{Collector, FactKind};
    use super::*;

    fn good() -> Collector {
        let mut all = Collector::at(Timestamp::from_millis(0));
        for kind in [
            FactKind::INVOICE_OPEN,
            FactKind::BILL_CONSISTENT,
            FactKind::PAYEE_IS_INVOICE_VENDOR,
            FactKind::AMOUNT_WITHIN_RESIDUAL,
            FactKind::CURRENCY_MATCHES_INVOICE,
            FactKind::ERP_ALLOWS_ACCOUNT,
        ] {
            all.flag(kind, true, "test");
        }
        all.flag(FactKind::IS_OWN_ACCOUNT, false, "test");
        all.word(FactKind::BANK_STATUS, "BankStatus", "adopted", "test");
        all.word(FactKind::VOP, "Vop", "match", "test");
        all.word(FactKind::PAYEE_SANCTIONED, "Sanctions", "no", "test");
        all
    }

    const FLAGS: [(FactKind, Reason); 7] = [
        (FactKind::INVOICE_OPEN, Reason::FloorBillNotOpen),
        (FactKind::BILL_CONSISTENT, Reason::FloorBillInconsistent),
        (FactKind::PAYEE_IS_INVOICE_VENDOR, Reason::FloorOtherVendor),
        (FactKind::AMOUNT_WITHIN_RESIDUAL, Reason::FloorOverResidual),
        (FactKind::CURRENCY_MATCHES_INVOICE, Reason::FloorOtherCurrency),
        (FactKind::ERP_ALLOWS_ACCOUNT, Reason::FloorErpForbids),
        (FactKind::IS_OWN_ACCOUNT, Reason::FloorOwnAccount),
    ];

    #[test]
    fn each_fact_alone_refuses_when_it_is_wrong() {
        assert_eq!(floor(&good().facts), []);
        for (kind, reason) in FLAGS {
            let mut wrong = good();
            let right = wrong.facts.is_true(kind.name);
            wrong.flag(kind, !right, "test");
            assert_eq!(floor(&wrong.facts), [reason], "{kind:?}");
        }
        let words = [
            (FactKind::BANK_STATUS, "BankStatus", "changed_in_erp", Reason::FloorChangedInErp),
            (FactKind::BANK_STATUS, "BankStatus", "ambiguous", Reason::FloorAmbiguous),
            (FactKind::VOP, "Vop", "no_match", Reason::FloorVopNoMatch),
            (FactKind::PAYEE_SANCTIONED, "Sanctions", "yes", Reason::FloorSanctioned),
        ];
        for (kind, list, word, reason) in words {
            let mut wrong = good();
            wrong.word(kind, list, word, "test");
            assert_eq!(floor(&wrong.facts), [reason], "{word}");
        }
    }

    #[test]
    fn an_absent_fact_refuses_as_well() {
        let found = floor(&Facts::default());
        for (kind, reason) in FLAGS {
            assert!(found.contains(&reason), "{kind:?}");
        }
        for reason in [Reason::FloorChangedInErp, Reason::FloorVopNoMatch, Reason::FloorSanctioned]
        {
            assert!(found.contains(&reason), "{reason:?}");
        }
    }
}
