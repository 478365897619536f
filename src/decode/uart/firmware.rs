//! What the firmware's own log lines mean, by tag.

use super::{Level, Log, Meaning, RebootBy};
use regex::Regex;
use std::str::FromStr;
use std::sync::LazyLock;

static TRANSITION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(State|Invalid state transition): (\w+) -> (\w+)"));
static ALERT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^Alert \[(.*?)\] (.*?): (.*)"));
static TOOL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^Add tool: (\S+)( \[user\])?$"));
static BOARD: LazyLock<Regex> = LazyLock::new(|| pattern(r"^UUID=([0-9a-fA-F-]{36}) SKU=(\S+)"));
static IMAGE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(Project name|App version):\s+(\S+)"));
static SHA: LazyLock<Regex> = LazyLock::new(|| pattern(r"^ELF file SHA256:\s+([0-9a-f]+)"));
static HEARTBEAT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^free sram: ([0-9]+) minimal sram: ([0-9]+)"));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

/// Whether the text of the line was written by someone else (a server, a user), so that it may
/// quote anything without it having happened.
pub(super) fn quotes(log: &Log) -> bool {
    match log.tag.as_str() {
        "Application" => ["<< ", ">> ", "Alert ["].iter().any(|words| log.text.starts_with(words)),
        "Display" | "EmoteDisplay" => true,
        _ => false,
    }
}

/// The meaning of a log line; tags that we don't listen to cost one comparison.
pub(super) fn read(log: &Log) -> Option<Meaning> {
    let text = log.text.as_str();
    match log.tag.as_str() {
        "StateMachine" => transition(text),
        "Application" => application(text),
        "AudioCodec" => audio_codec(text),
        "MCP" => mcp(log),
        "Board" => {
            let found = BOARD.captures(text)?;
            Some(Meaning::Board { uuid: found[1].to_string(), sku: found[2].to_string() })
        }
        // ESP-IDF 5.0 and older print the image's identity under cpu_start.
        "app_init" | "cpu_start" => image(text),
        "SystemInfo" => {
            let found = HEARTBEAT.captures(text)?;
            let (free, minimum) = (found[1].parse().ok()?, found[2].parse().ok()?);
            Some(Meaning::Heartbeat { free, minimum })
        }
        "task_wdt" => {
            text.starts_with("Task watchdog got triggered").then_some(Meaning::TaskWatchdog)
        }
        "BOD" => text.starts_with(super::BROWN_OUT).then_some(Meaning::BrownOut),
        tag => codec(tag, text),
    }
}

fn transition(text: &str) -> Option<Meaning> {
    let found = TRANSITION.captures(text)?;
    let (from, to) = (found[2].to_string(), found[3].to_string());
    Some(match &found[1] {
        "State" => Meaning::State { from: Some(from), to },
        _ => Meaning::InvalidTransition { from, to },
    })
}

fn application(text: &str) -> Option<Meaning> {
    let said = |from_device, words: &str| Meaning::Text { from_device, text: words.to_string() };
    if let Some(words) = text.strip_prefix("<< ") {
        return Some(said(false, words));
    }
    if let Some(words) = text.strip_prefix(">> ") {
        return Some(said(true, words));
    }
    // Firmware before 2.1.0.
    if let Some(to) = text.strip_prefix("STATE: ") {
        return Some(Meaning::State { from: None, to: to.trim().to_string() });
    }
    if text.starts_with("Rebooting...") {
        return Some(Meaning::Rebooting);
    }
    if text == "System command: reboot" {
        return Some(Meaning::RebootRequested { by: RebootBy::SystemMessage });
    }
    let found = ALERT.captures(text)?;
    let [emotion, status, message] = [1, 2, 3].map(|n| found[n].to_string());
    Some(Meaning::Alert { emotion, status, message })
}

fn audio_codec(text: &str) -> Option<Meaning> {
    if let Some(volume) = text.strip_prefix("Set output volume to ") {
        return parsed(volume).map(Meaning::VolumeSet);
    }
    if let Some(on) = text.strip_prefix("Set output enable to ") {
        return parsed(on).map(Meaning::OutputEnabled);
    }
    if let Some(on) = text.strip_prefix("Set input enable to ") {
        return parsed(on).map(Meaning::InputEnabled);
    }
    let (volume, _) = text.strip_prefix("Output volume value (")?.split_once(") is too small")?;
    parsed(volume).map(Meaning::VolumeFloor)
}

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

fn mcp(log: &Log) -> Option<Meaning> {
    if log.level == Level::Error {
        return Some(Meaning::McpError(log.text.clone()));
    }
    if log.text.starts_with("User requested reboot") {
        return Some(Meaning::RebootRequested { by: RebootBy::Tool });
    }
    let found = TOOL.captures(&log.text)?;
    Some(Meaning::ToolAdded { name: found[1].to_string(), user: found.get(2).is_some() })
}

fn image(text: &str) -> Option<Meaning> {
    if let Some(found) = IMAGE.captures(text) {
        let value = found[2].to_string();
        return Some(match &found[1] {
            "Project name" => Meaning::ProjectName(value),
            _ => Meaning::AppVersion(value),
        });
    }
    elf_sha(text)
}

/// `ELF file SHA256: ` of the start-up log and of a panic.
pub(super) fn elf_sha(text: &str) -> Option<Meaning> {
    Some(Meaning::ElfSha(SHA.captures(text)?[1].to_string()))
}

/// `NoAudioCodec: Simplex channels created`, `BoxAudioCodec: BoxAudioDevice initialized`. The
/// base class `AudioCodec` itself never comes here.
fn codec(tag: &str, text: &str) -> Option<Meaning> {
    let made = text.ends_with(" channels created") || text.ends_with(" initialized");
    let object = tag.ends_with("AudioCodec") || tag.ends_with("AudioDevice");
    (object && made).then(|| Meaning::Codec(tag.to_string()))
}
