//! THE SCORE: what must be true, read from files that are checked completely before anything else
//! happens.

mod claim;
pub mod conductor;
mod file;
mod profile;
mod read;
mod references;
mod step;
mod units;
mod words;

pub use claim::{Claim, Demand, Expectation, ReadBack, Rung, Scenario};
pub use file::{FileError, Many, did_you_mean, load, nearest, text};
pub use profile::{Floor, Profile, Strength};
pub use step::{Act, Step, Wait};
pub use units::{dbfs, decibels, duration};

use crate::journal::NamedText;

/// The scenarios for imported sessions, by the kind that a session states.
pub fn for_imported(kind: &str) -> Option<NamedText> {
    let (name, text) = match kind {
        "volume" => ("imported-volume.toml", include_str!("../../scenarios/imported-volume.toml")),
        "reboot" => ("imported-reboot.toml", include_str!("../../scenarios/imported-reboot.toml")),
        _ => return None,
    };
    Some(NamedText::new(name, text))
}
