//! `earwitness import`: foreign sessions become recordings on disk.

use super::evaluate::shipped;
use super::{Exit, Streams};
use crate::cli::ImportArguments;
use crate::journal::Evidence as _;
use crate::rig::import::{self, Options};
use crate::scenario::Scenario;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: &ImportArguments, streams: &mut Streams) -> Exit {
    let scenario = match arguments.scenario.as_deref().map(super::judge::read_scenario).transpose()
    {
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
                streams.complain(&format!("INVALID  {error}\n"));
                exit = exit.and(Exit::Invalid);
                continue;
            }
        };
        let head = recording.head();
        let scenario = Scenario::load(&head.scenario).map(|s| s.name).unwrap_or_default();
        let run = arguments.output_dir.join(&head.run_id);
        let target = next_attempt(&run.join("imported").join(scenario));
        match recording.save(&target) {
            Ok(()) => streams.result(&format!("{}\n", target.display())),
            Err(error) => {
                streams.complain(&format!("NOT WRITTEN  {error}\n"));
                exit = exit.and(Exit::CouldNotJudge);
            }
        }
    }
    exit
}

/// The first attempt number whose folder does not exist: attempts are never overwritten.
fn next_attempt(folder: &Path) -> PathBuf {
    let numbered = (1u64..).map(|n| folder.join(n.to_string()));
    let free = numbered.into_iter().find(|path| !fs::exists(path).unwrap_or(true));
    free.expect("the numbers don't run out before the disk does")
}
