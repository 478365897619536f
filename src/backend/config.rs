//! The config endpoint: what a device is told at boot (facts/xiaozhi.md 2.3), and what it must
//! never be told, because it would crash at each boot (2.7).

use super::Settings;
use crate::decode::HttpMessage;
use crate::time::Moment;
use serde_json::{Value, json};

/// The path of the endpoint, without the slash at its end.
const PATH: &str = "/xiaozhi/ota";

/// Longer parts of an identity are cut; the firmware stores strings of up to 4000 bytes.
const MAX_PART: usize = 64;

/// A config for a device.
#[derive(Debug)]
pub(super) struct Config {
    /// The client id that the device is given.
    pub client_id: String,
    /// The whole HTTP response.
    pub response: Vec<u8>,
}

/// No config.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Why, for the journal.
    pub why: String,
    /// The whole HTTP response.
    pub response: Vec<u8>,
}

/// Answers a request.
pub(super) fn answer(
    settings: &Settings,
    now: Moment,
    request: &HttpMessage,
) -> Result<Config, Refusal> {
    let (method, target) = request.start.split_once(' ').unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    if method != "POST" || path.strip_suffix('/').unwrap_or(path) != PATH {
        let short: String = request.start.chars().take(100).collect();
        return Err(refusal(
            "404 Not Found",
            format!("only POST {PATH}/ is answered, not {short}"),
        ));
    }
    let endpoint = endpoint(settings).map_err(|why| refusal("500 Internal Server Error", why))?;
    // An SSID with a quotation mark makes the body invalid; the headers say the same.
    let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let client_id = client_id(request, &body);
    let mac = client_id.split("@@@").nth(1).unwrap_or_default();
    let server_time = settings.started_at_unix_ms.saturating_add(now.nanos() / 1_000_000);
    let config = json!({
        "server_time": { "timestamp": server_time, "timezone_offset": 0 },
        "firmware": { "version": version(request, &body), "url": "" },
        "mqtt": {
            "endpoint": endpoint,
            "client_id": client_id,
            "username": "bench",
            "password": "bench",
            "publish_topic": "device-server",
            "subscribe_topic": format!("devices/p2p/{mac}"),
            "keepalive": settings.keepalive,
        },
    });
    let response = response("200 OK", "application/json", &config.to_string());
    Ok(Config { client_id, response })
}

/// Whole, with its length, and the connection ends with it: the firmware's HTTP client hangs on
/// chunks and on empty bodies.
fn response(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

fn refusal(status: &str, why: String) -> Refusal {
    let response = response(status, "text/plain; charset=utf-8", &format!("{why}\n"));
    Refusal { why, response }
}

/// `host:port`. Whatever follows a first colon is read as a number by code that throws.
fn endpoint(settings: &Settings) -> Result<String, String> {
    let Settings { host, mqtt_port, .. } = settings;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if host.is_empty() || host.len() > 253 || !host.chars().all(plain) {
        return Err(format!("the host {host:?} is no IPv4 address or name: it'd crash the board"));
    }
    match mqtt_port {
        0 => Err("the MQTT gateway has no port".into()),
        8883 => Err("on port 8883 the board expects TLS".into()),
        port => Ok(format!("{host}:{port}")),
    }
}

/// The form of the upstream gateway: group, MAC address with underscores, and UUID.
fn client_id(request: &HttpMessage, body: &Value) -> String {
    let part = |header: &str, member: &str| {
        let text = request.header(header).or_else(|| body.get(member)?.as_str());
        let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let text = text.unwrap_or("unknown").replace(':', "_");
        text.chars().filter(plain).take(MAX_PART).collect::<String>()
    };
    format!("GID_bench@@@{}@@@{}", part("device-id", "mac_address"), part("client-id", "uuid"))
}

/// The device's own version, so that it finds nothing newer. Empty when a part of it is no number
/// that fits an int: the firmware would throw.
fn version(request: &HttpMessage, body: &Value) -> String {
    let own = body.pointer("/application/version").and_then(Value::as_str);
    let agent = request.header("user-agent").and_then(|agent| agent.rsplit_once('/'));
    let version = own.or(agent.map(|(_, version)| version)).unwrap_or_default();
    let is_number = |part: &str| part.parse::<i32>().is_ok() && !part.starts_with(['+', '-']);
    let lawful = version.len() <= MAX_PART && version.split('.').all(is_number);
    if lawful { version.into() } else { String::new() }
}
