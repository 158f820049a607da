//! One key of 32 random bytes in one file: base64, mode 0600, made once.

use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::KeysError;

/// More than this is no key of ours.
const BYTES_MAX: u64 = 256;

pub(super) fn make_folder(folder: &Path) -> Result<(), KeysError> {
    let failed = |source| KeysError::Io { path: folder.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let mode = fs::metadata(folder).map_err(failed)?.permissions().mode() & 0o777;
    // Who can write to the folder can put a key of his own in a key's place.
    if mode & 0o022 != 0 {
        return Err(KeysError::WritableByOthers { path: folder.to_owned(), mode });
    }
    Ok(())
}

/// Reads the key, or makes it if there is none. Of several processes that do so at once one makes
/// it and all read the same.
pub(super) fn read_or_make(path: &Path) -> Result<[u8; 32], KeysError> {
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    make(path)?;
    let gone = || KeysError::Io { path: path.to_owned(), source: ErrorKind::NotFound.into() };
    read(path)?.ok_or_else(gone)
}

fn read(path: &Path) -> Result<Option<[u8; 32]>, KeysError> {
    let failed = |source| KeysError::Io { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeysError::ReadableByOthers { path: path.to_owned(), mode });
    }
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
    let key = STANDARD.decode(text.trim_ascii_end()).ok().and_then(|key| key.try_into().ok());
    key.map(Some).ok_or_else(|| KeysError::Malformed { path: path.to_owned() })
}

fn make(path: &Path) -> Result<(), KeysError> {
    let failed = |source| KeysError::Io { path: path.to_owned(), source };
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut key = [0; 32];
    rand::fill(&mut key).ok().ok_or(KeysError::NoRandomness)?;
    // The file is whole and on disk before it has its name, and it never takes another's place.
    let mut file = tempfile::Builder::new()
        .prefix(".new-key-")
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)
        .map_err(failed)?;
    writeln!(file, "{}", STANDARD.encode(key)).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    match file.persist_noclobber(path) {
        Ok(_) => File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed),
        Err(refused) if refused.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(refused) => Err(failed(refused.error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_made_by_many_at_once_are_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.key");
        let found: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| read_or_make(&path))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
        });
        assert!(found.iter().all(|key| *key == found[0]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }
}
