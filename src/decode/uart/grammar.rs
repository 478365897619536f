//! The grammar of console lines: ESP-IDF's log, the ROM's banner, crash texts and what the
//! firmware says. A line either has one meaning or none.

use super::meaning::{Log, Meaning, PanicKind, PanicText, Reset, UartLine};
use crate::time::DeviceMillis;
use regex::{Captures, Regex};
use std::sync::LazyLock;

macro_rules! patterns {
    ($($name:ident = $pattern:expr;)*) => {
        $(static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("a fixed pattern"));)*
    };
}

patterns! {
    COLOUR = r"\x1b\[[0-9;]*m";
    // Wi-Fi lines have no blank after the colon, early lines no stamp.
    LOG = r"^([EWIDV]) (?:\(([0-9:.\- ]+)\) )?([^:]{1,40}): ?(.*)$";
    ROM = r"^(?:ESP-ROM:([a-z0-9]+)-|ets [A-Z][a-z]{2} +[0-9]+ [0-9]{4})";
    RESET = r"rst:0x([0-9a-fA-F]{1,2}) \(([A-Za-z0-9_ ]+)\),boot:0x([0-9a-fA-F]{1,2}) \(([^)]*)\)?";
    GURU = r"^Guru Meditation Error: Core\s+[0-9]+ panic'ed \(([^)]*)\)";
    ASSERT = r"^assert failed: (.+)$";
    CHECK = r"^ESP_ERROR_CHECK failed: (.+)$";
    OVERFLOW = r"stack overflow in task (\S+)|Stack canary watchpoint triggered \(([^)]*)\)";
    BACKTRACE = r"^Backtrace:((?:\s*0x[0-9a-fA-F]{8}:0x[0-9a-fA-F]{8})+)\s*(\|<-CORRUPTED)?";
    FRAME = r"0x([0-9a-fA-F]{8}):0x([0-9a-fA-F]{8})";
    SHA = r"^ELF file SHA256:\s+([0-9a-f]+)";
    STATE = r"^State: (\w+) -> (\w+)$";
    OLD_STATE = r"^STATE: (\w+)$";
    INVALID = r"^Invalid state transition: (\w+) -> (\w+)";
    VOLUME = r"^Set output volume to (-?[0-9]+)$";
    FLOOR = r"^Output volume value \((-?[0-9]+)\) is too small";
    ENABLE = r"^Set (output|input) enable to (true|false)$";
    TOOL = r"^Add tool: (\S+?)( \[user\])?$";
    BOARD = r"^UUID=([0-9a-f-]{36}) SKU=(\S+)";
    HEARTBEAT = r"^free sram: ([0-9]+) minimal sram: ([0-9]+)";
    IMAGE = r"^(App version|Project name):\s+(.+)$";
}

/// Reads one line.
pub fn read(text: &str) -> UartLine {
    let text = COLOUR.replace_all(text, "");
    let text = text.trim_end();
    let log = LOG.captures(text).map(|c| Log {
        level: c[1].chars().next().unwrap_or('I'),
        stamp: c.get(2).and_then(|m| m.as_str().trim().parse().ok()).map(DeviceMillis),
        tag: c[3].to_owned(),
        text: c[4].trim_end().to_owned(),
    });
    let means = match &log {
        Some(log) => of_log(log),
        None => of_plain(text),
    }
    .unwrap_or(Meaning::Nothing);
    UartLine { text: text.to_owned(), log, means }
}

fn group(c: &Captures, n: usize) -> String {
    c.get(n).map_or(String::new(), |m| m.as_str().to_owned())
}

