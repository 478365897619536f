//! Evidence: `run` and `replay`, as a user runs them, on the software board.
#![cfg(feature = "cli")]

use earwitness::journal::Seal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder for recordings, and the program writing into it.
struct Bench {
    home: TempDir,
    ci: bool,
}

impl Bench {
    fn new() -> Bench {
        Bench { home: TempDir::new().expect("a folder"), ci: false }
    }

    /// Runs the program; gives what it wrote to standard output.
    #[track_caller]
    fn check(&self, arguments: &str, code: i32, says: &[&str]) -> String {
        let home = self.home.path().display().to_string();
        let mut program = Command::new(env!("CARGO_BIN_EXE_earwitness"));
        program.args(arguments.split(' ').map(|argument| argument.replace("HOME", &home)));
        program.env("EARWITNESS_OUTPUT_DIR", self.home.path().join("runs"));
        program.env_remove("EARWITNESS_LOG").env_remove("CI");
        if self.ci {
            program.env("CI", "true");
        }
        let output = program.output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments}\n{text}\n{errors}");
        for words in says {
            let words = words.replace("HOME", &home);
            let found = text.contains(&words) || errors.contains(&words);
            assert!(found, "no {words:?} in\n{text}\n{errors}");
        }
        text
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }

    /// The recordings so far.
    fn recordings(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.home.path().join("runs")];
        for _ in ["run id", "rig", "scenario", "attempt"] {
            let inner = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
            folders = inner.map(|entry| entry.expect("an entry").path()).collect();
        }
        folders
    }
}

fn shipped(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("it is there")
}

#[test]
fn the_exit_code_says_how_it_ended() {
    let bench = Bench::new();
    bench.check("run volume-step --rig sim", 0, &["PASS"]);
    let dead = "run volume-step --rig sim --fault dead-amp";
    bench.check(dead, 1, &["FAIL  silent_success"]);
    bench.check("run volume-step --rig sim --fault deaf-mic", 3, &["NO VERDICT"]);
    bench.check("run volume-step --rig sim --fault noisy-room", 5, &["NO VERDICT"]);
    bench.check("run reboot --rig sim --fault no-reboot", 1, &["FAIL  no_reboot"]);
    assert_eq!(bench.check("run reboot --rig sim --quiet", 0, &[]), "");
    assert_eq!(bench.recordings().len(), 6);
}

#[test]
fn nothing_runs_while_a_file_is_wrong() {
    let bench = Bench::new();
    let volume = shipped("scenarios/volume-step.toml");
    bench.write("slip.toml", &volume.replacen("beacon = {}", "becon = {}", 1));
    bench.check("run reboot HOME/slip.toml --rig sim", 2, &["slip.toml:17:1: ", "`beacon`?"]);
    let denied = volume.replacen("self.audio_speaker.set_volume", "self.disp.network", 1);
    bench.write("denied.toml", &denied);
    bench.check("run HOME/denied.toml --rig sim", 2, &["denied.toml:24:17: ", "denies"]);
    bench.write("import.toml", &shipped("scenarios/imported-volume.toml"));
    bench.check("run HOME/import.toml --rig sim", 2, &["import.toml:1:1: without a [[step]]"]);
    bench.write(
        "tap.toml",
        &shipped("rigs/sim.toml").replace("[simulated]", "#").replace("law", "#"),
    );
    bench.check("run reboot --rig HOME/tap.toml", 2, &["tap.toml:1:1: ", "[simulated]"]);
    fs::write(bench.home.path().join("latin.toml"), b"version = 1 # \xe9").expect("written");
    bench.check("run HOME/latin.toml --rig sim", 2, &["latin.toml:1:15: ", "UTF-8"]);
    bench.check("run volume-step --rig simm", 2, &["INVALID", "rigs/simm.toml"]);
    bench.check("run nowhere --rig sim", 2, &["INVALID", "scenarios/nowhere.toml"]);
    bench.check("run volume-step --rig scenarios", 2, &["a rig is one file"]);
    bench.check("run volume-step", 2, &["--rig"]);
    bench.check("run reboot --rig sim --fault ded-amp", 2, &["dead-amp"]);
    bench.check("run reboot --rig sim --repeat 0", 2, &["--repeat"]);
    assert!(bench.recordings().is_empty());
}

