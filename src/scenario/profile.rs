//! Board profiles: what a kind of board is expected to do.

use super::file::{FileError, load};
use super::words;
use crate::audio::law::Law;
use crate::journal::NamedText;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Spanned;

/// A board profile, checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    #[serde(rename = "version")]
    _version: i64,
    /// Its name, as rigs refer to it.
    #[serde(deserialize_with = "words::text")]
    pub name: String,
    /// Tools that no scenario may call: the board would not come back from them.
    #[serde(default)]
    pub deny: Vec<Spanned<String>>,
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
#[serde(try_from = "FloorFile")]
pub struct Floor {
    /// A stored value up to this is raised.
    pub up_to: i64,
    /// To this.
    pub becomes: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FloorFile {
    up_to: i64,
    becomes: i64,
}

impl TryFrom<FloorFile> for Floor {
    type Error = String;
    fn try_from(FloorFile { up_to, becomes }: FloorFile) -> Result<Self, String> {
        match up_to < becomes {
            true => Ok(Floor { up_to, becomes }),
            false => Err(format!("a value up to {up_to} is not raised when it becomes {becomes}")),
        }
    }
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
        let profile: Profile = load(file)?;
        match profile.deny.iter().find(|tool| tool.get_ref().trim().is_empty()) {
            Some(blank) => Err(FileError::at(file, blank.span(), "this must not be empty")),
            None => Ok(profile),
        }
    }

    /// Whether no scenario may call a tool.
    pub fn denies(&self, tool: &str) -> bool {
        self.deny.iter().any(|denied| denied.get_ref() == tool)
    }

    /// The profile of every xiaozhi-esp32 board.
    pub fn xiaozhi() -> NamedText {
        NamedText::new("xiaozhi.toml", include_str!("../../rigs/boards/xiaozhi.toml"))
    }
}
