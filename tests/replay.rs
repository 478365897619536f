//! Evidence: every session can be played again, record by record and sample by sample, whatever
//! storm it went through; and a bench that decides otherwise today is found at the first record.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "replay/storm.rs"]
mod storm;

use earwitness::app::session::{Choices, Texts, replay, simulate, told};
use earwitness::board::Fault;
use earwitness::journal::{
    Command, Entry, Evidence, Head, MemoryRecording, NamedText, Observation, Record, Recording,
    Segment,
};
use earwitness::rig::replay::Divergence;
use earwitness::scenario::Profile;
use std::fs;
use std::path::Path;

fn read(path: &str) -> NamedText {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    NamedText::new(path, fs::read_to_string(home.join(path)).unwrap())
}

fn texts(scenario: &str) -> Texts {
    Texts {
        scenario: read(&format!("scenarios/{scenario}.toml")),
        rig: read("rigs/sim.toml"),
        profile: Profile::xiaozhi(),
    }
}

fn records(evidence: &dyn Evidence) -> Vec<Record> {
    evidence.records().map(Result::unwrap).collect()
}

/// The lines that a record file holds, the end record without what it seals.
fn lines(records: &[Record]) -> Vec<String> {
    let line = |record: &Record| {
        let mut record = record.clone();
        if let Entry::End { files, .. } = &mut record.entry {
            files.clear();
        }
        serde_json::to_string(&record).unwrap()
    };
    records.iter().map(line).collect()
}

/// A recording with another head or fewer records, as nobody recorded it.
fn altered(
    recording: &MemoryRecording,
    head: impl Fn(&mut Head),
    keep: impl Fn(&Record) -> bool,
) -> MemoryRecording {
    let mut changed = recording.head().clone();
    head(&mut changed);
    let records = records(recording).into_iter().filter(keep).collect();
    MemoryRecording::new(changed, records, recording.segments().to_vec())
}

fn volume_step() -> MemoryRecording {
    simulate(&texts("volume-step"), &Choices { seed: 5, ..Choices::default() }).unwrap()
}

#[test]
fn every_session_comes_back_from_disk_the_same_to_the_byte_and_to_the_sample() {
    let faults = Fault::ALL.map(|(_, fault, _)| Some(fault));
    let mut cases = Vec::new();
    for (k, fault) in [None, None, None].into_iter().chain(faults).enumerate() {
        cases.push(("reboot", 100 + k as u64, fault));
        cases.push(("volume-step", 200 + k as u64, fault));
    }
    for (scenario, seed, fault) in cases {
        let choices = Choices { seed, fault, ..Choices::default() };
        let then = simulate(&texts(scenario), &choices).unwrap();
        let home = tempfile::tempdir().unwrap();
        then.save(home.path()).unwrap();
        let (divergence, today) = replay(&Recording::open(home.path()).unwrap()).unwrap();
        let what = format!("{scenario}, seed {seed}, {fault:?}");
        assert!(divergence.is_none(), "{what}: {}", told(&divergence.unwrap()));
        let file = fs::read_to_string(home.path().join("records.jsonl")).unwrap();
        let mut file: Vec<String> = file.lines().map(str::to_owned).collect();
        let end: Record = serde_json::from_str(&file.pop().unwrap()).unwrap();
        file.extend(lines(&[end]));
        for (line, again) in file.iter().zip(lines(&records(&today))) {
            assert_eq!(*line, again, "{what}");
        }
        assert_eq!(file.len(), records(&today).len(), "{what}");
        assert!(then.segments() == today.segments(), "{what}: other samples");
    }
}

#[track_caller]
fn diverges(recording: &MemoryRecording) -> Divergence {
    let (divergence, _) = replay(recording).unwrap();
    divergence.expect("a difference")
}

/// Position of the first record of which `is` holds.
fn first(recording: &MemoryRecording, is: impl Fn(&str) -> bool) -> u64 {
    records(recording).iter().find(|r| is(&serde_json::to_string(r).unwrap())).unwrap().n
}

