//! Evidence: the software board and this bench in virtual time. Both are ours, so agreement proves
//! only that neither contradicts the other; `tests/firmware_transcripts.rs` and
//! `tests/like_the_real_one.rs` hold the board itself against the real firmware.
//!
//! `EARWITNESS_SEEDS=1000 cargo test --release --test simulated` takes a thousand seeds of each.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use earwitness::app::evaluate::evaluate;
use earwitness::app::session::{Choices, Texts, replay, simulate};
use earwitness::audio::law::Law;
use earwitness::board::Fault;
use earwitness::journal::{Condition, Evidence as _, NamedText};
use earwitness::scenario::Profile;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

/// What each scenario finds: outcome, first broken rung and discrepancy, one way or the other.
/// A fault that a scenario does not meet is not in its rows: it must pass there.
const TABLE: [(&str, &str, &[&str]); 17] = [
    ("volume-step", "healthy", &["pass - agree"]),
    ("volume-step", "dead-amp", &["fail physical silent_success"]),
    ("volume-step", "stuck-volume", &["fail physical silent_success"]),
    ("volume-step", "queue-lost", &["fail executed silent_success"]),
    ("volume-step", "clamp", &["fail physical wrong_magnitude"]),
    ("volume-step", "clamp-sw", &["fail executed clamped"]),
    ("volume-step", "drop-response", &["fail accepted phantom_effect"]),
    ("volume-step", "late-response", &["fail accepted late"]),
    ("volume-step", "wrong-pitch", &["fail physical wrong_source"]),
    ("volume-step", "deaf-mic", &["error physical rig_blind"]),
    ("volume-step", "zero-mic", &["error physical rig_blind"]),
    ("volume-step", "noisy-room", &["inconclusive physical inconclusive"]),
    ("reboot", "healthy", &["pass - agree"]),
    ("reboot", "no-reboot", &["fail physical no_reboot"]),
    ("reboot", "slow-boot", &["fail executed late"]),
    ("reboot", "boot-loop", &["fail physical boot_loop"]),
    ("reboot", "dead-amp", &["pass - agree"]),
];

fn texts(scenario: &str) -> Texts {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: String| {
        let text = fs::read_to_string(home.join(&path)).unwrap();
        NamedText::new(path, text)
    };
    Texts {
        scenario: read(format!("scenarios/{scenario}.toml")),
        rig: read("rigs/sim.toml".into()),
        profile: Profile::xiaozhi(),
    }
}

fn fault(name: &str) -> Option<Fault> {
    (name != "healthy").then(|| name.parse().unwrap())
}

/// How a session ends, `fail physical silent_success`; both laws take turns.
fn ending(scenario: &str, name: &str, seed: u64) -> String {
    let law = if seed.is_multiple_of(2) { Law::NoAudioCodec } else { Law::EspCodecDev };
    let choices = Choices { seed, fault: fault(name), law: Some(law), ..Choices::default() };
    let recording = simulate(&texts(scenario), &choices).unwrap();
    assert_eq!(recording.condition(), &Condition::Complete);
    let (divergence, _) = replay(&recording).unwrap();
    assert_eq!(divergence, None, "{scenario} {name} {seed}");
    let verdict = evaluate(&recording, None).unwrap().verdict;
    let broken = verdict.claims[0].first_broken.map_or("-".into(), |rung| rung.to_string());
    format!("{} {broken} {}", verdict.outcome, verdict.discrepancy().name())
}

#[test]
fn every_fault_is_met_by_a_scenario() {
    for (name, fault, _) in Fault::ALL {
        let met = TABLE.iter().any(|(_, of, ends)| {
            *of != "healthy" && self::fault(of) == Some(fault) && !ends[0].starts_with("pass")
        });
        assert!(met, "no scenario meets {name}");
    }
}

#[test]
fn every_session_ends_as_the_table_says() {
    let seeds: u64 = std::env::var("EARWITNESS_SEEDS").map_or(50, |n| n.parse().unwrap());
    let jobs: Vec<(usize, u64)> =
        (0..TABLE.len()).flat_map(|row| (0..seeds).map(move |seed| (row, seed))).collect();
    let (next, ends) = (Mutex::new(jobs.into_iter()), Mutex::new(BTreeMap::new()));
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let Some((row, seed)) = next.lock().unwrap().next() else { return };
                    let (scenario, name, _) = TABLE[row];
                    let end = ending(scenario, name, seed);
                    let mut ends = ends.lock().unwrap();
                    ends.entry((row, end)).or_insert_with(Vec::new).push(seed);
                }
            });
        }
    });
    let mut wrong = 0;
    for ((row, end), seeds) in ends.into_inner().unwrap() {
        let (scenario, name, right) = TABLE[row];
        let verdict = if right.contains(&&*end) { "right" } else { "WRONG" };
        println!("{scenario:12} {name:14} {end:38} {:5} {verdict}", seeds.len());
        if verdict == "WRONG" {
            println!(
                "    {} expected, seeds {:?}",
                right.join(" or "),
                &seeds[..seeds.len().min(10)]
            );
            wrong += seeds.len();
        }
    }
    assert_eq!(wrong, 0, "sessions that end otherwise");
}

#[test]
fn what_a_law_promises_is_what_is_heard() {
    for (law, first, second) in [(Law::NoAudioCodec, 7.04, 5.0), (Law::EspCodecDev, 10.0, 10.0)] {
        let choices = Choices { seed: 3, law: Some(law), ..Choices::default() };
        let recording = simulate(&texts("volume-step"), &choices).unwrap();
        let judged = evaluate(&recording, None).unwrap();
        let findings = judged.verdict.claims[0].findings.iter();
        let steps: Vec<f64> = findings
            .flat_map(|f| &f.measurements)
            .filter(|m| m.name == "level_step")
            .map(|m| m.value)
            .collect();
        assert!((steps[0] - first).abs() < 0.2 && (steps[1] - second).abs() < 0.2, "{steps:?}");
        assert_eq!(judged.verdict.law, Some(law));
    }
}
