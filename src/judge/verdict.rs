//! The words of a verdict.

use super::diagnosis;
use crate::audio::law::Law;
use crate::scenario::{Claim, Rung};
use crate::time::Moment;
use serde::Serialize;
use std::fmt;

/// What evidence says about one demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Witnessed.
    Proven,
    /// Witnessed to be otherwise.
    Refuted,
    /// Nobody looked, or nobody could see. Never proven.
    Silent,
}

/// The pattern of findings that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Discrepancy {
    /// Software and physics agree.
    Agree,
    /// Says yes, nothing happens.
    SilentSuccess,
    /// Says no, and the effect is absent or was not witnessed.
    Refused,
    /// Says no or nothing, effect present.
    PhantomEffect,
    /// The reported value is not the one that was set.
    StaleReadback,
    /// The device limited the value that was set, and says so.
    Clamped,
    /// The effect has the wrong size.
    WrongMagnitude,
    /// The effect has the wrong sign.
    WrongDirection,
    /// The effect is that of another codec's law.
    WrongLaw,
    /// The answer came after its limit.
    Late,
    /// What was heard is not our stimulus.
    WrongSource,
    /// The ear was deaf.
    RigBlind,
    /// The evidence is not enough.
    Inconclusive,
    /// No answer.
    NoReply,
    /// An answer that can't be read, or that lacks what it must hold.
    MalformedReply,
    /// The device does not offer what was asked of it.
    NotListed,
    /// A restart that the bench did not cause, or a panic.
    UnexpectedReset,
    /// Several restarts in a row.
    BootLoop,
    /// The restart never came.
    NoReboot,
    /// Another firmware runs than the one the session began with.
    WrongBuild,
}

impl Discrepancy {
    /// The name in JSON, JUnit and on the terminal.
    pub fn name(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .expect("a unit variant serialises to its name")
    }
}

/// How a claim or a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything required is proven.
    Pass,
    /// A required rung is silent.
    Inconclusive,
    /// The bench or its surroundings could not judge.
    Error,
    /// The device is wrong.
    Fail,
}

impl Outcome {
    /// The worst of several: a proven failure is not hidden by a bench that could not judge.
    pub fn of(outcomes: impl IntoIterator<Item = Outcome>) -> Outcome {
        outcomes.into_iter().max().unwrap_or(Outcome::Error)
    }

    pub(super) fn of_status(status: Status, discrepancy: Option<Discrepancy>) -> Outcome {
        match (status, discrepancy) {
            (Status::Proven, _) => Outcome::Pass,
            (Status::Refuted, _) => Outcome::Fail,
            (Status::Silent, Some(Discrepancy::RigBlind)) => Outcome::Error,
            (Status::Silent, _) => Outcome::Inconclusive,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Error => "error",
        })
    }
}

/// A number behind a finding.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// What was measured, `level_step`.
    pub name: String,
    /// The number.
    pub value: f64,
    /// Its unit, `dB`, `dBFS`, `s`, `Hz`, `1`.
    pub unit: &'static str,
    /// Expanded uncertainty (k = 2) in the same unit; `None` for counts.
    pub uncertainty: Option<f64>,
    /// Lower and upper limit, where a claim sets them.
    pub limits: Option<[f64; 2]>,
    /// Inside or outside by more than the uncertainty, or inconclusive; `None` without limits.
    pub outcome: Option<Outcome>,
}

impl Measurement {
    pub(super) fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        let name = name.into();
        Measurement { name, value, unit, uncertainty: None, limits: None, outcome: None }
    }

    pub(super) fn plus_minus(self, uncertainty: f64) -> Self {
        Measurement { uncertainty: Some(uncertainty), ..self }
    }

    /// Sets the limits and holds the value against them, guarded by the uncertainty.
    pub(super) fn within(self, low: f64, high: f64) -> Self {
        let (value, u) = (self.value, self.uncertainty.unwrap_or(0.0));
        let outcome = match value {
            v if v >= low + u && v <= high - u => Outcome::Pass,
            v if v < low - u || v > high + u => Outcome::Fail,
            _ => Outcome::Inconclusive,
        };
        Measurement { limits: Some([low, high]), outcome: Some(outcome), ..self }
    }
}

