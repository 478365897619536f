//! A session that another program recorded (`events.jsonl`, `speaker.wav`, `meta.json`) becomes
//! a recording of ours. Nothing is written, the folder's name means nothing, and the same files
//! with the same options always give the same recording.

mod error;
mod events;
mod meta;
mod translate;
mod wire;

pub use error::{ImportError, Place};

use self::events::Events;
use self::meta::Meta;
use self::translate::{StepNames, Timeline, Translated, Translator};
use super::room::{LEAD, Room, TAIL};
use crate::audio::law::Law;
use crate::journal::{
    Edge, Entry, FORMAT, Head, MemoryRecording, NamedText, Observation, Origin, Record, Seal,
    Seals, Segment, WavReader, run_id,
};
use crate::time::{Moment, SampleIndex};
use std::path::Path;
use std::time::Duration;

/// The most samples that an ear may deliver: an hour at 48 kHz. They are held in memory.
const MAX_SAMPLES: u64 = 48_000 * 3600;

/// What the caller decides about an import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The scenario; `None` takes the shipped one for the session's kind.
    pub scenario: Option<NamedText>,
    /// The gain law; `None` takes the one of the codec named in `meta.json`, if it is known.
    pub law: Option<Law>,
    /// Acoustics between loudspeaker and ear; `None` is an electrical tap.
    pub room: Option<Room>,
}

/// The texts that ship with the program.
pub struct Shipped<'a> {
    /// The scenario for a session's kind, `volume` or `reboot`; `None` for an unknown kind.
    pub scenario_for: &'a dyn Fn(&str) -> Option<NamedText>,
    /// The board profile.
    pub profile: NamedText,
}

/// What the ear delivered and when its first sample was captured.
struct Ear {
    segment: Segment,
    starts: Moment,
}

impl Ear {
    /// When its last sample ends.
    fn ends(&self) -> Moment {
        let seconds = self.segment.samples.len() as f64 / f64::from(self.segment.rate);
        self.starts + Duration::from_secs_f64(seconds)
    }
}

/// Reads the session in `folder` and yields the recording; nothing is written.
///
/// # Errors
/// When a file is missing or damaged, when the files contradict each other, or when no scenario
/// is known for the session. A device that misbehaves is no error.
pub fn import(
    folder: &Path,
    options: &Options,
    shipped: &Shipped,
) -> Result<MemoryRecording, ImportError> {
    if !folder.is_dir() {
        return Err(ImportError::Missing { path: folder.into() });
    }
    let meta_path = folder.join("meta.json");
    let meta = Meta::read(&meta_path)?;
    let scenario = scenario(&meta_path, &meta, options, shipped)?;
    let law = options.law.map_or_else(|| meta.law(), |law| Ok(Some(law)))?;
    let rig = rig_text(law, options.room.as_ref());
    let wav_path = folder.join("speaker.wav");
    let speaker = read_speaker(&wav_path, &meta)?;

    let events_path = folder.join("events.jsonl");
    let shift = options.room.as_ref().map_or(Duration::ZERO, |_| LEAD);
    let mut names = StepNames::default();
    // The room's first beacon sounds before the session begins, so its name comes first.
    let beacon = options.room.as_ref().map(|_| names.next("beacon"));
    let mut translator = Translator::new(&events_path, &meta.mac, names);
    let mut events = Events::open(&events_path, shift)?;
    let mut is_empty = true;
    for event in &mut events {
        translator.take(event?)?;
        is_empty = false;
    }
    if is_empty {
        return Err(ImportError::Empty { path: events_path });
    }
    let mut told = translator.finish();
    check_key(&meta_path, &events_path, &meta, &told)?;

    let wav = Seal::of_file(&wav_path).map_err(ImportError::reading(&wav_path))?;
    let starts = meta.starts.nanos().to_string();
    let (events_sha, wav_sha) = (events.seal().sha256.clone(), wav.sha256.clone());
    let tap = Ear { segment: speaker, starts: meta.starts + shift };
    let ear = match &options.room {
        Some(room) => {
            let lasts = told.latest.max(tap.ends()) + TAIL;
            let samples = lasts.as_secs_f64() * f64::from(tap.segment.rate);
            not_too_long(&events_path, samples as u64)?;
            in_room(room, tap, &mut told, beacon)
        }
        None => tap,
    };
    note_sound(&ear, &mut told.timeline);
    let head = Head {
        format: FORMAT,
        tool: concat!("earwitness ", env!("CARGO_PKG_VERSION")).into(),
        run_id: run_id(&[
            &events_sha,
            &wav_sha,
            &starts,
            &scenario.text,
            &rig.text,
            &shipped.profile.text,
        ]),
        origin: Origin::Imported,
        started_at_ms: 0,
        device: None,
        seed: options.room.as_ref().map_or(0, |room| room.seed),
        scenario,
        rig,
        profile: shipped.profile.clone(),
    };
    Ok(MemoryRecording::new(head, in_order(told.timeline), vec![ear.segment]))
}

