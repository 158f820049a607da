//! The kernel's own statements.

pub(super) const MIGRATIONS_TABLE: &str = "
create table if not exists schema_migrations (
    number bigint not null constraint schema_migrations_pk primary key,
    name text not null,
    sha256 text not null,
    applied_at bigint not null
)";
pub(super) const MIGRATIONS: &str =
    "select number, name, sha256 from schema_migrations order by number";
pub(super) const ADD_MIGRATION: &str =
    "insert into schema_migrations (number, name, sha256, applied_at) values ($1, $2, $3, $4)";

pub(super) const STORE: &str = "select id from store where one = 1";
pub(super) const ADD_STORE: &str =
    "insert into store (one, id, created_at, order_seq) values (1, $1, $2, 0)";
pub(super) const NEXT_ORDER: &str =
    "update store set order_seq = order_seq + 1 where one = 1 returning order_seq";
pub(super) const RAISE_ORDER: &str =
    "update store set order_seq = $1 where one = 1 and order_seq < $1";

pub(super) const ADD_HEAD: &str = "insert into ledger_head (one, seq, hash) values (1, 0, $1)";
pub(super) const HEAD: &str = "select seq, hash from ledger_head where one = 1";
pub(super) const HEAD_LOCKED: &str = "select seq, hash from ledger_head where one = 1 for update";
pub(super) const TOUCH: &str = "update ledger_head set seq = seq where one = 1";
pub(super) const MOVE_HEAD: &str =
    "update ledger_head set seq = $1, hash = $2 where one = 1 and seq = $3 and hash = $4";

pub(super) const ADD_RECEIPTS: &str = "
insert into receipts
    (seq, at, kind, company, operation, bytes, content_hash, prev_hash, entry_hash)";
pub(super) const RECEIPTS_AFTER: &str = "
select seq, at, kind, company, operation, bytes, content_hash, prev_hash, entry_hash
from receipts where seq > $1 order by seq limit $2";
pub(super) const RECEIPTS_OF_COMPANY_AFTER: &str = "
select seq, at, kind, company, operation, bytes, content_hash, prev_hash, entry_hash
from receipts where company = $3 and seq > $1 order by seq limit $2";
pub(super) const RECEIPT: &str = "
select seq, at, kind, company, operation, bytes, content_hash, prev_hash, entry_hash
from receipts where seq = $1";
pub(super) const LATEST: &str = "
select max(newest.at) as latest
from (select at from receipts order by seq desc limit $1) as newest";
pub(super) const RECEIPT_HASH: &str = "select entry_hash from receipts where seq = $1";

pub(super) const ADD_SIGNED_HEAD: &str = "insert into signed_heads (seq, note) values ($1, $2)";
pub(super) const SIGNED_HEADS_BETWEEN: &str =
    "select seq, note from signed_heads where seq > $1 and seq <= $2 order by seq limit $3";
pub(super) const NEWEST_SIGNED_HEAD: &str =
    "select seq, note from signed_heads order by seq desc limit 1";
