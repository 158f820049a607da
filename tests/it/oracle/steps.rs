//! What is tried, step by step, in words that fit any world: things are named by a number, modulo
//! how many there are. So steps can be left out, and what is left can still be played.

use super::dice::Dice;
use super::edits::Edit;
use super::votes::Word;

/// How many hours a world's clock is moved in all, so that mandates of 90 days last.
pub(super) const HOURS_MAX: i64 = 80 * 24;

#[derive(Debug, Clone)]
pub(super) enum Step {
    Call(Call),
    /// Calls at the same moment; the second may be the first one once more, to the letter.
    Burst {
        calls: Vec<Call>,
        twice: bool,
    },
    Clerk(Edit),
    Clock(i64),
    Revoke(usize),
    Vote {
        nth: usize,
        by: usize,
        word: Word,
    },
    Freeze(usize),
    Read {
        by: usize,
        which: usize,
        more: usize,
    },
}

#[derive(Debug, Clone)]
pub(super) enum Call {
    Propose(Wish),
    /// An earlier proposal once more under its key, to the letter or not.
    Again {
        nth: usize,
        altered: bool,
        by: usize,
    },
    Commit {
        nth: usize,
        by: usize,
        own: bool,
    },
    Cancel {
        nth: usize,
        by: usize,
        own: bool,
    },
    Follow {
        nth: usize,
        by: usize,
        own: bool,
    },
}

