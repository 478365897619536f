//! Foreign sessions become recordings: faithfully, repeatably, without secrets; and whatever is
//! wrong with one is said with its place and its remedy.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "import/rechunk.rs"]
mod rechunk;
#[path = "import/refusals.rs"]
mod refusals;
#[path = "import/rooms.rs"]
mod rooms;

use earwitness::app::evaluate::{evaluate, shipped};
use earwitness::audio::law::Law;
use earwitness::journal::{
    Condition, Edge, Entry, Evidence, MemoryRecording, NamedText, Observation, Origin, Party,
    Record, Recording, SampleFormat, Service,
};
use earwitness::judge::Verdict;
use earwitness::rig::import::{ImportError, Options, Shipped, import};
use earwitness::time::{Moment, Window};
use rumqttc::mqttbytes::v4::Packet;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const SESSIONS: [&str; 7] = [
    "mqtt-dead-amp",
    "mqtt-es8311-healthy",
    "mqtt-healthy",
    "mqtt-healthy-nosub",
    "mqtt-reboot-nosub",
    "mqtt-stuck-volume",
    "ws-healthy",
];

fn session(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions").join(name)
}

fn load(folder: &Path, options: &Options) -> Result<MemoryRecording, ImportError> {
    let scenario_for = |kind: &str| {
        matches!(kind, "volume" | "reboot")
            .then(|| NamedText::new(format!("{kind}-step.toml"), format!("kind = \"{kind}\"\n")))
    };
    let profile = NamedText::new("xiaozhi.toml", "version = 1\n");
    import(folder, options, &Shipped { scenario_for: &scenario_for, profile })
}

/// The verdict by the texts that ship with the program.
fn verdict(folder: &Path, options: &Options) -> Verdict {
    let recording = import(folder, options, &shipped()).unwrap();
    evaluate(&recording, None).unwrap().verdict
}

fn plain(name: &str) -> MemoryRecording {
    load(&session(name), &Options::default()).unwrap()
}

fn in_room(name: &str, room: &str) -> MemoryRecording {
    let room = Some(room.parse().unwrap());
    load(&session(name), &Options { room, ..Options::default() }).unwrap()
}

fn records(recording: &dyn Evidence) -> Vec<Record> {
    recording.records().map(Result::unwrap).collect()
}

fn observations(recording: &dyn Evidence) -> Vec<(Moment, Observation)> {
    let saw = |record: Record| match record.entry {
        Entry::Saw { captured_at, what } => Some((captured_at, what)),
        _ => None,
    };
    records(recording).into_iter().filter_map(saw).collect()
}

/// From when until when a step lasted.
fn step(recording: &dyn Evidence, name: &str) -> Window {
    let at = |wanted: Edge| {
        let wanted = Entry::Step { path: name.into(), edge: wanted };
        records(recording).into_iter().find(|record| record.entry == wanted).unwrap().at
    };
    Window { from: at(Edge::Start), until: at(Edge::End) }
}

/// A copy of a session in which `spoil` may change anything.
fn copy(name: &str, spoil: impl Fn(&Path)) -> (TempDir, PathBuf) {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("copy");
    fs::create_dir(&folder).unwrap();
    for file in ["events.jsonl", "speaker.wav", "meta.json"] {
        fs::copy(session(name).join(file), folder.join(file)).unwrap();
    }
    spoil(&folder);
    (home, folder)
}

fn edit_meta(folder: &Path, edit: impl Fn(&mut Value)) {
    let path = folder.join("meta.json");
    let mut meta = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut meta);
    fs::write(&path, meta.to_string()).unwrap();
}

/// Changes the first event that `edit` doesn't pass over; returns its line number.
fn edit_events(folder: &Path, edit: impl Fn(&mut Value) -> bool) -> usize {
    let path = folder.join("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (n, line) in lines.iter_mut().enumerate() {
        let mut event: Value = serde_json::from_str(line).unwrap();
        if edit(&mut event) {
            *line = event.to_string();
            fs::write(&path, lines.join("\n") + "\n").unwrap();
            return n + 1;
        }
    }
    panic!("no event to edit");
}

