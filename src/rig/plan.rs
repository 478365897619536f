//! Rig files: one bench, its instruments, and what is known of the way from board to ear.

use crate::audio::law::Law;
use crate::journal::NamedText;
use crate::scenario::{FileError, Profile, decibels, did_you_mean, load};
use serde::Deserialize;
use toml::Spanned;

/// A rig, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What the ear is.
    pub ear: EarKind,
    /// The board's gain law, where the bench knows better than the board's own log.
    pub law: Option<Law>,
    /// Gain from the board's full output to the ear in dB.
    pub path_gain_db: Option<f64>,
    /// Name of the board profile, and where it stands.
    pub profile: Spanned<String>,
    /// In which world it works; `None` where there is none to work in (imports).
    pub world: Option<World>,
    /// How many passes an `interleave` may take at most.
    pub repeat_limit: u32,
}

/// The worlds in which a session can be run.
#[derive(Clone, Debug, PartialEq)]
pub enum World {
    /// The software board and its room in virtual time.
    Simulated {
        /// How the board turns a volume into gain.
        law: Law,
    },
}

/// The kinds of ears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarKind {
    /// Electrical, lossless; may lawfully be exactly zero.
    Tap,
    /// A microphone.
    Microphone,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    #[serde(rename = "version")]
    _version: i64,
    name: Spanned<String>,
    ear: EarKind,
    law: Option<Law>,
    path_gain: Option<Spanned<String>>,
    profile: Spanned<String>,
    repeat_limit: Option<Spanned<i64>>,
    simulated: Option<SimulatedFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SimulatedFile {
    law: Law,
}

/// Passes of an `interleave` when a rig doesn't say (facts/acoustics.md 7.3).
const REPEAT_LIMIT: u32 = 7;

impl Plan {
    /// The world in which it works.
    ///
    /// # Errors
    /// When there is none: the file describes the ear of an import.
    pub fn world_or_refuse(&self, file: &NamedText) -> Result<&World, FileError> {
        self.world.as_ref().ok_or_else(|| {
            let what = "this rig has no world to run in; it needs a table `[simulated]`";
            FileError::at(file, 0..0, what)
        })
    }

    /// Reads and checks a rig file.
    ///
    /// # Errors
    /// The first thing in it that is not as it should be, with its position.
    pub fn load(file: &NamedText) -> Result<Plan, FileError> {
        let raw: PlanFile = load(file)?;
        let gain = |text: Spanned<String>| {
            decibels(text.get_ref()).map_err(|what| FileError::at(file, text.span(), what))
        };
        if raw.name.get_ref().trim().is_empty() {
            return Err(FileError::at(file, raw.name.span(), "this must not be empty"));
        }
        Ok(Plan {
            name: raw.name.into_inner(),
            ear: raw.ear,
            law: raw.law,
            path_gain_db: raw.path_gain.map(gain).transpose()?,
            profile: raw.profile,
            world: raw.simulated.map(|SimulatedFile { law }| World::Simulated { law }),
            repeat_limit: match raw.repeat_limit {
                None => REPEAT_LIMIT,
                Some(limit) => match u32::try_from(*limit.get_ref()) {
                    Ok(passes @ 1..=100) => passes,
                    _ => {
                        let what = "`repeat_limit` is between 1 and 100";
                        return Err(FileError::at(file, limit.span(), what));
                    }
                },
            },
        })
    }

    /// Holds the profile that a recording brings against the one that its rig, read from `file`,
    /// asks for.
    ///
    /// # Errors
    /// When it is another one.
    pub fn accepts(&self, profile: &Profile, file: &NamedText) -> Result<(), FileError> {
        if self.profile.get_ref() == &profile.name {
            return Ok(());
        }
        let (rig, asked, given) = (&self.name, self.profile.get_ref(), &profile.name);
        let what =
            format!("the rig `{rig}` is for boards of the profile `{asked}`, not of `{given}`")
                + &did_you_mean(asked, [given.as_str()].into_iter());
        Err(FileError::at(file, self.profile.span(), what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rig_names_the_profile_of_its_boards() {
        let text = "version = 1\nname = \"a\"\near = \"tap\"\nprofile = \"other\"\n";
        let file = NamedText::new("rig.toml", text);
        let plan = Plan::load(&file).unwrap();
        let profile = Profile::load(&Profile::xiaozhi()).unwrap();
        let error = plan.accepts(&profile, &file).unwrap_err().to_string();
        let expected = "rig.toml:4:11: the rig `a` is for boards of the profile `other`, \
            not of `xiaozhi`";
        assert_eq!(error, expected);
        let file = NamedText::new("rig.toml", text.replace("other", "xiaozhi"));
        assert_eq!(Plan::load(&file).unwrap().accepts(&profile, &file), Ok(()));
    }
}
