//! Votes: which human may approve what, and whether a vote still counts (DESIGN 2, "What an approval
//! covers").

use std::collections::BTreeSet;

use countersign_erp_source::Timestamp;

use super::decision::Level;
use super::names::Name;

/// What a human is for one operation: read from the store at the moment it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// An active accountant of the operation's company.
    pub is_accountant: bool,
    /// An active approver of the operation's company.
    pub is_approver: bool,
}

/// Why a human's vote would not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoVote {
    /// What is the principal's own needs somebody else.
    #[error("whoever granted the mandate, or began this, is not the second person that it needs")]
    SelfApproval,
    /// Who called the vendor is not the second person.
    #[error("whoever called the vendor is not the second person that this needs")]
    Caller,
    /// The human does not hold the role.
    #[error("this takes an approver of the company")]
    NotAnApprover,
    /// The human is not the principal whose step-up it is, or no accountant any more.
    #[error("this is a step-up: the principal of the mandate says yes himself, as an accountant")]
    NotThePrincipal,
}

/// Who may not be the second person for an operation.
#[derive(Debug, Clone, Copy)]
pub struct Barred<'a> {
    /// Who granted the mandate, or began the operation himself.
    pub principal: &'a Name,
    /// Who called the vendor.
    pub others: &'a BTreeSet<Name>,
}

/// Whether a human may vote for an operation at that level.
///
/// INVARIANT (I4, I11): four eyes are two persons, whatever roles the one of them holds, and neither
/// of them made the call that the operation rests on.
///
/// # Errors
/// [`NoVote`].
pub fn may_vote(
    level: Level,
    barred: Barred<'_>,
    voter: &Name,
    standing: Standing,
) -> Result<(), NoVote> {
    let is_principal = voter == barred.principal;
    match level {
        Level::StepUp if is_principal && standing.is_accountant => Ok(()),
        Level::FourEyes if is_principal => Err(NoVote::SelfApproval),
        Level::FourEyes if barred.others.contains(voter) => Err(NoVote::Caller),
        Level::FourEyes if standing.is_approver => Ok(()),
        Level::StepUp => Err(NoVote::NotThePrincipal),
        // Where nobody is asked, nobody's vote counts.
        Level::None | Level::FourEyes => Err(NoVote::NotAnApprover),
    }
}

/// A vote that nobody has voided, with what its human is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// Who.
    pub voter: Name,
    /// What the human is now.
    pub standing: Standing,
    /// For which hash.
    pub hash: String,
    /// Until when it counts.
    pub expires_at: Timestamp,
}

impl Vote {
    /// Whether it completes that level for that hash at that moment.
    pub fn completes(&self, level: Level, barred: Barred<'_>, hash: &str, now: Timestamp) -> bool {
        self.hash == hash
            && now < self.expires_at
            && may_vote(level, barred, &self.voter, self.standing).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn says(level: Level, voter: &str, accountant: bool, approver: bool) -> Result<(), NoVote> {
        let standing = Standing { is_accountant: accountant, is_approver: approver };
        let (principal, others) = (name("marie"), BTreeSet::from([name("carl")]));
        may_vote(level, Barred { principal: &principal, others: &others }, &name(voter), standing)
    }

    #[test]
    fn a_step_up_is_the_principals_own() {
        assert_eq!(says(Level::StepUp, "marie", true, false), Ok(()));
        assert_eq!(says(Level::StepUp, "marie", false, true), Err(NoVote::NotThePrincipal));
        assert_eq!(says(Level::StepUp, "paul", true, true), Err(NoVote::NotThePrincipal));
    }

    #[test]
    fn four_eyes_are_never_the_principals() {
        assert_eq!(says(Level::FourEyes, "paul", false, true), Ok(()));
        assert_eq!(says(Level::FourEyes, "paul", true, false), Err(NoVote::NotAnApprover));
        assert_eq!(says(Level::FourEyes, "marie", true, true), Err(NoVote::SelfApproval));
        assert_eq!(says(Level::FourEyes, "marie", false, false), Err(NoVote::SelfApproval));
    }

    #[test]
    fn whoever_called_the_vendor_is_not_the_second_person() {
        assert_eq!(says(Level::FourEyes, "carl", true, true), Err(NoVote::Caller));
    }

    #[test]
    fn nobody_votes_where_nobody_is_asked() {
        assert_eq!(says(Level::None, "marie", true, true), Err(NoVote::NotAnApprover));
        assert_eq!(says(Level::None, "paul", true, true), Err(NoVote::NotAnApprover));
    }

    #[test]
    fn a_vote_counts_for_its_hash_and_time_only() {
        let standing = Standing { is_accountant: false, is_approver: true };
        let expires_at = Timestamp::from_millis(10);
        let vote = Vote { voter: name("paul"), standing, hash: "a".to_owned(), expires_at };
        let at = |hash, millis| {
            let (principal, others) = (name("marie"), BTreeSet::new());
            let barred = Barred { principal: &principal, others: &others };
            vote.completes(Level::FourEyes, barred, hash, Timestamp::from_millis(millis))
        };
        assert!(at("a", 9));
        assert!(!at("b", 9));
        assert!(!at("a", 10));
    }

    #[test]
    fn a_vote_counts_while_its_human_may_still_give_it() {
        let completes = |voter: &str, is_approver, not_by: &[&str]| {
            let standing = Standing { is_accountant: false, is_approver };
            let expires_at = Timestamp::from_millis(10);
            let vote = Vote { voter: name(voter), standing, hash: "a".to_owned(), expires_at };
            let others = not_by.iter().map(|other| name(other)).collect();
            let principal = name("marie");
            let barred = Barred { principal: &principal, others: &others };
            vote.completes(Level::FourEyes, barred, "a", Timestamp::from_millis(9))
        };
        assert!(completes("paul", true, &[]));
        assert!(!completes("paul", false, &[]), "he holds the role no more");
        assert!(!completes("paul", true, &["paul"]), "he called the vendor after he voted");
        assert!(!completes("marie", true, &[]));
    }
}
