//! What the mask ROM says at a reset, and the counting of boots and panics from it.

use super::{Meaning, PanicKind, UartLine};
use regex::Regex;
use serde::Serialize;
use std::fmt;
use std::sync::LazyLock;

/// Between the ROM's first line and its `rst:` line lies at most a `Build:` line; one more is
/// granted for noise.
const ROM_TO_RESET: u32 = 3;
/// Lines within which a torn panic must be borne out by its registers, call stack or end.
const TORN_TO_PROOF: u32 = 6;
/// Lines that the task watchdog's report takes at most, with its call stacks and what other
/// tasks print meanwhile.
const WATCHDOG_REPORT: u32 = 30;
/// Once the application runs, the device's clock never falls by this many milliseconds. Before, it
/// may: until the scheduler starts, stamps come from a counter that a reset of the CPU keeps.
const CLOCK_FALL: u64 = 5_000;

/// The ROM's `rst:` line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reset {
    /// Reset code; the only part that means the same on every chip.
    pub code: u8,
    /// The ROM's name for the code, which differs per chip.
    pub name: String,
    /// State of the strapping pins.
    pub boot: u32,
    /// Whether the ROM waits for a download instead of booting from flash.
    pub download: bool,
}

/// What a reset code says to a bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetCause {
    /// Power or the EN pin.
    PowerOn,
    /// Bootloader or brown-out interrupt.
    SoftwareSystem,
    /// Wake from deep sleep.
    DeepSleep,
    /// Any of the hardware watchdogs.
    Watchdog,
    /// `esp_restart()` and panic alike.
    SoftwareCpu,
    /// Supply too low, found by hardware.
    BrownOut,
    /// The host, through the USB-Serial-JTAG control lines.
    Usb,
    /// The host, through JTAG.
    Jtag,
    /// A code that says nothing to a bench, or different things on different chips.
    Other(u8),
}

impl Reset {
    /// The cause behind the code, the same for all chips.
    pub fn cause(&self) -> ResetCause {
        match self.code {
            0x1 => ResetCause::PowerOn,
            0x3 => ResetCause::SoftwareSystem,
            0x5 => ResetCause::DeepSleep,
            // 0xd is the RTC watchdog's reset of the CPU only, as 0xb is the timer group's.
            0x7 | 0x8 | 0x9 | 0xb | 0xd | 0x10 | 0x11 | 0x12 => ResetCause::Watchdog,
            0xc => ResetCause::SoftwareCpu,
            0xf => ResetCause::BrownOut,
            0x15 => ResetCause::Usb,
            0x16 => ResetCause::Jtag,
            other => ResetCause::Other(other),
        }
    }
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.cause() {
            ResetCause::PowerOn => "power-on or the EN pin",
            ResetCause::SoftwareSystem => "a software reset of the whole system",
            ResetCause::DeepSleep => "a wake from deep sleep",
            ResetCause::Watchdog => "a watchdog",
            ResetCause::SoftwareCpu => "a software restart",
            ResetCause::BrownOut => "a brown-out",
            ResetCause::Usb => "the host, over USB",
            ResetCause::Jtag => "JTAG",
            ResetCause::Other(_) => "a cause that only its code tells",
        };
        write!(f, "{words} (rst:0x{:x})", self.code)
    }
}

static ROM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:ESP-ROM:([a-z0-9]+)|ets [A-Z][a-z]{2} [ 0-9][0-9] [0-9]{4} [0-9:]{8})")
        .expect("a constant pattern")
});
static RESET: LazyLock<Regex> = LazyLock::new(|| {
    // No bracket inside a name: a line of nothing but `rst:0x1 (` must not take quadratic time.
    Regex::new(r"^rst:0x([0-9a-fA-F]+) \(([^()]*)\),boot:0x([0-9a-fA-F]+) \(([A-Z0-9_]*)")
        .expect("a constant pattern")
});

