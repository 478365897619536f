//! Independent implementation: Debian's mosquitto clients talk to the MQTT gateway over TCP.
//!
//! Needs `mosquitto_pub` and `mosquitto_sub` (Debian: mosquitto-clients). A check that nobody made
//! is not a pass, so this fails without them, unless EARWITNESS_SKIP_MOSQUITTO=1 asks for less.

#![cfg(feature = "cli")]
// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use bytes::BytesMut;
use earwitness::backend::{Backend, Settings};
use earwitness::decode::{Control, Decoder, Fact, What};
use earwitness::journal::{Command, Entry, Observation, Party, Record, Service};
use earwitness::time::Moment;
use rumqttc::mqttbytes::{Error, check};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// How often the backend is asked while nothing happens; time counts in these.
const TICK: Duration = Duration::from_millis(20);

/// Nothing here takes as long.
const LIMIT: Duration = Duration::from_secs(60);

enum Event {
    Accepted(u32, TcpStream),
    Saw(Observation),
}

/// Accepts connections and tells what comes, packet by packet.
fn listen(listener: TcpListener, events: Sender<Event>) {
    for (link, stream) in (1..).zip(listener.incoming()) {
        let stream = stream.unwrap();
        let ours = stream.try_clone().unwrap();
        if events.send(Event::Accepted(link, ours)).is_err() {
            return;
        }
        let events = events.clone();
        thread::spawn(move || read(link, stream, &events));
    }
}

fn read(link: u32, mut stream: TcpStream, events: &Sender<Event>) {
    let (mut waiting, mut chunk) = (BytesMut::new(), [0; 4096]);
    while let Ok(count @ 1..) = stream.read(&mut chunk) {
        waiting.extend_from_slice(&chunk[..count]);
        while !waiting.is_empty() {
            let length = match check(waiting.iter(), 1 << 20) {
                Ok(header) => header.frame_length(),
                Err(Error::InsufficientBytes(_)) => break,
                Err(_) => waiting.len(),
            };
            let packet = waiting.split_to(length).to_vec().into();
            let what = Observation::Mqtt { link, from: Party::Device, packet };
            drop(events.send(Event::Saw(what)));
        }
    }
    drop(events.send(Event::Saw(Observation::Closed { link, by: Party::Device })));
}

/// The gateway on a port of its own.
struct Gateway {
    port: u16,
    backend: Backend,
    decoder: Decoder,
    events: Receiver<Event>,
    streams: BTreeMap<u32, TcpStream>,
    now: Moment,
    facts: Vec<Fact>,
}

impl Gateway {
    fn open() -> Gateway {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, events) = channel();
        thread::spawn(move || listen(listener, sender));
        let settings = Settings {
            seed: 1,
            started_at_unix_ms: 0,
            host: "127.0.0.1".into(),
            mqtt_port: port,
            udp_port: 1,
            keepalive: 60,
        };
        let (backend, decoder) = (Backend::new(settings), Decoder::default());
        let (streams, facts) = Default::default();
        Gateway { port, backend, decoder, events, streams, now: Moment::START, facts }
    }

    fn client(&self, program: &str, arguments: &[&str]) -> Child {
        std::process::Command::new(program)
            .args(["-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"))
    }

    /// Runs until `done` says so.
    fn until(&mut self, what: &str, mut done: impl FnMut(&Gateway) -> bool) {
        while !done(self) {
            assert!(self.now < Moment::START + LIMIT, "no {what}: {:#?}", self.facts);
            match self.events.recv_timeout(TICK) {
                Ok(Event::Accepted(link, stream)) => {
                    self.streams.insert(link, stream);
                    self.see(Observation::Opened { link, service: Service::Mqtt });
                }
                Ok(Event::Saw(what)) => self.see(what),
                Err(RecvTimeoutError::Timeout) => {
                    self.now = self.now + TICK;
                    self.backend.advance(self.now);
                }
                Err(RecvTimeoutError::Disconnected) => panic!("nobody listens"),
            }
            self.perform();
        }
    }

    /// What the client says in the end.
    fn finish(&mut self, mut client: Child) -> Output {
        self.until("end of the client", |_| client.try_wait().unwrap().is_some());
        client.wait_with_output().unwrap()
    }

    fn see(&mut self, what: Observation) {
        let entry = Entry::Saw { captured_at: self.now, what };
        let record = Record { n: self.facts.len() as u64, at: self.now, entry };
        for fact in self.decoder.take(&record) {
            self.backend.note(self.now, &fact);
            self.facts.push(fact);
        }
    }

    fn perform(&mut self) {
        for command in self.backend.take_commands() {
            match command {
                Command::Mqtt { link, packet } => {
                    // A client that is gone is told by its reader.
                    drop(self.streams[&link].try_clone().unwrap().write_all(&packet.0));
                    self.see(Observation::Mqtt { link, from: Party::Bench, packet });
                }
                Command::Close { link } => {
                    if let Some(stream) = self.streams.remove(&link) {
                        drop(stream.shutdown(Shutdown::Both));
                    }
                    self.see(Observation::Closed { link, by: Party::Bench });
                }
                other => panic!("{other:?} is no business of a gateway"),
            }
        }
    }

    fn count(&self, wanted: impl Fn(&What) -> bool) -> usize {
        self.facts.iter().filter(|fact| wanted(&fact.what)).count()
    }

    fn packets(&self, party: Party, wanted: impl Fn(&Control) -> bool) -> usize {
        self.count(|what| match what {
            What::Mqtt { from, packet } => *from == party && wanted(packet),
            _ => false,
        })
    }
}

