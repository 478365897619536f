//! A tone in noise: its level by a least-squares sine fit with fitted frequency (IEEE 1057, four
//! parameters), the noise around it, and where in a capture it sounds.

use super::level::{THIRD_OCTAVE, dbfs, decibels};
use super::spectrum::Spectrum;
use rustfft::num_complex::Complex;
use std::f64::consts::{LN_2, LN_10, TAU};

/// A tone counts as present when its amplitude is this many standard deviations of the noise.
/// The search over frequency and delay looks at some thousand places, each of which noise alone
/// reaches with probability `exp(-z^2 / 2)`: 2e-11 at 7.
pub const PRESENT_SIGMAS: f64 = 7.0;

/// A measured tone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tone {
    /// Fitted frequency in hertz.
    pub hz: f64,
    /// Mean-square of the fitted sine.
    pub power: f64,
    /// Mean-square in the main lobe around its frequency, noise included.
    pub lobe: f64,
    /// One-sided noise density beside the tone, mean-square per hertz.
    pub noise_density: f64,
    /// Seconds of signal in the fit.
    pub seconds: f64,
    /// Noise far above the tone.
    pub hiss: Hiss,
}

/// Noise in a band of 0.3 to 0.45 times the sample rate, where only an ear's own noise is, and
/// moves with its gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hiss {
    /// One-sided density, mean-square per hertz.
    pub density: f64,
    /// Width of the band, hertz.
    pub band_hz: f64,
    /// Standard uncertainty of the density, dB.
    pub sigma_db: f64,
}

impl Hiss {
    fn of(spectrum: &Spectrum, rate: f64, seconds: f64) -> Hiss {
        let (from, until) = (0.3 * rate, 0.45 * rate);
        let band_hz = until - from;
        // The window has half as many independent bins as a rectangular one; the median of an
        // exponential distribution scatters by 1 / ln 2 over the root of their number.
        let sigma = (0.5 * band_hz * seconds).sqrt().recip() / LN_2;
        let sigma_db = 10.0 / LN_10 * sigma;
        Hiss { density: spectrum.density_between(from, until), band_hz, sigma_db }
    }
}

impl Tone {
    /// Fits the tone near `expected_hz` (searched within +-`search` of it, a fraction).
    pub fn measure(samples: &[f64], rate: f64, expected_hz: f64, search: f64) -> Tone {
        let spectrum = Spectrum::of(samples, rate);
        let start = spectrum.peak_hz(expected_hz * (1.0 - search), expected_hz * (1.0 + search));
        let (hz, power) = fit(samples, rate, start);
        let seconds = samples.len() as f64 / rate;
        Tone {
            hz,
            power,
            lobe: spectrum.lobe(hz),
            noise_density: spectrum.noise_density(expected_hz),
            seconds,
            hiss: Hiss::of(&spectrum, rate, seconds),
        }
    }

    /// Level in dBFS (AES17).
    pub fn dbfs(&self) -> f64 {
        dbfs(self.power)
    }

    /// SNR13 in dB: the tone over the noise in the third octave around it.
    pub fn snr13_db(&self) -> f64 {
        decibels(self.power / (self.noise_density * THIRD_OCTAVE * self.hz))
    }

    /// Amplitude over the standard deviation that noise alone gives it, `sqrt(2 T P / N0)`.
    pub fn sigmas(&self) -> f64 {
        if self.power > 0.0 {
            (2.0 * self.seconds * self.power / self.noise_density).sqrt()
        } else {
            0.0
        }
    }

    /// Whether there is a tone, and not just noise or the leakage of another tone that looks like
    /// one: the fit's rectangular window leaks, the spectrum's does not, so both must agree.
    pub fn is_present(&self) -> bool {
        self.stands_out(PRESENT_SIGMAS)
    }

    /// The same with another number of standard deviations.
    pub fn stands_out(&self, sigmas: f64) -> bool {
        self.sigmas() >= sigmas && self.power <= 2.0 * self.lobe
    }

    /// Standard uncertainty of the level from noise, dB (Cramer-Rao bound, which the fit attains).
    pub fn sigma_db(&self) -> f64 {
        20.0 / LN_10 / self.sigmas()
    }

    /// The highest level in dBFS at which a tone could still hide here (two standard deviations).
    pub fn ceiling_dbfs(&self) -> f64 {
        let noise = (self.noise_density / (2.0 * self.seconds.max(1e-3))).sqrt();
        dbfs((self.power.sqrt() + 2.0 * noise).powi(2))
    }

