//! Robustness: a recording of a real session, cut off at any byte of any of its files, as a
//! killed process, a full disk or a bad copy leaves it. It is never judged: exit 3, no verdict.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use earwitness::journal::{Condition, Evidence, JournalError, Recording};
use earwitness::judge::{Ear, Outcome, Terms, judge};
use earwitness::rig::import::{Options, Shipped, import};
use earwitness::rig::plan::{EarKind, Plan};
use earwitness::scenario::{Profile, Scenario, for_imported};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Sessions, and every how many-th cut of them is tried: all of the one that may not pass.
const SESSIONS: [(&str, usize); 2] = [("mqtt-healthy", 1), ("mqtt-dead-amp", 16)];
/// Every byte of the beginning is a cut: a WAV file's header ends in there.
const START: u64 = 64;
/// Every byte of the end is a cut.
const TAIL: u64 = 4096;
/// Seeded cuts in between.
const ELSEWHERE: usize = 1000;

/// The session as a recording on disk.
fn saved(session: &str) -> (TempDir, PathBuf) {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("recording");
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions").join(session);
    let shipped = Shipped { scenario_for: &for_imported, profile: Profile::xiaozhi() };
    import(&session, &Options::default(), &shipped).unwrap().save(&folder).unwrap();
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
fn check(file: &str, expect: impl Fn(u64, &str)) {
    for (session, every) in SESSIONS {
        let (_home, folder) = saved(session);
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
            expect(cut, &why);
        }
    }
}

#[test]
fn a_cut_journal_is_incomplete() {
    check("records.jsonl", |cut, why| {
        let said = why.starts_with("records.jsonl is torn in line ")
            || why == "records.jsonl has no end record";
        assert!(said, "cut to {cut}: {why}");
        assert!(cut > 0 || why == "records.jsonl has no end record", "{why}");
    });
}

#[test]
fn a_cut_head_is_torn() {
    check("head.json", |cut, why| {
        assert!(why.contains("head.json: the head of the recording is torn ("), "{cut}: {why}");
    });
}

#[test]
fn a_cut_sound_file_is_incomplete() {
    const HEADER: u64 = 44;
    check("mic-001.wav", |cut, why| {
        let said = if cut < HEADER {
            why.contains("mic-001.wav: the file ends inside its header")
        } else {
            why.starts_with(&format!("mic-001.wav holds {} of ", (cut - HEADER) / 2))
        };
        assert!(said, "cut to {cut}: {why}");
    });
}

/// What users see: the program itself.
#[cfg(feature = "cli")]
#[test]
fn the_program_gives_no_verdict() {
    use std::{fs, process::Command};
    let judged = |folder: &Path| {
        let program = Command::new(env!("CARGO_BIN_EXE_earwitness"))
            .arg("judge")
            .arg(folder)
            .env("NO_COLOR", "1")
            .output()
            .unwrap();
        (program.status.code(), String::from_utf8(program.stdout).unwrap())
    };
    for ((session, _), code) in SESSIONS.into_iter().zip([0, 1]) {
        let (_home, folder) = saved(session);
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
