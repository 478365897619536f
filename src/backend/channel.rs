//! An audio channel: what the hellos agreed on (facts/xiaozhi.md 4.2, 4.3).

use super::seed::{draw, hex};
use super::speech::FRAME_MS;
use crate::decode::udp::{self, Header, Key};
use serde_json::{Value, json};

/// Sample rate of the sound that is sent, hertz.
const RATE: u32 = 24_000;

/// From a hello to a goodbye.
#[derive(Debug)]
pub(super) struct Channel {
    pub session_id: String,
    key: Key,
    ssrc: [u8; 4],
    /// Packets sent so far.
    sent: u32,
    /// The device has sent a datagram, which is how its address is learnt.
    pub spoken: bool,
}

impl Channel {
    /// Channel number `k` of the run.
    pub fn new(seed: u64, k: u64) -> Channel {
        let first = |bytes: [u8; 32]| *bytes.first_chunk().expect("32 bytes hold 16");
        let [a, b, c, d, ..] = draw(seed, "ssrc", k);
        Channel {
            session_id: hex(&draw(seed, "session", k)[..4]),
            key: Key(first(draw(seed, "key", k))),
            ssrc: [a, b, c, d],
            sent: 0,
            spoken: false,
        }
    }

    /// Our answer to the device's hello.
    pub fn hello(&self, server: &str, port: u16) -> Value {
        let nonce = [&[1, 0, 0, 0], &self.ssrc[..], &[0; 8]].concat();
        json!({
            "type": "hello",
            "transport": "udp",
            "session_id": self.session_id,
            "audio_params": {
                "format": "opus",
                "sample_rate": RATE,
                "channels": 1,
                "frame_duration": FRAME_MS,
            },
            "udp": {
                "server": server,
                "port": port,
                "key": hex(&self.key.0),
                "nonce": hex(&nonce),
            },
        })
    }

    /// The datagram for the next packet; sequence numbers begin with 1.
    pub fn seal(&mut self, opus: &[u8]) -> Option<Vec<u8>> {
        let (timestamp, sequence) = (self.sent.wrapping_mul(FRAME_MS), self.sent.wrapping_add(1));
        self.sent = sequence;
        udp::seal(&self.key, Header { ssrc: self.ssrc, timestamp, sequence }, opus)
    }
}
