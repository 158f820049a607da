create table erp (
    one integer not null,
    version integer not null,
    clock_offset_ms integer not null,
    latest_ms integer not null,
    seal_key blob,
    constraint erp_pk primary key (one),
    constraint erp_one_row check (one = 1),
    constraint erp_clock_forward check (clock_offset_ms >= 0),
    constraint erp_seal_key_length check (seal_key is null or length(seal_key) = 32)
) strict;

create table company (
    id text not null,
    name text not null,
    currency text not null,
    constraint company_pk primary key (id)
) strict, without rowid;

create table journal (
    company text not null,
    code text not null,
    iban text not null,
    constraint journal_pk primary key (company, code),
    constraint journal_company foreign key (company) references company (id)
) strict, without rowid;

create index journal_iban on journal (iban);

create table vendor (
    company text not null,
    id text not null,
    name text not null,
    tax_number text,
    parent text,
    phone text,
    phone_since_ms integer,
    accounts_made integer not null,
    constraint vendor_pk primary key (company, id),
    constraint vendor_company foreign key (company) references company (id)
) strict, without rowid;

create table account (
    company text not null,
    id text not null,
    vendor text not null,
    position integer not null,
    number text not null,
    holder text,
    active integer not null,
    allowed integer not null,
    since_ms integer not null,
    changed integer not null,
    constraint account_pk primary key (company, id),
    constraint account_vendor foreign key (company, vendor) references vendor (company, id),
    constraint account_flags check (active in (0, 1) and allowed in (0, 1) and changed in (0, 1))
) strict, without rowid;

create index account_by_vendor on account (company, vendor, position);
create index account_by_number on account (company, number);

create table bill (
    company text not null,
    id text not null,
    vendor text not null,
    reference text,
    -- The reference as it is compared; none where it has no letter and no digit.
    reference_by_part text,
    reference_as_one text,
    date text not null,
    due text,
    currency text not null,
    total_minor integer not null,
    paid_minor integer not null,
    state text not null,
    kind text not null,
    named_account text,
    constraint bill_pk primary key (company, id),
    constraint bill_vendor foreign key (company, vendor) references vendor (company, id),
    constraint bill_total check (total_minor > 0),
    constraint bill_paid check (paid_minor >= 0),
    constraint bill_state check (state in ('draft', 'posted', 'cancelled')),
    constraint bill_kind check (kind in ('bill', 'credit_note'))
) strict, without rowid;

create index bill_by_vendor on bill (company, vendor, id);
create index bill_open on bill (company, id)
    where state = 'posted' and kind = 'bill' and paid_minor < total_minor;
create index bill_open_by_vendor on bill (company, vendor, id)
    where state = 'posted' and kind = 'bill' and paid_minor < total_minor;

create index bill_by_part on bill (company, vendor, reference_by_part)
    where state = 'posted' and kind = 'bill';
create index bill_as_one on bill (company, vendor, reference_as_one)
    where state = 'posted' and kind = 'bill';
create index bill_by_total on bill (company, vendor, total_minor, date)
    where state = 'posted' and kind = 'bill';
-- What a vendor owes back: a credit note that is not used up, and what was paid beyond a bill, or
-- for one that does not stand.
create index bill_owed_back on bill (company, vendor)
    where (kind = 'credit_note' and state = 'posted' and paid_minor < total_minor)
        or (kind = 'bill' and (paid_minor > total_minor or (state <> 'posted' and paid_minor > 0)));

create table payment (
    id integer not null,
    company text not null,
    bill text not null,
    vendor text not null,
    account text,
    number text,
    amount_minor integer not null,
    currency text not null,
    source_iban text not null,
    memo text not null,
    date text not null,
    stands integer not null,
    constraint payment_pk primary key (id),
    constraint payment_bill foreign key (company, bill) references bill (company, id),
    constraint payment_amount check (amount_minor > 0),
    constraint payment_stands check (stands in (0, 1))
) strict;

create index payment_by_bill on payment (company, bill, id);

-- What the gateway ordered. No call of the control surface reaches it: it outlives whatever
-- somebody does to the payments.
create table payment_order (
    marker text not null,
    store text not null,
    seq integer not null,
    text text not null,
    company text not null,
    bill text not null,
    account text not null,
    iban text not null,
    amount_minor integer not null,
    total_minor integer not null,
    currency text not null,
    payment integer not null,
    at_ms integer not null,
    constraint payment_order_pk primary key (marker),
    constraint payment_order_number unique (store, seq),
    constraint payment_order_payment foreign key (payment) references payment (id),
    constraint payment_order_amount check (amount_minor > 0)
) strict, without rowid;

create index payment_order_by_bill on payment_order (company, bill);

create table vop (
    name text not null,
    iban text not null,
    result text not null,
    actual_name text,
    constraint vop_pk primary key (name, iban),
    constraint vop_result check (result in ('match', 'close_match', 'no_match', 'not_possible'))
) strict, without rowid;

create table sanctioned (
    iban text not null,
    constraint sanctioned_pk primary key (iban)
) strict, without rowid;

create table fault (
    id integer not null,
    hits text not null,
    what text not null,
    times_left integer not null,
    for_ms integer not null,
    constraint fault_pk primary key (id),
    constraint fault_times check (times_left >= 0)
) strict;

create index fault_waiting on fault (hits, id) where times_left > 0;
