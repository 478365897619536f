//! The loop: a rig and a conductor to a journal. One pass of it is one observation or one deadline.

use crate::decode::{Decoder, Story};
use crate::journal::{Entry, Journal, JournalError, Record, Seals, Sound};
use crate::rig::{Next, Rig};
use crate::scenario::conductor::Conductor;
use crate::time::Moment;

/// Plays a scenario to its end. When the world ends before, the journal stays without its end
/// record: the session is incomplete.
///
/// # Errors
/// When the journal can't be written: evidence must be recorded.
pub fn run(
    rig: &mut dyn Rig,
    conductor: &mut Conductor,
    journal: &mut dyn Journal,
) -> Result<(), JournalError> {
    let mut pen = Pen { journal, decoder: Decoder::default(), story: Story::default(), n: 0 };
    let mut now = Moment::START;
    loop {
        conductor.advance(now, &pen.story, pen.journal)?;
        while let Some(entry) = conductor.next_entry() {
            let command = match &entry {
                Entry::Did { command } => Some(command.clone()),
                _ => None,
            };
            pen.write(now, entry, None, conductor)?;
            if let Some(command) = command {
                rig.perform(now, &command);
            }
        }
        if conductor.is_over() {
            let end = Entry::End { records: pen.n, files: Seals::new() };
            return pen.write(now, end, None, conductor);
        }
        let deadline = conductor.deadline();
        match rig.next(deadline) {
            Next::Saw(seen) => {
                now = seen.at;
                let entry = Entry::Saw { captured_at: seen.captured_at, what: seen.what };
                pen.write(now, entry, seen.sound, conductor)?;
            }
            Next::DeadlineReached => now = now.max(deadline),
            Next::Closed => return Ok(()),
        }
    }
}

/// Writes records and tells what they mean.
struct Pen<'a> {
    journal: &'a mut dyn Journal,
    decoder: Decoder,
    story: Story,
    n: u64,
}

impl Pen<'_> {
    fn write(
        &mut self,
        at: Moment,
        entry: Entry,
        sound: Option<Sound>,
        conductor: &mut Conductor,
    ) -> Result<(), JournalError> {
        let record = Record { n: self.n, at, entry };
        self.n += 1;
        let facts = self.decoder.take(&record);
        self.journal.append(record, sound)?;
        for fact in facts {
            conductor.note(at, &fact);
            self.story.note(fact);
        }
        Ok(())
    }
}