/// What evidence says about one demand, and where it says so.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rung of the demand.
    pub rung: Rung,
    /// The answer.
    pub status: Status,
    /// Why, in one sentence.
    pub reason: String,
    /// Numbers of the records that show it.
    pub records: Vec<u64>,
    /// The name of the pattern, unless all is well.
    pub discrepancy: Option<Discrepancy>,
    /// Numbers behind it.
    pub measurements: Vec<Measurement>,
    /// Why even a proven finding is weak evidence.
    pub weak: Option<String>,
}

impl Finding {
    pub(super) fn new(rung: Rung, status: Status, reason: impl Into<String>) -> Self {
        Finding {
            rung,
            status,
            reason: reason.into(),
            records: Vec::new(),
            discrepancy: None,
            measurements: Vec::new(),
            weak: None,
        }
    }

    pub(super) fn proven(rung: Rung, reason: impl Into<String>) -> Self {
        Finding::new(rung, Status::Proven, reason)
    }

    pub(super) fn refuted(rung: Rung, name: Discrepancy, reason: impl Into<String>) -> Self {
        Finding { discrepancy: Some(name), ..Finding::new(rung, Status::Refuted, reason) }
    }

    pub(super) fn silent(rung: Rung, reason: impl Into<String>) -> Self {
        let name = Some(Discrepancy::Inconclusive);
        Finding { discrepancy: name, ..Finding::new(rung, Status::Silent, reason) }
    }

    pub(super) fn blind(reason: impl Into<String>) -> Self {
        let name = Some(Discrepancy::RigBlind);
        Finding { discrepancy: name, ..Finding::new(Rung::Physical, Status::Silent, reason) }
    }

    pub(super) fn citing(mut self, records: impl IntoIterator<Item = u64>) -> Self {
        self.records.extend(records);
        self.records.sort_unstable();
        self.records.dedup();
        self
    }
}

/// The verdict on one claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimVerdict {
    /// The claim.
    pub id: String,
    /// The rung up to which it must be proven.
    pub requires: Rung,
    /// How it ends.
    pub outcome: Outcome,
    /// The first refuted rung, else the first silent one that is required.
    pub first_broken: Option<Rung>,
    /// The name of the pattern.
    pub discrepancy: Discrepancy,
    /// One finding per demand, lowest rung first.
    pub findings: Vec<Finding>,
    /// Where to look next, nearest first.
    pub next: &'static [&'static str],
}

impl ClaimVerdict {
    /// Nothing may be refuted on any rung, and everything named up to the required rung must be
    /// proven.
    pub(super) fn of(claim: &Claim, findings: Vec<Finding>) -> Self {
        let required = |f: &&Finding| f.rung <= claim.requires;
        let refuted = findings.iter().find(|f| f.status == Status::Refuted);
        let blind = findings
            .iter()
            .filter(required)
            .find(|f| f.status == Status::Silent && f.discrepancy == Some(Discrepancy::RigBlind));
        let silent = findings.iter().filter(required).find(|f| f.status == Status::Silent);
        let broken = refused_or_phantom(refuted.or(blind).or(silent), &findings);
        let (finding, discrepancy) = broken.unzip();
        ClaimVerdict {
            id: claim.id.clone(),
            requires: claim.requires,
            outcome: broken.map_or(Outcome::Pass, |(f, d)| Outcome::of_status(f.status, Some(d))),
            first_broken: finding.map(|f| f.rung),
            discrepancy: discrepancy.unwrap_or(Discrepancy::Agree),
            next: broken.map_or(&[], |(f, d)| diagnosis::next(f, d)),
            findings,
        }
    }

    /// The finding that decided.
    pub fn decisive(&self) -> Option<&Finding> {
        let refuted = |f: &&Finding| f.status == Status::Refuted;
        let on_rung = |f: &&Finding| Some(f.rung) == self.first_broken;
        let broken = self.findings.iter().filter(on_rung);
        broken.clone().find(refuted).or_else(|| {
            broken
                .filter(|f| f.status == Status::Silent)
                .max_by_key(|f| f.discrepancy == Some(Discrepancy::RigBlind))
        })
    }
}

