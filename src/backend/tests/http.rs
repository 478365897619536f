//! The config endpoint (facts/xiaozhi.md 2.3, 2.7).

use super::*;

#[test]
fn a_device_is_told_where_to_connect() {
    let (text, body) = answer_to(settings(), &post_with("2.4.2"));
    let expected = json!({
        "server_time": { "timestamp": 1_796_072_251_002u64, "timezone_offset": 0 },
        "firmware": { "version": "2.4.2", "url": "" },
        "mqtt": {
            "endpoint": "192.168.50.1:1883",
            "client_id": "GID_bench@@@24_6f_28_aa_bb_cc@@@11111111-2222-4333-8444-555555555555",
            "username": "bench",
            "password": "bench",
            "publish_topic": "device-server",
            "subscribe_topic": "devices/p2p/24_6f_28_aa_bb_cc",
            "keepalive": 60,
        },
    });
    // No activation, no websocket.
    assert_eq!(body, expected);
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn an_answer_has_its_length_and_is_never_chunked_empty_or_too_long() {
    let long = "x".repeat(9000);
    let odd = format!("{POST}X: y\r\nContent-Length: 9000\r\n\r\n{long}");
    let identity = POST.replace("11111111", &"1".repeat(8000));
    let identity = format!("{identity}Content-Length: 2\r\n\r\n{{}}");
    let elsewhere = format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(9000));
    for request in [&post_with("2.4.2"), &odd, &identity, &elsewhere] {
        let (text, _) = answer_to(settings(), request);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let head = head.to_ascii_lowercase();
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
        assert!(head.contains("\r\nconnection: close"), "{head}");
        assert!(!head.contains("chunked") && !body.is_empty());
        assert!(body.len() < 8192, "{} bytes", body.len());
    }
}

/// Every member is stored under its own name: at most 15 characters, strings below 4000.
#[test]
fn what_the_device_stores_fits_its_memory() {
    let identity = POST.replace("11111111", &"1".repeat(8000));
    for request in [format!("{identity}Content-Length: 2\r\n\r\n{{}}"), post_with("1.0")] {
        let (_, body) = answer_to(settings(), &request);
        let mqtt = body["mqtt"].as_object().unwrap();
        for (key, value) in mqtt {
            assert!(key.len() <= 15, "{key}");
            assert!(value.as_str().is_none_or(|s| s.len() < 4000 && !s.is_empty()), "{value}");
            assert!(value.is_string() || value.is_number(), "{value}");
        }
    }
}

#[test]
fn a_version_that_the_device_can_not_parse_is_not_sent_back() {
    let check = |own: &str, expect: &str| {
        let (_, body) = answer_to(settings(), &post_with(own));
        assert_eq!(body["firmware"], json!({ "version": expect, "url": "" }), "{own}");
    };
    check("2.4.2", "2.4.2");
    check("10", "10");
    for unlawful in ["v2.4.2", "latest", "2.4.", ".4", "2..4", "2.x", "99999999999.1", "+2"] {
        check(unlawful, "");
    }
    check(&"1.".repeat(60), "");
}

/// An SSID with a quotation mark makes the body invalid.
#[test]
fn a_body_that_is_no_json_is_answered_from_the_headers() {
    let request = format!("{POST}Content-Length: 10\r\n\r\n{{\"a\":\"\"b\"}}");
    let (_, body) = answer_to(settings(), &request);
    assert_eq!(body["firmware"]["version"], "2.4.2");
    assert_eq!(body["mqtt"]["subscribe_topic"], "devices/p2p/24_6f_28_aa_bb_cc");
    let bare = "POST /xiaozhi/ota HTTP/1.1\r\n\r\n";
    let (_, body) = answer_to(settings(), bare);
    assert_eq!(body["firmware"]["version"], "");
    assert_eq!(body["mqtt"]["client_id"], "GID_bench@@@unknown@@@unknown");
}

#[test]
fn the_body_says_what_the_headers_do_not() {
    let body = r#"{"mac_address":"24:6f:28:aa:bb:01","uuid":"u-1"}"#;
    let head = "POST /xiaozhi/ota/?x=1 HTTP/1.1\r\nContent-Length:";
    let (_, body) = answer_to(settings(), &format!("{head} {}\r\n\r\n{body}", body.len()));
    assert_eq!(body["mqtt"]["client_id"], "GID_bench@@@24_6f_28_aa_bb_01@@@u-1");
}

#[test]
fn an_endpoint_that_would_crash_the_board_is_never_sent() {
    let with = |host: &str, mqtt_port| Settings { host: host.into(), mqtt_port, ..settings() };
    for settings in [
        with("mqtt://192.168.50.1", 1883),
        with("192.168.50.1:1883", 1883),
        with("fe80::1", 1883),
        with("", 1883),
        with("192.168.50.1", 0),
        with("192.168.50.1", 8883),
    ] {
        let (text, body) = answer_to(settings, &post_with("2.4.2"));
        assert!(text.starts_with("HTTP/1.1 500 "), "{text}");
        assert_eq!(body, Value::Null);
    }
    let (_, body) = answer_to(with("bench.lan", 1), &post_with("2.4.2"));
    assert_eq!(body["mqtt"]["endpoint"], "bench.lan:1");
}

#[test]
fn anything_else_is_not_found() {
    for start in [
        "GET /xiaozhi/ota/",
        "POST /xiaozhi/ota/activate",
        "POST /",
        "HEAD /xiaozhi/ota/",
        "POST /xiaozhi/ota//x",
    ] {
        let (text, _) = answer_to(settings(), &format!("{start} HTTP/1.1\r\n\r\n"));
        assert!(text.starts_with("HTTP/1.1 404 Not Found\r\n"), "{text}");
        assert!(text.contains("only POST /xiaozhi/ota/ is answered"), "{text}");
    }
    let mut bench = Bench::new();
    bench.post(1, "GET /xiaozhi/v1/ HTTP/1.1\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!((bench.said().as_str(), bench.backend.is_online()), ("404", false));
}

#[test]
fn the_server_time_counts_on() {
    let mut bench = Bench::new();
    bench.now = Moment::from_secs_f64(100.0);
    bench.post(1, &post_with("1.0"));
    let [What::Http(answer)] = &bench.take_sent()[..] else { panic!("no answer") };
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(body["server_time"]["timestamp"], 1_796_072_351_002u64);
}

#[test]
fn bytes_that_are_no_request_end_the_connection() {
    let mut bench = Bench::new();
    bench.post(3, "\x01\x02 not HTTP\r\n\r\n");
    assert_eq!((bench.said().as_str(), &bench.closed[..]), ("", &[3][..]));
    assert_eq!(bench.backend.take_refusals().len(), 1);
}
