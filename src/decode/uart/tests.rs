//! Tables: a line and its meaning, lines and their boots.

use super::*;

fn check(line: &str, expect: Meaning) {
    assert_eq!(read(line).means, expect, "{line:?}");
}

fn panic(kind: PanicKind, detail: &str) -> Meaning {
    Meaning::Panic(PanicText { kind, detail: detail.to_string() })
}

fn exception(core: u8, reason: &str) -> PanicKind {
    PanicKind::Exception { core, reason: reason.to_string() }
}

fn reset(code: u8, name: &str, boot: u32, download: bool) -> Meaning {
    Meaning::Reset(Reset { code, name: name.to_string(), boot, download })
}

fn rom(chip: Option<&str>) -> Meaning {
    Meaning::RomStart { chip: chip.map(str::to_string) }
}

#[test]
fn the_rom_is_understood_on_every_chip() {
    check("ESP-ROM:esp32s3-20210327", rom(Some("esp32s3")));
    check("ESP-ROM:esp32c3-api1-20210207", rom(Some("esp32c3")));
    check("ets Jul 29 2019 12:21:46", rom(None));
    check("ets Jun  8 2016 00:22:57", rom(None));
    check(
        "rst:0xc (RTC_SW_CPU_RST),boot:0x8 (SPI_FAST_FLASH_BOOT)",
        reset(0xc, "RTC_SW_CPU_RST", 8, false),
    );
    check("rst:0x1 (POWERON),boot:0x30f (SPI_FAST_FLASH_BOOT)", reset(1, "POWERON", 0x30f, false));
    check("rst:0x15 (USB_UART_HPSYS),boot:0x0 (DOWNLOAD(USB/UART0))", {
        reset(0x15, "USB_UART_HPSYS", 0, true)
    });
    check("rst:0x1 (POWERON_RESET),boot:0xf (UART_BOOT(UART0))", {
        reset(1, "POWERON_RESET", 0xf, true)
    });
    check("waiting for download", Meaning::WaitingForDownload);
    check("invalid header: 0xffffffff", Meaning::InvalidHeader);
    for line in ["rst:0x1cc (WHAT),boot:0x8 (X)", "rst cause:2, boot mode:(3,6)", "ets are sets"] {
        check(line, Meaning::Nothing);
    }
}

#[test]
fn reset_codes_say_what_happened() {
    use ResetCause::*;
    let table = [
        (0x1, PowerOn),
        (0x3, SoftwareSystem),
        (0x5, DeepSleep),
        (0x7, Watchdog),
        (0x8, Watchdog),
        (0x9, Watchdog),
        (0x10, Watchdog),
        (0xb, Watchdog),
        (0x11, Watchdog),
        (0x12, Watchdog),
        (0xc, SoftwareCpu),
        (0xf, BrownOut),
        (0x15, Usb),
        (0x16, Jtag),
        (0x17, Other(0x17)),
    ];
    for (code, cause) in table {
        let reset = Reset { code, name: String::new(), boot: 8, download: false };
        assert_eq!(reset.cause(), cause, "{code:#x}");
    }
}

