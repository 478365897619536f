//! One short story per verb: from arguments to an exit code.

pub mod evaluate;
mod exit;
#[cfg(feature = "cli")]
mod find;
#[cfg(feature = "cli")]
mod import;
#[cfg(feature = "cli")]
mod judge;
#[cfg(feature = "cli")]
mod output;
#[cfg(feature = "cli")]
mod replay;
#[cfg(feature = "cli")]
mod run;
pub mod session;
#[cfg(feature = "cli")]
mod streams;

pub use exit::Exit;
#[cfg(feature = "cli")]
pub use streams::Streams;

/// Does what was asked. A result that could not be written makes the exit worse, never better.
#[cfg(feature = "cli")]
pub fn run(cli: &crate::cli::Cli, mut streams: Streams) -> Exit {
    use crate::cli::Verb;
    let exit = match &cli.verb {
        Verb::Run(arguments) => run::run(arguments, cli.style(), &mut streams),
        Verb::Replay(arguments) => replay::run(arguments, &mut streams),
        Verb::Judge(arguments) => judge::run(arguments, cli.style(), &mut streams),
        Verb::Import(arguments) => import::run(arguments, &mut streams),
    };
    match streams.close() {
        true => exit,
        false => exit.and(Exit::CouldNotJudge),
    }
}
