//! Evidence: the README against the program: its output blocks, its commands, its exit codes, its
//! laws. `UPDATE_README=1 cargo test --test readme` writes the output blocks anew.
#![cfg(feature = "cli")]

use clap::{CommandFactory as _, Parser as _};
use earwitness::app::Exit;
use earwitness::audio::law::Law;
use earwitness::cli::Cli;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const MARK: &str = "<!-- output of: ";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("README.md")
}

/// What the program prints; recordings go to a folder of its own under the name of the usual one.
fn output_of(arguments: &str) -> String {
    let home = tempfile::TempDir::new().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_earwitness"))
        .args(arguments.split_whitespace())
        .current_dir(root())
        .env("EARWITNESS_OUTPUT_DIR", home.path())
        .env_remove("CI")
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    text.replace(&home.path().display().to_string(), "earwitness-runs").trim_end().to_owned() + "\n"
}

#[test]
fn the_shown_output_is_real() {
    let text = readme();
    let mut fresh = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(MARK) {
        let command = at + MARK.len();
        let end = command + rest[command..].find(" -->").expect("the mark ends");
        let open =
            end + rest[end..].find("```text\n").expect("a block follows") + "```text\n".len();
        let close = open + rest[open..].find("```").expect("the block ends");
        fresh.push_str(&rest[..open]);
        fresh.push_str(&output_of(&rest[command..end]));
        rest = &rest[close..];
    }
    fresh.push_str(rest);
    if std::env::var_os("UPDATE_README").is_some() {
        fs::write(root().join("README.md"), &fresh).expect("README.md is written");
    } else {
        assert_eq!(text, fresh, "run UPDATE_README=1 cargo test --test readme");
    }
}

#[test]
fn every_command_is_understood() {
    let lines: Vec<String> = readme().lines().map(str::to_owned).collect();
    let mut seen = 0;
    for line in lines.iter().filter(|l| l.starts_with("cargo run ")) {
        let arguments = line.split_once(" -- ").expect("arguments").1;
        let words = std::iter::once("earwitness").chain(arguments.split_whitespace());
        if let Err(error) = Cli::try_parse_from(words) {
            panic!("{line}: {error}");
        }
        seen += 1;
    }
    assert!(seen >= 4, "{seen} commands");
}

#[test]
fn the_table_of_exit_codes_is_complete() {
    let text = readme();
    for exit in Exit::BY_STRENGTH {
        assert!(text.contains(&format!("\n| {} | ", exit.code())), "{exit:?}");
    }
    let order: Vec<String> = Exit::BY_STRENGTH.iter().map(|e| e.code().to_string()).collect();
    assert!(text.contains(&order.join(", ")), "{}", order.join(", "));
    Cli::command().debug_assert();
}

#[test]
fn the_table_of_laws_is_right() {
    for law in Law::ALL {
        let step = law.step_db(40, 60).expect("a number");
        let row = format!("| {step:+.2} dB |");
        let line =
            readme().lines().find(|l| l.starts_with(&format!("| `{law}`"))).map(str::to_owned);
        assert!(line.is_some_and(|l| l.ends_with(&row)), "{law} {row}");
    }
}

/// Recordings are kept to see that newer programs still judge older evidence alike.
#[test]
fn kept_recordings_are_judged_as_expected() {
    let folders = fs::read_dir(root().join("recordings")).expect("recordings");
    let folders: Vec<PathBuf> = folders.map(|f| f.expect("an entry").path()).collect();
    assert!(folders.len() >= 4, "{folders:?}");
    for folder in folders {
        let name = folder.file_name().expect("a name").display().to_string();
        let expected = fs::read_to_string(folder.join("expected.txt")).expect("expected.txt");
        assert_eq!(
            output_of(&format!("judge recordings/{name}")),
            expected.trim_end().to_owned() + "\n"
        );
    }
}
