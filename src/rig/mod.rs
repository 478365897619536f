//! THE WORLD: what feeds the seam with observations and takes commands.
//!
//! Behind one trait stand a simulated bench ([`sim`]) and the past ([`replay`]); [`import`] turns a
//! session that another program recorded into a recording of ours, and [`room`] can put acoustics
//! between its loudspeaker and our ear.

pub mod import;
pub mod plan;
pub mod replay;
pub mod room;
pub mod sim;

use crate::journal::{Command, Observation, Origin, Sound};
use crate::time::Moment;

/// A bench: one device and the instruments around it.
pub trait Rig {
    /// What kind of world it is.
    fn origin(&self) -> Origin;
    /// The next observation before `deadline`, else that it is reached. An observation that is
    /// taken at or after the deadline waits behind it: else a live order could not be replayed.
    fn next(&mut self, deadline: Moment) -> Next;
    /// Begins to do something; never blocks. What comes of it is observed.
    fn perform(&mut self, at: Moment, command: &Command);
}

/// What a rig has to tell.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Something was observed.
    Saw(Seen),
    /// Nothing until the deadline.
    DeadlineReached,
    /// The world has ended.
    Closed,
}

/// An observation on its way into the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// When it was taken; never decreases.
    pub at: Moment,
    /// When its first byte or sample arrived at the edge.
    pub captured_at: Moment,
    /// What arrived.
    pub what: Observation,
    /// The samples, if it is sound.
    pub sound: Option<Sound>,
}
