//! From reset to the network: ROM banner, boot log, panics.

use super::app::State;
use super::setup::Build;
use super::{Board, Event, Fault, Ram};
use crate::audio::law::Law;
use std::time::Duration;

/// Why the board starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    PowerOn,
    /// The EN line.
    Enable,
    /// `esp_restart()` or a panic: the ROM can't tell them apart.
    Restart,
    /// The same, asked for by `self.reboot`.
    Rebooted,
}

/// How much longer a slow boot takes.
const SLOW: Duration = Duration::from_secs(60);

const EARLY: [&str; 15] = [
    "esp_psram: Found 8MB PSRAM device",
    "esp_psram: Speed: 80MHz",
    "cpu_start: Multicore app",
    "cpu_start: Pro cpu start user code",
    "cpu_start: cpu freq: 240000000 Hz",
    "app_init: Application information:",
    "app_init: Project name:     xiaozhi",
    "app_init: App version:      2.4.2",
    "app_init: Compile time:     Aug  8 2026 12:00:00",
    "app_init: ELF file SHA256:  01080f161...",
    "app_init: ESP-IDF:          v5.5.2",
    "heap_init: Initializing. RAM available for dynamic allocation:",
    "spi_flash: detected chip: gd",
    "spi_flash: flash io: qio",
    "main_task: Started on CPU0",
];

const LOADS: [&str; 7] = [
    "SPIWP:0xee",
    "mode:DIO, clock div:1",
    "load:0x3fce2820,len:0x56c",
    "load:0x403c8700,len:0x4",
    "load:0x403c8704,len:0xa24",
    "load:0x403cb700,len:0x257c",
    "entry 0x403c8880",
];

impl Board {
    /// Forgets everything but NVS and starts `after` that.
    pub(super) fn reset(&mut self, cause: Cause, after: Duration) {
        self.agenda.clear();
        self.ram = Ram::default();
        if cause == Cause::Rebooted && self.has(Fault::BootLoop) {
            self.looping = true;
        }
        self.plan(after, Event::Banner(cause));
    }

    pub(super) fn banner(&mut self, cause: Cause) {
        self.booted = self.now;
        let reset = match cause {
            Cause::PowerOn | Cause::Enable => "rst:0x1 (POWERON)",
            Cause::Restart | Cause::Rebooted => "rst:0xc (RTC_SW_CPU_RST)",
        };
        self.uart("ESP-ROM:esp32s3-20210327");
        self.uart("Build:Mar 27 2021");
        self.uart(&format!("{reset},boot:0x8 (SPI_FAST_FLASH_BOOT)"));
        if matches!(cause, Cause::Restart | Cause::Rebooted) {
            self.uart("Saved PC:0x4037a4fe");
        }
        for line in LOADS {
            self.uart(line);
        }
        let early = self.about(280_000, 320_000);
        self.plan(early, Event::EarlyBoot);
        let slow = self.has(Fault::SlowBoot) && cause != Cause::PowerOn;
        let app = self.about(480_000, 540_000) + if slow { SLOW } else { Duration::ZERO };
        self.plan(app, Event::StartApp);
    }

    pub(super) fn early_boot(&mut self) {
        self.log('I', "octal_psram", "vendor id    : 0x0d (AP)");
        for line in EARLY {
            let (tag, text) = line.split_once(": ").unwrap_or((line, ""));
            self.log('I', tag, text);
        }
        self.log('I', "main_task", "Calling app_main()");
    }

