//! Which sample was captured when: the `sound` records of a session, searchable by time.

use super::{Entry, Observation, Record};
use crate::time::{Moment, Window};

/// How late or early a block may be stamped by whoever takes the samples from the driver, seconds.
const JITTER: f64 = 0.005;

/// How far a sample clock may be from its nominal rate (facts/acoustics.md).
const DRIFT: f64 = 0.001;

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

impl Block {
    /// The sample after its last one.
    fn end(&self) -> u64 {
        self.first.saturating_add(self.count)
    }

    /// Whether `next` goes on where this one ends: in the file and in time.
    fn goes_on_with(&self, next: &Block, rate: f64) -> bool {
        let lasts = self.count as f64 / rate;
        let late = next.at.seconds_since(self.at) - lasts;
        next.segment == self.segment
            && next.first == self.end()
            && late.abs() <= JITTER + DRIFT * lasts
    }
}

impl SoundIndex {
    /// Takes note of a `sound` record; other records are passed over.
    ///
    /// # Errors
    /// When it can't follow the blocks before it; it is not taken then.
    pub fn note(&mut self, record: &Record) -> Result<(), &'static str> {
        let &Entry::Saw { captured_at, what: Observation::Sound { segment, first, count } } =
            &record.entry
        else {
            return Ok(());
        };
        let block = Block { segment, first: first.0, count, at: captured_at };
        if block.first.checked_add(block.count).is_none() {
            return Err("it counts more samples than there are numbers");
        }
        if let Some(last) = self.blocks.last() {
            if block.at < last.at {
                return Err("its sound is earlier than that of the block before it");
            }
            if (block.segment, block.first) < (last.segment, last.end()) {
                return Err("its samples belong to a block before it");
            }
        }
        self.blocks.push(block);
        Ok(())
    }

    /// Samples that the records promise for each segment, in order of segment number.
    pub fn promised(&self) -> Vec<(u32, u64)> {
        let mut promised: Vec<(u32, u64)> = Vec::new();
        for block in &self.blocks {
            match promised.last_mut() {
                Some((segment, most)) if *segment == block.segment => *most = block.end(),
                _ => promised.push((block.segment, block.end())),
            }
        }
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
        let mut last = block;
        for next in &self.blocks[here + 1..] {
            if last.end() >= first.saturating_add(wanted) || !last.goes_on_with(next, rate) {
                break;
            }
            last = next;
        }
        let count = last.end().saturating_sub(first).min(wanted);
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
            index.note(&Record { n: n as u64, at: captured_at, entry }).unwrap();
        }
        index
    }

    #[test]
    fn samples_without_a_gap_may_still_be_apart_in_time() {
        let whole = |second: f64| {
            let index = index(&[(1, 0, 1000, 1.0), (1, 1000, 1000, second)]);
            index.find(Window::from_secs(1.5, 2.5), |_| Some(1000)).unwrap().whole
        };
        assert!(whole(2.0) && whole(2.004) && whole(1.996));
        assert!(!whole(2.2) && !whole(1.9));
    }

    #[test]
    fn a_block_that_cannot_be_is_refused() {
        let note = |segment, first, count, at| {
            let mut index = index(&[(2, 0, 1000, 1.0)]);
            let captured_at = Moment::from_secs_f64(at);
            let what = Observation::Sound { segment, first: SampleIndex(first), count };
            let entry = Entry::Saw { captured_at, what };
            let noted = index.note(&Record { n: 1, at: captured_at, entry });
            (noted.is_ok(), index.blocks.len())
        };
        assert_eq!(note(2, 1000, 1000, 2.0), (true, 2));
        assert_eq!(note(3, 0, 1000, 2.0), (true, 2));
        assert_eq!(note(2, u64::MAX, 2, 2.0), (false, 1));
        assert_eq!(note(2, 1000, 1000, 0.9), (false, 1));
        assert_eq!(note(2, 999, 1000, 2.0), (false, 1));
        assert_eq!(note(1, 0, 1000, 2.0), (false, 1));
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
