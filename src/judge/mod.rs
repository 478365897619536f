//! THE LADDER: claims and evidence in, a verdict out. A pure function: no rig, no clock, no file.

mod case;
mod diagnosis;
mod predicates;
mod verdict;

pub use verdict::{
    ClaimVerdict, Coverage, Discrepancy, Finding, Identity, Measurement, Outcome, Status, Verdict,
};

use crate::audio::law::Law;
use crate::journal::{Condition, Evidence, JournalError};
use crate::scenario::{Claim, Profile, Scenario};
use case::Case;

/// What the judge must know of the bench and the board besides the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// What the ear is.
    pub ear: Ear,
    /// The board's gain law where the rig states it; it wins over what the console suggests.
    pub law: Option<Law>,
    /// Gain from the board's full output to the ear in dB; without it a missing tone proves
    /// nothing, because nobody knows how loud it should have been.
    pub path_gain_db: Option<f64>,
    /// What this kind of board is expected to do.
    pub profile: Profile,
}

/// The instrument outside the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ear {
    /// An electrical tap: lossless, exact zeros are lawful silence.
    Tap,
    /// A microphone: exact zeros mean that it is dead.
    Microphone,
}

/// Judges a session.
///
/// # Errors
/// When the recording is damaged or can't be read: nothing was judged then.
pub fn judge(
    scenario: &Scenario,
    terms: &Terms,
    evidence: &dyn Evidence,
) -> Result<Verdict, JournalError> {
    let case = Case::open(scenario, terms, evidence)?;
    let mut claims = Vec::new();
    for claim in &scenario.claims {
        claims.push(judge_claim(claim, &case)?);
    }
    let session = predicates::session::findings(scenario, &case);
    let verdict = Verdict {
        outcome: Outcome::of(claims.iter().map(|c| c.outcome).chain(outcomes_of(&session))),
        session,
        controls: case.controls(),
        coverage: case.coverage(scenario, &claims),
        notes: predicates::session::notes(scenario, &case),
        claims,
        identity: case.identity(),
        law: case.law().map(|(law, _)| law),
        until: case.story.until,
        incomplete: Vec::new(),
    };
    Ok(match evidence.condition() {
        Condition::Complete => verdict,
        Condition::Incomplete(why) => verdict.set_aside(why),
    })
}

fn outcomes_of(findings: &[Finding]) -> impl Iterator<Item = Outcome> {
    findings.iter().map(|f| Outcome::of_status(f.status, f.discrepancy))
}

fn judge_claim(claim: &Claim, case: &Case) -> Result<ClaimVerdict, JournalError> {
    let mut findings = Vec::new();
    for demand in &claim.demands {
        findings.push(predicates::finding(demand, case)?);
    }
    let contradiction = predicates::contradiction(claim, case);
    findings.extend(contradiction);
    findings.sort_by_key(|finding| finding.rung);
    Ok(ClaimVerdict::of(claim, findings))
}
