//! Arguments in, exit code out; the only file that prints.

use clap::Parser as _;
use earwitness::app::{self, Exit, Streams};
use earwitness::cli::Cli;
use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let filter = std::env::var("EARWITNESS_LOG").unwrap_or_else(|_| "warn".into());
    let filter = match EnvFilter::try_new(&filter) {
        Ok(filter) => filter,
        Err(error) => return told(Exit::Invalid, &format!("EARWITNESS_LOG={filter}: {error}")),
    };
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours);
    let log = log.log_internal_errors(false);
    log.with_writer(std::io::stderr).init();
    let cli = Cli::parse();
    // A panic is a bug of ours, not a verdict on a device.
    let exit = std::panic::catch_unwind(|| {
        let mut out = BufWriter::new(std::io::stdout().lock());
        app::run(&cli, Streams::new(&mut out, &mut std::io::stderr()))
    });
    let bug = "internal error, please report it with the lines above";
    exit.map_or_else(|_| told(Exit::Internal, bug), |exit| ExitCode::from(exit.code()))
}

/// An end that no verb could tell of.
fn told(exit: Exit, why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "earwitness: {why}");
    ExitCode::from(exit.code())
}
