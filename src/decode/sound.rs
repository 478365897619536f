//! What the ear heard while the board was made to play.
//!
//! The reference is what was really sent: the packets of the step, decoded. Its tone is looked for
//! where it can be (up to `MAX_DELAY` after the packets), measured inside its edges, and held
//! against what was at its frequency just before and after.

use super::ear;
use super::fact::What;
use super::story::{Step, Story};
use crate::audio::decide;
use crate::audio::level::decibels;
use crate::audio::opus;
use crate::audio::spectrum::Spectrum;
use crate::audio::steady::{self, Jolt};
use crate::audio::stimulus::Stimulus;
use crate::audio::tone::{self, Hiss, Tone};
use crate::journal::{Clip, Evidence, JournalError, Party};
use crate::time::{Moment, Window};
use std::time::Duration;

/// Longest way of a sound from our socket to the ear's samples: 10 packets ahead, the board's
/// queues, I2S and capture buffers (facts/acoustics.md 3.3, with room to spare; estimated).
const MAX_DELAY: f64 = 1.2;

/// How much too early a sound may seem, seconds: clocks of recordings that were set to each other
/// by hand (estimated).
const MAX_EARLINESS: f64 = 0.3;

/// How far a tone may be from its nominal frequency and still be ours: sample clocks of codecs
/// and microphones are within 0.1 %, wrong sample rates are 8 % and more off (acoustics.md 3.3).
pub(super) const MAX_DETUNING: f64 = 0.005;

/// A sound that was heard around the play and is less than this much weaker than the tone is
/// another source; a weaker one makes the level uncertain (estimated: from here on the uncertainty
/// it adds is below 2.4 dB).
const MIN_CONTRAST_DB: f64 = 10.0;

/// What stands this far out of the noise beside the tone is another source. Noise alone is taken
/// for one with probability `exp(-z^2 / 2)`, 4e-6, in each of a few places per tone.
const BESIDE_SIGMAS: f64 = 5.0;

/// A wrong tone stands this many dB over the noise, SNR13 (acoustics.md 3.5).
const ANOTHER_SNR13_DB: f64 = 15.0;

/// The highest frequency that an ear can measure, as a fraction of its sample rate (estimated:
/// the anti-alias filters of common converters are flat up to here).
pub(super) const HIGHEST: f64 = 0.45;

/// How long before and after the tone the ear listens for others, seconds (estimated: the hiss of
/// this much is known to 0.3 dB, and plays may follow each other soon).
const BESIDE_SECONDS: f64 = 0.25;

/// How long before the tone that must end, seconds: the ramp of a codec and a start that is found
/// to 5 ms (estimated).
const BEFORE_ONSET: f64 = 0.05;

/// What is left out at either end of a tone, a fraction of its length, and seconds at least and at
/// most: the codec's ramps, and 0.1 dB of settling in a room of 0.25 s T60 (acoustics.md 7.5).
const EDGE: f64 = 0.1;
const EDGE_SECONDS: [f64; 2] = [0.03, 0.15];

/// How long after the tone the room may still sound of it, seconds: 60 dB at a T60 of 0.4 s, a
/// furnished room (acoustics.md 7.5).
const ROOM_DECAYS: f64 = 0.4;

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
    /// When the ear began to deliver exact zeros for as long as only a mute does.
    pub zeros: Option<Moment>,
    /// Mean-square of what else was at the tone's frequency, before or after it.
    pub beside: f64,
    /// Mean-square of the rounding of the samples, 0 for more than 16 bits.
    pub rounding: f64,
    /// The ear's own noise before, inside and after the tone.
    pub hiss: [Hiss; 3],
    /// What was there.
    pub heard: Heard,
}

impl Hearing {
    /// The stimulus, where it can be measured.
    pub fn tone(&self) -> Option<&Tone> {
        match &self.heard {
            Heard::Tone(tone) => Some(tone),
            _ => None,
        }
    }

    /// How far the tone stands above what else was at its frequency, dB; infinite when that was
    /// nothing but noise.
    pub fn contrast_db(&self) -> Option<f64> {
        self.tone().map(|tone| decibels(tone.power / self.beside))
    }

