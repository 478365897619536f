//! Evidence: sessions of the real xiaozhi-esp32 firmware whose truth is known (`expect.json`).
//! Device, traffic and loudspeaker signal are genuine; the room, its noise and its ears are ours.
//!
//! The table of `the_matrix_never_lies` is printed by
//! `cargo test --release --test real_firmware matrix -- --nocapture`.
//! `EARWITNESS_SESSIONS=FOLDER` adds further sessions.

use earwitness::app::evaluate::{evaluate, shipped};
use earwitness::judge::{Discrepancy, Outcome, Verdict};
use earwitness::rig::import::{Options, import};
use earwitness::rig::room::{Ear, Room};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The shipped sessions and those that the environment adds.
fn sessions() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions")];
    folders.extend(std::env::var_os("EARWITNESS_SESSIONS").map(PathBuf::from));
    let mut found: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("the folder of sessions"))
        .map(|entry| entry.expect("a folder entry").path())
        .filter(|path| path.join("expect.json").exists())
        .collect();
    found.sort();
    found
}

fn verdict(folder: &Path, room: Option<Room>) -> Verdict {
    let options = Options { room, ..Options::default() };
    let recording = import(folder, &options, &shipped()).expect("the session imports");
    evaluate(&recording, None).expect("the recording can be judged").verdict
}

/// Runs `work` for every item on all cores; results in order of the items.
fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let n = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(n)
                {
                    let result = work(item);
                    results.lock().expect("no worker panicked").insert(n, result);
                }
            });
        }
    });
    results.into_inner().expect("no worker panicked").into_values().collect()
}

fn measured(verdict: &Verdict, name: &str) -> Option<(f64, f64)> {
    let findings = verdict.claims.iter().flat_map(|c| &c.findings);
    let mut all = findings.flat_map(|f| &f.measurements);
    all.find(|m| m.name == name).map(|m| (m.value, m.uncertainty.unwrap_or(0.0)))
}

/// Everything in which a verdict differs from the session's truth.
fn differences(expect: &Value, verdict: &Verdict, room: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let claim = verdict.claims.iter().find(|c| expect["claim"] == c.id.as_str());
    let Some(claim) = claim else { return vec!["the claim is missing".into()] };
    let mut check = |what: &str, expected: &Value, found: Option<String>| {
        let right = match expected {
            Value::Null => found.is_none(),
            Value::String(any) => found.as_deref().is_some_and(|f| any.split('|').any(|a| a == f)),
            other => found.as_deref() == Some(&other.to_string()),
        };
        if !right {
            wrong.push(format!("{what}: expected {expected}, found {found:?}"));
        }
    };
    check("outcome", &expect["outcome"], Some(verdict.outcome.to_string()));
    let broken = claim.first_broken.map(|rung| rung.to_string());
    check("first broken rung", &expect["first_broken_rung"], broken);
    check("discrepancy", &expect["discrepancy"], Some(claim.discrepancy.name()));
    for count in ["boots", "panics"] {
        if !expect[count].is_null() {
            let found = measured(verdict, count).map(|(n, _)| format!("{n:.0}"));
            check(count, &expect[count], found);
        }
    }
    if let Some(law) = expect["law"].as_str() {
        let named = claim.findings.iter().any(|f| f.reason.contains(&format!("law {law}")));
        check("law", &Value::Bool(true), Some(named.to_string()));
    }
    if let Some(stated) = expect["step_db"].as_f64() {
        // In a room the noise moves the level; its own uncertainty says how far.
        let near = measured(verdict, "level_step").is_some_and(|(step, uncertainty)| {
            let limit = if room { 0.05 + 2.0 * uncertainty } else { 0.05 };
            (step - stated).abs() <= limit
        });
        check(&format!("step {stated} dB"), &Value::Bool(true), Some(near.to_string()));
    }
    wrong
}

