-- What came with the file's version 3; also run on a file of version 2.

-- Changes of bank details that the gateway ordered, kept as its payments are.
create table bank_change_order (
    marker text not null,
    store text not null,
    seq integer not null,
    text text not null,
    company text not null,
    vendor text not null,
    account text not null,
    bills text not null,
    at_ms integer not null,
    constraint bank_change_order_pk primary key (marker),
    constraint bank_change_order_number unique (store, seq)
) strict, without rowid;

-- What was changed about vendors and accounts, by anybody. There is no statement that changes or
-- deletes an entry.
create table change_log (
    company text not null,
    id integer not null,
    at_ms integer not null,
    by text not null,
    vendor text not null,
    account text,
    field text not null,
    before text,
    after text,
    ordered integer not null,
    constraint change_log_pk primary key (company, id),
    constraint change_log_company foreign key (company) references company (id),
    constraint change_log_ordered check (ordered in (0, 1))
) strict, without rowid;
