//! earwitness

pub mod app;
pub mod audio;
#[cfg(feature = "cli")]
pub mod cli;
pub mod decode;
pub mod journal;
pub mod judge;
pub mod report;
pub mod rig;
pub mod scenario;
pub mod time;
