//! Seals: by length and SHA-256 a finished session vouches for each of its files, to the bit.

use super::{JournalError, open_file};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

/// What a file must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of it, 64 lower-case hex digits.
    pub sha256: String,
}

/// The seals of a session by file name.
pub type Seals = BTreeMap<String, Seal>;

/// A seal in the making.
#[derive(Clone, Debug, Default)]
pub struct Sealing {
    bytes: u64,
    digest: Sha256,
}

impl Sealing {
    /// The next bytes of the file.
    pub fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.digest.update(bytes);
    }

    /// The seal of all of them.
    pub fn seal(self) -> Seal {
        let hex = |byte: &u8| format!("{byte:02x}");
        Seal { bytes: self.bytes, sha256: self.digest.finalize().iter().map(hex).collect() }
    }
}

impl Seal {
    /// The seal of these bytes.
    pub fn of(bytes: &[u8]) -> Seal {
        let mut sealing = Sealing::default();
        sealing.take(bytes);
        sealing.seal()
    }

    /// The seal of a file, read as a stream.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn of_file(path: &Path) -> std::io::Result<Seal> {
        let mut file = open_file(path)?;
        let mut sealing = Sealing::default();
        let mut block = vec![0; 1 << 16];
        loop {
            match file.read(&mut block)? {
                0 => return Ok(sealing.seal()),
                count => sealing.take(&block[..count]),
            }
        }
    }
}

/// Whether the file `name` is what the session's end vouched for; false when it is not there or
/// shorter, which is how a recording ends that was cut off or not copied whole.
pub(super) fn is_whole(folder: &Path, name: &str, seals: &Seals) -> Result<bool, JournalError> {
    let path = folder.join(name);
    let Some(seal) = seals.get(name) else {
        return Err(JournalError::Unsealed { path });
    };
    let length = match path.metadata() {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(JournalError::io(path)(error)),
    };
    if length < seal.bytes {
        return Ok(false);
    }
    if length > seal.bytes {
        let what = format!("it holds {length} bytes, {} were recorded", seal.bytes);
        return Err(JournalError::Changed { path, what });
    }
    let found = Seal::of_file(&path).map_err(JournalError::io(&path))?;
    holds(&path, &found, seal).map(|()| true)
}

/// Holds what a file is against what it must be.
pub(super) fn holds(path: &Path, found: &Seal, seal: &Seal) -> Result<(), JournalError> {
    if found == seal {
        return Ok(());
    }
    let what = format!("its SHA-256 is {}, recorded was {}", found.sha256, seal.sha256);
    Err(JournalError::Changed { path: path.into(), what })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4, the one-block example.
    #[test]
    fn a_seal_is_length_and_sha_256() {
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".into();
        assert_eq!(Seal::of(b"abc"), Seal { bytes: 3, sha256 });
    }
}
