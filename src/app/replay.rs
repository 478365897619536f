//! `earwitness replay`: would the bench decide today as it did then?

use super::evaluate::{Refusal, open};
use super::session::{replay, told};
use super::{Exit, Streams, find};
use crate::cli::ReplayArguments;
use crate::journal::{Condition, Evidence as _};
use std::path::Path;

pub(super) fn run(arguments: &ReplayArguments, streams: &mut Streams) -> Exit {
    let mut exit = Exit::Passed;
    for (folder, found) in find::sessions(&arguments.folders) {
        match found.and_then(|()| again(&folder)) {
            Ok((found, told)) => {
                exit = exit.and(found);
                streams.result(&format!("{told}\n"));
            }
            Err(refusal) => {
                exit = exit.and(refusal.exit());
                streams.complain(&format!("NOT REPLAYED  {}  {refusal}\n", folder.display()));
            }
        }
    }
    exit
}

/// How many records are the same, or what is different. A session that is not whole proves neither:
/// what is missing of it may be the reason.
fn again(folder: &Path) -> Result<(Exit, String), Refusal> {
    let evidence = open(folder, None)?;
    let (divergence, today) = replay(evidence.as_ref())?;
    let told = match &divergence {
        None => format!("SAME  {}  {} records", folder.display(), today.records().count()),
        Some(divergence) => format!("DIVERGED  {}  {}", folder.display(), told(divergence)),
    };
    Ok(match (evidence.condition(), divergence) {
        (Condition::Complete, None) => (Exit::Passed, told),
        (Condition::Complete, Some(_)) => (Exit::Failed, told),
        (Condition::Incomplete(why), _) => {
            let why = why.join(", ");
            (Exit::CouldNotJudge, format!("{told}, but the session is incomplete: {why}"))
        }
    })
}
