//! Board profiles: what a kind of board is expected to do.

use super::file::{FileError, load};
use crate::audio::law::Law;
use crate::journal::NamedText;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A board profile, checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    #[serde(rename = "version")]
    _version: i64,
    /// Its name, as rigs refer to it.
    pub name: String,
    /// Tools that no scenario may call.
    #[serde(default)]
    pub deny: Vec<String>,
    /// How far a reported value proves anything, by its path in the status reply.
    #[serde(default)]
    pub readback: BTreeMap<String, Strength>,
    /// The least stored value that a restart keeps, by its path: a smaller one becomes this.
    #[serde(default)]
    pub floor: BTreeMap<String, Floor>,
    /// What the firmware takes for a value that is not stored, by its path.
    #[serde(default)]
    pub default: BTreeMap<String, i64>,
    /// Gain law by the log tag of the codec object.
    #[serde(default)]
    pub codecs: BTreeMap<String, Law>,
}

/// What the firmware makes at boot of a stored value that it takes for unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Floor {
    /// A stored value up to this is raised.
    pub up_to: i64,
    /// To this.
    pub becomes: i64,
}

/// How far a value that the board reports proves anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// The very variable that the setter wrote: weak.
    SameVariable,
    /// Another source than the setter wrote.
    Independent,
}

impl Floor {
    /// What `value` is after a restart.
    pub fn raised(self, value: serde_json::Value) -> serde_json::Value {
        match value.as_i64() {
            Some(low) if low <= self.up_to => self.becomes.into(),
            _ => value,
        }
    }
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// The first thing in it that is not as it should be.
    pub fn load(file: &NamedText) -> Result<Profile, FileError> {
        load(file)
    }

    /// The profile of every xiaozhi-esp32 board.
    pub fn xiaozhi() -> NamedText {
        NamedText::new("xiaozhi.toml", include_str!("../../rigs/boards/xiaozhi.toml"))
    }
}
