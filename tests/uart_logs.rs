//! Real console logs through the console decoder, and any cut of them.

// Clippy's own exemption for tests does not reach their helper functions.
#![allow(clippy::unwrap_used)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use earwitness::decode::uart::{Boots, Level, Lines, Meaning, RawLine, read};
use earwitness::time::Moment;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Meaningful lines that a summary spells out; the rest of a reset loop is counted.
const SPELLED_OUT: usize = 60;

static LOGS: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let mut logs: Vec<_> = std::fs::read_dir(tests().join("uart"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .map(|path| (name(&path), std::fs::read(&path).unwrap()))
        .collect();
    logs.sort();
    logs
});

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_string()
}

fn cut<'a>(chunks: impl IntoIterator<Item = (&'a [u8], Moment, u64)>) -> Vec<RawLine> {
    let mut lines = Lines::default();
    let mut out = Vec::new();
    for (chunk, at, record) in chunks {
        out.extend(lines.push(chunk, at, record));
    }
    out.extend(lines.flush());
    out
}

/// What the ears hear in a console: line numbers count the lines that aren't empty.
fn summary(lines: &[RawLine]) -> String {
    let mut boots = Boots::default();
    let mut levels = BTreeMap::<Level, usize>::new();
    let mut heard = Vec::new();
    for (number, raw) in (1..).zip(lines) {
        let line = read(&raw.text);
        if let Some(log) = &line.log {
            *levels.entry(log.level).or_default() += 1;
        }
        if line.means != Meaning::Nothing {
            heard.push((number, format!("{:?}", line.means), boots.see(&line)));
        } else {
            assert_eq!(boots.see(&line), None);
        }
    }
    let mut text = format!("{} lines, of the log {levels:?}\n", lines.len());
    for (number, means, event) in heard.iter().take(SPELLED_OUT) {
        writeln!(text, "{number:4} {means}").unwrap();
        if let Some(event) = event {
            writeln!(text, "     => {event:?}").unwrap();
        }
    }
    let mut rest = BTreeMap::<String, usize>::new();
    for (_, means, event) in heard.iter().skip(SPELLED_OUT) {
        let event = event.as_ref().map(|event| format!("=> {event:?}"));
        for said in std::iter::once(means.clone()).chain(event) {
            let kind = said.split(['(', '{']).next().unwrap_or_default().trim().to_string();
            *rest.entry(kind).or_default() += 1;
        }
    }
    if !rest.is_empty() {
        writeln!(text, "then {rest:#?}").unwrap();
    }
    writeln!(text, "boots {}", boots.current()).unwrap();
    text
}

#[test]
fn every_real_log_is_understood() {
    assert!(!LOGS.is_empty());
    for (name, bytes) in LOGS.iter() {
        let lines = cut([(&bytes[..], Moment::START, 0)]);
        insta::assert_snapshot!(name.clone(), summary(&lines));
    }
}

/// The console chunks of a recorded session, with their record numbers.
fn session(name: &str) -> Vec<(Vec<u8>, Moment, u64)> {
    let path = tests().join("sessions").join(name).join("events.jsonl");
    let mut chunks = Vec::new();
    for (number, line) in (0..).zip(std::fs::read_to_string(path).unwrap().lines()) {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        if event["ch"] == "uart" {
            let bytes = STANDARD.decode(event["b64"].as_str().unwrap()).unwrap();
            let at = Moment::from_secs_f64(event["t"].as_f64().unwrap());
            chunks.push((bytes, at, number));
        }
    }
    chunks
}

#[test]
fn a_recorded_session_is_understood_chunk_by_chunk() {
    for name in ["mqtt-reboot-nosub", "ws-healthy"] {
        let chunks = session(name);
        let lines = cut(chunks.iter().map(|(bytes, at, record)| (&bytes[..], *at, *record)));
        for line in &lines {
            assert!(chunks.iter().any(|(_, at, record)| (*at, *record) == (line.at, line.record)));
        }
        insta::assert_snapshot!(format!("session-{name}"), summary(&lines));
    }
}

/// A real log, or noise in which lines, Chinese and over-long lines occur.
fn console() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), 0..40),
        4 => "[你好世界A-z 0-9()：:]{0,20}".prop_map(String::into_bytes),
        4 => prop_oneof![Just("\n"), Just("\r\n"), Just("\0"), Just(" \r"), Just("I (1) a: 中")]
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => (16_300_usize..16_500).prop_map(|length| "中x".repeat(length / 4).into_bytes()),
    ];
    prop_oneof![
        any::<Index>().prop_map(|index| index.get(&LOGS).1.clone()),
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat()),
    ]
}

/// Cuts `bytes` at `places`.
fn chunks<'a>(bytes: &'a [u8], places: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let from = std::iter::once(0).chain(places.iter().copied());
    let until = places.iter().copied().chain([bytes.len()]);
    from.zip(until).map(|(from, until)| &bytes[from..until]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_gives_the_same_lines(
        bytes in console(),
        coarse in proptest::collection::vec(any::<Index>(), 0..20),
        fine in proptest::collection::vec(any::<Index>(), 0..60),
    ) {
        let whole = cut([(&bytes[..], Moment::START, 0)]);
        let coarse = chunks(&bytes, &coarse);
        let second = |n: u64| n * 1_000_000_000;
        let stamped = (0..).zip(&coarse).map(|(n, chunk)| {
            (*chunk, Moment::from_nanos(second(n)), n)
        });
        let coarse_lines = cut(stamped);
        // Each chunk is cut again; its parts come later by 1 ms each but belong to one record.
        let parts = (0..).zip(&coarse).flat_map(|(n, chunk)| {
            (0..).zip(chunks(chunk, &fine)).map(move |(part, bytes)| {
                (bytes, Moment::from_nanos(second(n) + part * 1_000_000), n)
            })
        });
        let fine_lines = cut(parts);
        let texts = |lines: &[RawLine]| -> Vec<String> {
            lines.iter().map(|line| line.text.clone()).collect()
        };
        prop_assert_eq!(texts(&whole), texts(&coarse_lines));
        prop_assert_eq!(texts(&whole), texts(&fine_lines));
        for (fine, coarse) in fine_lines.iter().zip(&coarse_lines) {
            prop_assert_eq!(fine.record, coarse.record);
            prop_assert!(coarse.at <= fine.at);
            prop_assert!(fine.at.nanos() < second(coarse.record + 1));
        }
    }

    #[test]
    fn any_line_can_be_read(text in any::<String>(), log in "[EWIDV] \\(?.{0,9}\\)? ?.{0,50}") {
        read(&text);
        read(&log);
    }
}

#[test]
fn twenty_megabytes_of_noise_do_no_harm() {
    // A linear congruential generator: the same noise in every run.
    let mut state = 1_u64;
    let mut noise = vec![0_u8; 64 * 1024];
    let (mut lines, mut boots) = (Lines::default(), Boots::default());
    for record in 0..320 {
        for byte in &mut noise {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *byte = (state >> 56) as u8;
        }
        for raw in lines.push(&noise, Moment::START, record) {
            boots.see(&read(&raw.text));
        }
    }
    assert_eq!(boots.current(), 0);
}
