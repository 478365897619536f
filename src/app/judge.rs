//! `earwitness judge`: a recording, or a foreign session on its way through memory, to a verdict.

use super::evaluate::{Judgement, Refusal, evaluate, open};
use super::output::spares_evidence;
use super::{Exit, Streams, find};
use crate::cli::JudgeArguments;
use crate::journal::{Evidence, JournalError, NamedText};
use crate::judge::{Ear, Verdict};
use crate::report::{self, Judged, Refused, Style};
use crate::scenario::{Scenario, text};
use crate::time::Moment;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

pub(super) fn run(arguments: &JudgeArguments, style: Style, streams: &mut Streams) -> Exit {
    let (mut judged, mut refused) = (Vec::new(), Vec::new());
    let mut exit = Exit::Passed;
    let sessions = find::sessions(&arguments.folders);
    if let Some(report) = file(arguments.json.as_deref()) {
        let folders = sessions.iter().map(|(folder, _)| folder.as_path());
        if let Err(why) = spares_evidence(report, folders, arguments.scenario.as_deref()) {
            return no_report(report, &why, streams);
        }
    }
    match arguments.scenario.as_deref().map(read_scenario).transpose() {
        Ok(scenario) => {
            for (folder, found) in sessions {
                match found.and_then(|()| judge_folder(&folder, scenario.as_ref())) {
                    Ok(session) => {
                        exit = exit.and(session.verdict.outcome.into());
                        judged.push(session);
                    }
                    Err(refusal) => {
                        exit = exit.and(refusal.exit());
                        refused.push(self::refused(&folder, &refusal, refusal.exit()));
                    }
                }
            }
        }
        Err((path, why)) => {
            exit = Exit::Invalid;
            refused.push(self::refused(path, &why, exit));
        }
    }
    Report { judged, refused, exit }.tell(
        arguments.json.as_deref(),
        !arguments.quiet,
        style,
        streams,
    )
}

/// The file that a report goes to, if it goes to one.
pub(super) fn file(json: Option<&Path>) -> Option<&Path> {
    json.filter(|path| *path != Path::new("-"))
}

/// Nothing is judged when its report would do harm.
pub(super) fn no_report(path: &Path, why: &str, streams: &mut Streams) -> Exit {
    streams.complain(&format!("NO REPORT  {}: {why}\n", path.display()));
    Exit::Invalid
}

/// What became of everything that was asked for.
pub(super) struct Report {
    pub judged: Vec<Judged>,
    pub refused: Vec<Refused>,
    pub exit: Exit,
}

impl Report {
    /// Tells it to programs and people; what can't be told makes the exit worse.
    pub(super) fn tell(
        self,
        json: Option<&Path>,
        loud: bool,
        style: Style,
        streams: &mut Streams,
    ) -> Exit {
        let Report { judged, refused, mut exit } = self;
        let to_stdout = json == Some(Path::new("-"));
        // The report before the screens: whoever reads them may go away.
        if let Some(path) = json {
            let text = format!("{:#}\n", report::run_json(&judged, &refused, exit.code()));
            if to_stdout {
                streams.result(&text);
            } else if let Err(error) = fs::write(path, text) {
                streams.complain(&format!("NO REPORT  {}: {error}\n", path.display()));
                exit = exit.and(Exit::CouldNotJudge);
            }
        }
        let mut tell = |text: &str, is_result: bool| match is_result && !to_stdout {
            true => streams.result(text),
            false => streams.complain(text),
        };
        for session in judged.iter().filter(|_| loud) {
            tell(&(report::screen(session, style) + "\n"), true);
        }
        for refused in &refused {
            // That a session could not be judged is a result, a wrong command line is not.
            let is_result = loud && refused.exit_code != Exit::Invalid.code();
            tell(&(report::refusal(refused, style) + "\n"), is_result);
        }
        if loud && judged.len() + refused.len() > 1 {
            tell(&report::tally(&judged, &refused, exit.code()), true);
        }
        exit
    }
}

pub(super) fn refused(path: &Path, why: &dyn std::fmt::Display, exit: Exit) -> Refused {
    Refused { path: path.display().to_string(), reason: why.to_string(), exit_code: exit.code() }
}

fn judge_folder(folder: &Path, scenario: Option<&NamedText>) -> Result<Judged, Refusal> {
    tracing::info!(folder = %folder.display(), "judging");
    judged(folder, open(folder, scenario)?.as_ref(), scenario)
}

/// Judges what was opened or has just been recorded.
pub(super) fn judged(
    folder: &Path,
    evidence: &dyn Evidence,
    scenario: Option<&NamedText>,
) -> Result<Judged, Refusal> {
    let Judgement { scenario, text, rig, terms, verdict } = evaluate(evidence, scenario)?;
    for claim in &verdict.claims {
        for finding in &claim.findings {
            let (rung, status) = (finding.rung.to_string(), finding.status);
            tracing::debug!(claim = claim.id, rung, ?status, "{}", finding.reason);
        }
    }
    Ok(Judged {
        path: folder.display().to_string(),
        head: evidence.head().clone(),
        rig: rig.name,
        ear: match terms.ear {
            Ear::Tap => "tap",
            Ear::Microphone => "microphone",
        },
        scenario: scenario.name,
        question: scenario.question,
        scenario_sha256: sha256(&text.text),
        cited_at: cited_at(evidence, &verdict)?,
        verdict,
    })
}

/// When the records that a verdict cites were made.
fn cited_at(
    evidence: &dyn Evidence,
    verdict: &Verdict,
) -> Result<BTreeMap<u64, Moment>, JournalError> {
    let findings = verdict.claims.iter().flat_map(|c| &c.findings).chain(&verdict.session);
    let cited: BTreeSet<u64> = findings.flat_map(|f| &f.records).copied().collect();
    let times = evidence.records().map(|r| r.map(|r| (r.n, r.at)));
    times.filter(|t| t.as_ref().map_or(true, |(n, _)| cited.contains(n))).collect()
}

pub(super) fn read_scenario(path: &Path) -> Result<NamedText, (&Path, String)> {
    let text = read_text(path).map_err(|why| (path, why))?;
    match Scenario::load(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err((path, error.to_string())),
    }
}

/// A text file, under its path as it was given.
pub(super) fn read_text(path: &Path) -> Result<NamedText, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    text(&path.display().to_string(), bytes).map_err(|error| error.to_string())
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
