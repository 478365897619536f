//! Whether the ear hears: the bench's own beacons, and noise of its own that stays as it is.

use super::fact::{Beacon, Fact};
use super::sound::{HIGHEST, Hearing, MAX_DETUNING};
use super::story::Story;
use crate::audio::level::{decibels, mean_square};
use crate::audio::tone::{self, Hiss, Tone};
use crate::journal::{Clip, Evidence, JournalError};
use crate::time::{Moment, Window};
use std::time::Duration;

/// A beacon may be this far from the level that it should have at the ear, dB (estimated: what
/// moving things on a desk does).
const BEACON_TOLERANCE_DB: f64 = 6.0;

/// A microphone never gives exact zeros for this long; a mute or a lost buffer does (acoustics.md
/// 8; the length is estimated: a period of an ordinary driver).
const MUTED_SECONDS: f64 = 0.010;

/// What noise floors may differ by, in standard deviations of their estimates: chance does more
/// once in 2 million floors.
const FLOOR_SIGMAS: f64 = 5.0;

/// Hiss this far below a tone may come with it: codec and loudspeaker (the codec of the recorded
/// sessions makes -84 to -64 dB of it, rounding included; the loudspeaker's part is estimated).
const OWN_HISS_DB: f64 = -50.0;

/// What the ear made of the bench's own beacon.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The beacon.
    pub beacon: Beacon,
    /// Record of the beacon.
    pub record: u64,
    /// What was measured at its place, or why nothing was.
    pub tone: Result<Tone, &'static str>,
    /// When the ear began to deliver exact zeros for as long as only a mute does.
    pub zeros: Option<Moment>,
}

impl Check {
    /// The noise would not let anybody hear the beacon, so nothing follows from not hearing it.
    pub fn is_drowned(&self) -> bool {
        let should_be = |tone: Tone| Tone { power: mean_square(self.beacon.level_dbfs), ..tone };
        self.tone.is_ok_and(|tone| should_be(tone).sigmas() < 2.0 * tone::PRESENT_SIGMAS)
    }

    /// The beacon was there, at its frequency and within 6 dB of its level.
    pub fn is_heard(&self) -> bool {
        self.tone.is_ok_and(|tone| {
            tone.is_present()
                && (tone.hz / self.beacon.hz - 1.0).abs() <= MAX_DETUNING
                && (tone.dbfs() - self.beacon.level_dbfs).abs() <= BEACON_TOLERANCE_DB
        })
    }
}

/// Listens for every beacon of the session.
///
/// # Errors
/// When samples can't be read.
pub fn check_ear(evidence: &dyn Evidence, story: &Story) -> Result<Vec<Check>, JournalError> {
    let check = |(fact, beacon): (&Fact, Beacon)| {
        let span = (beacon.until - beacon.from).as_secs_f64();
        let edge = Duration::from_secs_f64(0.1 * span);
        let window = Window { from: beacon.from + edge, until: beacon.until.before(edge) };
        let clip = evidence.samples(window)?;
        let rate = f64::from(clip.rate);
        let tone = match () {
            () if !clip.whole || clip.samples.is_empty() => Err("samples are missing"),
            () if beacon.hz >= HIGHEST * rate => Err("the ear's sample rate is too low"),
            () => Ok(Tone::measure(&clip.samples, rate, beacon.hz, MAX_DETUNING)),
        };
        Ok(Check { beacon, record: fact.record, tone, zeros: exact_zeros(&clip) })
    };
    story.beacons().map(check).collect()
}

/// When the first run of exact zeros begins that no microphone makes; none in an empty clip.
pub(super) fn exact_zeros(clip: &Clip) -> Option<Moment> {
    let long = ((MUTED_SECONDS * f64::from(clip.rate)).ceil() as usize).max(2);
    let mut run = 0;
    let end = clip.samples.iter().position(|x| {
        run = if *x == 0.0 { run + 1 } else { 0 };
        run == long
    })?;
    let begins = (end + 1 - long) as f64 / f64::from(clip.rate);
    Some(clip.start + Duration::from_secs_f64(begins))
}

/// What happened to the ear between the plays, if its own noise was not the same all the time: a
/// gain that follows what is heard (AGC) moves the noise with it, and a mute takes it away. The
/// noise is that of a band above all stimuli. Inside a tone it may be more by what the board
/// itself adds to the tone.
pub fn unrest(hearings: &[Hearing], checks: &[Check]) -> Option<String> {
    let mut floors: Vec<(String, Hiss, f64)> = Vec::new();
    for hearing in hearings {
        let power = hearing.tone().map_or(0.0, |tone| tone.power);
        let places = ["before", "during", "after"].into_iter().zip(hearing.hiss);
        floors.extend(places.map(|(when, hiss)| (format!("{when} {}", hearing.path), hiss, power)));
    }
    for check in checks {
        let Ok(tone) = check.tone else { continue };
        floors.push((format!("at the beacon, {}", check.beacon.from), tone.hiss, tone.power));
    }
    floors.retain(|(_, hiss, _)| hiss.sigma_db <= 1.0);
    let mut levels: Vec<f64> = floors.iter().map(|(_, hiss, _)| hiss.density).collect();
    let middle = levels.len().checked_sub(1)? / 2;
    let usual = *levels.select_nth_unstable_by(middle, f64::total_cmp).1;
    let worst = floors.iter().filter_map(|(place, hiss, power)| {
        let moved = decibels(hiss.density / usual);
        let own = hiss.density * hiss.band_hz <= power * 10f64.powf(OWN_HISS_DB / 10.0);
        let limit = FLOOR_SIGMAS * hiss.sigma_db.hypot(0.1);
        (moved.abs() > limit && !own).then_some((place, moved))
    });
    let (place, moved) = worst.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    let (by, how) = (moved.abs(), if moved < 0.0 { "lower" } else { "higher" });
    Some(format!(
        "the ear's own noise was {by:.1} dB {how} {place} than on the whole: \
         its gain moves (AGC), somebody mutes it, or the room is not quiet"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mute_is_a_run_of_zeros_and_an_empty_clip_is_none() {
        let zeros = |samples: Vec<f64>| {
            exact_zeros(&Clip { rate: 1000, start: Moment::START, samples, whole: true })
        };
        assert_eq!(zeros(Vec::new()), None);
        assert_eq!(zeros([vec![1.0; 5], vec![0.0; 9], vec![1.0]].concat()), None);
        let muted = zeros([vec![1.0; 5], vec![0.0; 10]].concat());
        assert_eq!(muted, Some(Moment::from_secs_f64(0.005)));
    }
}
