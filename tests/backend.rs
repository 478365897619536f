//! Real recorded bytes: the backend in the place of the one that the firmware really talked to.
//! It gets what the device sent, is asked for what that bench did, and must answer alike: the same
//! kinds of messages in the same order. And robustness: whatever a device sends, it never panics.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use earwitness::backend::{Backend, Settings};
use earwitness::decode::{Decoder, Fact, What};
use earwitness::journal::{Blob, Command, Entry, Evidence, Observation, Party, Record, Service};
use earwitness::rig::import::{Options, Shipped, import};
use earwitness::scenario::{Profile, for_imported};
use earwitness::time::Moment;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

const SESSIONS: [&str; 6] = [
    "mqtt-dead-amp",
    "mqtt-es8311-healthy",
    "mqtt-healthy",
    "mqtt-healthy-nosub",
    "mqtt-reboot-nosub",
    "mqtt-stuck-volume",
];

fn settings() -> Settings {
    Settings {
        seed: 1,
        started_at_unix_ms: 1_796_072_251_000,
        host: "127.0.0.1".into(),
        mqtt_port: 1883,
        udp_port: 8884,
        keepalive: 240,
    }
}

fn records(session: &str) -> Vec<Record> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions").join(session);
    let shipped = Shipped { scenario_for: &for_imported, profile: Profile::xiaozhi() };
    let recording = import(&folder, &Options::default(), &shipped).unwrap();
    recording.records().map(Result::unwrap).collect()
}

/// The backend and its ears, in a world that does what it is told and shows it at once.
struct World {
    backend: Backend,
    ears: Decoder,
    records: u64,
    /// What the backend sent.
    sent: Vec<What>,
}

impl World {
    fn new() -> World {
        World {
            backend: Backend::new(settings()),
            ears: Decoder::default(),
            records: 0,
            sent: Vec::new(),
        }
    }

    fn see(&mut self, now: Moment, what: Observation) {
        let entry = Entry::Saw { captured_at: now, what };
        let facts = self.ears.take(&Record { n: self.records, at: now, entry });
        self.records += 1;
        for fact in facts {
            self.backend.note(now, &fact);
            self.sent.extend(of_bench(&fact));
        }
    }

    fn perform(&mut self, now: Moment) {
        let from = Party::Bench;
        for command in self.backend.take_commands() {
            let echo = match command {
                Command::Send { link, bytes } => Observation::Socket { link, from, bytes },
                Command::Mqtt { link, packet } => Observation::Mqtt { link, from, packet },
                Command::Datagram { bytes } => Observation::Datagram { from, bytes },
                Command::Close { link } => Observation::Closed { link, by: from },
                other => panic!("{other:?} is none of the backend's"),
            };
            self.see(now, echo);
        }
    }

    fn advance(&mut self, until: Moment) {
        while self.backend.deadline() <= until {
            let now = self.backend.deadline();
            self.backend.advance(now);
            self.perform(now);
        }
    }
}

/// What the bench sent; the end of a connection is nobody's message.
fn of_bench(fact: &Fact) -> Option<What> {
    let from = match &fact.what {
        What::Http(message) => message.from,
        What::Mqtt { from, .. } | What::Message { from, .. } | What::Audio { from, .. } => *from,
        What::Request(request) => request.from,
        _ => return None,
    };
    (from == Party::Bench).then(|| fact.what.clone())
}

/// The kind of a message: with the tool of a call and the state of a speech, without contents.
fn kind(what: &What) -> String {
    match what {
        What::Http(message) => format!("http {}", message.start),
        What::Mqtt { packet, .. } => {
            let packet = format!("{packet:?}");
            packet.split(['(', ' ']).next().unwrap().to_owned()
        }
        What::Request(request) => {
            format!("{} {}", request.method, request.tool.as_deref().unwrap_or_default())
        }
        What::Message { body, .. } => format!("{} {}", body["type"], body["state"]),
        What::Audio { .. } => "audio".into(),
        other => panic!("{other:?} is not the bench's"),
    }
}

/// Whether the real bench, and not the device, is the source.
fn by_bench(what: &Observation) -> bool {
    match what {
        Observation::Socket { from, .. }
        | Observation::Mqtt { from, .. }
        | Observation::Datagram { from, .. }
        | Observation::Closed { by: from, .. } => *from == Party::Bench,
        _ => false,
    }
}

