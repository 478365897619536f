//! The rules of the gateway and of the config answer, one by one: what a device sends goes through
//! the decoder, as in a session, and what comes back is read by another decoder's rules.

mod conversation;
mod http;
mod mqtt;
mod tools;

use super::*;
use crate::decode::Decoder;
use crate::journal::{Blob, Entry, Observation, Record, Service};
use bytes::BytesMut;
use rumqttc::mqttbytes::QoS;
use rumqttc::mqttbytes::v4::{Connect, Packet, Publish};

/// A backend with the decoder before it; each observation takes a millisecond.
struct Bench {
    backend: Backend,
    decoder: Decoder,
    now: Moment,
    records: u64,
    /// What the backend sent since the last look, as facts.
    sent: Vec<What>,
    closed: Vec<u32>,
    responses: Vec<Vec<u8>>,
    datagrams: Vec<(Moment, Vec<u8>)>,
}

fn settings() -> Settings {
    Settings {
        seed: 7,
        started_at_unix_ms: 1_796_072_251_000,
        host: "192.168.50.1".into(),
        mqtt_port: 1883,
        udp_port: 8884,
        keepalive: 60,
    }
}

impl Bench {
    fn new() -> Bench {
        Bench::with(settings())
    }

    fn with(settings: Settings) -> Bench {
        Bench {
            backend: Backend::new(settings),
            decoder: Decoder::default(),
            now: Moment::START,
            records: 0,
            sent: Vec::new(),
            closed: Vec::new(),
            responses: Vec::new(),
            datagrams: Vec::new(),
        }
    }

    /// The world shows something; what the backend does comes back as its echo.
    fn see(&mut self, what: Observation) {
        self.now = self.now + std::time::Duration::from_millis(1);
        self.record(what);
        self.perform();
    }

    fn record(&mut self, what: Observation) -> Vec<What> {
        let entry = Entry::Saw { captured_at: self.now, what };
        let record = Record { n: self.records, at: self.now, entry };
        self.records += 1;
        let facts = self.decoder.take(&record);
        facts.iter().for_each(|fact| self.backend.note(self.now, fact));
        facts.into_iter().map(|fact| fact.what).collect()
    }

    fn perform(&mut self) {
        loop {
            let commands = self.backend.take_commands();
            if commands.is_empty() {
                return;
            }
            for command in commands {
                let from = Party::Bench;
                let echo = match command {
                    Command::Send { link, bytes } => {
                        self.responses.push(bytes.0.clone());
                        Observation::Socket { link, from, bytes }
                    }
                    Command::Mqtt { link, packet } => Observation::Mqtt { link, from, packet },
                    Command::Datagram { bytes } => {
                        self.datagrams.push((self.now, bytes.0.clone()));
                        Observation::Datagram { from, bytes }
                    }
                    Command::Close { link } => {
                        self.closed.push(link);
                        Observation::Closed { link, by: from }
                    }
                    other => panic!("{other:?} is none of the backend's"),
                };
                let told = self.record(echo);
                let disconnected = |what: &What| matches!(what, What::Disconnected { .. });
                self.sent.extend(told.into_iter().filter(|what| !disconnected(what)));
            }
        }
    }

    fn mqtt(&mut self, link: u32, packet: &[u8]) {
        self.see(Observation::Mqtt { link, from: Party::Device, packet: packet.into() });
    }

    fn packet(&mut self, link: u32, packet: &Packet) {
        let mut bytes = BytesMut::new();
        packet.write(&mut bytes, 1 << 20).unwrap();
        self.mqtt(link, &bytes);
    }

    fn connect(&mut self, link: u32, client: &str) {
        self.see(Observation::Opened { link, service: Service::Mqtt });
        self.packet(link, &Packet::Connect(connect(client, 60)));
    }

    fn publish(&mut self, link: u32, message: &str) {
        self.packet(link, &publish(QoS::AtMostOnce, 0, message));
    }

    fn post(&mut self, link: u32, request: &str) {
        self.see(Observation::Opened { link, service: Service::Http });
        let bytes = Blob::from(request.as_bytes());
        self.see(Observation::Socket { link, from: Party::Device, bytes });
    }

    /// Until the deadline given, as the loop does it.
    fn advance_to(&mut self, until: Moment) {
        while self.backend.deadline() <= until {
            self.now = self.now.max(self.backend.deadline());
            self.backend.advance(self.now);
            self.perform();
        }
        self.now = self.now.max(until);
    }

    fn take_sent(&mut self) -> Vec<What> {
        std::mem::take(&mut self.sent)
    }

    /// What was sent, in short.
    fn said(&mut self) -> String {
        let said = self.take_sent().iter().map(brief).collect::<Vec<_>>();
        said.join("; ")
    }

    /// With a channel over which the device has spoken.
    fn talking() -> Bench {
        let mut bench = Bench::new();
        bench.connect(1, "a@@@24_6f_28_aa_bb_cc@@@u");
        bench.publish(1, HELLO);
        bench.take_sent();
        bench.speak_up();
        bench
    }

    /// A datagram of the device.
    fn speak_up(&mut self) {
        let datagram = Blob(vec![1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9]);
        self.see(Observation::Datagram { from: Party::Device, bytes: datagram });
    }
}

const HELLO: &str = r#"{"type":"hello","version":3,"transport":"udp","features":{"mcp":true}}"#;

fn connect(client: &str, keep_alive: u16) -> Connect {
    let mut connect = Connect::new(client);
    connect.keep_alive = keep_alive;
    connect
}

fn publish(qos: QoS, pkid: u16, message: &str) -> Packet {
    let mut publish = Publish::new("device-server", qos, message);
    publish.pkid = pkid;
    Packet::Publish(publish)
}

fn brief(what: &What) -> String {
    match what {
        What::Mqtt { packet, .. } => format!("{packet:?}"),
        What::Request(request) => match &request.tool {
            Some(tool) => format!("call {tool} {}", request.arguments),
            None => format!("{} {}", request.method, request.arguments),
        },
        What::Message { body, .. } => {
            let word = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
            format!("{} {}", word("type"), word("state")).trim_end().to_owned()
        }
        What::Http(message) => message.start.clone(),
        What::Audio { sequence, .. } => format!("audio {}", sequence.unwrap_or_default()),
        other => format!("{other:?}"),
    }
}

const POST: &str = "POST /xiaozhi/ota/ HTTP/1.1\r\nHost: 192.168.50.1:8090\r\n\
    Client-Id: 11111111-2222-4333-8444-555555555555\r\nContent-Type: application/json\r\n\
    Device-Id: 24:6f:28:aa:bb:cc\r\nUser-Agent: bread-compact-wifi/2.4.2\r\n";

fn post_with(version: &str) -> String {
    let body = format!(r#"{{"version":2,"application":{{"version":"{version}"}}}}"#);
    format!("{POST}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// The answer to a request: raw text, and its body.
fn answer_to(settings: Settings, request: &str) -> (String, Value) {
    let mut bench = Bench::with(settings);
    bench.post(1, request);
    assert_eq!(bench.closed, [1], "each answer ends its connection");
    let text = String::from_utf8(bench.responses.remove(0)).unwrap();
    let body = text.split_once("\r\n\r\n").unwrap().1;
    (text.clone(), serde_json::from_str(body).unwrap_or_default())
}