    /// By how many dB the level of `tone` may be wrong because of what else was there, when all of
    /// it adds up in phase.
    pub fn interference_db(&self, tone: &Tone) -> f64 {
        let other = self.beside.sqrt() + self.rounding.sqrt();
        decide::coherent_error_db(2.0 * decibels(tone.power.sqrt() / other))
    }
}

/// The finding of the ear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Heard {
    /// The stimulus, and nothing of its kind before and after it.
    Tone(Tone),
    /// No tone at the stimulus frequency; the measurement tells how loud one could still be.
    Nothing(Tone),
    /// The stimulus, but not at one level in one piece: where it was worst.
    Unsteady(Jolt),
    /// Not the stimulus but another tone that began with it.
    Another(Tone),
    /// The tone was there before the play began or after it ended; its contrast to that in dB.
    SecondSource(Tone, f64),
    /// The converter was at its limit: the level is not what it seems.
    Clipped,
    /// Samples are missing in the window.
    Lost,
}

/// A play step that nobody can listen to.
#[derive(Clone, Debug, PartialEq)]
pub struct Unheard {
    /// The step instance.
    pub path: String,
    /// Record of the first packet.
    pub record: u64,
    /// Why, in words that follow the path.
    pub why: String,
}

/// A level step between two plays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelStep {
    /// Its size in dB.
    pub db: f64,
    /// Its standard uncertainty from noise, dB.
    pub sigma_db: f64,
    /// How far it can be wrong by what else sounds at the tone's frequency, dB.
    pub interference_db: f64,
}

/// The level step from one play to another; `None` unless both tones were heard.
pub fn step(a: &Hearing, b: &Hearing) -> Option<LevelStep> {
    let (Heard::Tone(low), Heard::Tone(high)) = (a.heard, b.heard) else { return None };
    Some(LevelStep {
        db: high.dbfs() - low.dbfs(),
        sigma_db: low.sigma_db().hypot(high.sigma_db()),
        interference_db: a.interference_db(&low) + b.interference_db(&high),
    })
}

/// What was sent in a session, decoded once: plays of one kind share their packets.
#[derive(Debug, Default)]
pub struct References(Vec<Reference>);

#[derive(Debug)]
struct Reference {
    packets: Vec<Vec<u8>>,
    stimulus: Result<Option<Stimulus>, opus::NotOpus>,
}

impl References {
    fn of(&mut self, packets: &[&[u8]]) -> Result<Option<Stimulus>, opus::NotOpus> {
        if let Some(known) = self.0.iter().find(|r| r.packets == packets) {
            return known.stimulus;
        }
        let decoded = opus::decode(packets.iter().copied());
        let stimulus = decoded.map(|samples| Stimulus::of(&samples, f64::from(opus::RATE)));
        let packets = packets.iter().map(|packet| packet.to_vec()).collect();
        self.0.push(Reference { packets, stimulus });
        stimulus
    }
}

/// Listens to a play step; `None` when no packets were sent in it.
///
/// # Errors
/// When samples can't be read.
pub fn hear(
    evidence: &dyn Evidence,
    story: &Story,
    step: &Step,
    references: &mut References,
) -> Result<Option<Result<Hearing, Unheard>>, JournalError> {
    let sent = sent_packets(story, step);
    let Some((record, sent_at)) = sent.first().map(|p| (p.0, p.1)) else { return Ok(None) };
    let unheard = |why: String| Ok(Some(Err(Unheard { path: step.path.clone(), record, why })));
    if let Some(number) = dropped(story, step) {
        let why = format!("a packet came with the number {number} after that or a higher one");
        return unheard(format!("{why}: the board drops packets with old sequence numbers"));
    }
    let stimulus = match references.of(&sent.iter().map(|p| p.2).collect::<Vec<_>>()) {
        Ok(stimulus) => stimulus,
        Err(opus::NotOpus { index }) => {
            let what = format!("packet {} of {} could not be decoded", index + 1, sent.len());
            return unheard(format!("{what}: nobody knows what the board was made to play"));
        }
    };
    let Some(stimulus) = stimulus else {
        return unheard(format!("the {} packets sent hold no tone of 0.2 s", sent.len()));
    };
    let begins = sent_at + Duration::from_secs_f64(stimulus.begins);
    let around = Duration::from_secs_f64(ROOM_DECAYS + BESIDE_SECONDS + MAX_EARLINESS);
    let longest = Duration::from_secs_f64(stimulus.seconds + MAX_DELAY);
    let window = Window { from: begins.before(around), until: begins + longest + around };
    let clip = evidence.samples(window)?;
    if let Some(why) = too_slow(&clip, stimulus.hz) {
        return unheard(why);
    }
    let found = find(&clip, &stimulus, begins.seconds_since(clip.start));
    let (path, packets) = (step.path.clone(), sent.len());
    let Found { window, zeros, beside, rounding, hiss, heard } = found;
    let sent = sent_at;
    Ok(Some(Ok(Hearing {
        path,
        stimulus,
        packets,
        record,
        sent,
        window,
        zeros,
        beside,
        rounding,
        hiss,
        heard,
    })))
}

