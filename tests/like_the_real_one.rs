//! Evidence: real recorded sessions. What the simulated bench records of the same steps must be the
//! same kinds of facts in the same order, channel by channel; whatever differs is listed here with
//! its reason. And the chance of the simulated world is what it claims to be.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "like_the_real_one/spread.rs"]
mod spread;

use earwitness::app::session::{Choices, Texts, simulate};
use earwitness::decode::uart::{BootEvent, UartLine};
use earwitness::decode::{Answer, Fact, HttpMessage, Story, What, tell};
use earwitness::journal::{NamedText, Party};
use earwitness::rig::import::{Options, Shipped, import};
use earwitness::scenario::{Profile, for_imported};
use regex::Regex;
use std::fs;
use std::path::Path;

/// The steps of the recorder of the volume sessions.
const VOLUME: &str = r#"
version  = 1
question = "Does the simulated bench record what the real one did?"
limit    = "120s"

[[step]]
wait = { online = true, within = "30s" }
[[step]]
discover = { user_tools = true }
[[step]]
id = "status-0"
status = {}
[[step]]
open_audio = { within = "10s" }
[[step]]
wait = { for = "1s" }
[[step]]
id = "volumes"
repeat = { times = 2 }
[[step.step]]
id = "quiet"
call = { tool = "self.audio_speaker.set_volume", args = { volume = 40 } }
[[step.step]]
id = "tone-quiet"
play = { tone = "coded", level = "-12dBFS", for = "900ms" }
[[step.step]]
id = "status-quiet"
status = {}
[[step.step]]
id = "loud"
call = { tool = "self.audio_speaker.set_volume", args = { volume = 60 } }
[[step.step]]
id = "tone-loud"
play = { tone = "coded", level = "-12dBFS", for = "900ms" }
[[step.step]]
id = "status-loud"
status = {}
[[step]]
restore = {}

[[claim]]
id = "said"
requires = "accepted"
accepted = { step = "quiet", text = "true" }
"#;

/// Those of the reboot session.
const REBOOT: &str = r#"
version  = 1
question = "Does the simulated bench record what the real one did?"
limit    = "120s"

[[step]]
wait = { online = true, within = "30s" }
[[step]]
discover = { user_tools = true }
[[step]]
id = "status-0"
status = {}
[[step]]
id = "reboot"
reboot = { within = "40s" }
[[step]]
id = "status-after-1"
status = {}

[[claim]]
id = "back"
requires = "readback"
readback = { step = "status-after-1", path = "audio_speaker.volume", same_as = "status-0" }
"#;

fn real(session: &str) -> Story {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions").join(session);
    let shipped = Shipped { scenario_for: &for_imported, profile: Profile::xiaozhi() };
    tell(&import(&folder, &Options::default(), &shipped).unwrap()).unwrap()
}

fn texts(scenario: NamedText) -> Texts {
    let rig = Path::new(env!("CARGO_MANIFEST_DIR")).join("rigs/sim.toml");
    let rig = NamedText::new("rigs/sim.toml", fs::read_to_string(rig).unwrap());
    Texts { scenario, rig, profile: Profile::xiaozhi() }
}

fn simulated(scenario: &str, seed: u64) -> Story {
    let texts = texts(NamedText::new("like-the-real-one.toml", scenario));
    tell(&simulate(&texts, &Choices { seed, ..Choices::default() }).unwrap()).unwrap()
}

