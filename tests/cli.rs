//! Evidence: the program itself, run as a user runs it, on sessions of the real firmware.
#![cfg(feature = "cli")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn sessions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions")
}

fn session(name: &str) -> String {
    sessions().join(name).display().to_string()
}

fn earwitness(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_earwitness"))
        .args(arguments)
        .env_remove("EARWITNESS_LOG")
        .output()
        .expect("the program starts")
}

#[track_caller]
fn check(arguments: &[&str], code: i32, says: &[&str]) -> String {
    let output = earwitness(arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{text}\n{errors}");
    for words in says {
        assert!(
            text.contains(words) || errors.contains(words),
            "no {words:?} in\n{text}\n{errors}"
        );
    }
    text
}

fn import(arguments: &[&str], home: &Path) -> PathBuf {
    let home = home.display().to_string();
    let text = check(&[&["import"], arguments, &["--output-dir", &home]].concat(), 0, &[]);
    PathBuf::from(text.lines().last().expect("the folder is printed"))
}

#[test]
fn the_exit_code_says_how_it_ended() {
    check(&["judge", &session("mqtt-healthy")], 0, &["PASS  mqtt-healthy"]);
    check(&["judge", &session("mqtt-dead-amp")], 1, &["FAIL  silent_success  mqtt-dead-amp"]);
    let all = sessions().display().to_string();
    check(&["judge", &all], 1, &["FAIL  silent_success  mqtt-stuck-volume", "PASS  ws-healthy"]);
    check(&["judge", &session("mqtt-healthy"), "--quiet"], 0, &[]);
    check(&["judge", "/nowhere/at/all"], 2, &["INVALID", "/nowhere/at/all is no folder"]);
    check(&["judge"], 2, &["Usage"]);
    check(&["judge", &session("mqtt-healthy"), "/nowhere"], 2, &["PASS", "INVALID"]);
}

#[test]
fn a_room_can_leave_the_device_unjudged() {
    let home = TempDir::new().expect("a folder");
    let deaf =
        import(&[&session("mqtt-dead-amp"), "--room", "seed=7,snr13=20,ear=deaf"], home.path());
    check(&["judge", &deaf.display().to_string()], 3, &["NO VERDICT  rig_blind", "exit 3"]);
    let loud = import(&[&session("mqtt-healthy"), "--room", "seed=7,snr13=-10"], home.path());
    check(&["judge", &loud.display().to_string()], 5, &["NO VERDICT  inconclusive", "exit 5"]);
    let dead = import(&[&session("mqtt-dead-amp"), "--room", "seed=7,snr13=20"], home.path());
    // A proven failure is not hidden by the others: 1 wins over 3 and 5.
    check(&["judge", &home.path().display().to_string()], 1, &["silent_success", "rig_blind"]);
    assert!(dead.join("mic-001.wav").exists());
}

#[test]
fn another_law_is_named_from_the_step() {
    let home = TempDir::new().expect("a folder");
    let folder = import(&[&session("mqtt-es8311-healthy"), "--law", "no_audio_codec"], home.path());
    let says = ["FAIL  wrong_law", "that is the step of esp_codec_dev"];
    check(&["judge", &folder.display().to_string()], 1, &says);
    let attempt =
        import(&[&session("mqtt-es8311-healthy"), "--law", "no_audio_codec"], home.path());
    assert_eq!(attempt.file_name().expect("a name"), "2", "an attempt is never overwritten");
}

#[test]
fn bad_input_is_refused_with_place_and_remedy() {
    let home = TempDir::new().expect("a folder");
    let empty = home.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    check(&["judge", &empty.display().to_string()], 2, &["is not a recording", "head.json"]);
    check(&["import", &empty.display().to_string()], 2, &["meta.json", "not found"]);
    check(&["import", &session("mqtt-healthy"), "--room", "seed=7"], 2, &["`snr13` is missing"]);
    check(&["import", &session("mqtt-healthy"), "--law", "es8311"], 2, &["esp_codec_dev"]);

    let scenario = home.path().join("mine.toml");
    fs::write(&scenario, "version = 1\nquestion = \"?\"\n[[claim]]\nid = \"x\"\nrequire = 1\n")
        .expect("written");
    let scenario = scenario.display().to_string();
    let says = ["mine.toml:5:1", "did you mean `requires`?"];
    check(&["judge", &session("mqtt-healthy"), "--scenario", &scenario], 2, &says);
    check(&["import", &session("mqtt-healthy"), "--scenario", &scenario], 2, &says);

    let folder = import(&[&session("mqtt-reboot-nosub")], home.path());
    let records = folder.join("records.jsonl");
    let text = fs::read_to_string(&records).expect("records");
    let broken: Vec<&str> =
        text.lines().enumerate().map(|(n, l)| if n == 4 { "{\"n\":4,x" } else { l }).collect();
    fs::write(&records, broken.join("\n") + "\n").expect("written");
    check(&["judge", &folder.display().to_string()], 3, &["records.jsonl:5", "damaged"]);
    let head = fs::read_to_string(folder.join("head.json")).expect("head");
    fs::write(folder.join("head.json"), head.replace("\"format\": 1", "\"format\": 9"))
        .expect("written");
    check(&["judge", &folder.display().to_string()], 3, &["format 9 is newer"]);
}

#[test]
fn the_report_is_json_too() {
    let home = TempDir::new().expect("a folder");
    let file = home.path().join("run.json");
    check(&["judge", &session("mqtt-healthy"), "--json", &file.display().to_string()], 0, &[]);
    let run: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).expect("run.json")).expect("JSON");
    let session = &run["sessions"][0];
    assert_eq!(run["schema_version"], 1);
    assert_eq!(session["origin"], "imported");
    assert_eq!(session["outcome"], "pass");
    let claim = &session["claims"][0];
    let step =
        &claim["findings"].as_array().expect("findings").last().expect("one")["measurements"][0];
    assert_eq!(step["name"], "level_step");
    assert!((step["value"].as_f64().expect("a number") - 7.044).abs() < 0.05);
    assert!(!claim["findings"][0]["records"].as_array().expect("records").is_empty());
}
