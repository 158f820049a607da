CREATE TABLE IF NOT EXISTS countersign_log (
    id bigserial CONSTRAINT countersign_log_id PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tx bigint NOT NULL DEFAULT txid_current(),
    begun timestamptz NOT NULL DEFAULT transaction_timestamp(),
    who int,
    companies int[] NOT NULL,
    vendor int NOT NULL,
    account int,
    field text NOT NULL,
    was text,
    became text
);
