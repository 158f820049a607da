//! The steps of a sequence, and how they are thrown: short stories that reach what is worth trying,
//! with anything at all between.

use std::time::Duration;

use countersign::ap::vendor::callback::Outcome;

use super::edits::Edit;
use crate::oracle::dice::Dice;

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
const ALMOST_A_WEEK: Duration = Duration::from_mins(7 * 24 * 60 - 4);
const ALMOST_A_FORTNIGHT: Duration = Duration::from_mins(14 * 24 * 60 - 10);

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
        for step in story(dice) {
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
fn vendor(dice: &mut Dice) -> usize {
    dice.weighted(&[(70, 0), (20, 1), (8, 2), (2, 3)])
}

fn pay(dice: &mut Dice, vendor: usize) -> Step {
    Step::Pay { vendor, bill: dice.below(3), by_number: dice.chance(40) }
}

/// Somebody who votes: mostly one who may.
fn voter(dice: &mut Dice) -> usize {
    dice.weighted(&[(20, 0), (40, 1), (30, 2), (10, 3)])
}

fn vote(dice: &mut Dice) -> Step {
    let nth = dice.weighted(&[(85, 0), (15, 1)]);
    Step::Vote { nth, by: voter(dice), stale: dice.chance(4) }
}

fn wait(dice: &mut Dice) -> Step {
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

fn call(dice: &mut Dice, vendor: usize, about: About) -> Call {
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
fn edit(dice: &mut Dice, vendor: usize) -> Edit {
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

/// A few steps that lead somewhere.
fn story(dice: &mut Dice) -> Vec<Step> {
    let vendor = vendor(dice);
    let fresh = About::New(dice.below(4));
    let by = dice.below(4);
    match dice.weighted(&[
        (22, 0),
        (26, 1),
        (24, 2),
        (12, 3),
        (10, 4),
        (6, 5),
        (8, 6),
        (6, 7),
        (5, 8),
    ]) {
        // An account is changed through the gateway, and paid.
        0 => {
            let mut steps =
                vec![Step::Call(call(dice, vendor, fresh)), Step::Change { vendor, about: fresh }];
            if dice.chance(30) {
                steps.push(Step::Edit(edit(dice, vendor)));
            }
            if dice.chance(15) {
                let outcome = Outcome::Denied;
                steps.push(Step::Call(Call { outcome, ..call(dice, vendor, fresh) }));
            }
            steps.extend([vote(dice), pay(dice, vendor), vote(dice), wait(dice)]);
            steps.extend([pay(dice, vendor), vote(dice)]);
            steps
        }
        // It is edited in the ERP, and somebody makes it the baseline.
        1 => {
            let mut steps = vec![Step::Edit(edit(dice, vendor))];
            if dice.chance(60) {
                steps.push(pay(dice, vendor));
            }
            let nth = dice.weighted(&[(80, 0), (20, 1)]);
            steps.extend([
                Step::Call(call(dice, vendor, About::OnFile(nth))),
                Step::Confirm { vendor, nth, by },
                vote(dice),
                pay(dice, vendor),
                vote(dice),
            ]);
            if dice.chance(50) {
                steps.extend([wait(dice), pay(dice, vendor)]);
            }
            steps
        }
        // It is edited, perhaps edited again, and paid.
        2 => {
            let mut steps = vec![pay(dice, vendor)];
            for _ in 0..dice.weighted(&[(5, 1), (4, 2), (1, 3)]) {
                steps.push(Step::Edit(edit(dice, vendor)));
                if dice.chance(35) {
                    steps.push(dice.weighted(&[(1, Step::Watch), (1, wait(&mut dice.clone()))]));
                }
            }
            steps.extend([pay(dice, vendor), vote(dice), wait(dice), pay(dice, vendor)]);
            steps.push(vote(dice));
            steps
        }
        // A telephone number is changed, made one to call on, and called.
        3 => {
            let kind = dice.weighted(&[(70, 0), (30, 1)]);
            let number = Edit::Phone { vendor, kind, to: 1 + dice.below(7) };
            let mut steps = vec![Step::Edit(number)];
            if dice.chance(65) {
                steps.extend([Step::ConfirmPhone { vendor, kind, by }, vote(dice)]);
            } else {
                steps.push(Step::Watch);
                steps.push(Step::Wait(dice.weighted(&[(1, 89 * DAY), (1, 90 * DAY)])));
            }
            let called = Call { dial: Dial::OnFile(kind), ..call(dice, vendor, fresh) };
            steps.extend([Step::Call(called), Step::Change { vendor, about: fresh }, vote(dice)]);
            steps
        }
        // A vendor that comes later.
        4 => {
            let to = dice.below(5);
            let vendor = 3;
            let mut steps = vec![Step::Edit(Edit::NewVendor { to })];
            steps.extend([pay(dice, vendor), vote(dice), wait(dice)]);
            steps.push(Step::Edit(Edit::NewBill { vendor }));
            steps.extend([Step::Pay { vendor, bill: 0, by_number: false }, vote(dice)]);
            steps.push(Step::Wait(dice.weighted(&[(1, 14 * DAY), (1, ALMOST_A_FORTNIGHT)])));
            steps.push(Step::Edit(Edit::NewBill { vendor }));
            steps.push(Step::Pay { vendor, bill: 0, by_number: false });
            steps
        }
        5 => two_calls(dice, vendor, fresh, by),
        6 => a_call_that_is_overtaken(dice, vendor, fresh, by),
        7 => an_account_that_comes_back(dice, vendor, fresh),
        // Something happens in the midst of a payment.
        _ => {
            let looks = dice.below(2);
            let amid = Step::Amid(looks, edit(dice, vendor));
            vec![amid, pay(dice, vendor), vote(dice), wait(dice), pay(dice, vendor)]
        }
    }
}

/// Two calls, and one change: what was heard before does not stand for another.
fn two_calls(dice: &mut Dice, vendor: usize, fresh: About, by: usize) -> Vec<Step> {
    let (nth, other) = (dice.below(2), About::New(2 + dice.below(2)));
    let sure = Call { dial: Dial::OnFile(0), ..call(dice, vendor, other) };
    let second = if dice.chance(50) {
        Step::Change { vendor, about: other }
    } else {
        Step::Confirm { vendor, nth, by }
    };
    let first = Step::Call(call(dice, vendor, fresh));
    let mut steps = vec![first, Step::Call(sure), Step::Change { vendor, about: fresh }];
    if dice.chance(50) {
        steps = vec![
            Step::Call(sure),
            Step::Call(call(dice, vendor, About::OnFile(0))),
            Step::Confirm { vendor, nth: 0, by },
        ];
    }
    steps.extend([vote(dice), second, vote(dice)]);
    steps
}

/// A number is changed and changed back after it was called, or the call becomes old.
fn a_call_that_is_overtaken(dice: &mut Dice, vendor: usize, fresh: About, by: usize) -> Vec<Step> {
    let sure = Call { dial: Dial::OnFile(0), ..call(dice, vendor, fresh) };
    let mut steps = vec![Step::Call(sure)];
    if dice.chance(50) {
        steps.extend([
            Step::Edit(Edit::PhoneAndBack { vendor, kind: 0 }),
            Step::ConfirmPhone { vendor, kind: 0, by },
            vote(dice),
        ]);
    } else {
        steps.push(Step::Wait(dice.weighted(&[(2, 31 * DAY), (1, 29 * DAY)])));
    }
    steps.extend([Step::Change { vendor, about: fresh }, vote(dice)]);
    steps
}

/// An account goes to another vendor and comes back, and only the first one is looked at.
fn an_account_that_comes_back(dice: &mut Dice, vendor: usize, fresh: About) -> Vec<Step> {
    let to = (vendor + 1) % 3;
    vec![
        Step::Edit(Edit::Reown { vendor, nth: 0, to }),
        Step::Call(call(dice, vendor, fresh)),
        Step::Edit(Edit::Reown { vendor: to, nth: 0, to: vendor }),
        pay(dice, vendor),
        vote(dice),
    ]
}
