create table vote (
  id text not null constraint vote_pk primary key,
  operation text not null constraint vote_operation_fk references operation (id),
  operation_hash text not null,
  level integer not null,
  voter text not null constraint vote_voter_fk references person (name),
  cast_at integer not null,
  expires_at integer not null,
  state text not null constraint vote_state_known check (state in ('cast', 'spent', 'void')),
  ended_at integer,
  ended_because text
) strict;
create unique index vote_once on vote (operation, operation_hash, voter) where state in ('cast', 'spent');
create index vote_by_operation on vote (operation, state);
create index vote_by_voter on vote (voter, state);
create index vote_waiting on vote (state, operation) where state = 'cast';
alter table operation add column barred_by text not null default '[]';
alter table operation add column records text not null default '{}';
create index operation_awaiting on operation (company, status, id);
create index operation_automatic on operation (company, executing_since, counterparty, amount_minor) where reserved = 1 and level = 0;
create index adopted_order_by_time on adopted_order (company, booked_at);
