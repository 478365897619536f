//! What the ear heard while the board was made to play, and whether the ear hears at all.
//!
//! The reference is what was really sent: the packets of the step, decoded. Its tone is looked for
//! where it can be (up to `MAX_DELAY` after the packets), measured inside its edges, and held
//! against the silence just before it.

use super::fact::{Beacon, What};
use super::story::{Step, Story};
use crate::audio::level::{decibels, mean_square};
use crate::audio::opus;
use crate::audio::spectrum::Spectrum;
use crate::audio::stimulus::Stimulus;
use crate::audio::tone::{self, Tone};
use crate::journal::{Clip, Evidence, JournalError, Party};
use crate::time::{Moment, Window};
use std::time::Duration;

/// Longest way of a sound from our socket to the ear's samples: 10 packets ahead, the board's
/// queues, I2S and capture buffers (facts/acoustics.md 3.3, with room to spare).
const MAX_DELAY: f64 = 1.2;

/// How far a tone may be from its nominal frequency and still be ours: sample clocks of codecs
/// and microphones are within 0.1 %, wrong sample rates are 8 % and more off.
const MAX_DETUNING: f64 = 0.005;

/// A sound that was heard before the play began and is less than this much weaker than the tone
/// comes from somewhere else.
const MIN_CONTRAST_DB: f64 = 10.0;

/// What was heard in one play step.
#[derive(Clone, Debug, PartialEq)]
pub struct Hearing {
    /// The step instance.
    pub path: String,
    /// What was sent.
    pub stimulus: Stimulus,
    /// Number of packets sent.
    pub packets: usize,
    /// Record of the first packet.
    pub record: u64,
    /// When the first packet left.
    pub sent: Moment,
    /// Where the measurement looked.
    pub window: Window,
    /// Every sample of the ear around the tone was exactly zero.
    pub zeros: bool,
    /// What was there.
    pub heard: Heard,
}

/// The finding of the ear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Heard {
    /// The stimulus, and silence before it.
    Tone(Tone),
    /// No tone at the stimulus frequency; the measurement tells how loud one could still be.
    Nothing(Tone),
    /// Not the stimulus but another tone that began with it.
    Another(Tone),
    /// The tone was there before the play began.
    SecondSource(Tone),
    /// The converter was at its limit: the level is not what it seems.
    Clipped,
    /// Samples are missing in the window.
    Lost,
}

/// Listens to a play step; `None` when no tone was sent in it.
///
/// # Errors
/// When samples can't be read.
pub fn hear(
    evidence: &dyn Evidence,
    story: &Story,
    step: &Step,
) -> Result<Option<Hearing>, JournalError> {
    let sent = sent_packets(story, step);
    let Some((first, sent_at)) = sent.first().map(|p| (p.0, p.1)) else { return Ok(None) };
    let reference = opus::decode(sent.iter().map(|p| p.2)).unwrap_or_default();
    let Some(stimulus) = Stimulus::of(&reference, f64::from(opus::RATE)) else {
        return Ok(None);
    };
    let span = stimulus.begins + stimulus.seconds + MAX_DELAY;
    let before = Duration::from_secs_f64(0.1);
    let clip = evidence.samples(Window {
        from: sent_at.before(before),
        until: sent_at + Duration::from_secs_f64(span),
    })?;
    let lead = sent_at.seconds_since(clip.start) + stimulus.begins;
    let (window, heard) = find(&clip, &stimulus, lead);
    Ok(Some(Hearing {
        path: step.path.clone(),
        stimulus,
        packets: sent.len(),
        record: first,
        sent: sent_at,
        window,
        zeros: clip.samples.iter().all(|x| *x == 0.0),
        heard,
    }))
}

fn sent_packets<'a>(story: &'a Story, step: &Step) -> Vec<(u64, Moment, &'a [u8])> {
    let of = |what: &'a What| match what {
        What::Audio { from: Party::Bench, opus, .. } => Some(opus.as_slice()),
        _ => None,
    };
    let during = story.facts.iter().filter(|f| step.window.contains(f.at));
    during.filter_map(|f| of(&f.what).map(|opus| (f.record, f.at, opus))).collect()
}

/// Looks for the stimulus from `lead` seconds after the clip's start on.
fn find(clip: &Clip, stimulus: &Stimulus, lead: f64) -> (Window, Heard) {
    let place = Place::of(clip, stimulus.hz, stimulus.seconds, lead);
    let heard = if !clip.whole {
        Heard::Lost
    } else if is_clipped(place.inside) {
        Heard::Clipped
    } else {
        let (tone, contrast) = place.measure(stimulus.hz);
        let ours = tone.is_present() && (tone.hz / stimulus.hz - 1.0).abs() <= MAX_DETUNING;
        match ours {
            true if contrast < MIN_CONTRAST_DB => Heard::SecondSource(tone),
            true => Heard::Tone(tone),
            false => another(clip, stimulus, lead).map_or(Heard::Nothing(tone), Heard::Another),
        }
    };
    (place.window, heard)
}

/// Where in a clip a tone of some frequency most probably is.
struct Place<'a> {
    rate: f64,
    window: Window,
    /// The tone without its edges.
    inside: &'a [f64],
    /// What came just before it.
    before: &'a [f64],
}

impl<'a> Place<'a> {
    fn of(clip: &'a Clip, hz: f64, seconds: f64, lead: f64) -> Self {
        let rate = f64::from(clip.rate);
        let search = clip.between(lead, lead + seconds + MAX_DELAY);
        let start = lead + tone::locate(search, rate, hz, seconds);
        let edge = (0.1 * seconds).clamp(0.03, 0.15);
        let at = |s: f64| clip.start + Duration::from_secs_f64(s.max(0.0));
        Place {
            rate,
            window: Window { from: at(start + edge), until: at(start + seconds - edge) },
            inside: clip.between(start + edge, start + seconds - edge),
            before: clip.between(start - 0.3, start - 0.05),
        }
    }

