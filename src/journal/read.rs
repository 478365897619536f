//! A recording on disk, read as a stream; torn tails make it incomplete, never unreadable.

use super::memory::segment_file;
use super::sound_index::SoundIndex;
use super::{Clip, Condition, Entry, Evidence, FORMAT, Head, JournalError, Record, WavReader};
use crate::time::Window;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The longest line that a journal may hold, in bytes.
const MAX_LINE: u64 = 16 << 20;

/// A recording's folder, opened for judging.
#[derive(Debug)]
pub struct Recording {
    records_path: PathBuf,
    head: Head,
    condition: Condition,
    index: SoundIndex,
    segments: BTreeMap<u32, WavReader>,
}

impl Recording {
    /// Opens a folder: reads the head, walks the records once, and holds the sound files against
    /// what the records promise.
    ///
    /// # Errors
    /// When there is no recording, its head is torn or too new, or a record in the middle is
    /// damaged. What merely stops early is [`Condition::Incomplete`].
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let head = read_head(folder)?;
        let records_path = folder.join("records.jsonl");
        let mut missing = Vec::new();
        let mut index = SoundIndex::default();
        let mut ended = false;
        match Lines::open(&records_path) {
            Ok(mut lines) => {
                for record in &mut lines {
                    let record = record?;
                    index.note(&record);
                    ended = matches!(record.entry, Entry::End { records } if records == record.n);
                }
                if lines.torn {
                    missing.push(format!("records.jsonl is torn in line {}", lines.line));
                } else if !ended {
                    missing.push("records.jsonl has no end record".into());
                }
            }
            Err(error) => missing.push(format!("records.jsonl can't be read: {error}")),
        }
        let mut segments = BTreeMap::new();
        for (segment, promised) in index.promised() {
            let path = folder.join(segment_file(segment));
            match WavReader::open(&path) {
                Ok(wav) if wav.frames < promised => {
                    let (file, there) = (segment_file(segment), wav.frames);
                    missing.push(format!("{file} holds {there} of {promised} samples"));
                    segments.insert(segment, wav);
                }
                Ok(wav) => drop(segments.insert(segment, wav)),
                Err(error) => missing.push(error.to_string()),
            }
        }
        let condition = match missing.is_empty() {
            true => Condition::Complete,
            false => Condition::Incomplete(missing),
        };
        Ok(Recording { records_path, head, condition, index, segments })
    }
}

fn read_head(folder: &Path) -> Result<Head, JournalError> {
    let path = folder.join("head.json");
    let text = fs::read_to_string(&path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => JournalError::NotARecording { path: folder.into() },
        std::io::ErrorKind::InvalidData => {
            JournalError::TornHead { path: path.clone(), what: "it is not UTF-8".into() }
        }
        _ => JournalError::Io { path: path.clone(), source },
    })?;
    let torn = |what: String| JournalError::TornHead { path: path.clone(), what };
    if !text.ends_with('\n') {
        return Err(torn("its last line is cut off".into()));
    }
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| torn(error.to_string()))?;
    let format = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if format > u64::from(FORMAT) {
        let found = u32::try_from(format).unwrap_or(u32::MAX);
        return Err(JournalError::TooNew { path, found });
    }
    serde_json::from_value(value).map_err(|error| torn(error.to_string()))
}

/// The records of a file, one line at a time.
struct Lines {
    path: PathBuf,
    file: BufReader<fs::File>,
    line: u64,
    torn: bool,
}

impl Lines {
    fn open(path: &Path) -> Result<Self, std::io::Error> {
        let file = BufReader::new(fs::File::open(path)?);
        Ok(Lines { path: path.into(), file, line: 0, torn: false })
    }
}

impl Iterator for Lines {
    type Item = Result<Record, JournalError>;

    /// A last line without its newline is torn and left out, whatever it holds.
    fn next(&mut self) -> Option<Self::Item> {
        let mut text = Vec::new();
        let mut limited = std::io::Read::take(&mut self.file, MAX_LINE);
        let read = limited.read_until(b'\n', &mut text);
        let damaged = |line, what| JournalError::Damaged { path: self.path.clone(), line, what };
        match read {
            Ok(0) => return None,
            Ok(_) => self.line += 1,
            Err(source) => {
                return Some(Err(JournalError::Io { path: self.path.clone(), source }));
            }
        }
        if text.last() != Some(&b'\n') {
            if text.len() as u64 == MAX_LINE {
                return Some(Err(damaged(self.line, "longer than 16 MiB".into())));
            }
            self.torn = true;
            return None;
        }
        match serde_json::from_slice::<Record>(&text) {
            Ok(record) if record.n + 1 == self.line => Some(Ok(record)),
            Ok(record) => {
                let what = format!("record number {} stands in its place", record.n);
                Some(Err(damaged(self.line, what)))
            }
            Err(error) => Some(Err(damaged(self.line, error.to_string()))),
        }
    }
}

impl Evidence for Recording {
    fn head(&self) -> &Head {
        &self.head
    }

    fn condition(&self) -> &Condition {
        &self.condition
    }

    fn records(&self) -> Box<dyn Iterator<Item = Result<Record, JournalError>> + '_> {
        match Lines::open(&self.records_path) {
            Ok(lines) => Box::new(lines),
            // `open` has already put this into the condition.
            Err(_) => Box::new(std::iter::empty()),
        }
    }

    fn samples(&self, window: Window) -> Result<Clip, JournalError> {
        let rate = |segment| self.segments.get(&segment).map(|wav| wav.rate);
        let Some(found) = self.index.find(window, rate) else {
            return Ok(Clip::nothing(window));
        };
        let wav = &self.segments[&found.segment];
        let samples = wav.read(found.first, found.count)?;
        let whole = found.whole && samples.len() as u64 == found.count;
        Ok(Clip { rate: wav.rate, start: found.start, samples, whole })
    }
}
