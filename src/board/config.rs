//! The config POST: what the board tells of itself, and what it makes of the answer.

use super::app::Job;
use super::codec::Json;
use super::setup::Build;
use super::{Board, Event, Output, Socket};
use std::time::Duration;

/// A config POST under way.
#[derive(Debug, Default)]
pub(super) struct Http {
    number: u64,
    open: bool,
    received: Vec<u8>,
}

/// After this many failed checks the board goes on with what it has.
const CHECKS: u32 = 10;

/// An answer of this size never arrives: the receiver waits for itself.
const MAX_BODY: usize = 8192;

/// How long the board waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longest NVS key and string.
const MAX_KEY: usize = 15;
const MAX_STRING: usize = 4000;

/// The parts of the board's description that are the same for every board.
const CHIP: &str = concat!(
    r#""chip_model_name":"esp32s3","chip_info":{"model":9,"cores":2,"revision":2,"features":18},"#,
    r#""application":{"name":"xiaozhi","version":"2.4.2","compile_time":"Aug  8 2026T12:00:00Z","#,
    r#""idf_version":"v5.5.2","elf_sha256":"#,
    r#""01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da"},"#,
    r#""partition_table": [{"label":"nvs","type":1,"subtype":2,"address":36864,"size":16384},"#,
    r#"{"label":"otadata","type":1,"subtype":0,"address":53248,"size":8192},"#,
    r#"{"label":"phy_init","type":1,"subtype":1,"address":61440,"size":4096},"#,
    r#"{"label":"ota_0","type":0,"subtype":16,"address":131072,"size":4128768},"#,
    r#"{"label":"ota_1","type":0,"subtype":17,"address":4259840,"size":4128768},"#,
    r#"{"label":"assets","type":1,"subtype":130,"address":8388608,"size":8388608}],"#,
    r#""ota":{"label":"ota_0"},"#,
);
const NETWORK: &str = r#""ssid":"bench-ap","rssi":-52,"channel":6,"ip":"127.0.0.1""#;

impl Board {
    pub(super) fn check_config(&mut self) {
        self.display(&["SetStatus: Checking for new version..."]);
        self.log('I', "Ota", "Current version: 2.4.2");
        let number = self.number();
        self.ram.http = Http { number, open: true, received: Vec::new() };
        let (host, port) = (self.setup.config_host.clone(), self.setup.config_port);
        self.emit(Output::Open(Socket::Config, host, port));
        self.plan(PATIENCE, Event::ConfigTimeout(number));
    }

    pub(super) fn config_connected(&mut self) {
        if !self.ram.http.open {
            return;
        }
        let (host, port) = (self.setup.config_host.clone(), self.setup.config_port);
        let text = format!("Established new connection to {host}:{port}");
        self.log('I', "HttpClient", &text);
        let shown = if matches!(port, 80 | 443) { host } else { format!("{host}:{port}") };
        let body = self.system_info();
        let request = format!(
            "POST /xiaozhi/ota/ HTTP/1.1\r\nHost: {shown}\r\nAccept-Language: en-US\r\n\
             Activation-Version: 1\r\nClient-Id: {}\r\nContent-Type: application/json\r\n\
             Device-Id: {}\r\nUser-Agent: {}/2.4.2\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            self.setup.uuid,
            self.mac(),
            self.name(),
            body.len(),
        );
        self.emit(Output::Send(Socket::Config, request.into_bytes()));
    }

    fn mac(&self) -> String {
        self.setup.mac.map(|byte| format!("{byte:02x}")).join(":")
    }

