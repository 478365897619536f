//! What a stimulus is, read from its own samples.

use super::level::power;
use super::spectrum::Spectrum;
use super::tone::Tone;

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