#[test]
fn every_session_imports_in_order() {
    for name in SESSIONS {
        let recording = plain(name);
        let records = records(&recording);
        assert_eq!(recording.condition(), &Condition::Complete, "{name}");
        assert!(records.iter().enumerate().all(|(k, r)| r.n == k as u64), "{name}");
        assert!(records.is_sorted_by_key(|r| r.at), "{name}");
        let head = recording.head();
        assert_eq!((head.origin, head.seed, head.run_id.len()), (Origin::Imported, 0, 26));
        assert!(head.rig.text.contains("ear = \"tap\"\n"), "{}", head.rig.text);
        let sound = observations(&recording).into_iter().filter_map(|(_, what)| match what {
            Observation::Sound { count, .. } => Some(count),
            _ => None,
        });
        let [segment] = recording.segments() else { panic!("one segment") };
        assert_eq!(segment.format, SampleFormat::Int16);
        assert_eq!(sound.sum::<u64>(), segment.samples.len() as u64, "{name}");
        let edges = |wanted| {
            let is = |r: &&Record| matches!(r.entry, Entry::Step { edge, .. } if edge == wanted);
            records.iter().filter(is).count()
        };
        assert_eq!(edges(Edge::Start), edges(Edge::End), "{name}");
    }
}

#[test]
fn kind_codec_and_options_make_the_head() {
    let check = |name: &str, options: Options, scenario: &str, law: &str| {
        let recording = load(&session(name), &options).unwrap();
        assert_eq!(recording.head().scenario.name, scenario);
        assert!(recording.head().rig.text.contains(law), "{}", recording.head().rig.text);
    };
    let none = Options::default;
    check("mqtt-healthy", none(), "volume-step.toml", "law = \"no_audio_codec\"\n");
    check("mqtt-es8311-healthy", none(), "volume-step.toml", "law = \"esp_codec_dev\"\n");
    check("mqtt-reboot-nosub", none(), "reboot-step.toml", "law = \"no_audio_codec\"\n");
    let own = Options {
        scenario: Some(NamedText::new("mine.toml", "")),
        law: Some(Law::LinearVolume),
        room: None,
    };
    check("mqtt-healthy", own, "mine.toml", "law = \"linear_volume\"\n");
    let with_codec = |codec: Value, law| {
        let edit = |f: &Path| edit_meta(f, |meta| meta["device"]["codec"] = codec.clone());
        let (_home, folder) = copy("ws-healthy", edit);
        load(&folder, &Options { law, ..none() }).map(|r| r.head().rig.text.clone())
    };
    let rig = with_codec(Value::Null, None).unwrap();
    assert!(!rig.contains("law"), "{rig}");
    let unknown = with_codec(json!("sigma"), None).unwrap_err().to_string();
    assert!(unknown.contains("sigma") && unknown.contains("--law"), "{unknown}");
    assert!(with_codec(json!("sigma"), Some(Law::EspCodecDev)).is_ok());
}

