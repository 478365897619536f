//! The board's console: bytes become lines, lines get a meaning, meanings count boots.
//!
//! Grammar and wording are those of ESP-IDF 4.4 to 6.1 and of xiaozhi-esp32; nothing here
//! decides whether a line is good or bad news.

mod boot;
mod firmware;
mod grammar;
mod lines;
mod panic;
#[cfg(test)]
mod tests;

pub use boot::{BootEvent, Boots, Reset, ResetCause, RestartSign};
pub use lines::{Lines, RawLine};
pub use panic::{PanicKind, PanicText};

use crate::time::DeviceMillis;
use regex::Regex;
use serde::Serialize;
use std::sync::LazyLock;

/// Printed by the brown-out interrupt, with a tag or without.
const BROWN_OUT: &str = "Brownout detector was triggered";

/// How the lines begin that nothing but a reset or a panic prints.
static MARKER: LazyLock<Regex> = LazyLock::new(|| {
    let markers = [
        "ESP-ROM:",
        "ets ",
        "rst:0x",
        "Guru Meditation Error: Core",
        "abort() was called at PC 0x",
        "assert failed: ",
        "ESP_ERROR_CHECK failed: ",
        "***ERROR*** A stack overflow in task ",
    ];
    Regex::new(&markers.map(regex::escape).join("|")).expect("escaped literals")
});

/// One console line with what it means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UartLine {
    /// The whole line, ANSI colours removed.
    pub text: String,
    /// Its parts when it is a line of the ESP-IDF log.
    pub log: Option<Log>,
    /// What it says to a bench.
    pub means: Meaning,
    /// The words of a reset or a panic stand behind half of another line: they may be real or be
    /// quoted, and count only if what follows bears them out.
    pub torn: bool,
}

impl UartLine {
    /// Whether its message is `wanted`, or the text under the tag of `tagged` (the same words, cut
    /// in two); a line that merely mentions it is not it, nor one of another tag that quotes it.
    pub fn says(&self, wanted: &str, tagged: Option<(&str, &str)>) -> bool {
        match (&self.log, tagged) {
            (None, _) => self.text == wanted,
            (Some(log), Some((tag, text))) => log.tag == tag && log.text == text,
            (Some(log), None) => log.text == wanted && !self.quotes(),
        }
    }

    /// Whether the text was written by someone else (a server, a user), so that it may quote
    /// anything without it having happened.
    pub fn quotes(&self) -> bool {
        self.log.as_ref().is_some_and(firmware::quotes)
    }
}

/// A line of the ESP-IDF log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Log {
    /// Severity.
    pub level: Level,
    /// The device's clock, when the line carries decimal milliseconds.
    pub stamp: Option<DeviceMillis>,
    /// Module that wrote it.
    pub tag: String,
    /// What it wrote.
    pub text: String,
}

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// `E`
    Error,
    /// `W`
    Warning,
    /// `I`
    Info,
    /// `D`
    Debug,
    /// `V`
    Verbose,
}

/// Who asked for a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RebootBy {
    /// The MCP tool `self.reboot`.
    Tool,
    /// A `system` message of the server.
    SystemMessage,
}

