//! What can be asked of the program.

use crate::audio::law::Law;
use crate::board::Fault;
use crate::report::Style;
use crate::rig::room::Room;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::io::IsTerminal as _;
use std::path::PathBuf;

/// The bench that compares what a voice board says with what physically happened.
#[derive(Debug, Parser)]
#[command(name = "earwitness", version, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 passed, 1 the device failed, 2 invalid input, \
    3 the bench could not judge, 4 nothing selected, 5 inconclusive, 70 internal error, \
    130 interrupted.\nLogs: EARWITNESS_LOG=debug (stderr).")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// Colours on standard output.
    #[arg(long, value_enum, default_value_t, global = true, env = "EARWITNESS_COLOR")]
    pub color: Color,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run scenarios on a rig, record what happens, and judge it.
    Run(RunArguments),
    /// Play recordings of runs again: would the bench decide the same today?
    Replay(ReplayArguments),
    /// Judge recordings (or recorded sessions of another program, as an electrical tap).
    Judge(JudgeArguments),
    /// Turn recorded sessions of another program into recordings.
    Import(ImportArguments),
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Scenario files, folders of them, or NAMEs for scenarios/NAME.toml.
    #[arg(value_name = "SCENARIO")]
    pub scenarios: Vec<PathBuf>,
    /// Rig file, or NAME for rigs/NAME.toml; may be given several times.
    #[arg(long, short, required = true, value_name = "RIG")]
    pub rig: Vec<PathBuf>,
    /// Seed of everything random; the next repeat takes the next one.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How often each scenario runs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub repeat: u64,
    /// What is wrong with the software board: dead-amp, late-response=7000, ...
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub fault: Option<Fault>,
    /// Gain law of the software board; default: the rig's.
    #[arg(long, value_name = "NAME")]
    pub law: Option<Law>,
    /// With CI=true a simulated run can only pass when this says that it may.
    #[arg(long)]
    pub allow_simulated: bool,
    /// Check all files, run nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Also write the report as JSON; `-` writes it to standard output and the screens to
    /// standard error.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// No screens, only the exit code and errors.
    #[arg(long, short)]
    pub quiet: bool,
    /// Where recordings go: DIR/RUN-ID/RIG/SCENARIO/ATTEMPT.
    #[arg(long, value_name = "DIR", default_value = "earwitness-runs")]
    #[arg(env = "EARWITNESS_OUTPUT_DIR")]
    pub output_dir: PathBuf,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArguments {
    /// Recordings of runs, or folders that hold some at any depth.
    #[arg(required = true, value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
}

/// Arguments of `judge`.
#[derive(Debug, Args)]
pub struct JudgeArguments {
    /// Recordings, foreign sessions, or folders that hold some at any depth.
    #[arg(required = true, value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// Judge by another scenario than the one in the recording.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Also write the report as JSON; `-` writes it to standard output and the screens to
    /// standard error.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// No screens, only the exit code and errors.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// Folders with events.jsonl, speaker.wav and meta.json.
    #[arg(required = true, value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// The scenario; default: the shipped one for the session's kind.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// The board's gain law; default: by the codec that the session names.
    #[arg(long, value_name = "NAME")]
    pub law: Option<Law>,
    /// Put a noisy room and a microphone between loudspeaker and ear:
    /// seed=7,snr13=20[,ear=good|deaf|zeros|uncontrolled].
    #[arg(long, value_name = "ROOM")]
    pub room: Option<Room>,
    /// Where recordings go: DIR/RUN-ID/imported/SCENARIO/ATTEMPT.
    #[arg(long, value_name = "DIR", default_value = "earwitness-runs")]
    #[arg(env = "EARWITNESS_OUTPUT_DIR")]
    pub output_dir: PathBuf,
}

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Cli {
    /// Whether standard output gets colours.
    pub fn style(&self) -> Style {
        let quiet = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        match self.color {
            Color::Always => Style::Colour,
            Color::Auto if !quiet && std::io::stdout().is_terminal() => Style::Colour,
            _ => Style::Plain,
        }
    }
}
