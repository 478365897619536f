//! Secrets never reach the disk: the lower half of every MAC address, passwords and tokens become
//! placeholders of the same length before an observation exists, also across chunk borders.

use bytes::BytesMut;
use regex::bytes::{Captures, Regex};
use rumqttc::mqttbytes::v4::Packet;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Six pairs of hex digits with one kind of separator; groups: upper half, lower half.
static MAC: LazyLock<Regex> = LazyLock::new(|| {
    let form =
        |s: &str| format!("((?:[0-9a-f]{{2}}{s}){{3}})([0-9a-f]{{2}}(?:{s}[0-9a-f]{{2}}){{2}})");
    compile(&format!("{}|{}|{}", form(":"), form("_"), form("-")))
});

/// A JSON member (also inside a JSON string) whose value must not be kept; groups: before, value.
static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    compile(r#"("[a-z_]*(?:token|password|passwd|secret|psk)\\*"\s*:\s*\\*")([^"\\]*)"#)
});

/// The credentials of an HTTP request; groups: before, value.
static HEADER: LazyLock<Regex> =
    LazyLock::new(|| compile(r"(authorization:[ \t]*(?:bearer )?)([^\r\n]*)"));

/// The end of a chunk at which any of the above may have begun.
static UNFINISHED: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r"(?:[0-9a-f]{1,2}[:_-](?:[0-9a-f:_-]{0,14})?|\b[0-9a-f]{1,11}",
        r#"|"[a-z_]{0,40}|"[a-z_]*(?:token|password|passwd|secret|psk)\\*"?"#,
        r#"\s*(?::\s*\\*"?[^"\\]*)?"#,
        r"|\ba[a-z]{0,12}|\bauthorization:[^\r\n]*)\z"
    ))
});

/// At most this many bytes wait for the end of a secret.
const MAX_HELD: usize = 8192;

fn compile(pattern: &str) -> Regex {
    Regex::new(&format!("(?i-u){pattern}")).expect("a fixed pattern")
}

/// Removes secrets from the streams of one session; placeholders are stable within it.
#[derive(Debug, Default)]
pub struct Redactor {
    /// Lower halves seen so far; the position is the placeholder's number.
    lower_halves: Vec<Vec<u8>>,
    /// Device MACs to be found without separators as well.
    bare: Vec<Vec<u8>>,
    /// Bytes of each stream that may be the beginning of a secret.
    held: BTreeMap<String, Vec<u8>>,
}

impl Redactor {
    /// A redactor that also knows `macs` when they are written without separators.
    pub fn knowing(macs: &[&str]) -> Self {
        let digits = |mac: &&str| mac.bytes().filter(u8::is_ascii_hexdigit).collect::<Vec<u8>>();
        let bare = macs.iter().map(digits).filter(|d| d.len() == 12).collect();
        Redactor { bare, ..Redactor::default() }
    }

    /// The next chunk of `stream`; what may be an unfinished secret comes with a later chunk.
    pub fn push(&mut self, stream: &str, chunk: &[u8]) -> Vec<u8> {
        let mut bytes = self.held.remove(stream).unwrap_or_default();
        bytes.extend_from_slice(chunk);
        let tail = bytes.len().saturating_sub(MAX_HELD);
        if let Some(open) = UNFINISHED.find(&bytes[tail..])
            && open.len() < MAX_HELD
        {
            let held = bytes.split_off(tail + open.start());
            self.held.insert(stream.into(), held);
        }
        self.whole(&bytes)
    }

    /// The bytes of `stream` that still waited.
    pub fn finish(&mut self, stream: &str) -> Vec<u8> {
        let bytes = self.held.remove(stream).unwrap_or_default();
        self.whole(&bytes)
    }

    /// A message that arrived in one piece.
    pub fn whole(&mut self, bytes: &[u8]) -> Vec<u8> {
        let bytes = MEMBER.replace_all(bytes, |c: &Captures| covered(&c[1], &c[2]));
        let bytes = HEADER.replace_all(&bytes, |c: &Captures| covered(&c[1], &c[2]));
        let mut bytes = MAC
            .replace_all(&bytes, |c: &Captures| {
                let part = |i: usize| (1..=6).step_by(2).find_map(|k| c.get(k + i));
                let (upper, lower) = (part(0), part(1));
                let mut out = upper.map_or(Vec::new(), |m| m.as_bytes().to_vec());
                out.extend(self.placeholder(lower.map_or(&b""[..], |m| m.as_bytes())));
                out
            })
            .into_owned();
        for bare in self.bare.clone() {
            let mut from = 0;
            while let Some(at) = find_ignoring_case(&bytes[from..], &bare) {
                let lower = from + at + 6..from + at + 12;
                let hidden = self.placeholder(&bytes[lower.clone()]);
                bytes[lower].copy_from_slice(&hidden);
                from += at + 12;
            }
        }
        bytes
    }

