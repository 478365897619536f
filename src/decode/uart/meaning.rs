//! The words for what a console line means.

use crate::time::DeviceMillis;
use serde::Serialize;

/// One console line with what it means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UartLine {
    /// The whole line without colours.
    pub text: String,
    /// Its parts, when it is a line of ESP-IDF's log.
    pub log: Option<Log>,
    /// What it means.
    pub means: Meaning,
}

/// The parts of a log line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Log {
    /// `E`, `W`, `I`, `D` or `V`.
    pub level: char,
    /// The device's clock, when it is printed in milliseconds since boot.
    pub stamp: Option<DeviceMillis>,
    /// Who speaks.
    pub tag: String,
    /// What is said.
    pub text: String,
}

/// What a console line means (facts/xiaozhi.md section 1).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// Nothing that anybody asks for.
    Nothing,
    /// First line of the mask ROM.
    RomStart {
        /// `esp32s3`; not told by the ROM of the first ESP32.
        chip: Option<String>,
    },
    /// The ROM's reset reason.
    Reset(Reset),
    /// The ROM waits for a download.
    WaitingForDownload,
    /// The ROM finds no image.
    InvalidHeader,
    /// A marker of a panic.
    Panic(PanicText),
    /// A backtrace.
    Backtrace {
        /// Program counter and stack pointer of each frame.
        frames: Vec<(u32, u32)>,
        /// The end of it can't be trusted.
        corrupted: bool,
    },
    /// Prefix of the running image's ELF hash.
    ElfSha(String),
    /// The panic handler restarts the chip.
    RebootingAfterPanic,
    /// The application restarts the chip.
    Rebooting,
    /// Somebody asked for a restart.
    RebootRequested {
        /// By the MCP tool; otherwise by a system message.
        tool: bool,
    },
    /// The application's state.
    State {
        /// The state before; firmware before 2.1.0 does not say it.
        from: Option<String>,
        /// The state now.
        to: String,
    },
    /// A state change that the application refused.
    InvalidTransition {
        /// The state it stays in.
        from: String,
        /// The state that was wanted.
        to: String,
    },
    /// The output volume was written.
    VolumeSet(i32),
    /// A stored volume was too small and became 10.
    VolumeFloor(i32),
    /// The output was switched.
    OutputEnabled(bool),
    /// The input was switched.
    InputEnabled(bool),
    /// A tool was registered.
    ToolAdded {
        /// Its name.
        name: String,
        /// It is user-only.
        user: bool,
    },
    /// The MCP server complains.
    McpError(String),
    /// The board's identity.
    Board {
        /// Its UUID.
        uuid: String,
        /// Its board name.
        sku: String,
    },
    /// The application's version.
    AppVersion(String),
    /// The project's name.
    ProjectName(String),
    /// A codec object came to life; its log tag.
    Codec(String),
    /// The main loop's heartbeat.
    Heartbeat {
        /// Free internal memory in bytes.
        free: u64,
        /// The least that ever was free.
        minimum: u64,
    },
    /// The task watchdog complains; this does not reset the board.
    TaskWatchdog,
    /// The brown-out detector.
    BrownOut,
}

/// A marker of a panic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PanicText {
    /// Which marker.
    pub kind: PanicKind,
    /// The details that stand in the line.
    pub detail: String,
}

/// The kinds of panics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PanicKind {
    /// A CPU exception or the interrupt watchdog.
    Exception {
        /// `LoadProhibited`, `Interrupt wdt timeout on CPU0`.
        reason: String,
    },
    /// `abort()`.
    Abort,
    /// `assert()`.
    Assert,
    /// `ESP_ERROR_CHECK`.
    ErrorCheck,
    /// A task's stack overflowed.
    StackOverflow,
}

/// A reset as the ROM names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reset {
    /// The reason's code; its name differs from chip to chip.
    pub code: u8,
    /// The name that this chip gives it.
    pub name: String,
    /// Boot mode (strapping pins).
    pub boot: u8,
    /// The strapping pins ask for download mode.
    pub download: bool,
}

/// What a reset code says to a bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetCause {
    /// Power, the EN pin, some brown-outs.
    PowerOn,
    /// By software, whole system (bootloader, brown-out handler).
    SoftwareSystem,
    /// By software, CPU: `esp_restart` and panics.
    SoftwareCpu,
    /// Wake-up from deep sleep.
    DeepSleep,
    /// One of the watchdogs.
    Watchdog,
    /// Brown-out.
    BrownOut,
    /// USB-Serial-JTAG control lines: the host did it.
    Usb,
    /// JTAG.
    Jtag,
    /// A code without a meaning for us.
    Other,
}

impl Reset {
    /// The cause by hex code.
    pub fn cause(&self) -> ResetCause {
        match self.code {
            0x1 => ResetCause::PowerOn,
            0x3 => ResetCause::SoftwareSystem,
            0x5 => ResetCause::DeepSleep,
            0x7 | 0x8 | 0x9 | 0x10 | 0xb | 0x11 | 0x12 => ResetCause::Watchdog,
            0xc => ResetCause::SoftwareCpu,
            0xf => ResetCause::BrownOut,
            0x15 => ResetCause::Usb,
            0x16 => ResetCause::Jtag,
            _ => ResetCause::Other,
        }
    }
}
