//! A storm of observations around the deadlines of a bench that has one every millisecond.

use earwitness::audio::law::Law;
use earwitness::audio::noise::Noise;
use earwitness::backend::Settings;
use earwitness::journal::{
    Blob, Command, Entry, Evidence, FORMAT, Head, MemoryRecording, NamedText, Observation, Origin,
    Party, Record,
};
use earwitness::rig::replay::{Divergence, Mirror, ReplayRig};
use earwitness::rig::sim::{Choice, SimRig};
use earwitness::rig::{Next, Rig, Seen};
use earwitness::run::run;
use earwitness::scenario::conductor::{Bench, Conductor};
use earwitness::scenario::{Profile, Scenario};
use earwitness::time::Moment;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

const NANO: Duration = Duration::from_nanos(1);

/// Deadlines every millisecond, alone, beside speech and beside calls.
const SCENARIO: &str = r#"
version  = 1
question = "Is the order of a storm kept?"
limit    = "60s"

[[step]]
wait = { online = true, within = "30s" }
required = true
[[step]]
open_audio = { within = "10s" }
required = true
[[step]]
discover = { user_tools = true }
[[step]]
id = "many"
repeat = { times = 100 }
[[step.step]]
id = "short"
wait = { for = "1ms" }
[[step.step]]
id = "shorter"
wait = { for = "1ms" }
[[step.step]]
id = "shortest"
wait = { for = "1ms" }
[[step]]
id = "mixed"
repeat = { times = 4 }
[[step.step]]
id = "set"
call = { tool = "self.audio_speaker.set_volume", args = { volume = 55 } }
[[step.step]]
id = "said"
play = { tone = "coded", level = "-12dBFS", for = "500ms" }
[[step.step]]
id = "at-once"
call = { tool = "self.get_device_status", within = "1ms" }

[[claim]]
id = "said"
requires = "accepted"
accepted = { step = "set", text = "true" }
"#;

/// The simulated bench in a storm.
struct Storm {
    world: SimRig,
    chance: Noise,
    now: Moment,
    met: Moment,
    coming: BinaryHeap<Reverse<Moment>>,
    /// Delivers what is taken at a deadline before the deadline, as no rig may.
    hasty: bool,
}

impl Storm {
    fn new(seed: u64, hasty: bool) -> Storm {
        let choice = Choice {
            seed,
            law: Law::NoAudioCodec,
            fault: None,
            path_gain_db: -30.0,
            host: settings(seed).host,
            port: 8002,
            snr13_db: None,
        };
        let (now, met) = (Moment::START, Moment::START);
        let (world, chance) = (SimRig::new(&choice), Noise::new(seed, 7));
        Storm { world, chance, now, met, coming: BinaryHeap::new(), hasty }
    }

    /// More of it before, on and after a deadline.
    fn gather(&mut self, deadline: Moment) {
        if self.met == deadline || deadline == Moment::NEVER {
            return;
        }
        self.met = deadline;
        let near = [deadline.before(NANO), deadline, deadline, deadline, deadline + NANO];
        let within = Duration::from_nanos(self.chance.next_u64() % 1_000_000);
        self.coming.extend(near.map(Reverse));
        self.coming.push(Reverse(deadline.before(within)));
    }

    fn blows(&mut self) -> Seen {
        let from = Party::Device;
        let bytes: Vec<u8> = (0..self.chance.next_u64() % 40).map(|k| (k * 37) as u8).collect();
        let what = match self.chance.next_u64() % 5 {
            0 | 1 => Observation::Uart(Blob(b"W (4000) Storm: it blows\r\n".to_vec())),
            2 | 3 => Observation::Datagram { from, bytes: Blob(bytes) },
            _ => Observation::Socket { link: 77, from, bytes: Blob(bytes) },
        };
        let captured_at = self.now.before(Duration::from_nanos(self.chance.next_u64() % 3));
        Seen { at: self.now, captured_at, what, sound: None }
    }
}

impl Rig for Storm {
    fn origin(&self) -> Origin {
        Origin::Simulated
    }

