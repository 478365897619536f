//! `earwitness judge`: a recording, or a foreign session on its way through memory, to a verdict.

use super::Exit;
use super::evaluate::{Judgement, Refusal, evaluate, open};
use crate::cli::JudgeArguments;
use crate::journal::{Evidence, NamedText};
use crate::judge::Ear;
use crate::report::{self, Judged, Style};
use crate::scenario::Scenario;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(super) fn run(
    arguments: &JudgeArguments,
    style: Style,
    out: &mut dyn Write,
) -> std::io::Result<Exit> {
    let scenario = match arguments.scenario.as_deref().map(read_scenario).transpose() {
        Ok(scenario) => scenario,
        Err(why) => {
            writeln!(out, "INVALID  {why}")?;
            return Ok(Exit::Invalid);
        }
    };
    let mut exit = Exit::Passed;
    let mut sessions = Vec::new();
    for folder in arguments.folders.iter().flat_map(|f| recordings_in(f)) {
        let label = label(&folder);
        match judge_folder(&folder, scenario.as_ref()) {
            Ok((evidence, judgement)) => {
                let label = label.unwrap_or_else(|| evidence.head().run_id.clone());
                exit = exit.and(judgement.verdict.outcome.into());
                sessions.push((label, evidence, judgement));
            }
            Err(refusal) => {
                let label = label.unwrap_or_else(|| folder.display().to_string());
                exit = exit.and(refusal.exit());
                let word = if refusal.exit() == Exit::Invalid { "INVALID" } else { "NO VERDICT" };
                let code = refusal.exit().code();
                writeln!(out, "{word}  {label}  exit {code}  the device was NOT judged")?;
                writeln!(out, "  {refusal}\n")?;
            }
        }
    }
    let judged: Vec<Judged> = sessions.iter().map(judged).collect();
    if !arguments.quiet {
        for session in &judged {
            writeln!(out, "{}", report::screen(session, style))?;
        }
    }
    if let Some(path) = &arguments.json {
        let text = format!("{:#}\n", report::run_json(&judged, exit.code()));
        if let Err(error) = fs::write(path, text) {
            writeln!(out, "NO REPORT  {}: {error}", path.display())?;
            exit = exit.and(Exit::CouldNotJudge);
        }
    }
    Ok(exit)
}

type Session = (String, Box<dyn Evidence>, Judgement);

fn judge_folder(
    folder: &Path,
    scenario: Option<&NamedText>,
) -> Result<(Box<dyn Evidence>, Judgement), Refusal> {
    tracing::info!(folder = %folder.display(), "judging");
    let evidence = open(folder, scenario)?;
    let judgement = evaluate(evidence.as_ref(), scenario)?;
    for claim in &judgement.verdict.claims {
        for finding in &claim.findings {
            let (rung, status) = (finding.rung.to_string(), finding.status);
            tracing::debug!(claim = claim.id, rung, ?status, "{}", finding.reason);
        }
    }
    Ok((evidence, judgement))
}

fn judged((label, evidence, judgement): &Session) -> Judged<'_> {
    Judged {
        label,
        head: evidence.head(),
        scenario: &judgement.scenario.name,
        scenario_sha256: sha256(&judgement.text.text),
        ear: match judgement.terms.ear {
            Ear::Tap => "tap",
            Ear::Microphone => "microphone",
        },
        verdict: &judgement.verdict,
    }
}

/// A folder is a recording itself, or everything below it that is one.
fn recordings_in(folder: &Path) -> Vec<PathBuf> {
    const DEPTH: usize = 5;
    let is_one = |f: &Path| {
        ["head.json", "records.jsonl", "events.jsonl"].iter().any(|name| f.join(name).exists())
    };
    let mut found = Vec::new();
    let mut open = vec![(folder.to_path_buf(), 0)];
    while let Some((here, depth)) = open.pop() {
        if is_one(&here) {
            found.push(here);
        } else if depth < DEPTH {
            let entries = fs::read_dir(&here).into_iter().flatten().flatten();
            let folders = entries.map(|e| e.path()).filter(|p| p.is_dir());
            open.extend(folders.map(|p| (p, depth + 1)));
        }
    }
    found.sort();
    if found.is_empty() { vec![folder.to_path_buf()] } else { found }
}

pub(super) fn read_scenario(path: &Path) -> Result<NamedText, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let text = NamedText::new(path.display().to_string(), text);
    Scenario::load(&text).map(|_| text).map_err(|error| error.to_string())
}

/// The folder's name; `None` for the number of an attempt, which names nothing.
fn label(folder: &Path) -> Option<String> {
    let name = folder.canonicalize().ok()?.file_name()?.display().to_string();
    (!name.bytes().all(|b| b.is_ascii_digit())).then_some(name)
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
