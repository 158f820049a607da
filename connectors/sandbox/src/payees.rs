//! Verification of Payee and the sanctions list of the sandbox's world.

use async_trait::async_trait;
use countersign_erp_source::{
    Iban, NoAnswer, PayeeVerifier, ReadError, SanctionsScreen, Screening, VopReport, VopResult,
};

use crate::faults::FaultPoint;
use crate::sandbox::Sandbox;
use crate::tables::TableError;

/// What receipts call this provider and this list.
const PROVIDER: &str = "sandbox";

fn no_answer(error: &ReadError) -> NoAnswer {
    NoAnswer { provider: PROVIDER.to_owned(), reason: error.to_string() }
}

impl Sandbox {
    async fn ask_vop(&self, name: &str, iban: &Iban) -> Result<VopReport, TableError> {
        let mut conn = self.inner.conn().await?;
        let at = self.inner.now();
        let row: Option<(String, Option<String>)> =
            sqlx::query_as("select result, actual_name from vop where name = $1 and iban = $2")
                .bind(name)
                .bind(iban.electronic())
                .fetch_optional(&mut *conn)
                .await?;
        // A pair that nobody listed is somebody else's account.
        let (word, actual_name) = row.unwrap_or_else(|| ("no_match".to_owned(), None));
        let result = match word.as_str() {
            "match" => VopResult::Match,
            "close_match" => VopResult::CloseMatch { actual_name },
            "no_match" => VopResult::NoMatch,
            _ => VopResult::NotPossible,
        };
        Ok(VopReport { result, provider: PROVIDER.to_owned(), at })
    }

    async fn ask_sanctions(&self, iban: &Iban) -> Result<Screening, TableError> {
        let mut conn = self.inner.conn().await?;
        let listed: i64 =
            sqlx::query_scalar("select exists (select 1 from sanctioned where iban = $1)")
                .bind(iban.electronic())
                .fetch_one(&mut *conn)
                .await?;
        Ok(if listed == 1 { Screening::Listed } else { Screening::NotListed })
    }
}

#[async_trait]
impl PayeeVerifier for Sandbox {
    async fn verify(&self, name: &str, iban: &Iban) -> Result<VopReport, NoAnswer> {
        let work = async { Ok(self.ask_vop(name, iban).await?) };
        self.read_at(FaultPoint::Vop, work).await.map_err(|error| no_answer(&error))
    }
}

#[async_trait]
impl SanctionsScreen for Sandbox {
    fn list(&self) -> &'static str {
        PROVIDER
    }

    async fn screen(&self, iban: &Iban) -> Result<Screening, NoAnswer> {
        let work = async { Ok(self.ask_sanctions(iban).await?) };
        self.in_time(work).await.map_err(|error| no_answer(&error))
    }
}