    /// The tone, and how many dB it stands over what was at its frequency before; infinite when
    /// there was nothing but noise.
    fn measure(&self, hz: f64) -> (Tone, f64) {
        let tone = Tone::measure(self.inside, self.rate, hz, MAX_DETUNING);
        let before = Tone::measure(self.before, self.rate, hz, MAX_DETUNING);
        let contrast = decibels(tone.power / before.power);
        (tone, if before.is_present() { contrast } else { f64::INFINITY })
    }
}

/// Three equal samples in a row at full scale (facts/acoustics.md 3.2).
fn is_clipped(samples: &[f64]) -> bool {
    samples.windows(3).any(|w| w[0].abs() >= 0.999 && w[0] == w[1] && w[1] == w[2])
}

/// The strongest tone of another frequency, if it stands 15 dB over the noise and began with the
/// play.
fn another(clip: &Clip, stimulus: &Stimulus, lead: f64) -> Option<Tone> {
    let rate = f64::from(clip.rate);
    let whole = clip.between(lead, lead + stimulus.seconds + MAX_DELAY);
    let hz = Spectrum::of(whole, rate).peak_hz(200.0, 0.4 * rate);
    let (tone, contrast) = Place::of(clip, hz, stimulus.seconds, lead).measure(hz);
    let clear = tone.is_present() && tone.snr13_db() >= 15.0 && contrast >= MIN_CONTRAST_DB;
    clear.then_some(tone)
}

/// What the ear made of the bench's own beacon.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The beacon.
    pub beacon: Beacon,
    /// Record of the beacon.
    pub record: u64,
    /// What was measured at its place; `None` when samples are missing there.
    pub tone: Option<Tone>,
    /// Every sample was exactly zero.
    pub zeros: bool,
}

impl Check {
    /// The noise would not let anybody hear the beacon, so nothing follows from not hearing it.
    pub fn is_drowned(&self) -> bool {
        let should_be = |tone: Tone| Tone { power: mean_square(self.beacon.level_dbfs), ..tone };
        self.tone.is_some_and(|tone| should_be(tone).sigmas() < 2.0 * tone::PRESENT_SIGMAS)
    }

    /// The beacon was there, at its frequency and within 6 dB of its level.
    pub fn is_heard(&self) -> bool {
        self.tone.is_some_and(|tone| {
            tone.is_present()
                && (tone.hz / self.beacon.hz - 1.0).abs() <= MAX_DETUNING
                && (tone.dbfs() - self.beacon.level_dbfs).abs() <= 6.0
        })
    }
}

/// Listens for every beacon of the session.
///
/// # Errors
/// When samples can't be read.
pub fn check_ear(evidence: &dyn Evidence, story: &Story) -> Result<Vec<Check>, JournalError> {
    let check = |(fact, beacon): (&super::fact::Fact, Beacon)| {
        let span = (beacon.until - beacon.from).as_secs_f64();
        let edge = Duration::from_secs_f64(0.1 * span);
        let window = Window { from: beacon.from + edge, until: beacon.until.before(edge) };
        let clip = evidence.samples(window)?;
        let measure =
            || Tone::measure(&clip.samples, f64::from(clip.rate), beacon.hz, MAX_DETUNING);
        Ok(Check {
            beacon,
            record: fact.record,
            tone: clip.whole.then(measure),
            zeros: clip.samples.iter().all(|x| *x == 0.0),
        })
    };
    story.beacons().map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    const RATE: f64 = 24_000.0;
    const SENT: Stimulus = Stimulus { hz: 1000.0, dbfs: -12.0, begins: 0.3, seconds: 0.9 };

    /// A clip of 2.5 s in which `hz` sounds with `amplitude` from `begins` on for 0.9 s.
    fn clip(hz: f64, amplitude: f64, begins: f64) -> Clip {
        let sample = |n: usize| {
            let t = n as f64 / RATE;
            let on = t >= begins && t < begins + 0.9;
            let faint = 1e-5 * (f64::from(n as u32 % 7) - 3.0);
            faint + if on { amplitude * (TAU * hz * t).sin() } else { 0.0 }
        };
        let samples = (0..60_000).map(sample).map(|x: f64| x.clamp(-1.0, 1.0)).collect();
        Clip { rate: RATE as u32, start: Moment::START, samples, whole: true }
    }

    /// Closed form: what each sound is.
    #[test]
    fn the_ear_tells_our_stimulus_from_others() {
        let heard = |clip: &Clip| find(clip, &SENT, 0.4).1;
        let Heard::Tone(tone) = heard(&clip(1000.05, 0.1, 0.6)) else { panic!("not heard") };
        assert!((tone.dbfs() + 20.0).abs() < 0.01, "{}", tone.dbfs());
        assert!(matches!(heard(&clip(1000.0, 0.0, 0.6)), Heard::Nothing(_)));
        let Heard::Another(other) = heard(&clip(1500.0, 0.1, 0.6)) else { panic!("not told") };
        assert!((other.hz - 1500.0).abs() < 1.0, "{}", other.hz);
        assert_eq!(heard(&clip(1000.0, 3.0, 0.6)), Heard::Clipped);
        let mut steady = clip(1000.0, 0.1, 0.6);
        let always = (0..60_000).map(|n| 0.1 * (TAU * 1000.0 * n as f64 / RATE).sin());
        steady.samples = always.collect();
        assert!(matches!(heard(&steady), Heard::SecondSource(_)));
        let lost = Clip { whole: false, ..clip(1000.0, 0.1, 0.6) };
        assert_eq!(heard(&lost), Heard::Lost);
    }
}
