//! The software board: it behaves like the real firmware, each fault does what it says and no
//! more, and nothing that comes to it makes it panic.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used, dead_code)]

#[path = "board/bench.rs"]
mod bench;
#[path = "board/session.rs"]
mod session;

use base64::Engine as _;
use bench::{Bench, KEY, NONCE, config};
use earwitness::audio::law::Law;
use earwitness::audio::opus;
use earwitness::board::{Board, Fault, Input, Output, Setup, Socket};
use earwitness::time::Moment;
use proptest::prelude::*;
use rumqttc::mqttbytes::v4::Packet;
use session::{Session, crypt, hex, level, tone_packets};
use std::fs;
use std::time::Duration;

fn with(fault: Fault) -> Setup {
    Setup { fault: Some(fault), ..Setup::default() }
}

fn step(setup: Setup, from: i32, to: i32) -> f64 {
    let mut session = Session::open(setup);
    let (quiet, loud) = (session.level(from), session.level(to));
    loud - quiet
}

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 0.01, "{value}, not {expected}");
}

#[test]
fn the_volume_law_is_the_codecs() {
    let setup = |law| Setup { law, ..Setup::default() };
    near(step(setup(Law::NoAudioCodec), 40, 60), 7.044);
    near(step(setup(Law::EspCodecDev), 40, 60), 10.0);
    near(step(setup(Law::LinearVolume), 40, 60), 3.522);
}

/// The log of a real session.
fn real_log(session: &str) -> Vec<String> {
    let home = env!("CARGO_MANIFEST_DIR");
    let path = format!("{home}/tests/sessions/{session}/events.jsonl");
    let mut log = String::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        if event["ch"] == "uart" {
            let base64 = base64::engine::general_purpose::STANDARD;
            let bytes = base64.decode(event["b64"].as_str().unwrap()).unwrap();
            log += &String::from_utf8(bytes).unwrap();
        }
    }
    log.lines().map(str::to_owned).collect()
}

/// Two logs are the same but for times, endpoints, session ids and digits of a hash.
fn expect_same(ours: &Bench, real: &[String]) {
    let plain = |line: &str| {
        let text = line.split_once(") ").map_or(line, |(_, text)| text);
        let text = text.split("127.0.0.1").next().unwrap();
        let text = text.split("SHA256").next().unwrap();
        text.replace("80e73e75", "s-1").replace("(POWERON),", "")
    };
    let ours: Vec<String> = ours.uart.iter().map(|(_, line)| plain(line)).collect();
    let real: Vec<String> = real.iter().map(|line| plain(line)).collect();
    let place = ours.iter().zip(&real).position(|(a, b)| a != b);
    let place = place.unwrap_or(ours.len().min(real.len()));
    let around = place.saturating_sub(3)..;
    let (us, them) = (ours.get(around.clone()), real.get(around));
    assert!(ours == real, "ours {us:#?}, real {them:#?}");
}

