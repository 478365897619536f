//! Independent computation: what earwitness says of levels, steps, floors and absence, computed
//! again by numpy and scipy from the samples (`scipy/check.py`), which must agree.
//!
//! Needs a Python with tests/scipy/requirements.txt, named by EARWITNESS_PYTHON (default:
//! python3). A check that nobody made is not a pass, so a Python without scipy fails here, unless
//! EARWITNESS_SKIP_SCIPY=1 asks for less.

#![cfg(feature = "cli")]
// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The sessions with tones, heard through an electrical tap.
const TAPPED: [&str; 5] = [
    "mqtt-es8311-healthy",
    "mqtt-healthy",
    "mqtt-healthy-nosub",
    "mqtt-stuck-volume",
    "ws-healthy",
];

/// Sessions heard in a room, with the seed and the SNR13 in dB.
const ROOMS: [(&str, u64, u32); 9] = [
    ("mqtt-healthy", 1, 20),
    ("mqtt-healthy", 2, 20),
    ("mqtt-healthy", 3, 20),
    ("mqtt-healthy", 1, 10),
    ("mqtt-healthy", 2, 10),
    ("mqtt-healthy", 3, 10),
    ("mqtt-dead-amp", 1, 20),
    ("mqtt-dead-amp", 2, 20),
    ("mqtt-dead-amp", 3, 20),
];

fn manifest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn session(name: &str) -> PathBuf {
    manifest("tests/sessions").join(name)
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// The program, sheltered from the environment of whoever runs the tests.
fn earwitness() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earwitness"));
    command.env_remove("EARWITNESS_OUTPUT_DIR").env("EARWITNESS_LOG", "warn");
    command
}

/// Judges `folder` into DIR/run.json. Refuted claims are answers too: any verdict will do.
fn judge(folder: &Path, dir: &Path) {
    let output = run(earwitness().arg("judge").arg(folder).args(["--json", "-", "-q"]));
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1 | 5)), "judge {}: {output:?}", folder.display());
    // Ours to put there; the program itself writes no report into the folder of a session.
    fs::write(dir.join("run.json"), output.stdout).expect("the report is written");
}

fn tapped(home: &Path, name: &str) -> PathBuf {
    let dir = home.join(name);
    fs::create_dir(&dir).unwrap();
    for file in ["events.jsonl", "speaker.wav", "meta.json", "expect.json"] {
        fs::copy(session(name).join(file), dir.join(file)).unwrap();
    }
    judge(&session(name), &dir);
    dir
}

fn in_room(home: &Path, name: &str, seed: u64, snr13: u32) -> PathBuf {
    let room = format!("seed={seed},snr13={snr13}");
    let dir = home.join(format!("{name} {room}"));
    fs::create_dir(&dir).unwrap();
    let imported = dir.join("imported");
    let output = run(earwitness()
        .arg("import")
        .arg(session(name))
        .args(["--room", &room, "--output-dir"])
        .arg(&imported));
    assert!(output.status.success(), "import {name} {room}: {output:?}");
    let folder = only_recording(&imported);
    for file in ["records.jsonl", "mic-001.wav"] {
        fs::copy(folder.join(file), dir.join(file)).unwrap();
    }
    let mut expect = read(&session(name).join("expect.json"));
    expect["snr13_db"] = json!(snr13);
    fs::write(dir.join("expect.json"), expect.to_string()).unwrap();
    judge(&folder, &dir);
    dir
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The folder below `home` that holds a head.json.
fn only_recording(home: &Path) -> PathBuf {
    if home.join("head.json").exists() {
        return home.to_owned();
    }
    let mut below: Vec<_> = fs::read_dir(home).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(below.len(), 1, "{below:?}");
    only_recording(&below.remove(0))
}

/// A Python that can import scipy; `None` when the check is not wanted.
fn python() -> Option<OsString> {
    if std::env::var_os("EARWITNESS_SKIP_SCIPY").is_some_and(|v| v == "1") {
        eprintln!("SKIPPED, EARWITNESS_SKIP_SCIPY=1: nobody computed the levels a second time");
        return None;
    }
    let python = std::env::var_os("EARWITNESS_PYTHON").unwrap_or_else(|| "python3".into());
    let found = Command::new(&python).args(["-c", "import numpy, scipy.signal"]).output();
    let why = match found {
        Ok(output) if output.status.success() => return Some(python),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    panic!(
        "{}: {why}\nThe levels are computed a second time by scipy, and this Python has none.\n\
         Install it with `pip install -r tests/scipy/requirements.txt` and name the Python in \
         EARWITNESS_PYTHON; EARWITNESS_SKIP_SCIPY=1 goes without.",
        python.display()
    );
}

fn check(python: &OsString, dirs: &[PathBuf]) -> Output {
    run(Command::new(python).arg(manifest("tests/scipy/check.py")).args(dirs))
}

#[test]
fn scipy_finds_what_earwitness_finds() {
    let Some(python) = python() else { return };
    let home = TempDir::new().unwrap();
    let mut dirs: Vec<_> = TAPPED.iter().map(|name| tapped(home.path(), name)).collect();
    dirs.extend(ROOMS.iter().map(|(name, seed, snr13)| in_room(home.path(), name, *seed, *snr13)));
    let output = check(&python, &dirs);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{}{errors}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "scipy disagrees; the table above says where");
}

/// The check can fail: a report that is wrong by less than anybody hears is caught.
#[test]
fn scipy_notices_a_wrong_report() {
    let Some(python) = python() else { return };
    let home = TempDir::new().unwrap();
    let dir = tapped(home.path(), "mqtt-healthy");
    let path = dir.join("run.json");
    let mut report = read(&path);
    let findings = report["sessions"][0]["claims"][0]["findings"].as_array_mut().unwrap();
    let physical = findings.iter_mut().find(|f| f["rung"] == "physical").unwrap();
    let level = &mut physical["measurements"][1]["value"];
    *level = json!(level.as_f64().unwrap() + 0.05);
    fs::write(&path, report.to_string()).unwrap();
    let output = check(&python, &[dir]);
    assert!(!output.status.success());
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(table.matches("DISAGREE").count(), 1, "{table}");
}
