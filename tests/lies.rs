//! Evidence: real sessions with one thing changed. Whoever lies must be found out, whoever merely
//! could not be watched must stay unjudged, and what only looks like trouble must pass.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use earwitness::app::evaluate::{evaluate, open};
use earwitness::judge::Discrepancy::{self, *};
use earwitness::judge::Outcome::{self, Fail, Pass};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

#[path = "lies/console.rs"]
mod console;
#[path = "lies/meddlers.rs"]
mod meddlers;
#[path = "lies/reboots.rs"]
mod reboots;

type Events = Vec<Value>;

fn session(name: &str) -> (Events, std::path::PathBuf) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions").join(name);
    let text = fs::read_to_string(folder.join("events.jsonl")).unwrap();
    (text.lines().map(|l| serde_json::from_str(l).unwrap()).collect(), folder)
}

/// A folder with these events, in order of time, and the rest of a session.
fn recorded(mut events: Events, source: &Path) -> TempDir {
    let time = |e: &Value| e["t"].as_f64().unwrap();
    events.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let home = TempDir::new().unwrap();
    for file in ["meta.json", "speaker.wav"] {
        fs::copy(source.join(file), home.path().join(file)).unwrap();
    }
    let lines: String = events.iter().map(|e| format!("{e}\n")).collect();
    fs::write(home.path().join("events.jsonl"), lines).unwrap();
    home
}

/// Judges a session after `change`; events are put in order of time again. Returns the reason.
#[track_caller]
fn check(
    name: &str,
    what: &str,
    change: impl Fn(&mut Events),
    outcome: Outcome,
    named: Discrepancy,
) -> String {
    let (mut events, source) = session(name);
    let before = events.clone();
    change(&mut events);
    assert_ne!(before, events, "{what}: nothing was changed");
    let home = recorded(events, &source);
    let evidence = open(home.path(), None).unwrap();
    let verdict = evaluate(evidence.as_ref(), None).unwrap().verdict;
    let claim = &verdict.claims[0];
    let session = verdict.session.iter().find_map(|f| f.discrepancy);
    let found = session.unwrap_or(claim.discrepancy);
    assert_eq!((verdict.outcome, found), (outcome, named), "{what}: {:?}", claim.decisive());
    claim.decisive().map(|finding| finding.reason.clone()).unwrap_or_default()
}

fn bytes(event: &Value) -> String {
    let raw = STANDARD.decode(event["b64"].as_str().unwrap_or_default()).unwrap();
    String::from_utf8_lossy(&raw).into_owned()
}

fn is(event: &Value, channel: &str, dir: &str) -> bool {
    event["ch"] == channel && event["dir"] == dir
}

/// The device's reply with this id.
fn reply(id: u32) -> impl Fn(&Value) -> bool {
    move |e| is(e, "mqtt", "rx") && bytes(e).contains(&format!("\"id\":{id},"))
}

fn console(event: &Value) -> bool {
    is(event, "uart", "rx")
}

/// Writes `new` for `old` in the bytes of every event that `pick` picks.
fn replace(
    pick: impl Fn(&Value) -> bool,
    old: &'static str,
    new: &'static str,
) -> impl Fn(&mut Events) {
    move |events| {
        for event in events.iter_mut().filter(|e| pick(e)) {
            let text = bytes(event);
            if text.contains(old) {
                event["b64"] = STANDARD.encode(text.replace(old, new)).into();
            }
        }
    }
}

fn remove(pick: impl Fn(&Value) -> bool) -> impl Fn(&mut Events) {
    move |events| events.retain(|e| !pick(e))
}

fn shift(pick: impl Fn(&Value) -> bool, seconds: f64) -> impl Fn(&mut Events) {
    move |events| {
        for event in events.iter_mut().filter(|e| pick(e)) {
            event["t"] = (event["t"].as_f64().unwrap() + seconds).into();
        }
    }
}

