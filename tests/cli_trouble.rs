//! Trouble around the evidence: nothing is left out without a word, nothing hangs, and nothing is
//! overwritten.
#![cfg(all(feature = "cli", unix))]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn session(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions").join(name)
}

fn earwitness(arguments: &[&str], home: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_earwitness"))
        .args(arguments)
        .current_dir(home)
        .env_remove("EARWITNESS_LOG")
        .env_remove("CI")
        .output()
        .expect("the program starts")
}

/// Runs the program in `home` and gives what it printed.
#[track_caller]
fn check(home: &Path, arguments: &[&str], code: i32, says: &[&str]) -> String {
    let output = earwitness(arguments, home);
    let told = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{told}");
    for words in says {
        assert!(told.contains(words), "no {words:?} in\n{told}");
    }
    told
}

fn home() -> TempDir {
    TempDir::new().expect("a folder")
}

/// A copy of a foreign session as `home/name`.
fn copy(from: &str, home: &Path, name: &str) -> PathBuf {
    let folder = home.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    for entry in fs::read_dir(session(from)).expect("the session") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, folder.join(path.file_name().expect("a name"))).expect("copied");
    }
    folder
}

/// A recording in `home`, made from a foreign session.
fn import(from: &str, home: &Path) -> PathBuf {
    let told = check(home, &["import", &session(from).display().to_string()], 0, &[]);
    home.join(told.lines().last().expect("the folder is printed"))
}

#[test]
fn two_sessions_in_one_folder_are_refused() {
    let home = home();
    for mark in ["head.json", "records.jsonl", "mic-001.wav"] {
        let folder = copy("mqtt-reboot-nosub", home.path(), mark);
        fs::write(folder.join(mark), "").expect("written");
        let says = ["NO VERDICT", mark, "of a recording and ", "a folder of its own"];
        check(home.path(), &["judge", mark], 3, &says);
    }
    let recording = import("mqtt-reboot-nosub", home.path());
    fs::write(recording.join("meta.json"), "{}").expect("written");
    let path = recording.display().to_string();
    check(home.path(), &["judge", &path], 3, &["NO VERDICT", "meta.json of a foreign session"]);
}

#[test]
fn sound_that_the_seal_does_not_name_is_refused() {
    let home = home();
    let recording = import("mqtt-reboot-nosub", home.path());
    let path = recording.display().to_string();
    check(home.path(), &["judge", &path], 0, &["PASS"]);
    fs::copy(recording.join("mic-001.wav"), recording.join("mic-002.wav")).expect("copied");
    check(home.path(), &["judge", &path], 3, &["NO VERDICT", "mic-002.wav", "take the file out"]);
}

#[test]
fn a_link_hides_no_session() {
    let (home, other) = (home(), home());
    let top = home.path();
    copy("mqtt-reboot-nosub", top, "in/good");
    copy("mqtt-dead-amp", other.path(), "deep/down/dead");
    fs::create_dir(other.path().join("empty")).expect("a folder");
    symlink(other.path().join("empty"), top.join("in/nothing")).expect("a link");
    symlink(top.join("in"), top.join("in/circle")).expect("a link");
    symlink(top.join("nowhere"), top.join("in/broken")).expect("a link");
    check(top, &["judge", "in"], 0, &["PASS"]);
    symlink(other.path().join("deep"), top.join("in/deep")).expect("a link");
    let says = ["PASS", "NO VERDICT  in/deep  exit 3", "give the folder it leads to"];
    check(top, &["judge", "in"], 3, &says);
    let deep = other.path().join("deep").display().to_string();
    let told = check(top, &["judge", "in", &deep], 1, &["PASS", "FAIL  silent_success"]);
    assert!(!told.contains("NO VERDICT"), "{told}");
}

#[test]
fn a_pipe_in_place_of_a_file_does_not_hang() {
    let home = home();
    for file in ["events.jsonl", "meta.json", "speaker.wav"] {
        let folder = copy("mqtt-reboot-nosub", home.path(), file);
        pipe(&folder.join(file));
        check(home.path(), &["judge", file], 3, &[file, "no regular file"]);
    }
    for file in ["head.json", "records.jsonl", "mic-001.wav"] {
        let folder = import("mqtt-reboot-nosub", home.path());
        pipe(&folder.join(file));
        check(home.path(), &["judge", &folder.display().to_string()], 3, &[file]);
    }
}

fn pipe(path: &Path) {
    fs::remove_file(path).expect("removed");
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo starts");
    assert!(made.success());
}
