//! `earwitness judge`: a recording, or a foreign session on its way through memory, to a verdict.

use super::Exit;
use crate::cli::JudgeArguments;
use crate::journal::{Evidence, JournalError, NamedText, Recording};
use crate::judge::{self, Ear, Terms};
use crate::report::{self, Judged, Style};
use crate::rig::import::{self, ImportError, Options};
use crate::rig::plan::{EarKind, Plan};
use crate::scenario::{FileError, Profile, Scenario};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Why a folder was not judged.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error("in its {part}: {error}; the recording's head was changed, restore it")]
    Head { part: &'static str, error: FileError },
    #[error("{0} is no folder; give a recording or a recorded session")]
    NoFolder(PathBuf),
}

impl Refusal {
    fn exit(&self) -> Exit {
        match self {
            Refusal::NoFolder(_) => Exit::Invalid,
            Refusal::Import(_) => Exit::Invalid,
            Refusal::Journal(JournalError::NotARecording { .. }) => Exit::Invalid,
            Refusal::Journal(_) | Refusal::Head { .. } => Exit::CouldNotJudge,
        }
    }
}

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
    let mut heads = Vec::new();
    for folder in arguments.folders.iter().flat_map(|f| recordings_in(f)) {
        let label = label(&folder);
        match judge_folder(&folder, scenario.as_ref()) {
            Ok((evidence, text, judged)) => {
                exit = exit.and(judged.1.outcome.into());
                heads.push((label, evidence, text, judged));
            }
            Err(refusal) => {
                exit = exit.and(refusal.exit());
                let word = if refusal.exit() == Exit::Invalid { "INVALID" } else { "NO VERDICT" };
                let code = refusal.exit().code();
                writeln!(out, "{word}  {label}  exit {code}  the device was NOT judged")?;
                writeln!(out, "  {refusal}\n")?;
            }
        }
    }
    let judged: Vec<Judged> = heads
        .iter()
        .map(|(label, evidence, text, (ear, verdict))| Judged {
            label,
            head: evidence.head(),
            scenario: scenario_name(text),
            scenario_sha256: sha256(&text.text),
            ear: match ear {
                Ear::Tap => "tap",
                Ear::Microphone => "microphone",
            },
            verdict: verdict.clone(),
        })
        .collect();
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

type Outcome = (Box<dyn Evidence>, NamedText, (Ear, judge::Verdict));

fn judge_folder(folder: &Path, scenario: Option<&NamedText>) -> Result<Outcome, Refusal> {
    let evidence = open(folder, scenario)?;
    let head = evidence.head().clone();
    let text = scenario.unwrap_or(&head.scenario).clone();
    let in_head = |part| move |error| Refusal::Head { part, error };
    let scenario = Scenario::load(&text).map_err(in_head("scenario"))?;
    let plan = Plan::load(&head.rig).map_err(in_head("rig"))?;
    let terms = Terms {
        ear: match plan.ear {
            EarKind::Tap => Ear::Tap,
            EarKind::Microphone => Ear::Microphone,
        },
        law: plan.law,
        path_gain_db: plan.path_gain_db,
        profile: Profile::load(&head.profile).map_err(in_head("profile"))?,
    };
    let verdict = judge::judge(&scenario, &terms, evidence.as_ref())?;
    Ok((evidence, text, (terms.ear, verdict)))
}

/// A recording is read from the disk; a foreign session is imported into memory as a tap.
fn open(folder: &Path, scenario: Option<&NamedText>) -> Result<Box<dyn Evidence>, Refusal> {
    if !folder.is_dir() {
        return Err(Refusal::NoFolder(folder.into()));
    }
    if folder.join("events.jsonl").exists() && !folder.join("head.json").exists() {
        let options = Options { scenario: scenario.cloned(), ..Options::default() };
        return Ok(Box::new(import::import(folder, &options, &super::import::shipped())?));
    }
    Ok(Box::new(Recording::open(folder)?))
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

fn label(folder: &Path) -> String {
    folder.file_name().map_or_else(|| folder.display().to_string(), |n| n.display().to_string())
}

fn scenario_name(text: &NamedText) -> &str {
    let name = text.name.rsplit('/').next().unwrap_or(&text.name);
    name.strip_suffix(".toml").unwrap_or(name)
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
