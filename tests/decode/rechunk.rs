//! Real recorded bytes: the sessions in `tests/sessions`, cut and joined anew. Chunk borders are
//! an accident of the transport, so no fact may depend on them.

use super::decode;
use earwitness::decode::Fact;
use earwitness::journal::{Blob, Entry, Evidence as _, Observation, Party, Record};
use earwitness::rig::import::{Options, Shipped, import};
use earwitness::scenario::{Profile, for_imported};
use earwitness::time::Moment;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::LazyLock;

static SESSIONS: LazyLock<Vec<(String, Vec<Record>)>> = LazyLock::new(|| {
    let sessions = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    let folders = std::fs::read_dir(sessions).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<_> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    let load = |folder: &Path| {
        let shipped = Shipped { scenario_for: &for_imported, profile: Profile::xiaozhi() };
        let recording = import(folder, &Options::default(), &shipped).unwrap();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        (name, recording.records().map(Result::unwrap).collect())
    };
    folders.iter().map(|folder| load(folder)).collect()
});

/// The stream to which a record's bytes belong; only streams may be cut elsewhere.
#[derive(Clone, Copy, PartialEq)]
enum StreamKey {
    Uart,
    Socket(u32, Party),
}

fn bytes_of(record: &Record) -> Option<(StreamKey, &[u8])> {
    match &record.entry {
        Entry::Saw { what: Observation::Uart(bytes), .. } => Some((StreamKey::Uart, &bytes.0)),
        Entry::Saw { what: Observation::Socket { link, from, bytes }, .. } => {
            Some((StreamKey::Socket(*link, *from), &bytes.0))
        }
        _ => None,
    }
}

fn with_bytes(record: &Record, bytes: Vec<u8>) -> Record {
    let mut record = record.clone();
    if let Entry::Saw {
        what: Observation::Uart(old) | Observation::Socket { bytes: old, .. },
        ..
    } = &mut record.entry
    {
        *old = Blob(bytes);
    }
    record
}

fn captured_at(record: &Record) -> Moment {
    match &record.entry {
        Entry::Saw { captured_at, .. } => *captured_at,
        _ => record.at,
    }
}

/// The same bytes in other chunks.
struct Rechunked {
    records: Vec<Record>,
    /// Of which old records each new one is made.
    made_of: Vec<RangeInclusive<u64>>,
    joints: usize,
}

/// Cuts the streams at `cuts` (counted over the bytes of all of them; a repeated cut makes an
/// empty chunk), then joins neighbours of the same stream wherever `join` says so. A joined
/// chunk has the times of its last part, as if a reader had been slow to look.
fn rechunk(old: &[Record], cuts: &[usize], join: &[bool]) -> Rechunked {
    let mut pieces: Vec<(Record, u64)> = Vec::new();
    let mut position = 0;
    for record in old {
        let Some((_, bytes)) = bytes_of(record) else {
            pieces.push((record.clone(), record.n));
            continue;
        };
        let first = cuts.partition_point(|cut| *cut <= position);
        let last = cuts.partition_point(|cut| *cut < position + bytes.len());
        let mut from = 0;
        for cut in cuts[first..last].iter().map(|cut| cut - position).chain([bytes.len()]) {
            pieces.push((with_bytes(record, bytes[from..cut].to_vec()), record.n));
            from = cut;
        }
        position += bytes.len();
    }
    let mut new = Rechunked { records: Vec::new(), made_of: Vec::new(), joints: 0 };
    let mut wanted = join.iter().copied().cycle();
    for (piece, n) in pieces {
        if let (Some(before), Some((key, bytes))) = (new.records.last(), bytes_of(&piece))
            && let Some((key_before, head)) = bytes_of(before)
            && key == key_before
            && wanted.next() == Some(true)
        {
            let joined = with_bytes(&piece, [head, bytes].concat());
            *new.records.last_mut().unwrap() = joined;
            let range = new.made_of.last_mut().unwrap();
            *range = *range.start()..=n;
            new.joints += 1;
        } else {
            new.records.push(piece);
            new.made_of.push(n..=n);
        }
    }
    for (n, record) in (0..).zip(&mut new.records) {
        record.n = n;
        if let Entry::End { records, .. } = &mut record.entry {
            *records = n;
        }
    }
    new
}

