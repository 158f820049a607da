//! What is installed in Odoo, and whether it still is: the actions by which orders are booked, bank
//! details changed and both looked up, the table of orders and the log of changes that no user of
//! Odoo reaches, the triggers that keep what was booked and write that log, and the three
//! identities. It holds no key and no password.

mod attest;
mod install;
mod prove;

use aws_lc_rs::digest;

pub(crate) use self::attest::attest;
pub use self::install::{InstallError, InstallOptions, Installed, install};

/// Names by which everything of ours is found again in Odoo. All start with the same word, so that
/// an attestation finds what does not belong.
pub(crate) mod name {
    pub(crate) const PAY: &str = "Countersign: pay a bill";
    pub(crate) const LOOK_UP: &str = "Countersign: look up an order";
    pub(crate) const LIST_ORDERS: &str = "Countersign: list orders";
    pub(crate) const REVIEW: &str = "Countersign: review payments";
    pub(crate) const CHANGE: &str = "Countersign: change bank details";
    pub(crate) const LOOK_UP_CHANGE: &str = "Countersign: look up a change of bank details";
    pub(crate) const LIST_CHANGES: &str = "Countersign: list changes";
    pub(crate) const ATTEST: &str = "Countersign: attest";
    pub(crate) const ONE_STEP: &str = "Countersign: one step of an installation";
    pub(crate) const READER: &str = "Countersign reader";
    pub(crate) const PAYER: &str = "Countersign payer";
    pub(crate) const BANK_ADMIN: &str = "Countersign bank admin";
    pub(crate) const KEEP_NOTES: &str = "Countersign: notes on vendors and accounts stay";
    pub(crate) const FIND_ACTIONS: &str = "Countersign: the reader finds the actions";
    pub(crate) const SEE_RULES: &str = "Countersign: the reader sees since when notes stay";
}

/// Keys in Odoo's own parameters, which only its administrators read.
pub(crate) mod parameter {
    pub(crate) const SEAL_INNER: &str = "countersign.seal_inner";
    pub(crate) const SEAL_OUTER: &str = "countersign.seal_outer";
    pub(crate) const INSTALLED_IN: &str = "countersign.installed_in";
    /// Odoo's own. On, only editors of templates may write expressions into them, and not every
    /// internal user is an editor any more.
    pub(crate) const RESTRICT_TEMPLATES: &str = "mail.restrict.template.rendering";
}

/// A server action of ours.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) name: &'static str,
    pub(crate) code: &'static str,
    pub(crate) group: &'static str,
}

/// All server actions, with the one group that may run each.
pub(crate) const ACTIONS: [Action; 8] = [
    Action {
        name: name::PAY,
        code: concat!(
            include_str!("guard/unseal.py"),
            include_str!("guard/pay.py"),
            include_str!("guard/read_back.py"),
            include_str!("guard/booked.py")
        ),
        group: name::PAYER,
    },
    Action {
        name: name::LOOK_UP,
        code: concat!(
            include_str!("guard/look_up.py"),
            include_str!("guard/read_back.py"),
            include_str!("guard/booked.py")
        ),
        group: name::PAYER,
    },
    Action {
        name: name::LIST_ORDERS,
        code: include_str!("guard/list_orders.py"),
        group: name::PAYER,
    },
    Action {
        name: name::REVIEW,
        code: concat!(include_str!("guard/read_back.py"), include_str!("guard/review.py")),
        group: name::PAYER,
    },
    Action {
        name: name::CHANGE,
        code: concat!(
            include_str!("guard/unseal.py"),
            include_str!("guard/change.py"),
            include_str!("guard/read_changed.py"),
            include_str!("guard/changed.py")
        ),
        group: name::BANK_ADMIN,
    },
    Action {
        name: name::LOOK_UP_CHANGE,
        code: concat!(
            include_str!("guard/look_up_change.py"),
            include_str!("guard/read_changed.py"),
            include_str!("guard/changed.py")
        ),
        group: name::BANK_ADMIN,
    },
    Action {
        name: name::LIST_CHANGES,
        code: include_str!("guard/list_changes.py"),
        group: name::READER,
    },
    Action { name: name::ATTEST, code: include_str!("guard/attest.py"), group: name::READER },
];

/// A trigger of ours, with the body of its function.
#[derive(Debug)]
pub(crate) struct Trigger {
    pub(crate) name: &'static str,
    /// As PostgreSQL itself prints it.
    pub(crate) definition: &'static str,
    pub(crate) table: &'static str,
    pub(crate) body: &'static str,
}