/// Why an ear of the clip's sample rate can't hear a frequency, if it can't.
fn too_slow(clip: &Clip, hz: f64) -> Option<String> {
    let slow = !clip.samples.is_empty() && hz >= HIGHEST * f64::from(clip.rate);
    let what = || format!("{hz:.0} Hz were sent and the ear takes {} samples a second", clip.rate);
    slow.then(|| what() + ": too few to measure it")
}

fn sent_packets<'a>(story: &'a Story, step: &Step) -> Vec<(u64, Moment, &'a [u8])> {
    let of = |what: &'a What| match what {
        What::Audio { from: Party::Bench, opus, .. } => Some(opus.as_slice()),
        _ => None,
    };
    let during = story.facts.iter().filter(|f| step.window.contains(f.at));
    during.filter_map(|f| of(&f.what).map(|opus| (f.record, f.at, opus))).collect()
}

/// The sequence number of the first packet of a step that is not above all before it since the
/// hello: the board does not take it (facts/xiaozhi.md 4.3).
fn dropped(story: &Story, step: &Step) -> Option<u32> {
    let mut last = 0;
    story.facts.iter().find_map(|fact| match &fact.what {
        What::Message { from: Party::Bench, body } if body["type"] == "hello" => {
            last = 0;
            None
        }
        What::Audio { from: Party::Bench, sequence: Some(number), .. } => {
            let old = *number <= last;
            last = last.max(*number);
            (old && step.window.contains(fact.at)).then_some(*number)
        }
        _ => None,
    })
}

/// What a clip says of a stimulus; fields as in [`Hearing`].
struct Found {
    window: Window,
    zeros: Option<Moment>,
    beside: f64,
    rounding: f64,
    hiss: [Hiss; 3],
    heard: Heard,
}

/// Looks for the stimulus, which begins `lead` seconds after the clip's start or later.
fn find(clip: &Clip, stimulus: &Stimulus, lead: f64) -> Found {
    let place = Place::of(clip, stimulus.hz, stimulus.seconds, lead);
    let [before, tone, after] = place.measure(stimulus.hz);
    let beside = stronger(before, after);
    let contrast = decibels(tone.power / beside);
    let ours = tone.is_present() && (tone.hz / stimulus.hz - 1.0).abs() <= MAX_DETUNING;
    let heard = if !is_whole(clip, lead - MAX_EARLINESS, lead + stimulus.seconds + MAX_DELAY) {
        Heard::Lost
    } else if is_clipped(place.inside) {
        Heard::Clipped
    } else if !ours {
        another(clip, stimulus, lead).map_or(Heard::Nothing(tone), Heard::Another)
    } else if contrast < MIN_CONTRAST_DB {
        Heard::SecondSource(tone, contrast)
    } else {
        let jolt = steady::jolt(place.inside, place.rate, &tone);
        jolt.map_or(Heard::Tone(tone), Heard::Unsteady)
    };
    Found {
        window: place.window,
        zeros: ear::exact_zeros(clip),
        beside,
        rounding: rounding(place.inside),
        hiss: [before.hiss, tone.hiss, after.hiss],
        heard,
    }
}

