//! `events.jsonl`, one line at a time, as typed events.

use super::error::{ImportError, Place, need, no_byte_order_mark};
use crate::journal::{Party, Seal, Sealing, open_file};
use crate::time::Moment;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rumqttc::mqttbytes::{QoS, qos};
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest line, in bytes.
const MAX_LINE: u64 = 16 << 20;

/// The longest session, in seconds; a larger time is a mistake of the recorder.
const MAX_SECONDS: f64 = 86_400.0;

/// One line.
#[derive(Debug)]
pub(super) struct Event {
    /// Line number from 1.
    pub line: u64,
    /// When it happened.
    pub at: Moment,
    /// What happened.
    pub what: What,
}

/// What a line tells.
#[derive(Debug)]
pub(super) enum What {
    /// Bytes of the board's console.
    Console(Vec<u8>),
    /// A whole HTTP request, and when its connection was accepted.
    Request { accepted: Moment, bytes: Vec<u8> },
    /// A whole HTTP response.
    Response(Vec<u8>),
    /// The content of an MQTT PUBLISH.
    Publish { from: Party, topic: String, qos: QoS, retain: bool, payload: Vec<u8> },
    /// Any other MQTT packet, whole.
    Packet { from: Party, bytes: Vec<u8> },
    /// Upgrade request or response of a WebSocket.
    Handshake { from: Party, bytes: Vec<u8> },
    /// The payload of a WebSocket message.
    Message { from: Party, text: bool, payload: Vec<u8> },
    /// One UDP datagram.
    Datagram { from: Party, bytes: Vec<u8> },
    /// A TCP connection began.
    Accepted(Listener),
    /// A TCP connection ended.
    Closed { listener: Listener, by: Party },
    /// The BOOT button was pressed.
    Pressed,
    /// A phase began.
    Phase(String),
    /// An opinion or a secret of the recorder, no evidence.
    Nothing,
}

/// A listener as the recorder names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listener {
    /// The broker.
    Mqtt,
    /// The WebSocket server.
    Ws,
}

/// The file, being read.
pub(super) struct Events {
    path: PathBuf,
    file: BufReader<File>,
    line: u64,
    latest: f64,
    shift: Duration,
    sealing: Sealing,
}

impl Events {
    /// Opens the file; every time becomes `shift` later.
    pub fn open(path: &Path, shift: Duration) -> Result<Self, ImportError> {
        let file = BufReader::new(open_file(path).map_err(ImportError::reading(path))?);
        let path = path.to_path_buf();
        Ok(Events { path, file, line: 0, latest: 0.0, shift, sealing: Sealing::default() })
    }

    /// The seal of everything read.
    pub fn seal(self) -> Seal {
        self.sealing.seal()
    }

    /// The next line that isn't blank.
    fn read(&mut self) -> Result<Option<Event>, ImportError> {
        loop {
            let mut bytes = Vec::new();
            let mut limited = (&mut self.file).take(MAX_LINE);
            let read = limited.read_until(b'\n', &mut bytes);
            if read.map_err(ImportError::reading(&self.path))? == 0 {
                return Ok(None);
            }
            self.line += 1;
            self.sealing.take(&bytes);
            if self.line == 1 {
                no_byte_order_mark(&self.path, &bytes)?;
            }
            if bytes.len() as u64 == MAX_LINE {
                let what = "the line is longer than 16 MiB".into();
                return Err(ImportError::BadJson { place: self.place(), what });
            }
            if !bytes.trim_ascii().is_empty() {
                return self.event(&bytes).map(Some);
            }
        }
    }

    fn event(&mut self, bytes: &[u8]) -> Result<Event, ImportError> {
        let place = self.place();
        let line: Line = serde_json::from_slice(bytes)
            .map_err(|e| ImportError::json(&self.path, Some(self.line), &e))?;
        let seconds = need(line.t, "t", &place)?;
        let at = moment(seconds, "t", &place)?;
        if seconds < self.latest {
            let what = format!("time runs backwards from {} to {seconds}", self.latest);
            return Err(ImportError::Time { place, what });
        }
        self.latest = seconds;
        let mut what = line.what(&place, at)?;
        if let What::Request { accepted, .. } = &mut what {
            *accepted = *accepted + self.shift;
        }
        Ok(Event { line: self.line, at: at + self.shift, what })
    }

    fn place(&self) -> Place {
        Place::line(&self.path, self.line)
    }
}