/// Reads a text that begins with one of the ROM's markers.
pub(super) fn read(text: &str) -> Option<Meaning> {
    if let Some(rom) = ROM.captures(text) {
        return Some(Meaning::RomStart { chip: rom.get(1).map(|chip| chip.as_str().to_string()) });
    }
    let found = RESET.captures(text)?;
    let mode = &found[4];
    Some(Meaning::Reset(Reset {
        code: u8::from_str_radix(&found[1], 16).ok()?,
        name: found[2].to_string(),
        boot: u32::from_str_radix(&found[3], 16).ok()?,
        // The ESP32 calls one of its download modes UART_BOOT.
        download: mode.starts_with("DOWNLOAD") || mode == "UART_BOOT",
    }))
}

/// A step in the life of the board.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BootEvent {
    /// The ROM's first line: a new boot.
    Began {
        /// Number of the boot, from 1.
        number: u32,
    },
    /// The ROM told why.
    Reset {
        /// Number of the boot that it opens.
        number: u32,
        /// What the ROM said.
        reset: Reset,
        /// This line is the first of its boot (the ROM's first line was lost), so that no
        /// `Began` went before.
        began: bool,
        /// The application announced this restart and nothing panicked since the last banner.
        clean: bool,
    },
    /// A new boot whose banner nobody saw; why it came is unknown.
    Missed {
        /// Number of the boot.
        number: u32,
        /// What gave it away.
        sign: RestartSign,
    },
    /// A panic episode, however many lines and cores tell it.
    Panicked {
        /// Boot in which it happened; 0 before any banner.
        boot: u32,
        /// What the first line of the episode says.
        kind: PanicKind,
    },
}

/// What gives away a boot without a banner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RestartSign {
    /// The application told a second time who it is, or that it starts.
    StartedAgain,
    /// The stamps of its lines fell back.
    ClockFell,
    /// The ROM spoke, but its `rst:` line was not whole.
    RomText,
}

/// How lines of a ROM banner begin that come with its `rst:` line or after it.
const ROM_TEXT: [&str; 6] = ["rst:0x", "SPIWP:0x", "mode:", "load:0x", "entry 0x", "configsip:"];

impl fmt::Display for RestartSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RestartSign::StartedAgain => "the application's start-up lines came a second time",
            RestartSign::ClockFell => "the stamps of the console lines fell back",
            RestartSign::RomText => "the ROM spoke, but no whole banner came",
        })
    }
}

/// Counts boots and panic episodes over the lines of a console, in order.
#[derive(Clone, Debug, Default)]
pub struct Boots {
    number: u32,
    /// Lines since a ROM start that no `rst:` line has claimed yet.
    rom_age: Option<u32>,
    /// A panic was reported and its `Rebooting...` has not come.
    in_episode: bool,
    /// Since the last banner.
    panicked: bool,
    /// A torn panic that nothing has borne out yet, and its age in lines.
    torn: Option<(PanicKind, u32)>,
    /// Lines for which the task watchdog's report may still go on.
    watchdog: u32,
    /// The application said `Rebooting...` since the last banner.
    announced: bool,
    /// How the boot before this one ended.
    left_cleanly: bool,
    /// The application told a state since the last banner.
    running: bool,
    /// The last stamps in milliseconds, oldest first.
    stamps: [Option<u64>; 3],
}

