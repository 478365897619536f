//! A room between loudspeaker and ear: white noise at a stated SNR13, a bench beacon, and ears
//! that fail in known ways. Everything random comes from the seed.

use crate::audio::level::{THIRD_OCTAVE, mean_square, ratio};
use crate::audio::noise::Noise;
use crate::audio::tone::{Tone, locate};
use crate::journal::{SampleFormat, Segment};
use crate::time::{Moment, Window};
use std::f64::consts::{PI, TAU};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How much later than in the recording everything happens in a room: time for the beacon before.
pub const LEAD: Duration = Duration::from_secs(3);

/// How long the ear goes on after the last event and the last sample.
pub const TAIL: Duration = Duration::from_secs(3);

/// When the ear begins.
const CAPTURE_STARTS: Moment = Moment::from_nanos(500_000_000);

/// When the first beacon begins.
const FIRST_BEACON: Moment = Moment::from_nanos(1_000_000_000);

/// From the last event or sample to the second beacon.
const BEACON_GAP: Duration = Duration::from_secs(1);

/// How long a beacon sounds.
const BEACON_LENGTH: Duration = Duration::from_secs(1);

/// Level of the beacon at the ear, dBFS (AES17).
const BEACON_DBFS: f64 = -20.0;

/// Length of the beacon's raised-cosine ramps, seconds.
const BEACON_RAMP: f64 = 0.020;

/// Frequency of the tones that SNR13 refers to, hertz.
const TONE_HZ: f64 = 1000.0;

/// A tone below this level, dBFS, is not one to set the noise by.
const LEAST_TONE_DBFS: f64 = -80.0;

/// The level, dBFS, that SNR13 refers to where a session has no tone (a reboot, a dead
/// amplifier): that of the quieter tone, volume 40, of the session `mqtt-healthy`.
const REFERENCE_TONE_DBFS: f64 = -27.905;

/// How long after the last packet its sound may still come, a device's play-out buffer.
const PLAY_OUT: Duration = Duration::from_secs(1);

/// The uses of the seed.
const NOISE_STREAM: u64 = 1;
const BEACON_STREAM: u64 = 2;

/// A room, an ear in it and the chance that rules there; written `seed=7,snr13=20,ear=good`.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// Where noise and beacon frequency come from.
    pub seed: u64,
    /// SNR13 of the session's quieter tone, dB.
    pub snr13_db: f64,
    /// What the ear is like.
    pub ear: Ear,
}

/// What can be wrong with an ear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ear {
    /// It hears all.
    #[default]
    Good,
    /// It hears neither the loudspeaker nor the beacon, only its own noise.
    Deaf,
    /// It delivers exact zeros, a muted microphone.
    Zeros,
    /// It hears all, but the bench plays no beacon to prove it.
    Uncontrolled,
}

