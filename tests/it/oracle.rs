//! The property test: whatever attackers propose, and whatever somebody does to the ERP between two
//! proposals, the daemon answers as an oracle says that knows the world's truth and the text of the
//! design, and asks no code of the gateway; and what the ERP holds afterwards keeps every limit.
//!
//! Everything of a run comes of one seed: worlds, each with an installation and a daemon of its own,
//! and the steps that are played in it one after the other, or at the same moment. A failure names
//! seed and world, and tells the fewest steps that were found to fail too.
//!
//! By itself 20,000 proposals are made: 16,000 with a seed that is always the same, 4,000 with one
//! that is thrown and printed. Of the environment:
//!
//! - `COUNTERSIGN_ORACLE_SEED` is the seed, in the place of both, and `COUNTERSIGN_ORACLE_WORLD` the
//!   only world of it that is played: so a failure is repeated.
//! - `COUNTERSIGN_ORACLE_PROPOSALS` is how many proposals are made with the first seed.
//!
//! The runner of CI ends a test after some minutes; a long run is for `cargo test`, which does not:
//! `COUNTERSIGN_ORACLE_PROPOSALS=200000 cargo test --test it oracle -- --nocapture`.

mod answers;
mod audit;
mod books;
mod burst;
pub(crate) mod dice;
mod edits;
mod forms;
mod genesis;
mod judge;
mod play;
mod rules;
mod shrink;
mod stage;
mod steps;
mod votes;
mod words;
pub(crate) mod world;

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use answers::Tally;
use dice::Dice;
use play::Failure;
use stage::Template;
use steps::Step;

use crate::support::report;

const SEED: &str = "COUNTERSIGN_ORACLE_SEED";
const WORLD: &str = "COUNTERSIGN_ORACLE_WORLD";
const PROPOSALS: &str = "COUNTERSIGN_ORACLE_PROPOSALS";

/// The seed that is always tried, and how often; how often one that is thrown.
const USUAL: (u64, usize) = (20_261_130, 16_000);
const THROWN: usize = 4_000;

/// How many proposals are made in one world, at least.
const IN_A_WORLD: usize = 1_000;
/// How many worlds are played at the same time.
const AT_ONCE: usize = 4;

fn number<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var_os(name)?.into_string().ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// One world of a seed.
struct Plan {
    world: world::World,
    steps: Vec<Step>,
}

impl Plan {
    fn of(seed: u64, world: usize) -> Self {
        let world = u64::try_from(world).unwrap();
        let mut dice = Dice::new(seed ^ world.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let world = genesis::world(&mut dice);
        Self { world, steps: steps::plan(&mut dice, IN_A_WORLD) }
    }

    /// Plays some of its steps on a daemon of their own.
    fn play(&self, template: &Template, steps: &[Step]) -> Result<Tally, Failure> {
        let stage = template.stage(&genesis::file(&self.world));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play::play(&stage, self.world.clone(), steps))
    }
}

/// Plays so many proposals of a seed, in worlds of their own, each on a thread of its own.
fn run(seed: u64, proposals: usize) {
    let template = Template::make();
    let worlds = proposals.div_ceil(IN_A_WORLD);
    let only: Option<usize> = number(WORLD);
    let next = AtomicUsize::new(only.unwrap_or_default());
    let end = only.map_or(worlds, |world| world + 1);
    let played = Mutex::new(Tally::default());
    let failed = AtomicBool::new(false);
    let play = || {
        while !failed.load(Ordering::Relaxed) {
            let world = next.fetch_add(1, Ordering::Relaxed);
            if world >= end {
                break;
            }
            let plan = Plan::of(seed, world);
            match plan.play(&template, &plan.steps) {
                Ok(tally) => played.lock().unwrap_or_else(PoisonError::into_inner).add(tally),
                Err(failure) if !failed.swap(true, Ordering::Relaxed) => {
                    panic!("{}", explained(&template, seed, world, &plan, failure));
                }
                Err(_one_of_several) => {}
            }
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..AT_ONCE {
            threads.spawn(play);
        }
    });
    let tally = played.into_inner().unwrap_or_else(PoisonError::into_inner);
    report(&format!("seed {seed}, {worlds} worlds: {tally:#?}"));
    if only.is_none() {
        assert!(tally.proposals >= proposals);
        // A run in which nothing happens tries nothing.
        assert!(tally.times("executed") > proposals / 50, "{tally:?}");
    }
}

/// The fewest steps that were found to fail too, told as a story.
fn explained(
    template: &Template,
    seed: u64,
    world: usize,
    plan: &Plan,
    failure: Failure,
) -> String {
    let first = format!("step {}: {}", failure.step, failure.text);
    let (steps, failure) = shrink::shrunk(template, plan, failure);
    let story = failure.story.join("\n  ");
    let (count, text) = (steps.len(), failure.text);
    format!(
        "seed {seed}, world {world}, {first}\n\n{count} steps that fail too:\n{steps:#?}\n\n  \
         {story}\n\n{text}\n\nrepeat it with {SEED}={seed} {WORLD}={world}"
    )
}

#[test]
fn whatever_is_proposed_only_what_records_vouch_for_is_paid() {
    let (usual, most) = USUAL;
    run(number(SEED).unwrap_or(usual), number(PROPOSALS).unwrap_or(most));
}

#[test]
fn and_so_it_is_with_a_seed_that_nobody_chose() {
    if number::<u64>(SEED).is_some() {
        return;
    }
    let mut thrown = [0; 8];
    aws_lc_rs::rand::fill(&mut thrown).unwrap();
    let seed = u64::from_be_bytes(thrown);
    report(&format!("{SEED}={seed}"));
    run(seed, THROWN);
}