impl Boots {
    /// Takes the next line.
    pub fn see(&mut self, line: &UartLine) -> Option<BootEvent> {
        self.age();
        let event = match &line.means {
            // Its own `rst:` line follows a torn banner, and what is torn there is too little.
            Meaning::RomStart { .. } | Meaning::Reset(_) if line.torn => None,
            Meaning::RomStart { .. } => {
                self.begin();
                self.rom_age = Some(0);
                Some(BootEvent::Began { number: self.number })
            }
            Meaning::Reset(reset) => Some(self.reset(reset)),
            Meaning::Panic(panic) if line.torn => {
                self.torn = Some((panic.kind.clone(), 0));
                None
            }
            Meaning::Panic(panic) => self.panic(&panic.kind),
            Meaning::BrownOut => self.panic(&PanicKind::BrownOut),
            Meaning::Backtrace { .. } | Meaning::RegisterDump if self.watchdog > 0 => None,
            Meaning::Backtrace { .. } | Meaning::RegisterDump => self.remains(),
            Meaning::RebootingAfterPanic => {
                let event = self.remains();
                self.in_episode = false;
                event
            }
            Meaning::TaskWatchdog => {
                self.watchdog = WATCHDOG_REPORT;
                None
            }
            Meaning::Rebooting => {
                self.announced = true;
                None
            }
            _ => None,
        };
        event.or_else(|| self.missed(line))
    }

    /// Number of the current boot, 0 before any banner.
    pub fn current(&self) -> u32 {
        self.number
    }

    fn age(&mut self) {
        self.rom_age = self.rom_age.map(|age| age + 1).filter(|age| *age <= ROM_TO_RESET);
        let torn = self.torn.take().map(|(kind, age)| (kind, age + 1));
        self.torn = torn.filter(|(_, age)| *age <= TORN_TO_PROOF);
        self.watchdog = self.watchdog.saturating_sub(1);
    }

    fn begin(&mut self) {
        let left_cleanly = self.announced && !self.panicked && self.torn.is_none();
        *self = Boots { number: self.number + 1, left_cleanly, ..Boots::default() };
    }

    fn reset(&mut self, reset: &Reset) -> BootEvent {
        let began = self.rom_age.take().is_none();
        if began {
            self.begin();
        }
        let clean = reset.cause() == ResetCause::SoftwareCpu && self.left_cleanly;
        BootEvent::Reset { number: self.number, reset: reset.clone(), began, clean }
    }

    fn panic(&mut self, kind: &PanicKind) -> Option<BootEvent> {
        self.panicked = true;
        let first = !std::mem::replace(&mut self.in_episode, true);
        first.then(|| BootEvent::Panicked { boot: self.number, kind: kind.clone() })
    }

    /// The later part of a panic report: its first line may have been torn or lost.
    fn remains(&mut self) -> Option<BootEvent> {
        let kind = self.torn.take().map_or(PanicKind::Unknown, |(kind, _)| kind);
        self.panic(&kind)
    }

    /// A restart that shows only in what the application prints.
    fn missed(&mut self, line: &UartLine) -> Option<BootEvent> {
        let starts = match &line.means {
            Meaning::State { from, .. } => from.as_deref() == Some("unknown"),
            Meaning::AppVersion(_) | Meaning::ProjectName(_) | Meaning::Board { .. } => true,
            _ => false,
        };
        let stamp = line.log.as_ref().and_then(|log| log.stamp).map(|stamp| stamp.0);
        let fell = stamp.is_some_and(|stamp| self.running && self.fell(stamp));
        let rom = line.log.is_none() && ROM_TEXT.iter().any(|begin| line.text.starts_with(begin));
        let sign = match (starts && self.running, fell, rom && self.running) {
            (true, ..) => Some(RestartSign::StartedAgain),
            (_, true, _) => Some(RestartSign::ClockFell),
            (.., true) => Some(RestartSign::RomText),
            (false, false, false) => None,
        };
        if sign.is_some() {
            self.begin();
        }
        self.running |= matches!(line.means, Meaning::State { .. } | Meaning::Heartbeat { .. });
        sign.map(|sign| BootEvent::Missed { number: self.number, sign })
    }

    /// Two stamps after two others, both far below both: one alone may be a damaged digit.
    fn fell(&mut self, stamp: u64) -> bool {
        let [first, second, third] = self.stamps;
        self.stamps = [second, third, Some(stamp)];
        // `min` of a missing one is missing.
        let (Some(before), Some(third)) = (first.min(second), third) else { return false };
        third.max(stamp) + CLOCK_FALL < before
    }
}
