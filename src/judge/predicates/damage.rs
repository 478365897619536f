//! Signs that a console recording lost or damaged bytes: then a missing line proves nothing.

use crate::decode::Fact;
use crate::decode::uart::{Meaning, UartLine};
use regex::Regex;
use std::sync::LazyLock;

/// A wanted line may differ from a damaged one by its length over this (estimated: 3 % of bytes,
/// and the blank and the bracket before it).
const NEAR: usize = 8;

/// The least bytes of the beginning of a line that are taken for one cut short (estimated).
const LEAST: usize = 12;

static HEAD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r".[EWIDV] \([0-9]{1,9}\) ?\S").expect("a constant pattern"));
static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[0-9]+").expect("a constant pattern"));

/// The first line of a boot that shows it, from its first log line on: what a ROM prints may well
/// come at another baud rate.
pub(super) fn first<'a>(lines: impl Iterator<Item = (&'a Fact, &'a UartLine)>) -> Option<&'a Fact> {
    let mut state: Option<&str> = None;
    let mut logs = lines.skip_while(|(_, line)| line.log.is_none());
    logs.find_map(|(fact, line)| {
        let gap = match &line.means {
            Meaning::State { from, to } => {
                let before = state.replace(to);
                from.as_deref().zip(before).is_some_and(|(from, before)| from != before)
            }
            _ => false,
        };
        (gap || (!line.quotes() && is_hurt(&line.text))).then_some(fact)
    })
}

/// Bytes that no firmware prints, or the head of a second line in the middle of one.
fn is_hurt(text: &str) -> bool {
    let noise = |c: char| c == '\u{fffd}' || (c.is_control() && c != '\t');
    let text = text.trim_start_matches(noise);
    text.contains(noise) || HEAD.is_match(text)
}

/// The line ends in `wanted` but for a few characters. A line of the same words with other numbers
/// is whole, and says something else.
pub(super) fn is_near(line: &UartLine, wanted: &str) -> bool {
    let words = |text: &str| NUMBER.replace_all(text, "0").into_owned();
    let full = line.log.as_ref().map(|log| (format!("{}: {}", log.tag, log.text), &log.text));
    let told: Vec<&str> = full.iter().flat_map(|(full, text)| [full.as_str(), text]).collect();
    let another = told.iter().any(|text| *text != wanted && words(text) == words(wanted));
    let cut = told.iter().any(|text| text.len() >= LEAST && wanted.starts_with(text));
    let length = wanted.chars().count();
    let last = line.text.char_indices().rev().nth(length.saturating_sub(1));
    let end = &line.text[last.map_or(0, |(start, _)| start)..];
    let message = wanted.split_once(": ").map_or(wanted, |(_, text)| text);
    let near = || strsim::levenshtein(end, wanted) <= length / NEAR;
    !line.quotes() && !another && (cut || line.text.ends_with(message) || near())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::uart::read;

    #[test]
    fn damage_is_not_another_value() {
        let wanted = "AudioCodec: Set output volume to 60";
        for line in [
            "I (7456) AudioCodec: Set outp\u{fffd}t volume to 60",
            "I (7456) AudioCodec: Set output volume to 6p",
            "I )7456) AudioCodec: Set output volume to 60",
            "12:00:01 -> I (7456) AudioCodec: Set output volume to 60",
            "I (7456) AudioCodec: Set utput voume to 60",
            "I (7456) AudioCodec: Set out",
            "I (7456) AudioCodec:",
            "I (7456) AudioCodec: Set output volume to 60",
        ] {
            assert!(is_near(&read(line), wanted), "{line}");
        }
        for line in [
            "I (7456) AudioCodec: Set output volume to 6",
            "I (7456) AudioCodec: Set output enable to true",
            "W (7456) Display: AudioCodec: Set output volume to 60",
            "",
        ] {
            assert!(!is_near(&read(line), wanted), "{line}");
        }
    }

    #[test]
    fn what_no_firmware_prints_is_damage() {
        for text in ["I (1) a: b\u{fffd}c", "I (1) AudI (2) StateMachine: x", "I (1) a: \u{1}"] {
            assert!(is_hurt(text), "{text}");
        }
        for text in ["\0\u{fffd}I (1) a: 中文", "I (1) a:\tb", "I (1) a: I (see x)"] {
            assert!(!is_hurt(text), "{text}");
        }
    }
}
