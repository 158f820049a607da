//! Real daemons against a real Odoo, which is named by `COUNTERSIGN_ODOO_URL`, `_DATABASE`,
//! `_ADMIN_LOGIN` and `_ADMIN_PASSWORD`; without them every test says that it passes over.
//!
//! One fresh database serves all tests, in whatever processes and order they run. Each has a store,
//! vendors and bills of its own; what is prepared in Odoo is prepared once, under a lock. What was
//! booked is read from Odoo itself, by its administrator, and never from the daemon's word.

mod approving;
mod attacks;
mod bank;
mod beside;
mod crashes;
mod guarding;
mod managers;
mod paying;
#[path = "../../examples/odoo/people.rs"]
mod people;
mod proxy;
mod scene;