/// The same facts in the same order, each of a chunk that holds its first byte, and as early as
/// the chunks allow.
fn check(name: &str, old: &[Record], expected: &[Fact], new: &Rechunked) {
    let facts = decode(&new.records);
    assert_eq!(facts.len(), expected.len(), "{name}");
    for (fact, expected) in facts.iter().zip(expected) {
        let Fact { record, at, until, .. } = *expected;
        let renamed = Fact { record, at, until, ..fact.clone() };
        assert_eq!(&renamed, expected, "{name}");
        let made_of = &new.made_of[fact.record as usize];
        assert!(made_of.contains(&expected.record), "{name}: {expected:?} cites {made_of:?}");
        let latest = captured_at(&old[*made_of.end() as usize]);
        assert!(expected.at <= fact.at && fact.at <= latest, "{name}: {fact:?}");
        assert!(fact.at <= fact.until && expected.until <= fact.until, "{name}: {fact:?}");
        if new.joints == 0 {
            assert_eq!((fact.at, fact.until), (expected.at, expected.until), "{name}: {fact:?}");
        }
    }
}

fn stream_bytes(records: &[Record]) -> usize {
    records.iter().filter_map(bytes_of).map(|(_, bytes)| bytes.len()).sum()
}

/// Holds for a few dozen random ways to cut each session, and to join it if `joining`.
fn holds_however_cut(joining: bool) {
    let config = Config { cases: 32, failure_persistence: None, ..Config::default() };
    for (name, old) in SESSIONS.iter() {
        let expected = decode(old);
        let total = stream_bytes(old);
        let cuts = prop::collection::vec(any::<Index>(), 0..400);
        let joins = prop::collection::vec(any::<bool>(), 1..40);
        let case = (cuts, joins).prop_map(|(cuts, joins)| {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(total)).collect();
            cuts.sort_unstable();
            (cuts, joins)
        });
        TestRunner::new(config.clone())
            .run(&case, |(cuts, joins)| {
                let joins = if joining { joins } else { vec![false] };
                check(name, old, &expected, &rechunk(old, &cuts, &joins));
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn splitting_chunks_changes_no_fact_and_no_time() {
    holds_however_cut(false);
}

#[test]
fn joining_chunks_changes_no_fact_and_times_only_within_the_chunk() {
    holds_however_cut(true);
}

#[test]
fn single_bytes_and_whole_runs_give_the_same_facts() {
    for (name, old) in SESSIONS.iter() {
        let expected = decode(old);
        assert!(expected.len() > 100, "{name}");
        let every: Vec<usize> = (0..stream_bytes(old)).collect();
        let single = rechunk(old, &every, &[false]);
        assert!(
            single.records.iter().filter_map(bytes_of).all(|(_, b)| b.len() <= 1),
            "{name}: not single bytes"
        );
        check(name, old, &expected, &single);
        let whole = rechunk(old, &[], &[true]);
        assert!(whole.joints > 0, "{name}: no two neighbours of the same stream");
        check(name, old, &expected, &whole);
    }
}

/// Facts as JSON lines.
fn written(facts: &[Fact]) -> String {
    facts.iter().map(|fact| serde_json::to_string(fact).unwrap() + "\n").collect()
}

/// Also the same without the `cli` feature: CI runs this test with and without it against the
/// one snapshot. A change here is a change of what is believed of real sessions; look at the
/// facts before accepting it.
#[test]
fn decoding_is_repeatable_to_the_byte() {
    let mut hashes = String::new();
    let mut seen = BTreeSet::new();
    for (name, records) in SESSIONS.iter() {
        let (first, second) = (written(&decode(records)), written(&decode(records)));
        assert_eq!(first, second, "{name}");
        let hash = Sha256::digest(&first);
        assert!(seen.insert(hash), "{name} says what another session says");
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(hashes, "{hash} {:4} facts of {name}", first.lines().count()).unwrap();
    }
    insta::assert_snapshot!(hashes);
}