    /// Level in dBFS of the noise in the third octave around the tone.
    pub fn floor_dbfs(&self) -> f64 {
        dbfs(self.noise_density * THIRD_OCTAVE * self.hz)
    }
}

/// Four-parameter fit `a cos + b sin + c` with the frequency free; returns (hz, mean-square).
fn fit(samples: &[f64], rate: f64, start_hz: f64) -> (f64, f64) {
    let start = TAU * start_hz / rate;
    let mut omega = start;
    let (mut a, mut b) = (0.0, 0.0);
    // One pass with the frequency held gives the amplitudes that the frequency step needs.
    for pass in 0..8 {
        let unknowns = if pass == 0 { 3 } else { 4 };
        let Some(solution) = solve(normal_equations(samples, omega, a, b), unknowns) else { break };
        (a, b) = (solution[0], solution[1]);
        if pass > 0 {
            let step = solution[3].clamp(-TAU * 2.0 / rate, TAU * 2.0 / rate);
            omega = (omega + step).clamp(start * 0.5, start * 1.5);
            // Phases that move by less than this over all samples leave the amplitude as it is.
            if step.abs() * (samples.len() as f64) < 1e-3 {
                break;
            }
        }
    }
    (omega * rate / TAU, (a * a + b * b) / 2.0)
}

/// Upper triangle and right side of the normal equations for `cos`, `sin`, 1 and the derivative
/// by the frequency, at the amplitudes `a` and `b`; time counts from the middle.
fn normal_equations(samples: &[f64], omega: f64, a: f64, b: f64) -> [[f64; 5]; 4] {
    let middle = (samples.len() as f64 - 1.0) / 2.0;
    let mut m = [[0.0; 5]; 4];
    let turn = Complex::from_polar(1.0, omega);
    let mut phasor = Complex::new(0.0, 0.0);
    for (n, &x) in samples.iter().enumerate() {
        let t = n as f64 - middle;
        // The recurrence is exact to 1e-13 over this many steps.
        phasor = if n % 1024 == 0 { Complex::from_polar(1.0, omega * t) } else { phasor * turn };
        let (cos, sin) = (phasor.re, phasor.im);
        let d = t * (b * cos - a * sin);
        m[0][0] += cos * cos;
        m[0][1] += cos * sin;
        m[0][2] += cos;
        m[0][3] += cos * d;
        m[0][4] += cos * x;
        m[1][1] += sin * sin;
        m[1][2] += sin;
        m[1][3] += sin * d;
        m[1][4] += sin * x;
        m[2][3] += d;
        m[2][4] += x;
        m[3][3] += d * d;
        m[3][4] += d * x;
    }
    m[2][2] = samples.len() as f64;
    m
}

/// Solves the symmetric normal equations of the first `size` unknowns by elimination with
/// pivoting; `None` when they are singular.
fn solve(mut m: [[f64; 5]; 4], size: usize) -> Option<[f64; 4]> {
    for i in 1..size {
        let (above, below) = m.split_at_mut(i);
        for (cell, mirrored) in below[0].iter_mut().zip(above) {
            *cell = mirrored[i];
        }
    }
    for i in 0..size {
        let pivot = (i..size).max_by(|&p, &q| m[p][i].abs().total_cmp(&m[q][i].abs()))?;
        m.swap(i, pivot);
        if m[i][i].abs() < 1e-30 {
            return None;
        }
        for row in i + 1..size {
            let factor = m[row][i] / m[i][i];
            let above = m[i];
            for (cell, up) in m[row].iter_mut().zip(above) {
                *cell -= factor * up;
            }
        }
    }
    let mut x = [0.0; 4];
    for i in (0..size).rev() {
        let known: f64 = (i + 1..size).map(|j| m[i][j] * x[j]).sum();
        x[i] = (m[i][4] - known) / m[i][i];
    }
    Some(x)
}

