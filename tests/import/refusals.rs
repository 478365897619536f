//! Whatever is wrong with a foreign session is said with its place and its remedy.

use super::{copy, edit_events, edit_meta, load, observations};
use earwitness::journal::{Observation, Party};
use earwitness::rig::import::Options;
use earwitness::time::Moment;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Imports a spoilt copy; the message must hold every one of `expected`, `@` standing for
/// `events.jsonl:LINE`.
#[track_caller]
fn refuses(name: &str, spoil: impl Fn(&Path) -> usize, expected: &[&str]) {
    let line = std::cell::Cell::new(0);
    let (_home, folder) = copy(name, |folder| line.set(spoil(folder)));
    let message = load(&folder, &Options::default()).unwrap_err().to_string();
    for part in expected {
        let part = part.replace('@', &format!("events.jsonl:{}", line.get()));
        assert!(message.contains(&part), "`{part}` is not in: {message}");
    }
}

#[test]
fn a_missing_file_is_named() {
    for file in ["events.jsonl", "speaker.wav", "meta.json"] {
        let remove = |folder: &Path| {
            fs::remove_file(folder.join(file)).unwrap();
            0
        };
        refuses("mqtt-healthy", remove, &[file, "not found", "a session is a folder with"]);
    }
    let message = load(Path::new("/nowhere"), &Options::default()).unwrap_err().to_string();
    assert!(message.starts_with("/nowhere: not found"), "{message}");
}

#[test]
fn a_bad_event_is_named_with_its_line() {
    let event = |change: fn(&mut Value) -> bool, expected: &[&str]| {
        refuses("mqtt-healthy", |folder| edit_events(folder, change), expected);
    };
    fn set(event: &mut Value, ch: &str, field: &str, value: Value) -> bool {
        let found = event["ch"] == ch;
        if found {
            event[field] = value;
        }
        found
    }
    fn drop(event: &mut Value, ch: &str, field: &str) -> bool {
        let found = event["ch"] == ch;
        if found {
            event.as_object_mut().unwrap().remove(field);
        }
        found
    }
    event(|e| set(e, "uart", "b64", json!("a*b")), &["@", "no base64", "standard base64"]);
    event(|e| drop(e, "http", "b64"), &["@", "`b64` is missing", "add it"]);
    event(|e| drop(e, "http", "accepted"), &["@", "`accepted` is missing"]);
    event(|e| drop(e, "mqtt", "topic"), &["@", "`topic` is missing"]);
    event(|e| drop(e, "udp", "dir"), &["@", "`dir` is missing"]);
    event(|e| drop(e, "http", "t"), &["@", "`t` is missing"]);
    event(|e| set(e, "uart", "t", json!(-1.0)), &["@", "`t` is -1", "never decrease"]);
    event(|e| set(e, "http", "t", json!(1e300)), &["@", "`t` is 1", "seconds"]);
    event(|e| set(e, "udp", "t", json!(1.5)), &["@", "backwards from", "to 1.5"]);
    event(|e| set(e, "http", "accepted", json!(9.0)), &["@", "later than `t`"]);
    event(|e| set(e, "udp", "ch", json!("can")), &["@", "unknown channel `can`", "known: uart,"]);
    event(|e| set(e, "udp", "dir", json!("up")), &["@", "`dir` is `up`", "write rx"]);
    event(|e| set(e, "mqtt", "qos", json!(3)), &["@", "`qos` is `3`", "0, 1 or 2"]);
    event(|e| set(e, "mqtt", "qos", json!("x")), &["@", "bad JSON", "invalid type"]);
    event(|e| set(e, "http", "dir", json!("tx")), &["@", "without a request", "restore the line"]);
}

