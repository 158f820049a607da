//! Short stories that reach what is worth trying.

use std::time::Duration;

use countersign::ap::vendor::callback::Outcome;

use super::edits::Edit;
use super::steps::{About, Call, Dial, Step, call, edit, pay, vendor, vote, wait};
use crate::oracle::dice::Dice;

const DAY: Duration = Duration::from_hours(24);
const ALMOST_A_FORTNIGHT: Duration = Duration::from_mins(14 * 24 * 60 - 10);

/// Who and what a story is about.
#[derive(Debug, Clone, Copy)]
struct Cast {
    vendor: usize,
    /// A number that it has not.
    fresh: About,
    /// Who begins.
    by: usize,
}

type Story = fn(&mut Dice, Cast) -> Vec<Step>;

/// The stories, each told as often as its weight says.
const STORIES: [(usize, Story); 9] = [
    (22, changed_through_the_gateway),
    (26, confirmed),
    (24, edited_and_paid),
    (12, another_telephone),
    (10, a_new_vendor),
    (8, two_calls),
    (8, an_old_call),
    (6, there_and_back),
    (6, in_the_midst),
];

/// A few steps that lead somewhere.
pub(super) fn tell(dice: &mut Dice) -> Vec<Step> {
    let cast = Cast { vendor: vendor(dice), fresh: About::New(dice.below(6)), by: dice.below(4) };
    dice.weighted(&STORIES)(dice, cast)
}

/// An account is changed through the gateway, and paid.
fn changed_through_the_gateway(dice: &mut Dice, cast: Cast) -> Vec<Step> {
    let Cast { vendor, fresh, .. } = cast;
    let mut steps =
        vec![Step::Call(call(dice, vendor, fresh)), Step::Change { vendor, about: fresh }];
    if dice.chance(45) {
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

/// It is edited in the ERP, and somebody makes it the baseline.
fn confirmed(dice: &mut Dice, cast: Cast) -> Vec<Step> {
    let Cast { vendor, by, .. } = cast;
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

/// It is edited, perhaps edited again, and paid.
fn edited_and_paid(dice: &mut Dice, cast: Cast) -> Vec<Step> {
    let Cast { vendor, .. } = cast;
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

/// A telephone number is changed, made one to call on, and called.
fn another_telephone(dice: &mut Dice, cast: Cast) -> Vec<Step> {
    let Cast { vendor, fresh, by } = cast;
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

/// A vendor that comes later.
fn a_new_vendor(dice: &mut Dice, _cast: Cast) -> Vec<Step> {
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

/// Two calls, and one change: what was heard before does not stand for another.
fn two_calls(dice: &mut Dice, cast: Cast) -> Vec<Step> {
    let Cast { vendor, fresh, by } = cast;
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
fn an_old_call(dice: &mut Dice, cast: Cast) -> Vec<Step> {
    let Cast { vendor, fresh, by } = cast;
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
fn there_and_back(dice: &mut Dice, cast: Cast) -> Vec<Step> {
    let Cast { vendor, fresh, .. } = cast;
    let to = (vendor + 1) % 3;
    vec![
        Step::Edit(Edit::Reown { vendor, nth: 0, to }),
        Step::Call(call(dice, vendor, fresh)),
        Step::Edit(Edit::Reown { vendor: to, nth: 0, to: vendor }),
        pay(dice, vendor),
        vote(dice),
    ]
}

/// Something happens in the midst of a payment.
fn in_the_midst(dice: &mut Dice, cast: Cast) -> Vec<Step> {
    let Cast { vendor, .. } = cast;
    let looks = dice.below(2);
    let amid = Step::Amid(looks, edit(dice, vendor));
    vec![amid, pay(dice, vendor), vote(dice), wait(dice), pay(dice, vendor)]
}