/// Prints `text` on the console at a time.
fn print(t: f64, text: &'static str) -> impl Fn(&mut Events) {
    move |events| {
        events.push(json!({"t": t, "ch": "uart", "dir": "rx", "b64": STANDARD.encode(text)}));
    }
}

const BANNER: &str =
    "\r\nESP-ROM:esp32s3-20210327\r\nrst:0x8 (TG1WDT_SYS_RST),boot:0x8 (SPI_FAST_FLASH_BOOT)\r\n";
const GURU: &str = "\r\nGuru Meditation Error: Core  0 panic'ed (LoadProhibited). Exc\r\n";
const QUOTED: &str = "I (1) Application: << Guru Meditation Error: Core  0 panic'ed (X).\r\n";

#[test]
fn an_answer_must_be_the_answer() {
    let check = |what, change: &dyn Fn(&mut Events), named| {
        check("mqtt-healthy", what, change, Fail, named);
    };
    let text = "\"text\":\"true\"";
    check("no reply", &remove(reply(6)), PhantomEffect);
    check("a reply after 6 s", &shift(reply(6), 6.0), Late);
    check("a reply before the request", &shift(reply(6), -0.02), PhantomEffect);
    check("a reply with another id", &replace(reply(6), "\"id\":6,", "\"id\":66,"), PhantomEffect);
    check("false", &replace(reply(6), text, "\"text\":\"false\""), PhantomEffect);
    check("no JSON", &replace(reply(6), text, "\"text\":\"tr\"ue\""), MalformedReply);
    let twice = |events: &mut Events| {
        let mut again = events.iter().find(|e| reply(6)(e)).unwrap().clone();
        again["t"] = (again["t"].as_f64().unwrap() + 0.001).into();
        events.push(again);
    };
    check("two replies", &twice, MalformedReply);
    let reconnected = |events: &mut Events| {
        let at = events.iter().find(|e| reply(6)(e)).unwrap()["t"].as_f64().unwrap();
        let mut hello = events.iter().find(|e| e["mqtt_packet"] == "CONNECT").unwrap().clone();
        hello["t"] = (at - 0.0005).into();
        events.push(hello);
    };
    check("a reply on another connection", &reconnected, PhantomEffect);
    let tool = "self.audio_speaker.set_volume\"";
    check("not in the list", &replace(reply(2), tool, "self.x\""), NotListed);
}

#[test]
fn a_no_is_a_lie_only_when_the_effect_is_there() {
    let text = "\"text\":\"true\"";
    let no = replace(reply(6), text, "\"text\":\"false\"");
    check("mqtt-healthy", "no, and it sounds", &no, Fail, PhantomEffect);
    check("mqtt-dead-amp", "no, and nothing sounds", &no, Fail, Refused);
    let unheard = |events: &mut Events| {
        no(events);
        events.retain(|e| !is(e, "udp", "tx"));
    };
    check("mqtt-healthy", "no, and nobody listened", unheard, Fail, Refused);
}

#[test]
fn a_trace_must_be_the_trace() {
    let check = |what, change: &dyn Fn(&mut Events), outcome, named| {
        check("mqtt-healthy", what, change, outcome, named);
    };
    let line = "AudioCodec: Set output volume to 60";
    let display = "Display: Set output volume to 60";
    check("no line", &replace(console, line, "AudioCodec: nothing"), Fail, SilentSuccess);
    check("somebody else's", &replace(console, line, display), Fail, SilentSuccess);
    let six = "AudioCodec: Set output volume to 6";
    check("another number", &replace(console, line, six), Fail, SilentSuccess);
    let none = Outcome::Inconclusive;
    check("no console at all", &remove(console), none, Discrepancy::Inconclusive);
    let (good, stale) = ("\\\"volume\\\":60", "\\\"volume\\\":40");
    check("an old status", &replace(reply(7), good, stale), Fail, StaleReadback);
    check("no volume", &replace(reply(7), good, "\\\"vol\\\":60"), Fail, MalformedReply);
    check("a reset", &print(9.5, BANNER), Fail, UnexpectedReset);
    check("a panic without a reset", &print(9.5, GURU), Fail, UnexpectedReset);
    check("a quoted panic", &print(9.5, QUOTED), Pass, Agree);
}

