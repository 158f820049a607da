//! What a decision reads from the store must stay as quick when the store has grown.

use sqlx::{AssertSqlSafe, Connection, Row as _, SqliteConnection};

use crate::support::on_both;

/// The reads of a decision, of the workers' rounds and of humans, as the repositories write them.
const READS: [&str; 42] = [
    "select count(*) from operation where mandate = $1 and status = 'pending'",
    "select * from operation where mandate = $1 and status in ('prepared', 'pending') order by id",
    "select sum(amount_minor) from operation where mandate = $1 and reserved = 1 and id <> $2",
    "select * from operation where company = $1 and thing = $2 \
     and status in ('pending', 'executing', 'unknown')",
    "select * from operation where status = $1 and (updated_at, id) > ($2, $3) \
     order by updated_at, id limit $4",
    "select count(*) from operation where status = $1",
    "select * from operation where status in ('prepared', 'pending') and waits_until <= $1 \
     order by waits_until limit $2",
    "select * from operation where company = $1 and principal = $2 and agent = $3 \
     and idempotency_key = $4",
    "select * from operation where company = $1 and principal = $2 and agent = $3 and id > $4 \
     and ($5 = '' or status = $5) order by id limit $6",
    "select * from operation where status = $1 and (updated_at, id) > ($2, $3) \
     and id in (select operation from vote where state = 'cast') \
     order by updated_at, id limit $4",
    "select count(*) from operation where status = 'pending' \
     and id in (select operation from vote where state = 'cast')",
    "select count(*) from operation where company = $1 and thing = $2 \
     and status = 'rejected' and principal = $3 and updated_at > $4",
    "select executing_since, counterparty, amount_minor from operation where company = $1 \
     and reserved = 1 and level = 0 and executing_since > $2",
    "select * from operation where company = $1 and status = 'pending' and id > $2 \
     and ((1 = $3 and level = 1 and principal = $4) or ($5 = 1 and level = 2 and principal <> $4 \
     and not exists (select 1 from callback mine join callback rested \
     on rested.id = operation.callback and rested.company = mine.company \
     and rested.vendor = mine.vendor and rested.new_iban = mine.new_iban where mine.caller = $4 \
     and mine.state in ('open', 'spent') and (mine.state = 'open' or mine.operation = operation.id) \
     and mine.expires_at > $8))) order by id limit $6",
    "select created_at, principal, agent from operation where company = $1 and thing = $2 \
     and action = $3 and params like $4 order by created_at, id limit 1",
    "select * from callback where (company, vendor, new_iban) in \
     (select company, vendor, new_iban from callback where id = $1) order by called_at, id",
    "select operation, voter from vote where state = 'spent' and operation in \
     (select operation from baseline_event where company = $1 and vendor = $2 \
     and operation is not null) order by id",
    "select * from baseline_event where company = $1 and vendor = $2 and account = $3 \
     and source = $4 and seen_at > (select coalesce(max(kept.seen_at), -1) \
     from baseline_event as kept where kept.company = $1 and kept.vendor = $2 \
     and kept.account = $3 and kept.source = $5 and kept.what = $6) order by seen_at, id limit 1",
    "select * from baseline_event where company = $1 and vendor = $2 and account = $3 \
     and source = $4 order by seen_at desc, id desc limit 1",
    "select * from baseline_event where company = $1 and vendor = $2 and account is null \
     and what in ($3, $4, $5) order by seen_at, id limit $6",
    "select booked_at, amount_minor from adopted_order where company = $1 and booked_at > $2",
    "select * from vote where operation = $1 and state in ('cast', 'spent') order by id",
    "update vote set state = 'void' where voter = $1 and state = 'cast'",
    "select * from attempt where operation = $1 and state = 'open'",
    "select * from attempt where company = $1 and thing = $2 and state in ('open', 'booked')",
    "select * from baseline_account where company = $1 and vendor = $2 order by account",
    "select * from session join person on person.name = session.person \
     left join person_role on person_role.person = person.name \
     where session.token_digest = $1 and session.expires_at > $2 and person.disabled_at is null",
    "delete from session where person = $1 and id not in \
     (select id from session where person = $1 order by id desc limit $2)",
    "delete from session where id in \
     (select id from session where expires_at <= $1 order by expires_at limit $2)",
    "select * from operation where company = $1 and id > $2 and ($3 = '' or status = $3) \
     order by id limit $4",
    "select * from mandate where company = $1 and id > $2 and ($3 = '' or principal = $3) \
     order by id limit $4",
    "select * from receipts where company = $3 and seq > $1 order by seq limit $2",
    "select vendor from baseline_account \
     where company = $1 and number = $2 and vendor <> $3 and active = 1",
    "select * from precedent p join operation o on o.id = p.operation \
     where p.company = $1 and p.counterparty = $2 and p.thing <> $3 \
     and o.status in ('executing', 'unknown', 'executed') and p.reference_by_part = $4 union \
     select * from precedent p join operation o on o.id = p.operation \
     where p.company = $1 and p.counterparty = $2 and p.thing <> $3 \
     and o.status in ('executing', 'unknown', 'executed') and p.reference_as_one = $5 limit 1000",
    "select * from precedent p join operation o on o.id = p.operation \
     where p.company = $1 and p.counterparty = $2 and p.thing <> $3 \
     and o.status in ('executing', 'unknown', 'executed') and p.total_minor = $4 \
     and p.currency = $5 and (p.dated is null or (p.dated >= $6 and p.dated <= $7)) limit 1000",
    "select * from precedent p join operation o on o.id = p.operation \
     where p.company = $1 and p.counterparty = $2 and p.thing = $3 \
     and o.status in ('executing', 'unknown', 'executed') order by p.operation",
    "select min(a.settled_at) from precedent p join operation o on o.id = p.operation \
     join attempt a on a.operation = p.operation and a.state = 'booked' \
     where p.company = $1 and p.counterparty = $2 and p.payee = $3 and p.claimed_at >= $4 \
     and p.level >= 1 and o.status = 'executed' and o.reasons not like $5",
    "select count(*) from operation where company = $1 and counterparty = $2 and action = $3 \
     and status in ('pending', 'executing', 'unknown')",
    "select pair.other, pair.bill_seen, pair.other_seen from \
     (select other, bill_seen, other_seen, cleared_by from duplicate_clearance \
     where company = $1 and bill = $2 union all \
     select bill, other_seen, bill_seen, cleared_by from duplicate_clearance \
     where company = $1 and other = $2) as pair \
     join person on person.name = pair.cleared_by and person.disabled_at is null \
     join person_role on person_role.person = pair.cleared_by and person_role.company = $1 \
     and person_role.role = 'approver' where pair.cleared_by <> $3",
    "select count(*) from operation where company = $1 and thing = $2 and principal = $3",
    "select count(*) from operation where company = $1 and principal = $2 and agent = $3 \
     and stage = 'provenance' and id < $4 and created_at >= $5 and reasons in ('a', 'b')",
    "select number from baseline_phone \
     where company = $1 and ending in ($2, '') and vendor <> $3 and number <> ''",
];

#[tokio::test]
async fn no_read_of_a_decision_scans_a_table_or_all_of_a_mandate_or_company() {
    on_both(async |place| {
        if !place.is_sqlite() {
            // PostgreSQL plans by what is in the tables; the indexes are the same.
            return;
        }
        place.open().await.close().await;
        let mut conn = SqliteConnection::connect(&place.url).await.unwrap();
        for read in READS {
            let explain = AssertSqlSafe(format!("explain query plan {read}"));
            let rows = sqlx::query(explain).fetch_all(&mut conn).await.unwrap();
            let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
            let plan = plan.join("; ");
            assert!(!plan.contains("SCAN"), "`{read}`: {plan}");
            let one_column = plan.contains("(mandate=?)") || plan.contains("(company=?)");
            assert!(!one_column, "`{read}`: {plan}");
        }
        conn.close().await.unwrap();
    })
    .await;
}
