//! What must be true: claims and, rung by rung, what they demand.

use super::step::Step;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The rungs of the evidence ladder, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// The device says that it can.
    Listed,
    /// The device says yes.
    Accepted,
    /// There is a trace of doing.
    Executed,
    /// The device reports the new state.
    Readback,
    /// An instrument outside the device saw it.
    Physical,
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rung::Listed => "listed",
            Rung::Accepted => "accepted",
            Rung::Executed => "executed",
            Rung::Readback => "readback",
            Rung::Physical => "physical",
        })
    }
}

/// A scenario, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// File name without its ending.
    pub name: String,
    /// The question that it answers.
    pub question: String,
    /// How long a session may take at most. There the rest of the steps is left out, the board is
    /// put back, and the session ends in order. It can't pass then: what was left out is silent.
    pub limit: Duration,
    /// What to do; empty where another program did it (imported sessions).
    pub steps: Vec<Step>,
    /// What must be true.
    pub claims: Vec<Claim>,
}

/// One claim: proven when `requires` and every rung it names below are proven.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// The rung up to which it must be proven.
    pub requires: Rung,
    /// What it demands, lowest rung first.
    pub demands: Vec<Demand>,
}

/// One thing that must be true.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// The complete tool list holds a tool.
    Listed {
        /// Its name.
        tool: String,
    },
    /// Each call of a step is answered with a text.
    Accepted {
        /// The step's id.
        step: String,
        /// The text.
        text: String,
        /// How long the answer may take.
        within: Duration,
    },
    /// Each call of a step leaves a line on the console.
    Executed {
        /// The step's id.
        step: String,
        /// The line's text, or `TAG: text`; `{volume}` stands for the call's argument `volume`.
        log: String,
        /// How long it may take.
        within: Duration,
    },
    /// After the call of a step the board is back: a boot, its config request, a control channel
    /// and, where the console tells it, the state `idle`.
    Online {
        /// The step's id.
        step: String,
        /// How long the way back may take.
        within: Duration,
    },
    /// The status that a step asked for says what it should.
    Readback {
        /// The step's id.
        step: String,
        /// Path in the status, `audio_speaker.volume`.
        path: String,
        /// What must stand there.
        value: ReadBack,
        /// The step is repeated until it is answered: calls without an answer don't count.
        poll: bool,
        /// How long the answer may take.
        within: Duration,
    },
    /// The level changes from one play to another; pairs in order, their mean counts.
    LevelStep {
        /// Ids of the steps that play before.
        from: Vec<String>,
        /// Ids of the steps that play after.
        to: Vec<String>,
        /// By how much.
        expect: Expectation,
        /// Tolerance in dB.
        tolerance_db: f64,
    },
    /// The board restarts exactly once after the call of a step, in order and without a panic.
    Boot {
        /// The step's id.
        step: String,
        /// How long the ROM's banner may take.
        within: Duration,
    },
}

/// What a status must say.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadBack {
    /// This value.
    Equals(serde_json::Value),
    /// What another step's status said.
    SameAs(String),
    /// What another step's call asked for: its argument that is called like the path's last part.
    AsAsked(String),
}

/// By how much a level must change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expectation {
    /// What the codec's law promises for the volumes that were asked for.
    BoardLaw,
    /// A fixed step in dB.
    Decibels(f64),
}

impl Demand {
    /// The rung on which it stands.
    pub fn rung(&self) -> Rung {
        match self {
            Demand::Listed { .. } => Rung::Listed,
            Demand::Accepted { .. } => Rung::Accepted,
            Demand::Executed { .. } | Demand::Online { .. } => Rung::Executed,
            Demand::Readback { .. } => Rung::Readback,
            Demand::LevelStep { .. } | Demand::Boot { .. } => Rung::Physical,
        }
    }

    /// The steps that it speaks of.
    pub fn steps(&self) -> Vec<&str> {
        match self {
            Demand::Listed { .. } => Vec::new(),
            Demand::Accepted { step, .. }
            | Demand::Executed { step, .. }
            | Demand::Online { step, .. }
            | Demand::Boot { step, .. } => vec![step],
            Demand::Readback { step, value, .. } => match value {
                ReadBack::Equals(_) => vec![step],
                ReadBack::SameAs(other) | ReadBack::AsAsked(other) => vec![step, other],
            },
            Demand::LevelStep { from, to, .. } => {
                from.iter().chain(to).map(String::as_str).collect()
            }
        }
    }
}
