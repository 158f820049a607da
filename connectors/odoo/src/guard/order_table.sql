CREATE TABLE IF NOT EXISTS countersign_order (
    marker text NOT NULL CONSTRAINT countersign_order_marker PRIMARY KEY,
    digest text NOT NULL,
    store text NOT NULL,
    seq bigint NOT NULL,
    company int NOT NULL,
    bill int NOT NULL,
    vendor int NOT NULL,
    account int NOT NULL,
    iban text NOT NULL,
    journal text NOT NULL,
    source_iban text NOT NULL,
    amount numeric NOT NULL CONSTRAINT countersign_order_amount CHECK (amount > 0),
    total numeric NOT NULL,
    currency text NOT NULL,
    date date NOT NULL,
    payment int NOT NULL CONSTRAINT countersign_order_payment UNIQUE,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT countersign_order_seq UNIQUE (store, seq)
);
CREATE INDEX IF NOT EXISTS countersign_order_bill ON countersign_order (bill);
CREATE TABLE IF NOT EXISTS countersign_turn (
    journal int NOT NULL CONSTRAINT countersign_turn_journal PRIMARY KEY,
    turns bigint NOT NULL
);
