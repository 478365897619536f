//! `head.json`: everything a verdict needs besides the records, written before the first of them.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Version of the recording format, the only one that this build writes and reads. Format 1 had no
/// seals, so nobody can tell whether such a recording is what was recorded.
pub const FORMAT: u32 = 2;

/// The head of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Version of the recording format.
    pub format: u32,
    /// The program that wrote it, `earwitness 0.1.0`.
    pub tool: String,
    /// Run id of 128 bits in the form of a ULID (26 characters, Crockford base 32); an import takes
    /// the bits from its evidence and texts, so that they hold no time.
    pub run_id: String,
    /// Where the evidence comes from.
    pub origin: Origin,
    /// Seed of everything random in the session.
    pub seed: u64,
    /// Calendar time at which the session began, milliseconds since 1970-01-01 UTC; 0 where nobody
    /// knows it.
    #[serde(default)]
    pub started_at_ms: u64,
    /// What was chosen for a software board; nothing where the board is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<SoftwareBoard>,
    /// The scenario, whole.
    pub scenario: NamedText,
    /// The rig, whole.
    pub rig: NamedText,
    /// The board profile, whole.
    pub profile: NamedText,
}

/// Where the evidence of a session comes from; printed in every headline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Software board in virtual time.
    Simulated,
    /// Software board over real sockets.
    Loopback,
    /// A real board.
    Live,
    /// A session recorded by another program; can be judged, not replayed.
    Imported,
}

/// What a software board was told to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftwareBoard {
    /// The name of its gain law.
    pub law: String,
    /// What is wrong with it, as it was named on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A file's name and its full text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedText {
    /// File name, for error messages.
    pub name: String,
    /// Everything in it.
    pub text: String,
}

impl NamedText {
    /// A text with the name under which errors speak of it.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        NamedText { name: name.into(), text: text.into() }
    }
}

/// A run id for what determines a run: the same parts always give the same one.
pub fn run_id(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        // With its length, so that no two lists of parts run together into the same bytes.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    crockford(&digest.finalize().into())
}

/// The first 128 bits as a ULID is written: 26 digits of Crockford's base 32, two bits unused.
fn crockford(digest: &[u8; 32]) -> String {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let bit = |k: usize| match k.checked_sub(2) {
        Some(k) => usize::from(digest[k / 8] >> (7 - k % 8) & 1),
        None => 0,
    };
    let digit = |n: usize| (0..5).fold(0, |value, k| 2 * value + bit(5 * n + k));
    (0..26).map(|n| char::from(DIGITS[digit(n)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_is_a_ulid() {
        assert_eq!(crockford(&[0; 32]), "0".repeat(26));
        assert_eq!(crockford(&[0xff; 32]), "7".to_owned() + &"Z".repeat(25));
        let mut one = [0; 32];
        one[15] = 1;
        assert_eq!(crockford(&one), "0".repeat(25) + "1");
    }
}
