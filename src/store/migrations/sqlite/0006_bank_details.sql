-- Operations of a human's own, under no mandate, and orders that move no money. A column that may be
-- absent from now on needs its table anew; the tables that refer to it come along.
create table operation_anew (
  id text not null constraint operation_pk primary key,
  action text not null,
  company text not null,
  principal text not null,
  -- Empty where a human acts for himself.
  agent text not null,
  mandate text constraint operation_mandate_fk references mandate (id),
  idempotency_key text not null,
  request_digest text not null,
  args text not null,
  prepare integer not null,
  status text not null constraint operation_status_known check (status in
    ('prepared', 'pending', 'executing', 'unknown', 'executed', 'denied', 'failed', 'rejected', 'expired', 'cancelled')),
  effect text not null,
  stage text not null,
  reasons text not null,
  detail text not null,
  policy_digest text,
  thing text,
  counterparty text,
  amount_minor integer constraint operation_amount_positive check (amount_minor > 0),
  currency text,
  params text not null,
  facts text not null,
  operation_hash text,
  level integer not null,
  waits_until integer,
  result text,
  reserved integer not null,
  receipt_seq integer not null,
  receipt_hash text not null,
  executing_since integer,
  created_at integer not null,
  updated_at integer not null,
  version integer not null,
  barred_by text not null default '[]',
  records text not null default '{}',
  -- Humans whose vote does not count for it, beside its principal.
  not_by text not null default '[]',
  -- The call-back that it rests on.
  callback text,
  constraint operation_key_uniq unique (company, principal, agent, idempotency_key),
  constraint operation_own check ((mandate is null) = (agent = '')),
  constraint operation_live_has_thing check (status not in ('pending', 'executing', 'unknown') or thing is not null)
) strict;
insert into operation_anew (id, action, company, principal, agent, mandate, idempotency_key, request_digest, args, prepare,
  status, effect, stage, reasons, detail, policy_digest, thing, counterparty, amount_minor, currency, params, facts,
  operation_hash, level, waits_until, result, reserved, receipt_seq, receipt_hash, executing_since, created_at, updated_at,
  version, barred_by, records)
select id, action, company, principal, agent, mandate, idempotency_key, request_digest, args, prepare,
  status, effect, stage, reasons, detail, policy_digest, thing, counterparty, amount_minor, currency, params, facts,
  operation_hash, level, waits_until, result, reserved, receipt_seq, receipt_hash, executing_since, created_at, updated_at,
  version, barred_by, records from operation;
