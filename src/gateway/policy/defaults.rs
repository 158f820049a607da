//! The policies that come with the daemon, for a directory that has none. It knows no rule.

use std::io::Write;
use std::path::Path;

use super::load::{SourceFile, cannot, policy_files};
use super::{Policies, PolicyError};

/// Name and text of every default file.
const FILES: [(&str, &str); 5] = [
    ("invoice_pay.cedar", include_str!("../../../policies/invoice_pay.cedar")),
    ("schema.cedarschema", include_str!("../../../policies/schema.cedarschema")),
    (
        "vendor_confirm_bank_details.cedar",
        include_str!("../../../policies/vendor_confirm_bank_details.cedar"),
    ),
    ("vendor_confirm_phone.cedar", include_str!("../../../policies/vendor_confirm_phone.cedar")),
    (
        "vendor_update_bank_details.cedar",
        include_str!("../../../policies/vendor_update_bank_details.cedar"),
    ),
];

impl Policies {
    /// The default policies; those of a directory that [`Policies::write_defaults`] filled, digest
    /// included.
    pub fn embedded() -> Result<Self, PolicyError> {
        let files = FILES.iter().map(|(name, text)| SourceFile {
            name: (*name).to_owned(),
            bytes: text.as_bytes().to_vec(),
        });
        Self::from_files("the default policies", files.collect())
    }

    /// Writes the default files to a directory that holds no policy file yet, and makes the
    /// directory where it is not there. Says whether it wrote: rules of somebody's own are never
    /// mixed with ours.
    pub fn write_defaults(dir: &Path) -> Result<bool, PolicyError> {
        std::fs::create_dir_all(dir).map_err(|source| cannot("write", dir, source))?;
        if !policy_files(dir)?.is_empty() {
            return Ok(false);
        }
        for (name, text) in FILES {
            let path = dir.join(name);
            std::fs::File::create_new(&path)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|source| cannot("write", &path, source))?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_directory_is_embedded() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
        let (embedded, loaded) = (Policies::embedded().unwrap(), Policies::load(&dir).unwrap());
        assert_eq!(embedded.digest(), loaded.digest());
    }

    #[test]
    fn an_empty_directory_gets_the_defaults_and_keeps_them() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("policies");
        assert!(Policies::write_defaults(&dir).unwrap());
        let digest = Policies::load(&dir).unwrap().digest().to_owned();
        assert_eq!(digest, Policies::embedded().unwrap().digest());
        assert!(!Policies::write_defaults(&dir).unwrap());
        assert_eq!(Policies::load(&dir).unwrap().digest(), digest);
    }

    #[test]
    fn rules_of_somebodys_own_are_never_mixed_with_ours() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own.cedar");
        std::fs::write(&own, "// mine\n").unwrap();
        assert!(!Policies::write_defaults(dir.path()).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read_to_string(&own).unwrap(), "// mine\n");
    }
}