#[test]
fn the_words_of_a_crash() {
    let unhandled = "Exception was unhandled.";
    check(
        "Guru Meditation Error: Core  0 panic'ed (LoadProhibited). Exception was unhandled.",
        panic(exception(0, "LoadProhibited"), unhandled),
    );
    check(
        "Guru Meditation Error: Core  1 panic'ed (Interrupt wdt timeout on CPU1).",
        panic(exception(1, "Interrupt wdt timeout on CPU1"), ""),
    );
    check(
        "abort() was called at PC 0x42012345 on core 0",
        panic(PanicKind::Abort, "PC 0x42012345 on core 0"),
    );
    check(
        "assert failed: xQueueSemaphoreTake queue.c:1713 (( pxQueue ))",
        panic(PanicKind::Assert, "xQueueSemaphoreTake queue.c:1713 (( pxQueue ))"),
    );
    check(
        "ESP_ERROR_CHECK failed: esp_err_t 0x1105 (ESP_ERR_NVS_NOT_ENOUGH_SPACE) at 0x4200abcd",
        panic(PanicKind::ErrorCheck, {
            "esp_err_t 0x1105 (ESP_ERR_NVS_NOT_ENOUGH_SPACE) at 0x4200abcd"
        }),
    );
    check("ESP_ERROR_CHECK_WITHOUT_ABORT failed: esp_err_t 0x103 at 0x4200", Meaning::Nothing);
    check(
        "***ERROR*** A stack overflow in task opus_codec has been detected.",
        panic(PanicKind::StackOverflow, "opus_codec"),
    );
    check(
        "Debug exception reason: Stack canary watchpoint triggered (main)",
        panic(PanicKind::StackOverflow, "main"),
    );
    check("Detected in task \"main\" at 0x42005440", panic(PanicKind::StackOverflow, "main"));
    check("ELF file SHA256: 765805f67", Meaning::ElfSha("765805f67".to_string()));
    check("Rebooting...", Meaning::RebootingAfterPanic);
    check("Core  0 register dump:", Meaning::RegisterDump);
    check("Core registers", Meaning::Nothing);
    let backtrace = |frames: &[(u32, u32)], corrupted| Meaning::Backtrace {
        frames: frames.to_vec(),
        corrupted,
    };
    let two = [(0x4200f3bf, 0x3fcb5d10), (0x4200f5cd, 0x3fcb5d30)];
    let text = "0x4200f3bf:0x3fcb5d10 0x4200f5cd:0x3fcb5d30";
    check(&format!("Backtrace: {text}"), backtrace(&two, false));
    check(&format!("Backtrace:{text} |<-CONTINUES"), backtrace(&two, false));
    check(&format!("Backtrace: {text} |<-CORRUPTED"), backtrace(&two, true));
    check("Backtrace: |<-CORRUPTED", backtrace(&[], true));
    check(
        "E (9) task_wdt: Task watchdog got triggered. The following tasks/users did not reset",
        Meaning::TaskWatchdog,
    );
    check("E (9) task_wdt:  - IDLE0 (CPU 0)", Meaning::Nothing);
    check("E BOD: Brownout detector was triggered", Meaning::BrownOut);
    check("Brownout detector was triggered", Meaning::BrownOut);
}

#[test]
fn a_crash_cuts_into_lines_but_a_quotation_is_no_crash() {
    check("I (55) spi_flash: detectESP-ROM:esp32s3-20210327", rom(Some("esp32s3")));
    check("\u{fffd}\u{8}\u{fffd}ets Jul 29 2019 12:21:46", rom(None));
    check("I (5) StateMachine: State: idle -> connESP-ROM:esp32s3-20210327", {
        rom(Some("esp32s3"))
    });
    check(
        "I (1) WS: halfGuru Meditation Error: Core  1 panic'ed (IllegalInstruction). Exc",
        panic(exception(1, "IllegalInstruction"), "Exc"),
    );
    check("W (1) Display:      abort() was called at PC 0x42 on core 0", Meaning::Nothing);
    check("W (1) Display: \"ESP-ROM:esp32s3-20210327\"", Meaning::Nothing);
    for quote in [
        "W (1) Display:      (abort() was called at PC 0x42012345 on core 0)",
        "W (1) Display:      他说：abort() was called at PC 0x42012345 on core 0",
        "W (1) Display: “Guru Meditation Error: Core  0 panic'ed (LoadProhibited)",
        "W (1) Display: Role:system,Guru Meditation Error: Core  0 panic'ed (X).",
        "I (1) Web: log=ESP-ROM:esp32s3-20210327",
        "I (1) HttpClient: GET /log?q=assert failed: x",
        "I (1) x: (rst:0x1 (POWERON),boot:0x8 (SPI_FAST_FLASH_BOOT))",
    ] {
        check(quote, Meaning::Nothing);
    }
    check("I (1) Application: << 说:abort() was called at PC 0x42", {
        Meaning::Text { from_device: false, text: "说:abort() was called at PC 0x42".to_string() }
    });
}

