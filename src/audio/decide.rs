//! What may be concluded from a measurement; the conductor and the judge use the same rules.

use crate::time::Measured;

/// Type B standard uncertainty of a level step heard by a microphone, dB: linearity, room and
/// thermal settling of the loudspeaker (facts/acoustics.md 7.1; an estimate until a rig states it).
pub const MICROPHONE_STEP_SIGMA_DB: f64 = 0.07;

/// The same for an electrical tap (estimated; the tap steps of the recorded sessions are within
/// 0.02 dB of their laws). The rounding of samples is counted level by level.
pub const TAP_STEP_SIGMA_DB: f64 = 0.01;

/// An absent tone counts only when the expected one would stand this far above the floor, SNR13
/// (acoustics.md 3.5: what a normal judgement needs).
pub const ABSENCE_SNR13_DB: f64 = 15.0;

/// ... and this far above the highest level at which a tone could still hide (estimated).
pub const ABSENCE_CEILING_DB: f64 = 10.0;

/// By how many dB a level may be wrong when another sound of its frequency is `contrast_db` weaker:
/// `20 log10(1 + 10^(-contrast / 20))`, both in phase.
pub fn coherent_error_db(contrast_db: f64) -> f64 {
    20.0 * (1.0 + 10f64.powf(-contrast_db / 20.0)).log10()
}

/// The answer to "is the value inside the limits?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Inside by more than the uncertainty.
    Inside,
    /// Outside by more than the uncertainty.
    Outside,
    /// Within the uncertainty of a limit.
    GuardBand,
    /// The uncertainty is larger than a third of the tolerance: not measurable here.
    TooUncertain,
}

/// Whether an expanded uncertainty (k = 2) is small enough for a tolerance, both in dB.
pub fn is_certain(plus_minus: f64, tolerance: f64) -> bool {
    plus_minus <= tolerance / 3.0
}

/// Guarded acceptance (ILAC-G8:09/2019, guard band = U at k = 2) with the uncertainty gate
/// 2 sigma <= tolerance / 3 before it. All in dB.
pub fn within(measured: Measured, expected: f64, tolerance: f64) -> Decision {
    let error = (measured.value - expected).abs();
    match measured.plus_minus {
        u if !is_certain(u, tolerance) => Decision::TooUncertain,
        u if error <= tolerance - u => Decision::Inside,
        u if error > tolerance + u => Decision::Outside,
        _ => Decision::GuardBand,
    }
}

/// Whether a missing tone is missing for sure: the smallest expected level stands at least
/// [`ABSENCE_SNR13_DB`] above the floor, and what could hide there is at least
/// [`ABSENCE_CEILING_DB`] below it.
pub fn is_surely_absent(expected_dbfs: f64, floor_dbfs: f64, ceiling_dbfs: f64) -> bool {
    expected_dbfs - floor_dbfs >= ABSENCE_SNR13_DB
        && expected_dbfs - ceiling_dbfs >= ABSENCE_CEILING_DB
}

/// The mean of repeated values and its expanded uncertainty (k = 2). Each value brings its own
/// standard uncertainty; the scatter of the values counts instead when it is four times what
/// those explain (two values scatter too much by chance for less to mean anything); `sigma_b` is
/// common to all and does not shrink.
pub fn combine(values: &[(f64, f64)], sigma_b: f64) -> Option<Measured> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let value = values.iter().map(|(v, _)| v).sum::<f64>() / n;
    let stated = values.iter().map(|(_, s)| s * s).sum::<f64>().sqrt() / n;
    let scatter = match values.len() {
        1 => 0.0,
        _ => {
            let squares: f64 = values.iter().map(|(v, _)| (v - value).powi(2)).sum();
            (squares / (n - 1.0) / n).sqrt()
        }
    };
    let explained = scatter <= 4.0 * stated;
    let sigma = if explained { stated } else { scatter }.hypot(sigma_b);
    Some(Measured { value, plus_minus: 2.0 * sigma })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_guarded_on_both_sides() {
        let check = |value, plus_minus, expected| {
            assert_eq!(within(Measured { value, plus_minus }, 7.0, 1.5), expected, "{value}");
        };
        check(7.0, 0.5, Decision::Inside);
        check(8.0, 0.5, Decision::Inside);
        check(8.1, 0.5, Decision::GuardBand);
        check(8.9, 0.5, Decision::GuardBand);
        check(9.1, 0.5, Decision::Outside);
        check(0.0, 0.1, Decision::Outside);
        check(7.0, 0.51, Decision::TooUncertain);
        check(0.0, f64::NAN, Decision::TooUncertain);
    }

    /// Closed form: two equal sines in phase are 6 dB more than one.
    #[test]
    fn what_adds_in_phase_adds_at_most_this() {
        assert!((coherent_error_db(0.0) - 6.0206).abs() < 1e-4);
        assert!((coherent_error_db(20.0) - 0.8279).abs() < 1e-4);
        assert_eq!(coherent_error_db(f64::INFINITY), 0.0);
    }

    #[test]
    fn absence_needs_a_quiet_floor() {
        assert!(is_surely_absent(-28.0, -48.0, -60.0));
        assert!(is_surely_absent(-28.0, f64::NEG_INFINITY, f64::NEG_INFINITY));
        assert!(!is_surely_absent(-28.0, -42.9, -60.0));
        assert!(!is_surely_absent(-28.0, -48.0, -37.0));
        assert!(!is_surely_absent(f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY));
    }

    #[test]
    fn repeats_shrink_noise_but_not_what_is_common() {
        let one = combine(&[(7.0, 0.3)], 0.0).unwrap();
        let four = combine(&[(7.0, 0.3); 4], 0.0).unwrap();
        assert!((one.plus_minus - 2.0 * four.plus_minus).abs() < 1e-12);
        assert!((combine(&[(7.0, 0.0); 4], 0.1).unwrap().plus_minus - 0.2).abs() < 1e-12);
        assert!(combine(&[(6.0, 0.01), (8.0, 0.01)], 0.0).unwrap().plus_minus > 1.9);
        assert_eq!(combine(&[], 0.1), None);
    }
}
