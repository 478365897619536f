//! TOML files with errors that say file, line, column, what is wrong and the nearest accepted word.

use crate::journal::NamedText;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use toml::Spanned;

/// The version of scenario, rig and profile files that this build reads.
const VERSION: i64 = 1;

/// What is wrong in a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {what}")]
pub struct FileError {
    /// File name.
    pub file: String,
    /// Line from 1.
    pub line: usize,
    /// Column from 1, in characters.
    pub column: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

impl FileError {
    /// An error at a byte range of a file's text.
    pub fn at(file: &NamedText, span: Range<usize>, what: impl Into<String>) -> Self {
        let end = (0..=span.start.min(file.text.len()))
            .rev()
            .find(|&i| file.text.is_char_boundary(i))
            .unwrap_or(0);
        let before = &file.text[..end];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        FileError {
            file: file.name.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what: what.into(),
        }
    }
}

/// The text of a file.
///
/// # Errors
/// When the bytes are not UTF-8, at the first that isn't.
pub fn text(name: &str, bytes: Vec<u8>) -> Result<NamedText, FileError> {
    String::from_utf8(bytes).map(|text| NamedText::new(name, text)).map_err(|error| {
        let end = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..end]);
        FileError::at(&NamedText::new(name, before), end..end, "this is no UTF-8 text")
    })
}

/// Reads a file of a known shape; its `version` must be 1.
///
/// # Errors
/// The first thing in it that is not as it should be.
pub fn load<T: DeserializeOwned>(file: &NamedText) -> Result<T, FileError> {
    let refuse = |error: toml::de::Error| {
        FileError::at(file, error.span().unwrap_or(0..0), explain(error.message()))
    };
    let Version { version } = toml::from_str(&file.text).map_err(refuse)?;
    match version {
        Some(version) if version.get_ref() == &toml::Value::Integer(VERSION) => {
            toml::from_str(&file.text).map_err(refuse)
        }
        Some(version) => {
            let found = file.text.get(version.span()).unwrap_or_default();
            let what = format!(
                "`version` is {found}: this version is not known; write `version = 1`, or update \
                 earwitness if the file is newer"
            );
            Err(FileError::at(file, version.span(), what))
        }
        None => Err(FileError::at(file, 0..0, "`version = 1` is missing")),
    }
}

#[derive(Deserialize)]
struct Version {
    version: Option<Spanned<toml::Value>>,
}

/// The parser's message with the accepted word that an unknown one was meant to be.
fn explain(message: &str) -> String {
    let message = plain(&message.trim().replace('\n', " "));
    let mut words = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown").then(|| words.next()).flatten();
    let meant = unknown.map_or(String::new(), |unknown| did_you_mean(unknown, words));
    message.clone() + &meant
}

/// The question whether `unknown` is a slip of one of the words; empty when it is of none.
pub fn did_you_mean<'a>(unknown: &str, words: impl Iterator<Item = &'a str>) -> String {
    nearest(unknown, words).map_or(String::new(), |word| format!("; did you mean `{word}`?"))
}

/// A type error in the words of people who write files.
fn plain(message: &str) -> String {
    let Some((found, expected)) =
        message.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    else {
        return message.to_owned();
    };
    let found = found.replace("sequence", "a list").replace("map", "a table");
    let expected = match expected {
        "a string" => "a text in quotes, with its unit if it is a quantity",
        "i64" | "u32" => "a whole number",
        "a sequence" => "a list",
        "a map" => "a table",
        rust if rust.starts_with("struct ") => "a table",
        other => other,
    };
    format!("expected {expected}, found {}", found.trim_end_matches(" as i128"))
}

/// The word that `unknown` is a slip of: at most one letter in three is wrong.
pub fn nearest<'a>(unknown: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let slips = words.map(|word| (strsim::osa_distance(unknown, word), word));
    let (slips, word) = slips.min()?;
    (3 * slips <= unknown.chars().count().max(word.chars().count())).then_some(word)
}

/// One value or a list of them, without losing the position of an error inside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Many<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
            type Value = Many<T>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("one entry or a list of entries")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Many<T>, E> {
                use serde::de::IntoDeserializer as _;
                T::deserialize(text.into_deserializer()).map(|one| Many(vec![one]))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Many<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|one| Many(vec![one]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Many<T>, A::Error> {
                match Vec::deserialize(SeqAccessDeserializer::new(seq))? {
                    none if none.is_empty() => {
                        Err(serde::de::Error::custom("an empty list demands nothing; leave it out"))
                    }
                    entries => Ok(Many(entries)),
                }
            }
        }
        deserializer.deserialize_any(OneOrMany(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_refused_where_it_stands() {
        let check = |text: &str, place: &str, what: &str| {
            let error = load::<toml::Table>(&NamedText::new("x.toml", text)).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with(place) && error.contains(what), "{error}");
        };
        check("# of version 0\nversion = 0\n", "x.toml:2:11: `version` is 0", "`version = 1`");
        check("name = 1\nversion = \"1\"", "x.toml:2:11: `version` is \"1\"", "update earwitness");
        check("name = 1", "x.toml:1:1: `version = 1` is missing", "missing");
    }
}