    /// `xx:xx:x1` for the first board, `xx:xx:x2` for the second, with the separators as found.
    fn placeholder(&mut self, lower: &[u8]) -> Vec<u8> {
        let digits: Vec<u8> =
            lower.iter().filter(|b| b.is_ascii_hexdigit()).map(u8::to_ascii_lowercase).collect();
        if lower.contains(&b'x') || digits.len() != 6 {
            return lower.to_vec();
        }
        let known = self.lower_halves.iter().position(|l| *l == digits);
        let number = known.unwrap_or_else(|| {
            self.lower_halves.push(digits);
            self.lower_halves.len() - 1
        });
        let mut out: Vec<u8> =
            lower.iter().map(|b| if b.is_ascii_hexdigit() { b'x' } else { *b }).collect();
        if let Some(last) = out.last_mut() {
            *last = *b"123456789abcdefghijklmnopqrstuvw".get(number).unwrap_or(&b'w');
        }
        out
    }
}

fn covered(before: &[u8], value: &[u8]) -> Vec<u8> {
    [before, &vec![b'x'; value.len()]].concat()
}

fn find_ignoring_case(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|w| w.eq_ignore_ascii_case(needle))
}

/// An MQTT CONNECT packet with its password covered; any other packet as it is.
pub fn redact_mqtt_connect(packet: &[u8]) -> Vec<u8> {
    if let Ok(Packet::Connect(mut connect)) = Packet::read(&mut BytesMut::from(packet), 1 << 20)
        && let Some(login) = &mut connect.login
    {
        login.password = "x".repeat(login.password.len());
        let mut out = BytesMut::new();
        if connect.write(&mut out).is_ok() && out.len() == packet.len() {
            return out.to_vec();
        }
    }
    packet.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLEAR: &str = concat!(
        "Device-Id: 24:6f:28:aa:bb:01\r\nAuthorization: Bearer bench-token\r\n\r\n",
        r#"{"mqtt":{"client_id":"G@@@24_6F_28_AA_BB_01@@@1","password":"hunter2","n":1},"#,
        r#""websocket":{"token":"bench-token"},"mac":"24:6f:28:aa:bb:02","#,
        r#""in":"{\"psk\":\"abc\"}"}"#,
        "\nFound AP: x, BSSID: de:ad:be:ef:00:11, RSSI: -52 246f28aabb01\r\n",
    );
    const HIDDEN: &str = concat!(
        "Device-Id: 24:6f:28:xx:xx:x1\r\nAuthorization: Bearer xxxxxxxxxxx\r\n\r\n",
        r#"{"mqtt":{"client_id":"G@@@24_6F_28_xx_xx_x1@@@1","password":"xxxxxxx","n":1},"#,
        r#""websocket":{"token":"xxxxxxxxxxx"},"mac":"24:6f:28:xx:xx:x2","#,
        r#""in":"{\"psk\":\"xxx\"}"}"#,
        "\nFound AP: x, BSSID: de:ad:be:xx:xx:x3, RSSI: -52 246f28xxxxx1\r\n",
    );

    #[test]
    fn secrets_keep_their_length_and_each_board_its_placeholder() {
        let mut redactor = Redactor::knowing(&["24:6f:28:aa:bb:01"]);
        let out = redactor.whole(CLEAR.as_bytes());
        assert_eq!(String::from_utf8(out).unwrap(), HIDDEN);
    }

    #[test]
    fn a_log_line_is_not_held_back() {
        let mut redactor = Redactor::default();
        let line = b"I (3984) StateMachine: State: idle -> connecting\r\n";
        assert_eq!(redactor.push("uart", line), line);
    }

    #[test]
    fn the_password_of_a_connect_is_covered() {
        let packet = b"\x10\x1c\x00\x04MQTT\x04\xc2\x00\xf0\x00\x01G\x00\x05bench\x00\x06secret";
        let hidden = redact_mqtt_connect(packet);
        assert_eq!(&hidden[..hidden.len() - 6], &packet[..packet.len() - 6]);
        assert!(hidden.ends_with(b"xxxxxx"));
    }

    proptest! {
        #[test]
        fn chunk_borders_hide_nothing(cuts in prop::collection::vec(0usize..CLEAR.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut redactor = Redactor::knowing(&["24:6f:28:aa:bb:01"]);
            let (mut out, mut from) = (Vec::new(), 0);
            for cut in cuts.into_iter().chain([CLEAR.len()]) {
                out.extend(redactor.push("uart", &CLEAR.as_bytes()[from..cut]));
                from = cut;
            }
            out.extend(redactor.finish("uart"));
            prop_assert_eq!(String::from_utf8(out).unwrap(), HIDDEN);
        }
    }
}
