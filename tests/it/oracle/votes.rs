//! What humans do with operations that wait: approve, reject, look at what waits for them. The oracle
//! says who may, and what follows (API 3 and 4, DESIGN 2).

use reqwest::Method;
use serde_json::{Value, json};

use super::answers::{Answer, Truth};
use super::books::{Operation, Status};
use super::judge::{Asking, foreign};
use super::play::Play;
use super::world::COMPANIES;
use crate::daemon::PASSWORD;

/// Hours that a session lives.
const SESSION: i64 = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Accountant,
    Approver,
    Auditor,
    Admin,
}

impl Role {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Accountant => "accountant",
            Self::Approver => "approver",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
        }
    }
}

/// A human, and what he may be in which company.
pub(super) struct Human {
    pub(super) name: &'static str,
    pub(super) roles: &'static [(usize, Role)],
}

/// The people. Paul leaves before anything begins.
pub(super) const HUMANS: [Human; 10] = [
    Human { name: "marie", roles: &[(0, Role::Accountant)] },
    Human { name: "jean", roles: &[(0, Role::Accountant), (0, Role::Approver)] },
    Human { name: "anna", roles: &[(0, Role::Approver)] },
    Human { name: "clara", roles: &[(0, Role::Approver), (1, Role::Approver)] },
    Human { name: "otto", roles: &[(0, Role::Auditor)] },
    Human { name: "adam", roles: &[(0, Role::Admin)] },
    Human { name: "renard", roles: &[(1, Role::Accountant)] },
    Human { name: "fiona", roles: &[(1, Role::Approver), (1, Role::Accountant)] },
    Human { name: "ben", roles: &[(1, Role::Approver), (0, Role::Accountant)] },
    Human { name: "paul", roles: &[(0, Role::Accountant)] },
];

/// Who of them is there in one world: whoever signs in costs a password's worth of time.
const PRESENT: [&[usize]; 3] = [&[0, 1, 2, 7], &[1, 3, 5, 6], &[0, 2, 4, 8]];

impl Human {
    fn is(&self, role: Role, company: usize) -> bool {
        self.roles.contains(&(company, role))
    }

    fn belongs_to(&self, company: usize) -> bool {
        self.roles.iter().any(|(of, _)| *of == company)
    }

    /// Why this human's vote for an operation would not count; nothing if it would.
    fn may_not_vote(&self, operation: &Operation) -> Option<&'static str> {
        let company = operation.caller.company;
        let is_principal = self.name == operation.caller.principal;
        match operation.held.0 {
            1 if is_principal => None,
            // Where nobody is asked, nobody's word counts.
            0 | 1 => Some("not_an_approver"),
            _ if is_principal => Some("self_approval"),
            _ if self.is(Role::Approver, company) => None,
            _ => Some("not_an_approver"),
        }
    }
}

/// What a human does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Votes for the hash that the operation has now.
    Approve,
    /// Votes for another one.
    ApproveAnother,
    Reject,
    List,
}

