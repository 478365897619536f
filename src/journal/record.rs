//! What a journal holds: bytes, frames and samples with times, never parsed opinions.

use super::Seals;
use crate::time::{Moment, SampleIndex};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line of `records.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Position in the journal, from 0 without gaps.
    pub n: u64,
    /// When the record entered the journal (ordering stamp), nanoseconds.
    pub at: Moment,
    /// What happened.
    #[serde(flatten)]
    pub entry: Entry,
}

/// The kinds of records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The world was observed. `captured_at` is taken at the edge; latencies come from it.
    Saw {
        /// When the first byte or sample arrived, nanoseconds.
        captured_at: Moment,
        /// What arrived.
        what: Observation,
    },
    /// The bench meant to do something; what came of it follows as an observation.
    Did {
        /// What it meant to do.
        command: Command,
    },
    /// The conductor chose a way that the scenario leaves open.
    Decided {
        /// What was chosen and why, in one sentence.
        what: String,
    },
    /// A step of the scenario began or ended.
    Step {
        /// The step instance, `loud` or `loud#2`.
        path: String,
        /// Which end of it.
        edge: Edge,
    },
    /// The session was closed in order. Without this record it is incomplete and can't pass.
    End {
        /// Number of records before this one.
        records: u64,
        /// On disk: what each file is, `records.jsonl` up to this record. A session in memory has
        /// no files.
        #[serde(default, skip_serializing_if = "Seals::is_empty")]
        files: Seals,
    },
}

/// Which end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// The step begins.
    Start,
    /// The step is over.
    End,
    /// The step was cut short: the session's limit was reached.
    Cut,
}

/// Raw evidence from the edge of the bench.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observation {
    /// Bytes of the board's console, chunk borders arbitrary.
    Uart(Blob),
    /// The device opened a TCP connection to the bench.
    Opened {
        /// Number of the connection, unique in the session.
        link: u32,
        /// Which listener it reached.
        service: Service,
    },
    /// A TCP connection ended.
    Closed {
        /// Number of the connection.
        link: u32,
        /// Who closed it.
        by: Party,
    },
    /// Bytes of an HTTP or WebSocket connection, chunk borders arbitrary.
    Socket {
        /// Number of the connection.
        link: u32,
        /// Who sent them.
        from: Party,
        /// The bytes.
        bytes: Blob,
    },
    /// One whole MQTT control packet.
    Mqtt {
        /// Number of the connection.
        link: u32,
        /// Who sent it.
        from: Party,
        /// Fixed header, variable header and payload.
        packet: Blob,
    },
    /// One UDP audio datagram, still encrypted.
    Datagram {
        /// Who sent it.
        from: Party,
        /// Header and payload.
        bytes: Blob,
    },
    /// The world could not do what a command asked of it.
    Refused {
        /// Why, in one sentence.
        why: String,
    },
    /// What chance gave a simulated world, by name with its unit (`drift_ppm`).
    Drew {
        /// The values.
        values: BTreeMap<String, f64>,
    },
    /// A button of the board was pressed by the bench.
    Pressed {
        /// Its name, `boot`.
        button: String,
    },
    /// The bench's own loudspeaker played its beacon.
    Beacon {
        /// Frequency of the beacon in hertz.
        hz: f64,
        /// Level at which the ear should find it, dBFS (AES17), from the rig's path gain.
        level_dbfs: f64,
        /// When the sound ended; `captured_at` is when it began.
        until: Moment,
    },
    /// Samples of the ear were stored; `captured_at` belongs to the first of them.
    Sound {
        /// Number of the file `mic-NNN.wav`.
        segment: u32,
        /// First sample of this block in the segment.
        first: SampleIndex,
        /// Number of samples.
        count: u64,
    },
}

/// What the bench wants of the world. A command never blocks: what came of it is observed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Bytes for an HTTP or WebSocket connection.
    Send {
        /// Number of the connection.
        link: u32,
        /// The bytes.
        bytes: Blob,
    },
    /// One whole MQTT control packet.
    Mqtt {
        /// Number of the connection.
        link: u32,
        /// Fixed header, variable header and payload.
        packet: Blob,
    },
    /// One UDP audio datagram, encrypted, for the address from which the device last spoke.
    Datagram {
        /// Header and payload.
        bytes: Blob,
    },
    /// The end of a TCP connection, after what was sent on it.
    Close {
        /// Number of the connection.
        link: u32,
    },
    /// A press of one of the board's buttons.
    Press {
        /// Its name, `boot`.
        button: String,
    },
    /// A beacon of one second from the bench's own loudspeaker, at the level that the rig states.
    Beacon {
        /// Its frequency in hertz.
        hz: f64,
    },
}

/// A listener of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// Config endpoint and WebSocket share one port.
    Http,
    /// MQTT gateway.
    Mqtt,
}

/// The two ends of every conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The board under test.
    Device,
    /// Us.
    Bench,
}

impl Party {
    /// The other end.
    pub fn other(self) -> Party {
        match self {
            Party::Device => Party::Bench,
            Party::Bench => Party::Device,
        }
    }

    /// `device` or `bench`.
    pub fn name(self) -> &'static str {
        match self {
            Party::Device => "device",
            Party::Bench => "bench",
        }
    }
}

/// Bytes in a JSON journal: readable text where they are printable UTF-8, base64 otherwise.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Blob(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum BlobForm {
    Text(String),
    Raw { b64: String },
}

impl Serialize for Blob {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) if text.chars().all(is_readable) => serializer.serialize_str(text),
            _ => BlobForm::Raw { b64: STANDARD.encode(&self.0) }.serialize(serializer),
        }
    }
}

fn is_readable(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\t' | '\x1b') || !c.is_control()
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match BlobForm::deserialize(deserializer)? {
            BlobForm::Text(text) => Ok(Blob(text.into_bytes())),
            BlobForm::Raw { b64 } => {
                STANDARD.decode(b64).map(Blob).map_err(serde::de::Error::custom)
            }
        }
    }
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blob({} bytes {:?})", self.0.len(), String::from_utf8_lossy(&self.0))
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Blob(bytes)
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Blob(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_readable_and_every_byte_survives() {
        for bytes in [&b"I (12) a: b\r\n"[..], "中文".as_bytes(), &[0xff, 0, 1], b"\0", b""] {
            let json = serde_json::to_string(&Blob::from(bytes)).unwrap();
            assert_eq!(serde_json::from_str::<Blob>(&json).unwrap().0, bytes, "{json}");
        }
        assert_eq!(serde_json::to_string(&Blob::from(&b"ok\n"[..])).unwrap(), r#""ok\n""#);
    }
}