#[test]
fn connections_become_links() {
    let links = |name: &str| {
        let says = |(_, what): (Moment, Observation)| match what {
            Observation::Opened { link, service: Service::Http } => Some(format!("{link}+http")),
            Observation::Opened { link, service: Service::Mqtt } => Some(format!("{link}+mqtt")),
            Observation::Closed { link, by } => Some(format!("{link}-{by:?}")),
            _ => None,
        };
        observations(&plain(name)).into_iter().filter_map(says).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(links("mqtt-healthy"), "1+http 1-Bench 2+mqtt");
    assert_eq!(links("ws-healthy"), "1+http 1-Bench 2+http 2-Bench");
    assert_eq!(links("mqtt-reboot-nosub"), "1+http 1-Bench 2+mqtt 2-Device 3+http 3-Bench 4+mqtt");
    // The connection is as old as its accept, not as the request.
    let (at, _) = observations(&plain("mqtt-healthy"))
        .into_iter()
        .find(|(_, what)| matches!(what, Observation::Opened { .. }))
        .unwrap();
    assert_eq!(at, Moment::from_secs_f64(3.350698));
}

#[test]
fn what_was_said_is_there_and_what_the_recorder_thought_is_not() {
    let recording = plain("ws-healthy");
    let mut from_device = Vec::new();
    let mut pressed = 0;
    for (_, what) in observations(&recording) {
        match what {
            Observation::Socket { link: 2, from: Party::Device, bytes } => {
                from_device.extend(bytes.0);
            }
            Observation::Pressed { button } => {
                assert_eq!(button, "boot");
                pressed += 1;
            }
            _ => {}
        }
    }
    assert_eq!(pressed, 1);
    let head = from_device.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    // 249 bytes of hello: text, masked, 16 bit length, mask key 0.
    assert_eq!(from_device[head..head + 9], [0x81, 0xfe, 0, 249, 0, 0, 0, 0, b'{']);
    let faults = copy("mqtt-healthy", |folder| {
        edit_events(folder, |event| {
            let found = event["ch"] == "control";
            event["text"] = if found { json!("@fault amp") } else { event["text"].clone() };
            found
        });
    });
    let seen = observations(&load(&faults.1, &Options::default()).unwrap());
    assert!(!seen.iter().any(|(_, what)| matches!(what, Observation::Pressed { .. })));
}

#[test]
fn a_repeated_phase_gets_a_number() {
    let (_home, folder) = copy("mqtt-healthy", |folder| {
        edit_events(folder, |event| {
            let found = event["phase"] == "tone-2";
            if found {
                event["phase"] = json!("tone-1");
            }
            found
        });
    });
    let recording = load(&folder, &Options::default()).unwrap();
    assert!(step(&recording, "tone-1#2").from > step(&recording, "tone-1").until);
}

#[test]
fn no_secret_survives() {
    for name in SESSIONS {
        let recording = plain(name);
        let mut connects = 0;
        for (_, what) in observations(&recording) {
            let bytes = match what {
                Observation::Uart(bytes)
                | Observation::Socket { bytes, .. }
                | Observation::Datagram { bytes, .. } => bytes.0,
                Observation::Mqtt { packet, .. } => {
                    let read = Packet::read(&mut packet.0[..].into(), 1 << 20).unwrap();
                    if let Packet::Connect(connect) = read {
                        connects += 1;
                        assert_eq!(connect.login.unwrap().password, "xxxxx", "{name}");
                        assert!(connect.client_id.contains("24_6f_28_xx_xx_x1"));
                    }
                    packet.0
                }
                _ => continue,
            };
            let text = String::from_utf8_lossy(&bytes).to_lowercase();
            for secret in ["aa:bb:01", "aa_bb_01", "aabb01", "bench-token", "\"password\":\"bench"]
            {
                assert!(!text.contains(secret), "{name}: {secret} in {text}");
            }
        }
        assert_eq!(connects > 0, name.starts_with("mqtt"), "{name}");
    }
}

#[test]
fn the_same_session_is_always_the_same_recording() {
    let taps = SESSIONS.map(|name| (name, None));
    for (name, room) in taps.into_iter().chain([("ws-healthy", Some("seed=3,snr13=10"))]) {
        let options = Options { room: room.map(|r| r.parse().unwrap()), ..Options::default() };
        let first = load(&session(name), &options).unwrap();
        // Another folder name, and only those members of meta.json that the import may read.
        let (_home, folder) = copy(name, |folder| {
            edit_meta(folder, |meta| {
                let wav = &meta["speaker_wav"];
                *meta = json!({
                    "kind": meta["kind"],
                    "udp": meta["udp"].get("key_hex").map(|key| json!({"key_hex": key})),
                    "speaker_wav": {
                        "starts_at_session_t": wav["starts_at_session_t"],
                        "samples": wav["samples"],
                        "rate": wav["rate"],
                    },
                    "device": {"mac": meta["device"]["mac"], "codec": meta["device"]["codec"]},
                });
            });
        });
        assert!(!folder.join("expect.json").exists());
        let second = load(&folder, &options).unwrap();
        assert_eq!(first.head(), second.head());
        assert_eq!(records(&first), records(&second));
        assert_eq!(first.segments(), second.segments());
        assert_eq!(verdict(&folder, &options), verdict(&session(name), &options), "{name}");
    }
    let ids = [plain("mqtt-healthy"), plain("ws-healthy"), in_room("ws-healthy", "seed=3,snr13=1")]
        .map(|r| r.head().run_id.clone());
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
}

#[test]
fn a_saved_import_opens_whole() {
    let home = TempDir::new().unwrap();
    for (name, room) in [("mqtt-reboot-nosub", None), ("ws-healthy", Some("seed=9,snr13=33"))] {
        let options = Options { room: room.map(|r| r.parse().unwrap()), ..Options::default() };
        let memory = load(&session(name), &options).unwrap();
        memory.save(&home.path().join(name)).unwrap();
        let disk = Recording::open(&home.path().join(name)).unwrap();
        assert_eq!(disk.condition(), &Condition::Complete);
        assert_eq!(disk.head(), memory.head());
        let mut saved = records(&disk);
        let Some(Entry::End { files, .. }) = saved.last_mut().map(|last| &mut last.entry) else {
            panic!("no end record")
        };
        let sealed: Vec<String> = std::mem::take(files).into_keys().collect();
        assert_eq!(sealed, ["head.json", "mic-001.wav", "records.jsonl"]);
        assert_eq!(saved, records(&memory));
        let window = Window::from_secs(4.2, 7.7);
        let clip = disk.samples(window).unwrap();
        assert!(clip.whole);
        assert_eq!(clip, memory.samples(window).unwrap());
    }
}