#[test]
fn of_a_folder_that_runs_which_can() {
    let bench = Bench::new();
    bench.check("run --rig sim", 4, &["NOTHING SELECTED"]);
    bench.write("all/imported.toml", &shipped("scenarios/imported-reboot.toml"));
    let over = "PASSED OVER  HOME/all/imported.toml: it has no [[step]] to run";
    bench.check("run HOME/all --rig sim", 4, &[over, "NOTHING SELECTED"]);
    bench.write("all/reboot.toml", &shipped("scenarios/reboot.toml"));
    bench.check("run HOME/all --rig sim", 0, &[over, "PASS"]);
    bench.check("run HOME/all HOME/all/imported.toml --rig sim", 2, &["without a [[step]]"]);
    assert_eq!(bench.recordings().len(), 1);
    bench.check("run scenarios --rig sim --dry-run", 0, &["scenarios/imported-volume.toml"]);
    assert_eq!(bench.recordings().len(), 1, "a dry run leaves nothing");
}

#[test]
fn what_was_simulated_must_be_meant() {
    let bench = Bench { ci: true, ..Bench::new() };
    bench.check("run reboot --rig sim", 3, &["PASS", "NOT LIVE", "--allow-simulated"]);
    bench.check("run reboot --rig sim --allow-simulated", 0, &["PASS"]);
    bench.check("run reboot --rig sim --fault no-reboot", 1, &["NOT LIVE"]);
}

#[test]
fn each_repeat_has_its_own_seed() {
    let bench = Bench::new();
    let text = bench.check("run reboot --rig sim --seed 7 --repeat 2 --json -", 0, &["PASS"]);
    let run: serde_json::Value = serde_json::from_str(&text).expect("nothing but JSON");
    let sessions = run["sessions"].as_array().expect("sessions");
    let of = |key: &str| sessions.iter().map(|s| s[key].to_string()).collect::<Vec<_>>();
    assert_eq!(of("origin"), ["\"simulated\""; 2]);
    assert_eq!(of("seed"), ["7", "8"]);
    assert_eq!(run["exit_code"], 0);
    let recordings = bench.recordings();
    assert_eq!(recordings.len(), 2);
    assert_ne!(recordings[0].ancestors().nth(3), recordings[1].ancestors().nth(3));
}

#[test]
fn a_replay_decides_the_same_or_says_where_not() {
    let bench = Bench::new();
    bench.check("run reboot --rig sim", 0, &["PASS"]);
    bench.check("replay HOME/runs", 0, &["SAME  ", " records\n"]);
    bench.check("replay HOME/runs HOME/nowhere", 2, &["SAME  ", "NOT REPLAYED", "nowhere"]);
    bench.check("replay tests/sessions/ws-healthy", 2, &["NOT REPLAYED", "was imported"]);

    let [folder] = &bench.recordings()[..] else { panic!("one recording") };
    let change = |name: &str, from: &str, to: &str| {
        let path = folder.join(name);
        let text = fs::read_to_string(&path).expect("it is there");
        assert!(text.contains(from), "{name} has no {from}");
        fs::write(&path, text.replacen(from, to, 1)).expect("written");
        text
    };
    // Evidence that was changed is no evidence.
    let records = change("records.jsonl", "status-before", "status-behind");
    bench.check("replay HOME/runs", 3, &["NOT REPLAYED", "was changed after the recording"]);
    fs::write(folder.join("records.jsonl"), records).expect("written");
    // A bench that waits longer than it did is another bench; the seals are those of its files.
    let head = change("head.json", "for = \\\"10s\\\"", "for = \\\"11s\\\"");
    let today = fs::read(folder.join("head.json")).expect("it is there");
    change("records.jsonl", &Seal::of(head.as_bytes()).sha256, &Seal::of(&today).sha256);
    bench.check("replay HOME/runs", 1, &["DIVERGED", "diverged at record ", "then   ", "today  "]);
}