#[test]
fn every_session_is_judged_to_its_truth_as_tap_and_in_a_hundred_rooms() {
    let mut wrong = 0;
    println!("{:<24} {:>7} {:>7}", "session", "judged", "wrong");
    for folder in sessions() {
        let text = fs::read_to_string(folder.join("expect.json")).expect("expect.json");
        let expect: Value = serde_json::from_str(&text).expect("expect.json is JSON");
        let rooms = (1..=100).map(|seed| Some(Room { seed, snr13_db: 20.0, ear: Ear::Good }));
        let cases: Vec<Option<Room>> = std::iter::once(None).chain(rooms).collect();
        let results = on_all_cores(&cases, |room| {
            differences(&expect, &verdict(&folder, room.clone()), room.is_some())
        });
        let bad: Vec<_> = cases.iter().zip(&results).filter(|(_, d)| !d.is_empty()).collect();
        let name = folder.file_name().expect("a named folder").display().to_string();
        println!("{name:<24} {:>7} {:>7}", cases.len(), bad.len());
        for (room, differences) in bad.iter().take(3) {
            let room = room.as_ref().map_or("tap".to_owned(), Room::to_string);
            println!("    {room}: {}", differences.join("; "));
        }
        wrong += bad.len();
    }
    assert_eq!(wrong, 0, "sessions judged wrong; see the table above");
}

/// What became of the sessions of one cell.
#[derive(Default)]
struct Cell {
    pass: usize,
    fail: usize,
    inconclusive: usize,
    error: usize,
}

impl Cell {
    fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Pass => &mut self.pass,
            Outcome::Fail => &mut self.fail,
            Outcome::Inconclusive => &mut self.inconclusive,
            Outcome::Error => &mut self.error,
        } += 1;
    }
}

const SEEDS: u64 = 20;
const SNR13: [f64; 11] = [-10.0, -5.0, 0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0];
const BOARDS: [(&str, &str, Outcome); 3] = [
    ("healthy", "mqtt-healthy", Outcome::Pass),
    ("dead-amp", "mqtt-dead-amp", Outcome::Fail),
    ("stuck-volume", "mqtt-stuck-volume", Outcome::Fail),
];

/// A reason why a verdict is wrong for this board and ear, if it is.
fn lie(verdict: &Verdict, truth: Outcome, room: &Room) -> Option<&'static str> {
    let claim = &verdict.claims[0];
    let judged = matches!(verdict.outcome, Outcome::Pass | Outcome::Fail);
    let reasoned = claim.decisive().is_some_and(|f| !f.reason.is_empty());
    let certain = measured(verdict, "level_step").is_some_and(|(_, u)| u <= 0.5);
    match verdict.outcome {
        Outcome::Pass if truth != Outcome::Pass => Some("wrong pass"),
        Outcome::Fail if truth != Outcome::Fail => Some("wrong fail"),
        _ if room.ear != Ear::Good && judged => Some("judged without a proven ear"),
        _ if room.ear == Ear::Good && !judged && room.snr13_db >= 20.0 => {
            Some("not judged although it could hear")
        }
        _ if room.ear == Ear::Good && !judged && certain => {
            Some("not judged although certain enough")
        }
        _ if !judged && !reasoned => Some("not judged without a reason"),
        Outcome::Error if claim.discrepancy != Discrepancy::RigBlind => Some("error without cause"),
        _ => None,
    }
}

