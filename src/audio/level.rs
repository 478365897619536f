//! Levels: mean-square to decibels and back.

/// Bandwidth of a one-third octave (base 10, IEC 61260-1) as a fraction of its centre,
/// 10^(1/20) - 10^(-1/20).
pub const THIRD_OCTAVE: f64 = 0.230_767_5;

/// Level of a mean-square value in dBFS (AES17: a full-scale sine is 0 dBFS).
pub fn dbfs(mean_square: f64) -> f64 {
    decibels(2.0 * mean_square)
}

/// Mean-square value of a level in dBFS (AES17).
pub fn mean_square(dbfs: f64) -> f64 {
    ratio(dbfs) / 2.0
}

/// `10 log10(ratio)`; zero and less give minus infinity.
pub fn decibels(power_ratio: f64) -> f64 {
    if power_ratio > 0.0 { 10.0 * power_ratio.log10() } else { f64::NEG_INFINITY }
}

/// Power ratio of a level difference in dB.
pub fn ratio(decibels: f64) -> f64 {
    10f64.powf(decibels / 10.0)
}

/// Mean of the squares; 0 for no samples.
pub fn power(samples: &[f64]) -> f64 {
    samples.iter().map(|x| x * x).sum::<f64>() / samples.len().max(1) as f64
}
