create table session (
  id text not null constraint session_pk primary key,
  token_digest text not null constraint session_token_uniq unique,
  person text not null constraint session_person_fk references person (name),
  created_at bigint not null,
  expires_at bigint not null
);
create index session_by_person on session (person);
create index session_by_expiry on session (expires_at);
create index person_role_by_company on person_role (company, person);
create index operation_by_company on operation (company, id);
create index mandate_by_company on mandate (company, id);