impl Play<'_> {
    pub(super) async fn vote(&mut self, nth: usize, by: usize, word: Word) -> Result<(), String> {
        let present = PRESENT[self.truth.world.crew % PRESENT.len()];
        let human = &HUMANS[present[by % present.len()]];
        let token = self.signed_in(human.name).await?;
        if word == Word::List {
            return self.list(human, &token, nth % 2).await;
        }
        // Mostly one that waits: of what is over little can be said.
        let pending: Vec<usize> = (0..self.truth.books.operations.len())
            .filter(|at| self.truth.books.operations[*at].status == Status::Pending)
            .collect();
        let at = match pending.get(nth % pending.len().max(1)) {
            Some(at) if !nth.is_multiple_of(7) => *at,
            _ => match self.latest(nth) {
                Some(at) => at,
                None => return Ok(()),
            },
        };
        let operation = &self.truth.books.operations[at];
        let current = word != Word::ApproveAnother && operation.hash.len() == 64;
        let hash = if current { operation.hash.clone() } else { "0123456789abcdef".repeat(4) };
        let rejects = word == Word::Reject;
        let (call, body) = if rejects {
            ("reject", json!({ "reason": "no" }))
        } else {
            ("approve", json!({ "operation_hash": hash }))
        };
        let id = operation.id.clone();
        let path = format!("operations/{id}/{call}");
        let answer = self.ask(Method::POST, &path, &token, Some(&body)).await?;
        let answer = self.humans_end(answer, &id, &token).await?;
        let company = self.truth.books.operations[at].caller.company;
        if !human.belongs_to(1 - company) {
            answer.hides(&foreign(company))?;
        }
        let name = human.name;
        self.tell(format!("{name} calls {id}/{call} {body}\n    {}", answer.short()));
        if rejects {
            self.truth.rejected(at, human, &answer)
        } else {
            self.truth.approved(at, human, current, &answer)
        }
    }

    /// The token of a session that stands.
    async fn signed_in(&mut self, name: &'static str) -> Result<String, String> {
        let hour = self.truth.world.hour;
        match self.sessions.get(name) {
            Some((token, since)) if hour - since < SESSION => Ok(token.clone()),
            _ => {
                let body = json!({ "user": name, "password": PASSWORD });
                let answer = self.ask(Method::POST, "sessions", "", Some(&body)).await?;
                if answer.status != 201 {
                    return Err(format!("{name} cannot sign in: {}", answer.text));
                }
                let token = answer.text("/token").to_owned();
                self.sessions.insert(name, (token.clone(), hour));
                Ok(token)
            }
        }
    }

    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let mut request = self.client.request(method, format!("{}/v1/{path}", self.daemon.base));
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        Answer::of(request).await
    }

    async fn humans_end(&self, answer: Answer, id: &str, token: &str) -> Result<Answer, String> {
        let mut last = answer;
        while matches!(last.text("/status"), "executing" | "unknown") {
            let path = format!("operations/{id}?wait=30s");
            let now = self.ask(Method::GET, &path, token, None).await?;
            let status = if now.text("/status") == "executed" { 201 } else { now.status };
            last = Answer { status, ..now };
        }
        Ok(last)
    }

    /// Whoever looks at what waits for him sees that and nothing else.
    async fn list(&self, human: &Human, token: &str, company: usize) -> Result<(), String> {
        let path = format!("approvals?limit=200&company={}", COMPANIES[company]);
        let answer = self.ask(Method::GET, &path, token, None).await?;
        if !human.belongs_to(company) {
            return answer.is_problem(404, &["not_found"]);
        }
        let items = answer.json["items"].as_array().ok_or("no list")?;
        let shown: Vec<&str> = items.iter().filter_map(|item| item["id"].as_str()).collect();
        let waits = |operation: &&Operation| {
            operation.status == Status::Pending
                && operation.caller.company == company
                && human.may_not_vote(operation).is_none()
        };
        let operations = self.truth.books.operations.iter().filter(waits);
        let mut expected: Vec<&str> = operations.map(|operation| operation.id.as_str()).collect();
        expected.sort_unstable();
        if shown == expected {
            Ok(())
        } else {
            Err(format!("{} sees {shown:?} waiting, not {expected:?}", human.name))
        }
    }
}

impl Truth {
    /// Why a human's word is not taken: the codes that may be answered.
    fn not_taken(
        &self,
        at: usize,
        human: &Human,
        rejects: bool,
    ) -> Option<(u16, Vec<&'static str>)> {
        let operation = &self.books.operations[at];
        let company = operation.caller.company;
        if !human.belongs_to(company) {
            return Some((404, vec!["not_found"]));
        }
        let may_reject = human.name == operation.caller.principal || human.is(Role::Admin, company);
        let barred = human.may_not_vote(operation).filter(|_| !(rejects && may_reject));
        let over = match operation.status {
            Status::Pending => None,
            Status::Expired => Some("approval_expired"),
            Status::Prepared
            | Status::Executed
            | Status::Denied
            | Status::Cancelled
            | Status::Failed
            | Status::Rejected => Some("already_decided"),
        };
        match (barred, over) {
            (None, None) => None,
            // Where nobody was asked, nobody is refused for who he is.
            (_, Some(over)) if operation.held.0 == 0 && !rejects => Some((409, vec![over])),
            (Some(_), _) if rejects => Some((403, vec!["not_an_approver", "self_approval"])),
            (Some(barred), _) => Some((403, vec![barred])),
            (None, Some(over)) => Some((409, vec![over])),
        }
    }

    fn approved(
        &mut self,
        at: usize,
        human: &Human,
        current: bool,
        answer: &Answer,
    ) -> Result<(), String> {
        if let Some((status, codes)) = self.not_taken(at, human, false) {
            return answer.is_problem(status, &codes);
        }
        let operation = &self.books.operations[at];
        if !current {
            return answer.is_problem(409, &["operation_changed"]);
        }
        if self.is_frozen(at) {
            return answer.is_problem(409, &["frozen"]);
        }
        let asking = Asking {
            mandate: operation.mandate,
            operation: Some(at),
            held: Some(operation.held.clone()),
        };
        self.decided(at, &asking, answer)
    }

    fn rejected(&mut self, at: usize, human: &Human, answer: &Answer) -> Result<(), String> {
        if let Some((status, codes)) = self.not_taken(at, human, true) {
            return answer.is_problem(status, &codes);
        }
        let hour = self.world.hour;
        let operation = &mut self.books.operations[at];
        operation.status = Status::Rejected;
        operation.stage = "approval".to_owned();
        let (company, principal) = (operation.caller.company, operation.caller.principal);
        if let Some(bill) = operation.bill {
            let all = self.books.rejections.entry((company, bill)).or_default();
            all.push((hour, principal));
        }
        let operation = &self.books.operations[at];
        let same = answer.status == 200
            && answer.text("/id") == operation.id
            && answer.text("/status") == "rejected";
        if same { Ok(()) } else { Err(format!("not rejected: {} {}", answer.status, answer.text)) }
    }
}
