//! Evidence: the software board and this bench in virtual time. Both are ours, so what agrees here
//! proves only that neither contradicts the other; `tests/firmware_transcripts.rs` and the facts of
//! real sessions hold the board itself.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use earwitness::app::evaluate::evaluate;
use earwitness::app::session::{Choices, Texts, simulate};
use earwitness::journal::{Evidence as _, NamedText};
use earwitness::scenario::Profile;
use std::fs;
use std::path::Path;

fn texts(scenario: &str) -> Texts {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read =
        |path: String| NamedText::new(path.clone(), fs::read_to_string(home.join(path)).unwrap());
    Texts {
        scenario: read(format!("scenarios/{scenario}.toml")),
        rig: read("rigs/sim.toml".into()),
        profile: Profile::xiaozhi(),
    }
}

#[test]
fn look_all() {
    let from: u64 = std::env::var("FROM").map_or(0, |s| s.parse().unwrap());
    let seeds: u64 = std::env::var("SEEDS").map_or(2, |s| s.parse().unwrap());
    let only = std::env::var("F").ok();
    let all = earwitness::board::Fault::ALL.map(|(_, fault, _)| Some(fault));
    for scenario in ["volume-step", "reboot"] {
        for fault in [None].into_iter().chain(all) {
            let name = fault.map_or("healthy".into(), |f| f.to_string());
            if only.as_ref().is_some_and(|o| !name.starts_with(o.as_str())) {
                continue;
            }
            let mut told = std::collections::BTreeMap::<String, Vec<u64>>::new();
            let mut reason = String::new();
            for seed in from..from + seeds {
                let choices = Choices { seed, fault, ..Choices::default() };
                let recording = simulate(&texts(scenario), &choices).unwrap();
                let verdict = evaluate(&recording, None).unwrap().verdict;
                let claim = &verdict.claims[0];
                let key = format!(
                    "{:?} {:?} {:?}",
                    verdict.outcome,
                    claim.first_broken,
                    verdict.discrepancy()
                );
                told.entry(key).or_default().push(seed);
                if let Some(f) = claim.decisive() {
                    reason = f.reason.clone();
                }
                for f in &verdict.session {
                    reason += &format!(" / {}", f.reason);
                }
            }
            println!("{scenario:12} {name:20} {told:?} {reason}");
        }
    }
}