#[test]
fn a_changed_conductor_is_caught_at_the_record_that_it_changes() {
    let then = volume_step();
    let says = |record: &Record, words: &str| match &record.entry {
        Entry::Did { command: Command::Mqtt { packet, .. } } => {
            String::from_utf8_lossy(&packet.0).contains(words)
        }
        _ => false,
    };
    let published = |words| records(&then).iter().find(|r| says(r, words)).unwrap().n;
    let volume = |head: &mut Head| {
        head.scenario.text = head.scenario.text.replacen("volume = 60", "volume = 61", 1);
    };
    let divergence = diverges(&altered(&then, volume, |_| true));
    assert_eq!(divergence.n, published("{\"volume\":60}"));
    assert!(says(divergence.today.as_ref().unwrap(), "{\"volume\":61}"));
    let told = told(&divergence);
    assert!(told.starts_with(&format!("diverged at record {}\n", divergence.n)), "{told}");
    assert!(told.contains("\n  then   {") && told.contains("\n  today  {"), "{told}");

    let seed = |head: &mut Head| head.seed += 1;
    let divergence = diverges(&altered(&then, seed, |_| true));
    let hello = published("\"type\":\"hello\"");
    assert_eq!(divergence.n, hello, "the first thing that comes from the seed: session and key");

    let rig = |head: &mut Head| {
        head.rig.text = head.rig.text.replace("repeat_limit = 6", "repeat_limit = 5");
    };
    let (divergence, _) = replay(&altered(&then, rig, |_| true)).unwrap();
    assert_eq!(divergence, None, "a limit that was not met decides nothing");
}

#[test]
fn a_wait_that_is_a_millisecond_longer_is_caught_at_its_end() {
    let then = simulate(&texts("reboot"), &Choices { seed: 5, ..Choices::default() }).unwrap();
    let wait = |head: &mut Head| {
        head.scenario.text = head.scenario.text.replace("for = \"10s\"", "for = \"10001ms\"");
    };
    let divergence = diverges(&altered(&then, wait, |_| true));
    let guard = first(&then, |line| line.contains("guard") && line.contains("end"));
    assert_eq!(divergence.n, guard);
    let Some(Record { at, entry: Entry::Step { path, .. }, .. }) = divergence.today else {
        panic!("{divergence:?}")
    };
    let late = (path.as_str(), at - divergence.then.unwrap().at);
    assert_eq!(late, ("guard", std::time::Duration::from_millis(1)));
}

#[test]
fn every_record_counts() {
    let then = simulate(&texts("reboot"), &Choices { seed: 6, ..Choices::default() }).unwrap();
    let all = records(&then);
    // What was done, decided and begun, each with another content: found at its own place.
    for (n, record) in all.iter().enumerate() {
        let mut other = record.clone();
        match &mut other.entry {
            Entry::Saw { .. } => continue,
            Entry::Did { command } => {
                *command = Command::Close { link: 99 };
            }
            Entry::Decided { what } => what.push('!'),
            Entry::Step { path, .. } => path.push('!'),
            Entry::End { records, .. } => *records += 1,
        }
        let mut changed = all.clone();
        changed[n] = other;
        let changed = MemoryRecording::new(then.head().clone(), changed, then.segments().to_vec());
        assert_eq!(diverges(&changed).n, n as u64);
    }
    // An observation before an instant that today knows nothing of.
    let mut longer = all.clone();
    let end = longer.pop().unwrap();
    let decided = Entry::Decided { what: "to go on".into() };
    longer.push(Record { entry: decided, ..end.clone() });
    longer.push(Record { n: end.n + 1, ..end });
    let longer = MemoryRecording::new(then.head().clone(), longer, Vec::new());
    assert_eq!(diverges(&longer).n, all.len() as u64 - 1);
}

