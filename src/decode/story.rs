//! One session told: its facts, its steps, and its MCP traffic paired.

use super::decoder::Decoder;
use super::fact::{Beacon, Fact, What};
use super::mcp::{Exchange, Ledger};
use crate::journal::{Edge, Evidence, JournalError};
use crate::time::{Moment, Window};

/// Everything the records say.
#[derive(Debug, Default)]
pub struct Story {
    /// Facts in order of their records.
    pub facts: Vec<Fact>,
    /// Step instances in order.
    pub steps: Vec<Step>,
    /// Requests with their replies.
    pub mcp: Ledger,
    /// Ordering stamp of the last record.
    pub until: Moment,
}

/// A step instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// `loud` or `loud#2`.
    pub path: String,
    /// From its start record to its end record.
    pub window: Window,
    /// Record with which it began.
    pub record: u64,
    /// It came to its own end.
    pub is_whole: bool,
}

impl Step {
    /// The id that a claim uses: the path without `#2` or `[volume=60]`.
    pub fn id(&self) -> &str {
        self.path.split(['#', '[']).next().unwrap_or(&self.path)
    }

    /// Whether a claim that names `id` means this instance.
    pub fn is(&self, id: &str) -> bool {
        match id.strip_suffix('*') {
            Some(beginning) => self.path.starts_with(beginning),
            None => self.id() == id || self.path == id,
        }
    }
}

/// Tells the story of a session in one pass over its records.
///
/// # Errors
/// When a record is damaged or can't be read.
pub fn tell(evidence: &dyn Evidence) -> Result<Story, JournalError> {
    let mut decoder = Decoder::default();
    let mut story = Story::default();
    for record in evidence.records() {
        let record = record?;
        story.until = story.until.max(record.at);
        for fact in decoder.take(&record) {
            story.note(fact);
        }
    }
    for fact in decoder.finish() {
        story.note(fact);
    }
    Ok(story)
}

impl Story {
    /// Takes the next fact.
    pub fn note(&mut self, fact: Fact) {
        self.mcp.note(&fact);
        if let What::Step { path, edge } = &fact.what {
            match edge {
                Edge::Start => self.steps.push(Step {
                    path: path.clone(),
                    window: Window { from: fact.at, until: Moment::NEVER },
                    record: fact.record,
                    is_whole: false,
                }),
                Edge::End | Edge::Cut => {
                    if let Some(step) = self.steps.iter_mut().rev().find(|s| s.path == *path) {
                        step.window.until = fact.at;
                        step.is_whole = *edge == Edge::End;
                    }
                }
            }
        }
        self.facts.push(fact);
    }

    /// All instances of a step, in order; `id` may also be the path of one instance, or end in
    /// `*` for all ids that begin like it.
    pub fn instances<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Step> {
        self.steps.iter().filter(move |step| step.is(id))
    }

    /// The tool calls that were sent during a step.
    pub fn calls<'a>(&'a self, step: &'a Step) -> impl Iterator<Item = &'a Exchange> {
        let during = |x: &&Exchange| step.window.contains(x.at) && x.request.tool.is_some();
        self.mcp.exchanges.iter().filter(during)
    }

    /// The beacons of the session.
    pub fn beacons(&self) -> impl Iterator<Item = (&Fact, Beacon)> {
        self.facts.iter().filter_map(|fact| match fact.what {
            What::Beacon(beacon) => Some((fact, beacon)),
            _ => None,
        })
    }
}
