//! What the connector must be told, and what cannot be right.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use countersign_erp_source::{Clock, CompanyId};
use secrecy::SecretString;

/// One of the three identities, as Odoo knows it.
#[derive(Debug, Clone)]
pub struct Credential {
    /// The login.
    pub login: String,
    /// The password or API key.
    pub password: SecretString,
}

/// All that is needed to work with one database of one Odoo. The key that seals orders is not among
/// it: the connector hands over what was sealed elsewhere.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address, such as `https://odoo.example.com`.
    pub url: String,
    /// The database, since Odoo answers for every one that it can reach.
    pub database: String,
    /// Whether an address without TLS may be used that is not on this host.
    pub allow_plaintext: bool,
    /// Reads bills, vendors, accounts.
    pub reader: Credential,
    /// Hands sealed orders over.
    pub payer: Credential,
    /// Hands sealed changes of bank details over.
    pub bank_admin: Credential,
    /// Countersign's companies and their ids in Odoo.
    pub companies: BTreeMap<CompanyId, i32>,
    /// The time zone of business dates.
    pub time_zone: Tz,
    /// How long one call may take. Longer than Odoo tries by itself, or every busy moment becomes
    /// an unknown outcome.
    pub call_deadline: Duration,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
}

/// What cannot be right in the options, found before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// Not an address of a server.
    #[error("`{url}` is no http or https address of a server")]
    Url {
        /// As it was given.
        url: String,
    },
    /// An address without TLS on another host.
    #[error("`{url}` has no TLS and is not on this host: use https, or set `allow_plaintext`")]
    Plaintext {
        /// As it was given.
        url: String,
    },
    /// The HTTP client could not be made.
    #[error("no HTTP client: {reason}")]
    Client {
        /// For the log.
        reason: String,
    },
    /// Odoo's ids are positive.
    #[error("company `{company}` has no id of Odoo")]
    Company {
        /// Which company.
        company: CompanyId,
    },
    /// Two companies with one id would see each other's records.
    #[error("companies `{first}` and `{second}` have the same id in Odoo")]
    CompanyTwice {
        /// One of them.
        first: CompanyId,
        /// The other.
        second: CompanyId,
    },
    /// Two identities with one login would have each other's powers.
    #[error("reader, payer and bank-admin need three different logins")]
    SharedLogin,
}

/// Each company has an id of its own.
pub(crate) fn check_companies(companies: &BTreeMap<CompanyId, i32>) -> Result<(), OptionsError> {
    let mut by_id = BTreeMap::new();
    for (company, id) in companies {
        if *id <= 0 {
            return Err(OptionsError::Company { company: company.clone() });
        }
        if let Some(first) = by_id.insert(*id, company) {
            let (first, second) = (first.clone(), company.clone());
            return Err(OptionsError::CompanyTwice { first, second });
        }
    }
    Ok(())
}

/// Three identities are three logins.
pub(crate) fn check_logins(logins: [&str; 3]) -> Result<(), OptionsError> {
    let [reader, payer, bank_admin] = logins;
    if reader == payer || payer == bank_admin || bank_admin == reader {
        return Err(OptionsError::SharedLogin);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn company(id: &str) -> CompanyId {
        CompanyId::new(id).unwrap()
    }

    #[test]
    fn no_two_companies_share_an_id_and_none_has_zero() {
        let two = |left, right| BTreeMap::from([(company("a"), left), (company("b"), right)]);
        assert_eq!(check_companies(&two(1, 2)), Ok(()));
        let (first, second) = (company("a"), company("b"));
        assert_eq!(check_companies(&two(1, 1)), Err(OptionsError::CompanyTwice { first, second }));
        assert!(check_companies(&two(0, 1)).is_err());
        assert!(check_companies(&two(1, -1)).is_err());
    }

    #[test]
    fn no_two_identities_share_a_login() {
        assert_eq!(check_logins(["a", "b", "c"]), Ok(()));
        for logins in [["a", "a", "c"], ["a", "b", "b"], ["a", "b", "a"]] {
            assert_eq!(check_logins(logins), Err(OptionsError::SharedLogin));
        }
    }
}
