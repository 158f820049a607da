//! The steps of a sequence, and how they are thrown: short stories that reach what is worth trying,
//! with anything at all between.

use std::time::Duration;

use countersign::ap::vendor::callback::Outcome;

use super::edits::Edit;
use super::stories;
use crate::oracle::dice::Dice;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
const ALMOST_A_WEEK: Duration = Duration::from_mins(7 * 24 * 60 - 4);

/// Which account a change, a confirmation or a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// One of the numbers that are there for it.
    New(usize),
    /// One that the vendor has on file.
    OnFile(usize),
}

/// The number that is dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dial {
    /// The one that the ERP has now: the main one, or the mobile one.
    OnFile(usize),
    /// The one that the vendor really has.
    Real(usize),
    /// Any.
    Any(usize),
}

/// A telephone call about an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) vendor: usize,
    pub(super) about: About,
    pub(super) by: usize,
    pub(super) dial: Dial,
    pub(super) outcome: Outcome,
    /// What is read back is another number.
    pub(super) misread: bool,
    /// How long before the request came, where that is said.
    pub(super) asked: Option<Duration>,
}

/// One step. Numbers are taken modulo what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Edit(Edit),
    /// An edit that comes about in the midst of a later step.
    Amid(usize, Edit),
    Pay {
        vendor: usize,
        bill: usize,
        by_number: bool,
    },
    Change {
        vendor: usize,
        about: About,
    },
    Confirm {
        vendor: usize,
        nth: usize,
        by: usize,
    },
    ConfirmPhone {
        vendor: usize,
        kind: usize,
        by: usize,
    },
    Call(Call),
    /// A vote for one of those that wait, as somebody saw it last; or as nobody ever saw it.
    Vote {
        nth: usize,
        by: usize,
        stale: bool,
    },
    Reject {
        nth: usize,
        by: usize,
    },
    Wait(Duration),
    /// The watcher comes by.
    Watch,
    /// The worker ends what waited too long.
    Expire,
}

/// How many steps a short sequence has.
const SHORT: usize = 6;

/// The steps of one sequence.
pub(super) fn throw(dice: &mut Dice) -> Vec<Step> {
    let mut steps = Vec::new();
    let stories = dice.weighted(&[(17, 1), (3, 2)]);
    for _ in 0..stories {
        for step in stories::tell(dice) {
            if dice.chance(12) {
                steps.push(any(dice));
            }
            if !dice.chance(4) {
                steps.push(step);
            }
        }
    }
    // Many short ones find more than few long ones.
    if dice.chance(50) {
        steps.truncate(SHORT);
    }
    if dice.chance(20) {
        steps.push(any(dice));
    }
    steps
}

/// The vendor that most steps are about.
pub(super) fn vendor(dice: &mut Dice) -> usize {
    dice.weighted(&[(70, 0), (20, 1), (8, 2), (2, 3)])
}

pub(super) fn pay(dice: &mut Dice, vendor: usize) -> Step {
    Step::Pay { vendor, bill: dice.below(3), by_number: dice.chance(40) }
}

/// Somebody who votes: mostly one who may.
fn voter(dice: &mut Dice) -> usize {
    dice.weighted(&[(20, 0), (40, 1), (30, 2), (10, 3)])
}

pub(super) fn vote(dice: &mut Dice) -> Step {
    let nth = dice.weighted(&[(85, 0), (15, 1)]);
    Step::Vote { nth, by: voter(dice), stale: dice.chance(4) }
}

pub(super) fn wait(dice: &mut Dice) -> Step {
    Step::Wait(dice.weighted(&[
        (20, 5 * MINUTE),
        (15, 7 * HOUR),
        (15, DAY),
        (12, ALMOST_A_WEEK),
        (14, 7 * DAY),
        (10, 14 * DAY),
        (8, 31 * DAY),
        (6, 90 * DAY),
    ]))
}

pub(super) fn call(dice: &mut Dice, vendor: usize, about: About) -> Call {
    let dial = dice.weighted(&[
        (60, Dial::OnFile(0)),
        (20, Dial::OnFile(1)),
        (12, Dial::Real(0)),
        (8, Dial::Any(dice.clone().below(8))),
    ]);
    Call {
        vendor,
        about,
        by: dice.weighted(&[(30, 0), (25, 1), (15, 2), (30, 3)]),
        dial,
        outcome: dice.weighted(&[
            (88, Outcome::Confirmed),
            (7, Outcome::Denied),
            (5, Outcome::NoAnswer),
        ]),
        misread: dice.chance(4),
        asked: dice.weighted(&[(70, None), (20, Some(HOUR)), (10, Some(10 * DAY))]),
    }
}

/// Who edits what: of one vendor.
pub(super) fn edit(dice: &mut Dice, vendor: usize) -> Edit {
    let (nth, to, other) = (dice.below(2), dice.below(6), (vendor + 1 + dice.below(2)) % 3);
    let back = dice.chance(40);
    dice.weighted(&[
        (12, Edit::Number { vendor, nth, to }),
        (6, Edit::NumberAndBack { vendor, nth }),
        (6, Edit::Restore { vendor, nth }),
        (7, Edit::Add { vendor, to, first: back }),
        (5, Edit::Remove { vendor, nth }),
        (7, Edit::Archive { vendor, nth }),
        (4, Edit::ArchiveAndBack { vendor, nth }),
        (5, Edit::Reorder { vendor }),
        (5, Edit::Reown { vendor, nth, to: other }),
        (3, Edit::Reown { vendor: other, nth, to: vendor }),
        (3, Edit::Merge { vendor, into: other }),
        (3, Edit::Merge { vendor: other, into: vendor }),
        (4, Edit::Belong { vendor, to: if back { vendor } else { other } }),
        (3, Edit::Contact { vendor, of: other }),
        (5, Edit::Rename { vendor, back }),
        (4, Edit::TaxNumber { vendor, back }),
        (6, Edit::Phone { vendor, kind: 0, to: 1 + dice.clone().below(7) }),
        (4, Edit::Phone { vendor, kind: 1, to }),
        (3, Edit::PhoneAndBack { vendor, kind: nth }),
        (5, Edit::Share { vendor, with: other }),
        (3, Edit::Allow { vendor, nth }),
        (3, Edit::Name { vendor, nth }),
        (4, Edit::NewVendor { to }),
        (2, Edit::NewBill { vendor }),
    ])
}

fn any(dice: &mut Dice) -> Step {
    let vendor = vendor(dice);
    let about = if dice.chance(60) { About::New(dice.below(6)) } else { About::OnFile(0) };
    let (edited, called) = (edit(dice, vendor), call(dice, vendor, about));
    let (paid, voted, waited) = (pay(dice, vendor), vote(dice), wait(dice));
    let (looks, by, nth) = (dice.below(3), dice.below(4), dice.below(2));
    dice.weighted(&[
        (22, Step::Edit(edited)),
        (8, Step::Amid(looks, edited)),
        (15, paid),
        (5, Step::Change { vendor, about }),
        (4, Step::Confirm { vendor, nth, by }),
        (4, Step::ConfirmPhone { vendor, kind: nth, by }),
        (8, Step::Call(called)),
        (10, voted),
        (2, Step::Reject { nth, by }),
        (16, waited),
        (4, Step::Watch),
        (2, Step::Expire),
    ])
}
