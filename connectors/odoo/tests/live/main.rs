//! The connector against a real Odoo 17.
//!
//! Needs a fresh database with the modules `account` and `base_iban` and no demonstration data, named
//! by `COUNTERSIGN_ODOO_URL`, `COUNTERSIGN_ODOO_DATABASE`, `COUNTERSIGN_ODOO_ADMIN_LOGIN` and
//! `COUNTERSIGN_ODOO_ADMIN_PASSWORD`; without them every test passes over and says so. The first
//! test to come prepares the database, the others find it prepared; vendors and bills are each
//! test's own.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod changing;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod guarding;
#[cfg(test)]
mod paying;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod wire;