#[test]
fn the_matrix_never_lies() {
    let ears = [Ear::Good, Ear::Deaf, Ear::Zeros, Ear::Uncontrolled];
    let mut lies = Vec::new();
    println!("pass/fail/inconclusive/error of {SEEDS} seeds; SNR13 of the quieter tone in dB");
    print!("{:<14}{:<14}", "board", "ear");
    SNR13.iter().for_each(|snr| print!("{snr:>12.0}"));
    println!();
    for (board, session, truth) in BOARDS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions").join(session);
        for ear in ears {
            let rooms: Vec<Room> = SNR13
                .iter()
                .flat_map(|&snr13_db| (1..=SEEDS).map(move |seed| Room { seed, snr13_db, ear }))
                .collect();
            let results = on_all_cores(&rooms, |room| {
                let verdict = verdict(&folder, Some(room.clone()));
                (verdict.outcome, lie(&verdict, truth, room))
            });
            let mut cells: Vec<Cell> = SNR13.iter().map(|_| Cell::default()).collect();
            for (n, (outcome, lie)) in results.into_iter().enumerate() {
                cells[n / SEEDS as usize].count(outcome);
                lies.extend(lie.map(|what| format!("{board} {}: {what}", rooms[n])));
            }
            print!("{board:<14}{:<14}", ear.to_string());
            for Cell { pass, fail, inconclusive, error } in &cells {
                print!("{:>12}", format!("{pass}/{fail}/{inconclusive}/{error}"));
            }
            println!();
        }
    }
    lies.iter().take(20).for_each(|lie| println!("    {lie}"));
    assert_eq!(lies.len(), 0, "the matrix holds lies; see above");
}

/// Changes the samples of a session in the room of seed 7 at SNR13 20 dB.
fn heard_through(session: &str, change: impl Fn(f64, f64) -> f64) -> Verdict {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions").join(session);
    let room = Some(Room { seed: 7, snr13_db: 20.0, ear: Ear::Good });
    let options = Options { room, ..Options::default() };
    let recording = import(&folder, &options, &shipped()).expect("imports");
    let recording = recording.map_segments(|mut segment| {
        for (n, x) in segment.samples.iter_mut().enumerate() {
            *x = change(n as f64 / f64::from(segment.rate), *x);
        }
        segment
    });
    evaluate(&recording, None).expect("can be judged").verdict
}

/// An ear whose gain moves makes steps and hides them; it proves nothing about the board.
#[test]
fn an_ear_that_changes_is_no_witness() {
    let check = |what: &str, session, change: &dyn Fn(f64, f64) -> f64, outcome, said: &str| {
        let verdict = heard_through(session, change);
        let reason = verdict.claims[0].decisive().map_or("", |f| f.reason.as_str());
        assert_eq!(verdict.outcome, outcome, "{what}: {reason}");
        assert!(reason.contains(said), "{what}: {reason}");
    };
    // Seconds in the ear's file: the second and fourth tone, and all four.
    let loud = |t: f64| (10.0..12.0).contains(&t) || (14.2..16.2).contains(&t);
    let all = |t: f64| (7.8..16.5).contains(&t);
    let db = |db: f64| 10f64.powf(db / 20.0);
    let unjudged = Outcome::Inconclusive;
    let scaled = |x: f64, on: bool, by: f64| if on { x * by } else { x };
    let (good, stuck) = ("mqtt-healthy", "mqtt-stuck-volume");
    check("a still ear", good, &|_, x| x, Outcome::Pass, "");
    check("AGC", good, &|t, x| scaled(x, loud(t), db(-7.0)), unjudged, "AGC");
    check("AGC", stuck, &|t, x| scaled(x, loud(t), db(7.0)), unjudged, "AGC");
    check("2.5 dB of AGC", good, &|t, x| scaled(x, loud(t), db(-2.5)), unjudged, "AGC");
    check("turned down", good, &|t, x| scaled(x, all(t), db(-60.0)), unjudged, "AGC");
    let gone = |t: f64| (8.40..8.42).contains(&t);
    check("20 ms of zeros", good, &|t, x| scaled(x, gone(t), 0.0), Outcome::Error, "exact zeros");
}

