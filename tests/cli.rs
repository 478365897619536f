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
        .env_remove("CI")
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
    let [healthy, dead] = ["mqtt-healthy", "mqtt-dead-amp"].map(session);
    check(&["judge", &healthy], 0, &[&format!("PASS  {healthy}  ")]);
    check(&["judge", &dead], 1, &[&format!("FAIL  silent_success  {dead}  ")]);
    let all = sessions().display().to_string();
    let [stuck, ws] = ["mqtt-stuck-volume", "ws-healthy"].map(session);
    let tally = "\n7 sessions: 5 passed, 2 failed, 0 not judged  exit 1\n";
    let says = [&*format!("FAIL  silent_success  {stuck}"), &*format!("PASS  {ws}"), tally];
    check(&["judge", &all], 1, &says);
    check(&["judge", &session("mqtt-healthy"), "--quiet"], 0, &[]);
    check(&["judge", "/nowhere/at/all"], 2, &["INVALID", "/nowhere/at/all is no folder"]);
    check(&["judge"], 2, &["Usage"]);
    check(&["judge", &session("mqtt-healthy"), "/nowhere"], 2, &["PASS", "INVALID"]);
}

#[test]
fn nothing_below_a_folder_is_overlooked() {
    let home = TempDir::new().expect("a folder");
    let top = home.path().display().to_string();
    let good = import(&[&session("mqtt-reboot-nosub")], &home.path().join("1/2/3/4/5/6"));
    check(&["judge", &top], 0, &[&format!("PASS  {}  ", good.display())]);
    let text = check(&["judge", &top, &good.display().to_string(), &format!("{top}/.")], 0, &[]);
    assert_eq!(text.matches("PASS").count(), 1, "each session once:\n{text}");
    let failing = import(&[&session("mqtt-dead-amp")], &good.join("below/a/recording"));
    check(&["judge", &top], 1, &[&format!("FAIL  silent_success  {}  ", failing.display())]);

    for mark in
        ["head.json", "records.jsonl", "events.jsonl", "meta.json", "speaker.wav", "mic-002.wav"]
    {
        let home = TempDir::new().expect("a folder");
        let rest = home.path().join("of/a/session");
        fs::create_dir_all(&rest).expect("a folder");
        fs::write(rest.join(mark), "").expect("written");
        let (top, rest) = (home.path().display().to_string(), rest.display().to_string());
        let text = check(&["judge", &session("ws-healthy"), &top], 3, &["PASS", &rest]);
        assert!(text.contains(&format!("NO VERDICT  {rest}  exit 3")), "{mark}:\n{text}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_looked_into_is_an_error() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let home = TempDir::new().expect("a folder");
    let top = home.path().display().to_string();
    import(&[&session("mqtt-reboot-nosub")], home.path());
    // A circle is not walked.
    symlink(home.path(), home.path().join("circle")).expect("a link");
    check(&["judge", &top], 0, &["PASS"]);
    let locked = home.path().join("locked");
    fs::create_dir(&locked).expect("a folder");
    let mode = |mode| fs::set_permissions(&locked, fs::Permissions::from_mode(mode));
    mode(0).expect("its permissions change");
    // Root reads everything.
    if fs::read_dir(&locked).is_err() {
        check(&["judge", &top], 3, &["locked can't be looked into"]);
    }
    mode(0o700).expect("its permissions change");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_hides_no_failure() {
    let check = |name: &str, rest: &[&str], code| {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let output = Command::new(env!("CARGO_BIN_EXE_earwitness"))
            .args([&["judge", &session(name)], rest].concat())
            .stdout(full)
            .output()
            .expect("the program starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{name} {rest:?}: {errors}");
        assert!(errors.contains("standard output: "), "{errors}");
    };
    let home = TempDir::new().expect("a folder");
    let file = home.path().join("run.json");
    check("mqtt-dead-amp", &[], 1);
    check("mqtt-reboot-nosub", &["--json", &file.display().to_string()], 3);
    let run = fs::read_to_string(&file).expect("the report is written before the screens");
    assert!(run.contains("mqtt-reboot-nosub"), "{run}");
    check("mqtt-reboot-nosub", &["--json", "-"], 3);
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
fn an_import_that_cannot_be_written_ends_with_an_error() {
    let home = TempDir::new().expect("a folder");
    let file = home.path().join("file");
    fs::write(&file, "").expect("written");
    for place in [file.clone(), file.join("below")] {
        let arguments = ["import", &session("ws-healthy"), "--output-dir"];
        let place = place.display().to_string();
        check(&[&arguments[..], &[&place]].concat(), 3, &["NOT WRITTEN", "/file", "give a folder"]);
    }
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
    fs::write(folder.join("head.json"), head.replace("\"format\": 2", "\"format\": 9"))
        .expect("written");
    check(&["judge", &folder.display().to_string()], 3, &["`format` is 9", "update earwitness"]);
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("nothing but JSON")
}

#[test]
fn the_report_is_json_too() {
    let home = TempDir::new().expect("a folder");
    let file = home.path().join("run.json");
    let file = file.display().to_string();
    let healthy = session("mqtt-healthy");
    check(&["judge", &healthy, "--json", &file], 0, &["PASS"]);
    let run = json(&fs::read_to_string(&file).expect("run.json"));
    let session = &run["sessions"][0];
    assert_eq!(run["schema_version"], 1);
    for (field, value) in [
        ("path", healthy.as_str()),
        ("origin", "imported"),
        ("outcome", "pass"),
        ("discrepancy", "agree"),
        ("law", "no_audio_codec"),
    ] {
        assert_eq!(session[field], value, "{field}");
    }
    assert_eq!(session["rig"]["name"], "imported");
    assert_eq!(session["coverage"]["physical"][0], "self.audio_speaker.set_volume");
    let claim = &session["claims"][0];
    let step =
        &claim["findings"].as_array().expect("findings").last().expect("one")["measurements"][0];
    assert_eq!(step["name"], "level_step");
    assert!((step["value"].as_f64().expect("a number") - 7.044).abs() < 0.05);
    let cited = claim["findings"][0]["records"][0].to_string();
    let at = session["cited_records_ns"][&cited].as_u64().expect("the record's time");
    assert!(0 < at && at < session["ends_ns"].as_u64().expect("the session's end"));

    // What was not judged is in the report too, and an older report doesn't stay.
    let scenario = home.path().join("bad.toml");
    fs::write(&scenario, "version = 2").expect("written");
    let scenario = scenario.display().to_string();
    check(&["judge", &healthy, "--json", &file, "--scenario", &scenario], 2, &["INVALID"]);
    let run = json(&fs::read_to_string(&file).expect("run.json"));
    assert_eq!((&run["exit_code"], &run["refused"][0]["path"]), (&2.into(), &scenario.into()));
    assert!(run["sessions"].as_array().expect("sessions").is_empty());
}

#[test]
fn the_report_may_have_standard_output_to_itself() {
    let home = TempDir::new().expect("a folder");
    fs::write(home.path().join("meta.json"), "{}").expect("written");
    let broken = home.path().display().to_string();
    let [dead, ws] = ["mqtt-dead-amp", "ws-healthy"].map(session);
    let says = ["FAIL  silent_success", "PASS", "NO VERDICT"];
    let run = json(&check(&["judge", &dead, &ws, &broken, "--json", "-"], 1, &says));
    assert_eq!(run["exit_code"], 1);
    assert_eq!(run["sessions"].as_array().expect("sessions").len(), 2);
    let tool = "self.audio_speaker.set_volume";
    let coverage = &run["sessions"][0]["coverage"];
    assert_eq!(
        (&coverage["refuted"][0], &coverage["physical"]),
        (&tool.into(), &serde_json::json!([]))
    );
    assert_eq!(run["refused"][0]["path"], broken);
    assert_eq!(run["refused"][0]["exit_code"], 3);
    // Errors belong to standard error.
    assert_eq!(check(&["judge", &broken, "--quiet"], 3, &["NO VERDICT"]), "");
    let nowhere = format!("{broken}/no/run.json");
    let text = check(&["judge", &ws, "--json", &nowhere], 3, &["NO REPORT"]);
    assert!(!text.contains("NO REPORT"), "{text}");
}

#[test]
fn a_wrong_setting_is_refused_not_replaced() {
    let output = Command::new(env!("CARGO_BIN_EXE_earwitness"))
        .args(["judge", &session("ws-healthy")])
        .env("EARWITNESS_LOG", "earwitness=loud")
        .output()
        .expect("the program starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("EARWITNESS_LOG=earwitness=loud"), "{errors}");
}

#[test]
fn part_of_a_session_passes_nothing() {
    let home = TempDir::new().expect("a folder");
    let folder = import(&[&session("mqtt-healthy")], home.path());
    let records = folder.join("records.jsonl");
    let text = fs::read_to_string(&records).expect("records");
    let torn = text.trim_end().rsplit_once('\n').expect("many lines").0;
    fs::write(&records, format!("{torn}\n")).expect("written");
    let folder = folder.display().to_string();
    let text = check(&["judge", &folder], 3, &["NO VERDICT  incomplete", "no end record"]);
    assert!(!text.contains(" ok"), "{text}");
    let run = json(&check(&["judge", &folder, "--json", "-"], 3, &[]));
    let session = &run["sessions"][0];
    assert_eq!(
        (&session["outcome"], &session["claims"][0]["outcome"]),
        (&"error".into(), &"error".into())
    );
    assert_eq!(session["coverage"]["physical"], serde_json::json!([]));
}
