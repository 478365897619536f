//! The software board against the real firmware: every request of the transcripts that its
//! configurations cover is answered by the same bytes and the same log lines, over real MQTT.
//!
//! `EARWITNESS_TRANSCRIPTS` names a folder whose `*.jsonl` files of the same kind are checked too.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used, dead_code)]

#[path = "board/bench.rs"]
mod bench;

use bench::Bench;
use earwitness::board::{Build, Fault, Setup};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// One request of a transcript and what came of it.
#[derive(Deserialize)]
struct Exchange {
    config: String,
    note: String,
    request: String,
    replies: Vec<String>,
    log: Vec<String>,
}

/// Time from one request to the next in the transcripts, seconds. It matters: brightness fades.
const PACE: f64 = 0.272;

/// How long a request may take that takes long.
const PATIENCE: f64 = 10.0;

#[derive(Default)]
struct Count {
    checked: usize,
    /// Of these: answered with a volume that a request not in the transcript had set.
    volume_set_first: usize,
    not_applicable: Vec<String>,
    wrong: Vec<String>,
}

/// The board that a configuration of the transcripts is; `None` when this board can't be it.
fn setup(config: &str) -> Option<Setup> {
    let healthy = Setup::default();
    Some(match config {
        "headless" => healthy,
        "lcd-full" => Setup { build: Build::LcdFull, ..healthy },
        "oled" => Setup { build: Build::Oled, ..healthy },
        "extra40" => Setup { build: Build::Extra40, ..healthy },
        "huge-tool" => Setup { build: Build::HugeTool, ..healthy },
        // The firmware with the fault answered after 1.5 s.
        "fault:late-response" => Setup { fault: Some(Fault::LateResponse { ms: 1500 }), ..healthy },
        other => Setup { fault: Some(other.strip_prefix("fault:")?.parse().ok()?), ..healthy },
    })
}

/// The text of a line of the log, without level and time.
fn text(line: &str) -> &str {
    match line.split_once(") ") {
        Some((_, text)) if line.contains(" (") && !line.starts_with("rst:") => text,
        _ => line,
    }
}

fn check(bench: &mut Bench, exchange: &Exchange) -> Result<(), String> {
    let (first_line, first_reply) = (bench.uart.len(), bench.published.len());
    // Two requests of one go stand in two lines.
    for request in exchange.request.lines() {
        bench.publish(&format!(r#"{{"session_id":"s","type":"mcp","payload":{request}}}"#));
    }
    bench.run(PACE);
    let replies = |bench: &Bench| -> Vec<String> {
        let published = bench.published[first_reply..].iter();
        published.filter_map(|(_, text)| bench::payload(text)).collect()
    };
    let began = bench.now;
    let long = exchange.log.iter().any(|line| line.starts_with("rst:"));
    while (replies(bench).len() < exchange.replies.len() || long)
        && bench.now.seconds_since(began) < PATIENCE
    {
        bench.run(PACE);
    }
    if replies(bench) != exchange.replies {
        return Err(format!("answers {:#?}, not {:#?}", replies(bench), exchange.replies));
    }
    let printed: Vec<&str> = bench.uart[first_line..].iter().map(|(_, line)| text(line)).collect();
    let mut rest = printed.iter();
    for line in exchange.log.iter().map(|line| text(line)) {
        // What belongs to the network stack of the host that the transcripts were made on.
        let foreign = ["EspTcp: ", "HttpClient: TCP"].iter().any(|tag| line.starts_with(tag));
        if !foreign && !rest.any(|printed| *printed == line) {
            return Err(format!("prints {printed:#?}, not `{line}`"));
        }
    }
    let said = |line: &&&str| line.starts_with("MCP: ") && !line.starts_with("MCP: Add tool");
    let (ours, theirs) = (
        printed.iter().filter(said).count(),
        exchange.log.iter().filter(|line| said(&&text(line))).count(),
    );
    match ours == theirs {
        true => Ok(()),
        false => Err(format!("prints {ours} lines of MCP, not {theirs}: {printed:#?}")),
    }
}

/// Why a request can't be put to a board over MQTT.
fn not_applicable(exchange: &Exchange) -> Option<&'static str> {
    let requests = exchange.request.lines().map(serde_json::from_str::<serde_json::Value>);
    let reasons = requests.map(|request| match request {
        Err(_) => Some("nothing that is not JSON gets over MQTT to the MCP code"),
        Ok(request) if !request.is_object() => {
            Some("a payload that is no object does not get over MQTT to the MCP code")
        }
        Ok(_) => None,
    });
    reasons.flatten().next()
}

/// The volume that the firmware's status told.
fn reported(exchange: &Exchange) -> Option<i32> {
    let reply: serde_json::Value = serde_json::from_str(exchange.replies.first()?).ok()?;
    let text = reply.pointer("/result/content/0/text")?.as_str()?;
    let status: serde_json::Value = serde_json::from_str(text).ok()?;
    status.pointer("/audio_speaker/volume")?.as_i64()?.try_into().ok()
}

fn check_file(path: &Path, count: &mut Count) {
    let text = fs::read_to_string(path).unwrap();
    let mut current: Option<(String, Bench)> = None;
    let mut volume_was_set = false;
    for (n, line) in text.lines().enumerate() {
        let Ok(exchange) = serde_json::from_str::<Exchange>(line) else { continue };
        let name = format!("{}:{} {}: {}", path.display(), n + 1, exchange.config, exchange.note);
        if let Some(why) = not_applicable(&exchange) {
            count.not_applicable.push(format!("{name}: {why}"));
            continue;
        }
        let Some(setup) = setup(&exchange.config) else {
            count.not_applicable.push(format!("{name}: no such configuration here"));
            continue;
        };
        let same = current.take().filter(|(config, _)| *config == exchange.config);
        let (_, bench) =
            current.insert(same.unwrap_or_else(|| (exchange.config.clone(), Bench::online(setup))));
        count.checked += 1;
        let mut result = check(bench, &exchange);
        // The transcripts leave requests out. A status after a request that sets no volume can
        // tell a volume that the board was never asked for: then it is asked for first.
        if let (Err(_), Some(volume), false) = (&result, reported(&exchange), volume_was_set) {
            count.volume_set_first += 1;
            bench.set_volume(volume);
            result = check(bench, &exchange);
        }
        volume_was_set = !exchange.request.contains("get_device_status");
        if let Err(wrong) = result {
            count.wrong.push(format!("{name}: {wrong}"));
        }
    }
}

#[test]
fn the_board_answers_as_the_firmware_did() {
    let mut files = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/firmware-mcp.jsonl")];
    if let Some(folder) = std::env::var_os("EARWITNESS_TRANSCRIPTS") {
        let entries = fs::read_dir(PathBuf::from(folder)).unwrap();
        let more = entries.map(|entry| entry.unwrap().path());
        files.extend(more.filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")));
    }
    let mut count = Count::default();
    files.iter().for_each(|file| check_file(file, &mut count));
    let first = count.volume_set_first;
    println!("{} checked ({first} with the volume set first)", count.checked);
    println!("{} not applicable\n{}", count.not_applicable.len(), count.not_applicable.join("\n"));
    println!("{} wrong\n{}", count.wrong.len(), count.wrong.join("\n"));
    assert!(count.wrong.is_empty());
    assert!(count.checked >= 90);
    assert!(count.not_applicable.len() * 10 <= count.checked + count.not_applicable.len());
}
