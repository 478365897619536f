//! Bytes of a console to lines, whatever the chunks.

use crate::time::Moment;

/// A longer line is cut here, by bytes, so that the cut does not depend on the chunks.
const MAX_LINE: usize = 16 << 10;

/// A console line as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawLine {
    /// Its text without the line end, lossily decoded.
    pub text: String,
    /// Capture time of the chunk that held its first byte.
    pub at: Moment,
    /// Record of that chunk.
    pub record: u64,
}

/// Cuts a byte stream into lines. `\n` ends a line; `\r`, blanks and NULs before it are dropped;
/// empty lines are not reported.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    began: Option<(Moment, u64)>,
}

impl Lines {
    /// The lines that a chunk completes.
    pub fn push(&mut self, chunk: &[u8], at: Moment, record: u64) -> Vec<RawLine> {
        let mut lines = Vec::new();
        for &byte in chunk {
            if byte != b'\n' {
                self.began.get_or_insert((at, record));
                self.bytes.push(byte);
            }
            if byte == b'\n' || self.bytes.len() == MAX_LINE {
                lines.extend(self.flush());
            }
        }
        lines
    }

    /// What stands there without a line end.
    pub fn flush(&mut self) -> Option<RawLine> {
        let (at, record) = self.began.take()?;
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.trim_end_matches([' ', '\t', '\r', '\0']).trim_start_matches('\0');
        let line = (!text.is_empty()).then(|| RawLine { text: text.to_owned(), at, record });
        self.bytes.clear();
        line
    }
}
