//! What the bench plays, and what a stimulus is, read from its own samples.

use super::level::{mean_square, power};
use super::noise::Noise;
use super::spectrum::Spectrum;
use super::tone::Tone;
use std::f64::consts::{PI, TAU};

/// A single tone with silence around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stimulus {
    /// Frequency in hertz.
    pub hz: f64,
    /// Level of the tone in dBFS (AES17) as sent to the board.
    pub dbfs: f64,
    /// When the tone begins, in seconds after the first packet's first sample.
    pub begins: f64,
    /// How long it lasts, in seconds.
    pub seconds: f64,
}

impl Stimulus {
    /// Finds the tone in the decoded stimulus; `None` when it is silent or shorter than 0.2 s.
    pub fn of(samples: &[f64], rate: f64) -> Option<Stimulus> {
        let block = (rate * 0.01) as usize;
        let powers: Vec<f64> = samples.chunks(block).map(power).collect();
        let loudest = powers.iter().copied().fold(0.0, f64::max);
        let loud = |p: &f64| *p > loudest / 4.0 && *p > 1e-10;
        let first = powers.iter().position(loud)?;
        let last = powers.iter().rposition(loud)?;
        let seconds = (last + 1 - first) as f64 * 0.01;
        if seconds < 0.2 {
            return None;
        }
        let end = ((last + 1) * block).min(samples.len());
        let edge = ((0.05 * rate) as usize).min((end - first * block) / 8);
        let steady = &samples[first * block + edge..end - edge];
        let peak = Spectrum::of(steady, rate).peak_hz(50.0, 0.45 * rate);
        let tone = Tone::measure(steady, rate, peak, 0.01);
        let begins = first as f64 * 0.01;
        Some(Stimulus { hz: tone.hz, dbfs: tone.dbfs(), begins, seconds })
    }
}

/// Rise and fall of a [`tone`], seconds.
const RAMP: f64 = 0.02;

/// The frequency of the bench's tone number `k` in a run, hertz: drawn from the seed between 900
/// and 1100 Hz, so that an old recording or another board's tone is not taken for ours; at least
/// 7 Hz off the harmonics of 50 and 60 Hz mains, in steps of 0.25 Hz.
pub fn coded(seed: u64, k: u64) -> f64 {
    let clear = |hz: f64, mains: f64| (hz - (hz / mains).round() * mains).abs() >= 7.0;
    let mut noise = Noise::new(seed, k);
    loop {
        let hz = 900.0 + (noise.next_u64() % 800) as f64 / 4.0;
        if clear(hz, 50.0) && clear(hz, 60.0) {
            return hz;
        }
    }
}

/// A sine of `hz` at `dbfs` (AES17) for `seconds`, with raised-cosine ramps of 20 ms inside of
/// them, after `lead_in` seconds of silence, at 24 kHz and full scale = 1.0. A lead-in of 0.5 s is
/// what a board may swallow while it opens its codec.
pub fn tone(hz: f64, dbfs: f64, seconds: f64, lead_in: f64) -> Vec<f64> {
    let rate = f64::from(super::opus::RATE);
    let count = |seconds: f64| (seconds * rate).round() as usize;
    let (silence, length) = (count(lead_in), count(seconds));
    let peak = (2.0 * mean_square(dbfs)).sqrt();
    let sample = |n: usize| {
        let edge = n.min(length - n) as f64 / (RAMP * rate);
        let rise = (1.0 - (PI * edge.min(1.0)).cos()) / 2.0;
        peak * rise * (TAU * hz * n as f64 / rate).sin()
    };
    std::iter::repeat_n(0.0, silence).chain((0..length).map(sample)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn coded_tones_differ_and_keep_off_the_mains() {
        let quarters = |seed| (0..20).map(move |k| (4.0 * coded(seed, k)) as u32);
        let seeds = 0..50;
        let all: Vec<u32> = seeds.clone().flat_map(quarters).collect();
        for &quarter in &all {
            assert!((3600..4400).contains(&quarter), "{quarter}");
            for mains in [200, 240] {
                let rest = quarter % mains;
                assert!(rest.min(mains - rest) >= 28, "{} Hz", f64::from(quarter) / 4.0);
            }
        }
        assert!(all.iter().collect::<BTreeSet<_>>().len() > 200);
        let first: BTreeSet<u32> = seeds.filter_map(|seed| quarters(seed).next()).collect();
        assert!(first.len() > 40, "{first:?}");
        assert_eq!(coded(7, 3), coded(7, 3));
    }

    #[test]
    fn a_tone_is_what_was_asked_for() {
        let samples = tone(987.25, -12.0, 1.0, 0.5);
        assert_eq!(samples.len(), 36_000);
        assert!(samples[..12_000].iter().all(|x| *x == 0.0));
        let steps = samples.windows(2).map(|pair| (pair[1] - pair[0]).abs());
        // A full-scale sine of 987 Hz moves by 0.258 at most from sample to sample.
        assert!(steps.fold(0.0, f64::max) < 0.26 * 0.2512);
        let found = Stimulus::of(&samples, 24_000.0).unwrap();
        assert!((found.hz - 987.25).abs() < 1e-3 && (found.dbfs + 12.0).abs() < 1e-3, "{found:?}");
        assert!((found.begins - 0.5).abs() < 0.02 && (found.seconds - 1.0).abs() < 0.04);
        assert!(tone(1000.0, -12.0, 0.0, 0.0).is_empty());
    }
}
