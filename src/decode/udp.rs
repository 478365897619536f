//! UDP audio: a 16 byte header that is also the counter block of AES-128-CTR
//! (facts/xiaozhi.md 4.3).

use aes::Aes128;
use ctr::cipher::{KeyIvInit as _, StreamCipher as _};
use serde_json::Value;

/// Size of the header.
const HEADER: usize = 16;

/// The largest datagram that the device receives, bytes.
pub const MAX_DATAGRAM: usize = 1500;

/// The longest packet that fits into a datagram, bytes.
pub const MAX_PAYLOAD: usize = MAX_DATAGRAM - HEADER;

/// The audio key of the current channel, from the server's hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key in a server hello; `None` when there is none or it is not 32 hex digits.
    pub(super) fn of_hello(hello: &Value) -> Option<Key> {
        let text = hello.pointer("/udp/key")?.as_str()?;
        let mut key = [0; 16];
        if text.len() != 32 || !text.is_ascii() {
            return None;
        }
        for (k, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * k..2 * k + 2], 16).ok()?;
        }
        Some(Key(key))
    }

    /// Encrypts and decrypts: the header is the first counter block.
    fn apply(&self, header: &[u8; HEADER], payload: &mut [u8]) {
        ctr::Ctr128BE::<Aes128>::new(&self.0.into(), header.into()).apply_keystream(payload);
    }
}

/// What precedes the packet in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Copied from bytes 4 to 7 of the hello's nonce.
    pub ssrc: [u8; 4],
    /// Milliseconds of sound before this packet.
    pub timestamp: u32,
    /// Counts datagrams of the channel from 1; the device takes no 0 and no repetition.
    pub sequence: u32,
}

/// The datagram with an Opus packet; `None` when the packet is empty or longer than
/// [`MAX_PAYLOAD`].
pub fn seal(key: &Key, header: Header, opus: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(opus.len()).ok()?;
    if opus.is_empty() || opus.len() > MAX_PAYLOAD {
        return None;
    }
    let mut bytes = [0; HEADER];
    bytes[0] = 1;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes[4..8].copy_from_slice(&header.ssrc);
    bytes[8..12].copy_from_slice(&header.timestamp.to_be_bytes());
    bytes[12..].copy_from_slice(&header.sequence.to_be_bytes());
    let mut datagram = [&bytes, opus].concat();
    key.apply(&bytes, &mut datagram[HEADER..]);
    Some(datagram)
}

/// Sequence number and decrypted Opus packet of a datagram.
pub(super) fn open(datagram: &[u8], key: Option<&Key>) -> Result<(u32, Vec<u8>), &'static str> {
    let Some((header, payload)) = datagram.split_first_chunk::<HEADER>() else {
        return Err("a datagram shorter than its header");
    };
    if header[0] != 1 {
        return Err("a datagram that is no audio");
    }
    if usize::from(u16::from_be_bytes([header[2], header[3]])) != payload.len() {
        return Err("a datagram whose length field is wrong");
    }
    let key = key.ok_or("a datagram before any server hello with a key")?;
    let mut opus = payload.to_vec();
    key.apply(header, &mut opus);
    Ok((u32::from_be_bytes([header[12], header[13], header[14], header[15]]), opus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_can_be_opened_with_the_key_and_has_the_devices_layout() {
        let key = Key(*b"0123456789abcdef");
        let header = Header { ssrc: [1, 2, 3, 4], timestamp: 0x0102, sequence: 0x0304 };
        let datagram = seal(&key, header, b"opus").unwrap();
        assert_eq!(datagram[..HEADER], *b"\x01\0\0\x04\x01\x02\x03\x04\0\0\x01\x02\0\0\x03\x04");
        assert_ne!(datagram[HEADER..], *b"opus");
        assert_eq!(open(&datagram, Some(&key)), Ok((0x0304, b"opus".to_vec())));
        let longest = vec![7; MAX_PAYLOAD];
        assert_eq!(seal(&key, header, &longest).map(|d| d.len()), Some(MAX_DATAGRAM));
        assert_eq!(seal(&key, header, &[longest, vec![7]].concat()), None);
        assert_eq!(seal(&key, header, b""), None);
    }
}