/// The real loudspeaker signal, spoilt after the fact: what a board with that fault would emit.
#[test]
fn a_spoilt_signal_is_not_mistaken_for_a_good_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions/mqtt-healthy");
    let check = |what: &str, spoil: &dyn Fn(&[f64]) -> Vec<f64>, outcome, name| {
        let recording = import(&folder, &Options::default(), &shipped()).expect("imports");
        let recording = recording.map_segments(|mut segment| {
            segment.samples = spoil(&segment.samples);
            segment
        });
        let verdict = evaluate(&recording, None).expect("can be judged").verdict;
        let found = (verdict.outcome, verdict.claims[0].discrepancy);
        assert_eq!(found, (outcome, name), "{what}: {:?}", verdict.claims[0].decisive());
    };
    use Discrepancy::{Agree, SilentSuccess, WrongLaw, WrongSource};
    use Outcome::{Fail, Pass};
    // Plays each of the four tones at another speed, from the same instant on.
    let at_speed = |ratio: f64| {
        move |samples: &[f64]| -> Vec<f64> {
            let second = 24_000.0;
            let starts = [5.5, 7.6, 9.7, 11.8].map(|t: f64| t * second);
            let source = |n: f64| {
                let start = starts.iter().rev().find(|s| n >= **s).copied().unwrap_or(0.0);
                let at = if start > 0.0 { start + (n - start) * ratio } else { n };
                let (k, part) = (at as usize, at.fract());
                let next = samples.get(k + 1).copied().unwrap_or(0.0);
                samples.get(k).map_or(0.0, |x| x * (1.0 - part) + next * part)
            };
            (0..samples.len()).map(|n| source(n as f64)).collect()
        }
    };
    let scale = |gain: f64| move |s: &[f64]| s.iter().map(|x| x * gain).collect::<Vec<f64>>();
    let hum = |s: &[f64]| {
        let tone = |n: usize| 0.05 * (std::f64::consts::TAU * 1000.0 * n as f64 / 24_000.0).sin();
        s.iter().enumerate().map(|(n, x)| x + tone(n)).collect::<Vec<f64>>()
    };
    let faint_hum = |s: &[f64]| {
        let tone = |n: usize| 0.005 * (std::f64::consts::TAU * 1000.0 * n as f64 / 24_000.0).sin();
        s.iter().enumerate().map(|(n, x)| x + tone(n)).collect::<Vec<f64>>()
    };
    let stutter = |s: &[f64]| {
        let on = |n: usize| f64::from(n % 1440 < 720);
        s.iter().enumerate().map(|(n, x)| x * on(n)).collect::<Vec<f64>>()
    };
    let early = |s: &[f64]| [&s[4800..], &[0.0; 4800]].concat();
    let limited = |s: &[f64]| s.iter().map(|x| x.clamp(-0.045, 0.045)).collect::<Vec<f64>>();
    check("as it is", &scale(1.0), Pass, Agree);
    check("inverted", &scale(-1.0), Pass, Agree);
    check("half as loud", &scale(0.5), Pass, Agree);
    check("silence", &scale(0.0), Fail, SilentSuccess);
    check("24 kHz sent, 22.05 played", &at_speed(0.9188), Fail, WrongSource);
    check("22.05 kHz sent, 24 played", &at_speed(1.0884), Fail, WrongSource);
    check("16 kHz sent, 24 played", &at_speed(1.5), Fail, WrongSource);
    check("a semitone higher", &at_speed(1.0595), Outcome::Inconclusive, WrongSource);
    check("a second board plays", &hum, Outcome::Inconclusive, WrongSource);
    check("a faint second board", &faint_hum, Outcome::Inconclusive, WrongSource);
    check("stutter", &stutter, Outcome::Inconclusive, Discrepancy::Inconclusive);
    check("0.2 s early", &early, Pass, Agree);
    check("40 dB too weak", &scale(0.01), Outcome::Inconclusive, Discrepancy::Inconclusive);
    check("a limiter", &limited, Fail, WrongLaw);
    check(
        "cut off",
        &|s| s[..s.len() / 2].to_vec(),
        Outcome::Inconclusive,
        Discrepancy::Inconclusive,
    );
}
