//! Bytes of the console become lines, wherever the chunks were cut.

use crate::time::Moment;

/// A line longer than this is cut, so that binary noise can't grow the buffer for ever.
const LONGEST: usize = 16 * 1024;

/// One line of the console as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawLine {
    /// The line without its end, trailing blanks and NULs; invalid UTF-8 became U+FFFD.
    pub text: String,
    /// Capture time of the chunk that held its first byte that is no line noise.
    pub at: Moment,
    /// Number of the record of that chunk.
    pub record: u64,
    /// Capture time of the chunk that held its last such byte.
    pub until: Moment,
}

/// Cuts a byte stream into lines.
///
/// `\n` ends a line; empty lines are not reported. A line of more than 16 KiB is cut after each
/// 16 KiB. The same bytes give the same lines in whatever chunks they come.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    pending: Vec<u8>,
    /// Time and record of the chunk that held the first pending byte that is no noise.
    began: (Moment, u64),
    /// Whether there was such a byte.
    begun: bool,
    /// Time of the chunk that held the last one.
    until: Moment,
}

/// What a reset, a glitch or a strange line end leaves on the wire: control characters and bytes
/// that never occur in UTF-8. It belongs to no line, so it dates none.
fn is_noise(byte: u8) -> bool {
    matches!(byte, 0..=8 | 0x0b..=0x1a | 0x1c..=0x1f | 0x7f | 0xc0 | 0xc1 | 0xf5..)
}

impl Lines {
    /// Takes the next chunk and returns the lines that it completes.
    pub fn push(&mut self, chunk: &[u8], at: Moment, record: u64) -> Vec<RawLine> {
        let mut done = Vec::new();
        for piece in chunk.split_inclusive(|&byte| byte == b'\n') {
            let (body, ended) = match piece.strip_suffix(b"\n") {
                Some(body) => (body, true),
                None => (piece, false),
            };
            self.extend(body, at, record, &mut done);
            if ended {
                done.extend(self.flush());
            }
        }
        done
    }

    /// Ends the line that waits for its end. For the end of the stream.
    pub fn flush(&mut self) -> Option<RawLine> {
        let bytes = std::mem::take(&mut self.pending);
        self.begun = false;
        let end = bytes.iter().rposition(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | 0))? + 1;
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        Some(RawLine { text, at: self.began.0, record: self.began.1, until: self.until })
    }

    fn extend(&mut self, mut body: &[u8], at: Moment, record: u64, done: &mut Vec<RawLine>) {
        while !body.is_empty() {
            let (now, later) = body.split_at(body.len().min(LONGEST - self.pending.len()));
            let speaks = now.iter().any(|byte| !is_noise(*byte));
            if self.pending.is_empty() || (speaks && !self.begun) {
                self.began = (at, record);
                self.until = at;
            }
            if speaks {
                self.begun = true;
                self.until = at;
            }
            self.pending.extend_from_slice(now);
            body = later;
            if self.pending.len() == LONGEST {
                done.extend(self.flush());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<(String, u64)> {
        let mut cutter = Lines::default();
        let mut out = Vec::new();
        for (n, chunk) in (0..).zip(chunks) {
            out.extend(cutter.push(chunk, Moment::from_nanos(n), n));
        }
        out.extend(cutter.flush());
        assert!(out.iter().all(|line| line.at.nanos() == line.record));
        out.into_iter().map(|line| (line.text, line.record)).collect()
    }

    #[test]
    fn a_line_carries_the_chunk_of_its_first_byte() {
        let line = |text: &str, record| (text.to_string(), record);
        assert_eq!(
            lines(&[b"one\r\ntw", b"o \t\0\r", b"\n\r\n\nthree\nfo", b"", b"ur"]),
            [line("one", 0), line("two", 0), line("three", 2), line("four", 2)]
        );
        let chinese = "中文\n".as_bytes();
        assert_eq!(lines(&[&chinese[..1], &chinese[1..5], &chinese[5..]]), [line("中文", 0)]);
        assert_eq!(lines(&[b"\xff\xfeok\n"]), [line("\u{fffd}\u{fffd}ok", 0)]);
        assert_eq!(lines(&[b"\r\n", b" \0\r\n", b""]), []);
    }

    #[test]
    fn noise_dates_no_line() {
        for noise in [&b"\0"[..], b"\xff", b"\r", b"\x08\xfe\0"] {
            let [(text, record)] = &lines(&[b"one\n", noise, noise, b"two\n"])[1..] else {
                panic!("two lines");
            };
            assert!(text.ends_with("two"));
            assert_eq!(*record, 3, "{noise:?}");
        }
        let mut cutter = Lines::default();
        let mut push = |chunk: &[u8], n| cutter.push(chunk, Moment::from_nanos(n), n);
        assert_eq!((push(b"50%", 1), push(b"\0", 2), push(b"more", 3)), (vec![], vec![], vec![]));
        let line = push(b"\r\n", 4).remove(0);
        assert_eq!((line.at, line.until), (Moment::from_nanos(1), Moment::from_nanos(3)));
    }

    #[test]
    fn an_endless_line_is_cut_by_byte_count() {
        let long = [b'x'; LONGEST + 3];
        let lengths = |chunks: &[&[u8]]| -> Vec<(usize, u64)> {
            lines(chunks).into_iter().map(|(text, record)| (text.len(), record)).collect()
        };
        assert_eq!(lengths(&[&long, b"y\nz"]), [(LONGEST, 0), (4, 0), (1, 1)]);
        assert_eq!(lengths(&[&long[..5], &long[5..], b"\n"]), [(LONGEST, 0), (3, 1)]);
        assert_eq!(lengths(&[&long[..LONGEST], b"\r\nz"]), [(LONGEST, 0), (1, 1)]);
    }
}
