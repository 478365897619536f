//! Secrets never reach the disk: the lower half of every MAC address, passwords, tokens, keys and
//! cookies become placeholders of the same length before an observation exists, also across chunk
//! borders.
//!
//! Known by their names: JSON members (also in a JSON string), `name=value` and `name: value` in
//! text and URLs, `password value`, HTTP headers, and `//user:password@`; by their shape: JSON Web
//! Tokens and `sk-` keys. What this can't know: another value without its name, the rest of a bare
//! value after a blank, and a secret over 64 KiB long. The key of the UDP
//! audio stays on purpose: without it nobody could judge what was sent.

use crate::time::Moment;
use regex::bytes::{Captures, Regex};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Six pairs of hex digits with one kind of separator; groups: upper half, lower half.
static MAC: LazyLock<Regex> = LazyLock::new(|| {
    let form =
        |s: &str| format!("((?:[0-9a-f]{{2}}{s}){{3}})([0-9a-f]{{2}}(?:{s}[0-9a-f]{{2}}){{2}})");
    compile(&[":", "_", "-", "%3a"].map(form).join("|"))
});

/// The end of a name whose value must not be kept.
const NAME: &str = "(?:token|passw(?:or)?d|passphrase|psk|secret(?:[_-]?key)?|api[_-]?key\
    |access[_-]?key(?:[_-]?(?:id|secret))?|private[_-]?key|[a-z0-9]_key|authorization|cookie\
    |\\b(?:[a-z0-9]+[_-])*(?:wifi)?(?:pass|pwd))[0-9]*";

/// A JSON member up to its value.
static MEMBER: LazyLock<Regex> =
    LazyLock::new(|| compile(&format!(r#""[a-z0-9_-]*{NAME}\\*"\s*:\s*"#)));

/// `name=value` or `name: value` up to the value.
static NAMED: LazyLock<Regex> =
    LazyLock::new(|| compile(&format!(r"{NAME}[ \t]*[=:][ \t]*(?:(?:bearer|basic)[ \t]+)?")));

/// A name that a blank parts from its value, up to the value.
static SPOKEN: LazyLock<Regex> = LazyLock::new(|| {
    compile(r"(?:client[_-]?secret|api[_-]?key|passw(?:or)?d|passphrase)[0-9]*[ \t]+")
});

/// What is a secret by its shape: a JSON Web Token (RFC 7519), an `sk-` key.
static SHAPE: LazyLock<Regex> = LazyLock::new(|| {
    let token = r"\b(?-i:eyJ)[a-z0-9_-]{8,}\.[a-z0-9_-]{4,}(?:\.[a-z0-9_-]*)?";
    compile(&format!(r"{token}|\b(?-i:sk-)[a-z0-9_-]{{16,}}"))
});

/// An HTTP header with a value that may hold blanks, up to the value.
static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    compile(r"(?m:^)(?:proxy-authorization|authorization|cookie|set-cookie):[ \t]*(?:bearer )?")
});

/// The password in a URL, up to it.
static USER: LazyLock<Regex> = LazyLock::new(|| compile(r"://[^\s/:@]*:[^\s/@]+@"));

/// At most this many bytes wait for the end of their line.
const MAX_HELD: usize = 64 << 10;

/// What is kept of a line that grows longer: the beginning of a secret, before it can be told.
const CONTEXT: usize = 1024;

fn compile(pattern: &str) -> Regex {
    Regex::new(&format!("(?i-u){pattern}")).expect("a fixed pattern")
}

/// A secret: where its name begins, and its value.
struct Secret {
    from: usize,
    value: Range<usize>,
    /// What covers it.
    cover: u8,
}

/// All secrets in `bytes` that are known by name or shape.
fn secrets(bytes: &[u8]) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut note = |from, value, cover| found.push(Secret { from, value, cover });
    for name in MEMBER.find_iter(bytes) {
        match quoted(bytes, name.end()) {
            Some(value) => note(name.start(), value, b'x'),
            // A number remains one, without a zero in front.
            None => {
                let is_number = |b: &u8| b.is_ascii_digit() || b"+-.eE".contains(b);
                note(name.start(), run(bytes, name.end(), is_number), b'1');
            }
        }
    }
    for name in NAMED.find_iter(bytes) {
        let value = quoted(bytes, name.end()).unwrap_or_else(|| bare(bytes, name.end()));
        note(name.start(), value, b'x');
    }
    for name in SPOKEN.find_iter(bytes) {
        let value = quoted(bytes, name.end()).unwrap_or_else(|| bare(bytes, name.end()));
        // With a sign between name and value it is one of those above.
        if !bytes.get(name.end()).is_some_and(|sign| b"=:".contains(sign)) {
            note(name.start(), value, b'x');
        }
    }
    for shape in SHAPE.find_iter(bytes) {
        note(shape.start(), shape.range(), b'x');
    }
    for name in HEADER.find_iter(bytes) {
        note(name.start(), run(bytes, name.end(), |b| !b"\r\n".contains(b)), b'x');
    }
    for user in USER.find_iter(bytes) {
        let colon = user.as_bytes()[3..].iter().position(|&b| b == b':').unwrap_or(0) + 4;
        note(user.start(), user.start() + colon..user.end() - 1, b'x');
    }
    found
}

