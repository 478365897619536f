//! Which sample was captured when: the `sound` records of a session, searchable by time.

use super::{Entry, Observation, Record};
use crate::time::{Moment, Window};

/// One block of samples.
#[derive(Clone, Copy, Debug)]
struct Block {
    segment: u32,
    first: u64,
    count: u64,
    at: Moment,
}

/// All blocks of a session in order of capture.
#[derive(Debug, Default)]
pub(super) struct SoundIndex {
    blocks: Vec<Block>,
}

/// A run of samples inside one segment.
#[derive(Debug, PartialEq)]
pub(super) struct Stretch {
    pub segment: u32,
    pub first: u64,
    pub count: u64,
    pub start: Moment,
    /// The run covers the whole window.
    pub whole: bool,
}

impl SoundIndex {
    /// Takes note of a `sound` record; other records are passed over.
    pub fn note(&mut self, record: &Record) {
        if let Entry::Saw { captured_at, what: Observation::Sound { segment, first, count } } =
            &record.entry
        {
            let block =
                Block { segment: *segment, first: first.0, count: *count, at: *captured_at };
            self.blocks.push(block);
        }
    }

    /// Samples that the records promise for each segment, in order of segment number.
    pub fn promised(&self) -> Vec<(u32, u64)> {
        let mut promised: Vec<(u32, u64)> = Vec::new();
        for block in &self.blocks {
            let end = block.first.saturating_add(block.count);
            match promised.iter_mut().find(|(segment, _)| *segment == block.segment) {
                Some((_, most)) => *most = (*most).max(end),
                None => promised.push((block.segment, end)),
            }
        }
        promised.sort_unstable();
        promised
    }

    /// The samples of `window`, up to the first loss; `rate` gives a segment's sample rate.
    pub fn find(&self, window: Window, rate: impl Fn(u32) -> Option<u32>) -> Option<Stretch> {
        let until_next = self.blocks.partition_point(|b| b.at <= window.from);
        let begins_before = until_next == 0;
        let here = until_next.saturating_sub(1);
        let block = self.blocks.get(here)?;
        let rate = f64::from(rate(block.segment)?);
        let skipped = (window.from.seconds_since(block.at).max(0.0) * rate).round() as u64;
        let wanted = (window.seconds() * rate).round() as u64;
        let first = block.first.saturating_add(skipped);
        let mut end = block.first.saturating_add(block.count);
        for next in &self.blocks[here + 1..] {
            if next.segment != block.segment || next.first != end || end >= first + wanted {
                break;
            }
            end = end.saturating_add(next.count);
        }
        let count = end.saturating_sub(first).min(wanted);
        let whole = !begins_before && count == wanted;
        let start = if begins_before { block.at } else { window.from };
        Some(Stretch { segment: block.segment, first, count, start, whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SampleIndex;

    fn index(blocks: &[(u32, u64, u64, f64)]) -> SoundIndex {
        let mut index = SoundIndex::default();
        for (n, &(segment, first, count, at)) in blocks.iter().enumerate() {
            let captured_at = Moment::from_secs_f64(at);
            let what = Observation::Sound { segment, first: SampleIndex(first), count };
            let entry = Entry::Saw { captured_at, what };
            index.note(&Record { n: n as u64, at: captured_at, entry });
        }
        index
    }

    #[test]
    fn a_window_ends_at_the_first_loss() {
        let blocks = [(1, 0, 1000, 1.0), (1, 1000, 1000, 2.0), (2, 0, 1000, 5.0)];
        let index = index(&blocks);
        let find = |from, until| index.find(Window::from_secs(from, until), |_| Some(1000));
        let across = find(1.5, 2.5).unwrap();
        assert_eq!((across.first, across.count, across.whole), (500, 1000, true));
        let lost = find(2.5, 5.5).unwrap();
        assert_eq!((lost.segment, lost.first, lost.count, lost.whole), (1, 1500, 500, false));
        assert!(!find(0.0, 1.5).unwrap().whole, "begins before the first sample");
        assert_eq!(find(3.5, 4.0).unwrap().count, 0, "inside the hole");
        assert_eq!(index.promised(), vec![(1, 2000), (2, 1000)]);
    }
}
