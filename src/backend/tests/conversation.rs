//! Hello, sound and requests (facts/xiaozhi.md 4.2 to 4.4, 5.1, 7.1).

use super::*;
use std::time::Duration;

fn packets(count: usize) -> Arc<[Vec<u8>]> {
    (0..count).map(|k| vec![k as u8; 20]).collect()
}

#[test]
fn a_hello_is_answered_with_a_key_and_the_channel_waits_for_the_devices_voice() {
    let mut bench = Bench::new();
    bench.connect(1, "board");
    bench.take_sent();
    bench.publish(1, HELLO);
    let [What::Message { body, .. }] = &bench.take_sent()[..] else { panic!("no hello") };
    let text = |path: &str| body.pointer(path).and_then(Value::as_str).unwrap().to_owned();
    assert_eq!((text("/type"), text("/transport")), ("hello".into(), "udp".into()));
    assert_eq!((text("/udp/server"), &body["udp"]["port"]), ("192.168.50.1".into(), &8884.into()));
    assert_eq!(text("/session_id").len(), 8);
    for secret in ["/udp/key", "/udp/nonce"] {
        let hex = text(secret);
        assert!(hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_hexdigit()), "{hex}");
    }
    let nonce = text("/udp/nonce");
    assert!(nonce.starts_with("01000000") && nonce.ends_with("0000000000000000"), "{nonce}");
    let audio = json!({
        "format": "opus", "sample_rate": 24000, "channels": 1, "frame_duration": 60
    });
    assert_eq!(body["audio_params"], audio);
    // The device must have spoken, for else nobody knows its address.
    assert!(!bench.backend.has_channel());
    assert!(!bench.backend.speak(bench.now, packets(1)));
    bench.speak_up();
    assert!(bench.backend.has_channel());
    // Each hello has its own key and session, and the address must be learnt again.
    bench.publish(1, HELLO);
    let [What::Message { body: again, .. }] = &bench.take_sent()[..] else { panic!("none") };
    for part in ["/udp/key", "/udp/nonce", "/session_id"] {
        assert_ne!(again.pointer(part), body.pointer(part));
    }
    assert!(!bench.backend.has_channel());
}

#[test]
fn a_hello_for_another_transport_is_not_answered() {
    for hello in [r#"{"type":"hello","transport":"websocket"}"#, r#"{"type":"hello"}"#] {
        let mut bench = Bench::new();
        bench.connect(1, "board");
        bench.take_sent();
        bench.publish(1, hello);
        assert_eq!(bench.said(), "");
        assert_eq!(bench.backend.take_refusals().len(), 1);
    }
}