#[test]
fn the_firmware_tells_its_identity() {
    let text = str::to_string;
    check("I (123) app_init: Project name:     xiaozhi", Meaning::ProjectName(text("xiaozhi")));
    check("I (123) app_init: App version:      2.4.2", Meaning::AppVersion(text("2.4.2")));
    check("I (123) app_init: ELF file SHA256:  765805f67...", Meaning::ElfSha(text("765805f67")));
    check(
        "\x1b[0;32mI (2078) cpu_start: ELF file SHA256:  07562ee9c224bd53...\x1b[0m",
        Meaning::ElfSha(text("07562ee9c224bd53")),
    );
    check("I (123) app_init: Compile time:     Aug  8 2026 12:00:00", Meaning::Nothing);
    check(
        "I (305) Board: UUID=11111111-2222-4333-8444-555555555555 SKU=bread-compact-wifi",
        Meaning::Board {
            uuid: text("11111111-2222-4333-8444-555555555555"),
            sku: text("bread-compact-wifi"),
        },
    );
    for (line, tag) in [
        ("I (1) NoAudioCodec: Simplex channels created", "NoAudioCodec"),
        ("I (1) Es8311AudioCodec: Duplex channels created", "Es8311AudioCodec"),
        ("I (1) Es8388AudioCodec: Es8388AudioCodec initialized", "Es8388AudioCodec"),
        ("I (1) BoxAudioCodec: BoxAudioDevice initialized", "BoxAudioCodec"),
    ] {
        check(line, Meaning::Codec(text(tag)));
    }
    check("I (1) AudioCodec: Audio codec started", Meaning::Nothing);
}

#[test]
fn the_firmware_tells_what_it_does() {
    use Meaning::*;
    let text = str::to_string;
    let state = |from: &str, to: &str| State { from: Some(text(from)), to: text(to) };
    check("I (3) StateMachine: State: unknown -> starting", state("unknown", "starting"));
    check("I (3) StateMachine: State: starting -> wifi_configuring", {
        state("starting", "wifi_configuring")
    });
    check("I (3) Application: STATE: idle", State { from: None, to: text("idle") });
    check(
        "W (3) StateMachine: Invalid state transition: idle -> starting",
        InvalidTransition { from: text("idle"), to: text("starting") },
    );
    check("I (3) AudioCodec: Set output volume to 60", VolumeSet(60));
    check("I (3) AudioCodec: Set output volume to -5", VolumeSet(-5));
    check("I (3) AudioCodec: Set output enable to true", OutputEnabled(true));
    check("I (3) AudioCodec: Set input enable to false", InputEnabled(false));
    check(
        "W (203) AudioCodec: Output volume value (0) is too small, setting to default (10)",
        VolumeFloor(0),
    );
    check("I (3) SystemInfo: free sram: 143211 minimal sram: 120487", {
        Heartbeat { free: 143_211, minimum: 120_487 }
    });
    check("W (3) MCP: User requested reboot", RebootRequested { by: RebootBy::Tool });
    check("I (3) Application: System command: reboot", {
        RebootRequested { by: RebootBy::SystemMessage }
    });
    check("W (3) Application: Unknown system command: dance", Nothing);
    check("I (3) Application: Rebooting...", Rebooting);
    let tool = |name: &str, user| ToolAdded { name: text(name), user };
    check("I (3) MCP: Add tool: self.get_device_status", tool("self.get_device_status", false));
    check("I (3) MCP: Add tool: self.reboot [user]", tool("self.reboot", true));
    check("E (3) MCP: tools/call: Unknown tool: a\"b", {
        McpError(text("tools/call: Unknown tool: a\"b"))
    });
    check("I (3) MCP: User requested firmware upgrade from URL: http://x", Nothing);
    check(
        "W (3) Application: Alert [cloud_slash] 错误: 网络: 断开",
        Alert {
            emotion: text("cloud_slash"), status: text("错误"), message: text("网络: 断开")
        },
    );
    check("I (3) Application: << 你好", Text { from_device: false, text: text("你好") });
    check("I (3) Application: >> hello", Text { from_device: true, text: text("hello") });
    check("I (3) wifi:state: run -> init (0)", Nothing);
    check("./main/case.c:30:normal_case_pass:PASS", Nothing);
}