/// Whether the clients are there.
fn clients() -> bool {
    if std::env::var_os("EARWITNESS_SKIP_MOSQUITTO").is_some_and(|v| v == "1") {
        eprintln!("SKIPPED, EARWITNESS_SKIP_MOSQUITTO=1: no other MQTT client tried the gateway");
        return false;
    }
    for program in ["mosquitto_pub", "mosquitto_sub"] {
        let found = std::process::Command::new(program).arg("--help").output();
        assert!(
            found.is_ok(),
            "{program} is not installed (Debian: mosquitto-clients); the gateway is tried with \
             other people's clients. EARWITNESS_SKIP_MOSQUITTO=1 goes without."
        );
    }
    true
}

fn ping(packet: &Control) -> bool {
    matches!(packet, Control::PingResp)
}

#[test]
fn a_subscriber_is_acknowledged_kept_alive_and_told_what_it_never_asked_for() {
    if !clients() {
        return;
    }
    let mut gateway = Gateway::open();
    let arguments = ["-i", "24:6f:28:aa:bb:cc", "-t", "elsewhere/#", "-t", "x", "-k", "5"];
    let format = ["-q", "1", "-C", "2", "-F", "%q %r %t %p"];
    let client = gateway.client("mosquitto_sub", &[&arguments[..], &format].concat());
    let subscribed = |packet: &Control| matches!(packet, Control::SubAck(_));
    gateway.until("SUBACK", |gateway| gateway.packets(Party::Bench, subscribed) == 1);
    assert!(gateway.backend.is_online());
    let first = gateway.backend.request("tools/list", json!({ "withUserTools": true })).unwrap();
    gateway.until("PINGRESP", |gateway| gateway.packets(Party::Bench, ping) == 1);
    let second = gateway.backend.call("self.reboot", Value::Null).unwrap();
    let output = gateway.finish(client);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    for (line, id) in lines.into_iter().zip([first, second]) {
        let json = line.strip_prefix("0 0 devices/p2p/24_6f_28_aa_bb_cc ").expect(line);
        let message: Value = serde_json::from_str(json).unwrap();
        assert_eq!(message.pointer("/payload/id"), Some(&id.into()), "{line}");
    }
    gateway.until("end", |gateway| !gateway.backend.is_online());
    assert_eq!(gateway.backend.take_refusals(), [""; 0]);
}

#[test]
fn a_publisher_is_acknowledged_at_each_quality() {
    if !clients() {
        return;
    }
    for (quality, confirmed) in [("0", 0), ("1", 1), ("2", 2)] {
        let mut gateway = Gateway::open();
        let hello = r#"{"type":"listen","state":"start"}"#;
        let arguments = ["-i", "board", "-t", "device-server", "-m", hello, "-q", quality];
        let client = gateway.client("mosquitto_pub", &arguments);
        let output = gateway.finish(client);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        gateway.until("orderly end", |gateway| {
            gateway.count(|what| matches!(what, What::Disconnected { orderly: true, .. })) == 1
        });
        let answers = |packet: &Control| {
            matches!(packet, Control::PubAck(_) | Control::PubRec(_) | Control::PubComp(_))
        };
        assert_eq!(gateway.packets(Party::Bench, answers), confirmed, "quality {quality}");
        let heard = |what: &What| match what {
            What::Message { from: Party::Device, body } => body["type"] == "listen",
            _ => false,
        };
        assert_eq!(gateway.count(heard), 1, "quality {quality}");
        assert_eq!(gateway.backend.take_refusals(), [""; 0], "quality {quality}");
    }
}

#[test]
fn clients_of_other_protocol_versions_are_turned_away() {
    if !clients() {
        return;
    }
    for version in ["mqttv31", "mqttv5"] {
        let mut gateway = Gateway::open();
        let arguments = ["-i", "board", "-t", "t", "-m", "{}", "-V", version, "-q", "1"];
        let client = gateway.client("mosquitto_pub", &arguments);
        let output = gateway.finish(client);
        assert!(!output.status.success(), "{version}");
        let refused = |packet: &Control| matches!(packet, Control::ConnAck(1));
        assert!(gateway.packets(Party::Bench, refused) >= 1, "{version}: {:#?}", gateway.facts);
        assert!(!gateway.backend.is_online(), "{version}");
        let messages = gateway.count(|what| matches!(what, What::Message { .. }));
        assert_eq!(messages, 0, "{version}");
    }
}
