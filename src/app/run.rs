//! `earwitness run`: scenarios on a rig, recorded and judged. Every file is read and checked before
//! anything is run.

use super::judge::{Report, file, judged, no_report, read_text, refused};
use super::output::{folder_name, next_attempt, spares_evidence};
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
    let (texts, refused) = load(arguments, streams);
    if let Some(report) = file(arguments.json.as_deref()) {
        let read = texts.iter().flat_map(|texts| [&texts.scenario.name, &texts.rig.name]);
        let given = arguments.scenarios.iter().chain(&arguments.rig).map(PathBuf::as_path);
        if let Err(why) = spares_evidence(report, [], read.map(Path::new).chain(given)) {
            return no_report(report, &why, streams);
        }
    }
    let mut report = Report { judged: Vec::new(), refused, exit: Exit::Passed };
    // The repeats after the first.
    let more = arguments.repeat.saturating_sub(1);
    if !report.refused.is_empty() {
        report.exit = Exit::Invalid;
    } else if texts.is_empty() {
        streams.complain("NOTHING SELECTED  no scenario; give files, a folder or names\n");
        report.exit = Exit::NothingSelected;
    } else if arguments.seed.checked_add(more).is_none() {
        streams.complain("INVALID  --seed and --repeat: there are no seeds above 2^64 - 1\n");
        report.exit = Exit::Invalid;
    } else if !arguments.dry_run {
        for texts in &texts {
            for seed in arguments.seed..=arguments.seed + more {
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
fn load(arguments: &RunArguments, streams: &mut Streams) -> (Vec<Texts>, Vec<Refused>) {
    let mut wrong = Vec::new();
    let mut note = |path: &Path, why: String| wrong.push(refused(path, &why, Exit::Invalid));
    let mut scenarios = Vec::new();
    for given in &arguments.scenarios {
        let found = match files(given, "scenarios") {
            Ok(found) => found,
            Err(why) => {
                note(given, why);
                continue;
            }
        };
        for path in found {
            let checked = read_text(&path).and_then(|text| {
                let scenario = Scenario::load(&text).map_err(|e| e.to_string())?;
                folder_name(&text).map(|_| (scenario, text))
            });
            match checked {
                // Whoever names a folder means what can be run in it.
                Ok((scenario, _))
                    if scenario.steps.is_empty() && path != *given && given.is_dir() =>
                {
                    let path = path.display();
                    streams.complain(&format!("PASSED OVER  {path}: it has no [[step]] to run\n"));
                }
                Ok(checked) => scenarios.push((path, checked)),
                Err(why) => note(&path, why),
            }
        }
    }
    let mut texts = Vec::new();
    for given in &arguments.rig {
        let (rig, profile) = match read_rig(given) {
            Ok(rig) => rig,
            Err((path, why)) => {
                note(&path, why);
                continue;
            }
        };
        for (path, (scenario, text)) in &scenarios {
            match scenario.check_runnable(text, &profile) {
                Ok(()) => texts.push(Texts {
                    scenario: text.clone(),
                    rig: rig.clone(),
                    profile: Profile::xiaozhi(),
                }),
                Err(error) => note(path, error.to_string()),
            }
        }
    }
    (texts, wrong)
}

/// A rig and the profile of its boards; what is wrong, and with which file.
fn read_rig(given: &Path) -> Result<(NamedText, Profile), (PathBuf, String)> {
    let found = files(given, "rigs").map_err(|why| (given.into(), why))?;
    let [path] = &found[..] else { return Err((given.into(), "a rig is one file".into())) };
    let checked = read_text(path).and_then(|text| {
        let plan = Plan::load(&text).map_err(|e| e.to_string())?;
        let profile = Profile::load(&Profile::xiaozhi()).map_err(|e| e.to_string())?;
        plan.accepts(&profile, &text).map_err(|e| e.to_string())?;
        plan.world_or_refuse(&text).map_err(|e| e.to_string())?;
        Ok((text, profile))
    });
    checked.map_err(|why| (path.clone(), why))
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

/// Runs, keeps and judges one session.
fn session(texts: &Texts, choices: &Choices, output: &Path) -> Result<Judged, Refused> {
    let wrong = |path: &Path, why: String| refused(path, &why, Exit::CouldNotJudge);
    let name = |text: &NamedText| folder_name(text).map_err(|why| wrong(output, why));
    let (scenario, rig) = (name(&texts.scenario)?, name(&texts.rig)?);
    tracing::info!(scenario, rig, seed = choices.seed, "running");
    let here = output.join(&rig).join(&scenario);
    let recording = simulate(texts, choices).map_err(|e| wrong(&here, e.to_string()))?;
    let run = output.join(&recording.head().run_id).join(rig).join(scenario);
    let folder = next_attempt(&run).map_err(|e| wrong(&run, e.to_string()))?;
    recording.save(&folder).map_err(|e| wrong(&folder, e.to_string()))?;
    judged(&folder, &recording, None).map_err(|e| wrong(&folder, e.to_string()))
}