/// Numbers and what depends on them, masked.
fn masked(text: &str) -> String {
    let mask = |text: &str, pattern: &str, by: &str| {
        Regex::new(pattern).unwrap().replace_all(text, by).into_owned()
    };
    let text = mask(text, "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID");
    let text = mask(&text, "(?i)([0-9a-f]{2}[:_]){5}[0-9a-f]{2}", "MAC");
    let text = mask(&text, r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+(:[0-9]+)?", "HOST");
    let text = mask(&text, "(Session ID|session_id): [0-9a-z-]+", "$1: SESSION");
    let text = mask(&text, "SHA256: +[0-9a-f]+", "SHA256: HASH");
    mask(&text, "0x[0-9a-f]+|[0-9]+", "N")
}

/// What the console told, line by line.
fn console(story: &Story) -> Vec<String> {
    let kind = |fact: &Fact| match &fact.what {
        What::Uart(UartLine { log: Some(log), .. }) => {
            Some(format!("{:?} {}: {}", log.level, log.tag, masked(&log.text)))
        }
        What::Uart(line) => Some(masked(&line.text)),
        What::Boot(BootEvent::Began { .. }) => Some("a boot begins".into()),
        What::Boot(other) => Some(masked(&format!("boot event {other:?}"))),
        _ => None,
    };
    story.facts.iter().filter_map(kind).collect()
}

/// HTTP messages: start line and the names of the headers.
fn http(story: &Story) -> Vec<String> {
    let kind = |fact: &Fact| match &fact.what {
        What::Http(HttpMessage { from, start, headers, .. }) => {
            let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
            Some(format!("{} {start} {}", from.name(), names.join(" ")))
        }
        _ => None,
    };
    story.facts.iter().filter_map(kind).collect()
}

/// What went over the control channel and beside it: MQTT packets, messages, MCP.
fn control(what: &What) -> Option<String> {
    let kind = match what {
        What::Connected { transport, .. } => format!("connected {transport:?}"),
        What::Disconnected { transport, orderly } => {
            format!("disconnected {transport:?} orderly {orderly}")
        }
        What::Mqtt { from, packet } => {
            masked(&format!("{} {packet:?}", from.name())).split(['{', '(']).next()?.into()
        }
        What::Message { from, body } => {
            let word = |key: &str| body[key].as_str().map(|word| format!(" {word}"));
            let words: String = ["type", "state", "mode"].into_iter().filter_map(word).collect();
            format!("{}{words}", from.name())
        }
        What::Request(request) => {
            let tool = request.tool.as_deref().unwrap_or_default();
            format!("{} asks {} {tool}", request.from.name(), request.method)
        }
        What::Reply(reply) => {
            let kind = match &reply.answer {
                Answer::Text(text) if text.starts_with('{') => "an object",
                Answer::Text(text) => text,
                Answer::Result(_) => "a result",
                Answer::Error(_) => "an error",
                Answer::Malformed(_) | Answer::Irregular(_) => "nonsense",
            };
            format!("{} answers {kind}", reply.from.name())
        }
        What::Malformed { from, .. } => format!("{} malformed", from.name()),
        What::Ignored { why } => format!("ignored: {why}"),
        _ => return None,
    };
    Some(kind.trim_end().into())
}

fn controls(story: &Story) -> Vec<String> {
    story.facts.iter().filter_map(|fact| control(&fact.what)).collect()
}

/// Lists line by line: what a person reads when they are not the same.
fn difference(real: &[String], ours: &[String]) -> Option<String> {
    let common = real.iter().zip(ours).take_while(|(a, b)| a == b).count();
    (real != ours).then(|| {
        let rest = |lines: &[String]| {
            let rest = lines.iter().skip(common).take(6);
            rest.map(|line| format!("    {line}\n")).collect::<String>()
        };
        format!("after {common} that are the same:\n  real\n{}  ours\n{}", rest(real), rest(ours))
    })
}

#[track_caller]
fn same(channel: &str, real: &[String], ours: &[String]) {
    assert!(real.len() > 1, "{channel}: {real:?}");
    if let Some(difference) = difference(real, ours) {
        panic!("{channel}: {difference}");
    }
}

/// Takes out what one of the two does and the other does not, exactly as often as is said.
#[track_caller]
fn without(lines: &mut Vec<String>, allowed: &[&str]) {
    let found = lines.windows(allowed.len()).position(|lines| lines == allowed);
    let at = found.unwrap_or_else(|| panic!("{allowed:?} is no exception any more"));
    lines.drain(at..at + allowed.len());
}

/// The recorder's client does not send it; MCP wants it after `initialize`, and a board that
/// follows the transcripts says nothing to it.
const INITIALIZED: [&str; 1] = ["bench asks notifications/initialized"];

/// The bench reads the volume before it changes it for the first time, to put it back: step
/// `before`. The recorder's `status-0` served for that.
const BEFORE: [&str; 2] =
    ["bench asks tools/call self.get_device_status", "device answers an object"];

/// The recorder says goodbye at its end, and the board closes the channel; ours leaves the channel
/// to the board.
const GOODBYE: [&str; 1] = ["bench goodbye"];
const AFTER_GOODBYE: [&str; 7] = [
    "Info MQTT: Received goodbye message, session_id: SESSION",
    "Info MQTT: Closing audio channel, send_goodbye: N",
    "Warning Display: Role:system",
    "Warning Display: ",
    "Info StateMachine: State: listening -> idle",
    "Warning Display: SetStatus: Standby",
    "Warning Display: SetEmotion: neutral",
];

/// Facts in order of time, those of interest alone: what must come after what on two channels.
fn chain(story: &Story, wanted: impl Fn(&What) -> Option<&'static str>) -> Vec<&'static str> {
    let mut facts: Vec<&Fact> = story.facts.iter().collect();
    facts.sort_by_key(|fact| fact.at);
    let mut all = Vec::new();
    for kind in facts.iter().filter_map(|fact| wanted(&fact.what)) {
        if all.last() != Some(&kind) {
            all.push(kind);
        }
    }
    all
}

fn console_says(what: &What, text: &str) -> bool {
    matches!(what, What::Uart(UartLine { log: Some(log), .. }) if log.text == text)
}

fn message(what: &What, from: Party, kind: &str, state: &str) -> bool {
    matches!(what, What::Message { from: by, body }
        if *by == from && body["type"] == kind && (state.is_empty() || body["state"] == state))
}

/// From `tts start` to the packets and the states of the board and back.
fn speech(what: &What) -> Option<&'static str> {
    let chain = [
        (message(what, Party::Bench, "tts", "start"), "start"),
        (console_says(what, "State: listening -> speaking"), "speaking"),
        (matches!(what, What::Audio { from: Party::Bench, .. }), "packets"),
        (message(what, Party::Bench, "tts", "stop"), "stop"),
        (console_says(what, "State: speaking -> listening"), "listening"),
    ];
    chain.into_iter().find_map(|(is, kind)| is.then_some(kind))
}

/// From the button to the channel.
fn channel(what: &What) -> Option<&'static str> {
    let chain = [
        (matches!(what, What::Pressed { .. }), "pressed"),
        (message(what, Party::Device, "hello", ""), "hello"),
        (message(what, Party::Bench, "hello", ""), "hello back"),
        (console_says(what, "State: connecting -> listening"), "listening"),
    ];
    chain.into_iter().find_map(|(is, kind)| is.then_some(kind))
}

