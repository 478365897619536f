//! Rooms: what they add to a session, and that they add as much as was asked for.

use super::{in_room, observations, plain, records, step};
use earwitness::audio::tone::{Tone, locate};
use earwitness::journal::{Evidence, Observation};
use earwitness::rig::room::Room;
use earwitness::time::{Moment, Window};

#[test]
fn a_bad_room_is_explained() {
    let check = |text: &str, expected: &[&str]| {
        let message = text.parse::<Room>().unwrap_err().to_string();
        assert!(expected.iter().all(|part| message.contains(part)), "{message}");
    };
    check("seed=7,snr=20", &["`snr=20`", "seed=N,snr13=DB"]);
    check("", &["``", "seed=N"]);
    check("seed=-1,snr13=20", &["`seed` can't be `-1`", "whole number"]);
    check("seed=1,snr13=nan", &["`snr13` can't be `nan`", "-40 to 120"]);
    check("seed=1,snr13=121", &["`121`", "-40 to 120"]);
    check("seed=1,snr13=20,ear=bad", &["`ear` can't be `bad`", "good, deaf, zeros or unc"]);
    check("seed=1", &["`snr13` is missing", "seed=7,snr13=20"]);
    check("seed=1,seed=2,snr13=20", &["`seed` is given twice"]);
}

/// The tone near `hz` in the loudest 0.9 s of a window, measured in its inner 0.6 s.
fn tone(recording: &dyn Evidence, window: Window, hz: f64) -> Tone {
    let clip = recording.samples(window).unwrap();
    assert!(clip.whole);
    let rate = f64::from(clip.rate);
    let begins = locate(&clip.samples, rate, hz, 0.9);
    Tone::measure(clip.between(begins + 0.15, begins + 0.75), rate, hz, 0.01)
}

/// The deaf ear of the same seed has the same noise and nothing else, so the noise can be measured
/// for seconds: beside a tone of 0.6 s its estimate scatters by 0.7 dB (one standard deviation).
#[test]
fn the_first_tone_has_the_snr_asked_for() {
    let mut direct = 0.0;
    for seed in 1..=5 {
        let good = in_room("mqtt-healthy", &format!("seed={seed},snr13=20"));
        let tone = tone(&good, step(&good, "tone-1"), 1000.0);
        assert!((tone.dbfs() + 27.905).abs() < 0.2, "seed {seed}: {}", tone.dbfs());
        let deaf = in_room("mqtt-healthy", &format!("seed={seed},snr13=20,ear=deaf"));
        let snr = tone.dbfs() - floor_dbfs(&deaf);
        assert!((snr - 20.0).abs() < 1.0, "seed {seed}: {snr}");
        assert_eq!(good.head().seed, seed);
        direct += tone.snr13_db() / 5.0;
    }
    assert!((direct - 20.0).abs() < 1.0, "mean of the SNR13 beside the tones: {direct}");
}

/// Noise in the third octave around 1 kHz in 12 s of a deaf ear.
fn floor_dbfs(deaf: &dyn Evidence) -> f64 {
    let clip = deaf.samples(Window::from_secs(1.0, 13.0)).unwrap();
    Tone::measure(&clip.samples, f64::from(clip.rate), 1000.0, 0.01).floor_dbfs()
}

#[test]
fn without_a_tone_the_noise_is_that_of_the_reference_session() {
    let floor = |name: &str| floor_dbfs(&in_room(name, "seed=1,snr13=20,ear=deaf"));
    let reference = floor("mqtt-healthy");
    for name in ["mqtt-dead-amp", "mqtt-reboot-nosub"] {
        assert!((floor(name) - reference).abs() < 0.1, "{name}: {}", floor(name));
    }
}

#[test]
fn a_room_adds_beacons_and_ears_fail_as_asked() {
    for name in ["mqtt-healthy", "mqtt-reboot-nosub"] {
        let good = in_room(name, "seed=5,snr13=20");
        assert!(good.head().rig.text.contains("ear = \"microphone\"\n"));
        assert!(good.head().rig.text.contains("# room: seed=5,snr13=20,ear=good\n"));
        let beacons: Vec<_> = observations(&good)
            .into_iter()
            .filter_map(|(at, what)| match what {
                Observation::Beacon { hz, level_dbfs, until } => Some((at, until, hz, level_dbfs)),
                _ => None,
            })
            .collect();
        let paths = ["beacon", "beacon#2"];
        assert_eq!(beacons.len(), paths.len());
        for (path, (from, until, hz, level_dbfs)) in paths.into_iter().zip(beacons) {
            let window = Window { from, until };
            assert_eq!(step(&good, path), window);
            assert!((1800.0..=2200.0).contains(&hz) && level_dbfs == -20.0);
            let heard = tone(&good, window, hz);
            assert!((heard.dbfs() + 20.0).abs() < 0.2, "{name}: {}", heard.dbfs());
            let deaf = in_room(name, "seed=5,snr13=20,ear=deaf");
            assert!(!tone(&deaf, window, hz).is_present());
            assert_eq!(records(&deaf), records(&good));
        }
    }
    let zeros = in_room("ws-healthy", "seed=5,snr13=20,ear=zeros");
    assert!(zeros.segments()[0].samples.iter().all(|sample| *sample == 0.0));
    let uncontrolled = in_room("ws-healthy", "seed=5,snr13=20,ear=uncontrolled");
    let beacon = |(_, what): &(_, Observation)| matches!(what, Observation::Beacon { .. });
    assert!(!observations(&uncontrolled).iter().any(beacon));
    assert!(tone(&uncontrolled, step(&uncontrolled, "tone-1"), 1000.0).is_present());
}

#[test]
fn a_room_shifts_everything_by_three_seconds() {
    let moments = |recording: &dyn Evidence, shift: f64| {
        let foreign = |(at, what): (Moment, Observation)| match what {
            Observation::Sound { .. } | Observation::Beacon { .. } => None,
            what => Some(((at.as_secs_f64() + shift) * 1e6, what)),
        };
        observations(recording).into_iter().filter_map(foreign).collect::<Vec<_>>()
    };
    let (tap, room) = (plain("mqtt-healthy"), in_room("mqtt-healthy", "seed=1,snr13=20"));
    let (tap, room) = (moments(&tap, 3.0), moments(&room, 0.0));
    assert_eq!(tap.len(), room.len());
    for ((before, said), (after, heard)) in tap.iter().zip(&room) {
        assert!((before - after).abs() < 1.0 && said == heard);
    }
}
