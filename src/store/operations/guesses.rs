//! How often an agent named an account that is not the right one.

use super::Owner;
use crate::domain::names::{Name, OperationId};
use crate::store::Question;

/// Proposals of that agent that were refused since that moment, in milliseconds, because payee or
/// source account were others. For an operation that is there already, those that came before it.
pub fn count_guesses(owner: &Owner, operation: &OperationId, since: i64) -> Question<i64> {
    let sql = "select count(*) as found from operation where company = $1 and principal = $2 \
               and agent = $3 and stage = 'provenance' and id < $4 and created_at >= $5 \
               and reasons in ('[\"payee_not_on_file\"]', '[\"not_in_mandate\"]')";
    let agent = owner.agent.as_ref().map(Name::as_str).unwrap_or_default();
    let args = [
        owner.company.as_str().into(),
        owner.principal.as_str().into(),
        agent.into(),
        operation.as_str().into(),
        since.into(),
    ];
    Question::one(sql, args, |row| row.int("found"))
}