#[test]
fn a_torn_line_is_named() {
    let tear = |folder: &Path| {
        let path = folder.join("events.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 20]).unwrap();
        text.lines().count()
    };
    refuses("mqtt-healthy", tear, &["@", "bad JSON (EOF", "column", "record the session again"]);
}

#[test]
fn a_bad_description_is_named() {
    let meta = |change: fn(&mut Value), expected: &[&str]| {
        let spoil = |folder: &Path| {
            edit_meta(folder, change);
            0
        };
        refuses("mqtt-healthy", spoil, &[expected, &["meta.json"]].concat());
    };
    fn drop(meta: &mut Value, field: &str) {
        meta.as_object_mut().unwrap().remove(field);
    }
    meta(|m| drop(m, "speaker_wav"), &["`speaker_wav` is missing", "add it"]);
    meta(|m| drop(&mut m["speaker_wav"], "rate"), &["`speaker_wav.rate` is missing"]);
    meta(|m| drop(m, "device"), &["`device.mac` is missing"]);
    meta(|m| m["device"]["mac"] = json!("24:6f"), &["`device.mac` is `24:6f`", "six pairs"]);
    meta(|m| m["device"]["mac"] = json!(5), &["meta.json:1: bad JSON", "invalid type"]);
    meta(|m| drop(m, "udp"), &["`udp.key_hex` is missing"]);
    meta(|m| m["udp"]["key_hex"] = json!("zz"), &["`udp.key_hex` is `zz`", "32 hex digits"]);
    meta(
        |m| m["udp"]["key_hex"] = json!("00112233445566778899aabbccddeeff"),
        &["not the key of the server hello at", "events.jsonl:", "files of one session together"],
    );
    meta(|m| m["kind"] = json!("dance"), &["kind `dance`", "--scenario FILE"]);
    meta(|m| drop(m, "kind"), &["`kind` is missing", "--scenario FILE"]);
    meta(|m| m["speaker_wav"]["rate"] = json!(16000), &["speaker.wav", "24000 Hz", "16000"]);
    meta(
        |m| m["speaker_wav"]["samples"] = json!(7),
        &["speaker.wav", "350688 samples", "speaker_wav.samples = 7", "bring the files"],
    );
    meta(|m| m["speaker_wav"]["starts_at_session_t"] = json!(-1), &["is -1", "seconds since"]);
}

#[test]
fn a_bad_sound_file_is_named() {
    let cut = |bytes: usize| {
        move |folder: &Path| {
            let path = folder.join("speaker.wav");
            let wav = fs::read(&path).unwrap();
            fs::write(&path, &wav[..wav.len().min(bytes)]).unwrap();
            0
        }
    };
    refuses("ws-healthy", cut(1044), &["speaker.wav", "500 of the 338939", "copy the whole"]);
    refuses("ws-healthy", cut(40), &["speaker.wav", "inside its header"]);
    let set = |at: usize, value: &'static [u8]| {
        move |folder: &Path| {
            let path = folder.join("speaker.wav");
            let mut wav = fs::read(&path).unwrap();
            wav[at..at + value.len()].copy_from_slice(value);
            fs::write(&path, wav).unwrap();
            0
        }
    };
    refuses("ws-healthy", set(22, &[2]), &["speaker.wav", "2 channels; give one"]);
    refuses("ws-healthy", set(24, &[0xff; 4]), &["speaker.wav", "4294967295 Hz", "8000 to 192000"]);
    refuses("ws-healthy", set(40, &[0xfe, 0xff, 0xff, 0xff]), &["338939 of the 2147483647"]);
}

#[test]
fn datagrams_need_a_hello() {
    let spoil = |folder: &Path| {
        edit_events(folder, |event| {
            let hello = event["ch"] == "mqtt"
                && event["dir"] == "tx"
                && event["text"].as_str().is_some_and(|text| text.contains("\"hello\""));
            if hello {
                event["b64"] = json!("e30=");
            }
            hello
        });
        let text = fs::read_to_string(folder.join("events.jsonl")).unwrap();
        let sent = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap();
            event["ch"] == "udp" && event["dir"] == "tx"
        };
        text.lines().position(sent).unwrap() + 1
    };
    refuses("mqtt-healthy", spoil, &["@", "before any server hello", "restore the line"]);
}

#[test]
fn what_a_device_sends_before_the_hello_is_recorded() {
    for name in ["mqtt-healthy", "ws-healthy"] {
        let stray = |folder: &Path| {
            let event = json!({"t": 0.0, "ch": "udp", "dir": "rx", "b64": "AQID"});
            prepend(folder, "events.jsonl", format!("{event}\n").as_bytes());
        };
        let (_home, folder) = copy(name, stray);
        let seen = observations(&load(&folder, &Options::default()).unwrap());
        let datagram = |what: &Observation| match what {
            Observation::Datagram { from, bytes } => *from == Party::Device && bytes.0 == [1, 2, 3],
            _ => false,
        };
        assert!(seen.iter().any(|(at, what)| *at == Moment::START && datagram(what)), "{name}");
    }
}

fn prepend(folder: &Path, file: &str, bytes: &[u8]) {
    let path = folder.join(file);
    fs::write(&path, [bytes, &fs::read(&path).unwrap()].concat()).unwrap();
}

#[test]
fn a_byte_order_mark_is_named() {
    for file in ["events.jsonl", "meta.json"] {
        for mark in [&b"\xef\xbb\xbf"[..], b"\xff\xfe"] {
            let spoil = |folder: &Path| {
                prepend(folder, file, mark);
                0
            };
            refuses("ws-healthy", spoil, &[file, "byte order mark", "UTF-8 without"]);
        }
    }
}

#[test]
fn a_session_that_does_not_fit_into_memory_is_refused() {
    let (_home, folder) = copy("ws-healthy", |folder| {
        let path = folder.join("events.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let late = json!({"t": 86_000.0, "ch": "note", "phase": "late"});
        fs::write(&path, format!("{text}{late}\n")).unwrap();
    });
    assert!(load(&folder, &Options::default()).is_ok(), "a tap is only as long as its file");
    let room = Some("seed=1,snr13=20".parse().unwrap());
    let error = load(&folder, &Options { room, ..Options::default() }).unwrap_err().to_string();
    assert!(error.contains("events.jsonl: the ear would deliver 2064"), "{error}");
    assert!(error.contains("cut the session"), "{error}");
}
