//! Time and measured numbers. No clock lives here: every instant is handed in from outside.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// An instant on the host's monotonic clock, in nanoseconds since the session began.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment(u64);

impl Moment {
    /// The session's first instant.
    pub const START: Moment = Moment(0);
    /// Later than every instant of a session.
    pub const NEVER: Moment = Moment(u64::MAX);

    /// From nanoseconds since the session began.
    pub const fn from_nanos(nanos: u64) -> Self {
        Moment(nanos)
    }

    /// From seconds since the session began, rounded to the nanosecond; negative becomes 0.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Moment((seconds * 1e9).round() as u64)
    }

    /// Nanoseconds since the session began.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the session began.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The instant `span` earlier, not before the session's start.
    pub fn before(self, span: Duration) -> Self {
        Moment(self.0.saturating_sub(nanos(span)))
    }

    /// Seconds from `earlier` to `self`; negative when `self` comes first.
    pub fn seconds_since(self, earlier: Moment) -> f64 {
        (self.0 as f64 - earlier.0 as f64) / 1e9
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;
    fn add(self, span: Duration) -> Moment {
        Moment(self.0.saturating_add(nanos(span)))
    }
}

impl Sub for Moment {
    type Output = Duration;
    /// The span from `earlier` to `self`, zero when `earlier` is later.
    fn sub(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", self.as_secs_f64())
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// A half-open stretch of the session, `from` included, `until` not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// First instant inside.
    pub from: Moment,
    /// First instant after.
    pub until: Moment,
}

impl Window {
    /// The window between two instants given in seconds since the session began.
    pub fn from_secs(from: f64, until: f64) -> Self {
        Window { from: Moment::from_secs_f64(from), until: Moment::from_secs_f64(until) }
    }

    /// Whether `at` lies inside.
    pub fn contains(&self, at: Moment) -> bool {
        self.from <= at && at < self.until
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        (self.until - self.from).as_secs_f64()
    }
}

/// The position of a sample in a microphone segment; counts frames, not bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SampleIndex(pub u64);

/// Milliseconds of the device's own log clock, counted within one boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceMillis(pub u64);

/// A number with its expanded uncertainty (coverage factor k = 2) in the same unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Best estimate.
    pub value: f64,
    /// Half-width of the 95 % interval, never negative.
    pub plus_minus: f64,
}

impl fmt::Display for Measured {
    /// `+7.04 dB +-0.10` without the unit: sign always, two decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What rounds to nothing has no sign of its own: -0.0 + 0.0 is +0.0.
        let value = (self.value * 100.0).round() / 100.0 + 0.0;
        write!(f, "{value:+.2} +-{:.2}", self.plus_minus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_not_negative() {
        let written = |value| Measured { value, plus_minus: 0.1 }.to_string();
        assert_eq!(written(-1e-9), "+0.00 +-0.10");
        assert_eq!(written(-0.016), "-0.02 +-0.10");
    }

    #[test]
    fn a_moment_survives_seconds_and_never_goes_below_the_start() {
        assert_eq!(Moment::from_secs_f64(14.648).nanos(), 14_648_000_000);
        assert_eq!(Moment::from_secs_f64(-1.0), Moment::START);
        assert_eq!(Moment::from_secs_f64(1.0).before(Duration::from_secs(2)), Moment::START);
        assert_eq!(Moment::NEVER + Duration::from_secs(1), Moment::NEVER);
    }
}
