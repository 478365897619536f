//! Why a foreign session can't be imported: each error names the place, what is wrong and what to
//! do about it.

use crate::journal::JournalError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file, and where it matters a line in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Line number from 1; `None` stands for the whole file.
    pub line: Option<u64>,
}

impl Place {
    pub(super) fn line(path: &Path, line: u64) -> Self {
        Place { path: path.into(), line: Some(line) }
    }

    pub(super) fn file(path: &Path) -> Self {
        Place { path: path.into(), line: None }
    }
}

impl fmt::Display for Place {
    /// `FOLDER/events.jsonl:12`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.path.display()),
            None => write!(f, "{}", self.path.display()),
        }
    }
}

/// Why a session can't be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The folder or one of its files is not there.
    #[error(
        "{path}: not found; a session is a folder with events.jsonl, speaker.wav and \
         meta.json",
        path = path.display()
    )]
    Missing {
        /// What was looked for.
        path: PathBuf,
    },
    /// Nothing is in it.
    #[error(
        "{path}: the file is empty; copy it again, or record the session again",
        path = path.display()
    )]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error(
        "{path}: can't be read ({source}); check the file and its permissions",
        path = path.display()
    )]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Not UTF-8 as JSON wants it.
    #[error(
        "{path}: it begins with a byte order mark; save it as UTF-8 without one",
        path = path.display()
    )]
    ByteOrderMark {
        /// Which file.
        path: PathBuf,
    },
    /// Not JSON, or JSON of another shape.
    #[error("{place}: bad JSON ({what}); repair it or record the session again")]
    BadJson {
        /// Where.
        place: Place,
        /// What is wrong.
        what: String,
    },
    /// `b64` is not base64.
    #[error("{place}: `b64` is no base64 ({what}); write standard base64 with padding")]
    BadBase64 {
        /// Where.
        place: Place,
        /// What is wrong.
        what: String,
    },
    /// Something that the import needs was not written down.
    #[error("{place}: the field `{field}` is missing; add it")]
    MissingField {
        /// Where.
        place: Place,
        /// Its path, `speaker_wav.rate`.
        field: &'static str,
    },
    /// A field holds something that it must not.
    #[error("{place}: `{field}` is `{found}`; write {accepted}")]
    BadValue {
        /// Where.
        place: Place,
        /// Its path.
        field: &'static str,
        /// What it holds.
        found: String,
        /// What it may hold.
        accepted: &'static str,
    },
    /// A time is negative, absurd or earlier than the one before it.
    #[error("{place}: {what}; times are seconds since the session began and never decrease")]
    Time {
        /// Where.
        place: Place,
        /// What is wrong.
        what: String,
    },
    /// A line of a channel that this program doesn't know.
    #[error(
        "{place}: unknown channel `{channel}`; known: uart, http, mqtt, udp, ws, control, note \
         (update earwitness if the recorder is newer)"
    )]
    UnknownChannel {
        /// Where.
        place: Place,
        /// Its name.
        channel: String,
    },
    /// An HTTP response that answers nothing.
    #[error(
        "{place}: an HTTP response without a request before it; restore the line of the request"
    )]
    LoneResponse {
        /// Where.
        place: Place,
    },
    /// Header and description disagree about the sample rate.
    #[error(
        "{path}: the sample rate is {wav} Hz, but meta.json says speaker_wav.rate = {meta}; \
         correct the wrong one",
        path = path.display()
    )]
    WrongRate {
        /// The sound file.
        path: PathBuf,
        /// Samples per second by its header.
        wav: u32,
        /// Samples per second by meta.json.
        meta: u32,
    },
    /// The sound file was cut.
    #[error(
        "{path}: it holds {there} of the {claimed} samples that its header claims; copy the \
         whole file again",
        path = path.display()
    )]
    ShortWav {
        /// The sound file.
        path: PathBuf,
        /// Samples in the file.
        there: u64,
        /// Samples by its header.
        claimed: u64,
    },
    /// More sound than can be held.
    #[error(
        "{path}: the ear would deliver {samples} samples, at most {most} can be imported (an \
         hour at 48 kHz); cut the session at its end, or record at a lower rate",
        path = path.display()
    )]
    TooLong {
        /// The sound file, or the events when a room makes the sound as long as they are.
        path: PathBuf,
        /// How many there would be.
        samples: u64,
        /// How many there may be.
        most: u64,
    },
    /// The sound file belongs to another session.
    #[error(
        "{path}: it holds {wav} samples, but meta.json says speaker_wav.samples = {meta}; \
         bring the files of one session together",
        path = path.display()
    )]
    WrongLength {
        /// The sound file.
        path: PathBuf,
        /// Samples in the file.
        wav: u64,
        /// Samples by meta.json.
        meta: u64,
    },
    /// `udp.key_hex` opens no datagram of this session.
    #[error(
        "{path}: udp.key_hex is not the key of the server hello at {hello}; bring the files \
         of one session together",
        path = path.display()
    )]
    WrongKey {
        /// meta.json.
        path: PathBuf,
        /// Where the last server hello stands.
        hello: Place,
    },
    /// Audio sent to the device that nobody could decrypt.
    #[error(
        "{place}: a datagram to the device before any server hello with a UDP key; \
         restore the line of the hello (mqtt, tx)"
    )]
    NoHello {
        /// The first such datagram.
        place: Place,
    },
    /// Nothing says what the session should have shown.
    #[error(
        "{path}: {what}; say what the session must show with --scenario FILE",
        path = path.display()
    )]
    NoScenario {
        /// meta.json.
        path: PathBuf,
        /// What was found instead.
        what: String,
    },
    /// The sound file is not one.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl ImportError {
    /// For `map_err`: a file that can't be opened or read.
    pub(super) fn reading(path: &Path) -> impl FnOnce(io::Error) -> ImportError {
        let path = path.to_path_buf();
        move |source| match source.kind() {
            io::ErrorKind::NotFound => ImportError::Missing { path },
            _ => ImportError::Unreadable { path, source },
        }
    }

    /// JSON trouble; `line` overrides the line number for files with one object a line.
    pub(super) fn json(path: &Path, line: Option<u64>, error: &serde_json::Error) -> ImportError {
        let message = error.to_string();
        // serde_json appends ` at line 1 column 9`; the place says the line already.
        let reason = message.split(" at line ").next().unwrap_or(&message);
        ImportError::BadJson {
            place: Place::line(path, line.unwrap_or(error.line() as u64)),
            what: format!("{reason}, column {}", error.column()),
        }
    }
}

/// Refuses a file that begins with the byte order mark of UTF-8 or UTF-16.
pub(super) fn no_byte_order_mark(path: &Path, bytes: &[u8]) -> Result<(), ImportError> {
    let marks: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
    match marks.iter().any(|mark| bytes.starts_with(mark)) {
        true => Err(ImportError::ByteOrderMark { path: path.into() }),
        false => Ok(()),
    }
}

/// The value of a field that must be there.
pub(super) fn need<T>(
    value: Option<T>,
    field: &'static str,
    place: &Place,
) -> Result<T, ImportError> {
    value.ok_or_else(|| ImportError::MissingField { place: place.clone(), field })
}