/// Where a tone of `hz` and `seconds` most probably begins in `samples`: the start, in seconds,
/// of the stretch with the largest sum of powers of short pieces, to a resolution of 5 ms. Pieces
/// of 50 periods, 50 ms at most, lose less than 1 dB at a frequency that is off by 0.5 %.
pub fn locate(samples: &[f64], rate: f64, hz: f64, seconds: f64) -> f64 {
    let block = (rate * 0.005).round().max(1.0) as usize;
    let sums = running_sums(samples, rate, hz, block);
    let blocks = sums.len() - 1;
    let length = (seconds * rate / block as f64).round() as usize;
    let length = length.clamp(1, blocks.max(1));
    let piece = ((50.0 / hz).min(0.05) * rate / block as f64).round() as usize;
    let piece = piece.clamp(1, length);
    let power = |k: usize| (sums[(k + piece).min(blocks)] - sums[k]).norm_sqr();
    let powers: Vec<f64> = (0..blocks).map(power).collect();
    let weight = |k: usize| powers[k..k + length].iter().step_by(piece).sum::<f64>();
    let mut best = (0, 0.0);
    for start in 0..(blocks + 1).saturating_sub(length) {
        let weight = weight(start);
        if weight > best.1 {
            best = (start, weight);
        }
    }
    best.0 as f64 * block as f64 / rate
}

/// The sum of `samples`, turned back by `hz`, up to each block of `block` samples.
fn running_sums(samples: &[f64], rate: f64, hz: f64, block: usize) -> Vec<Complex<f64>> {
    let turn = Complex::from_polar(1.0, -TAU * hz / rate);
    let mut phasor = Complex::new(1.0, 0.0);
    let mut sums = vec![Complex::new(0.0, 0.0)];
    for chunk in samples.chunks(block) {
        let mut sum = sums[sums.len() - 1];
        for x in chunk {
            sum += phasor * *x;
            phasor *= turn;
        }
        phasor /= phasor.norm();
        sums.push(sum);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::noise::Noise;

    fn sine(amplitude: f64, hz: f64, seconds: f64, rate: f64) -> Vec<f64> {
        let count = (seconds * rate) as usize;
        (0..count).map(|n| amplitude * (TAU * hz * n as f64 / rate + 0.3).sin()).collect()
    }

    /// Closed form.
    #[test]
    fn the_fit_finds_level_and_frequency() {
        for (hz, rate) in [(1000.0, 24000.0), (997.31, 24000.0), (1234.567, 48000.0)] {
            let tone = Tone::measure(&sine(0.1, hz, 0.7, rate), rate, hz * 1.002, 0.01);
            assert!((tone.dbfs() + 20.0).abs() < 1e-6, "{}", tone.dbfs());
            assert!((tone.hz - hz).abs() < 1e-6, "{}", tone.hz);
        }
    }

    /// The stated uncertainty is the scatter that noise really causes.
    #[test]
    fn the_uncertainty_is_honest() {
        let (mut errors, mut stated) = (Vec::new(), 0.0);
        for seed in 0..60 {
            let mut noise = Noise::new(seed, 0);
            let mut samples = sine(0.1, 1000.0, 0.7, 24000.0);
            samples.iter_mut().for_each(|x| *x += 0.2 * noise.gaussian());
            let tone = Tone::measure(&samples, 24000.0, 1000.0, 0.005);
            errors.push(tone.dbfs() + 20.0);
            stated = tone.sigma_db();
        }
        let spread = (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt();
        assert!((spread / stated - 1.0).abs() < 0.3, "scatter {spread}, stated {stated}");
    }

    /// Closed form: another tone leaks into the fit, but is no tone there.
    #[test]
    fn leakage_is_no_tone() {
        for hz in [500.0, 918.8, 1088.4, 1500.0, 3000.3] {
            let tone = Tone::measure(&sine(0.5, hz, 0.7, 24000.0), 24000.0, 1000.0, 0.005);
            assert!(!tone.is_present(), "{hz}: {} dBFS at {} Hz", tone.dbfs(), tone.hz);
        }
    }

    #[test]
    fn a_tone_is_found_where_it_begins_and_noise_is_no_tone() {
        let mut noise = Noise::new(3, 0);
        let mut samples: Vec<f64> = (0..48000).map(|_| 0.1 * noise.gaussian()).collect();
        let tone = Tone::measure(&samples, 24000.0, 1000.0, 0.03);
        assert!(!tone.is_present(), "{} sigmas", tone.sigmas());
        for (x, s) in samples[12000..].iter_mut().zip(sine(0.1, 1000.0, 0.9, 24000.0)) {
            *x += s;
        }
        for hz in [1000.0, 1000.65, 1005.0, 995.0] {
            let start = locate(&samples, 24000.0, hz, 0.9);
            assert!((start - 0.5).abs() < 0.02, "{hz}: {start}");
        }
    }
}
