//! A recording on disk, read as a stream; torn tails make it incomplete, never unreadable.

use super::memory::segment_file;
use super::seal::{holds, is_whole};
use super::sound_index::SoundIndex;
use super::{
    Clip, Condition, Entry, Evidence, FORMAT, Head, JournalError, Record, Sealing, Seals,
    WavReader, is_sound_file, open_file,
};
use crate::time::{Moment, Window};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The longest line that a journal may hold, in bytes.
const MAX_LINE: u64 = 16 << 20;

/// A recording's folder, opened for judging.
#[derive(Debug)]
pub struct Recording {
    /// `None` when there was no `records.jsonl`, which is then in the condition.
    records_path: Option<PathBuf>,
    head: Head,
    condition: Condition,
    index: SoundIndex,
    segments: BTreeMap<u32, WavReader>,
}

impl Recording {
    /// Opens a folder: reads the head, walks the records once, and holds every file against what
    /// the records promise and the end record vouches for.
    ///
    /// # Errors
    /// When there is no recording, its head is torn or of another format, a record in the middle
    /// is damaged, or a file is not the one that was recorded. What merely stops early is
    /// [`Condition::Incomplete`].
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let head = read_head(folder)?;
        let path = folder.join("records.jsonl");
        let mut missing = Vec::new();
        let walked = match Lines::open(&path) {
            Ok(lines) => Some(walk(lines, &mut missing)?),
            Err(JournalError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                missing.push("there is no records.jsonl".into());
                None
            }
            Err(error) => return Err(error),
        };
        let records_path = walked.is_some().then_some(path);
        let Walked { index, seals } = walked.unwrap_or_default();
        if let Some(seals) = &seals
            && !is_whole(folder, "head.json", seals)?
        {
            let what = "it is shorter than it was recorded".into();
            return Err(JournalError::Changed { path: folder.join("head.json"), what });
        }
        if let Some(seals) = &seals {
            nothing_else(folder, seals)?;
        }
        let mut segments = BTreeMap::new();
        for (segment, promised) in index.promised() {
            let name = segment_file(segment);
            let whole = seals.as_ref().map_or(Ok(true), |seals| is_whole(folder, &name, seals))?;
            match WavReader::open(&folder.join(&name)) {
                Ok(wav) => {
                    let there = wav.frames;
                    if there < promised {
                        missing.push(format!("{name} holds {there} of {promised} samples"));
                    } else if !whole {
                        missing.push(format!("{name} is shorter than it was recorded"));
                    }
                    segments.insert(segment, wav);
                }
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

/// What the records say about the sound, and the seals if the session was ended in order.
#[derive(Default)]
struct Walked {
    index: SoundIndex,
    seals: Option<Seals>,
}

/// Reads all records once; what is `missing` at their end is added to the reasons.
fn walk(mut lines: Lines, missing: &mut Vec<String>) -> Result<Walked, JournalError> {
    let mut index = SoundIndex::default();
    let mut end = None;
    while let Some(record) = lines.next() {
        let record = record?;
        index.note(&record).map_err(|what| lines.damaged(what))?;
        end = match record.entry {
            Entry::End { records, files } if records == record.n => {
                Some((files, lines.before.clone().seal()))
            }
            _ => None,
        };
    }
    if lines.torn {
        missing.push(format!("records.jsonl is torn in line {}", lines.line));
        return Ok(Walked { index, seals: None });
    }
    let Some((seals, before)) = end else {
        missing.push("records.jsonl has no end record".into());
        return Ok(Walked { index, seals: None });
    };
    match seals.get("records.jsonl") {
        Some(seal) => holds(&lines.path, &before, seal)?,
        None => return Err(JournalError::Unsealed { path: lines.path }),
    }
    Ok(Walked { index, seals: Some(seals) })
}

/// Refuses sound that the end record doesn't name: it would be left out without a word.
fn nothing_else(folder: &Path, seals: &Seals) -> Result<(), JournalError> {
    for entry in fs::read_dir(folder).map_err(JournalError::io(folder))? {
        let name = entry.map_err(JournalError::io(folder))?.file_name();
        let known = |name: &str| !is_sound_file(name) || seals.contains_key(name);
        if !name.to_str().is_some_and(known) && name.to_string_lossy().starts_with("mic-") {
            return Err(JournalError::Unsealed { path: folder.join(name) });
        }
    }
    Ok(())
}

fn read_head(folder: &Path) -> Result<Head, JournalError> {
    let path = folder.join("head.json");
    let mut text = String::new();
    let read = open_file(&path).and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|source| match source.kind() {
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
    let format = value.get("format").ok_or_else(|| torn("the field `format` is missing".into()))?;
    if format.as_u64() != Some(u64::from(FORMAT)) {
        let remedy = match format.as_u64() {
            Some(format) if format > u64::from(FORMAT) => "it is newer, update earwitness",
            Some(1) => "it is older and holds no checksums, import or record the session again",
            _ => "no program ever wrote that, restore the file from its original",
        };
        return Err(JournalError::Format { path, found: format.to_string(), remedy });
    }
    serde_json::from_value(value).map_err(|error| torn(error.to_string()))
}

/// The records of a file, one line at a time.
struct Lines {
    path: PathBuf,
    file: BufReader<fs::File>,
    /// Number of the current line, from 1.
    line: u64,
    /// The current line.
    text: Vec<u8>,
    /// Everything before the current line.
    before: Sealing,
    /// Ordering stamp of the current record.
    at: Moment,
    torn: bool,
}

impl Lines {
    fn open(path: &Path) -> Result<Self, JournalError> {
        let file = BufReader::new(open_file(path).map_err(JournalError::io(path))?);
        Ok(Lines {
            path: path.into(),
            file,
            line: 0,
            text: Vec::new(),
            before: Sealing::default(),
            at: Moment::START,
            torn: false,
        })
    }

    fn damaged(&self, what: impl Into<String>) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), line: self.line, what: what.into() }
    }

    /// Fills `text` with the next line; false at the end of the file.
    fn advance(&mut self) -> Result<bool, JournalError> {
        self.before.take(&self.text);
        self.text.clear();
        let mut limited = std::io::Read::take(&mut self.file, MAX_LINE);
        match limited.read_until(b'\n', &mut self.text) {
            Ok(0) => return Ok(false),
            Ok(_) => self.line += 1,
            Err(source) => return Err(JournalError::Io { path: self.path.clone(), source }),
        }
        // A last line without its newline is torn and left out, whatever it holds.
        self.torn = self.text.last() != Some(&b'\n');
        if self.torn && self.text.len() as u64 == MAX_LINE {
            return Err(self.damaged("longer than 16 MiB"));
        }
        Ok(!self.torn)
    }

    fn record(&mut self) -> Result<Record, JournalError> {
        let record: Record =
            serde_json::from_slice(&self.text).map_err(|error| self.damaged(error.to_string()))?;
        if record.n != self.line - 1 {
            return Err(self.damaged(format!("record number {} stands in its place", record.n)));
        }
        if record.at < self.at {
            return Err(self.damaged("its time `at` is earlier than that of the record before it"));
        }
        if matches!(record.entry, Entry::Saw { captured_at, .. } if captured_at > record.at) {
            return Err(self.damaged("it was captured, `captured_at`, after it was recorded, `at`"));
        }
        self.at = record.at;
        Ok(record)
    }
}

impl Iterator for Lines {
    type Item = Result<Record, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.advance() {
            Ok(true) => Some(self.record()),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
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
        match self.records_path.as_deref().map(Lines::open) {
            Some(Ok(lines)) => Box::new(lines),
            Some(Err(error)) => Box::new(std::iter::once(Err(error))),
            None => Box::new(std::iter::empty()),
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
