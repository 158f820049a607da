//! Orders handed over, looked for and listed, what somebody else did, and what the guard proves.

use countersign_erp_source::{
    AccountId, Amount, Attestation, BillId, ChangeLookUp, Changed, CompanyId, Currency,
    ErpCompanyId, Iban, Identity, IdentityProof, LoggedChange, LookUp, LookUpAnswer, Marker,
    OrderError, PaymentId, RecordedOrder, Refusal, Timestamp,
};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use tokio::time::{Instant, timeout_at};

use super::{Unusable, malformed};
use crate::faults::{FaultKind, FaultPoint};
use crate::guard;
use crate::sandbox::{Sandbox, Writing};
use crate::tables;

impl Sandbox {
    /// Has the guard carry an order out, as the faults of that point want it.
    pub(super) async fn hand_over<T: Send + 'static>(
        &self,
        point: FaultPoint,
        work: impl Future<Output = Result<T, OrderError>> + Send + 'static,
    ) -> Result<T, OrderError> {
        let deadline = Instant::now() + self.inner.call_deadline;
        let not_sent = |reason: String| Err(OrderError::NotSent { reason });
        let fault = match timeout_at(deadline, self.fault_at(point)).await {
            Ok(Ok(fault)) => fault,
            Ok(Err(error)) => return not_sent(error.to_string()),
            Err(elapsed) => return not_sent(elapsed.to_string()),
        };
        match fault.map(|fault| fault.kind) {
            Some(FaultKind::Refuse) => return Err(OrderError::Refused(Refusal::Other)),
            Some(FaultKind::Unreachable) => {
                return not_sent("the sandbox is not reachable, as asked".to_owned());
            }
            _ => {}
        }
        // In a task of its own: what was sent happens, whether anybody still waits or not.
        let work = self.inner.tasks.spawn(async move {
            if let Some(fault) = fault {
                fault.before().await;
            }
            let answer = work.await;
            if let Some(fault) = fault {
                fault.after();
            }
            answer
        });
        let unknown = |reason: String| Err(OrderError::OutcomeUnknown { reason });
        match timeout_at(deadline, work).await {
            Ok(Ok(_)) if fault.is_some_and(|fault| fault.kind == FaultKind::LostAnswer) => {
                unknown("the sandbox's answer is lost, as asked".to_owned())
            }
            Ok(Ok(answer)) => answer,
            Ok(Err(ended)) => unknown(ended.to_string()),
            Err(elapsed) => unknown(elapsed.to_string()),
        }
    }

    pub(super) async fn read_look_up(&self, wanted: &LookUp) -> Result<LookUpAnswer, Unusable> {
        let mut writing = self.inner.write().await?;
        let payment: Option<i64> =
            sqlx::query_scalar("select payment from payment_order where marker = $1")
                .bind(wanted.marker.to_hex())
                .fetch_optional(&mut *writing.tx)
                .await?;
        let booked = match payment {
            Some(payment) => Some(guard::booked(&mut writing.tx, payment).await?),
            None => None,
        };
        answered(writing, booked).await
    }

    pub(super) async fn read_look_up_change(
        &self,
        wanted: &ChangeLookUp,
    ) -> Result<LookUpAnswer<Changed>, Unusable> {
        let mut writing = self.inner.write().await?;
        let found = guard::find_change(&mut writing.tx, &wanted.marker).await?;
        answered(writing, found).await
    }

    pub(super) async fn read_changes(
        &self,
        company: &CompanyId,
        after: u64,
        limit: u16,
    ) -> Result<Vec<LoggedChange>, Unusable> {
        let Ok(after) = i64::try_from(after) else { return Ok(Vec::new()) };
        let mut conn = self.inner.conn().await?;
        Ok(tables::logged(&mut conn, company.as_str(), after, limit).await?)
    }

    pub(super) async fn read_orders(
        &self,
        store: &str,
        after: u64,
        limit: u16,
    ) -> Result<Vec<RecordedOrder>, Unusable> {
        let Ok(after) = i64::try_from(after) else { return Ok(Vec::new()) };
        let (mut tx, _) = self.inner.read().await?;
        let rows = sqlx::query(
            "select marker, seq, company, bill, account, iban, amount_minor, total_minor, currency,
                 payment, at_ms
             from payment_order where store = $1 and seq > $2 order by seq limit $3",
        )
        .bind(store)
        .bind(after)
        .bind(i64::from(limit))
        .fetch_all(&mut *tx)
        .await?;
        rows.iter().map(recorded_order).collect()
    }

    pub(super) async fn read_attestation(&self, store: &str) -> Result<Attestation, Unusable> {
        let (mut tx, erp_time) = self.inner.read().await?;
        let newest = guard::newest_number(&mut tx, store).await?;
        let installed = guard::installed_key(&mut tx).await?;
        let mut guard_problems = Vec::new();
        match (installed, &self.inner.seal_key) {
            (None, _) => guard_problems.push(
                "no seal key is installed: open the sandbox once with the keys of the daemon that \
                 is to pay"
                    .to_owned(),
            ),
            (Some(there), Some(ours)) if there.bytes() != ours.bytes() => guard_problems.push(
                "another seal key is installed: use the keys that first opened this sandbox, or \
                 begin with a new sandbox file"
                    .to_owned(),
            ),
            _ => {}
        }
        let identities = [Identity::Reader, Identity::Payer, Identity::BankAdmin];
        Ok(Attestation {
            erp_time,
            newest_seq: u64::try_from(newest).map_err(|error| malformed(&error))?,
            guard_problems,
            // The sandbox is part of the daemon and has no credentials that could be mixed up.
            identities: identities
                .map(|identity| IdentityProof { identity, problems: Vec::new() })
                .into(),
        })
    }
}

/// INVARIANT: under the write lock no order is half way, and none can follow that is earlier than
/// the time that is answered and kept.
async fn answered<B>(
    mut writing: Writing<'_>,
    booked: Option<B>,
) -> Result<LookUpAnswer<B>, Unusable> {
    writing.keep_time().await?;
    let erp_time = writing.now;
    writing.commit().await?;
    Ok(LookUpAnswer { erp_time, booked })
}

fn recorded_order(row: &SqliteRow) -> Result<RecordedOrder, Unusable> {
    let text = |column: &str| row.try_get::<String, _>(column);
    let currency = Currency::from_code(&text("currency")?).map_err(|error| malformed(&error))?;
    let payment: i64 = row.try_get("payment")?;
    Ok(RecordedOrder {
        marker: Marker::parse(&text("marker")?).map_err(|error| malformed(&error))?,
        seq: u64::try_from(row.try_get::<i64, _>("seq")?).map_err(|error| malformed(&error))?,
        erp_company: ErpCompanyId::new(text("company")?).map_err(|error| malformed(&error))?,
        bill: BillId::new(text("bill")?).map_err(|error| malformed(&error))?,
        account: AccountId::new(text("account")?).map_err(|error| malformed(&error))?,
        iban: Iban::parse(&text("iban")?).map_err(|error| malformed(&error))?,
        amount: Amount::from_minor(row.try_get("amount_minor")?, currency),
        total: Amount::from_minor(row.try_get("total_minor")?, currency),
        payment: PaymentId::new(payment.to_string()).map_err(|error| malformed(&error))?,
        at: Timestamp::from_millis(row.try_get("at_ms")?),
    })
}
