//! A session with an open audio channel: packets in, sound out.

use super::bench::{Bench, KEY, NONCE};
use aes::Aes128;
use base64::Engine as _;
use ctr::cipher::{KeyIvInit as _, StreamCipher as _};
use earwitness::audio::tone::Tone;
use earwitness::board::{Input, Setup};
use std::fs;
use std::time::Duration;

pub fn hex(text: &str) -> [u8; 16] {
    std::array::from_fn(|k| u8::from_str_radix(&text[2 * k..2 * k + 2], 16).unwrap())
}

/// 0.30 s of silence, 0.90 s of 1 kHz at -12 dBFS, 0.18 s of silence, as a real session sent it.
pub fn tone_packets() -> Vec<Vec<u8>> {
    let home = env!("CARGO_MANIFEST_DIR");
    let events = fs::read_to_string(format!("{home}/tests/sessions/mqtt-healthy/events.jsonl"));
    let mut packets = Vec::new();
    let mut key = None;
    for line in events.unwrap().lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = event["text"].as_str().unwrap_or_default();
        if event["dir"] == "tx" && text.contains(r#""udp""#) {
            let hello: serde_json::Value = serde_json::from_str(text).unwrap();
            key = Some(hex(hello["udp"]["key"].as_str().unwrap()));
        }
        if event["ch"] == "udp" && event["dir"] == "tx" {
            let base64 = base64::engine::general_purpose::STANDARD;
            let datagram = base64.decode(event["b64"].as_str().unwrap()).unwrap();
            packets.push(crypt(key.unwrap(), &datagram));
        }
        if text.contains(r#""state":"stop""#) && !packets.is_empty() {
            break;
        }
    }
    packets
}

/// The payload of a datagram, decrypted or encrypted.
pub fn crypt(key: [u8; 16], datagram: &[u8]) -> Vec<u8> {
    let mut payload = datagram[16..].to_vec();
    let header: [u8; 16] = datagram[..16].try_into().unwrap();
    ctr::Ctr128BE::<Aes128>::new(&key.into(), &header.into()).apply_keystream(&mut payload);
    payload
}

/// A session with an open channel.
pub struct Session {
    pub bench: Bench,
    pub sequence: u32,
}

impl Session {
    pub fn open(setup: Setup) -> Session {
        let mut bench = Bench::online(setup);
        bench.press();
        bench.until("State: connecting -> listening", 2.0);
        bench.run(1.0);
        Session { bench, sequence: 0 }
    }

    pub fn send(&mut self, packet: &[u8]) {
        self.sequence += 1;
        let mut datagram = hex(NONCE).to_vec();
        datagram[2..4].copy_from_slice(&(packet.len() as u16).to_be_bytes());
        datagram[12..16].copy_from_slice(&self.sequence.to_be_bytes());
        datagram.extend_from_slice(packet);
        let payload = crypt(hex(KEY), &datagram);
        datagram[16..].copy_from_slice(&payload);
        self.bench.input(Input::Datagram(&datagram));
    }

    /// Plays the tone; returns what the loudspeaker gave, without gaps and silence around.
    pub fn play(&mut self) -> Vec<f64> {
        self.bench.publish(r#"{"type":"tts","state":"start","session_id":"s-1"}"#);
        self.bench.run(0.2);
        let first = self.bench.sound.len();
        for (n, packet) in tone_packets().iter().enumerate() {
            self.send(packet);
            self.bench.run(if n < 4 { 0.0 } else { 0.06 });
        }
        self.bench.publish(r#"{"type":"tts","state":"stop","session_id":"s-1"}"#);
        self.bench.run(1.5);
        let mut expected = self.bench.sound[first].0;
        let mut sound = Vec::new();
        for (at, samples) in &self.bench.sound[first..] {
            assert_eq!(*at, expected, "a gap");
            expected = *at + Duration::from_secs(samples.len() as u64) / 24_000;
            sound.extend(samples.iter().map(|&x| f64::from(x)));
        }
        sound
    }

    /// Level in dBFS of the tone at volume `volume`.
    pub fn level(&mut self, volume: i32) -> f64 {
        assert_eq!(self.bench.set_volume(volume).as_deref(), Some("true"));
        level(&self.play(), 1000.0)
    }
}

pub fn level(sound: &[f64], hz: f64) -> f64 {
    // 0.5 s from the middle of the tone.
    let middle = sound.len() * 75 / 138;
    let tone = Tone::measure(&sound[middle - 6000..middle + 6000], 24000.0, hz, 0.01);
    assert!((tone.hz - hz).abs() < 1.0, "{} Hz", tone.hz);
    tone.dbfs()
}
