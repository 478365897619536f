//! The words of scenario files: texts that say something, references to steps, numbers with units.

use super::units;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::time::Duration;

/// A text that says something.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Text(pub String);

impl TryFrom<String> for Text {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.trim().is_empty() {
            true => Err("this must not be empty"),
            false => Ok(Text(text)),
        }
    }
}

/// Reads a text that says something.
pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Text::deserialize(deserializer).map(|Text(text)| text)
}

/// The id of a step, or the beginning of several ids and `*`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct StepRef(pub String);

impl TryFrom<String> for StepRef {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match text.strip_suffix('*').unwrap_or(&text) {
            "" => Err(format!("`{text}` names no step; write an id, or its beginning and `*`")),
            id if id.contains('*') => Err(format!("`{text}`: a `*` stands at the end only")),
            _ => Ok(StepRef(text)),
        }
    }
}

impl StepRef {
    /// Whether a step may exist that both mean. `tone` also means its repetition `tone#2`.
    pub fn meets(&self, other: &StepRef) -> bool {
        let (a, b) = (self.0.as_str(), other.0.as_str());
        let repetition =
            |of: &str, path: &str| path.strip_prefix(of).is_some_and(|rest| rest.starts_with('#'));
        match (a.strip_suffix('*'), b.strip_suffix('*')) {
            (None, None) => a == b || repetition(a, b) || repetition(b, a),
            (Some(a), Some(b)) => a.starts_with(b) || b.starts_with(a),
            (Some(a), None) => b.starts_with(a) || repetition(b, a),
            (None, Some(b)) => a.starts_with(b) || repetition(a, b),
        }
    }
}

/// The text of a log line; `{volume}` stands for the call's argument `volume`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Log(pub String);

impl TryFrom<String> for Log {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let Text(text) = Text::try_from(text)?;
        for part in text.split('{').skip(1) {
            let name: String = part.trim_start().chars().take_while(is_of_name).collect();
            if !name.is_empty() && !part.starts_with(&format!("{name}}}")) {
                return Err(format!("`{{{}`: write `{{{name}}}`", part.trim_end()));
            }
        }
        Ok(Log(text))
    }
}

fn is_of_name(c: &char) -> bool {
    c.is_ascii_alphanumeric() || *c == '_'
}

/// The path of a value in a status, `audio_speaker.volume`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Path(pub String);

impl TryFrom<String> for Path {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match text.split('.').any(|part| part.trim() != part || part.is_empty()) {
            true => Err(format!("`{text}` is no path; write names and dots, \"screen.theme\"")),
            false => Ok(Path(text)),
        }
    }
}

/// How long something may take.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Within(pub Duration);

impl TryFrom<String> for Within {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match units::duration(&text)? {
            limit if limit < Duration::from_millis(1) => {
                Err(format!("`{text}` is less than 1ms: nothing can happen in it"))
            }
            limit => Ok(Within(limit)),
        }
    }
}

/// A level difference.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Decibels(pub f64);

impl TryFrom<String> for Decibels {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        units::decibels(&text).map(Decibels)
    }
}

/// A value as JSON can say it.
#[derive(Deserialize)]
#[serde(try_from = "toml::Value")]
pub(super) struct Json(pub Value);

impl TryFrom<toml::Value> for Json {
    type Error = String;
    fn try_from(value: toml::Value) -> Result<Self, String> {
        let json = |value| Json::try_from(value).map(|Json(value)| value);
        Ok(Json(match value {
            toml::Value::Datetime(date) => {
                return Err(format!("JSON has no dates; quote it: \"{date}\""));
            }
            toml::Value::Float(number) => serde_json::Number::from_f64(number)
                .map(Value::Number)
                .ok_or_else(|| format!("JSON can't hold `{number}`"))?,
            toml::Value::Integer(number) => number.into(),
            toml::Value::Boolean(yes) => yes.into(),
            toml::Value::String(text) => text.into(),
            toml::Value::Array(values) => {
                values.into_iter().map(json).collect::<Result<_, _>>().map(Value::Array)?
            }
            toml::Value::Table(table) => {
                let fields = table.into_iter().map(|(key, value)| Ok((key, json(value)?)));
                Value::Object(fields.collect::<Result<_, String>>()?)
            }
        }))
    }
}

/// The id of one step.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct StepId(pub String);

impl TryFrom<String> for StepId {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.is_empty() || text.contains(|c: char| "#[]*,/".contains(c) || c.is_whitespace())
        {
            true => Err("an id is one word without `#`, `[`, `]`, `*`, `,` and `/`"),
            false => Ok(StepId(text)),
        }
    }
}

/// Level of a stimulus, dBFS (AES17).
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Level(pub f64);

impl TryFrom<String> for Level {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match units::dbfs(&text)? {
            dbfs if (-60.0..=-6.0).contains(&dbfs) => Ok(Level(dbfs)),
            _ => Err(format!("`{text}` is not between -60dBFS and -6dBFS: louder tones clip")),
        }
    }
}

/// Length of a stimulus.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Length(pub Duration);

impl TryFrom<String> for Length {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match units::duration(&text)? {
            length if (0.5..=10.0).contains(&length.as_secs_f64()) => Ok(Length(length)),
            _ => Err(format!("`{text}`: a tone lasts 0.5s to 10s")),
        }
    }
}

/// How many passes; a scenario is a test, not a soak.
#[derive(Deserialize)]
#[serde(try_from = "i64")]
pub(super) struct Times(pub u32);

impl TryFrom<i64> for Times {
    type Error = String;
    fn try_from(times: i64) -> Result<Self, String> {
        match u32::try_from(times) {
            Ok(n @ 1..=100) => Ok(Times(n)),
            _ => Err(format!("{times} passes; 1 to 100 are possible")),
        }
    }
}
