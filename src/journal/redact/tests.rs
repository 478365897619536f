//! Evidence: what stays readable, what is covered, and that chunk borders change nothing.

use super::*;
use proptest::prelude::*;

const CLEAR: &str = concat!(
    "Device-Id: 24:6f:28:aa:bb:01\r\nAuthorization: Bearer bench-token\r\n\r\n",
    r#"{"mqtt":{"client_id":"G@@@24_6F_28_AA_BB_01@@@1","password":"hunter2","n":1},"#,
    r#""websocket":{"token":"bench-token"},"mac":"24:6f:28:aa:bb:02","#,
    r#""in":"{\"psk\":\"abc\"}"}"#,
    "\nFound AP: x, BSSID: de:ad:be:ef:00:11, RSSI: -52 246f28aabb01\r\n",
    r#"{"api_key":"a\"b\\","x-access-key":"c","accessKey" : "d","pin_token":907,"t":1}"#,
    "\r\n",
    r#"{"in":"{\"secret\":\"a\\\"b\\\\\",\"n\":\"password: c d\"}","token":null}"#,
    "\r\nI (1) Wifi: password=hunter2 ssid=x, Token: 'a b' apikey=\x1b[0m\r\n",
    "GET /?mac=24%3A6f%3A28%3Aaa%3Abb%3A01&access_token=abc&v=1 HTTP/1.1\r\n",
    "Cookie: a=b; c=\"d\"\r\nset-cookie: e\r\nX-Api-Key: f\r\n",
    "mqtt://user:pass@host:1883/ no secrets:here password1=x secretary: y\r\n",
);
const HIDDEN: &str = concat!(
    "Device-Id: 24:6f:28:xx:xx:x1\r\nAuthorization: Bearer xxxxxxxxxxx\r\n\r\n",
    r#"{"mqtt":{"client_id":"G@@@24_6F_28_xx_xx_x1@@@1","password":"xxxxxxx","n":1},"#,
    r#""websocket":{"token":"xxxxxxxxxxx"},"mac":"24:6f:28:xx:xx:x2","#,
    r#""in":"{\"psk\":\"xxx\"}"}"#,
    "\nFound AP: x, BSSID: de:ad:be:xx:xx:x3, RSSI: -52 246f28xxxxx1\r\n",
    r#"{"api_key":"xxxxxx","x-access-key":"x","accessKey" : "x","pin_token":111,"t":1}"#,
    "\r\n",
    r#"{"in":"{\"secret\":\"xxxxxxxxxx\",\"n\":\"password: x d\"}","token":null}"#,
    "\r\nI (1) Wifi: password=xxxxxxx ssid=x, Token: 'xxx' apikey=\x1b[0m\r\n",
    "GET /?mac=24%3A6f%3A28%3Axx%3Axx%3Ax1&access_token=xxx&v=1 HTTP/1.1\r\n",
    "Cookie: xxxxxxxxxx\r\nset-cookie: x\r\nX-Api-Key: x\r\n",
    "mqtt://user:xxxx@host:1883/ no secrets:here password1=x secretary: y\r\n",
);

#[test]
fn secrets_keep_their_length_and_each_board_its_placeholder() {
    let mut redactor = Redactor::knowing(&["24:6f:28:aa:bb:01"]);
    let out = redactor.whole(CLEAR.as_bytes());
    assert_eq!(String::from_utf8(out).unwrap(), HIDDEN);
}

