//! `earwitness run`: scenarios on a rig, recorded and judged. Every file is read and checked before
//! anything is run.

use super::import::next_attempt;
use super::judge::{Report, judged, refused};
use super::session::{Choices, Texts, simulate};
use super::{Exit, Streams};
use crate::cli::RunArguments;
use crate::journal::{Evidence as _, NamedText};
use crate::report::{Judged, Refused, Style};
use crate::rig::plan::Plan;
use crate::scenario::{Profile, Scenario};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: &RunArguments, style: Style, streams: &mut Streams) -> Exit {
    let (texts, refused) = load(arguments);
    let mut report = Report { judged: Vec::new(), refused, exit: Exit::Passed };
    if !report.refused.is_empty() {
        report.exit = Exit::Invalid;
    } else if texts.is_empty() {
        streams.complain("NOTHING SELECTED  no scenario; give files, a folder or names\n");
        return Exit::NothingSelected;
    } else if !arguments.dry_run {
        for texts in &texts {
            for seed in (arguments.seed..).take(arguments.repeat as usize) {
                let (fault, law) = (arguments.fault, arguments.law);
                let choices = Choices { seed, fault, law, snr13_db: None };
                match session(texts, &choices, &arguments.output_dir) {
                    Ok(session) => {
                        report.exit = report.exit.and(session.verdict.outcome.into());
                        report.judged.push(session);
                    }
                    Err(refused) => {
                        report.exit = report.exit.and(Exit::CouldNotJudge);
                        report.refused.push(refused);
                    }
                }
            }
        }
        // A nightly run that forgot its hardware must not be green.
        if is_ci() && !arguments.allow_simulated {
            streams.complain(
                "NOT LIVE  CI=true and the device was simulated: give --allow-simulated if that is \
                 meant\n",
            );
            report.exit = report.exit.and(Exit::CouldNotJudge);
        }
    }
    report.tell(arguments.json.as_deref(), !arguments.quiet, style, streams)
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Every scenario on every rig, checked; and what is wrong with the files.
fn load(arguments: &RunArguments) -> (Vec<Texts>, Vec<Refused>) {
    let (mut texts, mut wrong) = (Vec::new(), Vec::new());
    let mut note = |path: &Path, why: String| wrong.push(refused(path, &why, Exit::Invalid));
    let mut scenarios = Vec::new();
    for given in &arguments.scenarios {
        match files(given, "scenarios") {
            Ok(files) => scenarios.extend(files),
            Err(why) => note(given, why),
        }
    }
    for given in &arguments.rig {
        let rig = match files(given, "rigs").and_then(|files| match &files[..] {
            [file] => Ok(file.clone()),
            _ => Err("a rig is one file".into()),
        }) {
            Ok(rig) => rig,
            Err(why) => {
                note(given, why);
                continue;
            }
        };
        let profile = Profile::xiaozhi();
        let checked = read(&rig).and_then(|text| {
            let plan = Plan::load(&text).map_err(|e| e.to_string())?;
            let known = Profile::load(&profile).map_err(|e| e.to_string())?;
            plan.accepts(&known, &text).map_err(|e| e.to_string())?;
            plan.world_or_refuse(&text).map_err(|e| e.to_string())?;
            Ok(text)
        });
        let rig = match checked {
            Ok(rig) => rig,
            Err(why) => {
                note(&rig, why);
                continue;
            }
        };
        for path in &scenarios {
            let checked = read(path).and_then(|text| {
                let scenario = Scenario::load(&text).map_err(|e| e.to_string())?;
                scenario.check_runnable(&text).map_err(|e| e.to_string())?;
                Ok(text)
            });
            match checked {
                Ok(scenario) => {
                    texts.push(Texts { scenario, rig: rig.clone(), profile: profile.clone() });
                }
                Err(why) => note(path, why),
            }
        }
    }
    (texts, wrong)
}

/// The files that are meant by a path or a name; `room` holds those that have a name.
fn files(given: &Path, room: &str) -> Result<Vec<PathBuf>, String> {
    if given.is_file() {
        return Ok(vec![given.into()]);
    }
    let named = Path::new(room).join(given).with_extension("toml");
    if given.components().count() == 1 && named.is_file() {
        return Ok(vec![named]);
    }
    let entries = fs::read_dir(given)
        .map_err(|error| format!("{error}; there is no {} either", named.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<NamedText, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    Ok(NamedText::new(path.display().to_string(), text))
}

/// Runs, keeps and judges one session.
fn session(texts: &Texts, choices: &Choices, output: &Path) -> Result<Judged, Refused> {
    let name = |text: &NamedText| {
        Path::new(&text.name).file_stem().map(|s| s.display().to_string()).unwrap_or_default()
    };
    let (scenario, rig) = (name(&texts.scenario), name(&texts.rig));
    tracing::info!(scenario, rig, seed = choices.seed, "running");
    let here = output.join(&rig).join(&scenario);
    let wrong = |path: &Path, why: String| refused(path, &why, Exit::CouldNotJudge);
    let recording = simulate(texts, choices).map_err(|e| wrong(&here, e.to_string()))?;
    let run = output.join(&recording.head().run_id).join(rig).join(scenario);
    let folder = next_attempt(&run).map_err(|e| wrong(&run, e.to_string()))?;
    recording.save(&folder).map_err(|e| wrong(&folder, e.to_string()))?;
    judged(&folder, &recording, None).map_err(|e| wrong(&folder, e.to_string()))
}