/// Lines with level and tag.
fn of_log(log: &Log) -> Option<Meaning> {
    let text = log.text.as_str();
    match log.tag.as_str() {
        "StateMachine" => {
            if let Some(c) = STATE.captures(text) {
                return Some(Meaning::State { from: Some(group(&c, 1)), to: group(&c, 2) });
            }
            let c = INVALID.captures(text)?;
            Some(Meaning::InvalidTransition { from: group(&c, 1), to: group(&c, 2) })
        }
        "Application" => match text {
            "Rebooting..." => Some(Meaning::Rebooting),
            "System command: reboot" => Some(Meaning::RebootRequested { tool: false }),
            _ => {
                let c = OLD_STATE.captures(text)?;
                Some(Meaning::State { from: None, to: group(&c, 1) })
            }
        },
        "AudioCodec" => codec(text),
        "MCP" if text == "User requested reboot" => Some(Meaning::RebootRequested { tool: true }),
        "MCP" if log.level == 'E' => Some(Meaning::McpError(text.to_owned())),
        "MCP" => TOOL
            .captures(text)
            .map(|c| Meaning::ToolAdded { name: group(&c, 1), user: c.get(2).is_some() }),
        "Board" => {
            BOARD.captures(text).map(|c| Meaning::Board { uuid: group(&c, 1), sku: group(&c, 2) })
        }
        // ESP-IDF before 5.1 printed the image's description under the start-up tag.
        "app_init" | "cpu_start" => image(text),
        "SystemInfo" => {
            let c = HEARTBEAT.captures(text)?;
            let number = |n: usize| c[n].parse().ok();
            Some(Meaning::Heartbeat { free: number(1)?, minimum: number(2)? })
        }
        "task_wdt" if text.starts_with("Task watchdog got triggered") => {
            Some(Meaning::TaskWatchdog)
        }
        tag if tag.ends_with("AudioCodec") || tag == "BoxAudioDevice" => {
            let alive = text.contains("channels created") || text.ends_with("initialized");
            alive.then(|| Meaning::Codec(tag.to_owned()))
        }
        _ => text.contains("Brownout detector was triggered").then_some(Meaning::BrownOut),
    }
}

fn codec(text: &str) -> Option<Meaning> {
    if let Some(c) = VOLUME.captures(text) {
        return c[1].parse().ok().map(Meaning::VolumeSet);
    }
    if let Some(c) = FLOOR.captures(text) {
        return c[1].parse().ok().map(Meaning::VolumeFloor);
    }
    let c = ENABLE.captures(text)?;
    let on = &c[2] == "true";
    Some(if &c[1] == "output" { Meaning::OutputEnabled(on) } else { Meaning::InputEnabled(on) })
}

fn image(text: &str) -> Option<Meaning> {
    if let Some(c) = SHA.captures(text) {
        return Some(Meaning::ElfSha(group(&c, 1)));
    }
    let c = IMAGE.captures(text)?;
    let value = group(&c, 2);
    Some(match &c[1] {
        "App version" => Meaning::AppVersion(value),
        _ => Meaning::ProjectName(value),
    })
}

