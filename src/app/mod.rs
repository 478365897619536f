//! One short story per verb: from arguments to an exit code.

pub mod evaluate;
mod exit;
#[cfg(feature = "cli")]
mod import;
#[cfg(feature = "cli")]
mod judge;

pub use exit::Exit;

/// Does what was asked; results go to `out`, logs to `tracing`.
///
/// # Errors
/// When `out` can't be written.
#[cfg(feature = "cli")]
pub fn run(cli: &crate::cli::Cli, out: &mut dyn std::io::Write) -> std::io::Result<Exit> {
    use crate::cli::Verb;
    match &cli.verb {
        Verb::Judge(arguments) => judge::run(arguments, cli.style(), out),
        Verb::Import(arguments) => import::run(arguments, out),
    }
}
