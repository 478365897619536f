//! `head.json`: everything a verdict needs besides the records, written before the first of them.

use serde::{Deserialize, Serialize};

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