impl Ear {
    const ALL: [(&'static str, Ear); 4] = [
        ("good", Ear::Good),
        ("deaf", Ear::Deaf),
        ("zeros", Ear::Zeros),
        ("uncontrolled", Ear::Uncontrolled),
    ];
}

/// Why a text describes no room.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoomError {
    /// A key that rooms don't have, or a part without `=`.
    #[error(
        "room: `{0}` is not understood; a room is \
         seed=N,snr13=DB[,ear=good|deaf|zeros|uncontrolled]"
    )]
    UnknownKey(String),
    /// A value that its key doesn't accept.
    #[error("room: `{key}` can't be `{value}`; give {accepted}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it accepts.
        accepted: &'static str,
    },
    /// A key that must be there.
    #[error("room: `{0}` is missing; write for example seed=7,snr13=20")]
    MissingKey(&'static str),
    /// A key that says two things.
    #[error("room: `{0}` is given twice; give it once")]
    Twice(&'static str),
}

impl FromStr for Room {
    type Err = RoomError;

    fn from_str(text: &str) -> Result<Self, RoomError> {
        let (mut seed, mut snr13_db, mut ear) = (None, None, None);
        for part in text.split(',') {
            let unknown = || RoomError::UnknownKey(part.into());
            let (key, value) = part.split_once('=').ok_or_else(unknown)?;
            let wrong = |key, accepted| RoomError::BadValue { key, value: value.into(), accepted };
            match key {
                "seed" => {
                    let parsed = value.parse().map_err(|_| wrong("seed", "a whole number"))?;
                    once(&mut seed, "seed", parsed)?;
                }
                "snr13" => {
                    let decibels = value.parse().ok().filter(|db| (-40.0..=120.0).contains(db));
                    let parsed = decibels.ok_or_else(|| wrong("snr13", "-40 to 120, in dB"))?;
                    once(&mut snr13_db, "snr13", parsed)?;
                }
                "ear" => {
                    let known = Ear::ALL.into_iter().find(|(name, _)| *name == value);
                    let accepted = "good, deaf, zeros or uncontrolled";
                    once(&mut ear, "ear", known.ok_or_else(|| wrong("ear", accepted))?.1)?;
                }
                _ => return Err(unknown()),
            }
        }
        Ok(Room {
            seed: seed.ok_or(RoomError::MissingKey("seed"))?,
            snr13_db: snr13_db.ok_or(RoomError::MissingKey("snr13"))?,
            ear: ear.unwrap_or_default(),
        })
    }
}

fn once<T>(slot: &mut Option<T>, key: &'static str, value: T) -> Result<(), RoomError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(RoomError::Twice(key)),
    }
}

impl fmt::Display for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Ear::ALL.iter().find(|(_, ear)| ear == self);
        f.write_str(named.expect("the list holds every ear").0)
    }
}

impl fmt::Display for Room {
    /// `seed=7,snr13=20,ear=good`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed={},snr13={},ear={}", self.seed, self.snr13_db, self.ear)
    }
}

/// What the ear delivered.
#[derive(Debug)]
pub(super) struct Heard {
    /// The samples.
    pub segment: Segment,
    /// When the first of them was captured.
    pub starts: Moment,
    /// What the bench's loudspeaker played, in order.
    pub beacons: Vec<Beacon>,
}

/// One beacon.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beacon {
    /// From when until when it sounds.
    pub window: Window,
    /// Frequency in hertz.
    pub hz: f64,
    /// Level at the ear, dBFS (AES17).
    pub level_dbfs: f64,
}

impl Room {
    /// What the ear hears of a loudspeaker whose first sample sounds at `starts`, when audio was
    /// sent to the device in the windows `sent` and the last event came at `latest`. All these
    /// times are already [`LEAD`] later than in the foreign recording.
    pub(super) fn hear(
        &self,
        speaker: &Segment,
        starts: Moment,
        sent: &[Window],
        latest: Moment,
    ) -> Heard {
        let rate = f64::from(speaker.rate);
        let played = Duration::from_secs_f64(speaker.samples.len() as f64 / rate);
        let last = latest.max(starts + played);
        let beacons = self.beacons(last);
        let count = index(last + TAIL, CAPTURE_STARTS, rate);
        let mut samples = vec![0.0; count];
        if self.ear != Ear::Zeros {
            let tone_power = quieter_tone(speaker, starts, sent);
            let density = tone_power / ratio(self.snr13_db) / (THIRD_OCTAVE * TONE_HZ);
            let sigma = (density * rate / 2.0).sqrt();
            let mut noise = Noise::new(self.seed, NOISE_STREAM);
            samples.iter_mut().for_each(|sample| *sample = sigma * noise.gaussian());
        }
        if matches!(self.ear, Ear::Good | Ear::Uncontrolled) {
            mix(&mut samples, index(starts, CAPTURE_STARTS, rate), speaker.samples.iter().copied());
            for beacon in &beacons {
                let first = index(beacon.window.from, CAPTURE_STARTS, rate);
                mix(&mut samples, first, beacon.samples(rate));
            }
        }
        // As the file will hold them, so that a saved session is judged like this one.
        samples.iter_mut().for_each(|sample| *sample = f64::from(*sample as f32));
        let segment = Segment { rate: speaker.rate, format: SampleFormat::Float32, samples };
        Heard { segment, starts: CAPTURE_STARTS, beacons }
    }