#[test]
fn what_was_not_asked_is_not_judged() {
    let none = Outcome::Inconclusive;
    let check = |name, what, change: &dyn Fn(&mut Events)| {
        check(name, what, change, none, Discrepancy::Inconclusive);
    };
    let (to, from) = ("listening -> speaking", "speaking -> listening");
    check("mqtt-dead-amp", "never in `speaking`", &replace(console, to, from));
    check("mqtt-healthy", "heard while in another state", &replace(console, to, from));
    check("mqtt-healthy", "no packets", &remove(|e| is(e, "udp", "tx")));
    let third = |events: &mut Events| {
        let at = |phase| events.iter().find(|e| e["phase"] == phase).unwrap()["t"].as_f64();
        let (from, until) = (at("tone-3").unwrap(), at("volume-4").unwrap());
        let during = |e: &Value| (from..until).contains(&e["t"].as_f64().unwrap());
        events.retain(|e| !(is(e, "udp", "tx") && during(e)));
    };
    check("mqtt-healthy", "one tone was not sent", &third);
    let again = |events: &mut Events| {
        let set = |e: &&Value| is(e, "mqtt", "tx") && bytes(e).contains("set_volume\",\"arguments");
        let mut call = events.iter().find(set).unwrap().clone();
        let status = |e: &&Value| is(e, "mqtt", "tx") && bytes(e).contains("\"id\":7,");
        call["t"] = (events.iter().find(status).unwrap()["t"].as_f64().unwrap() - 1e-4).into();
        let renumbered = STANDARD.encode(bytes(&call).replace("\"id\":3,", "\"id\":93,"));
        call["b64"] = renumbered.into();
        events.push(call);
    };
    check("mqtt-healthy", "another call before the reading", &again);
    let set = |e: &Value| is(e, "mqtt", "tx") && bytes(e).contains("set_volume\",\"arguments");
    check("mqtt-healthy", "no set_volume", &remove(set));
    let renamed = |events: &mut Events| {
        events.iter_mut().find(|e| e["phase"] == "tone-3").unwrap()["phase"] = "x".into();
    };
    check("mqtt-healthy", "a step is missing", &renamed);
    let error = "\"error\":{\"message\":\"x\"},\"r\":{";
    check("mqtt-healthy", "tools/list fails", &replace(reply(2), "\"result\":{", error));
}

#[test]
fn a_reboot_is_one_clean_boot() {
    let check = |what, change: &dyn Fn(&mut Events), outcome, named| {
        check("mqtt-reboot-nosub", what, change, outcome, named);
    };
    let later = |e: &Value| e["t"].as_f64().unwrap() > 5.0;
    let (soft, power) = ("rst:0xc (RTC_SW_CPU_RST)", "rst:0x1 (POWERON)");
    let abort = "\r\nabort() was called at PC 0x42012345 on core 0\r\n";
    check("by power", &replace(console, soft, power), Fail, UnexpectedReset);
    check("two boots", &print(8.0, BANNER), Fail, UnexpectedReset);
    check("a panic on the way", &print(5.5, abort), Fail, UnexpectedReset);
    let status = move |e: &Value| is(e, "mqtt", "rx") && later(e);
    let (kept, lost) = ("\\\"volume\\\":70", "\\\"volume\\\":10");
    check("settings lost", &replace(status, kept, lost), Fail, StaleReadback);
    let none = Outcome::Inconclusive;
    let silent = move |e: &Value| console(e) && later(e);
    check("the console ends", &remove(silent), none, Discrepancy::Inconclusive);
    let endless = |events: &mut Events| {
        events.retain(|e| !later(e));
        events.push(json!({"t": 20.0, "ch": "note", "event": "driver-timeout"}));
        events.push(json!({"t": 20.0, "ch": "note", "phase": "late"}));
    };
    check("no boot in 10 s", &endless, Fail, NoReboot);
}

