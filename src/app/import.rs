//! `earwitness import`: foreign sessions become recordings on disk.

use super::evaluate::{Mark, Refusal, shipped};
use super::output::{folder_name, next_attempt};
use super::{Exit, Streams};
use crate::cli::ImportArguments;
use crate::journal::Evidence as _;
use crate::rig::import::{self, Options};
use std::fs;
use std::path::Path;

pub(super) fn run(arguments: &ImportArguments, streams: &mut Streams) -> Exit {
    let given = arguments.scenario.as_deref();
    let read = given.map(super::judge::read_scenario).transpose().and_then(|text| {
        match text.as_ref().map(folder_name).transpose() {
            Ok(_) => Ok(text),
            Err(why) => Err((given.unwrap_or(Path::new("")), why)),
        }
    });
    let scenario = match read {
        Ok(scenario) => scenario,
        Err((path, why)) => {
            streams.complain(&format!("INVALID  {}: {why}\n", path.display()));
            return Exit::Invalid;
        }
    };
    let options = Options { scenario, law: arguments.law, room: arguments.room.clone() };
    let mut exit = Exit::Passed;
    for folder in &arguments.folders {
        tracing::info!(folder = %folder.display(), "importing");
        let recording = match import::import(folder, &options, &shipped()) {
            Ok(recording) => recording,
            Err(error) => {
                let told = error.to_string();
                // As `judge` sees it: evidence that is damaged, or a folder without any.
                let (word, end) = match holds_any(folder) {
                    true => ("NOT IMPORTED", Refusal::Import(error).exit()),
                    false => ("INVALID", Exit::Invalid),
                };
                streams.complain(&format!("{word}  {told}\n"));
                exit = exit.and(end);
                continue;
            }
        };
        let head = recording.head();
        let run = arguments.output_dir.join(&head.run_id).join("imported");
        let saved = folder_name(&head.scenario).and_then(|scenario| {
            let target = next_attempt(&run.join(scenario)).map_err(|error| error.to_string())?;
            recording.save(&target).map_err(|error| error.to_string())?;
            Ok(target)
        });
        match saved {
            Ok(target) => streams.result(&format!("{}\n", target.display())),
            Err(error) => {
                streams.complain(&format!(
                    "NOT WRITTEN  {error}; give a folder that can be written\n"
                ));
                exit = exit.and(Exit::CouldNotJudge);
            }
        }
    }
    exit
}

/// Whether there is a file of a foreign session in a folder.
fn holds_any(folder: &Path) -> bool {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.file_name());
    names.into_iter().any(|name| name.to_str().and_then(Mark::of) == Some(Mark::Foreign))
}
