//! The console in other chunks: a recorder cuts it where it likes, and what the redactor holds back
//! to look for secrets across the cuts must keep the time at which it came.

use super::{copy, load, observations, session};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use earwitness::decode::{Decoder, What};
use earwitness::journal::{Evidence as _, MemoryRecording, Observation};
use earwitness::rig::import::Options;
use earwitness::time::Moment;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Cuts each chunk of the console into pieces of `size` bytes, which came 10 us apart; only as
/// many as there is time before the next event.
fn cut_up(folder: &Path, size: usize) {
    let path = folder.join("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let time = |n: usize| events.get(n).map_or(f64::MAX, |event| event["t"].as_f64().unwrap());
    let mut lines = String::new();
    for (n, event) in events.iter().enumerate() {
        if event["ch"] != "uart" {
            lines.push_str(&format!("{event}\n"));
            continue;
        }
        let bytes = STANDARD.decode(event["b64"].as_str().unwrap()).unwrap();
        for (k, piece) in bytes.chunks(size).enumerate() {
            let t = (time(n) + 1e-5 * k as f64).min(time(n + 1));
            let b64 = STANDARD.encode(piece);
            let event = json!({"t": t, "ch": "uart", "dir": "rx", "b64": b64});
            lines.push_str(&format!("{event}\n"));
        }
    }
    fs::write(&path, lines).unwrap();
}

/// What the console says, and when each of it began.
fn said(recording: &MemoryRecording) -> Vec<(Moment, What)> {
    let mut decoder = Decoder::default();
    let records = recording.records().map(Result::unwrap);
    let mut facts: Vec<_> = records.flat_map(|record| decoder.take(&record)).collect();
    facts.extend(decoder.finish());
    let console = facts.into_iter().filter(|f| matches!(f.what, What::Uart(_) | What::Boot(_)));
    console.map(|fact| (fact.at, fact.what)).collect()
}

/// When each byte of the console came, by the events.
fn written(folder: &Path) -> Vec<Moment> {
    let text = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let times = |event: Value| {
        let bytes = STANDARD.decode(event["b64"].as_str().unwrap()).unwrap();
        vec![Moment::from_secs_f64(event["t"].as_f64().unwrap()); bytes.len()]
    };
    events.filter(|event| event["ch"] == "uart").flat_map(times).collect()
}

/// The same by a recording.
fn recorded(recording: &MemoryRecording) -> Vec<Moment> {
    let times = |(at, what)| match what {
        Observation::Uart(bytes) => vec![at; bytes.0.len()],
        _ => Vec::new(),
    };
    observations(recording).into_iter().flat_map(times).collect()
}

#[test]
fn the_console_says_the_same_in_any_chunks() {
    for name in ["mqtt-healthy", "mqtt-reboot-nosub"] {
        let whole = load(&session(name), &Options::default()).unwrap();
        let expected = said(&whole);
        let chunks = recorded(&whole);
        assert!(chunks == written(&session(name)), "{name}");
        for size in [1, 2, 7, 50] {
            let (_home, folder) = copy(name, |folder| cut_up(folder, size));
            let recording = load(&folder, &Options::default()).unwrap();
            assert!(recorded(&recording) == written(&folder), "{name} in pieces of {size}");
            let told = said(&recording);
            assert_eq!(told.len(), expected.len(), "{name} in pieces of {size}");
            for ((at, what), (original, same)) in told.into_iter().zip(&expected) {
                assert_eq!(what, *same, "{name} in pieces of {size}");
                let next = chunks.iter().find(|chunk| *chunk > original);
                let within = *original <= at && next.is_none_or(|next| at <= *next);
                assert!(within, "{name} in pieces of {size}: {what:?} at {at}, was {original}");
            }
        }
    }
}