/// Lines of the ROM, of the panic handler and of nobody.
fn of_plain(text: &str) -> Option<Meaning> {
    let panic = |kind, detail: &str| {
        Some(Meaning::Panic(PanicText { kind, detail: detail.trim().to_owned() }))
    };
    if let Some(c) = ROM.captures(text) {
        return Some(Meaning::RomStart { chip: c.get(1).map(|m| m.as_str().to_owned()) });
    }
    if let Some(c) = RESET.captures(text) {
        let hex = |n: usize| u8::from_str_radix(&c[n], 16).ok();
        let download = c[4].starts_with("DOWNLOAD");
        let (code, name, boot) = (hex(1)?, group(&c, 2), hex(3)?);
        return Some(Meaning::Reset(Reset { code, name, boot, download }));
    }
    if let Some(c) = GURU.captures(text) {
        let reason = group(&c, 1);
        return panic(PanicKind::Exception { reason }, text);
    }
    if text.starts_with("abort() was called at PC 0x") {
        return panic(PanicKind::Abort, text);
    }
    if let Some(c) = ASSERT.captures(text) {
        return panic(PanicKind::Assert, &c[1]);
    }
    if let Some(c) = CHECK.captures(text) {
        return panic(PanicKind::ErrorCheck, &c[1]);
    }
    if OVERFLOW.is_match(text) {
        return panic(PanicKind::StackOverflow, text);
    }
    if let Some(c) = BACKTRACE.captures(text) {
        let hex = |c: &Captures, n: usize| u32::from_str_radix(&c[n], 16).unwrap_or(0);
        let frames = FRAME.captures_iter(&c[1]).map(|f| (hex(&f, 1), hex(&f, 2))).collect();
        return Some(Meaning::Backtrace { frames, corrupted: c.get(2).is_some() });
    }
    if let Some(c) = SHA.captures(text) {
        return Some(Meaning::ElfSha(group(&c, 1)));
    }
    match text {
        "Rebooting..." => Some(Meaning::RebootingAfterPanic),
        _ if text.starts_with("waiting for download") => Some(Meaning::WaitingForDownload),
        _ if text.starts_with("invalid header: 0x") => Some(Meaning::InvalidHeader),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_mean_what_the_firmware_means() {
        let check = |line: &str, means: Meaning| assert_eq!(read(line).means, means, "{line}");
        let state = |from: Option<&str>, to: &str| Meaning::State {
            from: from.map(str::to_owned),
            to: to.into(),
        };
        check(
            "I (2508) StateMachine: State: unknown -> starting",
            state(Some("unknown"), "starting"),
        );
        check("I (9) Application: STATE: idle", state(None, "idle"));
        check(
            "\x1b[0;32mI (5339) AudioCodec: Set output volume to 40\x1b[0m",
            Meaning::VolumeSet(40),
        );
        check(
            "W (1) AudioCodec: Output volume value (0) is too small, setting to default (10)",
            Meaning::VolumeFloor(0),
        );
        check("I (1) AudioCodec: Set input enable to true", Meaning::InputEnabled(true));
        check(
            "I (2) MCP: Add tool: self.reboot [user]",
            Meaning::ToolAdded { name: "self.reboot".into(), user: true },
        );
        check(
            "E (2) MCP: tools/call: Unknown tool: x",
            Meaning::McpError("tools/call: Unknown tool: x".into()),
        );
        check("W (3943) MCP: User requested reboot", Meaning::RebootRequested { tool: true });
        check("I (4943) Application: Rebooting...", Meaning::Rebooting);
        check("Rebooting...", Meaning::RebootingAfterPanic);
        check(
            "I (5) NoAudioCodec: Simplex channels created",
            Meaning::Codec("NoAudioCodec".into()),
        );
        check(
            "I (5) Es8311AudioCodec: Es8311AudioCodec initialized",
            Meaning::Codec("Es8311AudioCodec".into()),
        );
        check("E BOD: Brownout detector was triggered", Meaning::BrownOut);
        check("ets Jul 29 2019 12:21:46", Meaning::RomStart { chip: None });
        check("ESP-ROM:esp32c3-api1-20210207", Meaning::RomStart { chip: Some("esp32c3".into()) });
        check("W (3984) Display: Set output volume to 60", Meaning::Nothing);
        check("ESP_ERROR_CHECK_WITHOUT_ABORT failed: esp_err_t 0x103", Meaning::Nothing);
        check("I (4324) wifi:state: init -> auth (b0)", Meaning::Nothing);
    }

    #[test]
    fn a_reset_is_known_by_its_code() {
        let reset = |line: &str| match read(line).means {
            Meaning::Reset(reset) => reset,
            other => panic!("{other:?}"),
        };
        use super::super::meaning::ResetCause;
        for name in ["RTC_SW_SYS_RST", "LP_SW_HPSYS", "SW_RESET"] {
            let line = format!("rst:0x3 ({name}),boot:0x13 (SPI_FAST_FLASH_BOOT)");
            assert_eq!(reset(&line).cause(), ResetCause::SoftwareSystem);
        }
        let download = reset("rst:0x1 (POWERON),boot:0x0 (DOWNLOAD(USB/UART0))");
        assert!(download.download);
        assert_eq!(reset("rst:0x15 (USB_UART_CHIP_RESET),boot:0x8 (X)").cause(), ResetCause::Usb);
    }

    #[test]
    fn a_panic_is_one_whatever_it_prints() {
        let kind = |line: &str| match read(line).means {
            Meaning::Panic(panic) => panic.kind,
            other => panic!("{other:?}"),
        };
        let reason = "LoadProhibited".to_owned();
        assert_eq!(
            kind(
                "Guru Meditation Error: Core  0 panic'ed (LoadProhibited). Exception was unhandled."
            ),
            PanicKind::Exception { reason }
        );
        assert_eq!(kind("abort() was called at PC 0x42012345 on core 0"), PanicKind::Abort);
        assert_eq!(kind("assert failed: f a.c:12 (x)"), PanicKind::Assert);
        assert_eq!(
            kind("ESP_ERROR_CHECK failed: esp_err_t 0x1105 (X) at 0x42000000"),
            PanicKind::ErrorCheck
        );
        assert_eq!(
            kind("***ERROR*** A stack overflow in task main has been detected."),
            PanicKind::StackOverflow
        );
        let corrupted = "Backtrace: 0x4200f3bf:0x3fcb5d10 0x4200f5cd:0x3fcb5d30 |<-CORRUPTED";
        let frames = vec![(0x4200_f3bf, 0x3fcb_5d10), (0x4200_f5cd, 0x3fcb_5d30)];
        assert_eq!(read(corrupted).means, Meaning::Backtrace { frames, corrupted: true });
    }
}
