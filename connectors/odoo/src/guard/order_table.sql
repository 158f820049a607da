CREATE TABLE IF NOT EXISTS countersign_order (
    marker text NOT NULL CONSTRAINT countersign_order_marker PRIMARY KEY,
    digest text NOT NULL,
    store text NOT NULL,
    seq bigint NOT NULL,
    company int NOT NULL,
    bill int,
    vendor int NOT NULL,
    account int NOT NULL,
    iban text NOT NULL,
    journal text,
    source_iban text,
    amount numeric CONSTRAINT countersign_order_amount CHECK (amount > 0),
    total numeric,
    currency text,
    date date,
    payment int CONSTRAINT countersign_order_payment UNIQUE,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT countersign_order_seq UNIQUE (store, seq)
);
-- A table of an earlier version holds payments only, and has no transactions for them.
ALTER TABLE countersign_order
    ADD COLUMN IF NOT EXISTS kind text NOT NULL DEFAULT 'payment',
    ADD COLUMN IF NOT EXISTS old_account int,
    ADD COLUMN IF NOT EXISTS old_number text,
    ADD COLUMN IF NOT EXISTS bills int[],
    ADD COLUMN IF NOT EXISTS tx bigint,
    ADD COLUMN IF NOT EXISTS begun timestamptz;
ALTER TABLE countersign_order
    ALTER COLUMN tx SET DEFAULT txid_current(),
    ALTER COLUMN begun SET DEFAULT transaction_timestamp(),
    ALTER COLUMN bill DROP NOT NULL,
    ALTER COLUMN journal DROP NOT NULL,
    ALTER COLUMN source_iban DROP NOT NULL,
    ALTER COLUMN amount DROP NOT NULL,
    ALTER COLUMN total DROP NOT NULL,
    ALTER COLUMN currency DROP NOT NULL,
    ALTER COLUMN date DROP NOT NULL,
    ALTER COLUMN payment DROP NOT NULL,
    DROP CONSTRAINT IF EXISTS countersign_order_kind,
    ADD CONSTRAINT countersign_order_kind CHECK (
        kind = 'payment' AND num_nulls(bill, journal, source_iban, amount, total, currency, date, payment) = 0
        OR kind = 'bank_change' AND num_nulls(old_number, bills, tx, begun) = 0 AND num_nonnulls(bill, amount, payment) = 0);
CREATE INDEX IF NOT EXISTS countersign_order_bill ON countersign_order (bill);
CREATE INDEX IF NOT EXISTS countersign_order_vendor ON countersign_order (vendor);
CREATE INDEX IF NOT EXISTS countersign_order_account ON countersign_order (account);
CREATE INDEX IF NOT EXISTS countersign_order_old_account ON countersign_order (old_account);
CREATE INDEX IF NOT EXISTS countersign_order_tx ON countersign_order (tx);
CREATE TABLE IF NOT EXISTS countersign_turn (
    journal int NOT NULL CONSTRAINT countersign_turn_journal PRIMARY KEY,
    turns bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS countersign_vendor (
    vendor int NOT NULL CONSTRAINT countersign_vendor_vendor PRIMARY KEY,
    turns bigint NOT NULL
);
