//! THE EARS: records to facts. Pure, and never fails: what can't be understood is a fact, too.
//! The ears do not know the question.

mod decoder;
pub mod ear;
mod fact;
mod json;
mod mcp;
mod mqtt;
mod socket;
pub mod sound;
mod story;
mod stream;
pub mod uart;
pub mod udp;

pub use decoder::Decoder;
pub use fact::{Beacon, Control, Fact, HttpMessage, Transport, What};
pub use json::doubled_key;
pub use mcp::{Answer, Exchange, Ledger, Reply, Request, Returned};
pub use story::{Step, Story, tell};