impl Iterator for Events {
    type Item = Result<Event, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// A time of the recorder as ours.
pub(super) fn moment(seconds: f64, field: &str, place: &Place) -> Result<Moment, ImportError> {
    if (0.0..=MAX_SECONDS).contains(&seconds) {
        return Ok(Moment::from_secs_f64(seconds));
    }
    let what = format!("`{field}` is {seconds}, outside 0 to {MAX_SECONDS}");
    Err(ImportError::Time { place: place.clone(), what })
}

/// The members that mean something to us; others are ignored.
#[derive(Deserialize)]
struct Line {
    t: Option<f64>,
    ch: Option<String>,
    dir: Option<String>,
    b64: Option<String>,
    accepted: Option<f64>,
    topic: Option<String>,
    qos: Option<u8>,
    retain: Option<u8>,
    op: Option<String>,
    text: Option<String>,
    phase: Option<String>,
    mqtt_packet: Option<String>,
    ws_handshake: Option<String>,
    tcp: Option<String>,
    service: Option<String>,
    by: Option<String>,
}

impl Line {
    fn what(self, place: &Place, at: Moment) -> Result<What, ImportError> {
        match need(self.ch.as_deref(), "ch", place)? {
            "uart" => match self.from(place)? {
                Party::Device => Ok(What::Console(self.bytes(place)?)),
                Party::Bench => Err(bad(place, "dir", "tx", "rx (the console only listens)")),
            },
            "http" => match self.from(place)? {
                Party::Device => self.request(place, at),
                Party::Bench => Ok(What::Response(self.bytes(place)?)),
            },
            "mqtt" => self.publish(place),
            "udp" => Ok(What::Datagram { from: self.from(place)?, bytes: self.bytes(place)? }),
            "ws" => {
                let text = match need(self.op.as_deref(), "op", place)? {
                    "text" => true,
                    "binary" => false,
                    other => return Err(bad(place, "op", other, "text or binary")),
                };
                Ok(What::Message { from: self.from(place)?, text, payload: self.bytes(place)? })
            }
            // Everything but the button (`@fault ...`) says what was broken on purpose.
            "control" => match need(self.text.as_deref(), "text", place)? {
                "@button" => Ok(What::Pressed),
                _ => Ok(What::Nothing),
            },
            "note" => self.note(place),
            other => {
                Err(ImportError::UnknownChannel { place: place.clone(), channel: other.into() })
            }
        }
    }

    fn request(&self, place: &Place, at: Moment) -> Result<What, ImportError> {
        let accepted = moment(need(self.accepted, "accepted", place)?, "accepted", place)?;
        if accepted > at {
            let what = "`accepted` is later than `t`".into();
            return Err(ImportError::Time { place: place.clone(), what });
        }
        Ok(What::Request { accepted, bytes: self.bytes(place)? })
    }

    fn publish(self, place: &Place) -> Result<What, ImportError> {
        let level = self.qos.unwrap_or(0);
        let qos = qos(level).map_err(|_| bad(place, "qos", &level.to_string(), "0, 1 or 2"))?;
        let (from, payload) = (self.from(place)?, self.bytes(place)?);
        let retain = match self.retain {
            None | Some(0) => false,
            Some(1) => true,
            Some(other) => return Err(bad(place, "retain", &other.to_string(), "0 or 1")),
        };
        let topic = need(self.topic, "topic", place)?;
        if topic.len() > usize::from(u16::MAX) {
            let found = format!("{} bytes long", topic.len());
            return Err(bad(place, "topic", &found, "at most 65535 bytes"));
        }
        Ok(What::Publish { from, topic, qos, retain, payload })
    }

    fn note(self, place: &Place) -> Result<What, ImportError> {
        if let Some(phase) = self.phase {
            return Ok(What::Phase(phase));
        }
        if let Some(tcp) = &self.tcp {
            let listener = match need(self.service.as_deref(), "service", place)? {
                "mqtt" => Listener::Mqtt,
                "ws" => Listener::Ws,
                other => return Err(bad(place, "service", other, "mqtt or ws")),
            };
            return match tcp.as_str() {
                "accept" => Ok(What::Accepted(listener)),
                "closed" => Ok(What::Closed { listener, by: self.closed_by(place)? }),
                other => Err(bad(place, "tcp", other, "accept or closed")),
            };
        }
        // Without bytes such a note is only a mark.
        match (&self.mqtt_packet, &self.ws_handshake, &self.b64) {
            (Some(_), _, Some(_)) => {
                Ok(What::Packet { from: self.from(place)?, bytes: self.bytes(place)? })
            }
            (_, Some(_), Some(_)) => {
                Ok(What::Handshake { from: self.from(place)?, bytes: self.bytes(place)? })
            }
            _ => Ok(What::Nothing),
        }
    }

    fn closed_by(&self, place: &Place) -> Result<Party, ImportError> {
        match need(self.by.as_deref(), "by", place)? {
            "device" => Ok(Party::Device),
            "bench" => Ok(Party::Bench),
            other => Err(bad(place, "by", other, "device or bench")),
        }
    }

    fn from(&self, place: &Place) -> Result<Party, ImportError> {
        match need(self.dir.as_deref(), "dir", place)? {
            "rx" => Ok(Party::Device),
            "tx" => Ok(Party::Bench),
            other => Err(bad(place, "dir", other, "rx (from the device) or tx (to it)")),
        }
    }

    fn bytes(&self, place: &Place) -> Result<Vec<u8>, ImportError> {
        let text = need(self.b64.as_deref(), "b64", place)?;
        STANDARD.decode(text).map_err(|error| ImportError::BadBase64 {
            place: place.clone(),
            what: error.to_string(),
        })
    }
}

fn bad(place: &Place, field: &'static str, found: &str, accepted: &'static str) -> ImportError {
    ImportError::BadValue { place: place.clone(), field, found: found.into(), accepted }
}
