//! THE PAPER: a verdict for people and for programs. Nothing is decided here.

mod json;
mod text;

pub use json::run_json;
pub use text::{Style, refusal, screen, tally};

use crate::journal::Head;
use crate::judge::{Discrepancy, Outcome, Verdict};
use crate::time::Moment;
use serde::Serialize;
use std::collections::BTreeMap;

/// A session and what became of it.
pub struct Judged {
    /// Its folder, as the user gave it.
    pub path: String,
    /// Its head.
    pub head: Head,
    /// The rig's name.
    pub rig: String,
    /// What the ear was, `tap` or `microphone`.
    pub ear: &'static str,
    /// Name of the scenario that judged it.
    pub scenario: String,
    /// The question of that scenario.
    pub question: String,
    /// Hash of that scenario's text.
    pub scenario_sha256: String,
    /// The verdict.
    pub verdict: Verdict,
    /// When each record was made that the verdict cites.
    pub cited_at: BTreeMap<u64, Moment>,
}

/// What was not judged at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Its path, as the user gave it.
    pub path: String,
    /// Why, and what to do about it.
    pub reason: String,
    /// How the program ends when nothing worse happens.
    pub exit_code: u8,
}

/// What no session of this program tests; distortion means rub & buzz too.
const UNTESTED: [&str; 3] = ["loudness", "distortion", "board microphone"];

/// What a verdict is called. One that could not be reached is not called an agreement.
fn discrepancy(verdict: &Verdict) -> Discrepancy {
    honest(verdict.outcome, verdict.discrepancy())
}

fn honest(outcome: Outcome, found: Discrepancy) -> Discrepancy {
    match (outcome, found) {
        (Outcome::Error | Outcome::Inconclusive, Discrepancy::Agree) => Discrepancy::Inconclusive,
        (_, discrepancy) => discrepancy,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_decided_is_no_agreement() {
        for undecided in [Outcome::Inconclusive, Outcome::Error] {
            assert_eq!(honest(undecided, Discrepancy::Agree), Discrepancy::Inconclusive);
        }
        assert_eq!(honest(Outcome::Pass, Discrepancy::Agree), Discrepancy::Agree);
        assert_eq!(honest(Outcome::Fail, Discrepancy::SilentSuccess), Discrepancy::SilentSuccess);
    }
}