#[test]
fn other_samples_are_heard_by_the_conductor_of_today() {
    // Loud noise in place of the room: today's conductor wants more passes.
    let choices = Choices { seed: 5, snr13_db: Some(0.0), ..Choices::default() };
    let short = |texts: &mut Texts| {
        texts.scenario.text = texts.scenario.text.replace("for = \"2s\"", "for = \"500ms\"");
    };
    let mut texts = texts("volume-step");
    short(&mut texts);
    let then = simulate(&texts, &choices).unwrap();
    let weighed = first(&then, |line| line.contains("one more pass"));
    let home = tempfile::tempdir().unwrap();
    then.save(home.path()).unwrap();
    let then = altered(&then, |_| {}, |_| true).map_segments(|mut segment| {
        segment.samples.iter_mut().for_each(|x| *x = 0.0);
        segment
    });
    assert_eq!(diverges(&then).n, weighed);
    let (divergence, _) = replay(&Recording::open(home.path()).unwrap()).unwrap();
    assert_eq!(divergence, None);
}

/// An ear that was opened again in the middle, at the same rate.
#[test]
fn a_second_segment_of_sound_stays_one() {
    let then = simulate(&texts("reboot"), &Choices { seed: 9, ..Choices::default() }).unwrap();
    let mut all = records(&then);
    let begins = |record: &Record| match &record.entry {
        Entry::Saw { what: Observation::Sound { first, .. }, .. } => Some(first.0),
        _ => None,
    };
    let half = all.iter().filter_map(begins).nth(50).unwrap();
    for record in &mut all {
        if let Entry::Saw { what: Observation::Sound { segment, first, .. }, .. } =
            &mut record.entry
            && first.0 >= half
        {
            (*segment, first.0) = (2, first.0 - half);
        }
    }
    let whole = then.segments()[0].clone();
    let (a, b) = whole.samples.split_at(half as usize);
    let part = |samples: &[f64]| Segment { samples: samples.to_vec(), ..whole };
    let then = MemoryRecording::new(then.head().clone(), all, vec![part(a), part(b)]);
    let (divergence, today) = replay(&then).unwrap();
    assert_eq!(divergence, None);
    assert!(then.segments() == today.segments());
}

#[test]
fn a_session_that_broke_off_replays_up_to_there() {
    let then = simulate(&texts("reboot"), &Choices { seed: 7, ..Choices::default() }).unwrap();
    let all = records(&then).len() as u64;
    for keep in (0..all).step_by(7).chain(all - 3..all) {
        let (divergence, today) = replay(&altered(&then, |_| {}, |r| r.n < keep)).unwrap();
        assert_eq!(divergence, None, "{keep}");
        assert_eq!(records(&today), records(&then)[..keep as usize], "{keep}");
    }
    // The same on disk, torn in the middle of a line.
    let home = tempfile::tempdir().unwrap();
    then.save(home.path()).unwrap();
    let path = home.path().join("records.jsonl");
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let torn = Recording::open(home.path()).unwrap();
    let (divergence, today) = replay(&torn).unwrap();
    assert_eq!(divergence, None);
    assert_eq!(records(&today), records(&torn));
}

#[cfg(feature = "cli")]
#[test]
fn the_program_says_where_it_diverged_and_exits_with_1() {
    let then = simulate(&texts("reboot"), &Choices { seed: 8, ..Choices::default() }).unwrap();
    let other = altered(&then, |head| head.seed += 1, |_| true);
    let killed = altered(&then, |_| {}, |r| r.n < 100);
    let home = tempfile::tempdir().unwrap();
    let ask = |name: &str, recording: &MemoryRecording| {
        let folder = home.path().join(name);
        recording.save(&folder).unwrap();
        let program = env!("CARGO_BIN_EXE_earwitness");
        let ran = std::process::Command::new(program).arg("replay").arg(&folder).output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap())
    };
    let n = diverges(&other).n;
    let (code, text) = ask("other", &other);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("DIVERGED  ") && text.contains(&format!("diverged at record {n}\n")));
    let (code, text) = ask("same", &then);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with(&format!("  {} records\n", records(&then).len())), "{text}");
    let (code, text) = ask("killed", &killed);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("  100 records, but the session is incomplete: "), "{text}");
}
