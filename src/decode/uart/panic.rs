//! The words of a crash.

use super::Meaning;
use regex::Regex;
use serde::Serialize;
use std::fmt;
use std::sync::LazyLock;

/// A line that only a panic prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PanicText {
    /// What broke.
    pub kind: PanicKind,
    /// The rest of the line: place, expression, task.
    pub detail: String,
}

/// The ways of ESP-IDF to die.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PanicKind {
    /// A CPU exception or the interrupt watchdog: `Guru Meditation Error`.
    Exception {
        /// CPU that took it.
        core: u8,
        /// `LoadProhibited`, `Interrupt wdt timeout on CPU0`.
        reason: String,
    },
    /// `abort()`, also after an uncaught C++ exception.
    Abort,
    /// A failed `assert`.
    Assert,
    /// A failed `ESP_ERROR_CHECK`; an abort follows.
    ErrorCheck,
    /// A task overran its stack; the detail is its name.
    StackOverflow,
    /// The supply fell too low.
    BrownOut,
    /// Only the end of a report was seen: a register dump, a call stack, `Rebooting...`.
    Unknown,
}

impl fmt::Display for PanicKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PanicKind::Exception { core, reason } => write!(f, "{reason} on CPU {core}"),
            PanicKind::Abort => f.write_str("abort()"),
            PanicKind::Assert => f.write_str("a failed assert"),
            PanicKind::ErrorCheck => f.write_str("a failed ESP_ERROR_CHECK"),
            PanicKind::StackOverflow => f.write_str("a stack overflow"),
            PanicKind::BrownOut => f.write_str("the supply fell too low (brown-out)"),
            PanicKind::Unknown => f.write_str("only the end of the panic report was seen"),
        }
    }
}

static EXCEPTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^Guru Meditation Error: Core\s+([0-9]+) panic'ed(?: \(([^)]*)\)?\.?\s*(.*))?")
        .expect("a constant pattern")
});

/// Reads a text that begins with one of the panic markers.
pub(super) fn read(text: &str) -> Option<Meaning> {
    if let Some(found) = EXCEPTION.captures(text) {
        let part = |n: usize| found.get(n).map_or("", |part| part.as_str()).to_string();
        let kind = PanicKind::Exception { core: found[1].parse().ok()?, reason: part(2) };
        return Some(Meaning::Panic(PanicText { kind, detail: part(3) }));
    }
    let plain = [
        ("abort() was called at ", PanicKind::Abort),
        ("assert failed: ", PanicKind::Assert),
        ("ESP_ERROR_CHECK failed: ", PanicKind::ErrorCheck),
    ];
    for (words, kind) in plain {
        if let Some(detail) = text.strip_prefix(words) {
            return Some(Meaning::Panic(PanicText { kind, detail: detail.to_string() }));
        }
    }
    let task = text.strip_prefix("***ERROR*** A stack overflow in task ")?;
    Some(overflow(task.split(" has been detected").next().unwrap_or(task)))
}

/// Lines that name the task whose stack overflowed, after the exception itself.
pub(super) fn stack(line: &str) -> Option<Meaning> {
    if let Some((_, task)) = line.split_once("Stack canary watchpoint triggered (") {
        return Some(overflow(task.split(')').next().unwrap_or(task)));
    }
    let task = line.strip_prefix("Detected in task \"")?;
    Some(overflow(task.split('"').next().unwrap_or(task)))
}

fn overflow(task: &str) -> Meaning {
    let detail = task.trim().to_string();
    Meaning::Panic(PanicText { kind: PanicKind::StackOverflow, detail })
}

/// `Backtrace: 0xPC:0xSP ...`, also without the first blank (ESP-IDF 4).
pub(super) fn backtrace(line: &str) -> Option<Meaning> {
    let rest = line.strip_prefix("Backtrace:")?;
    let frames = rest.split_whitespace().map_while(frame).collect();
    Some(Meaning::Backtrace { frames, corrupted: rest.contains("|<-CORRUPTED") })
}

/// Registers, printed by a panic and by the task watchdog on RISC-V.
pub(super) fn registers(line: &str) -> Option<Meaning> {
    let (core, rest) = line.strip_prefix("Core ")?.trim_start().split_once(' ')?;
    let dump = core.bytes().all(|byte| byte.is_ascii_digit()) && rest == "register dump:";
    dump.then_some(Meaning::RegisterDump)
}

fn frame(word: &str) -> Option<(u32, u32)> {
    let (pc, sp) = word.split_once(':')?;
    Some((address(pc)?, address(sp)?))
}

fn address(word: &str) -> Option<u32> {
    u32::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}
