//! What the firmware's libraries make of bytes: JSON as cJSON reads it, and the cipher of the
//! audio datagrams.

use aes::Aes128;
use ctr::cipher::{KeyIvInit as _, StreamCipher as _};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A JSON value as cJSON keeps it: members in order, duplicates and all.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List,
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads the value at the beginning of `bytes`; what follows it is ignored.
    pub fn parse(bytes: &[u8]) -> Option<Json> {
        let text = String::from_utf8_lossy(bytes);
        serde_json::Deserializer::from_str(&text).into_iter().next()?.ok()
    }

    /// The first member of that name, in whatever case.
    pub fn get(&self, name: &str) -> Option<&Json> {
        let Json::Object(members) = self else { return None };
        members.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The text of a string member.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number as C's int: the fraction is cut off, what doesn't fit saturates.
    pub fn int(&self) -> Option<i32> {
        match self {
            Json::Number(number) => Some(*number as i32),
            _ => None,
        }
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        matches!(self, Json::Object(_))
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        while list.next_element::<Json>()?.is_some() {}
        Ok(Json::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Json::Object(members))
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

/// A text with quotes around it, escaped for JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Size of a datagram's header.
pub(super) const HEADER: usize = 16;

/// The 16 bytes that 32 hex digits stand for.
pub(super) fn hex16(text: &str) -> Option<[u8; HEADER]> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits: [u8; 2 * HEADER] = digits?.try_into().ok()?;
    Some(std::array::from_fn(|k| digits[2 * k] << 4 | digits[2 * k + 1]))
}

/// Encrypts or decrypts; the header is the first counter block.
pub(super) fn cipher(key: &[u8; 16], header: &[u8; HEADER], payload: &mut [u8]) {
    ctr::Ctr128BE::<Aes128>::new(key.into(), header.into()).apply_keystream(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_as_cjson_reads_it() {
        let json = Json::parse(br#"{"Volume":57,"volume":58,"a":[1,{"b":2}]} trailing"#).unwrap();
        assert_eq!(json.get("VOLUME").unwrap().int(), Some(57));
        assert_eq!(json.get("a"), Some(&Json::List));
        assert_eq!(Json::parse(b"{\"jsonrpc\":"), None);
        let ints =
            [("60.9", 60), ("-0.5", 0), ("1e3", 1000), ("3e9", i32::MAX), ("-3e9", i32::MIN)];
        for (text, int) in ints {
            assert_eq!(Json::parse(text.as_bytes()).unwrap().int(), Some(int), "{text}");
        }
        assert_eq!(Json::parse(b"true").unwrap().int(), None);
    }

    #[test]
    fn hex_is_32_digits_or_nothing() {
        let bytes = hex16("000102030405060708090a0b0c0d0eFF").unwrap();
        assert_eq!((bytes[1], bytes[15]), (1, 255));
        assert_eq!(hex16("00"), None);
        assert_eq!(hex16("zz0102030405060708090a0b0c0d0eFF"), None);
    }
}
