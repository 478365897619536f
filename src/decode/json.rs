//! JSON objects that name a key twice: either value could be meant, so neither is evidence.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;

/// The first key that an object anywhere in `text` names twice; `None` also when it is no JSON.
pub fn doubled_key(text: &[u8]) -> Option<String> {
    serde_json::from_slice::<Doubled>(text).ok()?.0
}

/// What is left of a value: its first doubled key.
struct Doubled(Option<String>);

impl<'de> Deserialize<'de> for Doubled {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Search)
    }
}

struct Search;

impl<'de> Visitor<'de> for Search {
    type Value = Doubled;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Doubled, M::Error> {
        let (mut keys, mut doubled) = (BTreeSet::new(), None);
        while let Some((key, Doubled(inner))) = map.next_entry::<String, Doubled>()? {
            doubled = doubled.or_else(|| keys.contains(&key).then(|| key.clone())).or(inner);
            keys.insert(key);
        }
        Ok(Doubled(doubled))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Doubled, S::Error> {
        let mut doubled = None;
        while let Some(Doubled(inner)) = seq.next_element()? {
            doubled = doubled.or(inner);
        }
        Ok(Doubled(doubled))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Doubled, E> {
        Ok(Doubled(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Doubled, E> {
        Ok(Doubled(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Doubled, E> {
        Ok(Doubled(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Doubled, E> {
        Ok(Doubled(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Doubled, E> {
        Ok(Doubled(None))
    }

    fn visit_unit<E>(self) -> Result<Doubled, E> {
        Ok(Doubled(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubled_key_is_found_wherever_it_is() {
        let table = [
            (r#"{"a":1,"b":[{"a":1}],"c":{"a":2.5e1,"b":null,"d":true,"e":"a"}}"#, None),
            (r#"{"a":1,"b":-2,"a":1}"#, Some("a")),
            (r#"[0,{"b":{"x":1,"x":{}}}]"#, Some("x")),
            (r#"{"\u0061":1,"a":1}"#, Some("a")),
            (r#"{"a":1,"a":"#, None),
            ("7", None),
        ];
        for (text, expect) in table {
            assert_eq!(doubled_key(text.as_bytes()).as_deref(), expect, "{text}");
        }
    }
}
