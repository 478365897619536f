//! A recording in memory: what an import or a simulation yields before (or instead of) the disk.

use super::sound_index::SoundIndex;
use super::{
    Clip, Condition, Entry, Evidence, Head, Journal, JournalError, Observation, Record, Seal,
    Seals, Sound, write_wav,
};
use crate::time::Window;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// How samples are stored in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFormat {
    /// Signed 16 bit.
    Int16,
    /// Signed 24 bit, packed.
    Int24,
    /// Signed 32 bit.
    Int32,
    /// IEEE 754 single; may exceed full scale.
    Float32,
}

impl SampleFormat {
    /// Bytes per sample.
    pub fn bytes(self) -> u8 {
        match self {
            SampleFormat::Int16 => 2,
            SampleFormat::Int24 => 3,
            SampleFormat::Int32 | SampleFormat::Float32 => 4,
        }
    }

    /// Largest positive value of the integer formats plus one.
    fn full_scale(self) -> f64 {
        2f64.powi(8 * i32::from(self.bytes()) - 1)
    }

    pub(super) fn decode(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (SampleFormat::Int16, &[a, b]) => f64::from(i16::from_le_bytes([a, b])) / 32_768.0,
            (SampleFormat::Int24, &[a, b, c]) => {
                f64::from(i32::from_le_bytes([0, a, b, c])) / 2_147_483_648.0
            }
            (SampleFormat::Int32, &[a, b, c, d]) => {
                f64::from(i32::from_le_bytes([a, b, c, d])) / 2_147_483_648.0
            }
            (SampleFormat::Float32, &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
            _ => 0.0,
        }
    }

    pub(super) fn quantise(self, sample: f64) -> i32 {
        let scale = self.full_scale();
        (sample * scale).round().clamp(-scale, scale - 1.0) as i32
    }
}

/// One `mic-NNN.wav`, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Samples per second.
    pub rate: u32,
    /// How a file stores them.
    pub format: SampleFormat,
    /// The samples, full scale = 1.0.
    pub samples: Vec<f64>,
}

/// A session held in memory, always complete.
#[derive(Debug)]
pub struct MemoryRecording {
    head: Head,
    records: Vec<Record>,
    segments: Vec<Segment>,
    index: SoundIndex,
}

impl MemoryRecording {
    /// A session of these records; segment `k` of the `sound` records is `segments[k - 1]`.
    pub fn new(head: Head, records: Vec<Record>, segments: Vec<Segment>) -> Self {
        let mut index = SoundIndex::default();
        for record in &records {
            // A block that can't be is not found later: its sound counts as lost.
            let _ = index.note(record);
        }
        MemoryRecording { head, records, segments, index }
    }

    /// A session that has yet to happen.
    pub fn begin(head: Head) -> Self {
        MemoryRecording::new(head, Vec::new(), Vec::new())
    }

    /// Replaces the segments by `change` of each, for tests that spoil the ear.
    pub fn map_segments(mut self, change: impl Fn(Segment) -> Segment) -> Self {
        self.segments = self.segments.into_iter().map(change).collect();
        self
    }

    /// The ear's files.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Writes the recording into `folder`, which must not hold one yet, and seals its files in the
    /// end record.
    ///
    /// # Errors
    /// When the folder exists with a recording in it or can't be written.
    pub fn save(&self, folder: &Path) -> Result<(), JournalError> {
        fs::create_dir_all(folder).map_err(JournalError::io(folder))?;
        let head_path = folder.join("head.json");
        let mut head = fs::File::create_new(&head_path).map_err(JournalError::io(&head_path))?;
        let text = serde_json::to_string_pretty(&self.head).expect("a head is plain data") + "\n";
        head.write_all(text.as_bytes()).map_err(JournalError::io(&head_path))?;
        let mut seals = Seals::from([("head.json".into(), Seal::of(text.as_bytes()))]);
        for (k, segment) in self.segments.iter().enumerate() {
            let name = segment_file(k as u32 + 1);
            let path = folder.join(&name);
            write_wav(&path, segment)?;
            seals.insert(name, Seal::of_file(&path).map_err(JournalError::io(&path))?);
        }
        let path = folder.join("records.jsonl");
        let mut lines = String::new();
        for record in &self.records {
            let mut record = record.clone();
            if let Entry::End { files, .. } = &mut record.entry {
                seals.insert("records.jsonl".into(), Seal::of(lines.as_bytes()));
                files.clone_from(&seals);
            }
            lines.push_str(&serde_json::to_string(&record).expect("a record is plain data"));
            lines.push('\n');
        }
        fs::write(&path, lines).map_err(JournalError::io(&path))
    }
}

impl Journal for MemoryRecording {
    fn append(&mut self, record: Record, sound: Option<Sound>) -> Result<(), JournalError> {
        // A block that can't be is not found later: its sound counts as lost.
        let taken = self.index.note(&record).is_ok();
        if let Entry::Saw { what: Observation::Sound { segment, .. }, .. } = &record.entry
            && let Some(Sound { rate, samples }) = sound
            && taken
        {
            let (k, format) = (*segment as usize, SampleFormat::Float32);
            while self.segments.len() < k {
                self.segments.push(Segment { rate, format, samples: Vec::new() });
            }
            if let Some(segment) = self.segments.get_mut(k.wrapping_sub(1)) {
                segment.samples.extend(samples.iter().map(|&x| f64::from(x)));
            }
        }
        self.records.push(record);
        Ok(())
    }
}

/// The file name of a segment.
pub(super) fn segment_file(segment: u32) -> String {
    format!("mic-{segment:03}.wav")
}

impl Evidence for MemoryRecording {
    fn head(&self) -> &Head {
        &self.head
    }

    fn condition(&self) -> &Condition {
        match self.records.last().map(|r| &r.entry) {
            Some(Entry::End { .. }) => &Condition::Complete,
            _ => unfinished(),
        }
    }

    fn records(&self) -> Box<dyn Iterator<Item = Result<Record, JournalError>> + '_> {
        Box::new(self.records.iter().cloned().map(Ok))
    }

    fn samples(&self, window: Window) -> Result<Clip, JournalError> {
        let segment = |k: u32| self.segments.get((k as usize).wrapping_sub(1));
        let rate = |k| segment(k).map(|s| s.rate);
        let Some(found) = self.index.find(window, rate) else {
            return Ok(Clip::nothing(window));
        };
        let Segment { rate, samples, .. } = segment(found.segment).expect("its rate was found");
        let first = (found.first as usize).min(samples.len());
        let last = (first + found.count as usize).min(samples.len());
        Ok(Clip {
            rate: *rate,
            start: found.start,
            samples: samples[first..last].to_vec(),
            whole: found.whole && last - first == found.count as usize,
        })
    }
}

fn unfinished() -> &'static Condition {
    static UNFINISHED: std::sync::LazyLock<Condition> = std::sync::LazyLock::new(|| {
        Condition::Incomplete(vec!["the session has no end record".into()])
    });
    &UNFINISHED
}