/// A healthy board, judged by a scenario of one claim.
fn judged_by(claim: &str) -> earwitness::judge::Verdict {
    let text = format!("version = 1\nquestion = \"?\"\n[[claim]]\nid = \"a\"\n{claim}\n");
    let scenario = earwitness::journal::NamedText::new("mine.toml", text);
    let evidence = open(&session("mqtt-healthy").1, None).unwrap();
    evaluate(evidence.as_ref(), Some(&scenario)).unwrap().verdict
}

#[test]
fn a_faulty_question_is_not_charged_to_the_device() {
    let check = |claim: &str, outcome, says: &str| {
        let verdict = judged_by(claim);
        let found = &verdict.claims[0].findings[0];
        let told = format!("{} {:?}", found.reason, found.weak);
        assert_eq!(verdict.outcome, outcome, "{claim}: {told}");
        assert!(told.contains(says), "{claim}: {told}");
    };
    let executed = |log: &str| {
        format!("requires = \"executed\"\nexecuted = {{ step = \"volume-*\", log = \"{log}\" }}")
    };
    let line = "AudioCodec: Set output volume to ";
    check(&executed(&format!("{line}{{volume}}")), Pass, "to 60");
    let none = Outcome::Inconclusive;
    check(&executed(&format!("{line}{{volme}}")), none, "did you mean `volume`?");
    check(&executed(&format!("{line}{{x}}")), none, "the call's arguments are: volume");
    let readback = |rest: &str| {
        format!("requires = \"readback\"\nreadback = {{ step = \"status-1\", {rest} }}")
    };
    check(&readback("path = \"audio_speaker.volume\", equals = 40.0"), Pass, "same variable");
    check(&readback("path = \"audio_speaker.volume\", equals = 40.5"), Fail, "reads 40, not 40.5");
    let slip = "path = \"audio_speaker.volum\", equals = 40";
    check(&readback(slip), none, "the status holds no audio_speaker.volum");
    let step = |from: &str, to: &str| {
        let pair = format!("{{ from = {from}, to = {to} }}");
        let limits = "expect = \"board-law\", tolerance = \"1.5dB\"";
        format!("requires = \"physical\"\nphysical = {{ level_step = {pair}, {limits} }}")
    };
    check(&step("\"tone-1\"", "\"tone-2\""), Pass, "volume 40->60");
    let missing = step("[\"tone-1\", \"tone-9*\"]", "[\"tone-2\", \"tone-8\"]");
    check(&missing, none, "no tone was sent in a step `tone-9*`");
    let unknown = "path = \"network.type\", equals = \"wifi\"";
    check(&readback(unknown), Pass, "profile does not say");
}

#[test]
fn packets_that_nobody_can_decode_are_named() {
    // A packet of counted frames whose count is 0: no decoder accepts it.
    let broken = |events: &mut Events| {
        let first = events.iter().position(|e| e["phase"] == "tone-1").unwrap();
        let packet = events[first..].iter_mut().find(|e| e["op"] == "binary").unwrap();
        packet["b64"] = STANDARD.encode([0, 0, 0, 2, 3, 0]).into();
    };
    let (none, named) = (Outcome::Inconclusive, Discrepancy::Inconclusive);
    let reason = check("ws-healthy", "a packet that is no Opus", broken, none, named);
    assert!(reason.starts_with("tone-1: packet 1 of "), "{reason}");
}

