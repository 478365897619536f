//! What the session plays: the same packets for each play of a kind, whatever the volume.

use crate::audio::opus;
use crate::audio::stimulus::{coded, tone};
use std::sync::Arc;

/// Silence before a tone, seconds: a board may swallow it while it opens its codec.
const LEAD_IN: f64 = 0.5;

/// Silence after a tone, seconds, so that the last packet is no half of one.
const TAIL: f64 = 0.12;

/// Tones of one session, made once.
#[derive(Debug)]
pub(super) struct Stimuli {
    seed: u64,
    made: Vec<Made>,
    beacons: u64,
}

/// A tone that was made before.
#[derive(Debug)]
struct Made {
    dbfs: f64,
    seconds: f64,
    packets: Arc<[Vec<u8>]>,
}

impl Stimuli {
    pub fn new(seed: u64) -> Stimuli {
        Stimuli { seed, made: Vec::new(), beacons: 0 }
    }

    /// The packets of a tone at `dbfs` for `seconds`.
    pub fn packets(&mut self, dbfs: f64, seconds: f64) -> Arc<[Vec<u8>]> {
        let known = self.made.iter().find(|m| (m.dbfs, m.seconds) == (dbfs, seconds));
        if let Some(Made { packets, .. }) = known {
            return packets.clone();
        }
        let mut samples = tone(coded(self.seed, 0), dbfs, seconds, LEAD_IN);
        let frame = opus::RATE as usize * 60 / 1000;
        let count = samples.len() + (TAIL * f64::from(opus::RATE)) as usize;
        samples.resize(count.div_ceil(frame) * frame, 0.0);
        let packets: Arc<[Vec<u8>]> = opus::encode(&samples).into();
        self.made.push(Made { dbfs, seconds, packets: packets.clone() });
        packets
    }

    /// The frequency of the next beacon, hertz: an octave above the tones' range, never twice the
    /// same, so that a board can't be taken for the bench.
    pub fn beacon(&mut self) -> f64 {
        self.beacons += 1;
        2.0 * coded(self.seed, self.beacons)
    }
}