    /// Name of the board, by which its codec is known.
    pub(super) fn name(&self) -> &'static str {
        match self.setup.law {
            Law::NoAudioCodec => "bread-compact-wifi",
            Law::EspCodecDev => "magiclick-2p4",
            Law::LinearVolume => "lilygo-t-circle-s3",
        }
    }

    pub(super) fn start_app(&mut self) {
        let board = format!("UUID={} SKU={}", self.setup.uuid, self.name());
        self.log('I', "Board", &board);
        self.set_state(State::Starting);
        if self.looping {
            let delay = self.about(100_000, 200_000);
            return self.plan(delay, Event::Panic);
        }
        if matches!(self.setup.build, Build::Headless | Build::Extra40 | Build::HugeTool) {
            self.display(&["Role:system", &format!("     {}/2.4.2", self.name())]);
        }
        match self.setup.law {
            Law::NoAudioCodec => self.log('I', "NoAudioCodec", "Simplex channels created"),
            Law::EspCodecDev => {
                self.log('I', "Es8311AudioCodec", "Duplex channels created");
                self.log('I', "Es8311AudioCodec", "Es8311AudioCodec initialized");
            }
            Law::LinearVolume => self.log('I', "Tcircles3AudioCodec", "Duplex channels created"),
        }
        self.ram.volume = self.nvs.volume;
        if self.ram.volume <= 0 {
            let text = format!(
                "Output volume value ({}) is too small, setting to default (10)",
                self.ram.volume
            );
            self.log('W', "AudioCodec", &text);
            self.ram.volume = 10;
        }
        self.ram.volume_at_boot = self.ram.volume;
        self.log('I', "AudioCodec", "Audio codec started");
        for k in 0..self.tools.len() {
            let tool = &self.tools[k];
            let user = if tool.user { " [user]" } else { "" };
            let text = format!("Add tool: {}{user}", tool.name);
            self.log('I', "MCP", &text);
        }
        self.log('I', "WifiBoard", "Starting WiFi connection attempt");
        self.log('I', "WifiBoard", "WiFi scanning");
        self.display(&["ShowNotification: Scanning Wi-Fi..."]);
        let scan = self.about(2_800_000, 3_000_000);
        self.plan(scan, Event::FoundAp);
    }

    pub(super) fn found_ap(&mut self) {
        self.log('I', "WifiBoard", "WiFi connecting to bench-ap");
        self.display(&["ShowNotification: Connect to bench-ap..."]);
        let lease = self.about(1_800_000, 3_500_000);
        self.plan(lease, Event::Associated);
    }

    pub(super) fn associated(&mut self) {
        self.log('I', "WifiBoard", "Connected to WiFi: bench-ap");
        self.display(&["ShowNotification: Connected to bench-ap"]);
        self.log('I', "Application", "Network connected");
        self.set_state(State::Activating);
        let text = format!("Assets partition is disabled for board {}", self.name());
        self.log('W', "Application", &text);
        self.check_config();
    }

    /// Enters the state in which a board waits for somebody to configure its Wi-Fi.
    pub(super) fn enter_wifi_config(&mut self) {
        self.agenda.retain(|_, event| !matches!(event, Event::FoundAp | Event::Associated));
        self.set_state(State::WifiConfiguring);
        let [.., high, low] = self.setup.mac;
        let text = format!("Access Point started with SSID Xiaozhi-{high:02X}{low:02X}");
        self.log('I', "WifiConfigurationAp", &text);
    }

    pub(super) fn panic_in_boot(&mut self) {
        self.uart(
            "Guru Meditation Error: Core  0 panic'ed (LoadProhibited). Exception was unhandled.",
        );
        self.uart("");
        self.uart("Core  0 register dump:");
        self.uart("PC      : 0x4200f3c2  PS      : 0x00060a30  A0      : 0x8200f5d0");
        self.crash_ends();
    }

    /// What an exception that nobody catches comes to.
    pub(super) fn abort(&mut self) {
        self.uart("");
        self.uart("abort() was called at PC 0x42012345 on core 0");
        self.crash_ends();
    }

    fn crash_ends(&mut self) {
        self.uart("");
        self.uart("");
        self.uart("Backtrace: 0x4200f3bf:0x3fcb5d10 0x4200f5cd:0x3fcb5d30 0x420a1b2c:0x3fcb5d60");
        self.uart("");
        self.uart("ELF file SHA256: 01080f161");
        self.uart("");
        self.uart("Rebooting...");
        self.reset(Cause::Restart, Duration::from_millis(200));
    }
}