#[test]
fn what_is_quoted_or_noise_is_no_evidence() {
    let check = |what, change: &dyn Fn(&mut Events), outcome, named| {
        check("mqtt-healthy", what, change, outcome, named);
    };
    for quote in [
        "W (9) Display: (abort() was called at PC 0x42012345 on core 0)\r\n",
        "W (9) Display: 他说：Guru Meditation Error: Core  0 panic'ed (LoadProhibited)\r\n",
        "I (9) Web: log=ESP-ROM:esp32s3-20210327\r\n",
        "I (9) HttpClient: GET /log?q=assert failed: x\r\n",
    ] {
        check(quote, &print(9.5, quote), Pass, Agree);
    }
    let (line, shown) = ("AudioCodec: Set output", "Display: AudioCodec: Set output");
    check("a quoted trace", &replace(console, line, shown), Fail, SilentSuccess);
    for noise in ["\0", "\r"] {
        check("noise before a call", &print(7.489, noise), Pass, Agree);
    }
    let none = Outcome::Inconclusive;
    let line = "I (9) AudioCodec: Set output volume to 60\r\n";
    let torn = |events: &mut Events| {
        replace(console, "Set output volume to 60", "x")(events);
        let call = |e: &&Value| is(e, "mqtt", "tx") && bytes(e).contains("\"id\":6,");
        let at = events.iter().find(call).unwrap()["t"].as_f64().unwrap();
        let (head, tail) = line.split_at(9);
        events.push(
            json!({"t": at - 0.002, "ch": "uart", "dir": "rx", "b64": STANDARD.encode(head)}),
        );
        events.push(
            json!({"t": at + 0.0001, "ch": "uart", "dir": "rx", "b64": STANDARD.encode(tail)}),
        );
    };
    check("a line around the call", &torn, none, Discrepancy::Inconclusive);
}

#[test]
fn a_reply_must_be_whole_and_one() {
    let check = |what, change: &dyn Fn(&mut Events), outcome, named| {
        check("mqtt-healthy", what, change, outcome, named);
    };
    let odd = |what, old, new| check(what, &replace(reply(6), old, new), Fail, MalformedReply);
    odd("an image", "\"type\":\"text\"", "\"type\":\"image\"");
    odd("no bool", "\"isError\":false", "\"isError\":1");
    odd("an error, too", "\"isError\":false}", "\"isError\":false},\"error\":{\"message\":\"x\"}");
    odd("two contents", "\"true\"}]", "\"true\"},{\"type\":\"text\",\"text\":\"no\"}]");
    odd("half an id", "\"id\":6,", "\"id\":6.9,");
    odd("a doubled key", "\"text\":\"true\"", "\"text\":\"false\",\"text\":\"true\"");
    let topic = |events: &mut Events| {
        events.iter_mut().find(|e| reply(6)(e)).unwrap()["topic"] = "another/device".into();
    };
    check("another topic", &topic, Fail, MalformedReply);
    let volume = "\\\"volume\\\":60";
    let doubled = "\\\"volume\\\":10,\\\"volume\\\":60";
    check("a doubled volume", &replace(reply(7), volume, doubled), Fail, MalformedReply);
    let contradicted = |events: &mut Events| {
        let mut other = events.iter().find(|e| reply(7)(e)).cloned().unwrap();
        other["b64"] = STANDARD.encode(bytes(&other).replace(volume, "\\\"volume\\\":10")).into();
        other["t"] = (other["t"].as_f64().unwrap() + 0.001).into();
        events.push(other);
    };
    check("two statuses", &contradicted, Fail, MalformedReply);
    let none = Outcome::Inconclusive;
    let ahead = |events: &mut Events| {
        let call = |e: &&Value| is(e, "mqtt", "tx") && bytes(e).contains("\"id\":6,");
        let at = events.iter().find(call).unwrap()["t"].as_f64().unwrap();
        events.iter_mut().find(|e| reply(6)(e)).unwrap()["t"] = (at - 0.0005).into();
    };
    check("a hair before its call", &ahead, none, Discrepancy::Inconclusive);
}
