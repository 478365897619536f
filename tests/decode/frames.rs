//! Closed form: messages built by hand from RFC 6455 and from the layouts of the firmware
//! (binary protocol versions 1 to 3, the UDP audio header), right and wrong.

use super::{datagram, decode, publish, records, socket, whats};
use earwitness::decode::What;
use earwitness::journal::{Observation, Party};

/// A frame; a mask key is applied to the payload.
fn frame(first: u8, mask: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
    let bit = if mask.is_some() { 0x80 } else { 0 };
    let mut frame = match payload.len() {
        0..126 => vec![first, bit | payload.len() as u8],
        n @ 126..65536 => [&[first, bit | 126], &(n as u16).to_be_bytes()[..]].concat(),
        n => [&[first, bit | 127], &(n as u64).to_be_bytes()[..]].concat(),
    };
    frame.extend(mask.iter().flatten());
    let key = mask.unwrap_or_default();
    frame.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

fn upgraded(version: &str) -> Vec<Observation> {
    let request = format!(
        "GET /xiaozhi/v1/ HTTP/1.1\r\nDevice-Id: 24:6f:28:aa:bb:cc\r\n{version}\
         Upgrade: websocket\r\n\r\n"
    );
    let response = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
    vec![
        Observation::Opened { link: 1, service: earwitness::journal::Service::Http },
        socket(1, Party::Device, request.as_bytes()),
        socket(1, Party::Bench, response),
    ]
}

/// A fact in short: who, what.
fn brief(what: &What) -> String {
    match what {
        What::Audio { from: Party::Bench, opus, sequence: None } => format!("audio {opus:?}"),
        What::Audio { from, opus, sequence } => {
            format!("audio {} {opus:?} {sequence:?}", from.name())
        }
        What::Message { body, .. } => format!("message {body}"),
        What::Malformed { raw, .. } => format!("malformed {raw}"),
        What::Ignored { why } => format!("ignored: {why}"),
        What::Connected { transport, client } => format!("connected {transport:?} {client}"),
        What::Disconnected { orderly, .. } => format!("disconnected orderly={orderly}"),
        other => format!("{other:?}"),
    }
}

/// What follows the handshake.
fn after(mut session: Vec<Observation>, then: &[Observation]) -> String {
    let before = whats(session.clone()).len();
    session.extend_from_slice(then);
    whats(session)[before..].iter().map(brief).collect::<Vec<_>>().join("; ")
}

const V1: &str = "Protocol-Version: 1\r\n";
const V2: &str = "Protocol-Version: 2\r\n";
const V3: &str = "Protocol-Version: 3\r\n";

fn v2(kind: u16, size: u32, payload: &[u8]) -> Vec<u8> {
    let head = [2u16.to_be_bytes(), kind.to_be_bytes()].concat();
    [&head, &[0u8; 8][..], &size.to_be_bytes(), payload].concat()
}

fn v3(kind: u8, size: u16, payload: &[u8]) -> Vec<u8> {
    [&[kind, 0], &size.to_be_bytes()[..], payload].concat()
}

#[test]
fn binary_messages_of_each_version() {
    let check = |version: &str, message: &[u8], expect: &str| {
        let binary = socket(1, Party::Bench, &frame(0x82, None, message));
        assert_eq!(after(upgraded(version), &[binary]), expect, "{version}{message:?}");
    };
    let wrong = "ignored: a binary message whose size field is wrong";
    let short = "ignored: a binary message shorter than its header";
    let unknown = "ignored: a binary message of unknown type";
    for version in ["", V1, "Protocol-Version: x\r\n", "Protocol-Version: 4\r\n"] {
        check(version, &[7, 8], "audio [7, 8]");
        check(version, &v3(0, 2, &[7, 8]), "audio [0, 0, 0, 2, 7, 8]");
        check(version, &[], "audio []");
    }
    check(V2, &v2(0, 2, &[7, 8]), "audio [7, 8]");
    check(V2, &v2(0, 0, &[]), "audio []");
    check(V2, &v2(0, 3, &[7, 8]), wrong);
    check(V2, &v2(0, 1, &[7, 8]), wrong);
    check(V2, &v2(0, u32::MAX, &[7, 8]), wrong);
    check(V2, &v2(1, 8, br#"{"a": 1}"#), r#"message {"a":1}"#);
    check(V2, &v2(1, 3, b"{a}"), "malformed {a}");
    check(V2, &v2(1, 4, b"{a}"), wrong);
    check(V2, &v2(2, 2, &[7, 8]), unknown);
    check(V2, &v2(256, 2, &[7, 8]), unknown);
    check(V2, &v2(0, 0, &[])[..15], short);
    check(V3, &v3(0, 2, &[7, 8]), "audio [7, 8]");
    check(V3, &v3(0, 3, &[7, 8]), wrong);
    check(V3, &v3(0, 1, &[7, 8]), wrong);
    check(V3, &v3(1, 2, &[7, 8]), unknown);
    check(V3, &[0, 0, 0], short);
    check(V3, &[], short);
}

#[test]
fn frames_become_messages() {
    let check = |frames: &[Vec<u8>], expect: &str| {
        // At once, frame by frame, and byte by byte.
        let whole = frames.concat();
        let each = |chunks: Vec<&[u8]>| {
            let sent: Vec<_> = chunks.into_iter().map(|c| socket(1, Party::Device, c)).collect();
            after(upgraded(V1), &sent)
        };
        assert_eq!(each(vec![&whole]), expect);
        assert_eq!(each(frames.iter().map(Vec::as_slice).collect()), expect);
        assert_eq!(each(whole.chunks(1).collect()), expect);
    };
    let key = Some([0x12, 0x34, 0x56, 0x78]);
    let text = |first: u8, payload: &str| frame(first, key, payload.as_bytes());
    check(&[text(0x81, r#"{"a":1}"#)], r#"message {"a":1}"#);
    check(&[frame(0x81, None, br#"{"a":1}"#)], r#"message {"a":1}"#);
    check(&[text(0x81, "[1]"), text(0x81, "[2]")], "message [1]; message [2]");
    check(&[text(0x01, "[1,"), text(0x00, "2,"), text(0x80, "3]")], "message [1,2,3]");
    let (ping, pong, close) =
        (frame(0x89, key, b"ping"), frame(0x8a, key, b""), frame(0x88, key, &[3, 232]));
    check(&[ping.clone(), pong.clone(), close.clone()], "");
    check(
        &[text(0x01, "[1,"), ping, text(0x00, "2"), pong, close, text(0x80, "]")],
        "message [1,2]",
    );
    let long = format!("\"{}\"", "x".repeat(300));
    check(&[text(0x81, &long)], &format!("message {long}"));
    let huge = format!("\"{}\"", "x".repeat(70_000));
    check(&[text(0x81, &huge)], &format!("message {huge}"));
    check(&[frame(0x82, key, &[7; 3])], "audio device [] None");
    let ignored = |why: &str| format!("ignored: {why} (device to bench)");
    check(&[text(0x80, "x")], &ignored("a continuation of no message"));
    check(&[text(0x83, "x"), text(0x81, "[1]")], &ignored("an unknown WebSocket opcode"));
    check(&[text(0x01, "[1,"), text(0x81, "[2]")], &ignored("a message inside an unfinished one"));
    check(&[vec![0x82, 0x7f, 0, 0, 0, 0, 0x10, 0, 0, 0]], &ignored("too long a frame"));
    check(
        &[vec![0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]],
        &ignored("too long a frame"),
    );
}

#[test]
fn the_end_of_a_connection_tells_what_was_cut_off() {
    let check = |bytes: &[u8], expect: &str| {
        let then =
            [socket(1, Party::Bench, bytes), Observation::Closed { link: 1, by: Party::Bench }];
        assert_eq!(after(upgraded(V1), &then), expect);
    };
    let ended = "(bench to device); disconnected orderly=false";
    check(&[], "disconnected orderly=false");
    check(&[0x81], &format!("ignored: the connection ended inside a frame {ended}"));
    check(&[0x81, 3, b'['], &format!("ignored: the connection ended inside a frame {ended}"));
    check(&[0x01, 1, b'['], &format!("ignored: the connection ended inside a message {ended}"));
}

/// Limits count bytes of a message, never bytes of a buffer, so they are the same however it comes.
#[test]
fn limits_do_not_depend_on_the_chunks() {
    const MIB: usize = 1 << 20;
    let check = |bench: &[u8], expect: &[&str]| {
        let tell = |size: usize| {
            let chunks = bench.chunks(size).map(|chunk| socket(1, Party::Bench, chunk));
            let closed = Observation::Closed { link: 1, by: Party::Bench };
            let facts = decode(&records(chunks.chain([closed])));
            facts.iter().map(|fact| brief(&fact.what).chars().take(40).collect()).collect()
        };
        let told: Vec<String> = tell(usize::MAX);
        assert_eq!(told.len(), expect.len(), "{told:?}");
        assert!(told.iter().zip(expect).all(|(told, expect)| told.contains(expect)), "{told:?}");
        assert_eq!(tell(1000), told);
    };
    let head = |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let answer = |length: usize| [head(length).into_bytes(), vec![b'x'; length]].concat();
    check(&answer(4 * MIB), &["Http"]);
    check(&answer(4 * MIB + 1), &["too long a body"]);
    let open = |length: usize| [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &vec![b'x'; length]].concat();
    check(&open(4 * MIB), &["Http"]);
    check(&open(4 * MIB + 1), &["too long a body"]);
    let headed = |length: usize| {
        let start = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ";
        let fill = "x".repeat(length - start.len() - 4);
        format!("{start}{fill}\r\n\r\n").into_bytes()
    };
    check(&headed(16 * 1024), &["Http"]);
    check(&headed(16 * 1024 + 1), &["too long a head"]);
    let upgrade = b"HTTP/1.1 101 Switching Protocols\r\n\r\n";
    let framed = |n: usize| [&upgrade[..], &frame(0x82, None, &vec![7; n])].concat();
    check(&framed(4 * MIB), &["Http", "audio"]);
    check(&framed(4 * MIB + 1), &["Http", "too long a frame"]);
    let halves = |n: usize| {
        let half = vec![b' '; 2 * MIB];
        let rest = frame(0x80, None, &vec![b' '; n - 2 * MIB]);
        [&upgrade[..], &frame(0x02, None, &half), &rest].concat()
    };
    check(&halves(4 * MIB), &["Http", "audio"]);
    check(&halves(4 * MIB + 1), &["Http", "too long a message"]);
}

#[test]
fn datagrams() {
    const KEY: &str = "000102030405060708090a0b0c0d0e0f";
    let hello = |key: &str| {
        let text = format!(r#"{{"type":"hello","transport":"udp","udp":{{"key":"{key}"}}}}"#);
        publish(1, Party::Bench, &text)
    };
    let check = |before: Vec<Observation>, bytes: &[u8], expect: &str| {
        assert_eq!(after(before, &[datagram(Party::Bench, bytes)]), expect, "{bytes:02x?}");
    };
    // What `openssl enc -aes-128-ecb` makes of this header under that key; XOR it is silence.
    let header = [1, 0, 0, 4, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 5];
    let whole = [&header[..], &[0x0b, 0xa8, 0x0e, 0x46]].concat();
    let keyed = || vec![hello(KEY)];
    check(keyed(), &whole, "audio bench [0, 0, 0, 0] Some(5)");
    check(vec![], &whole, "ignored: a datagram before any server hello with a key");
    check(vec![hello(&KEY[1..])], &whole, "ignored: a datagram before any server hello with a key");
    check(vec![hello("zz")], &whole, "ignored: a datagram before any server hello with a key");
    check(
        vec![hello(&"é".repeat(16))],
        &whole,
        "ignored: a datagram before any server hello with a key",
    );
    check(
        vec![hello(KEY), hello("")],
        &whole,
        "ignored: a datagram before any server hello with a key",
    );
    let wrong = "ignored: a datagram whose length field is wrong";
    check(keyed(), &whole[..19], wrong);
    check(keyed(), &[&whole[..], &[0]].concat(), wrong);
    check(keyed(), &whole[..16], wrong);
    check(keyed(), &whole[..15], "ignored: a datagram shorter than its header");
    check(keyed(), &[], "ignored: a datagram shorter than its header");
    let typed = |kind: u8| [&[kind], &whole[1..]].concat();
    check(keyed(), &typed(0), "ignored: a datagram that is no audio");
    check(keyed(), &typed(2), "ignored: a datagram that is no audio");
    // Other ssrc, timestamp and flags are the sender's business, but they are the counter block.
    let empty = [1, 0, 0, 0, 9, 9, 9, 9, 1, 1, 1, 1, 0xff, 0xff, 0xff, 0xff];
    check(keyed(), &empty, "audio bench [] Some(4294967295)");
}
