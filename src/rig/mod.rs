//! THE WORLD: what feeds the seam with observations.
//!
//! So far the only world is the past: [`import`] turns a session that another program recorded
//! into a recording of ours, and [`room`] can put acoustics between its loudspeaker and our ear.

pub mod import;
pub mod plan;
pub mod room;