/// The name of what is broken. A device that said no has told the truth unless the effect is
/// there; one that limits a value shows it first on the console.
fn refused_or_phantom<'a>(
    broken: Option<&'a Finding>,
    findings: &[Finding],
) -> Option<(&'a Finding, Discrepancy)> {
    let finding = broken?;
    let mut physical = findings.iter().filter(|f| f.rung == Rung::Physical).peekable();
    let present = physical.peek().is_some() && physical.all(|f| f.status == Status::Proven);
    let clamped = findings.iter().any(|f| f.discrepancy == Some(Discrepancy::Clamped));
    let name = match finding.discrepancy {
        Some(Discrepancy::Refused | Discrepancy::NoReply)
            if present && finding.rung == Rung::Accepted =>
        {
            Discrepancy::PhantomEffect
        }
        // The console lacks the value that was asked for, because it tells the limited one.
        Some(Discrepancy::SilentSuccess) if clamped && finding.rung == Rung::Executed => {
            Discrepancy::Clamped
        }
        name => name.unwrap_or(Discrepancy::Agree),
    };
    Some((finding, name))
}

/// Which advertised tools the session says something about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Effect witnessed outside the device.
    pub physical: Vec<String>,
    /// Called, and witnessed outside the device to lack its effect.
    pub refuted: Vec<String>,
    /// Only read back or traced by the device itself.
    pub software_only: Vec<String>,
    /// Advertised and not exercised.
    pub not_exercised: Vec<String>,
}

/// Who a board says it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Board name of the build.
    pub board: Option<String>,
    /// Firmware version.
    pub firmware: Option<String>,
    /// SHA-256 of the running ELF.
    pub elf_sha256: Option<String>,
}

/// The verdict on a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// How the session ends: the worst of everything below.
    pub outcome: Outcome,
    /// One verdict per claim.
    pub claims: Vec<ClaimVerdict>,
    /// Findings that no claim has to ask for: unexpected resets, panics, steps that were left out.
    pub session: Vec<Finding>,
    /// What else happened that no claim speaks of, one sentence each; nothing follows from it.
    pub notes: Vec<String>,
    /// What was done to know that the ear hears, one sentence.
    pub controls: String,
    /// What was exercised.
    pub coverage: Coverage,
    /// Who the board says it is.
    pub identity: Identity,
    /// The law that the board's levels were held against, where it is known.
    pub law: Option<Law>,
    /// When the session ended.
    pub until: Moment,
    /// Why the recording is not whole; empty when it is.
    pub incomplete: Vec<String>,
}

impl Verdict {
    /// Findings that no claim has to ask for, each with where to look next, nearest first.
    pub fn session(&self) -> impl Iterator<Item = (&Finding, &'static [&'static str])> {
        self.session.iter().map(|finding| (finding, diagnosis::unasked(finding)))
    }

    /// The name of the worst that was found. A restart that nobody asked for explains more than
    /// the claims that suffered from it.
    pub fn discrepancy(&self) -> Discrepancy {
        let ends = |f: &&Finding| Outcome::of_status(f.status, f.discrepancy) == self.outcome;
        let session = self.session.iter().find(ends).and_then(|f| f.discrepancy);
        let claim = self.claims.iter().find(|c| c.outcome == self.outcome);
        session.or(claim.map(|c| c.discrepancy)).unwrap_or(match self.outcome {
            Outcome::Pass => Discrepancy::Agree,
            _ => Discrepancy::Inconclusive,
        })
    }

    /// Nothing is concluded from part of a session; the findings stay, as what was seen of it.
    pub(super) fn set_aside(mut self, why: &[String]) -> Self {
        self.outcome = Outcome::Error;
        self.incomplete = why.to_vec();
        for claim in &mut self.claims {
            claim.outcome = Outcome::Error;
            claim.first_broken = None;
            claim.discrepancy = Discrepancy::Inconclusive;
            claim.next = diagnosis::INCOMPLETE;
        }
        let Coverage { physical, refuted, software_only, .. } = &mut self.coverage;
        software_only.append(physical);
        software_only.append(refuted);
        self
    }
}