/// The bytes from `at` on that are `inside`.
fn run(bytes: &[u8], at: usize, inside: impl Fn(&u8) -> bool) -> Range<usize> {
    let length = bytes[at..].iter().take_while(|b| inside(b)).count();
    at..at + length
}

/// What stands in the quotes that open at `at`. A quote in JSON in a JSON string has a backslash
/// before it and one more level in doubles that: only a quote of its own level ends a string.
fn quoted(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let slashes = |at: usize| run(bytes, at, |&b| b == b'\\').len();
    let level = slashes(at);
    let quote = *bytes.get(at + level).filter(|b| b"\"'".contains(b))?;
    let from = at + level + 1;
    let mut until = from;
    while until < bytes.len() && !b"\r\n".contains(&bytes[until]) {
        let count = slashes(until);
        let ends = count < level || count % (2 * (level + 1)) == level;
        if bytes.get(until + count) == Some(&quote) && ends {
            // An escaped backslash before the quote belongs to the value.
            return Some(from..until + count.saturating_sub(level));
        }
        until += count.max(1);
        if count > 0 && until < bytes.len() && !b"\r\n".contains(&bytes[until]) {
            until += 1;
        }
    }
    Some(from..until.min(bytes.len()))
}

/// A value without quotes, up to a blank, a quote, the next parameter of a URL or the end.
fn bare(bytes: &[u8], at: usize) -> Range<usize> {
    let ends = |k: usize| match bytes[k] {
        b'\\' => bytes.get(k + 1).is_none_or(|next| b"\"'nrt\\".contains(next)),
        byte => byte <= b' ' || byte == 0x7f || b"\"'&".contains(&byte),
    };
    at..(at..bytes.len()).find(|&k| ends(k)).unwrap_or(bytes.len())
}

/// Bytes of a stream whose line is not complete.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    /// Where each chunk begins in `bytes`, and when it was captured.
    chunks: Vec<(usize, Moment)>,
}

impl Held {
    fn push(&mut self, at: Moment, chunk: &[u8]) {
        self.chunks.push((self.bytes.len(), at));
        self.bytes.extend_from_slice(chunk);
    }

    /// How many bytes can be told for what they are: whole lines, or most of an endless one.
    fn ready(&self) -> usize {
        let line = self.bytes.iter().rposition(|&b| b == b'\n').map_or(0, |k| k + 1);
        if self.bytes.len() - line <= MAX_HELD {
            return line;
        }
        let most = self.bytes.len() - CONTEXT;
        let blank = self.bytes[line..most].iter().rposition(u8::is_ascii_whitespace);
        let cut = blank.map_or(most, |k| line + k + 1);
        let named = secrets(&self.bytes).into_iter().map(|secret| secret.from..secret.value.end);
        let open = named.chain(MAC.find_iter(&self.bytes).map(|mac| mac.range()));
        match open.filter(|o| o.start < cut && cut <= o.end).map(|o| o.start).min() {
            None => cut,
            Some(from) if from > line => from,
            Some(_) => self.bytes.len(),
        }
    }

    /// Takes the first `count` bytes out, `told` in their place, cut as they were captured.
    fn release(&mut self, count: usize, told: &[u8]) -> Vec<(Moment, Vec<u8>)> {
        let ends = self.chunks.iter().skip(1).map(|chunk| chunk.0).chain([self.bytes.len()]);
        let mut released = Vec::new();
        let mut rest = Vec::new();
        for (&(from, at), end) in self.chunks.iter().zip(ends) {
            if from < count.min(end) {
                released.push((at, told[from..end.min(count)].to_vec()));
            }
            if end > count {
                rest.push((from.max(count) - count, at));
            }
        }
        self.bytes.drain(..count);
        self.chunks = rest;
        released
    }
}

/// Removes secrets from the streams of one session; placeholders are stable within it.
#[derive(Debug, Default)]
pub struct Redactor {
    /// Lower halves seen so far; the position is the placeholder's number.
    lower_halves: Vec<Vec<u8>>,
    /// Device MACs to be found without separators as well.
    bare: Vec<Vec<u8>>,
    /// What waits of each stream.
    held: BTreeMap<String, Held>,
}

