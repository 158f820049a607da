//! The property test of vendor bank details: whatever somebody does to vendors in the ERP, whoever
//! asks, calls and votes, and however time passes between, no payment goes to an account that is not
//! verified or old enough, no bank details change without a call-back and a second person, and no
//! account becomes older.
//!
//! It is played on the gateway itself, in this process, with an ERP in memory and a store on SQLite,
//! so that there can be many, in parts that run side by side. What was done is held against books that
//! are kept from the rules alone ([`books`], [`judge`]). The whole daemon is tried like that, more
//! slowly, by the oracle beside this.
//!
//! A failure names the seed and the fewest steps that were found to fail too. Of the environment:
//!
//! - `COUNTERSIGN_SEQUENCES` is how many are played of each part, for a longer run;
//! - `COUNTERSIGN_SEQUENCE` is the seed of the only one that is.

mod books;
mod edits;
mod erp;
mod judge;
mod numbers;
mod play;
mod port;
mod scene;
mod steps;
mod stories;
mod tally;
mod world;

use std::str::FromStr;
use std::time::Instant;

use play::Failure;
use scene::Scene;
use steps::Step;
use tally::Tally;
use world::Genesis;

use crate::oracle::dice::Dice;
use crate::support::report;

const SEQUENCES: &str = "COUNTERSIGN_SEQUENCES";
const SEQUENCE: &str = "COUNTERSIGN_SEQUENCE";

/// How many are played of each part.
const IN_A_PART: u64 = 5_000;
/// The seed of the first one.
const FIRST: u64 = 20_261_130;
/// How many must be played for everything to have happened.
const ENOUGH: u64 = 1_000;

/// What must have happened at least once in each part, so that not everything is refused, and not for
/// one reason only.
const MUST_HAPPEN: [&str; 62] = [
    "paid: adopted",
    "paid: verified",
    "paid: verified, by itself",
    "paid: unverified",
    "paid: unverified, by two",
    "paid: unverified, two weeks on",
    "paid: cooling off, by two",
    "paid: about to change, by two",
    "paid: shared, by two",
    "paid: large, by its principal",
    "changed",
    "confirmed",
    "phone confirmed",
    "amid",
    "denied: account-changed-in-erp-never-paid",
    "denied: bank-change-needs-callback",
    "denied: bank-change-own-account-never",
    "denied: bank-change-phone-must-be-trusted",
    "denied: bank-change-several-accounts-never",
    "denied: bank-confirmation-must-be-on-file",
    "denied: bank-confirmation-needs-callback",
    "denied: erp-must-allow-account",
    "denied: floor_changed_in_erp",
    "denied: frozen",
    "denied: operation_in_progress",
    "denied: payee_not_on_file",
    "call: counts",
    "call: no_answer",
    "call: number_not_on_file",
    "call: number_not_trusted",
    "call: number_shared",
    "call: number_younger_than_request",
    "call: read_back_differs",
    "call: vendor_denied",
    "vote: taken",
    "vote: approval_expired",
    "vote: caller_cannot_approve",
    "vote: not_an_approver",
    "vote: operation_changed",
    "vote: self_approval",
    "edit: number",
    "edit: number and back",
    "edit: number restored",
    "edit: added",
    "edit: removed",
    "edit: archived or brought back",
    "edit: archived and back",
    "edit: re-ordered",
    "edit: re-owned",
    "edit: merged",
    "edit: re-parented",
    "edit: made a contact",
    "edit: renamed",
    "edit: tax number",
    "edit: phone",
    "edit: mobile",
    "edit: phone and back",
    "edit: shared",
    "edit: allowed or not",
    "edit: bill names another",
    "edit: new vendor",
    "edit: new bill",
];

fn number<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var_os(name)?.into_string().ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Everything of one sequence, thrown from its seed.
fn thrown(seed: u64) -> (Genesis, Vec<Step>) {
    let mut dice = Dice::new(seed);
    let genesis = Genesis::throw(&mut dice);
    (genesis, steps::throw(&mut dice))
}

/// Plays a part of the sequences.
fn play(part: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut scene = Scene::new().await;
        let mut tally = Tally::default();
        let only: Option<u64> = number(SEQUENCE);
        let count = number(SEQUENCES).unwrap_or(IN_A_PART);
        let first = FIRST + part * 1_000_000_000;
        let seeds = only.map_or(first..first + count, |seed| seed..seed + 1);
        let began = Instant::now();
        for seed in seeds {
            let (genesis, steps) = thrown(seed);
            let played = Box::pin(play::play(&mut scene, &genesis, &steps, &mut tally)).await;
            if let Err(failure) = played {
                let text = explained(&mut scene, seed, &genesis, &steps, failure).await;
                scene.close().await;
                panic!("{text}");
            }
        }
        let took = began.elapsed();
        report(&format!("part {part}, {count} sequences in {took:?}:\n{}", tally.lines()));
        scene.close().await;
        if only.is_none() && count >= ENOUGH {
            for name in MUST_HAPPEN {
                assert!(tally.times(name) > 0, "{name}: never happened");
            }
        }
    });
}

/// The fewest steps that were found to fail too, told as a story.
async fn explained(
    scene: &mut Scene,
    seed: u64,
    genesis: &Genesis,
    steps: &[Step],
    failure: Failure,
) -> String {
    let first = format!("step {}: {}", failure.step, failure.text);
    let mut fewest = (steps[..=failure.step].to_vec(), failure);
    let mut at = 0;
    while at < fewest.0.len() {
        let mut rest = fewest.0.clone();
        rest.remove(at);
        let mut tally = Tally::default();
        match Box::pin(play::play(scene, genesis, &rest, &mut tally)).await {
            Err(again) => {
                rest.truncate(again.step + 1);
                fewest = (rest, again);
                at = 0;
            }
            Ok(()) => at += 1,
        }
    }
    let (steps, failure) = fewest;
    let (story, text) = (failure.story.join("\n  "), failure.text);
    format!(
        "seed {seed}, {first}\n\n{genesis:?}\n{} steps that fail too:\n{steps:#?}\n\n  {story}\n\n\
         {text}\n\nrepeat it with {SEQUENCE}={seed}",
        steps.len()
    )
}

#[test]
fn nothing_is_paid_or_changed_that_nobody_vouched_for_1() {
    play(0);
}

#[test]
fn nothing_is_paid_or_changed_that_nobody_vouched_for_2() {
    play(1);
}

#[test]
fn nothing_is_paid_or_changed_that_nobody_vouched_for_3() {
    play(2);
}

#[test]
fn nothing_is_paid_or_changed_that_nobody_vouched_for_4() {
    play(3);
}
