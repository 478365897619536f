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
    /// How far a reported value proves anything, by its path in the status reply.
    #[serde(default)]
    pub readback: BTreeMap<String, Strength>,
    /// Gain law by the log tag of the codec object.
    #[serde(default)]
    pub codecs: BTreeMap<String, Law>,
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
