//! A load program: proposals over HTTP, many at once, and how long each took.
//!
//! ```console
//! $ cargo run --release --example load -- http://127.0.0.1:8490 "$TOKEN" INV-2291 V-100 32 20000 [countersign.db]
//! ```
//! Where the daemon's SQLite file is named too, the rows that came of it are inserted once more into
//! other files beside it, bare, and the rates are compared.
//!
//! Before that, a world of many vendors and bills, and a store with many receipts in it (never of a
//! daemon in use) are made so:
//!
//! ```console
//! $ cargo run --release --example load -- world 100000 1000000 > world.toml
//! $ cargo run --release --example load -- receipts countersign.db 10000000
//! ```
//!
//! It proposes to pay one cent more than any bill is worth, so that every proposal runs through all
//! stages up to policy, is refused there, and leaves a durable receipt. Raise
//! `limits.proposals_per_minute` first.

mod bare;
mod fill;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use reqwest::{Client, StatusCode};
use serde_json::json;

struct Load {
    http: Client,
    url: String,
    token: String,
    bill: String,
    vendor: String,
    /// Makes the keys of this run its own.
    run: u128,
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &'static str| arguments.next().context(what);
    let base = next("the daemon's address, `world` or `receipts`")?;
    if base == "world" {
        let vendors = next("how many vendors")?.parse().context("how many vendors")?;
        return fill::world(vendors, next("how many bills")?.parse().context("how many bills")?);
    }
    let runtime = tokio::runtime::Runtime::new()?;
    if base == "receipts" {
        let store = PathBuf::from(next("the store's file")?);
        let count = next("how many receipts")?.parse().context("how many receipts")?;
        return runtime.block_on(fill::receipts(&store, count));
    }
    let token = next("a mandate token")?;
    let bill = next("a bill")?;
    let vendor = next("its vendor")?;
    let connections: usize = next("how many at once")?.parse().context("how many at once")?;
    let proposals: usize = next("how many in all")?.parse().context("how many in all")?;
    let store = arguments.next().map(PathBuf::from);
    let http = Client::builder().no_proxy().timeout(Duration::from_secs(30)).build()?;
    let run = std::time::UNIX_EPOCH.elapsed()?.as_nanos();
    let url = format!("{base}/v1/operations");
    let load = Arc::new(Load { http, url, token, bill, vendor, run });
    runtime.block_on(async {
        let rate = measure(Arc::clone(&load), connections, proposals).await?;
        let Some(store) = store else { return Ok(()) };
        let again = bare::insert(&store, load.run, connections).await?;
        let mut out = std::io::stdout();
        for (how, took) in [("each by itself", again.by_itself), ("in groups", again.in_groups)] {
            let inserts = per_second(again.decisions, took)?;
            let hundredths = rate * 100 / inserts.max(1);
            writeln!(
                out,
                "the same rows bare, {how}: {inserts} a second; deciding is {hundredths} % of that"
            )?;
        }
        Ok(())
    })
}

fn per_second(count: usize, took: Duration) -> anyhow::Result<u128> {
    Ok(u128::try_from(count)? * 1_000_000 / took.as_micros().max(1))
}

async fn measure(load: Arc<Load>, connections: usize, proposals: usize) -> anyhow::Result<u128> {
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (load, next) = (Arc::clone(&load), Arc::clone(&next));
        callers.spawn(async move {
            let mut times = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= proposals {
                    return Ok::<_, anyhow::Error>(times);
                }
                times.push(propose(&load, at).await?);
            }
        });
    }
    let mut times = Vec::with_capacity(proposals);
    while let Some(done) = callers.join_next().await {
        times.extend(done??);
    }
    let took = began.elapsed();
    times.sort_unstable();
    let at =
        |per_mille: usize| times.get(times.len() * per_mille / 1000).copied().unwrap_or_default();
    let rate = per_second(times.len(), took)?;
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{} proposals, {connections} at once, in {took:.1?}: {rate} a second",
        times.len()
    )?;
    writeln!(out, "p50 {:.2?}, p99 {:.2?}, p99.9 {:.2?}", at(500), at(990), at(999))?;
    Ok(rate)
}

async fn propose(load: &Load, at: usize) -> anyhow::Result<Duration> {
    let proposal = json!({ "action": "invoice.pay", "args": {
        "invoice_ref": load.bill, "payee_iban": { "ref": load.vendor }, "amount": "49999999.99",
        "currency": "EUR", "source_account": { "ref": "BNK1" },
    }});
    let began = Instant::now();
    let answer = load
        .http
        .post(&load.url)
        .bearer_auth(&load.token)
        .header("Idempotency-Key", format!("load-{}-{at}", load.run))
        .json(&proposal)
        .send()
        .await?;
    let status = answer.status();
    let body = answer.text().await?;
    if status != StatusCode::FORBIDDEN || !body.contains("\"stage\":\"policy\"") {
        bail!("not refused at policy: {status} {body}");
    }
    Ok(began.elapsed())
}