create table attempt_anew (
  marker text not null constraint attempt_pk primary key,
  seq integer not null constraint attempt_seq_uniq unique,
  operation text not null constraint attempt_operation_fk references operation_anew (id),
  company text not null,
  thing text not null,
  counterparty text not null,
  amount_minor integer constraint attempt_amount_positive check (amount_minor > 0),
  total_minor integer constraint attempt_total_positive check (total_minor > 0),
  currency text,
  order_text text not null,
  operation_hash text not null,
  not_after integer not null,
  lease_until integer not null,
  daemon text not null,
  state text not null constraint attempt_state_known check (state in ('open', 'booked', 'refused', 'not_sent', 'absent', 'withdrawn')),
  payment text,
  booked_minor integer,
  note text,
  claimed_at integer not null,
  settled_at integer,
  constraint attempt_within_total check (amount_minor <= total_minor),
  constraint attempt_sum_whole check ((amount_minor is null) = (total_minor is null) and (amount_minor is null) = (currency is null))
) strict;
insert into attempt_anew select * from attempt;
create table vote_anew (
  id text not null constraint vote_pk primary key,
  operation text not null constraint vote_operation_fk references operation_anew (id),
  operation_hash text not null,
  level integer not null,
  voter text not null constraint vote_voter_fk references person (name),
  cast_at integer not null,
  expires_at integer not null,
  state text not null constraint vote_state_known check (state in ('cast', 'spent', 'void')),
  ended_at integer,
  ended_because text
) strict;
insert into vote_anew select * from vote;
create table precedent_anew (
  operation text not null constraint precedent_pk primary key
    constraint precedent_operation_fk references operation_anew (id),
  company text not null,
  thing text not null,
  counterparty text not null,
  payee text not null,
  reference_by_part text,
  reference_as_one text,
  total_minor integer not null constraint precedent_total_positive check (total_minor > 0),
  currency text not null,
  dated text,
  level integer not null,
  claimed_at integer not null,
  constraint precedent_reference_whole check ((reference_by_part is null) = (reference_as_one is null))
) strict;
insert into precedent_anew select * from precedent;
drop table precedent;
drop table vote;
drop table attempt;
drop table operation;
alter table operation_anew rename to operation;
alter table attempt_anew rename to attempt;
alter table vote_anew rename to vote;
alter table precedent_anew rename to precedent;
create unique index operation_live_uniq on operation (company, thing) where status in ('pending', 'executing', 'unknown');
create index operation_by_caller on operation (company, principal, agent, id);
create index operation_by_thing on operation (company, thing);
create index operation_reserved on operation (mandate, reserved);
create index operation_by_status on operation (status, updated_at);
create index operation_by_mandate on operation (mandate, status);
create index operation_awaiting on operation (company, status, id);
create index operation_automatic on operation (company, executing_since, counterparty, amount_minor) where reserved = 1 and level = 0;
create index operation_by_company on operation (company, id);
create index operation_live_by_counterparty on operation (company, counterparty, action) where status in ('pending', 'executing', 'unknown');
create unique index attempt_open_uniq on attempt (operation) where state = 'open';
create unique index attempt_booked_uniq on attempt (operation) where state = 'booked';
create index attempt_by_thing on attempt (company, thing);
create index attempt_by_operation on attempt (operation, seq);
create unique index vote_once on vote (operation, operation_hash, voter) where state in ('cast', 'spent');
create index vote_by_operation on vote (operation, state);
create index vote_by_voter on vote (voter, state);
create index vote_waiting on vote (state, operation) where state = 'cast';
create index precedent_by_part on precedent (company, counterparty, reference_by_part);
create index precedent_as_one on precedent (company, counterparty, reference_as_one);
create index precedent_by_total on precedent (company, counterparty, total_minor, currency);
create index precedent_by_thing on precedent (company, counterparty, thing);
create index precedent_approved on precedent (company, counterparty, payee, claimed_at) where level >= 1;
-- A call to a vendor, and what came of it. One that counts is spent by the one claim that rests on it.
create table callback (
  id text not null constraint callback_pk primary key,
  company text not null,
  vendor text not null,
  new_iban text not null,
  caller text not null constraint callback_caller_fk references person (name),
  number_dialled text not null,
  number_since integer,
  number_from text,
  spoke_to text not null,
  read_back text not null,
  outcome text not null constraint callback_outcome_known check (outcome in ('confirmed', 'denied', 'no_answer')),
  request_received_at integer,
  note text,
  why_not text not null,
  called_at integer not null,
  expires_at integer not null,
  state text not null constraint callback_state_known check (state in ('idle', 'open', 'spent', 'void')),
  operation text constraint callback_operation_fk references operation (id),
  ended_at integer,
  ended_because text,
  constraint callback_spent_by check ((state = 'spent') = (operation is not null))
) strict;
create index callback_by_vendor on callback (company, vendor, new_iban, called_at);
create index callback_by_caller on callback (caller, state);
create index callback_by_operation on callback (operation) where operation is not null;
-- What is known of vendors beyond their accounts: where it stands in dispute, since when and why.
alter table baseline_vendor add column disputed_since integer;
alter table baseline_vendor add column dispute text;
alter table baseline_account add column place integer not null default 0;
-- What the ERP could prove at the moment that this account became known as it is.
alter table baseline_account add column erp_since integer;
alter table baseline_account add column operation text;
update baseline_account set erp_since =
  (select adopted_at from baseline_company where baseline_company.company = baseline_account.company);
alter table baseline_phone add column confirmed_at integer;
alter table baseline_phone add column operation text;
-- The last digits of the number, by which other spellings of it are found; empty where it has too few, or nobody looked.
alter table baseline_phone add column ending text not null default '';
create index baseline_phone_by_ending on baseline_phone (company, ending) where number <> '';
-- Everything that was ever seen or done about a vendor's details, in the order in which it became known.
create table baseline_event (
  id text not null constraint baseline_event_pk primary key,
  company text not null,
  vendor text not null,
  account text,
  what text not null,
  before text,
  after text,
  at integer not null,
  seen_at integer not null,
  by_whom text,
  source text not null,
  operation text
) strict;
create index baseline_event_by_vendor on baseline_event (company, vendor, seen_at, id);
-- How far the ERP's log of changes has been read.
create table watch (
  company text not null constraint watch_pk primary key,
  after_id integer not null,
  compared_at integer,
  compare_after text,
  reviewed_seq integer not null,
  reviewed_at integer
) strict;
create table watched_change (
  company text not null,
  id integer not null,
  constraint watched_change_pk primary key (company, id)
) strict;
-- What a freeze or an alarm is about, so that it is placed or raised once.
alter table freezes add column operation text;
alter table alarm add column subject text;
create unique index alarm_once on alarm (company, kind, subject) where subject is not null;
create index attempt_booked_by_company on attempt (company, seq) where state = 'booked' and amount_minor is not null;
create index alarm_by_company on alarm (company, id);

create index alarm_open on alarm (company, kind, counterparty) where closed_at is null;
create index freeze_by_company on freezes (company, id);
-- What an agent named and was not right.
create index operation_guesses on operation (company, principal, agent, created_at) where stage = 'provenance';
-- Whose bill an order paid that a restored store took over; empty where nobody could say.
alter table adopted_order add column counterparty text not null default '';
