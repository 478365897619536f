//! Power spectra with the 4-term Blackman-Harris window.
//!
//! Scaling: `ms[k] = 2 |X[k]|^2 / (N S2)` with `S2` the sum of the squared window, so that the sum
//! over a tone's main lobe is its mean-square and a bin of noise is `PSD * rate / N_fft`.

use super::level::THIRD_OCTAVE;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;
use std::cell::RefCell;
use std::f64::consts::{LN_2, TAU};

/// Half-width of the window's main lobe in bins of an unpadded transform.
const LOBE: f64 = 4.0;

/// A one-sided power spectrum.
#[derive(Clone, Debug)]
pub struct Spectrum {
    /// Mean-square per bin, from 0 Hz on.
    pub power: Vec<f64>,
    /// Distance of two bins in hertz.
    pub bin_hz: f64,
    /// Bins (of this, maybe zero-padded, transform) to either side that hold a whole tone.
    lobe_bins: usize,
}

/// The 4-term Blackman-Harris window (-92 dB), periodic form of length `count`.
fn window(count: usize) -> impl Iterator<Item = f64> {
    let step = TAU / count as f64;
    let turn = Complex::from_polar(1.0, step);
    let mut phasor = Complex::new(1.0, 0.0);
    (0..count).map(move |n| {
        // The recurrence is exact to 1e-13 over this many steps.
        phasor =
            if n % 1024 == 0 { Complex::from_polar(1.0, step * n as f64) } else { phasor * turn };
        let c = phasor.re;
        // cos 2x and cos 3x by their polynomials in cos x.
        0.35875 - 0.48829 * c + 0.14128 * (2.0 * c * c - 1.0) - 0.01168 * (4.0 * c * c - 3.0) * c
    })
}

thread_local! {
    static PLANNER: RefCell<FftPlanner<f64>> = RefCell::new(FftPlanner::new());
}

impl Spectrum {
    /// The spectrum of `samples`, padded with zeros to a power of two.
    pub fn of(samples: &[f64], rate: f64) -> Spectrum {
        let n = samples.len().max(16);
        let size = n.next_power_of_two();
        let mut s2 = 0.0;
        let mut buffer: Vec<Complex<f64>> = Vec::with_capacity(size);
        for (&x, w) in samples.iter().zip(window(n)) {
            s2 += w * w;
            buffer.push(Complex::new(x * w, 0.0));
        }
        buffer.resize(size, Complex::default());
        PLANNER.with_borrow_mut(|planner| planner.plan_fft_forward(size)).process(&mut buffer);
        let padding = size as f64 / n as f64;
        let scale = 2.0 / (size as f64 * s2.max(f64::MIN_POSITIVE));
        Spectrum {
            power: buffer[..size / 2].iter().map(|x| x.norm_sqr() * scale).collect(),
            bin_hz: rate / size as f64,
            lobe_bins: (LOBE * padding).ceil() as usize,
        }
    }

    fn bin(&self, hz: f64) -> usize {
        ((hz / self.bin_hz).round().max(0.0) as usize).min(self.power.len() - 1)
    }

    /// Mean-square of the tone at `hz`: the sum over its main lobe (+-4 bins before padding).
    pub fn lobe(&self, hz: f64) -> f64 {
        let centre = self.bin(hz);
        let first = centre.saturating_sub(self.lobe_bins);
        let last = (centre + self.lobe_bins).min(self.power.len() - 1);
        self.power[first..=last].iter().sum::<f64>()
    }

    /// One-sided noise density around `hz` in mean-square per hertz: the median of the bins that
    /// lie 0.06 to 0.3 octaves away, divided by ln 2 (the median of an exponential distribution).
    pub fn noise_density(&self, hz: f64) -> f64 {
        let octaves = |o: f64| hz * 2f64.powf(o);
        let mut bins = Vec::new();
        for (low, high) in [(-0.3, -0.06), (0.06, 0.3)] {
            bins.extend_from_slice(&self.power[self.bin(octaves(low))..=self.bin(octaves(high))]);
        }
        median(&mut bins) / LN_2 / self.bin_hz
    }

    /// One-sided density between two frequencies, from the median like [`Self::noise_density`].
    pub fn density_between(&self, from_hz: f64, until_hz: f64) -> f64 {
        let mut bins = self.power[self.bin(from_hz)..=self.bin(until_hz)].to_vec();
        median(&mut bins) / LN_2 / self.bin_hz
    }

    /// Mean-square of the noise in the third octave around `hz`.
    pub fn noise_floor(&self, hz: f64) -> f64 {
        self.noise_density(hz) * THIRD_OCTAVE * hz
    }

    /// The strongest bin between two frequencies, in hertz, refined by a parabola on its logarithm.
    pub fn peak_hz(&self, from_hz: f64, until_hz: f64) -> f64 {
        let (first, last) = (self.bin(from_hz).max(1), self.bin(until_hz));
        let strongest = |a: &usize, b: &usize| self.power[*a].total_cmp(&self.power[*b]);
        let peak = (first..=last.max(first)).max_by(strongest).unwrap_or(first);
        let log = |k: usize| self.power.get(k).map_or(f64::MIN, |p| p.max(1e-300).ln());
        let (a, b, c) = (log(peak - 1), log(peak), log(peak + 1));
        let bend = a - 2.0 * b + c;
        let offset = if bend < 0.0 { (0.5 * (a - c) / bend).clamp(-0.5, 0.5) } else { 0.0 };
        (peak as f64 + offset) * self.bin_hz
    }
}

/// The median, taking the lower of two middle values; 0 for no values.
fn median(values: &mut [f64]) -> f64 {
    let middle = values.len().saturating_sub(1) / 2;
    if values.is_empty() {
        return 0.0;
    }
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::super::level::dbfs;
    use super::*;

    /// Closed form: a sine on a bin and between two bins, padded and not.
    #[test]
    fn a_tone_reads_its_level_wherever_it_falls() {
        for (n, hz) in [(16384, 1000.0), (16384, 1000.7), (12000, 997.3), (9000, 5000.49)] {
            let tone = |k: usize| 0.25 * (TAU * hz * k as f64 / 24000.0).sin();
            let samples: Vec<f64> = (0..n).map(tone).collect();
            let spectrum = Spectrum::of(&samples, 24000.0);
            let level = dbfs(spectrum.lobe(hz));
            assert!((level + 12.0412).abs() < 0.001, "{n} {hz}: {level}");
            assert!((spectrum.peak_hz(500.0, 8000.0) - hz).abs() < 0.05);
        }
    }

    #[test]
    fn white_noise_has_the_density_it_was_made_with() {
        let mut noise = crate::audio::noise::Noise::new(1, 0);
        let samples: Vec<f64> = (0..60000).map(|_| 0.1 * noise.gaussian()).collect();
        let density = Spectrum::of(&samples, 24000.0).noise_density(1000.0);
        let error = 10.0 * (density / (0.01 / 12000.0)).log10();
        assert!(error.abs() < 0.7, "{error} dB");
    }
}
