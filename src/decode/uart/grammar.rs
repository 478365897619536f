//! The grammar of an ESP-IDF log line, and what may lie around one on a real wire.

use super::{Level, Log};
use crate::time::DeviceMillis;
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Longest tag in characters; more is prose with a colon.
const LONGEST_TAG: usize = 40;

static COLOUR: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\x1b\[[0-9;]*[A-Za-z]").expect("a constant pattern"));

/// Removes ANSI sequences (builds before ESP-IDF 5.5 colour their log) and the blanks they hid.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return Cow::Borrowed(text.trim_end());
    }
    Cow::Owned(COLOUR.replace_all(text, "").trim_end().to_string())
}

/// Skips what a reset or a glitch leaves before the first character of a line.
pub(super) fn skip_noise(text: &str) -> &str {
    text.trim_start_matches(|c: char| c == '\u{fffd}' || c.is_control())
}

/// `LEVEL ["(" STAMP ")"] TAG ":" TEXT`. Early lines have no stamp, Wi-Fi lines no blank
/// after the colon.
pub(super) fn log(line: &str) -> Option<Log> {
    let level = level(*line.as_bytes().first()?)?;
    let rest = line.get(1..)?.strip_prefix(' ')?;
    let (stamp, rest) = stamp(rest).unwrap_or((None, rest));
    let (tag, text) = rest.split_once(':')?;
    if tag.is_empty() || tag.chars().count() > LONGEST_TAG {
        return None;
    }
    let text = text.strip_prefix(' ').unwrap_or(text);
    Some(Log { level, stamp, tag: tag.to_string(), text: text.to_string() })
}

fn level(letter: u8) -> Option<Level> {
    Some(match letter {
        b'E' => Level::Error,
        b'W' => Level::Warning,
        b'I' => Level::Info,
        b'D' => Level::Debug,
        b'V' => Level::Verbose,
        _ => return None,
    })
}

/// A stamp in parentheses: milliseconds, or a time of day, which says nothing about the boot.
fn stamp(rest: &str) -> Option<(Option<DeviceMillis>, &str)> {
    let (stamp, rest) = rest.strip_prefix('(')?.split_once(") ")?;
    let well_formed = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | '-' | ' ');
    if stamp.is_empty() || !stamp.chars().all(well_formed) {
        return None;
    }
    let millis = stamp.bytes().all(|byte| byte.is_ascii_digit()).then(|| stamp.parse().ok());
    Some((millis.flatten().map(DeviceMillis), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: Option<(Level, Option<u64>, &str, &str)>) {
        let got = log(skip_noise(&plain(line)));
        let expect = expect.map(|(level, stamp, tag, text)| Log {
            level,
            stamp: stamp.map(DeviceMillis),
            tag: tag.to_string(),
            text: text.to_string(),
        });
        assert_eq!(got, expect, "{line:?}");
    }

    #[test]
    fn log_lines_of_every_age_and_origin_are_read() {
        check("I (310) WifiBoard: WiFi scanning", log_of(Level::Info, 310, "WifiBoard"));
        check("\x1b[0;32mI (9) a: b \x1b[0m", Some((Level::Info, Some(9), "a", "b")));
        check("E BOD: Brownout", Some((Level::Error, None, "BOD", "Brownout")));
        check("I (4324) wifi:state: x", Some((Level::Info, Some(4324), "wifi", "state: x")));
        check("W (12:34:56.789) x: y", Some((Level::Warning, None, "x", "y")));
        check("D (26-08-08 12:34:56.789) x: y", Some((Level::Debug, None, "x", "y")));
        check("V (1) MSPI Timing: t", Some((Level::Verbose, Some(1), "MSPI Timing", "t")));
        check("W (1181) Display:", Some((Level::Warning, Some(1181), "Display", "")));
        check("W (1) Display:      a", Some((Level::Warning, Some(1), "Display", "     a")));
        check("\0\u{fffd}I (1) a: 中文", Some((Level::Info, Some(1), "a", "中文")));
        check("I (99999999999999999999999) a: b", Some((Level::Info, None, "a", "b")));
    }

    fn log_of(
        level: Level,
        stamp: u64,
        tag: &str,
    ) -> Option<(Level, Option<u64>, &str, &'static str)> {
        Some((level, Some(stamp), tag, "WiFi scanning"))
    }

    #[test]
    fn plain_lines_are_no_log() {
        for line in ["", "I", "I ", "Hello world!", "(1)\t\"case\" [x]", "I (5) no colon", "中文"]
        {
            check(line, None);
        }
        check("./main/x.c:30:normal_case_pass:PASS", None);
        check(&format!("I (1) {}: x", "t".repeat(41)), None);
    }
}
