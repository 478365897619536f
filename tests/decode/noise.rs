//! Robustness: bytes that mean nothing. Each way in gets its share of 20 MB of seeded noise;
//! nothing panics, nothing grows beyond what came in, and what is not understood is said once.

use super::{connect, datagram, decode, mqtt, publish, records, socket};
use earwitness::decode::{Decoder, Fact, What};
use earwitness::journal::{Entry, Observation, Party, Record};

const MIB: usize = 1 << 20;
const SIDES: [Party; 2] = [Party::Device, Party::Bench];
const HELLO: &str = concat!(
    r#"{"type":"hello","transport":"udp","session_id":"s-9","#,
    r#""udp":{"server":"192.168.50.1","port":8884,"#,
    r#""key":"000102030405060708090a0b0c0d0e0f","nonce":"01000000000000010000000000000000"}}"#,
);

/// SplitMix64: the same noise on every machine.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// Together `total` bytes in pieces of up to `longest`.
    fn pieces(&mut self, total: usize, longest: usize) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        let mut left = total;
        while left > 0 {
            let count = (1 + self.below(longest)).min(left);
            pieces.push(self.bytes(count));
            left -= count;
        }
        pieces
    }

    /// `text` with one to four of its bits flipped.
    fn flipped(&mut self, text: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        for _ in 0..1 + self.below(4) {
            let bit = self.below(8 * text.len());
            text[bit / 8] ^= 1 << (bit % 8);
        }
        text
    }

    /// Words of a JSON grammar in no order.
    fn jsonish(&mut self, count: usize) -> String {
        const WORDS: [&str; 16] = [
            "{",
            "}",
            "[",
            "]",
            ":",
            ",",
            "\"id\"",
            "\"type\":\"mcp\"",
            "\"payload\":{",
            "\\",
            "\"",
            "-1e999",
            "18446744073709551616",
            "\"\\ud800\"",
            "null",
            "\"method\":\"tools/call\"",
        ];
        (0..count).map(|_| WORDS[self.below(WORDS.len())]).collect()
    }
}

fn size(records: &[Record]) -> usize {
    let bytes = |record: &Record| match &record.entry {
        Entry::Saw {
            what:
                Observation::Uart(bytes)
                | Observation::Socket { bytes, .. }
                | Observation::Mqtt { packet: bytes, .. }
                | Observation::Datagram { bytes, .. },
            ..
        } => bytes.0.len(),
        _ => 0,
    };
    records.iter().map(bytes).sum()
}

/// Decodes without a panic; the facts hold no more than the bytes can have brought (an invalid
/// byte becomes the three of U+FFFD, and a console line is told with its parts).
fn survives(observations: impl IntoIterator<Item = Observation>) -> (usize, Vec<Fact>) {
    let records = records(observations);
    let came = size(&records);
    let facts = decode(&records);
    let held: usize = facts.iter().map(|fact| held(&fact.what)).sum();
    assert!(held <= 8 * came + 200 * records.len(), "{held} bytes of {came}");
    assert!(facts.len() <= came + 2 * records.len(), "{} facts of {came} bytes", facts.len());
    (came, facts)
}

fn held(what: &What) -> usize {
    match what {
        What::Uart(line) => 2 * line.text.len(),
        What::Malformed { raw, .. } => raw.len(),
        What::Audio { opus, .. } => opus.len(),
        What::Ignored { why } => why.len(),
        What::Http(message) => message.body.len() + message.start.len(),
        What::Message { body, .. } => body.to_string().len(),
        _ => 0,
    }
}

fn ignored(facts: &[Fact]) -> usize {
    facts.iter().filter(|fact| matches!(fact.what, What::Ignored { .. })).count()
}

