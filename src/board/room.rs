//! The room between the board's loudspeaker, the bench's own loudspeaker and the bench's
//! microphone.

use super::Fault;
use crate::time::Moment;
use std::time::Duration;

/// How a room sounds and what its microphone is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acoustics {
    /// Where the noise comes from.
    pub seed: u64,
    /// Level of the noise in the third octave around 1 kHz, dBFS (AES17).
    pub noise_dbfs: f64,
    /// From a loudspeaker to the microphone.
    pub delay: Duration,
    /// How much faster than 24 kHz the microphone's clock runs, millionths.
    pub drift_ppm: f64,
    /// From the loudspeaker's full scale to the microphone's, dB.
    pub gain_db: f64,
    /// Level of the beacon at the microphone, dBFS (AES17).
    pub beacon_dbfs: f64,
    /// A fault of microphone or room.
    pub fault: Option<Fault>,
}

/// The room; all times are those of the session.
#[derive(Debug)]
pub struct Room {
    _draw: Acoustics,
}

impl Room {
    /// A silent room, its microphone running since the session's start.
    pub fn new(draw: Acoustics) -> Room {
        Room { _draw: draw }
    }

    /// The board's loudspeaker plays: 24 kHz, the first sample at `at`.
    pub fn speaker(&mut self, _at: Moment, _samples: &[f32]) {}

    /// The bench's loudspeaker plays a tone of 1 s with raised-cosine ramps.
    pub fn beacon(&mut self, _at: Moment, _hz: f64) {}

    /// The microphone's samples from where it stopped last up to `until`, full scale 1.0. All
    /// sound up to `until` must have been told before.
    pub fn microphone(&mut self, _until: Moment) -> Vec<f32> {
        Vec::new()
    }
}