    /// One beacon before the session and one after `last`.
    fn beacons(&self, last: Moment) -> Vec<Beacon> {
        if self.ear == Ear::Uncontrolled {
            return Vec::new();
        }
        let drawn = 1800.0 + 400.0 * Noise::new(self.seed, BEACON_STREAM).uniform();
        // Tenths of a hertz: few enough digits to survive JSON exactly.
        let hz = (drawn * 10.0).round() / 10.0;
        let beacon = |from| Beacon {
            window: Window { from, until: from + BEACON_LENGTH },
            hz,
            level_dbfs: BEACON_DBFS,
        };
        vec![beacon(FIRST_BEACON), beacon(last + BEACON_GAP)]
    }
}

impl Beacon {
    fn samples(self, rate: f64) -> impl Iterator<Item = f64> {
        let seconds = self.window.seconds();
        let amplitude = (2.0 * mean_square(self.level_dbfs)).sqrt();
        (0..(seconds * rate).round() as usize).map(move |n| {
            let t = n as f64 / rate;
            let ramp = (t.min(seconds - t) / BEACON_RAMP).min(1.0);
            amplitude * (0.5 - 0.5 * (PI * ramp).cos()) * (TAU * self.hz * t).sin()
        })
    }
}

/// Samples from `origin` to `at`, to the nearest.
fn index(at: Moment, origin: Moment, rate: f64) -> usize {
    (at.seconds_since(origin) * rate).round().max(0.0) as usize
}

fn mix(samples: &mut [f64], first: usize, sound: impl Iterator<Item = f64>) {
    let heard = samples.iter_mut().skip(first).zip(sound);
    heard.for_each(|(sample, sound)| *sample += sound);
}

/// Mean-square of the quietest tone among the phases in which audio was sent.
fn quieter_tone(speaker: &Segment, starts: Moment, sent: &[Window]) -> f64 {
    let rate = f64::from(speaker.rate);
    let tones = sent.iter().filter_map(|window| {
        let end = index(window.until + PLAY_OUT, starts, rate).min(speaker.samples.len());
        let first = index(window.from, starts, rate).min(end);
        tone_in(&speaker.samples[first..end], rate)
    });
    tones.map(|tone| tone.power).min_by(f64::total_cmp).unwrap_or(mean_square(REFERENCE_TONE_DBFS))
}

/// The tone of one phase: 0.9 s of 1 kHz somewhere in `samples`, measured in its inner 0.6 s.
fn tone_in(samples: &[f64], rate: f64) -> Option<Tone> {
    let seconds = |seconds: f64| (seconds * rate).round() as usize;
    if samples.len() < seconds(0.9) {
        return None;
    }
    let begins = locate(samples, rate, TONE_HZ, 0.9);
    let inner = samples.get(seconds(begins + 0.15)..seconds(begins + 0.75))?;
    let tone = Tone::measure(inner, rate, TONE_HZ, 0.01);
    (tone.is_present() && tone.dbfs() >= LEAST_TONE_DBFS).then_some(tone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_written_as_it_is_read() {
        let check = |text: &str, written: &str| {
            assert_eq!(text.parse::<Room>().unwrap().to_string(), written);
        };
        check("seed=7,snr13=20", "seed=7,snr13=20,ear=good");
        check("snr13=-12.5,ear=deaf,seed=0", "seed=0,snr13=-12.5,ear=deaf");
        check("seed=1,snr13=120,ear=zeros", "seed=1,snr13=120,ear=zeros");
        check("seed=1,snr13=-40,ear=uncontrolled", "seed=1,snr13=-40,ear=uncontrolled");
    }
}