/// From the call to the console and the answer, for set_volume.
fn volume(what: &What) -> Option<&'static str> {
    match what {
        What::Request(r) if r.tool.as_deref() == Some("self.audio_speaker.set_volume") => {
            Some("asked")
        }
        What::Reply(reply) if reply.answer == Answer::Text("true".into()) => Some("answered"),
        _ => None,
    }
}

/// From the call of `self.reboot` to the board that is back.
fn reboot(what: &What) -> Option<&'static str> {
    match what {
        What::Request(r) if r.tool.as_deref() == Some("self.reboot") => Some("asked"),
        What::Disconnected { orderly: true, .. } => Some("disconnected"),
        What::Boot(BootEvent::Began { .. }) => Some("boot"),
        What::Http(HttpMessage { from: Party::Device, .. }) => Some("config"),
        What::Connected { .. } => Some("connected"),
        _ => None,
    }
}

/// Each request of ours that got an answer got it once, on its connection, afterwards.
fn answered(story: &Story) -> Vec<(String, usize)> {
    assert!(story.mcp.foreign.is_empty());
    let all = story.mcp.exchanges.iter().filter(|x| x.request.id.is_some());
    all.map(|x| {
        assert!(x.replies.iter().all(|reply| reply.at >= x.at), "{x:?}");
        (x.request.tool.clone().unwrap_or_else(|| x.request.method.clone()), x.replies.len())
    })
    .collect()
}

