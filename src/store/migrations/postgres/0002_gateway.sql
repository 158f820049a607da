create table person (
  name text not null constraint person_pk primary key,
  password_hash text not null,
  created_at bigint not null,
  disabled_at bigint
);
create table person_role (
  person text not null constraint person_role_person_fk references person (name),
  company text not null,
  role text not null constraint person_role_known check (role in ('accountant', 'approver', 'admin', 'auditor')),
  constraint person_role_pk primary key (person, company, role)
);
create table mandate (
  id text not null constraint mandate_pk primary key,
  company text not null,
  principal text not null constraint mandate_principal_fk references person (name),
  agent text not null,
  scopes text not null,
  journal text not null,
  source_fingerprint text not null,
  currency text not null,
  budget_minor bigint constraint mandate_budget_positive check (budget_minor > 0),
  calls_max bigint constraint mandate_calls_positive check (calls_max > 0),
  token_digest text not null,
  issued_at bigint not null,
  expires_at bigint not null,
  revoked_at bigint,
  revoked_because text
);
create index mandate_by_principal on mandate (company, principal);
create table operation (
  id text not null constraint operation_pk primary key,
  action text not null,
  company text not null,
  principal text not null,
  agent text not null,
  mandate text not null constraint operation_mandate_fk references mandate (id),
  idempotency_key text not null,
  request_digest text not null,
  args text not null,
  prepare bigint not null,
  status text not null constraint operation_status_known check (status in
    ('prepared', 'pending', 'executing', 'unknown', 'executed', 'denied', 'failed', 'rejected', 'expired', 'cancelled')),
  effect text not null,
  stage text not null,
  reasons text not null,
  detail text not null,
  policy_digest text,
  thing text,
  counterparty text,
  amount_minor bigint constraint operation_amount_positive check (amount_minor > 0),
  currency text,
  params text not null,
  facts text not null,
  operation_hash text,
  level bigint not null,
  waits_until bigint,
  result text,
  reserved bigint not null,
  receipt_seq bigint not null,
  receipt_hash text not null,
  executing_since bigint,
  created_at bigint not null,
  updated_at bigint not null,
  version bigint not null,
  constraint operation_key_uniq unique (company, principal, agent, idempotency_key),
  constraint operation_live_has_thing check (status not in ('pending', 'executing', 'unknown') or thing is not null)
);
create unique index operation_live_uniq on operation (company, thing) where status in ('pending', 'executing', 'unknown');
create index operation_by_caller on operation (company, principal, agent, id);
create index operation_by_thing on operation (company, thing);
create index operation_reserved on operation (mandate, reserved);
create index operation_by_status on operation (status, updated_at);
create index operation_by_mandate on operation (mandate, status);
create table attempt (
  marker text not null constraint attempt_pk primary key,
  seq bigint not null constraint attempt_seq_uniq unique,
  operation text not null constraint attempt_operation_fk references operation (id),
  company text not null,
  thing text not null,
  counterparty text not null,
  amount_minor bigint not null constraint attempt_amount_positive check (amount_minor > 0),
  total_minor bigint not null constraint attempt_total_positive check (total_minor > 0),
  currency text not null,
  order_text text not null,
  operation_hash text not null,
  not_after bigint not null,
  lease_until bigint not null,
  daemon text not null,
  state text not null constraint attempt_state_known check (state in ('open', 'booked', 'refused', 'not_sent', 'absent', 'withdrawn')),
  payment text,
  booked_minor bigint,
  note text,
  claimed_at bigint not null,
  settled_at bigint,
  constraint attempt_within_total check (amount_minor <= total_minor)
);
create unique index attempt_open_uniq on attempt (operation) where state = 'open';
create unique index attempt_booked_uniq on attempt (operation) where state = 'booked';
create index attempt_by_thing on attempt (company, thing);
create index attempt_by_operation on attempt (operation, seq);
create table freezes (
  id text not null constraint freeze_pk primary key,
  scope text not null constraint freeze_scope_known check (scope in ('all', 'company', 'vendor')),
  company text,
  counterparty text,
  reason text not null,
  cause text,
  automatic bigint not null,
  placed_by text not null,
  placed_at bigint not null,
  removed_by text,
  removed_at bigint,
  removed_because text
);
create index freeze_in_force on freezes (scope) where removed_at is null;
create table alarm (
  id text not null constraint alarm_pk primary key,
  kind text not null,
  company text,
  counterparty text,
  operation text,
  detail text not null,
  raised_at bigint not null,
  closed_at bigint,
  closed_by text,
  closed_because text
);
create table baseline_company (
  company text not null constraint baseline_company_pk primary key,
  adopted_at bigint not null,
  attested_since bigint,
  vendors bigint not null
);
create table baseline_vendor (
  company text not null,
  vendor text not null,
  name text not null,
  tax_number text,
  parent text,
  first_seen bigint not null,
  adopted bigint not null,
  constraint baseline_vendor_pk primary key (company, vendor)
);
create table baseline_account (
  company text not null,
  account text not null,
  vendor text not null,
  number text not null,
  active bigint not null,
  since bigint not null,
  status text not null constraint baseline_account_status_known check (status in ('adopted', 'verified', 'unverified', 'changed_in_erp')),
  reowned bigint not null,
  note text,
  constraint baseline_account_pk primary key (company, account)
);
create index baseline_account_by_vendor on baseline_account (company, vendor, account);
create table baseline_phone (
  company text not null,
  vendor text not null,
  kind text not null,
  number text not null,
  since bigint not null,
  adopted bigint not null,
  constraint baseline_phone_pk primary key (company, vendor, kind)
);
create table adopted_order (
  seq bigint not null constraint adopted_order_pk primary key,
  marker text not null constraint adopted_order_marker_uniq unique,
  company text not null,
  thing text not null,
  amount_minor bigint not null constraint adopted_order_amount_positive check (amount_minor > 0),
  total_minor bigint not null constraint adopted_order_total_positive check (total_minor > 0),
  currency text not null,
  payment text not null,
  booked_at bigint not null
);
create index adopted_order_by_thing on adopted_order (company, thing);
