//! THE PAST as a world: what was observed then is observed again, whatever is done today.

use super::{Next, Rig, Seen};
use crate::journal::{
    Clip, Command, Condition, Entry, Evidence, Head, Journal, JournalError, MemoryRecording,
    Observation, Origin, Record, Sound,
};
use crate::time::{Moment, Window};
use std::time::Duration;

/// A recording, played again.
pub struct ReplayRig<'a> {
    evidence: &'a dyn Evidence,
    records: Box<dyn Iterator<Item = Result<Record, JournalError>> + 'a>,
    held: Option<(Moment, Moment, Observation)>,
    /// Until when it is known what happened: for ever after a session that was ended in order.
    known: Moment,
}

impl<'a> ReplayRig<'a> {
    /// From the beginning.
    pub fn new(evidence: &'a dyn Evidence) -> Self {
        ReplayRig { evidence, records: evidence.records(), held: None, known: Moment::START }
    }

    fn fill(&mut self) {
        while self.held.is_none() {
            // A record that can't be read ends the past; who compares finds it missing.
            let Some(Ok(record)) = self.records.next() else { return };
            self.known = record.at;
            match record.entry {
                Entry::Saw { captured_at, what } => {
                    self.held = Some((record.at, captured_at, what));
                }
                // A deadline that is never is not reached.
                Entry::End { .. } => self.known = Moment::NEVER.before(Duration::from_nanos(1)),
                _ => {}
            }
        }
    }

    /// The samples of a block, as they were delivered then.
    fn sound(&self, from: Moment, what: &Observation) -> Option<Sound> {
        let &Observation::Sound { count, .. } = what else { return None };
        let read = |seconds| {
            let until = from + Duration::from_secs_f64(seconds);
            self.evidence.samples(Window { from, until }).ok().filter(|clip| clip.whole)
        };
        let rate = read(0.0)?.rate;
        let clip = read(count as f64 / f64::from(rate))?;
        Some(Sound { rate, samples: clip.samples.iter().map(|&x| x as f32).collect() })
    }
}

impl Rig for ReplayRig<'_> {
    fn origin(&self) -> Origin {
        self.evidence.head().origin
    }

    fn next(&mut self, deadline: Moment) -> Next {
        self.fill();
        match self.held.take() {
            Some(held) if held.0 >= deadline => {
                self.held = Some(held);
                Next::DeadlineReached
            }
            Some((at, captured_at, what)) => {
                let sound = self.sound(captured_at, &what);
                Next::Saw(Seen { at, captured_at, what, sound })
            }
            None if deadline <= self.known => Next::DeadlineReached,
            None => Next::Closed,
        }
    }

    fn perform(&mut self, _: Moment, _: &Command) {}
}

/// A journal that holds each record against the one of then, and keeps the first difference. Where
/// a session broke off nothing is known of what would have followed, so that nothing differs.
pub struct Mirror<'a> {
    then: Box<dyn Iterator<Item = Result<Record, JournalError>> + 'a>,
    /// The end record of then was met.
    ended: bool,
    /// The records of then broke off.
    broke_off: bool,
    now: MemoryRecording,
    diverged: Option<Divergence>,
}

/// Where today's decisions leave those of then.
#[derive(Clone, Debug, PartialEq)]
pub struct Divergence {
    /// Number of the record.
    pub n: u64,
    /// What was recorded there; `None` after its end.
    pub then: Option<Record>,
    /// What would be recorded today; `None` when today ends before.
    pub today: Option<Record>,
}

impl<'a> Mirror<'a> {
    /// Of a recording.
    pub fn new(evidence: &'a dyn Evidence) -> Self {
        let now = MemoryRecording::begin(evidence.head().clone());
        let then = evidence.records();
        Mirror { then, ended: false, broke_off: false, now, diverged: None }
    }

    /// The first difference after everything was written, and the journal of today, which breaks
    /// off where that of then does.
    ///
    /// # Errors
    /// When the recording can't be read to its end.
    pub fn finish(mut self) -> Result<(Option<Divergence>, MemoryRecording), JournalError> {
        if self.diverged.is_none()
            && let Some(record) = self.then.next()
        {
            let record = record?;
            self.diverged = Some(Divergence { n: record.n, then: Some(record), today: None });
        }
        Ok((self.diverged, self.now))
    }
}

impl Evidence for Mirror<'_> {
    fn head(&self) -> &Head {
        self.now.head()
    }

    fn condition(&self) -> &Condition {
        self.now.condition()
    }

    fn records(&self) -> Box<dyn Iterator<Item = Result<Record, JournalError>> + '_> {
        self.now.records()
    }

    fn samples(&self, window: Window) -> Result<Clip, JournalError> {
        self.now.samples(window)
    }
}

impl Journal for Mirror<'_> {
    fn append(&mut self, record: Record, sound: Option<Sound>) -> Result<(), JournalError> {
        if self.broke_off {
            return Ok(());
        }
        if self.diverged.is_none() {
            let then = self.then.next().transpose()?;
            self.broke_off = then.is_none() && !self.ended;
            if self.broke_off {
                return Ok(());
            }
            self.ended |= matches!(&then, Some(Record { entry: Entry::End { .. }, .. }));
            // The files of a saved recording are sealed in its end record; a session has none yet.
            let same = then.as_ref().is_some_and(|then| then.n == record.n && alike(then, &record));
            if !same {
                let today = Some(record.clone());
                self.diverged = Some(Divergence { n: record.n, then, today });
            }
        }
        self.now.append(record, sound)
    }
}

fn alike(then: &Record, today: &Record) -> bool {
    match (&then.entry, &today.entry) {
        (Entry::End { records: a, .. }, Entry::End { records: b, .. }) => {
            (a, then.at) == (b, today.at)
        }
        _ => then == today,
    }
}
