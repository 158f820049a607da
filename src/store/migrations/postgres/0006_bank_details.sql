-- Operations of a human's own, under no mandate, and orders that move no money.
alter table operation alter column mandate drop not null;
alter table operation add constraint operation_own check ((mandate is null) = (agent = ''));
-- Humans whose vote does not count for it, beside its principal.
alter table operation add column not_by text not null default '[]';
-- The call-back that it rests on.
alter table operation add column callback text;
alter table attempt alter column amount_minor drop not null;
alter table attempt alter column total_minor drop not null;
alter table attempt alter column currency drop not null;
alter table attempt add constraint attempt_sum_whole check ((amount_minor is null) = (total_minor is null) and (amount_minor is null) = (currency is null));
-- A call to a vendor, and what came of it. One that counts is spent by the one claim that rests on it.
create table callback (
  id text not null constraint callback_pk primary key,
  company text not null,
  vendor text not null,
  new_iban text not null,
  caller text not null constraint callback_caller_fk references person (name),
  number_dialled text not null,
  number_since bigint,
  number_from text,
  spoke_to text not null,
  read_back text not null,
  outcome text not null constraint callback_outcome_known check (outcome in ('confirmed', 'denied', 'no_answer')),
  request_received_at bigint,
  note text,
  why_not text not null,
  called_at bigint not null,
  expires_at bigint not null,
  state text not null constraint callback_state_known check (state in ('idle', 'open', 'spent', 'void')),
  operation text constraint callback_operation_fk references operation (id),
  ended_at bigint,
  ended_because text,
  constraint callback_spent_by check ((state = 'spent') = (operation is not null))
);
create index callback_by_vendor on callback (company, vendor, new_iban, called_at);
create index callback_by_caller on callback (caller, state);
create index callback_by_operation on callback (operation) where operation is not null;
-- What is known of vendors beyond their accounts: where it stands in dispute, since when and why.
alter table baseline_vendor add column disputed_since bigint;
alter table baseline_vendor add column dispute text;
alter table baseline_account add column place bigint not null default 0;
-- What the ERP could prove at the moment that this account became known as it is.
alter table baseline_account add column erp_since bigint;
alter table baseline_account add column operation text;
update baseline_account set erp_since =
  (select adopted_at from baseline_company where baseline_company.company = baseline_account.company);
alter table baseline_phone add column confirmed_at bigint;
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
  at bigint not null,
  seen_at bigint not null,
  by_whom text,
  source text not null,
  operation text
);
create index baseline_event_by_vendor on baseline_event (company, vendor, seen_at, id);
-- How far the ERP's log of changes has been read.
create table watch (
  company text not null constraint watch_pk primary key,
  after_id bigint not null,
  compared_at bigint,
  compare_after text,
  reviewed_seq bigint not null,
  reviewed_at bigint
);
create table watched_change (
  company text not null,
  id bigint not null,
  constraint watched_change_pk primary key (company, id)
);
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
