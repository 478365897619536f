//! `earwitness import`: foreign sessions become recordings on disk.

use super::evaluate::shipped;
use super::{Exit, Streams};
use crate::cli::ImportArguments;
use crate::journal::{Evidence as _, JournalError};
use crate::rig::import::{self, Options};
use crate::scenario::Scenario;
use std::fs;
use std::io::ErrorKind;
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
        let saved = next_attempt(&run.join("imported").join(scenario))
            .and_then(|target| recording.save(&target).map(|()| target));
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

/// Makes the first attempt's folder that did not exist: attempts are never overwritten, also not
/// by another import at the same time.
pub(super) fn next_attempt(folder: &Path) -> Result<PathBuf, JournalError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| JournalError::Io { path, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for n in 1u64.. {
        let attempt = folder.join(n.to_string());
        match fs::create_dir(&attempt) {
            Ok(()) => return Ok(attempt),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&attempt)(error)),
        }
    }
    unreachable!("the numbers don't run out before the disk does")
}
