//! Much of everything, so that what is slow where there is much can be seen.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Context;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};

/// Rows in one transaction.
const CHUNK: i64 = 100_000;

/// Puts so many receipts in front of a store's first one: rows of the usual size that belong to no
/// chain, in the same table and indexes. No decision reads them, and `receipts verify` refuses them.
pub(crate) async fn receipts(store: &Path, count: i64) -> anyhow::Result<()> {
    let options = SqliteConnectOptions::new().filename(store).synchronous(SqliteSynchronous::Off);
    let mut conn = options.connect().await.context("the store")?;
    let sql = "with recursive n(value) as (select 1 union all select value + 1 from n where value < $1) \
               insert into receipts (seq, at, kind, company, operation, bytes, content_hash, \
               prev_hash, entry_hash) select -(value + $2), 0, 'decision', 'blue-sparrow', \
               lower('op_' || hex(randomblob(16))), randomblob(1500), randomblob(32), \
               randomblob(32), randomblob(32) from n";
    let mut done = 0;
    while done < count {
        let chunk = CHUNK.min(count - done);
        sqlx::query(sql).bind(chunk).bind(done).execute(&mut conn).await?;
        done += chunk;
    }
    conn.close().await?;
    Ok(())
}

/// Writes a world with so many vendors, and bills spread over them.
pub(crate) fn world(vendors: usize, bills: usize) -> anyhow::Result<()> {
    anyhow::ensure!(vendors > 0, "a bill needs a vendor");
    let mut out = BufWriter::new(std::io::stdout());
    writeln!(out, "[company.blue-sparrow]\nname = \"Blue Sparrow SAS\"\ncurrency = \"EUR\"")?;
    let own = "FR1420041010050500013M02606";
    writeln!(out, "accounts = [{{ journal = \"BNK1\", iban = \"{own}\" }}]")?;
    for vendor in 0..vendors {
        writeln!(out, "[company.blue-sparrow.vendor.V-{vendor}]\nname = \"Vendor {vendor}\"")?;
        writeln!(out, "iban = \"{}\"\niban_age_days = 400", iban(vendor))?;
    }
    for bill in 0..bills {
        let vendor = bill % vendors;
        writeln!(out, "[company.blue-sparrow.bill.INV-{bill}]\nvendor = \"V-{vendor}\"")?;
        writeln!(out, "vendor_reference = \"R-{bill}\"\namount = \"1200.00\"\ncurrency = \"EUR\"")?;
        writeln!(out, "due = \"2099-12-31\"")?;
    }
    writeln!(out, "[[vop]]\nname = \"Vendor 0\"\niban = \"{}\"\nresult = \"match\"", iban(0))?;
    out.flush()?;
    Ok(())
}

/// An account at a German bank that does not exist, with valid check digits.
fn iban(number: usize) -> String {
    let account = format!("99999999{number:010}");
    let digits = format!("{account}131400");
    let rest = digits.bytes().fold(0_u64, |rest, digit| (rest * 10 + u64::from(digit - b'0')) % 97);
    format!("DE{:02}{account}", 98 - rest)
}