/// What the real bench did of its own accord; its answers are up to the backend.
fn cue(world: &mut World, now: Moment, what: &What, sound: &Arc<[Vec<u8>]>) {
    let did = match what {
        What::Request(request) => {
            let arguments = request.arguments.clone();
            match &request.tool {
                Some(tool) => world.backend.call(tool, arguments).is_some(),
                None => world.backend.request(&request.method, arguments).is_some(),
            }
        }
        What::Message { body, .. } if body["state"] == "start" => {
            world.backend.speak(now, Arc::clone(sound))
        }
        What::Message { body, .. } if body["type"] == "goodbye" => world.backend.goodbye(),
        _ => true,
    };
    assert!(did, "{what:?} at {now}");
    world.perform(now);
}

/// The packets of the session's first sound.
fn first_sound(real: &[What]) -> Arc<[Vec<u8>]> {
    let opus = |what: &What| match what {
        What::Audio { opus, .. } => Some(opus.clone()),
        _ => None,
    };
    let mut started = real.iter().skip_while(|what| opus(what).is_none());
    std::iter::from_fn(|| started.next().and_then(opus)).collect()
}

/// What the real bench and the backend sent.
fn both(session: &str) -> (Vec<What>, Vec<What>) {
    let records = records(session);
    let mut decoder = Decoder::default();
    let facts: Vec<Vec<Fact>> = records.iter().map(|record| decoder.take(record)).collect();
    let real: Vec<What> = facts.iter().flatten().filter_map(of_bench).collect();
    let sound = first_sound(&real);
    let mut world = World::new();
    for (record, facts) in records.iter().zip(&facts) {
        let Entry::Saw { captured_at, what } = &record.entry else { continue };
        let now = *captured_at;
        world.advance(now);
        if by_bench(what) {
            let done = facts.iter().filter_map(of_bench);
            done.for_each(|what| cue(&mut world, now, &what, &sound));
        } else {
            world.see(now, what.clone());
            world.perform(now);
        }
    }
    assert_eq!(world.backend.take_refusals(), [""; 0], "{session}");
    (real, world.sent)
}

#[test]
fn the_firmware_is_answered_as_its_real_backend_answered_it() {
    for session in SESSIONS {
        let (real, ours) = both(session);
        let kinds = |sent: &[What]| sent.iter().map(kind).collect::<Vec<_>>();
        assert_eq!(kinds(&real), kinds(&ours), "{session}");
        let heard = ours.iter().filter(|what| matches!(what, What::Audio { .. })).count();
        assert!(heard == 92 || session.contains("reboot"), "{session}: {heard} packets");
    }
}

/// The paths of all members of a JSON value.
fn members(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    for (name, member) in value.as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        members(member, &path, into);
        into.insert(path);
    }
}

#[test]
fn nothing_is_missing_from_what_the_firmware_accepted() {
    let (real, ours) = both("mqtt-healthy-nosub");
    let bodies = |sent: &[What]| {
        let body = |what: &What| match what {
            What::Http(message) => serde_json::from_str(&message.body).ok(),
            What::Message { body, .. } => Some(body.clone()),
            _ => None,
        };
        sent.iter().filter_map(body).collect::<Vec<Value>>()
    };
    let paths = |value: &Value| {
        let mut paths = BTreeSet::new();
        members(value, "", &mut paths);
        paths
    };
    let (real, ours) = (bodies(&real), bodies(&ours));
    assert!(real.len() > 9 && real.len() == ours.len());
    for (real, ours) in real.iter().zip(&ours) {
        let missing: Vec<_> = paths(real).difference(&paths(ours)).cloned().collect();
        assert!(missing.is_empty(), "{missing:?} missing from {ours}");
        // The types agree as well: a string where the firmware wants a number is no number.
        for path in paths(real) {
            let (real, ours) = (real.pointer(&path).unwrap(), ours.pointer(&path).unwrap());
            let kind = |value: &Value| (value.is_string(), value.is_number(), value.is_object());
            assert_eq!(kind(real), kind(ours), "{path}");
        }
    }
    // Beyond the real answer: the keep-alive, which the firmware takes from here.
    let more: Vec<_> = paths(&ours[0]).difference(&paths(&real[0])).cloned().collect();
    assert_eq!(more, ["/mqtt/keepalive"]);
}

