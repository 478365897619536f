//! Evidence: statistics. The values that a simulated session draws are in its recording, spread as
//! promised, and true of the sound in it.

use super::texts;
use earwitness::app::session::{Choices, simulate};
use earwitness::audio::law::Law;
use earwitness::audio::level::{decibels, ratio};
use earwitness::audio::tone::Tone;
use earwitness::audio::{opus, stimulus};
use earwitness::decode::sound::{References, hear};
use earwitness::decode::tell;
use earwitness::journal::{Entry, Evidence, NamedText, Observation};
use earwitness::rig::sim::{Choice, SimRig};
use earwitness::rig::{Next, Rig, Seen};
use earwitness::time::Moment;
use std::collections::BTreeMap;
use std::path::Path;

fn drawn(seed: u64) -> BTreeMap<String, f64> {
    let choice = Choice {
        seed,
        law: Law::NoAudioCodec,
        fault: None,
        path_gain_db: -30.0,
        host: "192.168.4.2".into(),
        port: 8002,
        snr13_db: None,
    };
    let mut rig = SimRig::new(&choice);
    loop {
        match rig.next(Moment::NEVER) {
            Next::Saw(Seen { what: Observation::Drew { values }, .. }) => return values,
            Next::Saw(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A quarter of the seeds in each quarter of the range, by four standard deviations of a binomial
/// distribution (300 draws at 1/4: 75 +- 30).
#[test]
fn what_is_drawn_fills_its_range_evenly() {
    let worlds: Vec<_> = (0..300).map(drawn).collect();
    let ranges = [
        ("snr13_db", 15.0, 40.0),
        ("drift_ppm", -100.0, 100.0),
        ("wifi_sleep_s", 0.1, 1.0),
        ("acoustic_delay_s", 0.001, 0.01),
    ];
    for (name, low, high) in ranges {
        let mut quarters = [0; 4];
        for world in &worlds {
            let part = (world[name] - low) / (high - low);
            assert!((0.0..1.0).contains(&part), "{name} {}", world[name]);
            quarters[(part * 4.0) as usize] += 1;
        }
        assert!(quarters.iter().all(|n| (45..=105).contains(n)), "{name} {quarters:?}");
    }
    // Independent of each other: no correlation beyond four standard deviations (1 / sqrt(300)).
    for (a, _, _) in ranges {
        for (b, _, _) in ranges.iter().filter(|r| r.0 != a) {
            let mean = |name| worlds.iter().map(|w| w[name]).sum::<f64>() / 300.0;
            let (ma, mb) = (mean(a), mean(*b));
            let product =
                |f: &dyn Fn(&BTreeMap<String, f64>) -> f64| worlds.iter().map(f).sum::<f64>();
            let both = product(&|w| (w[a] - ma) * (w[*b] - mb));
            let alone = product(&|w| (w[a] - ma).powi(2)) * product(&|w| (w[*b] - mb).powi(2));
            assert!((both / alone.sqrt()).abs() < 0.23, "{a} and {b}");
        }
    }
}

/// What Opus leaves beside the tone that the bench sends, SNR13 in dB.
fn as_sent(seed: u64) -> f64 {
    let hz = stimulus::coded(seed, 0);
    let mut samples = stimulus::tone(hz, -12.0, 2.0, 0.5);
    samples.truncate(samples.len() / 1440 * 1440);
    let packets = opus::encode(&samples);
    let sound = opus::decode(packets.iter().map(Vec::as_slice)).unwrap();
    Tone::measure(&sound[19_000..55_000], f64::from(opus::RATE), hz, 0.001).snr13_db()
}

/// The hiss beside a tone of 2 s is known to about half a dB.
#[test]
fn the_quietest_tone_stands_above_the_noise_as_drawn() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/volume-step.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let texts = texts(NamedText::new("volume-step.toml", text));
    let mut errors = Vec::new();
    for seed in 0..8 {
        let recording = simulate(&texts, &Choices { seed, ..Choices::default() }).unwrap();
        let drew = recording.records().find_map(|record| match record.unwrap().entry {
            Entry::Saw { what: Observation::Drew { values }, .. } => Some(values["snr13_db"]),
            _ => None,
        });
        // The draw speaks of 1 kHz, the tone is where it was coded.
        let room = drew.unwrap() - decibels(stimulus::coded(seed, 0) / 1000.0);
        let expected = -decibels(ratio(-room) + ratio(-as_sent(seed)));
        let story = tell(&recording).unwrap();
        let mut references = References::default();
        for step in story.instances("tone-quiet") {
            let hearing =
                hear(&recording, &story, step, &mut references).unwrap().unwrap().unwrap();
            errors.push(hearing.tone().unwrap().snr13_db() - expected);
        }
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    assert!(errors.iter().all(|error| error.abs() < 1.5), "{errors:?}");
    assert!(mean.abs() < 0.4, "{mean}");
}
