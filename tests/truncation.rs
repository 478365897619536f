//! Robustness: a recording of a real session, cut off at any byte of any of its files, as a
//! killed process, a full disk or a bad copy leaves it, or with any bit changed. It is never
//! judged: exit 3, no verdict.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use earwitness::journal::{Condition, Evidence, JournalError, Recording, Seal};
use earwitness::judge::{Ear, Outcome, Terms, judge};
use earwitness::rig::import::{Options, Shipped, import};
use earwitness::rig::plan::{EarKind, Plan};
use earwitness::scenario::{Profile, Scenario, for_imported};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Sessions, their rooms, and every how many-th cut of them is tried: all of those that may not
/// pass. Without a room the ear is a tap of 16 bit, in one a microphone of floats.
const SESSIONS: [(&str, Option<&str>, usize); 3] = [
    ("mqtt-healthy", None, 1),
    ("mqtt-healthy", Some("seed=7,snr13=20"), 4),
    ("mqtt-dead-amp", None, 16),
];
/// Every byte of the beginning is a cut: a WAV file's header ends in there.
const START: u64 = 128;
/// Every byte of the end is a cut.
const TAIL: u64 = 4096;
/// Seeded cuts in between.
const ELSEWHERE: usize = 1000;

/// The session as a recording on disk.
fn saved(session: &str, room: Option<&str>) -> (TempDir, PathBuf) {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("recording");
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions").join(session);
    let shipped = Shipped { scenario_for: &for_imported, profile: Profile::xiaozhi() };
    let options = Options { room: room.map(|r| r.parse().unwrap()), ..Options::default() };
    import(&session, &options, &shipped).unwrap().save(&folder).unwrap();
    (home, folder)
}

/// Lengths to cut a file to, longest first: in the tail, at the start, and seeded ones anywhere.
fn cuts(length: u64, start: u64, tail: u64, elsewhere: usize) -> Vec<u64> {
    let mut cuts: BTreeSet<u64> = (length.saturating_sub(tail)..length).collect();
    cuts.extend(0..start.min(length));
    let mut state = length;
    for _ in 0..elsewhere {
        // Knuth's MMIX generator; its high bits are good enough to spread cuts.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        cuts.insert((state >> 32) % length);
    }
    cuts.extend([0, 1, 30, length - 1]);
    cuts.into_iter().rev().collect()
}

/// The outcome as the judge puts it.
fn outcome(recording: &Recording) -> Outcome {
    let head = recording.head();
    let plan = Plan::load(&head.rig).unwrap();
    let terms = Terms {
        ear: match plan.ear {
            EarKind::Tap => Ear::Tap,
            EarKind::Microphone => Ear::Microphone,
        },
        law: plan.law,
        path_gain_db: plan.path_gain_db,
        profile: Profile::load(&head.profile).unwrap(),
    };
    let verdict = judge(&Scenario::load(&head.scenario).unwrap(), &terms, recording).unwrap();
    assert_eq!(verdict.incomplete.is_empty(), recording.condition() == &Condition::Complete);
    verdict.outcome
}

/// Cuts `file` shorter and shorter; `expect` may look at why it is not judged. Every 256th cut
/// and those at the borders are put before the judge as well.
fn check(file: &str, expect: impl Fn(u64, &str, bool)) {
    for (session, room, every) in SESSIONS {
        let (_home, folder) = saved(session, room);
        let whole = Recording::open(&folder).unwrap();
        assert_eq!(whole.condition(), &Condition::Complete);
        assert_ne!(outcome(&whole), Outcome::Error, "{session} can be judged before it is cut");
        let handle = File::options().write(true).open(folder.join(file)).unwrap();
        let length = handle.metadata().unwrap().len();
        for (k, cut) in cuts(length, START, TAIL, ELSEWHERE).into_iter().enumerate() {
            let at_border = cut < 2 || cut + 2 > length;
            if k % every != 0 && cut >= START && !at_border {
                continue;
            }
            handle.set_len(cut).unwrap();
            let why = match Recording::open(&folder) {
                Ok(recording) => {
                    if k % 256 == 0 || at_border {
                        assert_eq!(outcome(&recording), Outcome::Error, "{file} cut to {cut}");
                    }
                    match recording.condition() {
                        Condition::Incomplete(why) => why.join("; "),
                        Condition::Complete => panic!("{session}: {file} cut to {cut} is whole"),
                    }
                }
                // Every other error is a usage error or can't come from a cut.
                Err(error @ JournalError::TornHead { .. }) => error.to_string(),
                Err(error) => panic!("{session}: {file} cut to {cut}: {error}"),
            };
            expect(cut, &why, room.is_some());
        }
    }
}

#[test]
fn a_cut_journal_is_incomplete() {
    check("records.jsonl", |cut, why, _| {
        let said = why.starts_with("records.jsonl is torn in line ")
            || why == "records.jsonl has no end record";
        assert!(said, "cut to {cut}: {why}");
        assert!(cut > 0 || why == "records.jsonl has no end record", "{why}");
    });
}

#[test]
fn a_cut_head_is_torn() {
    check("head.json", |cut, why, _| {
        assert!(why.contains("head.json: the head of the recording is torn ("), "{cut}: {why}");
    });
}