/// Mean-square of the stronger of two sounds beside a tone, 0 when both are nothing but noise.
fn stronger(before: Tone, after: Tone) -> f64 {
    let sounds = [before, after].into_iter().filter(|t| t.stands_out(BESIDE_SIGMAS));
    sounds.map(|t| t.power).fold(0.0, f64::max)
}

/// Whether a clip holds every sample between two instants, in seconds after its start.
fn is_whole(clip: &Clip, from: f64, until: f64) -> bool {
    from >= 0.0 && clip.samples.len() as f64 + 1.0 >= until * f64::from(clip.rate)
}

/// Mean-square of the rounding to 16 bits, `q^2 / 12`, where the samples are of 16 bits. How it is
/// spread over frequency depends on the signal; at worst all of it lies at the tone.
fn rounding(samples: &[f64]) -> f64 {
    let step = 1.0 / 32_768.0;
    let rounded = samples.iter().all(|x| (x / step).fract() == 0.0);
    if rounded { step * step / 12.0 } else { 0.0 }
}

/// Where in a clip a tone of some frequency most probably is.
struct Place<'a> {
    rate: f64,
    window: Window,
    /// The tone without its edges.
    inside: &'a [f64],
    /// What came just before it.
    before: &'a [f64],
    /// What came after it, when the room was silent again.
    after: &'a [f64],
}

impl<'a> Place<'a> {
    fn of(clip: &'a Clip, hz: f64, seconds: f64, lead: f64) -> Self {
        let rate = f64::from(clip.rate);
        let first = (lead - MAX_EARLINESS).max(0.0);
        let search = clip.between(first, lead + seconds + MAX_DELAY);
        let start = first + tone::locate(search, rate, hz, seconds);
        let end = start + seconds;
        let edge = (EDGE * seconds).clamp(EDGE_SECONDS[0], EDGE_SECONDS[1]);
        let at = |s: f64| clip.start + Duration::from_secs_f64(s.max(0.0));
        Place {
            rate,
            window: Window { from: at(start + edge), until: at(end - edge) },
            inside: clip.between(start + edge, end - edge),
            before: clip.between(start - BEFORE_ONSET - BESIDE_SECONDS, start - BEFORE_ONSET),
            after: clip.between(end + ROOM_DECAYS, end + ROOM_DECAYS + BESIDE_SECONDS),
        }
    }

    /// The tone at `hz` before, inside and after.
    fn measure(&self, hz: f64) -> [Tone; 3] {
        [self.before, self.inside, self.after]
            .map(|samples| Tone::measure(samples, self.rate, hz, MAX_DETUNING))
    }
}

/// Three equal samples in a row at full scale (facts/acoustics.md 3.2).
fn is_clipped(samples: &[f64]) -> bool {
    samples.windows(3).any(|w| w[0].abs() >= 0.999 && w[0] == w[1] && w[1] == w[2])
}