/// A proposal as somebody would like to have it.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) by: usize,
    pub(super) bill: Which,
    pub(super) payee: To,
    pub(super) amount: Much,
    pub(super) form: Form,
    pub(super) source: From,
    pub(super) prepare: bool,
    /// Under the key of an earlier proposal of the same caller.
    pub(super) key_of: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Which {
    Open(usize),
    Hot(usize),
    Any(usize),
    Foreign(usize),
    Missing,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum To {
    OnFile,
    /// The account on file, spelt in one of several ways.
    Number(usize),
    /// Any account of the vendor, archived ones too.
    Other(usize),
    Neighbour(usize),
    NeighbourOnFile(usize),
    Foreign(usize),
    ForeignOnFile(usize),
    Own(usize),
    Nobody,
    Disguised(usize),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Much {
    /// What is left of the bill, and so many cents more.
    Left(i64),
    Total,
    Half,
    Exactly(i64),
    /// What is left of the mandate's budget, and so many cents more.
    Budget(i64),
}

/// What is wrong with the form of it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Sound,
    Currency(&'static str),
    Amount(&'static str),
    AmountAsNumber,
    Action(&'static str),
    Mode(&'static str),
    More(&'static str),
    Without(&'static str),
    Reference(&'static str),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum From {
    Journal,
    Number,
    Other(usize),
}

/// Under which mandate is proposed: mostly one that stands and has something left.
const BY: [(usize, usize); 10] =
    [(24, 0), (8, 1), (12, 2), (22, 3), (5, 4), (4, 5), (1, 6), (1, 7), (16, 8), (7, 9)];

/// A plan with at least so many proposals: some steps find nothing to do it to, some are one call
/// twice.
pub(super) fn plan(dice: &mut Dice, proposals: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut made, mut hours) = (0, 0);
    // In some worlds nothing is withdrawn and time stands nearly still, so that much waits.
    let crowded = dice.chance(15);
    while made < proposals + proposals / 25 {
        let step = step(dice, &mut hours, crowded);
        made += match &step {
            Step::Call(call) => call.proposals(),
            Step::Burst { calls, .. } => calls.iter().map(Call::proposals).sum(),
            Step::Clerk(_)
            | Step::Clock(_)
            | Step::Revoke(_)
            | Step::Vote { .. }
            | Step::Freeze(_)
            | Step::Read { .. } => 0,
        };
        steps.push(step);
    }
    steps
}

impl Call {
    pub(super) fn proposals(&self) -> usize {
        match self {
            Self::Propose(_) | Self::Again { .. } => 1,
            Self::Commit { .. } | Self::Cancel { .. } | Self::Follow { .. } => 0,
        }
    }
}

fn step(dice: &mut Dice, hours: &mut i64, crowded: bool) -> Step {
    match dice.weighted(&[(66, 0), (3, 1), (16, 2), (3, 3), (1, 4), (3, 5), (8, 6)]) {
        1 => {
            let calls = 2 + dice.below(3);
            let mut burst: Vec<Call> = (0..calls).map(|_| racing(dice)).collect();
            // Mostly all about the same bill, or the same words twice.
            if dice.chance(60)
                && let Call::Propose(first) = burst[0].clone()
            {
                for call in &mut burst {
                    if let Call::Propose(wish) = call {
                        wish.bill = first.bill;
                    }
                }
            }
            Step::Burst { calls: burst, twice: dice.chance(25) }
        }
        2 => Step::Clerk(Edit::thrown(dice)),
        3 if !crowded || dice.chance(5) => {
            let by =
                dice.weighted(&[(40, 1), (20, 6), (15, 24), (10, 25), (6, 73), (6, 169), (3, 744)]);
            if *hours + by > HOURS_MAX {
                return Step::Call(call(dice, crowded));
            }
            *hours += by;
            Step::Clock(by)
        }
        4 if dice.chance(20) => Step::Revoke(dice.index()),
        4 if dice.chance(40) => Step::Freeze(dice.index()),
        6 => {
            let word = dice.weighted(&[
                (70, Word::Approve),
                (8, Word::ApproveAnother),
                (10, Word::Reject),
                (12, Word::List),
            ]);
            Step::Vote { nth: dice.index(), by: dice.index(), word }
        }
        5 => Step::Read { by: dice.index(), which: dice.index(), more: dice.index() },
        _ => Step::Call(call(dice, crowded)),
    }
}

fn call(dice: &mut Dice, crowded: bool) -> Call {
    let (nth, by) = (dice.below(30), dice.index());
    let own = dice.chance(85);
    match dice.weighted(&[(76, 0), (7, 1), (5, 2), (9, 3), (3, 4)]) {
        1 => Call::Again { nth, altered: dice.chance(30), by },
        2 => Call::Commit { nth, by, own },
        3 if !crowded => Call::Cancel { nth, by, own },
        4 => Call::Follow { nth, by, own },
        _ => Call::Propose(wish(dice)),
    }
}

/// What may be sent at the same moment as others: it is clear in which orders it can have happened.
fn racing(dice: &mut Dice) -> Call {
    if dice.chance(10) {
        return Call::Commit { nth: dice.below(8), by: dice.index(), own: true };
    }
    let mut wish = wish(dice);
    wish.key_of = None;
    Call::Propose(wish)
}

/// An honest wish, and mostly one or two things changed in it.
fn wish(dice: &mut Dice) -> Wish {
    let bill = dice.weighted(&[(55, 0), (35, 1), (10, 2)]);
    let bill =
        [Which::Open(dice.index()), Which::Hot(dice.index()), Which::Any(dice.index())][bill];
    let spelling = dice.index();
    let mut wish = Wish {
        by: dice.weighted(&BY),
        bill,
        payee: dice.weighted(&[(60, To::OnFile), (40, To::Number(spelling))]),
        amount: Much::Left(0),
        form: Form::Sound,
        source: dice.weighted(&[(70, From::Journal), (30, From::Number)]),
        prepare: dice.chance(12),
        key_of: None,
    };
    for _ in 0..dice.weighted(&[(55, 0), (35, 1), (10, 2)]) {
        twist(&mut wish, dice);
    }
    wish
}

fn twist(wish: &mut Wish, dice: &mut Dice) {
    let any = dice.index();
    match dice.weighted(&[(18, 0), (38, 1), (16, 2), (8, 3), (6, 4), (14, 5)]) {
        0 => {
            wish.payee = dice.of(&[
                To::Other(any),
                To::Other(any),
                To::Neighbour(any),
                To::NeighbourOnFile(any),
                To::Foreign(any),
                To::ForeignOnFile(any),
                To::Own(any),
                To::Nobody,
                To::Disguised(any),
            ]);
        }
        1 => {
            wish.amount = dice.of(&[
                Much::Left(1),
                Much::Left(-1),
                Much::Left(100_000),
                Much::Total,
                Much::Half,
                Much::Exactly(1),
                Much::Exactly(499_999),
                Much::Exactly(500_000),
                Much::Exactly(500_001),
                Much::Exactly(5_000_000),
                Much::Exactly(5_000_001),
                Much::Budget(0),
                Much::Budget(1),
                Much::Exactly(99_999_999_999_999_999),
            ]);
        }
        2 => {
            wish.form = dice.of(&[
                Form::Currency("USD"),
                Form::Currency("JPY"),
                Form::Currency("eur"),
                Form::Amount("0"),
                Form::Amount("-1.00"),
                Form::Amount("1e3"),
                Form::Amount("1,200.00"),
                Form::Amount("1.005"),
                Form::Amount(" 1.00"),
                Form::Amount("\u{ff11}.00"),
                Form::AmountAsNumber,
                Form::Action("vendor.confirm_bank_details"),
                Form::Action("invoice.Pay"),
                Form::Mode("Commit"),
                Form::More("scope"),
                Form::More("approved"),
                Form::Without("currency"),
                Form::Without("payee_iban"),
                Form::Reference("invoice_ref"),
                Form::Reference("amount"),
            ]);
        }
        3 => wish.bill = dice.of(&[Which::Foreign(any), Which::Foreign(any), Which::Missing]),
        4 => wish.source = From::Other(any),
        _ => wish.key_of = Some(dice.below(20)),
    }
}