#[test]
fn the_channel_ends_with_goodbye_and_with_the_connection() {
    let mut bench = Bench::talking();
    bench.publish(1, r#"{"session_id":"s","type":"goodbye"}"#);
    assert!(bench.backend.is_online() && !bench.backend.has_channel());
    let mut bench = Bench::talking();
    assert!(bench.backend.speak(bench.now, packets(9)));
    bench.see(Observation::Closed { link: 1, by: Party::Device });
    assert!(!bench.backend.is_online() && !bench.backend.has_channel());
    assert!(!bench.backend.is_speaking());
    assert_eq!(bench.backend.deadline(), Moment::NEVER);
    // A late datagram opens nothing.
    bench.speak_up();
    assert!(!bench.backend.has_channel());
}

#[test]
fn the_bench_says_goodbye_with_the_channels_own_id() {
    let mut bench = Bench::new();
    assert!(!bench.backend.goodbye());
    bench.connect(1, "board");
    bench.publish(1, HELLO);
    let id = |what: &What| match what {
        What::Message { body, .. } => Some(body["session_id"].clone()),
        _ => None,
    };
    let said = |bench: &mut Bench| bench.take_sent().iter().filter_map(id).collect::<Vec<_>>();
    let hello = said(&mut bench);
    assert_eq!(hello.len(), 1);
    assert!(bench.backend.goodbye() && !bench.backend.goodbye());
    bench.perform();
    assert_eq!(said(&mut bench), hello);
    assert!(bench.backend.is_online() && !bench.backend.has_channel());
}

#[test]
fn sound_is_paced_between_start_and_stop() {
    let mut bench = Bench::talking();
    let before = bench.now;
    let sound: Arc<[Vec<u8>]> = packets(20);
    assert!(bench.backend.speak(before, Arc::clone(&sound)));
    assert!(!bench.backend.speak(before, Arc::clone(&sound)), "one sound at a time");
    bench.perform();
    assert_eq!(bench.said(), "tts start");
    bench.advance_to(before + Duration::from_millis(200));
    assert_eq!(bench.said(), "audio 1; audio 2; audio 3; audio 4; audio 5");
    bench.advance_to(before + Duration::from_secs(3));
    assert!(!bench.backend.is_speaking());
    let sent = bench.take_sent();
    assert_eq!(brief(sent.last().unwrap()), "tts stop");
    assert_eq!(sent.len(), 16);
    // Never more than ten packets ahead of what can have been played, and in order.
    let first = bench.datagrams[0].0;
    assert!(first.seconds_since(before) >= 0.15);
    for (k, (at, datagram)) in bench.datagrams.iter().enumerate() {
        let played = at.seconds_since(first) / 0.06;
        assert!(k as f64 + 1.0 - played <= 10.0, "packet {k}");
        assert_eq!(datagram[12..16], (k as u32 + 1).to_be_bytes());
        assert_eq!(datagram[8..12], (60 * k as u32).to_be_bytes());
    }
    // The same packets, and sequence numbers that go on.
    let again = bench.now;
    bench.datagrams.clear();
    assert!(bench.backend.speak(again, Arc::clone(&sound)));
    bench.advance_to(again + Duration::from_secs(3));
    let opus = |what: &What| match what {
        What::Audio { opus, sequence, .. } => Some((opus.clone(), *sequence)),
        _ => None,
    };
    let heard: Vec<_> = bench.take_sent().iter().filter_map(opus).collect();
    let numbered = (21..).map(Some);
    assert_eq!(heard, sound.iter().cloned().zip(numbered).collect::<Vec<_>>());
}

#[test]
fn an_abort_of_the_device_stops_the_sound() {
    let mut bench = Bench::talking();
    let before = bench.now;
    assert!(bench.backend.speak(before, packets(20)));
    bench.advance_to(before + Duration::from_millis(300));
    bench.take_sent();
    bench.publish(1, r#"{"session_id":"s","type":"abort"}"#);
    bench.advance_to(before + Duration::from_secs(3));
    assert_eq!((bench.said().as_str(), bench.backend.is_speaking()), ("tts stop", false));
}

#[test]
fn packets_that_no_datagram_holds_are_not_played() {
    let mut bench = Bench::talking();
    for wrong in [vec![], vec![0; 1485]] {
        assert!(!bench.backend.speak(bench.now, vec![vec![1], wrong].into()));
    }
    assert!(bench.backend.take_commands().is_empty());
    assert!(bench.backend.speak(bench.now, vec![vec![0; 1484]].into()));
}

#[test]
fn requests_need_a_control_channel_and_no_two_have_the_same_id() {
    let mut bench = Bench::new();
    assert_eq!(bench.backend.request("tools/list", json!({})), None);
    assert_eq!(bench.backend.call("self.reboot", Value::Null), None);
    bench.connect(1, "board");
    let first = bench.backend.call("self.reboot", Value::Null).unwrap();
    let second = bench.backend.request("tools/list", Value::Null).unwrap();
    assert!(first != second && (1..=i64::from(i32::MAX)).contains(&second));
    // Also on the next connection.
    bench.perform();
    bench.see(Observation::Closed { link: 1, by: Party::Device });
    bench.connect(2, "board");
    let third = bench.backend.call("a", json!({ "volume": 60 })).unwrap();
    assert!(![first, second].contains(&third));
    bench.perform();
    let expected = "call self.reboot {}; tools/list null; ConnAck(0); call a {\"volume\":60}";
    assert_eq!(bench.said(), format!("ConnAck(0); {expected}"));
    // Another run has others.
    let other = Backend::new(Settings { seed: 8, ..settings() });
    assert_ne!(other.next_id, first);
}
