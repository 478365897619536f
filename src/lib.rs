//! earwitness compares what a voice board *says* with what physically *happened*.
//!
//! An MCP tool's text `"true"` proves that a callback returned, no more. For every action the
//! bench collects evidence on five rungs (listed, accepted, executed, readback, physical), all of
//! it from one journal with one clock, and names the first rung that is missing. *Silent is never
//! proven*, *could not run is never pass*.
//!
//! # The map of the house
//!
//! ```text
//!   scenarios/*.toml   rigs/*.toml   rigs/boards/*.toml
//!        |                  |                |
//!        v                  v                v
//!  +-----------+  Command  +-------------------------------+     a foreign session
//!  | scenario  |---------->| rig: one of these worlds      |          v
//!  | conductor |           |  sim     software board, room |    +------------+
//!  | + backend |<----+     |  replay  a recording          |    | rig        |
//!  +-----------+     |     +-------------------------------+    |  import    |
//!                    |         | Observation                    |  room      |
//!                    |         v                                +------------+
//!                    |     +---------+  Record   +---------+ Record  |
//!                    |     | run     |---------->| journal |<--------+
//!                    |     +---------+           +---------+
//!                    |         | Record               | head.json: the texts above, whole
//!                    |         v                      | records.jsonl: bytes, frames, times
//!                    |  Fact +---------+              | mic-NNN.wav: samples
//!                    +-------| decode  |              v
//!                            +---------+        Evidence (records streamed, samples by window)
//!                                                     |
//!                                                     v
//!                          +---------+   Fact, Story, Hearing    +-------+   Verdict   +--------+
//!                          | decode  |-------------------------->| judge |------------>| report |
//!                          +---------+                           +-------+             +--------+
//!                               ^ audio: levels, tones, laws, what may be concluded ^
//! ```
//!
//! `run` is the upper half and then the lower one on the journal just written; `judge` is the
//! lower half; `replay` is the upper half with a recording for a world.
//!
//! | room | what it does | what it never does |
//! |---|---|---|
//! | [`time`] | moments, windows, numbers with uncertainty | read a clock |
//! | [`journal`] | records, recordings, redaction | have an opinion |
//! | [`decode`] | records to facts, samples to hearings | fail, or know the question |
//! | [`audio`] | the arithmetic of sound and the rules of decision | know boards or files |
//! | [`backend`] | the part we play: config, MQTT, MCP, speech | open a socket |
//! | [`board`] | the software board and its room | use our reading of the protocol |
//! | [`scenario`] | files that say what to do and what must be true; the conductor | act itself |
//! | [`rig`] | the worlds: simulated, recorded, imported | judge |
//! | [`mod@run`] | the loop: rig and conductor to a journal | decide |
//! | [`judge`] | claims and evidence to a verdict; pure | see a rig or a clock |
//! | [`report`] | verdicts for people and programs | decide |
//! | [`app`], `cli` | one short story per verb | anything clever |
//!
//! `tests/tidy.rs` holds the arrows between the rooms.
//!
//! # Invariants
//!
//! 1. The journal holds raw evidence. A repaired decoder judges old recordings anew.
//! 2. A recording is the evidence bundle: folder in, verdict out, nothing else needed.
//! 3. Only evidence newer than the action counts, and only from the same boot and connection.
//! 4. A missing tone is refuted only when the smallest expected one would stand 15 dB over the
//!    noise *and* the ear was proven alive by something that is not the board's amplifier.
//! 5. A level is judged when twice its standard uncertainty is at most a third of the tolerance,
//!    and then with guard bands on both limits.
//! 6. Guards turn a finding silent, never proven.
//!
//! # Where this departs from the first design, and why
//!
//! * MQTT is recorded as whole control packets (not payloads), so that CONNECT, DISCONNECT and
//!   PUBLISH take one path through the decoder.
//! * A claim may name steps by the beginning of their ids (`volume-*`), ask for what a step asked
//!   for (`as_asked`) and quote an argument in a log line (`{volume}`): the numbers stand in one
//!   place, where the call is made.
//! * `repeat` is a fixed number of passes; `interleave` is what the extra passes belong to, because
//!   only passes that are held against each other have an uncertainty to shrink. The conductor
//!   looks at the uncertainty alone, not at the value: who repeats until a value is inside of a
//!   limit, lies.
//! * An observation carries its samples through the loop into the journal, and the conductor hears
//!   from the journal: a replay then hears what was heard.
//! * The pure core is the crate without its `cli` feature; it needs no system library.
//! * Two repeats scatter too much by chance to overrule the measured noise: the scatter of the
//!   repeats replaces the stated uncertainty only when it is four times as large.

pub mod app;
pub mod audio;
pub mod backend;
pub mod board;
#[cfg(feature = "cli")]
pub mod cli;
pub mod decode;
pub mod journal;
pub mod judge;
pub mod report;
pub mod rig;
pub mod run;
pub mod scenario;
pub mod time;
