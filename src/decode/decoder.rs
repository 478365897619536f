//! Records in, facts out: one pass, bounded buffers, never an error. What can't be understood is
//! a fact, too.

use super::fact::{Beacon, Control, Fact, HttpMessage, Transport, What};
use super::json::doubled_key;
use super::mcp::Answer;
use super::mqtt::{self, Packet};
use super::socket::{Half, Part};
use super::stream::Origin;
use super::uart::{self, BootEvent, Boots, Lines, RawLine};
use super::{mcp, udp};
use crate::journal::{Blob, Entry, Observation, Party, Record};
use crate::time::Moment;
use serde_json::Value;
use std::collections::BTreeMap;

/// Turns the records of one session into facts.
#[derive(Debug, Default)]
pub struct Decoder {
    lines: Lines,
    boots: Boots,
    boot: u32,
    connections: u32,
    links: BTreeMap<u32, Link>,
    key: Option<udp::Key>,
    /// The topic on which the bench told the device to publish.
    topic: Option<String>,
    facts: Vec<Fact>,
}

/// What is known of a TCP connection.
#[derive(Debug)]
struct Link {
    device: Half,
    bench: Half,
    /// Set once it is a control channel: its number and kind.
    control: Option<(u32, Transport)>,
    /// The device said goodbye.
    orderly: bool,
    /// WebSocket binary protocol version.
    version: u8,
}

impl Link {
    fn new() -> Self {
        Link {
            device: Half::new(Party::Device),
            bench: Half::new(Party::Bench),
            control: None,
            orderly: false,
            version: 1,
        }
    }
}

impl Decoder {
    /// The facts that `record` completes, in order.
    pub fn take(&mut self, record: &Record) -> Vec<Fact> {
        match &record.entry {
            Entry::Saw { captured_at, what } => {
                self.observe(what, Origin { record: record.n, at: *captured_at });
            }
            Entry::Step { path, edge } => {
                let origin = Origin { record: record.n, at: record.at };
                self.tell(origin, None, What::Step { path: path.clone(), edge: *edge });
            }
            Entry::Did { .. } | Entry::Decided { .. } | Entry::End { .. } => {}
        }
        std::mem::take(&mut self.facts)
    }

    /// What the end of the session completes: a console line without its line end.
    pub fn finish(&mut self) -> Vec<Fact> {
        if let Some(line) = self.lines.flush() {
            self.console(line);
        }
        std::mem::take(&mut self.facts)
    }

    fn tell(&mut self, origin: Origin, link: Option<u32>, what: What) {
        self.tell_until(origin.at, origin, link, what);
    }

    fn tell_until(&mut self, until: Moment, origin: Origin, link: Option<u32>, what: What) {
        let control = link.and_then(|l| self.links.get(&l)).and_then(|l| l.control);
        let connection = control.map_or(self.connections, |(number, _)| number);
        let Origin { record, at } = origin;
        self.facts.push(Fact { record, at, until, boot: self.boot, connection, link, what });
    }

    fn observe(&mut self, what: &Observation, origin: Origin) {
        match what {
            Observation::Uart(Blob(bytes)) => {
                for line in self.lines.push(bytes, origin.at, origin.record) {
                    self.console(line);
                }
            }
            Observation::Opened { link, .. } => {
                self.links.insert(*link, Link::new());
            }
            Observation::Closed { link, by } => self.closed(*link, *by, origin),
            Observation::Socket { link, from, bytes } => {
                let entry = self.links.entry(*link).or_insert_with(Link::new);
                let half = match from {
                    Party::Device => &mut entry.device,
                    Party::Bench => &mut entry.bench,
                };
                for (origin, part) in half.push(&bytes.0, origin) {
                    self.part(*link, *from, origin, part);
                }
            }
            Observation::Mqtt { link, from, packet } => self.mqtt(*link, *from, packet, origin),
            Observation::Datagram { from, bytes } => match udp::open(&bytes.0, self.key.as_ref()) {
                Ok((sequence, opus)) => self.audio(origin, None, *from, Some(sequence), opus),
                Err(why) => self.tell(origin, None, What::Ignored { why: why.into() }),
            },
            Observation::Pressed { button } => {
                self.tell(origin, None, What::Pressed { button: button.clone() });
            }
            Observation::Beacon { hz, level_dbfs, until } => {
                let beacon =
                    Beacon { hz: *hz, level_dbfs: *level_dbfs, from: origin.at, until: *until };
                self.tell(origin, None, What::Beacon(beacon));
            }
            Observation::Refused { why } => {
                self.tell(origin, None, What::Ignored { why: why.clone() });
            }
            // Sound is not told but asked for: see `sound`. Chance is no evidence.
            Observation::Sound { .. } | Observation::Drew { .. } => {}
        }
    }