#[test]
fn a_volume_step_has_the_lines_of_a_real_one() {
    let mut session = Session::open(Setup::default());
    session.level(40);
    session.level(60);
    session.bench.publish(r#"{"type":"goodbye","session_id":"s-1"}"#);
    session.bench.run(1.0);
    // The real session turned the volume to 40, 60, 40, 60 and 70.
    let mut real = real_log("mqtt-healthy");
    let find = |text: &str| real.iter().position(|line| line.contains(text)).unwrap();
    let (turned, end) = (find("volume to 60") + 6, find("Received goodbye"));
    real.drain(turned..end);
    expect_same(&session.bench, &real);
}

#[test]
fn a_reboot_has_the_lines_of_a_real_one() {
    let mut bench = Bench::online(Setup::default());
    bench.call("self.reboot", "{}");
    bench.until("State: activating -> idle", 15.0);
    bench.run(1.0);
    expect_same(&bench, &real_log("mqtt-reboot-nosub"));
}

#[test]
fn the_config_post_is_the_real_one() {
    let home = env!("CARGO_MANIFEST_DIR");
    let events = fs::read_to_string(format!("{home}/tests/sessions/mqtt-healthy/events.jsonl"));
    let events = events.unwrap();
    let post = events.lines().find(|line| line.contains(r#""ch":"http","dir":"rx""#)).unwrap();
    let post: serde_json::Value = serde_json::from_str(post).unwrap();
    let base64 = base64::engine::general_purpose::STANDARD;
    let real = String::from_utf8(base64.decode(post["b64"].as_str().unwrap()).unwrap()).unwrap();
    let bench = Bench::online(Setup { config_port: 45137, ..Setup::default() });
    assert_eq!(bench.posts, [real]);
}

#[test]
fn the_device_never_subscribes_and_speaks_first_over_udp() {
    let mut session = Session::open(Setup::default());
    session.bench.run(2.0);
    let subscribed =
        session.bench.packets.iter().any(|(_, packet)| matches!(packet, Packet::Subscribe(_)));
    assert!(!subscribed);
    assert!(matches!(session.bench.packets[0].1, Packet::Connect(_)));
    let (_, first) = &session.bench.datagrams[0];
    assert_eq!(first[..4], [1, 0, 0, 1]);
    assert_eq!(first[4..8], hex(NONCE)[4..8]);
    assert_eq!(first[12..16], [0, 0, 0, 1]);
    assert!(opus::decode([&crypt(hex(KEY), first)[..]]).is_ok());
    let listen = session.bench.published.last().unwrap();
    let expected = r#"{"session_id":"s-1","type":"listen","state":"start","mode":"auto"}"#;
    assert_eq!(listen.1, expected);
}

#[test]
fn audio_is_played_only_while_speaking_and_40_packets_wait() {
    let mut session = Session::open(Setup::default());
    let packets = tone_packets();
    session.bench.sound.clear();
    packets.iter().for_each(|packet| session.send(packet));
    session.bench.run(3.0);
    assert!(session.bench.sound.is_empty());
    session.bench.publish(r#"{"type":"tts","state":"start","session_id":"s-1"}"#);
    session.bench.run(0.2);
    for _ in 0..3 {
        packets.iter().for_each(|packet| session.send(packet));
    }
    session.bench.run(5.0);
    assert_eq!(session.bench.sound.len(), 40);
}

#[test]
fn the_amplifier_goes_off_15_seconds_after_the_last_sample() {
    let mut bench = Bench::online(Setup::default());
    bench.run(20.0);
    let off = bench.uart.iter().find(|(_, line)| line.contains("output enable to false"));
    let (last, samples) = bench.sound.last().unwrap();
    let ended = *last + Duration::from_secs(samples.len() as u64) / 24_000;
    let after = off.unwrap().0.seconds_since(ended);
    assert!((15.0..16.1).contains(&after), "{after}");
}

#[test]
fn the_volume_survives_a_restart_but_0_becomes_10() {
    for (volume, after) in [(55, 55), (0, 10)] {
        let mut bench = Bench::online(Setup::default());
        bench.set_volume(volume);
        assert_eq!(bench.call("self.reboot", "{}"), None);
        bench.until("State: activating -> idle", 15.0);
        bench.run(1.0);
        assert_eq!(bench.volume(), after);
        assert_eq!(bench.lines("is too small, setting to default (10)"), (volume == 0) as usize);
        assert_eq!(bench.lines("rst:0xc"), 1);
        assert_eq!(bench.posts.len(), 2);
        let gone = bench.packets.iter().filter(|(_, p)| *p == Packet::Disconnect).count();
        assert_eq!(gone, 1);
    }
}

#[test]
fn a_bad_config_answer_crashes_the_board_again_and_again() {
    let long = "x".repeat(16);
    let bad = [
        config("mqtt://127.0.0.1:1883"),
        config("127.0.0.1:1883").replace("2.4.2", "v2.4.2"),
        config("127.0.0.1:1883").replace("username", &long),
        config("127.0.0.1:1883").replace("GID_bench", &"x".repeat(4001)),
    ];
    for answer in bad {
        let mut bench = Bench::new(Setup::default());
        bench.config = answer;
        bench.run(30.0);
        assert!(bench.lines("abort() was called") >= 2, "{:#?}", bench.uart);
        assert_eq!(bench.lines("-> idle"), 0);
    }
}

#[test]
fn a_config_answer_that_is_none_is_asked_for_again() {
    let mut bench = Bench::new(Setup::default());
    bench.config = "nonsense".into();
    bench.until("retry in 10 seconds (1/10)", 20.0);
    bench.config = config("127.0.0.1:1883");
    bench.until("State: activating -> idle", 12.0);
}

#[test]
fn a_lost_connection_is_opened_again_after_10_seconds() {
    let mut bench = Bench::online(Setup::default());
    bench.input(Input::Closed(Socket::Mqtt));
    bench.run(9.0);
    assert_eq!(bench.opened.len(), 2);
    bench.run(2.0);
    assert_eq!(bench.opened.len(), 3);
    assert_eq!(bench.volume(), 70);
}

#[test]
fn dead_amp_is_silent_and_says_nothing_of_it() {
    let mut session = Session::open(with(Fault::DeadAmp));
    assert_eq!(session.bench.set_volume(60).as_deref(), Some("true"));
    assert!(session.play().iter().all(|sample| *sample == 0.0));
    assert_eq!(session.bench.volume(), 60);
    assert_eq!(session.bench.lines("Set output volume to 60"), 1);
}

#[test]
fn stuck_volume_and_clamp_are_right_in_all_but_the_sound() {
    near(step(with(Fault::StuckVolume), 40, 60), 0.0);
    near(step(with(Fault::Clamp), 40, 60), 7.044);
    near(step(with(Fault::Clamp), 60, 80), 2.678);
    for fault in [Fault::StuckVolume, Fault::Clamp] {
        let mut bench = Bench::online(with(fault));
        assert_eq!(bench.set_volume(80).as_deref(), Some("true"));
        assert_eq!(bench.volume(), 80);
        assert_eq!(bench.lines("Set output volume to 80"), 1);
    }
}

#[test]
fn clamp_sw_tells_of_its_limit() {
    near(step(with(Fault::ClampSw), 60, 80), 2.678);
    let mut bench = Bench::online(with(Fault::ClampSw));
    assert_eq!(bench.set_volume(80).as_deref(), Some("true"));
    assert_eq!(bench.volume(), 70);
    assert_eq!(bench.lines("Set output volume to 70"), 1);
}

#[test]
fn queue_lost_says_true_and_does_nothing() {
    near(step(with(Fault::QueueLost), 40, 60), 0.0);
    let mut bench = Bench::online(with(Fault::QueueLost));
    assert_eq!(bench.set_volume(40).as_deref(), Some("true"));
    assert_eq!(bench.volume(), 70);
    assert_eq!(bench.lines("Set output volume"), 0);
}

#[test]
fn drop_and_late_response_concern_set_volume_only() {
    let mut bench = Bench::online(with(Fault::DropResponse));
    assert_eq!(bench.set_volume(40), None);
    bench.run(20.0);
    assert_eq!(bench.volume(), 40);
    let mut bench = Bench::online(with(Fault::LateResponse { ms: 7000 }));
    let asked = bench.now;
    assert_eq!(bench.set_volume(40), None);
    assert_eq!(bench.volume(), 40);
    bench.run(8.0);
    let (at, reply) = bench.published.last().unwrap();
    assert!(reply.contains(r#""text":"true""#));
    assert!((7.0..7.1).contains(&at.seconds_since(asked)));
}

#[test]
fn no_reboot_accepts_and_goes_on() {
    let mut bench = Bench::online(with(Fault::NoReboot));
    assert_eq!(bench.call("self.reboot", "{}"), None);
    bench.run(20.0);
    assert_eq!(bench.lines("User requested reboot"), 1);
    assert_eq!(bench.lines("rst:"), 1);
    assert_eq!(bench.volume(), 70);
}

#[test]
fn slow_boot_is_a_minute_late_after_a_restart() {
    let mut bench = Bench::online(with(Fault::SlowBoot));
    assert!(bench.now.as_secs_f64() < 12.0);
    bench.call("self.reboot", "{}");
    bench.until("rst:0xc", 4.0);
    let banner = bench.now;
    bench.until("State: activating -> idle", 80.0);
    assert!((64.0..71.0).contains(&bench.now.seconds_since(banner)));
}

#[test]
fn boot_loop_panics_some_times_in_3_seconds() {
    let mut bench = Bench::online(with(Fault::BootLoop));
    bench.call("self.reboot", "{}");
    bench.until("rst:0xc", 4.0);
    let before = bench.lines("Guru Meditation");
    bench.run(3.0);
    assert!(bench.lines("Guru Meditation") - before >= 2);
    bench.run(60.0);
    assert_eq!(bench.posts.len(), 1);
    bench.input(Input::Power);
    bench.until("State: activating -> idle", 15.0);
}

#[test]
fn wrong_pitch_is_two_thirds_of_it() {
    let mut session = Session::open(with(Fault::WrongPitch));
    session.bench.set_volume(100);
    let wrong = level(&session.play(), 1000.0 * 16.0 / 24.0);
    near(wrong, Session::open(Setup::default()).level(100));
}

#[test]
fn a_press_closes_the_channel_again_and_in_starting_strands_the_board() {
    let mut session = Session::open(Setup::default());
    session.bench.press();
    session.bench.until("State: listening -> idle", 1.0);
    session.bench.run(0.1);
    assert_eq!(session.bench.lines("send_goodbye: 1"), 1);
    let mut bench = Bench::new(Setup::default());
    bench.until("State: unknown -> starting", 2.0);
    bench.press();
    bench.run(60.0);
    assert_eq!(bench.lines("State: starting -> wifi_configuring"), 1);
    assert!(bench.posts.is_empty());
}

#[test]
fn the_same_seed_gives_the_same_output_and_another_one_not() {
    let run = |seed| {
        let mut session = Session::open(Setup { seed, ..Setup::default() });
        session.level(40);
        session.bench.call("self.reboot", "{}");
        session.bench.run(15.0);
        session.bench.outputs
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// Anything that can come to a board.
#[derive(Clone, Debug)]
enum Anything {
    Input(u8, Vec<u8>),
    Message(String),
    Mcp(String),
    Datagram(u32, Vec<u8>),
    Config(String),
}

fn anything() -> impl Strategy<Value = Anything> {
    let json = prop::sample::select(vec![
        "\"type\"",
        "\"mcp\"",
        "\"payload\"",
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"hello\"",
        "null",
        "\"tts\"",
        "\"state\"",
        "\"start\"",
        "\"stop\"",
        "1e99",
        "-7",
        "\"id\"",
        "\"udp\"",
        "\"system\"",
        "\"command\"",
        "\"reboot\"",
        "\"mqtt\"",
        "\"endpoint\"",
        "\"é:9\"",
        "\"\"",
    ]);
    let text = prop::collection::vec(json, 0..12).prop_map(|parts| parts.concat());
    prop_oneof![
        (0..10u8, prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(k, b)| Anything::Input(k, b)),
        text.clone().prop_map(Anything::Message),
        text.clone().prop_map(Anything::Mcp),
        (any::<u32>(), prop::collection::vec(any::<u8>(), 0..80))
            .prop_map(|(n, b)| Anything::Datagram(n, b)),
        text.prop_map(Anything::Config),
    ]
}

fn strike(session: &mut Session, thing: &Anything) {
    let bench = &mut session.bench;
    match thing {
        Anything::Message(text) => bench.publish(text),
        Anything::Mcp(text) => bench.publish(&format!(r#"{{"type":"mcp","payload":{text}}}"#)),
        Anything::Datagram(sequence, packet) => {
            session.sequence = session.sequence.wrapping_add(sequence % 3);
            session.send(packet);
        }
        Anything::Config(text) => bench.config = format!(r#"{{"mqtt":{text}}}"#),
        Anything::Input(kind, bytes) => bench.input(match kind {
            0 => Input::Power,
            1 => Input::Reset,
            2 => Input::Button { down: true },
            3 => Input::Button { down: false },
            4 => Input::Connected(Socket::Config),
            5 => Input::Refused(Socket::Mqtt),
            6 => Input::Received(Socket::Config, bytes),
            7 => Input::Closed(Socket::Mqtt),
            8 => Input::Received(Socket::Mqtt, bytes),
            _ => Input::Datagram(bytes),
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_comes_the_board_does_not_panic(
        things in prop::collection::vec((anything(), 0..400u64), 1..40),
        fault in prop::sample::select(Fault::ALL.map(|(_, fault, _)| fault).to_vec()),
        speaking in any::<bool>(),
    ) {
        let mut session = Session::open(with(fault));
        if speaking {
            session.bench.publish(r#"{"type":"tts","state":"start"}"#);
        }
        for (thing, ms) in &things {
            strike(&mut session, thing);
            session.bench.run(*ms as f64 / 1000.0);
        }
    }

    #[test]
    fn a_board_alone_does_not_panic(kinds in prop::collection::vec((0..10u8, 0..9000u64), 1..40)) {
        let mut board = Board::new(Setup::default());
        board.input(Moment::START, Input::Power);
        let mut now = Moment::START;
        for (kind, ms) in kinds {
            now = now + Duration::from_millis(ms);
            let opened = board.advance(now).iter().any(|(_, o)| matches!(o, Output::Open(..)));
            let socket = if opened { Socket::Config } else { Socket::Mqtt };
            board.input(now, match kind {
                0..4 => Input::Connected(socket),
                4 => Input::Refused(socket),
                5 => Input::Closed(socket),
                6 => Input::Button { down: ms % 2 == 0 },
                _ => Input::Received(socket, &[0x20, 2, 0, 0]),
            });
        }
    }
}