fn scenario(
    path: &Path,
    meta: &Meta,
    options: &Options,
    shipped: &Shipped,
) -> Result<NamedText, ImportError> {
    if let Some(scenario) = &options.scenario {
        return Ok(scenario.clone());
    }
    let shipped = meta.kind.as_deref().and_then(shipped.scenario_for);
    shipped.ok_or_else(|| ImportError::NoScenario {
        path: path.into(),
        what: match &meta.kind {
            Some(kind) => format!("no shipped scenario fits the kind `{kind}`"),
            None => "the field `kind` is missing".into(),
        },
    })
}

/// The rig that such a session amounts to.
fn rig_text(law: Option<Law>, room: Option<&Room>) -> NamedText {
    let mut text = String::from("version = 1\nname = \"imported\"\n");
    if let Some(room) = room {
        text.push_str(&format!("# room: {room}\n"));
    }
    let ear = if room.is_some() { "microphone" } else { "tap" };
    text.push_str(&format!("ear = \"{ear}\"\n"));
    if let Some(law) = law {
        text.push_str(&format!("law = \"{law}\"\n"));
    }
    text.push_str("path_gain = \"0dB\"\nprofile = \"xiaozhi\"\n");
    NamedText::new("imported.toml", text)
}

/// The loudspeaker's signal, held against what `meta.json` says about it.
fn read_speaker(path: &Path, meta: &Meta) -> Result<Segment, ImportError> {
    if !path.exists() {
        return Err(ImportError::Missing { path: path.into() });
    }
    let wav = WavReader::open(path)?;
    let path = path.to_path_buf();
    if wav.rate != meta.rate {
        return Err(ImportError::WrongRate { path, wav: wav.rate, meta: meta.rate });
    }
    if wav.frames < wav.claimed_frames {
        let (there, claimed) = (wav.frames, wav.claimed_frames);
        return Err(ImportError::ShortWav { path, there, claimed });
    }
    not_too_long(&path, wav.frames)?;
    if wav.frames != meta.samples {
        return Err(ImportError::WrongLength { path, wav: wav.frames, meta: meta.samples });
    }
    Ok(wav.segment()?)
}

fn not_too_long(path: &Path, samples: u64) -> Result<(), ImportError> {
    match samples > MAX_SAMPLES {
        true => Err(ImportError::TooLong { path: path.into(), samples, most: MAX_SAMPLES }),
        false => Ok(()),
    }
}

/// Datagrams need a key, and a key must be the one that the device was given.
fn check_key(
    meta_path: &Path,
    events_path: &Path,
    meta: &Meta,
    told: &Translated,
) -> Result<(), ImportError> {
    let Some(ours) = &meta.udp_key else {
        let place = Place::file(meta_path);
        return match told.datagrams {
            true => Err(ImportError::MissingField { place, field: "udp.key_hex" }),
            false => Ok(()),
        };
    };
    match told.hellos.last() {
        Some((line, _)) if !told.hellos.iter().any(|(_, key)| key.eq_ignore_ascii_case(ours)) => {
            let hello = Place::line(events_path, *line);
            Err(ImportError::WrongKey { path: meta_path.into(), hello })
        }
        _ => Ok(()),
    }
}

/// What the ear hears in the room; the beacons join the timeline.
fn in_room(room: &Room, tap: Ear, told: &mut Translated, beacon: Option<String>) -> Ear {
    let heard = room.hear(&tap.segment, tap.starts, &told.sent, told.latest);
    let mut name = beacon;
    for beacon in heard.beacons {
        let path = name.take().unwrap_or_else(|| told.names.next("beacon"));
        let edge = |edge| Entry::Step { path: path.clone(), edge };
        let (captured_at, until) = (beacon.window.from, beacon.window.until);
        let what = Observation::Beacon { hz: beacon.hz, level_dbfs: beacon.level_dbfs, until };
        told.timeline.push((captured_at, edge(Edge::Start)));
        told.timeline.push((captured_at, Entry::Saw { captured_at, what }));
        told.timeline.push((until, edge(Edge::End)));
    }
    Ear { segment: heard.segment, starts: heard.starts }
}

/// A record for each second of sound.
fn note_sound(ear: &Ear, timeline: &mut Timeline) {
    let (rate, total) = (u64::from(ear.segment.rate), ear.segment.samples.len() as u64);
    for first in (0..total).step_by(ear.segment.rate as usize) {
        let captured_at = ear.starts + Duration::from_nanos(first * 1_000_000_000 / rate);
        let (first, count) = (SampleIndex(first), rate.min(total - first));
        let what = Observation::Sound { segment: 1, first, count };
        timeline.push((captured_at, Entry::Saw { captured_at, what }));
    }
}

/// Sorts by time, numbers, and closes the session.
fn in_order(mut timeline: Timeline) -> Vec<Record> {
    timeline.sort_by_key(|(at, _)| *at);
    let last = timeline.last().map_or(Moment::START, |(at, _)| *at);
    timeline.push((last, Entry::End { records: timeline.len() as u64, files: Seals::new() }));
    let numbered = (0..).zip(timeline);
    numbered.map(|(n, (at, entry))| Record { n, at, entry }).collect()
}
