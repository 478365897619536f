//! Numbers with units, as people write them: `"250ms"`, `"5s"`, `"1.5dB"`, `"-12dB"`.

use std::time::Duration;

fn split(text: &str) -> Result<(f64, &str), String> {
    let unit = text.trim_start_matches(|c: char| "+-.0123456789".contains(c));
    let number = &text[..text.len() - unit.len()];
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((value, unit.trim_start())),
        _ => Err(format!("`{text}` does not begin with a number")),
    }
}

/// A duration in `ms`, `s` or `min`.
///
/// # Errors
/// When the number or the unit is missing, unknown or negative.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (value, unit) = split(text)?;
    let seconds = match unit {
        "ms" => value / 1e3,
        "s" => value,
        "min" => value * 60.0,
        _ => return Err(format!("`{text}` needs a unit: ms, s or min (\"5s\")")),
    };
    match seconds {
        s if (0.0..=86_400.0).contains(&s) => Ok(Duration::from_secs_f64(s)),
        _ => Err(format!("`{text}` is not between 0 and a day")),
    }
}

/// A level difference in `dB`.
///
/// # Errors
/// When the number or the unit is missing.
pub fn decibels(text: &str) -> Result<f64, String> {
    match split(text)? {
        (value, "dB") => Ok(value),
        _ => Err(format!("`{text}` needs the unit dB (\"1.5dB\")")),
    }
}

/// A level in `dBFS` (AES17).
///
/// # Errors
/// When the number or the unit is missing.
pub fn dbfs(text: &str) -> Result<f64, String> {
    match split(text)? {
        (value, "dBFS") => Ok(value),
        _ => Err(format!("`{text}` needs the unit dBFS (\"-12dBFS\")")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_needs_its_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5 s"), Ok(Duration::from_millis(1500)));
        assert_eq!(decibels("-12dB"), Ok(-12.0));
        for bad in ["5", "s", "-1s", "5 hours", "", "1e99s", "nans"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        for bad in ["1.5", "dB", "1.5db", "1..5dB", "1dBFS"] {
            assert!(decibels(bad).is_err(), "{bad}");
        }
    }
}