/// The strongest tone of another frequency, if it stands clear of the noise and began with the
/// play.
fn another(clip: &Clip, stimulus: &Stimulus, lead: f64) -> Option<Tone> {
    let rate = f64::from(clip.rate);
    let whole = clip.between(lead, lead + stimulus.seconds + MAX_DELAY);
    let hz = Spectrum::of(whole, rate).peak_hz(200.0, 0.4 * rate);
    let [_, tone, _] = Place::of(clip, hz, stimulus.seconds, lead).measure(hz);
    // A tone that is played too slowly lasts longer than ours: what went before the play tells.
    let earliest = lead - MAX_EARLINESS;
    let before = clip.between(earliest - 0.25, earliest);
    let before = Tone::measure(before, rate, hz, MAX_DETUNING);
    let contrast = decibels(tone.power / stronger(before, before));
    let clear = tone.is_present() && tone.snr13_db() >= ANOTHER_SNR13_DB;
    (clear && contrast >= MIN_CONTRAST_DB).then_some(tone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::TAU;

    const RATE: f64 = 24_000.0;
    const SAMPLES: usize = 84_000;
    const SENT: Stimulus = Stimulus { hz: 1000.0, dbfs: -12.0, begins: 0.3, seconds: 0.9 };

    /// A clip of 3.5 s in which `hz` sounds with `amplitude` from `begins` on for 0.9 s.
    fn clip(hz: f64, amplitude: f64, begins: f64) -> Clip {
        let sample = |n: usize| {
            let t = n as f64 / RATE;
            let on = t >= begins && t < begins + 0.9;
            let faint = 1e-5 * (f64::from(n as u32 % 7) - 3.0);
            faint + if on { amplitude * (TAU * hz * t).sin() } else { 0.0 }
        };
        let samples = (0..SAMPLES).map(sample).map(|x: f64| x.clamp(-1.0, 1.0)).collect();
        Clip { rate: RATE as u32, start: Moment::START, samples, whole: true }
    }

    /// Closed form: what each sound is.
    #[test]
    fn the_ear_tells_our_stimulus_from_others() {
        let heard = |clip: &Clip| find(clip, &SENT, 0.5).heard;
        let Heard::Tone(tone) = heard(&clip(1000.05, 0.1, 0.6)) else { panic!("not heard") };
        assert!((tone.dbfs() + 20.0).abs() < 0.01, "{}", tone.dbfs());
        let nothing = heard(&clip(1000.0, 0.0, 0.6));
        assert!(matches!(nothing, Heard::Nothing(_)), "{nothing:?}");
        let Heard::Another(other) = heard(&clip(1500.0, 0.1, 0.6)) else { panic!("not told") };
        assert!((other.hz - 1500.0).abs() < 1.0, "{}", other.hz);
        assert_eq!(heard(&clip(1000.0, 3.0, 0.6)), Heard::Clipped);
        let mut steady = clip(1000.0, 0.1, 0.6);
        let always = (0..SAMPLES).map(|n| 0.1 * (TAU * 1000.0 * n as f64 / RATE).sin());
        steady.samples = always.collect();
        assert!(matches!(heard(&steady), Heard::SecondSource(..)));
        let mut lost = Clip { whole: false, ..clip(1000.0, 0.1, 0.6) };
        lost.samples.truncate(60_000);
        assert_eq!(heard(&lost), Heard::Lost);
    }

    #[test]
    fn an_ear_must_be_fast_enough() {
        let ear = |rate| Clip { rate, ..clip(1000.0, 0.1, 0.6) };
        assert_eq!(too_slow(&ear(2300), 1000.0), None);
        assert!(too_slow(&ear(2200), 1000.0).is_some());
    }

    /// What is there besides the tone makes its level as uncertain as it may be wrong.
    #[test]
    fn what_else_sounds_and_rounding_count() {
        let hearing = |samples: &dyn Fn(f64) -> f64| {
            let mut clip = clip(1000.0, 0.1, 0.6);
            let times = (0..SAMPLES).map(|n| n as f64 / RATE);
            clip.samples.iter_mut().zip(times).for_each(|(x, t)| *x += samples(t));
            find(&clip, &SENT, 0.5)
        };
        let alone = hearing(&|_| 0.0);
        assert_eq!((alone.beside, alone.rounding), (0.0, 0.0));
        let contrast = |found: &Found| decibels(0.005 / found.beside);
        let always = hearing(&|t| 0.01 * (TAU * 1000.0 * t + 1.0).sin());
        assert!((contrast(&always) - 20.0).abs() < 0.1, "{}", contrast(&always));
        let later = hearing(&|t| if t > 1.7 { 0.01 * (TAU * 1001.0 * t).sin() } else { 0.0 });
        assert!((contrast(&later) - 20.0).abs() < 0.1, "{}", contrast(&later));
        let steps = clip(1000.0, 0.1, 0.6).samples.into_iter().map(|x| (x * 32_768.0).round());
        let rounded: Vec<f64> = steps.map(|x| x / 32_768.0).collect();
        assert!((rounding(&rounded) / 7.76e-11 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_tone_that_comes_too_early_is_found() {
        let found = find(&clip(1000.0, 0.1, 0.35), &SENT, 0.55);
        assert!(matches!(found.heard, Heard::Tone(_)), "{:?}", found.heard);
    }
}
