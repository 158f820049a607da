-- One row: the store itself.
create table store (
    one bigint not null constraint store_pk primary key constraint store_one check (one = 1),
    id text not null,
    created_at bigint not null,
    order_seq bigint not null constraint store_order_seq check (order_seq >= 0)
);

-- One row, there from the beginning: the lock behind which the chain grows.
create table ledger_head (
    one bigint not null constraint ledger_head_pk primary key
        constraint ledger_head_one check (one = 1),
    seq bigint not null,
    hash bytea not null constraint ledger_head_hash check (length(hash) = 32)
);

create table receipts (
    seq bigint not null constraint receipts_pk primary key,
    at bigint not null,
    kind text not null,
    company text,
    operation text,
    bytes bytea not null,
    content_hash bytea not null constraint receipts_content_hash check (length(content_hash) = 32),
    prev_hash bytea not null constraint receipts_prev_hash check (length(prev_hash) = 32),
    entry_hash bytea not null constraint receipts_entry_hash check (length(entry_hash) = 32),
    constraint receipts_one_line unique (prev_hash)
);
create index receipts_by_company on receipts (company, seq) where company is not null;
create index receipts_by_operation on receipts (operation, seq) where operation is not null;

create table signed_heads (
    seq bigint not null constraint signed_heads_pk primary key,
    note text not null
);
