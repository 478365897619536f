//! THE ARITHMETIC: sound in, numbers out. Knows nothing of boards, journals or scenarios.
//!
//! Power is mean-square in `f64` everywhere; decibels appear only at the border. `dBFS` is AES17:
//! a full-scale sine is 0 dBFS.

pub mod decide;
pub mod law;
pub mod level;
pub mod noise;
pub mod opus;
pub mod spectrum;
pub mod steady;
pub mod stimulus;
pub mod tone;
