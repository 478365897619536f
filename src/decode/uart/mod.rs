//! The console: bytes to lines, lines to meanings, meanings to boots and panics.

mod boot;
mod grammar;
mod lines;
mod meaning;

pub use boot::{BootEvent, Boots};
pub use grammar::read;
pub use lines::{Lines, RawLine};
pub use meaning::{Log, Meaning, PanicKind, PanicText, Reset, ResetCause, UartLine};