#[test]
fn text_keeps_everything_but_colour() {
    let line = read("\x1b[0;33mW (7) a: v3.99 \x1b[0m");
    assert_eq!(line.text, "W (7) a: v3.99");
    assert_eq!(line.log.map(|log| log.text), Some("v3.99".to_string()));
    assert_eq!(read("\0\u{fffd}Hello").text, "\0\u{fffd}Hello");
    assert_eq!(read("").means, Meaning::Nothing);
}

/// One letter or word a boot event: `B1` began, `R1:c` reset (`+` it began, `!` clean),
/// `M1` missed, `P0` panicked.
fn boots(lines: &[&str]) -> String {
    let mut boots = Boots::default();
    let seen = lines.iter().filter_map(|line| boots.see(&read(line))).map(|event| match event {
        BootEvent::Began { number } => format!("B{number}"),
        BootEvent::Reset { number, reset, began, clean } => {
            let began = if began { "+" } else { "" };
            let clean = if clean { "!" } else { "" };
            format!("R{number}:{:x}{began}{clean}", reset.code)
        }
        BootEvent::Missed { number, .. } => format!("M{number}"),
        BootEvent::Panicked { boot, .. } => format!("P{boot}"),
    });
    seen.collect::<Vec<_>>().join(" ")
}

const ROM: &str = "ESP-ROM:esp32s3-20210327";
const BUILD: &str = "Build:Mar 27 2021";
const RST_C: &str = "rst:0xc (RTC_SW_CPU_RST),boot:0x8 (SPI_FAST_FLASH_BOOT)";
const RST_1: &str = "rst:0x1 (POWERON),boot:0x8 (SPI_FAST_FLASH_BOOT)";
const GURU: &str = "Guru Meditation Error: Core  0 panic'ed (LoadProhibited). Exc";
const CHECK: &str = "ESP_ERROR_CHECK failed: esp_err_t 0x1105 at 0x4200abcd";
const ABORT: &str = "abort() was called at PC 0x42012345 on core 0";
const DEAD: &str = "Rebooting...";
const BYE: &str = "I (9510) Application: Rebooting...";

#[test]
fn boots_are_counted_once_whatever_part_of_the_banner_arrives() {
    assert_eq!(boots(&[ROM, BUILD, RST_1, "Hello"]), "B1 R1:1");
    assert_eq!(boots(&["Hello", RST_1, ROM, RST_C]), "R1:1+ B2 R2:c");
    assert_eq!(boots(&[ROM, BUILD, "x", RST_1]), "B1 R1:1");
    assert_eq!(boots(&[ROM, BUILD, "x", "y", RST_1]), "B1 R2:1+");
    assert_eq!(boots(&[ROM, RST_1, RST_1, ROM, ROM]), "B1 R1:1 R2:1+ B3 B4");
}

#[test]
fn a_clean_restart_is_announced_and_nothing_broke() {
    assert_eq!(boots(&[ROM, RST_1, BYE, ROM, BUILD, RST_C]), "B1 R1:1 B2 R2:c!");
    assert_eq!(boots(&[BYE, RST_C, RST_C]), "R1:c+! R2:c+");
    assert_eq!(boots(&[BYE, ROM, RST_1]), "B1 R1:1");
    assert_eq!(boots(&[ROM, RST_C]), "B1 R1:c");
    assert_eq!(boots(&[BYE, GURU, DEAD, ROM, RST_C]), "P0 B1 R1:c");
    assert_eq!(boots(&[GURU, DEAD, BYE, ROM, RST_C]), "P0 B1 R1:c");
    assert_eq!(boots(&[BYE, ROM, RST_C, "x", ROM, RST_C]), "B1 R1:c! B2 R2:c");
}

#[test]
fn a_panic_episode_counts_once() {
    assert_eq!(boots(&[CHECK, ABORT, DEAD]), "P0");
    assert_eq!(boots(&[ROM, GURU, GURU, ABORT, DEAD, ROM, ABORT]), "B1 P1 B2 P2");
    assert_eq!(boots(&[ROM, GURU, DEAD, GURU]), "B1 P1 P1");
    assert_eq!(boots(&[ROM, GURU, ROM, GURU]), "B1 P1 B2 P2");
}

