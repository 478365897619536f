//! THE MEMORY: what was seen and done, on disk and in memory. It has no opinions.
//!
//! A recording is a folder with `head.json`, `records.jsonl` and `mic-NNN.wav`. A session without
//! its end record, with a torn line or with fewer samples than its records say is *incomplete*.
//! The end record holds length and SHA-256 of every file; a file that is not what they say is
//! *refused*.

mod head;
mod memory;
mod read;
mod record;
mod redact;
mod seal;
mod sound_index;
mod wav;

pub use head::{FORMAT, Head, NamedText, Origin, SoftwareBoard, run_id};
pub use memory::{MemoryRecording, SampleFormat, Segment};
pub use read::Recording;
pub use record::{Blob, Command, Edge, Entry, Observation, Party, Record, Service};
pub use redact::{Redactor, redact_mqtt_connect};
pub use seal::{Seal, Sealing, Seals};
pub use wav::{WavReader, write_wav};

use crate::time::{Moment, Window};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Everything a judge may look at: records in order and samples of the ear.
pub trait Evidence {
    /// Scenario, rig, profile and origin.
    fn head(&self) -> &Head;
    /// Whether the session is whole.
    fn condition(&self) -> &Condition;
    /// The records, streamed in order.
    fn records(&self) -> Box<dyn Iterator<Item = Result<Record, JournalError>> + '_>;
    /// What the ear delivered in a window.
    fn samples(&self, window: Window) -> Result<Clip, JournalError>;
}

/// Where a session goes while it runs; what has gone there can be looked at.
pub trait Journal: Evidence {
    /// Appends a record, and the samples that a `Sound` observation speaks of.
    ///
    /// # Errors
    /// When it can't be kept: the session must end then, for evidence must be recorded.
    fn append(&mut self, record: Record, sound: Option<Sound>) -> Result<(), JournalError>;
}

/// Samples as the ear delivered them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sound {
    /// Samples per second.
    pub rate: u32,
    /// The samples, full scale = 1.0.
    pub samples: Vec<f32>,
}

/// Whether a session was recorded to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// End record present, every promised sample there.
    Complete,
    /// It stopped early; the reasons, one sentence each.
    Incomplete(Vec<String>),
}

/// A stretch of sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Clip {
    /// Samples per second.
    pub rate: u32,
    /// When the first sample was captured.
    pub start: Moment,
    /// Samples, full scale = 1.0.
    pub samples: Vec<f64>,
    /// False when part of the window was not recorded; `samples` then holds what there is from
    /// the window's start up to the first loss.
    pub whole: bool,
}

impl Clip {
    /// A window in which nothing was recorded at all.
    pub fn nothing(window: Window) -> Self {
        Clip { rate: 1, start: window.from, samples: Vec::new(), whole: false }
    }

    /// The samples between two instants, in seconds after `start`, clamped to what there is.
    pub fn between(&self, from: f64, until: f64) -> &[f64] {
        let index = |seconds: f64| {
            ((seconds * f64::from(self.rate)).round().max(0.0) as usize).min(self.samples.len())
        };
        let (first, last) = (index(from), index(until));
        &self.samples[first..last.max(first)]
    }
}

/// Why a recording can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The operating system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The folder holds nothing that we know.
    #[error(
        "{path} is not a recording: it has no head.json; \
         give a folder that holds one",
        path = path.display()
    )]
    NotARecording {
        /// Which folder.
        path: PathBuf,
    },
    /// `head.json` is cut short or damaged.
    #[error(
        "{path}: the head of the recording is torn ({what}); \
         nothing in it can be judged",
        path = path.display()
    )]
    TornHead {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Another version of the program wrote it.
    #[error(
        "{path}: the field `format` is {found}, this program reads {FORMAT}; {remedy}",
        path = path.display()
    )]
    Format {
        /// Which file.
        path: PathBuf,
        /// What stands there.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A file is not the one that was recorded.
    #[error(
        "{path}: it was changed after the recording ({what}); \
         restore the file from its original",
        path = path.display()
    )]
    Changed {
        /// Which file.
        path: PathBuf,
        /// How that is known.
        what: String,
    },
    /// Nobody vouches for a file.
    #[error(
        "{path}: the end record of the session holds no length and SHA-256 of it; \
         restore records.jsonl from its original, or take the file out if it is of another session",
        path = path.display()
    )]
    Unsealed {
        /// Which file.
        path: PathBuf,
    },
    /// A line inside the journal is damaged (a torn last line is only incomplete).
    #[error(
        "{path}:{line}: this record is damaged ({what}); \
         restore the file from its original",
        path = path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Line number from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A WAV file is not what it should be.
    #[error("{path}: {what}", path = path.display())]
    Wav {
        /// Which file.
        path: PathBuf,
        /// What is wrong and what to do.
        what: String,
    },
}

/// Opens a file of a session for reading. A pipe or a device in its place would never end.
///
/// # Errors
/// When it can't be opened, or is no regular file.
pub fn open_file(path: &Path) -> io::Result<File> {
    match path.metadata()?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("it is no regular file; restore the one that was recorded")),
    }
}

/// Whether a file is named as the ear's files are, `mic-NNN.wav`.
pub fn is_sound_file(name: &str) -> bool {
    name.starts_with("mic-") && name.ends_with(".wav")
}

impl JournalError {
    fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> JournalError {
        let path = path.into();
        move |source| JournalError::Io { path, source }
    }
}
