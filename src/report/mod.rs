//! THE PAPER: a verdict for people and for programs. Nothing is decided here.

mod json;
mod text;

pub use json::run_json;
pub use text::{Style, screen};

use crate::journal::Head;
use crate::judge::{Outcome, Verdict};

/// A session and what became of it.
pub struct Judged<'a> {
    /// What the user called it: the folder.
    pub label: &'a str,
    /// Its head.
    pub head: &'a Head,
    /// Name of the scenario that judged it.
    pub scenario: &'a str,
    /// Hash of that scenario's text.
    pub scenario_sha256: String,
    /// What the ear was, `tap` or `microphone`.
    pub ear: &'static str,
    /// The verdict.
    pub verdict: &'a Verdict,
}

/// Exit code of an outcome for one session.
pub fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Pass => 0,
        Outcome::Fail => 1,
        Outcome::Error => 3,
        Outcome::Inconclusive => 5,
    }
}
