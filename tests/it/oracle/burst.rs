//! Calls at the same moment. Whatever the order in which they were taken, there must be one in which
//! each answer is right.

use tokio::task::JoinSet;

use super::answers::{Answer, Truth};
use super::play::{Line, Play};
use super::steps::Call;
use super::words::Proposal;

/// A call that is part of a burst.
#[derive(Debug, Clone)]
enum Part {
    Propose(Proposal),
    Commit { operation: usize, mandate: usize, id: String },
}

impl Part {
    fn mandate(&self) -> usize {
        match self {
            Self::Propose(proposal) => proposal.mandate,
            Self::Commit { mandate, .. } => *mandate,
        }
    }

    async fn send(self, line: Line) -> Result<Answer, String> {
        match self {
            Self::Propose(proposal) => line.propose(&proposal.key, &proposal.body).await,
            Self::Commit { id, .. } => line.on_operation(&id, "/commit").await,
        }
    }

    fn take(&self, truth: &mut Truth, answer: &Answer) -> Result<(), String> {
        match self {
            Self::Propose(proposal) => truth.proposed(proposal, answer),
            Self::Commit { operation, mandate, .. } => {
                truth.committed(*operation, *mandate, answer)
            }
        }
    }
}

impl Play<'_> {
    pub(super) async fn burst(&mut self, calls: &[Call], twice: bool) -> Result<(), String> {
        let mut parts: Vec<Part> = calls.iter().filter_map(|call| self.part(call)).collect();
        if twice && parts.len() > 1 {
            parts[1] = parts[0].clone();
        }
        let mut sending = JoinSet::new();
        for (at, part) in parts.iter().cloned().enumerate() {
            let line = self.line(part.mandate());
            sending.spawn(async move { (at, part.send(line).await) });
        }
        let mut answers = vec![None; parts.len()];
        for (at, answer) in sending.join_all().await {
            answers[at] = Some(answer?);
        }
        let answers: Vec<Answer> = answers.into_iter().flatten().collect();
        for (part, answer) in parts.iter().zip(&answers) {
            let who = self.name(part.mandate());
            self.tell(format!("at the same moment {who}: {part:?}\n    {}", answer.short()));
        }
        self.truth.racing = parts.iter().filter_map(|part| self.about(part)).collect();
        let Some(truth) = in_some_order(&self.truth, &parts, &answers) else {
            let first = explained(&self.truth, &parts, &answers);
            return Err(format!("no order explains these answers: {first}"));
        };
        self.truth = truth;
        self.truth.racing.clear();
        Ok(())
    }

    fn part(&mut self, call: &Call) -> Option<Part> {
        match call {
            Call::Propose(wish) => {
                self.fresh += 1;
                let words = wish.words(&self.truth.world, &self.truth.books, self.fresh);
                Some(Part::Propose(words))
            }
            Call::Commit { nth, by, own } => {
                let (operation, mandate) = self.whose(*nth, *by, *own)?;
                let id = self.truth.books.operations[operation].id.clone();
                Some(Part::Commit { operation, mandate, id })
            }
            Call::Again { .. } | Call::Cancel { .. } | Call::Follow { .. } => None,
        }
    }

    /// The bill that a part names.
    fn about(&self, part: &Part) -> Option<(usize, String)> {
        let company = self.truth.books.mandates[part.mandate()].caller.company;
        let body = match part {
            Part::Propose(proposal) => &proposal.body,
            Part::Commit { operation, .. } => &self.truth.books.operations[*operation].content,
        };
        Some((company, body["args"]["invoice_ref"].as_str()?.to_owned()))
    }
}

/// What is true after the calls, in the first order in which all answers are right.
fn in_some_order(truth: &Truth, parts: &[Part], answers: &[Answer]) -> Option<Truth> {
    fn go(truth: &Truth, left: &[usize], parts: &[Part], answers: &[Answer]) -> Option<Truth> {
        if left.is_empty() {
            return Some(truth.clone());
        }
        left.iter().find_map(|next| {
            let mut after = truth.clone();
            parts[*next].take(&mut after, &answers[*next]).ok()?;
            let rest: Vec<usize> = left.iter().copied().filter(|at| at != next).collect();
            go(&after, &rest, parts, answers)
        })
    }
    let all: Vec<usize> = (0..parts.len()).collect();
    go(truth, &all, parts, answers)
}

/// All calls with their answers, and what is wrong with each if it came first.
fn explained(truth: &Truth, parts: &[Part], answers: &[Answer]) -> String {
    let one = |(part, answer): (&Part, &Answer)| {
        let fault = part.take(&mut truth.clone(), answer).err();
        format!("\n  {part:?}\n    {} {}\n    first: {fault:?}", answer.status, answer.text)
    };
    parts.iter().zip(answers).map(one).collect()
}