#[test]
fn a_volume_session_is_told_as_the_real_one() {
    for name in ["mqtt-healthy-nosub", "mqtt-es8311-healthy"] {
        let real = real(name);
        for seed in 0..10 {
            let ours = simulated(VOLUME, seed);
            let mut lines = console(&real);
            without(&mut lines, &AFTER_GOODBYE);
            same("console", &lines, &console(&ours));
            same("HTTP", &http(&real), &http(&ours));
            let (mut theirs, mut mine) = (controls(&real), controls(&ours));
            if name == "mqtt-es8311-healthy" {
                // A client of the host build, not the firmware's (tests/sessions/README.md).
                without(&mut theirs, &["device Subscribe"]);
                without(&mut theirs, &["bench SubAck"]);
            }
            without(&mut theirs, &GOODBYE);
            without(&mut mine, &INITIALIZED);
            without_first_before_change(&mut mine);
            same("control", &theirs, &mine);
            for chain_of in [speech, channel, volume] {
                assert_eq!(chain(&real, chain_of), chain(&ours, chain_of), "{name}, seed {seed}");
            }
            let mut mine = answered(&ours);
            let first = mine.iter().position(|(tool, _)| tool.ends_with("set_volume")).unwrap();
            assert_eq!(mine.remove(first - 1), ("self.get_device_status".into(), 1), "`before`");
            assert_eq!(answered(&real), mine, "{name}, seed {seed}");
        }
    }
}

/// [`BEFORE`], where it is: right before the first set_volume.
#[track_caller]
fn without_first_before_change(lines: &mut Vec<String>) {
    let set = "bench asks tools/call self.audio_speaker.set_volume";
    let first = lines.iter().position(|line| line == set).unwrap();
    assert_eq!(lines[first - 2..first], BEFORE);
    lines.drain(first - 2..first);
}

#[test]
fn a_reboot_is_told_as_the_real_one() {
    let real = real("mqtt-reboot-nosub");
    for seed in 0..10 {
        let ours = simulated(REBOOT, seed);
        same("console", &console(&real), &console(&ours));
        same("HTTP", &http(&real), &http(&ours));
        let (theirs, mut mine) = (controls(&real), controls(&ours));
        without(&mut mine, &INITIALIZED);
        same("control", &theirs, &mine);
        assert_eq!(chain(&real, reboot), chain(&ours, reboot), "seed {seed}");
        assert_eq!(answered(&real), answered(&ours), "seed {seed}");
    }
}

/// The comparison can fail: sessions of broken boards are not told like the healthy one.
#[test]
fn what_is_not_the_same_is_seen() {
    let real = [real("mqtt-healthy-nosub"), real("mqtt-reboot-nosub")];
    for (story, scenario, fault) in
        [(0, VOLUME, "drop-response"), (0, VOLUME, "queue-lost"), (1, REBOOT, "no-reboot")]
    {
        let fault = Some(fault.parse().unwrap());
        let texts = texts(NamedText::new("like-the-real-one.toml", scenario));
        let choices = Choices { seed: 1, fault, ..Choices::default() };
        let ours = tell(&simulate(&texts, &choices).unwrap()).unwrap();
        let (mut lines, mut mine) = (console(&real[story]), controls(&ours));
        if story == 0 {
            without(&mut lines, &AFTER_GOODBYE);
            without_first_before_change(&mut mine);
        }
        without(&mut mine, &INITIALIZED);
        let mut theirs = controls(&real[story]);
        theirs.retain(|line| line != GOODBYE[0]);
        let console = difference(&lines, &console(&ours));
        let control = difference(&theirs, &mine);
        assert!(console.is_some() || control.is_some(), "{fault:?}");
    }
}
