//! A byte stream that remembers which chunk each byte came in.

use crate::time::Moment;
use std::collections::VecDeque;

/// Where a message began: the record and capture time of the chunk with its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub record: u64,
    pub at: Moment,
}

/// Bytes not yet understood.
#[derive(Debug, Default)]
pub(super) struct Stream {
    bytes: Vec<u8>,
    /// How many of `bytes` are already understood.
    done: usize,
    /// Bytes dropped from the front of `bytes` so far.
    dropped: u64,
    /// Position in the whole stream at which each chunk begins.
    chunks: VecDeque<(u64, Origin)>,
}

impl Stream {
    pub fn push(&mut self, chunk: &[u8], origin: Origin) {
        if !chunk.is_empty() {
            self.chunks.push_back((self.dropped + self.bytes.len() as u64, origin));
            self.bytes.extend_from_slice(chunk);
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.done..]
    }

    /// Origin of the first byte; `None` when there is no byte.
    pub fn origin(&self) -> Option<Origin> {
        self.chunks.front().map(|(_, origin)| *origin)
    }

    /// Forgets the first `count` bytes. Moving the rest is put off until it is worth it.
    pub fn consume(&mut self, count: usize) {
        self.done = (self.done + count).min(self.bytes.len());
        let position = self.dropped + self.done as u64;
        while self.chunks.get(1).is_some_and(|(next, _)| *next <= position) {
            self.chunks.pop_front();
        }
        if self.done == self.bytes.len() {
            self.chunks.clear();
        }
        if self.done >= self.bytes.len() / 2 {
            self.dropped += self.done as u64;
            self.bytes.drain(..self.done);
            self.done = 0;
        }
    }
}
