//! The exit codes, and which one wins.

use crate::judge::Outcome;
use crate::report;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Every scenario passed.
    Passed,
    /// The answer is no: a device failure.
    Failed,
    /// Usage, configuration or scenario file invalid; nothing was touched.
    Invalid,
    /// The bench could not judge.
    CouldNotJudge,
    /// No scenario or session was selected.
    NothingSelected,
    /// Inconclusive or flaky.
    Inconclusive,
    /// A bug in earwitness.
    Internal,
    /// Interrupted; reports and journals are complete up to there.
    Interrupted,
}

impl Exit {
    /// Every exit, strongest first: a proven failure must not hide behind another rig's cable.
    pub const BY_STRENGTH: [Exit; 8] = [
        Exit::Interrupted,
        Exit::Internal,
        Exit::Invalid,
        Exit::Failed,
        Exit::CouldNotJudge,
        Exit::Inconclusive,
        Exit::NothingSelected,
        Exit::Passed,
    ];

    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Passed => report::exit_code(Outcome::Pass),
            Exit::Failed => report::exit_code(Outcome::Fail),
            Exit::Invalid => 2,
            Exit::CouldNotJudge => report::exit_code(Outcome::Error),
            Exit::NothingSelected => 4,
            Exit::Inconclusive => report::exit_code(Outcome::Inconclusive),
            Exit::Internal => 70,
            Exit::Interrupted => 130,
        }
    }

    /// The strongest of two.
    pub fn and(self, other: Exit) -> Exit {
        let strength = |exit: &Exit| Exit::BY_STRENGTH.iter().position(|e| e == exit);
        if strength(&self) <= strength(&other) { self } else { other }
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Exit {
        match outcome {
            Outcome::Pass => Exit::Passed,
            Outcome::Fail => Exit::Failed,
            Outcome::Error => Exit::CouldNotJudge,
            Outcome::Inconclusive => Exit::Inconclusive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_not_hidden() {
        let of = |exits: &[Exit]| exits.iter().copied().fold(Exit::Passed, Exit::and).code();
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[Exit::CouldNotJudge, Exit::Failed, Exit::Inconclusive]), 1);
        assert_eq!(of(&[Exit::Inconclusive, Exit::CouldNotJudge]), 3);
        assert_eq!(of(&[Exit::Failed, Exit::Invalid]), 2);
        assert_eq!(of(&[Exit::NothingSelected, Exit::Inconclusive]), 5);
        assert_eq!(of(&[Exit::Invalid, Exit::Internal, Exit::Interrupted]), 130);
    }
}
