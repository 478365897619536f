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
    let read = |path: String| NamedText::new(path.clone(), fs::read_to_string(home.join(path)).unwrap());
    Texts {
        scenario: read(format!("scenarios/{scenario}.toml")),
        rig: read("rigs/sim.toml".into()),
        profile: Profile::xiaozhi(),
    }
}

#[test]
fn look() {
    let name = std::env::var("S").unwrap_or("volume-step".into());
    let fault = std::env::var("F").ok().map(|f| f.parse().unwrap());
    let choices = Choices { seed: 7, fault, law: None };
    let start = std::time::Instant::now();
    let recording = simulate(&texts(&name), &choices).unwrap();
    eprintln!("{:?}", start.elapsed());
    let out = Path::new("/tmp/w/sim");
    let _ = fs::remove_dir_all(out);
    recording.save(out).unwrap();
    let judged = evaluate(&recording, None).unwrap();
    for claim in &judged.verdict.claims {
        for f in &claim.findings {
            eprintln!("{:?} {:?} {}", f.rung, f.status, f.reason);
        }
    }
    for f in &judged.verdict.session {
        eprintln!("session {:?} {}", f.status, f.reason);
    }
    eprintln!("{:?} {:?} {:?}", judged.verdict.outcome, judged.verdict.discrepancy(), recording.condition());
}
