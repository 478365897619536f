//! UDP audio: a 16 byte header that is also the counter block of AES-128-CTR
//! (facts/xiaozhi.md 4.3).

use aes::Aes128;
use ctr::cipher::{KeyIvInit as _, StreamCipher as _};
use serde_json::Value;

/// Size of the header.
const HEADER: usize = 16;

/// The audio key of the current channel, from the server's hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key([u8; 16]);

impl Key {
    /// The key in a server hello; `None` when there is none or it is not 32 hex digits.
    pub fn of_hello(hello: &Value) -> Option<Key> {
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
    ctr::Ctr128BE::<Aes128>::new(&key.0.into(), header.into()).apply_keystream(&mut opus);
    Ok((u32::from_be_bytes([header[12], header[13], header[14], header[15]]), opus))
}
