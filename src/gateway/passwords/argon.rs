//! Argon2id in memory that is kept from one password to the next. A new allocation of 19 MiB for
//! each would stay with the process several times over, by the ways of most allocators.

use std::cell::RefCell;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::password_hash::{CustomizedPasswordHasher, Error, PasswordHasher, Result};
use argon2::{Algorithm, Argon2, Block, Params, Version};

/// Makes hashes in its own memory.
#[derive(Default)]
pub(super) struct Argon(RefCell<Vec<Block>>);

impl PasswordHasher<PasswordHash> for Argon {
    fn hash_password_with_salt(&self, password: &[u8], salt: &[u8]) -> Result<PasswordHash> {
        self.hash_password_customized(password, salt, None, None, Params::DEFAULT)
    }
}

/// With this the crate's own comparison runs on our memory.
impl CustomizedPasswordHasher<PasswordHash> for Argon {
    type Params = Params;

    fn hash_password_customized(
        &self,
        password: &[u8],
        salt: &[u8],
        algorithm: Option<&str>,
        version: Option<u32>,
        params: Params,
    ) -> Result<PasswordHash> {
        let algorithm = algorithm.map(Algorithm::try_from).transpose()?.unwrap_or_default();
        let version = version.map(Version::try_from).transpose()?.unwrap_or_default();
        let argon2 = Argon2::new(algorithm, version, params);
        let params = argon2.params();
        let mut memory = self.0.borrow_mut();
        memory.resize(params.block_count(), Block::new());
        let mut bytes = [0; Output::MAX_LENGTH];
        let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        let output = bytes.get_mut(..length).ok_or(Error::OutputSize)?;
        argon2.hash_password_into_with_memory(password, salt, output, memory.as_mut_slice())?;
        Ok(PasswordHash {
            algorithm: algorithm.ident(),
            version: Some(version.into()),
            params: ParamsString::try_from(params)?,
            salt: Some(Salt::new(salt)?),
            hash: Some(Output::new(output)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use argon2::password_hash::PasswordVerifier as _;

    use super::*;

    #[test]
    fn hashes_are_those_of_any_other_argon2id() {
        let (ours, theirs) = (Argon::default(), Argon2::default());
        for (password, salt) in [("one password", [7; 16]), ("another", [9; 16]), ("", [0; 16])] {
            let hash = ours.hash_password_with_salt(password.as_bytes(), &salt).unwrap();
            let other = theirs.hash_password_with_salt(password.as_bytes(), &salt).unwrap();
            assert_eq!(hash.to_string(), other.to_string(), "{password}");
            assert_eq!(ours.verify_password(password.as_bytes(), &other), Ok(()));
            let wrong = ours.verify_password(b"a wrong one", &other);
            assert_eq!(wrong, Err(Error::PasswordInvalid), "{password}");
        }
        // What other parameters made is compared with those.
        let params = Params::new(64, 3, 2, Some(24)).unwrap();
        let small = Argon2::new(Algorithm::Argon2i, Version::V0x10, params);
        let hash = small.hash_password_with_salt(b"one password", &[7; 16]).unwrap();
        assert_eq!(ours.verify_password(b"one password", &hash), Ok(()));
        assert_eq!(ours.verify_password(b"another", &hash), Err(Error::PasswordInvalid));
    }
}
