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

#[test]
fn a_report_overwrites_no_evidence() {
    let home = home();
    let top = home.path();
    let folder = copy("mqtt-reboot-nosub", top, "good");
    let elsewhere = copy("ws-healthy", top, "elsewhere");
    let outside = top.join("outside.jsonl");
    fs::rename(folder.join("events.jsonl"), &outside).expect("moved");
    symlink(&outside, folder.join("events.jsonl")).expect("a link");
    symlink(folder.join("meta.json"), top.join("link.json")).expect("a link");
    let scenario = top.join("mine.toml");
    fs::write(&scenario, include_str!("../scenarios/imported-reboot.toml")).expect("written");
    let before = fs::read(&outside).expect("events");
    for target in [
        "good/meta.json",
        "good/run.json",
        "outside.jsonl",
        "link.json",
        "elsewhere/speaker.wav",
        "mine.toml",
    ] {
        let arguments = ["judge", "good", "--scenario", "mine.toml", "--json", target];
        let told = check(top, &arguments, 2, &["NO REPORT", target, "give another place"]);
        assert!(!told.contains("PASS"), "nothing is judged:\n{told}");
    }
    assert_eq!(fs::read(&outside).expect("events"), before);
    assert!(elsewhere.join("speaker.wav").metadata().expect("sound").len() > 1000);
    check(top, &["judge", "good", "--json", "run.json"], 0, &["PASS"]);
    check(top, &["judge", "good", "--json", "run.json"], 0, &["PASS"]);
}

#[test]
fn no_name_leads_out_of_the_output_folder() {
    let home = home();
    let top = home.path();
    let session = session("mqtt-reboot-nosub").display().to_string();
    for name in ["...toml", "..toml", ".toml"] {
        fs::write(top.join(name), include_str!("../scenarios/imported-reboot.toml"))
            .expect("written");
        let says = ["INVALID", "can't name a folder"];
        check(top, &["import", &session, "--scenario", name], 2, &says);
        let (rig, scenario) = texts();
        fs::write(top.join(name), fs::read(scenario).expect("a scenario")).expect("written");
        check(top, &["run", name, "--rig", &rig], 2, &says);
    }
    assert!(!top.join("earwitness-runs").exists());
}

#[test]
fn judge_and_import_end_alike() {
    let home = home();
    let spoil = |name: &str, file: &str, from: &str, to: &str| {
        let folder = copy("mqtt-reboot-nosub", home.path(), name);
        let text = fs::read_to_string(folder.join(file)).expect("text");
        let spoiled = text.replacen(from, to, 1);
        assert_ne!(text, spoiled, "{name}");
        fs::write(folder.join(file), spoiled).expect("written");
    };
    spoil("codec", "meta.json", "\"noaudio\"", "\"strange\"");
    spoil("line", "events.jsonl", "\"ch\"", "ch");
    spoil("mac", "meta.json", "\"mac\"", "\"cam\"");
    let folder = copy("mqtt-reboot-nosub", home.path(), "nothing");
    fs::write(folder.join("events.jsonl"), "").expect("written");
    fs::create_dir(home.path().join("empty")).expect("a folder");
    let cases = [("codec", 3, "device.codec"), ("line", 3, "bad JSON"), ("mac", 3, "device.mac")];
    for (name, code, says) in cases.into_iter().chain([
        ("nothing", 3, "the file is empty"),
        ("empty", 2, "INVALID"),
        ("nowhere", 2, "INVALID"),
    ]) {
        check(home.path(), &["judge", name], code, &[says]);
        check(home.path(), &["import", name], code, &[says]);
    }
}

/// A rig and a scenario that can be run.
fn texts() -> (String, String) {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of = |path: &str| home.join(path).display().to_string();
    (of("rigs/sim.toml"), of("scenarios/volume-step.toml"))
}

#[test]
fn a_run_says_what_was_wrong_with_its_board() {
    let home = home();
    let (rig, scenario) = texts();
    let arguments = ["run", &scenario, "--rig", &rig, "--fault", "dead-amp", "--json", "run.json"];
    check(home.path(), &arguments, 1, &["SIMULATED (microphone, fault dead-amp)"]);
    let run = fs::read_to_string(home.path().join("run.json")).expect("a report");
    let run: serde_json::Value = serde_json::from_str(&run).expect("JSON");
    let session = &run["sessions"][0];
    assert_eq!(session["software_board"]["fault"], "dead-amp");
    let head = home.path().join(session["path"].as_str().expect("a path")).join("head.json");
    assert!(fs::read_to_string(head).expect("a head").contains("\"fault\": \"dead-amp\""));
}

#[test]
fn seeds_do_not_run_over_and_a_report_is_never_stale() {
    let home = home();
    let (rig, scenario) = texts();
    let last = u64::MAX.to_string();
    let run = ["run", &scenario, "--rig", &rig, "--dry-run", "--json", "run.json", "--seed", &last];
    check(home.path(), &run, 0, &[]);
    check(home.path(), &[&run[..], &["--repeat", "2"]].concat(), 2, &["INVALID", "2^64 - 1"]);
    fs::create_dir(home.path().join("none")).expect("a folder");
    let none = ["run", "none", "--rig", &rig, "--json", "run.json"];
    check(home.path(), &none, 4, &["NOTHING SELECTED"]);
    let report = fs::read_to_string(home.path().join("run.json")).expect("a report");
    assert!(report.contains("\"exit_code\": 4"), "{report}");
}

#[test]
fn part_of_a_run_proves_no_replay() {
    let home = home();
    let (rig, scenario) = texts();
    let arguments = ["run", &scenario, "--rig", &rig, "--quiet", "--json", "run.json"];
    check(home.path(), &arguments, 0, &[]);
    let run = fs::read_to_string(home.path().join("run.json")).expect("a report");
    let run: serde_json::Value = serde_json::from_str(&run).expect("JSON");
    let folder = run["sessions"][0]["path"].as_str().expect("a path").to_owned();
    check(home.path(), &["replay", &folder], 0, &["SAME"]);
    let records = home.path().join(&folder).join("records.jsonl");
    let text = fs::read_to_string(&records).expect("records");
    let (most, _) = text.trim_end().rsplit_once('\n').expect("lines");
    fs::write(&records, format!("{most}\n")).expect("written");
    check(home.path(), &["replay", &folder], 3, &["SAME", "incomplete", "no end record"]);
}