    fn next(&mut self, deadline: Moment) -> Next {
        self.gather(deadline);
        let until = if self.hasty { deadline + NANO } else { deadline };
        let gust = self.coming.peek().map_or(Moment::NEVER, |Reverse(at)| *at).max(self.now);
        match self.world.next(gust.min(until)) {
            Next::DeadlineReached if gust < until => {
                self.coming.pop();
                self.now = gust;
                Next::Saw(self.blows())
            }
            Next::DeadlineReached => {
                self.now = self.now.max(deadline);
                Next::DeadlineReached
            }
            Next::Saw(seen) => {
                self.now = seen.at;
                Next::Saw(seen)
            }
            Next::Closed => Next::Closed,
        }
    }

    fn perform(&mut self, at: Moment, command: &Command) {
        self.world.perform(at, command);
    }
}

fn settings(seed: u64) -> Settings {
    Settings {
        seed,
        started_at_unix_ms: 1_798_966_800_000,
        host: "192.168.4.2".into(),
        mqtt_port: 1883,
        udp_port: 8884,
        keepalive: 60,
    }
}

fn conductor(seed: u64) -> Conductor {
    let scenario = Scenario::load(&NamedText::new("storm.toml", SCENARIO)).unwrap();
    let bench = Bench { backend: settings(seed), repeat_limit: 6, step_sigma_db: 0.07 };
    Conductor::new(&scenario, bench)
}

fn session(seed: u64, hasty: bool) -> MemoryRecording {
    let head = Head {
        device: None,
        format: FORMAT,
        tool: "a test".into(),
        run_id: "0".repeat(26),
        origin: Origin::Simulated,
        seed,
        started_at_ms: 1_798_966_800_000,
        scenario: NamedText::new("storm.toml", SCENARIO),
        rig: super::read("rigs/sim.toml"),
        profile: Profile::xiaozhi(),
    };
    let mut journal = MemoryRecording::begin(head);
    run(&mut Storm::new(seed, hasty), &mut conductor(seed), &mut journal).unwrap();
    journal
}

fn again(then: &dyn Evidence) -> (Option<Divergence>, MemoryRecording) {
    let mut mirror = Mirror::new(then);
    run(&mut ReplayRig::new(then), &mut conductor(then.head().seed), &mut mirror).unwrap();
    mirror.finish().unwrap()
}

/// Records that stand at the instant of the step edge before them.
fn on_deadlines(records: &[Record]) -> usize {
    let edges = records.iter().filter(|r| matches!(r.entry, Entry::Step { .. }));
    let edges: std::collections::BTreeSet<Moment> = edges.map(|r| r.at).collect();
    let saw = |r: &&Record| matches!(r.entry, Entry::Saw { .. }) && edges.contains(&r.at);
    records.iter().filter(saw).count()
}

#[test]
fn a_storm_keeps_its_order() {
    for seed in 0..6 {
        let then = session(seed, false);
        let all = super::records(&then);
        let said =
            all.iter().any(|r| matches!(&r.entry, Entry::Step { path, .. } if path == "at-once#4"));
        assert!(said, "seed {seed} came to its end");
        assert!(all.len() > 3_000 && on_deadlines(&all) > 900, "{} records", all.len());
        let (divergence, today) = again(&then);
        assert_eq!(divergence, None, "seed {seed}");
        assert_eq!(super::lines(&all), super::lines(&super::records(&today)));
        assert!(then.segments() == today.segments());
    }
}

/// What is taken at a deadline is recorded behind what the deadline causes.
#[test]
fn an_observation_at_a_deadline_waits_behind_it() {
    let all = super::records(&session(1, false));
    let mut checked = 0;
    for pair in all.windows(2) {
        if let [
            Record { entry: Entry::Saw { .. }, .. },
            Record { entry: Entry::Step { path, .. }, .. },
        ] = pair
            && path.starts_with("short")
        {
            assert!(pair[0].at < pair[1].at, "{pair:?}");
            checked += 1;
        }
    }
    assert!(checked > 200, "{checked}");
}

#[test]
fn a_rig_that_does_not_let_it_wait_is_caught() {
    for seed in 0..3 {
        let (divergence, _) = again(&session(seed, true));
        let Divergence { then, today, .. } = divergence.expect("a difference");
        let (then, today) = (then.unwrap(), today.unwrap());
        assert!(matches!(then.entry, Entry::Saw { .. }), "{then:?}");
        assert!(!matches!(today.entry, Entry::Saw { .. }), "{today:?}");
    }
}