impl Redactor {
    /// A redactor that also knows `macs` when they are written without separators.
    pub fn knowing(macs: &[&str]) -> Self {
        let digits = |mac: &&str| mac.bytes().filter(u8::is_ascii_hexdigit).collect::<Vec<u8>>();
        let bare = macs.iter().map(digits).filter(|d| d.len() == 12).collect();
        Redactor { bare, ..Redactor::default() }
    }

    /// The next chunk of `stream`, captured at `at`; a line that is not complete waits for its end.
    /// What comes out is cut as it was captured and has the times of its chunks.
    pub fn push(&mut self, stream: &str, at: Moment, chunk: &[u8]) -> Vec<(Moment, Vec<u8>)> {
        let mut held = self.held.remove(stream).unwrap_or_default();
        held.push(at, chunk);
        let ready = held.ready();
        let told = if ready > 0 { self.whole(&held.bytes) } else { Vec::new() };
        let released = held.release(ready, &told);
        self.held.insert(stream.into(), held);
        released
    }

    /// The bytes of `stream` that still waited.
    pub fn finish(&mut self, stream: &str) -> Vec<(Moment, Vec<u8>)> {
        let mut held = self.held.remove(stream).unwrap_or_default();
        let told = self.whole(&held.bytes);
        held.release(told.len(), &told)
    }

    /// A message that arrived in one piece.
    pub fn whole(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut covered = bytes.to_vec();
        for secret in secrets(bytes) {
            for byte in &mut covered[secret.value] {
                // The dot and sign of a number stay what they are.
                if secret.cover == b'x' || byte.is_ascii_digit() {
                    *byte = secret.cover;
                }
            }
        }
        let mut bytes = MAC
            .replace_all(&covered, |c: &Captures| {
                let part = |i: usize| (1..c.len()).step_by(2).find_map(|k| c.get(k + i));
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
        let escaped = lower.contains(&b'%');
        // In `aa%3abb%3a01` each pair is followed by three bytes that are no digits of it.
        let is_digit = |(k, b): &(usize, &u8)| match escaped {
            true => k % 5 < 2,
            false => b.is_ascii_hexdigit(),
        };
        let places: Vec<usize> = lower.iter().enumerate().filter(is_digit).map(|d| d.0).collect();
        let digits: Vec<u8> = places.iter().map(|&k| lower[k].to_ascii_lowercase()).collect();
        let mut out = lower.to_vec();
        if digits.len() != 6 {
            return out;
        }
        let known = self.lower_halves.iter().position(|l| *l == digits);
        let number = known.unwrap_or_else(|| {
            self.lower_halves.push(digits);
            self.lower_halves.len() - 1
        });
        for &k in &places {
            out[k] = b'x';
        }
        out[places[5]] = *b"123456789abcdefghijklmnopqrstuvw".get(number).unwrap_or(&b'w');
        out
    }
}

fn find_ignoring_case(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|w| w.eq_ignore_ascii_case(needle))
}

/// An MQTT CONNECT packet with its password covered; any other packet as it is. Where a CONNECT is
/// not one as the standard wants it, everything from there on is covered.
pub fn redact_mqtt_connect(packet: &[u8]) -> Vec<u8> {
    let mut out = packet.to_vec();
    if packet.first().is_some_and(|first| first >> 4 == 1) {
        let open = before_password(packet).unwrap_or_else(|at| at);
        out[open..].fill(b'x');
    }
    out
}

/// Where the password of a CONNECT begins, MQTT 3.1.1 or 5; the error is where it goes wrong.
fn before_password(packet: &[u8]) -> Result<usize, usize> {
    let number = |at: usize| run(packet, at, |b| b & 0x80 != 0).end + 1;
    let field = |at: usize| {
        let length = packet.get(at..at + 2).ok_or(at.min(packet.len()))?;
        let end = at + 2 + usize::from(u16::from_be_bytes([length[0], length[1]]));
        if end <= packet.len() { Ok(end) } else { Err((at + 2).min(packet.len())) }
    };
    let properties = |at: usize| {
        let from = number(at);
        let digits = packet.get(at..from).ok_or(at.min(packet.len()))?;
        let length = digits.iter().rev().fold(0usize, |sum, &b| (sum << 7) | usize::from(b & 0x7f));
        let end = from.saturating_add(length);
        if digits.len() <= 4 && end <= packet.len() { Ok(end) } else { Err(from) }
    };
    let name = field(number(1).min(packet.len()))?;
    let &[version, flags, _, _] = packet.get(name..name + 4).ok_or(name)? else {
        return Err(name);
    };
    let five = |at| if version == 5 { properties(at) } else { Ok(at) };
    let mut at = field(five(name + 4)?)?;
    if flags & 0x04 != 0 {
        at = field(field(five(at)?)?)?;
    }
    if flags & 0x80 != 0 {
        at = field(at)?;
    }
    // The length of the password stays.
    Ok((at + 2).min(packet.len()))
}

#[cfg(test)]
mod tests;