fn upgrade() -> [Observation; 2] {
    [
        socket(
            1,
            Party::Device,
            b"GET /x HTTP/1.1\r\nUpgrade: websocket\r\nProtocol-Version: 2\r\n\r\n",
        ),
        socket(1, Party::Bench, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
    ]
}

#[test]
fn console_noise() {
    let mut noise = Noise(1);
    let mut bytes = noise.pieces(4 * MIB, 4096);
    bytes.extend(noise.pieces(MIB / 2, 3));
    bytes.push(noise.bytes(MIB));
    // No line end ever comes.
    bytes.push(vec![b'x'; MIB]);
    let (came, facts) = survives(bytes.into_iter().map(|b| Observation::Uart(b.into())));
    assert_eq!(came, 6 * MIB + MIB / 2);
    for fact in &facts {
        if let What::Uart(line) = &fact.what {
            assert!(line.text.len() <= 3 * 16 * 1024);
        }
    }
}

#[test]
fn connection_noise() {
    let mut noise = Noise(2);
    for from in SIDES {
        let http = noise.pieces(MIB, 2000);
        let (_, facts) = survives(http.iter().map(|bytes| socket(1, from, bytes)));
        assert_eq!(ignored(&facts), 1, "the rest of a broken direction is passed over");
        // Many short connections, so that noise meets the parsers at their beginning, too.
        let mut short = Vec::new();
        for (link, bytes) in (1..).zip(noise.pieces(MIB / 2, 400)) {
            short.push(socket(link, from, &bytes));
            short.push(Observation::Closed { link, by: from });
        }
        survives(short);
        let mut frames: Vec<_> = upgrade().into();
        frames.extend(noise.pieces(MIB, 2000).iter().map(|bytes| socket(1, from, bytes)));
        survives(frames);
        // Whole frames with noise in them: nothing breaks, and each message is told.
        let mut framed: Vec<_> = upgrade().into();
        for bytes in noise.pieces(MIB, 4000) {
            let head = [[0x81, 0x82][noise.below(2)], 126];
            let length = (bytes.len() as u16).to_be_bytes();
            framed.push(socket(1, from, &[&head, &length[..], &bytes].concat()));
        }
        let count = framed.len();
        let (_, facts) = survives(framed);
        assert_eq!(facts.len(), count + 1, "two HTTP messages, a connection, and each frame");
        // A whole session with flipped bits, time and again.
        let session = upgrade().into_iter().map(|part| match part {
            Observation::Socket { bytes, .. } => bytes.0,
            _ => Vec::new(),
        });
        let session: Vec<Vec<u8>> = session.chain([b"\x81\x8212341\x06".to_vec()]).collect();
        let mut flipped = Vec::new();
        for link in 2..3000 {
            for (part, side) in session.iter().zip([SIDES[0], SIDES[1], from]) {
                flipped.push(socket(link, side, &noise.flipped(part)));
                flipped.push(socket(link, side, part));
            }
            flipped.push(Observation::Closed { link, by: from });
        }
        survives(flipped);
    }
}

#[test]
fn mqtt_noise() {
    let mut noise = Noise(3);
    let valid = [
        connect(1),
        publish(1, Party::Bench, HELLO),
        publish(1, Party::Device, r#"{"type":"mcp","payload":{"id":1,"result":{"x":[1,2]}}}"#),
    ];
    // Connack, puback, pubrec, pubrel, pubcomp, subscribe, suback, unsubscribe, unsuback,
    // pingreq, pingresp, disconnect.
    let small: [&[u8]; 12] = [
        b"\x20\x02\x00\x00",
        b"\x40\x02\x00\x01",
        b"\x50\x02\x00\x01",
        b"\x62\x02\x00\x01",
        b"\x70\x02\x00\x01",
        b"\x82\x06\x00\x01\x00\x01a\x00",
        b"\x90\x03\x00\x01\x00",
        b"\xa2\x05\x00\x01\x00\x01a",
        b"\xb0\x02\x00\x01",
        b"\xc0\x00",
        b"\xd0\x00",
        b"\xe0\x00",
    ];
    let whole = |observation: &Observation| match observation {
        Observation::Mqtt { packet, .. } => packet.0.clone(),
        _ => Vec::new(),
    };
    let valid: Vec<Vec<u8>> =
        valid.iter().map(whole).chain(small.iter().map(|packet| packet.to_vec())).collect();
    for from in SIDES {
        let random = noise.pieces(MIB, 600);
        survives(random.iter().map(|packet| mqtt(1, from, packet)));
        // Every type with honest length and noise in it.
        let typed = noise
            .pieces(MIB / 2, 127)
            .into_iter()
            .map(|bytes| [&[noise.next() as u8, bytes.len() as u8], &bytes[..]].concat());
        let typed: Vec<_> = typed.map(|packet| mqtt(1, from, &packet)).collect();
        survives(typed);
        let flipped = (0..8000).map(|k| noise.flipped(&valid[k % valid.len()]));
        let flipped: Vec<_> = flipped.map(|packet| mqtt(1, from, &packet)).collect();
        survives(flipped);
        let cut = valid.iter().flat_map(|p| (0..p.len()).map(|end| mqtt(1, from, &p[..end])));
        survives(cut);
    }
}

#[test]
fn datagram_noise() {
    let mut noise = Noise(4);
    for key in [None, Some(publish(1, Party::Bench, HELLO))] {
        for from in SIDES {
            let random = noise.pieces(MIB / 2, 1500);
            survives(key.iter().cloned().chain(random.iter().map(|d| datagram(from, d))));
            let headed: Vec<_> = noise.pieces(MIB / 2, 1400);
            let count = headed.len();
            let headed = headed.into_iter().map(|payload| {
                let length = (payload.len() as u16).to_be_bytes();
                let rest = [0u8; 12];
                datagram(from, &[&[1, 0], &length[..], &rest, &payload].concat())
            });
            let (_, facts) = survives(key.iter().cloned().chain(headed));
            let expected = if key.is_some() { 0 } else { count };
            assert_eq!(ignored(&facts), expected, "only a key makes it audio");
        }
    }
}

#[test]
fn message_noise() {
    let mut noise = Noise(5);
    for from in SIDES {
        let mut texts = Vec::new();
        let mut total = 0;
        while total < 3 * MIB / 2 {
            let text = match noise.below(3) {
                0 => noise.jsonish(300),
                1 => {
                    let deep = 1 + noise.below(4000);
                    format!("{{\"type\":\"mcp\",\"payload\":{}", "[".repeat(deep))
                }
                _ => String::from_utf8_lossy(&noise.flipped(HELLO.as_bytes())).into_owned(),
            };
            total += text.len();
            texts.push(publish(1, from, &text));
        }
        let (_, facts) = survives(texts);
        assert!(facts.iter().any(|f| matches!(f.what, What::Malformed { .. })));
    }
}

/// Inputs on which a careless parser takes quadratic time: minutes instead of a second.
#[test]
fn no_input_is_slow() {
    // Two million frames in one chunk; and a head, a body and a frame that come byte by byte.
    let tiny = upgrade().into_iter().chain([socket(1, Party::Bench, &[0x89, 0].repeat(2 * MIB))]);
    assert_eq!(survives(tiny).1.len(), 3);
    let audio: Vec<u8> = [0x82, 1, 0].repeat(MIB / 8);
    let audio = [
        socket(1, Party::Device, b"GET /x HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"),
        socket(1, Party::Bench, b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        socket(1, Party::Bench, &audio),
    ];
    assert_eq!(survives(audio).1.len(), 3 + MIB / 8);

    let byte_by_byte = |handshake: &[Observation], head: &[u8], count: usize, expect: usize| {
        let bytes = head.iter().copied().chain(std::iter::repeat_n(b'x', count));
        let bytes = bytes.map(|byte| socket(1, Party::Bench, &[byte]));
        let mut decoder = Decoder::default();
        let all = records(handshake.iter().cloned().chain(bytes));
        let facts: usize = all.iter().map(|record| decoder.take(record).len()).sum();
        assert_eq!(facts, expect, "{:?}", String::from_utf8_lossy(head));
    };
    byte_by_byte(&[], b"HTTP/1.1 200 OK\r\nX: ", MIB, 1);
    byte_by_byte(&[], b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n", 300_000, 1);
    byte_by_byte(&upgrade(), b"\x82\x7f\0\0\0\0\0\x04\0\0", MIB / 4, 4);
    // Console lines of 16 KiB that begin like something again and again.
    let words =
        ["rst:0x1 (", "ESP-ROM:", "ets Jul 29 ", "Guru Meditation Error: Core ", "\x1b[", "I (1) "];
    for word in words {
        let bytes = word.repeat(2 * MIB / word.len()).into_bytes();
        survives([Observation::Uart(bytes.into())]);
    }
}
