//! What a simulated session costs: `cargo bench --bench simulated`. The budget of a whole volume
//! step is 200 ms of CPU, so that thousands of them run in minutes.

use earwitness::app::evaluate::evaluate;
use earwitness::app::session::{Choices, Texts, replay, simulate};
use earwitness::journal::{MemoryRecording, NamedText};
use earwitness::scenario::Profile;

fn main() {
    divan::main();
}

fn texts(scenario: &str) -> Texts {
    let text = match scenario {
        "reboot" => include_str!("../scenarios/reboot.toml"),
        _ => include_str!("../scenarios/volume-step.toml"),
    };
    Texts {
        scenario: NamedText::new(format!("{scenario}.toml"), text),
        rig: NamedText::new("sim.toml", include_str!("../rigs/sim.toml")),
        profile: Profile::xiaozhi(),
    }
}

fn session(scenario: &str) -> MemoryRecording {
    simulate(&texts(scenario), &Choices { seed: 7, ..Choices::default() }).expect("it runs")
}

/// Board, room, network, backend and conductor; not the verdict.
#[divan::bench(args = ["volume-step", "reboot"])]
fn run(scenario: &str) -> MemoryRecording {
    session(scenario)
}

#[divan::bench(args = ["volume-step", "reboot"])]
fn judge(bencher: divan::Bencher, scenario: &str) {
    let recording = session(scenario);
    bencher.bench(|| evaluate(&recording, None).expect("it is judged").verdict);
}

#[divan::bench(args = ["volume-step", "reboot"])]
fn replay_it(bencher: divan::Bencher, scenario: &str) {
    let recording = session(scenario);
    bencher.bench(|| replay(&recording).expect("it is replayed").0);
}