#[test]
fn half_a_line_before_the_words_needs_more_than_the_words() {
    let torn = "I (1) WS: halfGuru Meditation Error: Core  1 panic'ed (IllegalInstruction). Exc";
    let mention = "I (1) WS: 说abort() was called at PC 0x42012345 on core 0";
    let (dump, trace) = ("Core  1 register dump:", "Backtrace: 0x4200f3bf:0x3fcb5d10");
    assert_eq!(boots(&[torn, "x", dump, trace, DEAD]), "P0");
    assert_eq!(boots(&[torn, "x", "x", DEAD]), "P0");
    assert_eq!(boots(&[torn, "x", "x"]), "");
    assert_eq!(boots(&[mention, "x", BYE, "x", "x", "x", "x", "x", ROM, RST_C]), "B1 R1:c!");
    assert_eq!(boots(&[BYE, torn, ROM, RST_C]), "B1 R1:c");
    let mut seen = Boots::default();
    seen.see(&read(torn));
    let Some(BootEvent::Panicked { kind, .. }) = seen.see(&read(dump)) else {
        panic!("the registers bear it out");
    };
    assert_eq!(kind, exception(1, "IllegalInstruction"));
    let rom = "I (5) StateMachine: State: idle -> connESP-ROM:esp32s3-20210327";
    assert_eq!(boots(&[BYE, rom, BUILD, RST_C]), "R1:c+!");
    assert_eq!(boots(&[rom, "x"]), "");
    assert_eq!(boots(&["I (5) x: yrst:0x1 (POWERON),boot:0x8 (SPI_FAST_FLASH_BOOT)"]), "");
}

#[test]
fn a_death_without_its_first_line_is_a_death() {
    let trace = "Backtrace: 0x4200f3bf:0x3fcb5d10";
    assert_eq!(boots(&[trace, "ELF file SHA256: 765805f67", DEAD, ROM]), "P0 B1");
    assert_eq!(boots(&[BYE, DEAD, ROM, RST_C]), "P0 B1 R1:c");
    let brown_out = "E BOD: Brownout detector was triggered";
    let three = "rst:0x3 (RTC_SW_SYS_RST),boot:0x8 (SPI_FAST_FLASH_BOOT)";
    assert_eq!(boots(&[BYE, brown_out, ROM, three]), "P0 B1 R1:3");
    let task = "E (9) task_wdt: Task watchdog got triggered. The following tasks/users did not";
    assert_eq!(boots(&[task, "CPU 0: main", trace, trace]), "");
    assert_eq!(boots(&[task, GURU, trace, DEAD]), "P0");
}

#[test]
fn a_restart_shows_without_its_banner() {
    const START: &str = "I (2513) StateMachine: State: unknown -> starting";
    const IDLE: &str = "I (3333) StateMachine: State: activating -> idle";
    const VERSION: &str = "I (1012) app_init: App version:      2.4.2";
    assert_eq!(boots(&[ROM, RST_1, VERSION, START, IDLE, VERSION, START, IDLE]), "B1 R1:1 M2");
    assert_eq!(boots(&[ROM, RST_1, START, IDLE, START, IDLE]), "B1 R1:1 M2");
    assert_eq!(boots(&[ROM, RST_1, START, IDLE, ROM, RST_C, START, IDLE]), "B1 R1:1 B2 R2:c");
    let [high, higher] = ["I (63000) a: b", "I (63010) SystemInfo: free sram: 1 minimal sram: 1"];
    let [low, lower] = ["I (1009) a: b", "I (1011) a: b"];
    assert_eq!(boots(&[higher, high, high, low, lower, low]), "M1");
    assert_eq!(boots(&[higher, high, high, low, lower, VERSION, START]), "M1");
    // One stamp may be damaged, and before the application runs they mean little.
    assert_eq!(boots(&[START, low, lower, high, low, lower, low]), "");
    assert_eq!(boots(&[higher, high, high, low, high, low, high]), "");
    let early = ["I (30283) cpu_start: x", "I (30283) boot: x", "I (0) cpu: x", "I (9) cpu: x"];
    assert_eq!(boots(&early), "");
    assert_eq!(boots(&[higher, high, high, ROM, RST_C, low, lower]), "B1 R1:c");
}
