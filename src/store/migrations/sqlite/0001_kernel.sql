-- One row: the store itself.
create table store (
    one integer not null constraint store_pk primary key constraint store_one check (one = 1),
    id text not null,
    created_at integer not null,
    order_seq integer not null constraint store_order_seq check (order_seq >= 0)
) strict;

-- One row, there from the beginning: the lock behind which the chain grows.
create table ledger_head (
    one integer not null constraint ledger_head_pk primary key
        constraint ledger_head_one check (one = 1),
    seq integer not null,
    hash blob not null constraint ledger_head_hash check (length(hash) = 32)
) strict;

create table receipts (
    seq integer not null constraint receipts_pk primary key,
    at integer not null,
    kind text not null,
    company text,
    operation text,
    bytes blob not null,
    content_hash blob not null constraint receipts_content_hash check (length(content_hash) = 32),
    prev_hash blob not null constraint receipts_prev_hash check (length(prev_hash) = 32),
    entry_hash blob not null constraint receipts_entry_hash check (length(entry_hash) = 32),
    constraint receipts_one_line unique (prev_hash)
) strict;
create index receipts_by_company on receipts (company, seq) where company is not null;
create index receipts_by_operation on receipts (operation, seq) where operation is not null;

create table signed_heads (
    seq integer not null constraint signed_heads_pk primary key,
    note text not null
) strict;
