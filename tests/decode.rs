//! The decoder from records to facts. Three kinds of evidence, one module each: real recorded
//! bytes (`rechunk`, `replies`), closed form (`frames`: messages built by hand from RFC 6455 and
//! facts of the firmware's source), and robustness (`noise`: bytes that mean nothing).

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "decode/frames.rs"]
mod frames;
#[path = "decode/noise.rs"]
mod noise;
#[path = "decode/rechunk.rs"]
mod rechunk;
#[path = "decode/replies.rs"]
mod replies;

use earwitness::decode::{Decoder, Fact, What};
use earwitness::journal::{Blob, Entry, Observation, Party, Record};
use earwitness::time::Moment;
use rumqttc::mqttbytes::QoS;
use rumqttc::mqttbytes::v4::{Connect, Publish};

/// Observations as the records of a session, one millisecond apart.
fn records(observations: impl IntoIterator<Item = Observation>) -> Vec<Record> {
    let record = |(n, what): (u64, Observation)| {
        let at = Moment::from_nanos(n * 1_000_000);
        Record { n, at, entry: Entry::Saw { captured_at: at, what } }
    };
    (0..).zip(observations).map(record).collect()
}

/// Everything that the records say.
fn decode(records: &[Record]) -> Vec<Fact> {
    let mut decoder = Decoder::default();
    let mut facts: Vec<Fact> = records.iter().flat_map(|record| decoder.take(record)).collect();
    facts.extend(decoder.finish());
    facts
}

fn whats(observations: impl IntoIterator<Item = Observation>) -> Vec<What> {
    decode(&records(observations)).into_iter().map(|fact| fact.what).collect()
}

fn socket(link: u32, from: Party, bytes: &[u8]) -> Observation {
    Observation::Socket { link, from, bytes: bytes.into() }
}

fn mqtt(link: u32, from: Party, packet: &[u8]) -> Observation {
    Observation::Mqtt { link, from, packet: packet.into() }
}

fn connect(link: u32) -> Observation {
    let mut packet = bytes::BytesMut::new();
    Connect::new("board").write(&mut packet).unwrap();
    mqtt(link, Party::Device, &packet)
}

fn publish(link: u32, from: Party, payload: &str) -> Observation {
    let mut packet = bytes::BytesMut::new();
    Publish::new("devices/p2p/x", QoS::AtMostOnce, payload).write(&mut packet).unwrap();
    mqtt(link, from, &packet)
}

fn datagram(from: Party, bytes: &[u8]) -> Observation {
    Observation::Datagram { from, bytes: Blob::from(bytes) }
}
