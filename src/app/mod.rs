//! One short story per verb: from arguments to an exit code.

mod exit;
mod import;
mod judge;

pub use exit::Exit;

use crate::cli::{Cli, Verb};
use std::io::Write;

/// Does what was asked; results go to `out`, logs to `tracing`.
///
/// # Errors
/// When `out` can't be written.
pub fn run(cli: &Cli, out: &mut dyn Write) -> std::io::Result<Exit> {
    match &cli.verb {
        Verb::Judge(arguments) => judge::run(arguments, cli.style(), out),
        Verb::Import(arguments) => import::run(arguments, out),
    }
}