    /// The body of the config POST, also what `self.get_system_info` tells.
    pub(super) fn system_info(&self) -> String {
        let (mac, name, uuid) = (self.mac(), self.name(), &self.setup.uuid);
        let display = match self.setup.build {
            Build::LcdFull => r#""monochrome":false,"width":320,"height":240"#,
            Build::Oled => r#""monochrome":true,"width":128,"height":64"#,
            _ => r#""monochrome":false,"width":0,"height":0"#,
        };
        let own = r#"{"version":2,"language":"en-US","flash_size":16777216,"#;
        let own = format!(r#"{own}"minimum_free_heap_size":"8254112","mac_address":"{mac}","#);
        let own = format!(r#"{own}"uuid":"{uuid}",{CHIP}"#);
        let board = format!(r#"{{"type":"{name}","name":"{name}","manufacturer":"",{NETWORK}"#);
        format!(r#"{own}"display":{{{display}}},"board":{board},"mac":"{mac}"}}}}"#)
    }

    pub(super) fn config_received(&mut self, bytes: &[u8]) {
        if !self.ram.http.open {
            return;
        }
        self.ram.http.received.extend_from_slice(bytes);
        if let Some((status, length, body)) = response(&self.ram.http.received) {
            let got = self.ram.http.received.len() - body;
            // An empty body is complete only when the other side closes.
            if got < MAX_BODY && length.is_some_and(|length| length > 0 && got >= length) {
                let end = body + length.unwrap_or(0);
                self.config_answer(status, body..end);
            }
        }
    }

    pub(super) fn config_closed(&mut self) {
        if !self.ram.http.open {
            return;
        }
        match response(&self.ram.http.received) {
            Some((_, _, body)) if self.ram.http.received.len() - body >= MAX_BODY => {
                self.ram.http.open = false;
            }
            Some((status, _, body)) => {
                self.config_answer(status, body..self.ram.http.received.len());
            }
            None => self.config_failed("Failed to check version, status code: -1"),
        }
    }

    pub(super) fn config_refused(&mut self) {
        if self.ram.http.open {
            self.config_failed("Failed to open HTTP connection, code=0x6f");
        }
    }

    pub(super) fn config_timeout(&mut self, number: u64) {
        let http = &self.ram.http;
        if http.open && http.number == number && http.received.len() < MAX_BODY {
            self.emit(Output::Close(Socket::Config));
            self.config_failed("Failed to check version, status code: -1");
        }
    }

    fn config_failed(&mut self, why: &str) {
        self.ram.http.open = false;
        self.log('E', "Ota", why);
        self.ram.failed_checks += 1;
        let failed = self.ram.failed_checks;
        if failed >= CHECKS {
            return self.start_transport();
        }
        let seconds = 10 << (failed - 1);
        self.alert("cloud_slash", "Error", "Check for new version failed");
        let text =
            format!("Check new version failed, retry in {seconds} seconds ({failed}/{CHECKS})");
        self.log('W', "Application", &text);
        self.buzz();
        self.plan(Duration::from_secs(seconds), Event::CheckConfig);
    }

    fn config_answer(&mut self, status: u32, body: std::ops::Range<usize>) {
        self.ram.http.open = false;
        self.emit(Output::Close(Socket::Config));
        self.log('I', "HttpClient", "HTTP connection closed");
        if status != 200 {
            return self.config_failed(&format!("Failed to check version, status code: {status}"));
        }
        let answer = Json::parse(&self.ram.http.received[body]);
        let Some(answer) = answer.filter(Json::is_object) else {
            return self.config_failed("Failed to parse JSON response");
        };
        self.ram.failed_checks = 0;
        if !self.store_mqtt(&answer) {
            return self.abort();
        }
        let websocket = answer.get("websocket").is_some_and(Json::is_object);
        let mqtt = answer.get("mqtt").is_some_and(Json::is_object);
        self.ram.websocket = websocket && !mqtt;
        if !websocket {
            self.log('I', "Ota", "No websocket section found!");
        }
        if !answer.get("server_time").is_some_and(Json::is_object) {
            self.log('W', "Ota", "No server_time section found!");
        }
        match self.read_version(&answer) {
            Err(NotANumber) => return self.abort(),
            Ok(true) => return self.schedule(Job::Upgrade("the config answer's".into())),
            Ok(false) => {}
        }
        self.log('I', "Ota", "Running partition: ota_0");
        if answer.get("activation").is_some_and(Json::is_object) {
            return self.log('I', "Application", "Activating... 1/10");
        }
        self.start_transport();
    }

    /// Copies the `mqtt` section into NVS; `false` when NVS refuses a member.
    fn store_mqtt(&mut self, answer: &Json) -> bool {
        let Some(Json::Object(members)) = answer.get("mqtt") else {
            self.log('I', "Ota", "No mqtt section found !");
            return true;
        };
        for (key, value) in members {
            let stored = match value {
                Json::Text(text) if text.len() > MAX_STRING => {
                    Err("0x110e (ESP_ERR_NVS_VALUE_TOO_LONG)")
                }
                Json::Text(_) | Json::Number(_) if key.len() > MAX_KEY => {
                    Err("0x1109 (ESP_ERR_NVS_KEY_TOO_LONG)")
                }
                Json::Text(_) | Json::Number(_) => Ok(()),
                _ => continue,
            };
            if let Err(error) = stored {
                self.uart(&format!("ESP_ERROR_CHECK failed: esp_err_t {error} at 0x4200d1c6"));
                return false;
            }
            self.nvs.mqtt.insert(key.clone(), value.clone());
        }
        true
    }

    /// Whether the answer offers a newer firmware.
    fn read_version(&mut self, answer: &Json) -> Result<bool, NotANumber> {
        let Some(firmware) = answer.get("firmware").filter(|firmware| firmware.is_object()) else {
            self.log('W', "Ota", "No firmware section found!");
            return Ok(false);
        };
        let (Some(version), Some(_)) = (firmware.text("version"), firmware.text("url")) else {
            return Ok(false);
        };
        let forced = firmware.get("force").and_then(Json::int) == Some(1);
        if segments(version)? > vec![2, 4, 2] || forced {
            self.log('I', "Ota", &format!("New version available: {version}"));
            return Ok(true);
        }
        self.log('I', "Ota", "Current is the latest version");
        Ok(false)
    }
}

/// `std::stoi` throws and nobody catches.
#[derive(Debug)]
pub(super) struct NotANumber;

/// C++'s `std::stoi`: blanks, a sign, as many digits as there are.
pub(super) fn stoi(text: &str) -> Result<i32, NotANumber> {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    format!("{sign}{}", &digits[..end]).parse().map_err(|_| NotANumber)
}

/// The numbers of a version, compared from the left.
fn segments(version: &str) -> Result<Vec<i32>, NotANumber> {
    match version.strip_suffix('.').unwrap_or(version) {
        "" if version.is_empty() => Ok(Vec::new()),
        version => version.split('.').map(stoi).collect(),
    }
}

/// Status, length and begin of the body of a response whose header is complete.
fn response(bytes: &[u8]) -> Option<(u32, Option<usize>, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let header = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = header.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    Some((status, length, end + 4))
}