    fn console(&mut self, line: RawLine) {
        let (origin, until) = (Origin { record: line.record, at: line.at }, line.until);
        let line = uart::read(&line.text);
        if let Some(event) = self.boots.see(&line) {
            match event {
                BootEvent::Began { number } | BootEvent::Missed { number, .. } => {
                    self.boot = number;
                }
                BootEvent::Reset { number, began: true, .. } => {
                    self.boot = number;
                    let began = What::Boot(BootEvent::Began { number });
                    self.tell_until(until, origin, None, began);
                }
                _ => {}
            }
            self.tell_until(until, origin, None, What::Boot(event));
        }
        self.tell_until(until, origin, None, What::Uart(line));
    }

    fn closed(&mut self, link: u32, by: Party, origin: Origin) {
        let Some(entry) = self.links.get_mut(&link) else { return };
        let device = entry.device.close();
        let bench = entry.bench.close();
        let (orderly, control) = (entry.orderly, entry.control);
        for (from, rest) in [(Party::Device, device), (Party::Bench, bench)] {
            if let Some((origin, part)) = rest {
                self.part(link, from, origin, part);
            }
        }
        if let Some((_, transport)) = control {
            let orderly = orderly || (transport == Transport::WebSocket && by == Party::Device);
            self.tell(origin, Some(link), What::Disconnected { transport, orderly });
        }
        self.links.remove(&link);
    }

    fn connected(&mut self, link: u32, origin: Origin, transport: Transport, client: String) {
        self.connections += 1;
        if let Some(entry) = self.links.get_mut(&link) {
            entry.control = Some((self.connections, transport));
        }
        self.tell(origin, Some(link), What::Connected { transport, client });
    }

    fn part(&mut self, link: u32, from: Party, origin: Origin, part: Part) {
        match part {
            Part::Http(message) => {
                let asks = message.header("upgrade").is_some();
                if asks && from == Party::Device {
                    let version = message.header("protocol-version").and_then(|v| v.parse().ok());
                    if let Some(entry) = self.links.get_mut(&link) {
                        entry.version = version.unwrap_or(1);
                    }
                    let client = message.header("device-id").unwrap_or_default().to_owned();
                    self.connected(link, origin, Transport::WebSocket, client);
                }
                self.topic = publish_topic(&message).or_else(|| self.topic.take());
                self.tell(origin, Some(link), What::Http(message));
            }
            Part::Text(text) => self.message(origin, Some(link), from, None, &text),
            Part::Binary(bytes) => {
                let version = self.links.get(&link).map_or(1, |l| l.version);
                match unwrap_binary(version, &bytes) {
                    Ok(Binary::Opus(opus)) => self.audio(origin, Some(link), from, None, opus),
                    Ok(Binary::Json(text)) => self.message(origin, Some(link), from, None, &text),
                    Err(why) => self.tell(origin, Some(link), What::Ignored { why: why.into() }),
                }
            }
            Part::Broken(why) => self.tell(origin, Some(link), What::Ignored { why }),
        }
    }

