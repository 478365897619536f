//! Whether a tone was one steady tone: its short stretches against the whole.

use super::tone::Tone;
use rustfft::num_complex::Complex;
use std::f64::consts::TAU;

/// Length of the shortest stretch, seconds; a frame of I2S DMA (10 ms) missing from it shows.
const STRETCH: f64 = 0.020;

/// What noise alone reaches with probability `exp(-z^2 / 2)`, 1.5e-8, in one stretch; some hundred
/// stretches of a tone are looked at.
const SIGMAS: f64 = 6.0;

/// How far, as a fraction of the amplitude, a stretch may always be off (estimated; 0.4 dB). The
/// Opus tones of the recorded sessions stay within 0.005 (measured); hum 24 dB above the tone
/// makes 0.035 of it.
const ALWAYS_ALLOWED: f64 = 0.05;

/// A stretch of a tone that is not like the whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jolt {
    /// When it begins, seconds after the first sample.
    pub begins: f64,
    /// How long it lasts, seconds.
    pub seconds: f64,
    /// Its level against that of the whole tone, dB.
    pub db: f64,
    /// Its phase against that of the whole tone, degrees.
    pub degrees: f64,
}

/// The stretch that is farthest from the `tone` fitted to `samples`, if noise of the tone's
/// density does not explain it. Level and phase count alike: a lost packet leaves the level as it
/// was, and yet no fit is right across it.
pub fn jolt(samples: &[f64], rate: f64, tone: &Tone) -> Option<Jolt> {
    let hop = (rate * (STRETCH / 2.0).max(5.0 / tone.hz)).round() as usize;
    let parts = parts(samples, rate, tone.hz, hop.max(1));
    let whole = mean(&parts);
    let seconds = hop as f64 / rate;
    let mut worst: Option<(f64, Jolt)> = None;
    let mut length = 1;
    while 2 * length <= parts.len() {
        let sigma = Tone { seconds: length as f64 * seconds, ..*tone }.sigmas().recip();
        let allowed = ALWAYS_ALLOWED.max(SIGMAS * sigma);
        for (n, stretch) in parts.windows(length).enumerate().step_by(length.div_ceil(2)) {
            let gain = mean(stretch) / whole;
            let excess = (gain - 1.0).norm() / allowed;
            // Not a number where the whole is nothing: no tone, no jolt.
            if excess > worst.map_or(1.0, |(most, _)| most) {
                let (begins, seconds) = ((n as f64 + 0.5) * seconds, length as f64 * seconds);
                let (db, degrees) = (20.0 * gain.norm().log10(), gain.arg().to_degrees());
                worst = Some((excess, Jolt { begins, seconds, db, degrees }));
            }
        }
        length *= 2;
    }
    worst.map(|(_, jolt)| jolt)
}

/// Complex amplitude at `hz` of every stretch of two hops, under a Hann window so that rumble and
/// other tones stay out.
fn parts(samples: &[f64], rate: f64, hz: f64, hop: usize) -> Vec<Complex<f64>> {
    let turn = |n: usize| Complex::from_polar(1.0, -TAU * hz / rate * n as f64);
    let wave: Vec<_> = (0..2 * hop)
        .map(|n| turn(n) * (0.5 - 0.5 * (TAU * n as f64 / (2 * hop) as f64).cos()))
        .collect();
    let starts = (0..(samples.len() + 1).saturating_sub(2 * hop)).step_by(hop);
    let part = |start: usize| {
        let product = samples[start..].iter().zip(&wave).map(|(x, w)| w * x);
        turn(start) * product.sum::<Complex<f64>>()
    };
    starts.map(part).collect()
}

fn mean(values: &[Complex<f64>]) -> Complex<f64> {
    values.iter().sum::<Complex<f64>>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::noise::Noise;

    const RATE: f64 = 24_000.0;

    /// 0.6 s of 1 kHz with an amplitude of 0.1 times `gain` at each time, in noise of `sigma`.
    fn find(gain: impl Fn(f64) -> f64, phase: impl Fn(f64) -> f64, sigma: f64) -> Option<Jolt> {
        let mut noise = Noise::new(5, 0);
        let sample = |n: usize| {
            let t = n as f64 / RATE;
            0.1 * gain(t) * (TAU * 1000.2 * t + phase(t)).sin() + sigma * noise.gaussian()
        };
        let samples: Vec<f64> = (0..14_400).map(sample).collect();
        let tone = Tone::measure(&samples, RATE, 1000.0, 0.005);
        jolt(&samples, RATE, &tone)
    }

    /// Closed form: what was done to the tone, and when.
    #[test]
    fn an_unsteady_tone_is_told_where_and_by_how_much() {
        for sigma in [1e-6, 0.02] {
            let found = |gain: &dyn Fn(f64) -> f64| find(gain, |_| 0.0, sigma);
            assert_eq!(found(&|_| 1.0), None, "steady, noise {sigma}");
            let hole = found(&|t| f64::from(!(0.30..0.34).contains(&t))).expect("a hole");
            assert!((hole.begins - 0.30).abs() < 0.02 && hole.db < -10.0, "{hole:?}");
            assert!(found(&|t| 1.0 - t).is_some(), "a fade");
            assert!(found(&|t| f64::from(t < 0.45)).is_some(), "cut short");
            assert!(found(&|t| 1.0 + 0.9 * (TAU * 20.0 * t).sin()).is_some(), "tremolo");
            assert!(found(&|t| f64::from((t * 33.3) as u32 % 2)).is_some(), "stutter");
            let skipped = find(|_| 1.0, |t| if t < 0.3 { 0.0 } else { 2.0 }, sigma);
            assert!(skipped.expect("a skip").degrees.abs() > 20.0);
        }
    }

    /// The threshold follows the noise: even a tone that is barely there is not called unsteady.
    #[test]
    fn noise_is_not_unsteadiness() {
        for seed in 0..200 {
            let mut noise = Noise::new(seed, 0);
            let sigma = [0.02, 0.2, 0.8][seed as usize % 3];
            let sample = |n: usize| 0.1 * (TAU * n as f64 / 24.0).sin() + sigma * noise.gaussian();
            let samples: Vec<f64> = (0..14_400).map(sample).collect();
            let tone = Tone::measure(&samples, RATE, 1000.0, 0.005);
            assert_eq!(jolt(&samples, RATE, &tone), None, "seed {seed}");
        }
    }
}
