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
            Ok(Ok(records)) => {
                streams.result(&format!("SAME  {}  {records}\n", folder.display()));
            }
            Ok(Err(difference)) => {
                exit = exit.and(Exit::Failed);
                streams.result(&format!("DIVERGED  {}  {difference}\n", folder.display()));
            }
            Err(refusal) => {
                exit = exit.and(refusal.exit());
                streams.complain(&format!("NOT REPLAYED  {}  {refusal}\n", folder.display()));
            }
        }
    }
    exit
}

/// How many records are the same, or what is different; and what may be missing to say so.
fn again(folder: &Path) -> Result<Result<String, String>, Refusal> {
    let evidence = open(folder, None)?;
    if let Condition::Incomplete(reasons) = evidence.condition() {
        return Err(Refusal::Incomplete(reasons.join("; ")));
    }
    let (divergence, today) = replay(evidence.as_ref())?;
    let missing = match evidence.condition() {
        Condition::Complete => String::new(),
        Condition::Incomplete(why) => {
            format!(", but the session is incomplete: {}", why.join(", "))
        }
    };
    Ok(match divergence {
        None => Ok(format!("{} records{missing}", today.records().count())),
        Some(divergence) => Err(told(&divergence) + &missing),
    })
}