/// The same facts at the same moments give the same bytes.
#[test]
fn nothing_is_left_to_chance() {
    let sent = |session| both(session).1;
    assert_eq!(sent("mqtt-healthy"), sent("mqtt-healthy"));
}

/// Whatever may come over MQTT: whole packets of each kind, cut and noisy ones.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        Just(json!({ "type": "hello", "transport": "udp" })),
        Just(json!({ "type": "goodbye" })),
        Just(json!({ "type": "abort" })),
        Just(json!({ "type": "mcp", "payload": { "id": 1, "result": {} } })),
        Just(json!([1])),
    ];
    let publish = (text, 0u8..4, any::<u16>()).prop_map(|(text, flags, pkid)| {
        let (text, id) = (text.to_string(), pkid.to_be_bytes());
        let id = if flags & 2 != 0 { &id[..] } else { &[] };
        let body = [b"\0\x01t", id, text.as_bytes()].concat();
        [&[0x30 | flags, body.len() as u8], &body[..]].concat()
    });
    let connect = (3u8..6, 0u16..3).prop_map(|(level, keep_alive)| {
        let [a, b] = keep_alive.to_be_bytes();
        [&b"\x10\x0d\0\x04MQTT"[..], &[level, 2, a, b, 0, 1, b'c']].concat()
    });
    let small = (any::<u8>(), prop::collection::vec(any::<u8>(), 0..8));
    let small = small.prop_map(|(first, body)| [&[first, body.len() as u8], &body[..]].concat());
    prop_oneof![publish, connect, small, prop::collection::vec(any::<u8>(), 0..40)]
}

fn observation() -> impl Strategy<Value = Observation> {
    let from = prop_oneof![9 => Just(Party::Device), 1 => Just(Party::Bench)];
    let link = 0u32..3;
    let bytes = || prop::collection::vec(any::<u8>(), 0..40).prop_map(Blob);
    let request = prop_oneof![
        Just(Blob::from(&b"POST /xiaozhi/ota/ HTTP/1.1\r\nDevice-Id: 1:2\r\n\r\n"[..])),
        Just(Blob::from(&b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"[..])),
        bytes(),
    ];
    let mqtt = (link.clone(), from.clone(), packet().prop_map(Blob));
    let socket = (link.clone(), from.clone(), request);
    let datagram =
        prop_oneof![bytes(), Just(Blob(vec![1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9])),];
    let closed = (link.clone(), from.clone());
    prop_oneof![
        8 => mqtt.prop_map(|(link, from, packet)| Observation::Mqtt { link, from, packet }),
        2 => socket.prop_map(|(link, from, bytes)| Observation::Socket { link, from, bytes }),
        2 => (from, datagram).prop_map(|(from, bytes)| Observation::Datagram { from, bytes }),
        1 => closed.prop_map(|(link, by)| Observation::Closed { link, by }),
        1 => link.prop_map(|link| Observation::Opened { link, service: Service::Mqtt }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Nothing that comes in makes it panic, promise what it can't do, or leave a deadline behind.
    #[test]
    fn nothing_upsets_the_backend(
        events in prop::collection::vec((observation(), 0u64..900_000_000), 0..60),
    ) {
        let mut world = World::new();
        let mut now = Moment::START;
        for (k, (what, pause)) in events.into_iter().enumerate() {
            now = Moment::from_nanos(now.nanos() + pause);
            world.advance(now);
            prop_assert!(world.backend.deadline() > now);
            world.see(now, what);
            world.perform(now);
            let online = world.backend.is_online();
            prop_assert_eq!(world.backend.call("t", Value::Null).is_some(), online);
            let may_speak = world.backend.has_channel() && !world.backend.is_speaking();
            prop_assert!(online || !may_speak);
            prop_assert_eq!(world.backend.speak(now, vec![vec![1]; k].into()), may_speak);
            if k % 7 == 0 {
                prop_assert_eq!(world.backend.discover(k % 2 == 0), world.backend.is_online());
            }
            world.perform(now);
        }
    }
}
