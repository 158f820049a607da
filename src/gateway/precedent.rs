//! What a claim leaves for later decisions, in the claim's own unit of work.

use std::sync::Arc;

use super::Stored;
use super::pack::Case;
use crate::store::attempts::Attempt;
use crate::store::{StoreError, Unit, precedents};

/// Keeps what that claim was made for.
pub(super) async fn keep(
    unit: &mut Unit<'_>,
    attempt: &Attempt,
    case: Option<&Arc<dyn Case>>,
) -> Stored<()> {
    let case = case.ok_or_else(|| {
        StoreError::inconsistent("precedent", "operation", "has no case at a claim")
    })?;
    let precedent = &case.resolved().precedent;
    let reference = precedent.reference.as_ref();
    precedents::keep(unit.conn(), attempt, &precedent.payee, reference, precedent.dated).await
}