/// All triggers.
pub(crate) const TRIGGERS: [Trigger; 8] = [
    Trigger {
        name: "countersign_keep_payment",
        definition: "CREATE TRIGGER countersign_keep_payment BEFORE DELETE OR UPDATE ON \
                     public.account_payment FOR EACH ROW EXECUTE FUNCTION \
                     countersign_keep_payment()",
        table: "account_payment",
        body: include_str!("guard/keep_payment.sql"),
    },
    Trigger {
        name: "countersign_keep_order",
        definition: "CREATE TRIGGER countersign_keep_order BEFORE DELETE OR UPDATE ON \
                     public.countersign_order FOR EACH ROW EXECUTE FUNCTION \
                     countersign_keep_order()",
        table: "countersign_order",
        body: include_str!("guard/keep_order.sql"),
    },
    Trigger {
        name: "countersign_keep_orders",
        definition: "CREATE TRIGGER countersign_keep_orders BEFORE TRUNCATE ON \
                     public.countersign_order FOR EACH STATEMENT EXECUTE FUNCTION \
                     countersign_keep_orders()",
        table: "countersign_order",
        body: include_str!("guard/keep_order.sql"),
    },
    Trigger {
        name: "countersign_keep_account",
        definition: "CREATE TRIGGER countersign_keep_account BEFORE DELETE OR UPDATE ON \
                     public.res_partner_bank FOR EACH ROW EXECUTE FUNCTION \
                     countersign_keep_account()",
        table: "res_partner_bank",
        body: include_str!("guard/keep_account.sql"),
    },
    Trigger {
        name: "countersign_log_account",
        definition: "CREATE TRIGGER countersign_log_account AFTER INSERT OR DELETE OR UPDATE ON \
                     public.res_partner_bank FOR EACH ROW EXECUTE FUNCTION \
                     countersign_log_account()",
        table: "res_partner_bank",
        body: include_str!("guard/log_account.sql"),
    },
    Trigger {
        name: "countersign_log_vendor",
        definition: "CREATE TRIGGER countersign_log_vendor AFTER DELETE OR UPDATE ON \
                     public.res_partner FOR EACH ROW EXECUTE FUNCTION \
                     countersign_log_vendor()",
        table: "res_partner",
        body: include_str!("guard/log_vendor.sql"),
    },
    Trigger {
        name: "countersign_keep_entry",
        definition: "CREATE TRIGGER countersign_keep_entry BEFORE DELETE OR UPDATE ON \
                     public.countersign_log FOR EACH ROW EXECUTE FUNCTION \
                     countersign_keep_entry()",
        table: "countersign_log",
        body: include_str!("guard/keep_log.sql"),
    },
    Trigger {
        name: "countersign_keep_log",
        definition: "CREATE TRIGGER countersign_keep_log BEFORE TRUNCATE ON \
                     public.countersign_log FOR EACH STATEMENT EXECUTE FUNCTION \
                     countersign_keep_log()",
        table: "countersign_log",
        body: include_str!("guard/keep_log.sql"),
    },
];

/// The table of orders of both kinds, and those by which payments of a journal and whatever is
/// about a vendor's accounts take turns.
pub(crate) const ORDER_TABLE: &str = include_str!("guard/order_table.sql");

/// The table of what anybody changed about vendors and accounts.
pub(crate) const LOG_TABLE: &str = include_str!("guard/log_table.sql");

/// What the tables must hold to, as PostgreSQL prints it.
pub(crate) const CONSTRAINTS: [&str; 7] = [
    "PRIMARY KEY (marker)",
    "UNIQUE (store, seq)",
    "UNIQUE (payment)",
    "CHECK ((((kind = 'payment'::text) AND (num_nulls(bill, journal, source_iban, amount, total, \
     currency, date, payment) = 0)) OR ((kind = 'bank_change'::text) AND (num_nulls(old_number, \
     bills, tx, begun) = 0) AND (num_nonnulls(bill, amount, payment) = 0))))",
    "PRIMARY KEY (journal)",
    "PRIMARY KEY (vendor)",
    "PRIMARY KEY (id)",
];

/// Notes on vendors and on their accounts are the evidence of who changed what, and stay.
pub(crate) const KEEP_NOTES_DOMAIN: &str = "[('model', 'not in', ('res.partner', \
    'res.partner.bank'))] if not user.has_group('base.group_system') else [(1, '=', 1)]";

/// Who may write templates of messages. An expression in one is run with every right there is.
pub(crate) const TEMPLATE_EDITOR: &str = "mail.group_mail_template_editor";

/// SHA-256 of a text, in hexadecimal, as the database makes it.
pub(crate) fn digest_of(text: &str) -> String {
    hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        if write!(text, "{byte:02x}").is_err() {
            text.clear();
        }
        text
    })
}

/// The whole of what is created in the database, as one text that may run again.
pub(crate) fn database_objects() -> String {
    let triggers = TRIGGERS.iter().map(|trigger| {
        let Trigger { name, definition, table, body } = trigger;
        format!(
            "CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS \
             $countersign${body}$countersign$;\n\
             DROP TRIGGER IF EXISTS {name} ON {table};\n{definition};\n"
        )
    });
    [ORDER_TABLE, LOG_TABLE].map(str::to_owned).into_iter().chain(triggers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_that_is_installed_can_end_its_own_quotes() {
        let objects = database_objects();
        assert!(!objects.contains("\"\"\"") && !objects.contains('\\'));
        for trigger in TRIGGERS {
            assert!(!trigger.body.contains('$'));
        }
    }

    #[test]
    fn no_action_mentions_the_key_but_inside_a_statement() {
        for action in ACTIONS {
            let mentions = action.code.matches("seal_inner").count();
            let in_statements = action.code.matches("key = 'countersign.seal_inner'").count()
                + action.code.matches("key IN ('countersign.seal_inner'").count();
            assert_eq!(mentions, in_statements, "{}", action.name);
        }
    }

    #[test]
    fn a_digest_is_that_of_the_database() {
        assert_eq!(
            digest_of("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