/// What a console line says to a bench.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// Nothing that a bench listens for.
    Nothing,
    /// First line of the mask ROM after a reset.
    RomStart {
        /// `esp32s3`; the ESP32's ROM (`ets Jul 29 2019 ...`) does not say it.
        chip: Option<String>,
    },
    /// The ROM's reset reason.
    Reset(Reset),
    /// The ROM waits for esptool: the board does not run its firmware.
    WaitingForDownload,
    /// The ROM found no bootloader: blank or badly written flash.
    InvalidHeader,
    /// A line that only a panic prints.
    Panic(PanicText),
    /// Call stack of a panic or of the task watchdog.
    Backtrace {
        /// Program counter and stack pointer, innermost first.
        frames: Vec<(u32, u32)>,
        /// The unwinder gave up on a broken stack.
        corrupted: bool,
    },
    /// Registers of a panic or of the task watchdog.
    RegisterDump,
    /// First hex digits of the image's SHA-256, at start-up or in a panic.
    ElfSha(String),
    /// End of the panic handler.
    RebootingAfterPanic,
    /// The application restarts on purpose.
    Rebooting,
    /// Someone asked for a restart.
    RebootRequested {
        /// By which way.
        by: RebootBy,
    },
    /// The application changed its state.
    State {
        /// State before; firmware before 2.1.0 does not say it.
        from: Option<String>,
        /// State now.
        to: String,
    },
    /// A refused change of state.
    InvalidTransition {
        /// State that it is and stays in.
        from: String,
        /// State that was asked for.
        to: String,
    },
    /// The volume variable was written, percent.
    VolumeSet(i32),
    /// The stored volume (this one) was not positive, so the default is used.
    VolumeFloor(i32),
    /// Output path switched.
    OutputEnabled(bool),
    /// Input path switched.
    InputEnabled(bool),
    /// An MCP tool was registered.
    ToolAdded {
        /// Its full name.
        name: String,
        /// Visible only to the user's own clients.
        user: bool,
    },
    /// The MCP server refused a request; its whole text.
    McpError(String),
    /// Identity of the board.
    Board {
        /// `Client-Id` of its HTTP requests.
        uuid: String,
        /// Board name of the build.
        sku: String,
    },
    /// Version of the running image.
    AppVersion(String),
    /// Project name of the running image.
    ProjectName(String),
    /// The class of the codec object, which tells the volume law.
    Codec(String),
    /// The main loop is alive; heap in bytes.
    Heartbeat {
        /// Free now.
        free: u64,
        /// Lowest since the boot.
        minimum: u64,
    },
    /// A task starved the idle task; does not reset by itself.
    TaskWatchdog,
    /// The supply fell too low.
    BrownOut,
    /// The device alerts its user.
    Alert {
        /// Face it makes.
        emotion: String,
        /// Headline.
        status: String,
        /// Text.
        message: String,
    },
    /// A sentence of the dialogue; proves that its JSON came, not that it sounded.
    Text {
        /// `>>`: what the board's microphone heard. Otherwise `<<`: what it is made to say.
        from_device: bool,
        /// The sentence.
        text: String,
    },
}

/// Reads one line, without its end. Knows nothing of other lines.
pub fn read(text: &str) -> UartLine {
    let text = grammar::plain(text).into_owned();
    let line = grammar::skip_noise(&text);
    let log = grammar::log(line);
    let (means, torn) = meaning(line, log.as_ref());
    UartLine { torn, means: means.unwrap_or(Meaning::Nothing), text, log }
}

fn meaning(line: &str, log: Option<&Log>) -> (Option<Meaning>, bool) {
    if !log.is_some_and(firmware::quotes)
        && let Some((means, torn)) = marked(line)
    {
        return (Some(means), torn);
    }
    let means = match log {
        Some(log) => firmware::read(log),
        None => bare(line),
    };
    (means, false)
}

/// A reset or a panic does not wait for the end of a line: its first words may follow directly
/// on half a log line (it is torn) or on binary noise. After a blank, a quote, a colon, a bracket
/// or the like they are only a mention.
fn marked(line: &str) -> Option<(Meaning, bool)> {
    MARKER.find_iter(line).find_map(|marker| {
        let noise = |c: char| c.is_control() || c == '\u{fffd}';
        let before = &line[..marker.start()];
        if !before.chars().next_back().is_none_or(|c| c.is_alphanumeric() || noise(c)) {
            return None;
        }
        let text = &line[marker.start()..];
        let means = boot::read(text).or_else(|| panic::read(text))?;
        Some((means, !before.chars().all(noise)))
    })
}

/// Lines without a tag.
fn bare(line: &str) -> Option<Meaning> {
    if line == "Rebooting..." {
        return Some(Meaning::RebootingAfterPanic);
    }
    if line.starts_with("waiting for download") {
        return Some(Meaning::WaitingForDownload);
    }
    if line.starts_with("invalid header: 0x") {
        return Some(Meaning::InvalidHeader);
    }
    if line.starts_with(BROWN_OUT) {
        return Some(Meaning::BrownOut);
    }
    panic::backtrace(line)
        .or_else(|| panic::registers(line))
        .or_else(|| firmware::elf_sha(line))
        .or_else(|| panic::stack(line))
}