#[test]
fn a_cut_sound_file_is_incomplete() {
    check("mic-001.wav", |cut, why, microphone| {
        let (header, width) = if microphone { (68, 4) } else { (44, 2) };
        let said = if cut < header {
            why.contains("mic-001.wav: the file ends inside its header")
        } else {
            why.starts_with(&format!("mic-001.wav holds {} of ", (cut - header) / width))
        };
        assert!(said, "cut to {cut}: {why}");
    });
}

#[test]
fn a_changed_file_is_refused() {
    for room in [None, Some("seed=7,snr13=20")] {
        let (_home, folder) = saved("mqtt-healthy", room);
        for file in ["mic-001.wav", "head.json", "records.jsonl"] {
            let path = folder.join(file);
            let bytes = fs::read(&path).unwrap();
            let refused = |changed: &[u8]| {
                fs::write(&path, changed).unwrap();
                match Recording::open(&folder) {
                    Err(error) => error.to_string(),
                    // The end record or its newline is no longer one.
                    Ok(opened) => match opened.condition() {
                        Condition::Incomplete(why) if file == "records.jsonl" => why.join("; "),
                        condition => panic!("{file} was changed: {condition:?}"),
                    },
                }
            };
            for at in cuts(bytes.len() as u64, 4, 4, 40) {
                let mut changed = bytes.clone();
                changed[at as usize] ^= 0x01;
                let why = refused(&changed);
                assert!(why.contains(file), "{at}: {why}");
            }
            if file != "records.jsonl" {
                let why = refused(&[&bytes[..], b"\n"].concat());
                assert!(why.contains("were recorded") || why.contains("torn"), "{why}");
            }
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(Recording::open(&folder).unwrap().condition(), &Condition::Complete);
    }
}

/// A forged journal, its end record vouching for what it holds.
fn forged(change: impl Fn(&str) -> String) -> String {
    let (_home, folder) = saved("mqtt-healthy", None);
    let path = folder.join("records.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let (body, end) = text.trim_end().rsplit_once('\n').unwrap();
    let body = change(&format!("{body}\n"));
    let mut end: Value = serde_json::from_str(end).unwrap();
    let sealed = &mut end["end"]["files"]["records.jsonl"];
    *sealed = serde_json::to_value(Seal::of(body.as_bytes())).unwrap();
    fs::write(&path, format!("{body}{end}\n")).unwrap();
    Recording::open(&folder).expect_err("it was forged").to_string()
}

#[test]
fn a_forged_record_is_refused_with_its_line() {
    let line = |number: usize, change: &dyn Fn(&mut Value)| {
        forged(|body| {
            let lines = (1..).zip(body.lines()).map(|(n, line)| match n == number {
                true => {
                    let mut record = serde_json::from_str(line).unwrap();
                    change(&mut record);
                    format!("{record}\n")
                }
                false => format!("{line}\n"),
            });
            lines.collect()
        })
    };
    let check = |change: &dyn Fn(&mut Value), why: &str| {
        let error = line(20, change);
        assert!(error.contains("records.jsonl:20: ") && error.contains(why), "{error}");
    };
    let sound = |first: u64, count: u64| {
        let what = json!({"sound": {"segment": 1, "first": first, "count": count}});
        move |record: &mut Value| record["saw"]["what"] = what.clone()
    };
    check(&sound(u64::MAX, 1), "more samples");
    check(&sound(0, 1), "belong to a block before it");
    check(&|record| record["n"] = json!(u64::MAX), "stands in its place");
    check(&|record| record["at"] = json!(0), "earlier than that of the record before");
    let late = |record: &mut Value| {
        record["saw"] = json!({"captured_at": u64::MAX, "what": {"pressed": {"button": "boot"}}});
    };
    check(&late, "captured");
}

/// What users see: the program itself.
#[cfg(feature = "cli")]
#[test]
fn the_program_gives_no_verdict() {
    use std::process::Command;
    let judged = |folder: &Path| {
        let program = Command::new(env!("CARGO_BIN_EXE_earwitness"))
            .arg("judge")
            .arg(folder)
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        (program.status.code(), String::from_utf8(program.stdout).unwrap())
    };
    for ((session, room, _), code) in SESSIONS.into_iter().zip([0, 0, 1]) {
        let (_home, folder) = saved(session, room);
        assert_eq!(judged(&folder).0, Some(code), "{session}, whole");
        for file in ["mic-001.wav", "records.jsonl", "head.json"] {
            let path = folder.join(file);
            let bytes = fs::read(&path).unwrap();
            for cut in cuts(bytes.len() as u64, 0, 1, 8) {
                File::options().write(true).open(&path).unwrap().set_len(cut).unwrap();
                let (code, out) = judged(&folder);
                assert_eq!(code, Some(3), "{session}: {file} cut to {cut}: {out}");
                assert!(out.contains("NO VERDICT"), "{session}: {file} cut to {cut}: {out}");
                assert!(!out.contains("PASS") && !out.contains("FAIL"), "{out}");
            }
            fs::write(&path, bytes).unwrap();
        }
        assert_eq!(judged(&folder).0, Some(code), "{session}, whole again");
    }
}
