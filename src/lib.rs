//! earwitness
pub mod audio;
pub mod journal;
pub mod time;