    fn mqtt(&mut self, link: u32, from: Party, packet: &Blob, origin: Origin) {
        self.links.entry(link).or_insert_with(Link::new);
        let Packet { control, content } = mqtt::read(&packet.0);
        if let Some(Control::Connect { level: mqtt::LEVEL, client, .. }) = &control {
            self.connected(link, origin, Transport::Mqtt, client.clone());
        }
        if let (Some(Control::Disconnect), Some(entry)) = (&control, self.links.get_mut(&link)) {
            entry.orderly = true;
        }
        if let Some(packet) = control {
            self.tell(origin, Some(link), What::Mqtt { from, packet });
        }
        match content {
            Some(Ok((topic, message))) => {
                self.message(origin, Some(link), from, Some(&topic), &message);
            }
            Some(Err(why)) => self.tell(origin, Some(link), What::Ignored { why }),
            None => {}
        }
    }

    fn audio(
        &mut self,
        origin: Origin,
        link: Option<u32>,
        from: Party,
        sequence: Option<u32>,
        opus: Vec<u8>,
    ) {
        // The board's microphone is not judged here; an hour of it must not fill the memory.
        let opus = if from == Party::Bench { opus } else { Vec::new() };
        self.tell(origin, link, What::Audio { from, sequence, opus });
    }

    /// A JSON message, with its topic if it came over MQTT.
    fn message(
        &mut self,
        origin: Origin,
        link: Option<u32>,
        from: Party,
        topic: Option<&str>,
        text: &[u8],
    ) {
        let Ok(body) = serde_json::from_slice::<Value>(text) else {
            let raw = String::from_utf8_lossy(text).into_owned();
            let id = mcp::salvage_id(&raw);
            return self.tell(origin, link, What::Malformed { from, raw, id });
        };
        let kind = body.get("type").and_then(Value::as_str);
        if kind == Some("hello") && from == Party::Bench {
            self.key = udp::Key::of_hello(&body);
        }
        let meaning = match (kind, body.get("payload")) {
            (Some("mcp"), Some(payload)) => mcp::read(from, payload),
            _ => None,
        };
        let mut what = meaning.unwrap_or(What::Message { from, body });
        if let What::Reply(reply) = &mut what
            && from == Party::Device
            && let Some(why) = self.irregular(topic, text)
        {
            reply.answer = Answer::Irregular(why);
        }
        self.tell(origin, link, what);
    }

    /// Why a reply of the device is no proper one whatever it says.
    fn irregular(&self, topic: Option<&str>, text: &[u8]) -> Option<String> {
        let doubled = doubled_key(text).map(|key| format!("it names \"{key}\" twice"));
        doubled.or_else(|| match (topic, &self.topic) {
            (Some(topic), Some(right)) if topic != right => {
                Some(format!("it came on the topic {topic}, the device was told to use {right}"))
            }
            _ => None,
        })
    }
}

/// The topic in the bench's answer to the device's config request.
fn publish_topic(message: &HttpMessage) -> Option<String> {
    let body: Value = match message.from {
        Party::Bench => serde_json::from_str(&message.body).ok()?,
        Party::Device => return None,
    };
    let topic = body.pointer("/mqtt/publish_topic").and_then(Value::as_str)?;
    (!topic.is_empty()).then(|| topic.to_owned())
}

enum Binary {
    Opus(Vec<u8>),
    Json(Vec<u8>),
}

/// The payload of a WebSocket binary message by protocol version (facts/xiaozhi.md 3.4).
fn unwrap_binary(version: u8, bytes: &[u8]) -> Result<Binary, &'static str> {
    let (kind, size, payload) = match (version, bytes) {
        (2, [_, _, k, l, _, _, _, _, _, _, _, _, a, b, c, d, rest @ ..]) => {
            (u16::from_be_bytes([*k, *l]), u32::from_be_bytes([*a, *b, *c, *d]) as usize, rest)
        }
        (3, [kind, _, a, b, rest @ ..]) => {
            (u16::from(*kind), usize::from(u16::from_be_bytes([*a, *b])), rest)
        }
        (2 | 3, _) => return Err("a binary message shorter than its header"),
        _ => (0, bytes.len(), bytes),
    };
    match kind {
        _ if size != payload.len() => Err("a binary message whose size field is wrong"),
        0 => Ok(Binary::Opus(payload.to_vec())),
        1 if version == 2 => Ok(Binary::Json(payload.to_vec())),
        _ => Err("a binary message of unknown type"),
    }
}
