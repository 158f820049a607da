-- What each claim was made for, as it was then: later decisions compare with it, whatever becomes of
-- the records in the ERP.
create table precedent (
  operation text not null constraint precedent_pk primary key
    constraint precedent_operation_fk references operation (id),
  company text not null,
  thing text not null,
  counterparty text not null,
  payee text not null,
  reference_by_part text,
  reference_as_one text,
  total_minor bigint not null constraint precedent_total_positive check (total_minor > 0),
  currency text not null,
  dated text,
  level bigint not null,
  claimed_at bigint not null,
  constraint precedent_reference_whole check ((reference_by_part is null) = (reference_as_one is null))
);
create index precedent_by_part on precedent (company, counterparty, reference_by_part);
create index precedent_as_one on precedent (company, counterparty, reference_as_one);
create index precedent_by_total on precedent (company, counterparty, total_minor, currency);
create index precedent_by_thing on precedent (company, counterparty, thing);
create index precedent_approved on precedent (company, counterparty, payee, claimed_at) where level >= 1;
-- That two bills are not one, in the word of an approver, who saw both as they were then.
create table duplicate_clearance (
  company text not null,
  bill text not null,
  other text not null,
  cleared_by text not null constraint duplicate_clearance_person_fk references person (name),
  reason text not null,
  bill_seen text not null,
  other_seen text not null,
  cleared_at bigint not null,
  constraint duplicate_clearance_pk primary key (company, bill, other, cleared_by),
  constraint duplicate_clearance_two check (bill <> other)
);
create index duplicate_clearance_by_other on duplicate_clearance (company, other, bill, cleared_by);
create index operation_live_by_counterparty on operation (company, counterparty, action) where status in ('pending', 'executing', 'unknown');
create index baseline_account_by_number on baseline_account (company, number, vendor);