#[test]
fn a_secret_is_known_by_more_names_and_by_its_shape() {
    for (clear, hidden) in [
        (
            r#"{"wifi_pass":"ab","pwd":"c","hmac_key":"d"}"#,
            r#"{"wifi_pass":"xx","pwd":"x","hmac_key":"x"}"#,
        ),
        ("pass=ab pwd: cd WIFI_PWD=ef psk=g", "pass=xx pwd: xx WIFI_PWD=xx psk=x"),
        ("wifi_key=ab, hmac_key: cd", "wifi_key=xxx hmac_key: xx"),
        ("client_secret ab apikey cd password ef", "client_secret xx apikey xx password xx"),
        ("password = ab", "password = xx"),
        (
            "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln!",
            "got xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx!",
        ),
        ("use sk-proj-0123456789abcdef.", "use xxxxxxxxxxxxxxxxxxxxxxxx."),
        // What must stay readable.
        (r#"{"key":"00ff","bypass":"ab"}"#, r#"{"key":"00ff","bypass":"ab"}"#),
        ("Sec-WebSocket-Key: ab\r\ncompass: 3", "Sec-WebSocket-Key: ab\r\ncompass: 3"),
        ("task-0123456789abcdef eyJ ok", "task-0123456789abcdef eyJ ok"),
    ] {
        let told = Redactor::default().whole(clear.as_bytes());
        assert_eq!(String::from_utf8(told).unwrap(), hidden);
    }
}

#[test]
fn a_line_is_not_held_back_and_its_parts_keep_their_times() {
    let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
    let mut redactor = Redactor::default();
    let line = b"I (3984) StateMachine: State: idle -> connecting\r\n";
    assert_eq!(redactor.push("uart", at(1), line), [(at(1), line.to_vec())]);
    assert_eq!(redactor.push("uart", at(2), b"pass"), []);
    assert_eq!(redactor.push("uart", at(3), b"word=ab"), []);
    let told = [(at(2), b"pass".to_vec()), (at(3), b"word=xx".to_vec()), (at(4), b"x\n".into())];
    assert_eq!(redactor.push("uart", at(4), b"c\nrest"), told);
    assert_eq!(redactor.finish("uart"), [(at(4), b"rest".to_vec())]);
    assert_eq!(redactor.finish("uart"), []);
}

#[test]
fn an_endless_line_does_not_wait_for_ever() {
    for (filler, part) in [("ab cd ", "password=hunter2 "), ("abcd", "24:6f:28:aa:bb:01")] {
        let clear = filler.repeat(20_000) + &part.repeat(10_000);
        let mut redactor = Redactor::default();
        let expected = redactor.whole(clear.as_bytes());
        let (mut told, mut most) = (Vec::new(), 0);
        for (n, chunk) in clear.as_bytes().chunks(999).enumerate() {
            let out = redactor.push("uart", Moment::START, chunk);
            told.extend(out.into_iter().flat_map(|(_, bytes)| bytes));
            most = most.max((n + 1) * 999 - told.len());
        }
        told.extend(redactor.finish("uart").into_iter().flat_map(|(_, bytes)| bytes));
        assert!(told == expected && most <= MAX_HELD + 999, "{part}, {most}");
    }
}

#[test]
fn the_password_of_a_connect_is_covered() {
    let packet = b"\x10\x1c\x00\x04MQTT\x04\xc2\x00\xf0\x00\x01G\x00\x05bench\x00\x06secret";
    let hidden = redact_mqtt_connect(packet);
    assert_eq!(&hidden[..hidden.len() - 6], &packet[..packet.len() - 6]);
    assert!(hidden.ends_with(b"xxxxxx"));
}

/// By hand from MQTT 3.1.1 and 5.0, section 3.1.
#[test]
fn the_password_of_a_bad_connect_is_covered_too() {
    let check = |packet: &[u8], hidden: &[u8]| {
        let told = redact_mqtt_connect(packet);
        assert_eq!(told.escape_ascii().to_string(), hidden.escape_ascii().to_string());
    };
    let head = b"\x10\x1c\x00\x04MQTT\x04\xc2\x00\xf0\x00\x01G".as_slice();
    let with = |rest: &[u8]| [head, rest].concat();
    let user = b"\x00\x05bench";
    check(&with(&[&user[..], b"\x00\x09secret"].concat()), &with(b"\x00\x05bench\x00\x09xxxxxx"));
    check(&with(&[&user[..], b"\x00\x02secret"].concat()), &with(b"\x00\x05bench\x00\x02xxxxxx"));
    check(&with(b"\x01\x05bench\x00\x06secret"), &with(b"\x01\x05xxxxxxxxxxxxx"));
    check(head, head);
    check(&head[..9], b"\x10\x1c\x00\x04MQTTx");
    check(b"\x10", b"\x10");
    let unflagged = b"\x10\x0e\x00\x04MQTT\x04\x02\x00\xf0\x00\x01G\x00\x01s";
    check(unflagged, b"\x10\x0e\x00\x04MQTT\x04\x02\x00\xf0\x00\x01G\x00\x01x");
    let will = b"\x10\x20\x00\x04MQTT\x04\x46\x00\xf0\x00\x01G\x00\x01t\x00\x01m\x00\x01s";
    let hidden = [&will[..will.len() - 1], b"x"].concat();
    check(will, &hidden);
    let five = b"\x10\x20\x00\x04MQTT\x05\x42\x00\xf0\x01\x11\x00\x01G\x00\x01s";
    check(five, &[&five[..five.len() - 1], b"x"].concat());
    check(b"\x30\x03\x00\x01a", b"\x30\x03\x00\x01a");
}

proptest! {
    #[test]
    fn chunk_borders_hide_nothing(cuts in prop::collection::vec(0usize..CLEAR.len(), 0..12)) {
        let mut cuts = cuts;
        cuts.sort_unstable();
        let mut redactor = Redactor::knowing(&["24:6f:28:aa:bb:01"]);
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([CLEAR.len()]) {
            let at = Moment::from_nanos(from as u64);
            pieces.extend(redactor.push("uart", at, &CLEAR.as_bytes()[from..cut]));
            from = cut;
        }
        pieces.extend(redactor.finish("uart"));
        let mut out = Vec::new();
        for (at, piece) in pieces {
            // Here the time of a chunk is its place.
            prop_assert!(at.nanos() <= out.len() as u64);
            out.extend(piece);
        }
        prop_assert_eq!(String::from_utf8(out).unwrap(), HIDDEN);
    }
}
