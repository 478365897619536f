//! The config POST and the MQTT connection.

use super::app::Job;
use super::codec::Json;
use super::setup::Build;
use super::{Board, Event, Output, Socket};
use bytes::BytesMut;
use rumqttc::mqttbytes::v4::{
    Connect, ConnectReturnCode, Packet, PubAck, PubComp, PubRec, Publish,
};
use rumqttc::mqttbytes::{Error, QoS};
use std::fmt::Write as _;
use std::time::Duration;

/// A config POST under way.
#[derive(Debug, Default)]
pub(super) struct Http {
    number: u64,
    open: bool,
    received: Vec<u8>,
}

/// The MQTT client.
#[derive(Debug, Default)]
pub(super) struct Mqtt {
    phase: Phase,
    /// Which attempt to connect, so that the events of others are known as old.
    number: u64,
    received: BytesMut,
    /// Whether the boot waits for it.
    activating: bool,
    ping_open: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Off,
    Opening,
    Greeting,
    Up,
}

impl Mqtt {
    pub fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }
}

/// After this many failed checks the board goes on with what it has.
const CHECKS: u32 = 10;

/// An answer of this size never arrives: the receiver waits for itself.
const MAX_BODY: usize = 8192;

/// How long the board waits for an answer, and for MQTT to connect.
const HTTP_PATIENCE: Duration = Duration::from_secs(30);
const MQTT_PATIENCE: Duration = Duration::from_secs(10);

/// When a lost connection is tried again.
const RECONNECT: Duration = Duration::from_secs(10);

/// Largest MQTT packet.
const MAX_PACKET: usize = 1 << 20;

/// Longest NVS key and string.
const MAX_KEY: usize = 15;
const MAX_STRING: usize = 4000;

impl Board {
    pub(super) fn check_config(&mut self) {
        self.display(&["SetStatus: Checking for new version..."]);
        self.log('I', "Ota", "Current version: 2.4.2");
        let number = self.number();
        self.ram.http = Http { number, open: true, received: Vec::new() };
        let (host, port) = (self.setup.config_host.clone(), self.setup.config_port);
        self.emit(Output::Open(Socket::Config, host, port));
        self.plan(HTTP_PATIENCE, Event::ConfigTimeout(number));
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
        let (mac, name) = (self.mac(), self.name());
        let mut info = format!(
            r#"{{"version":2,"language":"en-US","flash_size":16777216,"minimum_free_heap_size":"8254112","mac_address":"{mac}","uuid":"{}","chip_model_name":"esp32s3","chip_info":{{"model":9,"cores":2,"revision":2,"features":18}},"#,
            self.setup.uuid
        );
        info += r#""application":{"name":"xiaozhi","version":"2.4.2","compile_time":"Aug  8 2026T12:00:00Z","idf_version":"v5.5.2","elf_sha256":"01080f161d242b323940474e555c636a71787f868d949ba2a9b0b7bec5ccd3da"},"partition_table": ["#;
        let partitions = [
            ("nvs", 1, 2, 36864, 16384),
            ("otadata", 1, 0, 53248, 8192),
            ("phy_init", 1, 1, 61440, 4096),
            ("ota_0", 0, 16, 131072, 4128768),
            ("ota_1", 0, 17, 4259840, 4128768),
            ("assets", 1, 130, 8388608, 8388608),
        ];
        for (label, kind, subtype, address, size) in partitions {
            let comma = if label == "nvs" { "" } else { "," };
            // Writing to a String can't fail.
            let _ = write!(
                info,
                r#"{comma}{{"label":"{label}","type":{kind},"subtype":{subtype},"address":{address},"size":{size}}}"#
            );
        }
        let display = match self.setup.build {
            Build::LcdFull => r#""monochrome":false,"width":320,"height":240"#,
            Build::Oled => r#""monochrome":true,"width":128,"height":64"#,
            _ => r#""monochrome":false,"width":0,"height":0"#,
        };
        info + &format!(
            r#"],"ota":{{"label":"ota_0"}},"display":{{{display}}},"board":{{"type":"{name}","name":"{name}","manufacturer":"","ssid":"bench-ap","rssi":-52,"channel":6,"ip":"127.0.0.1","mac":"{mac}"}}}}"#
        )
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

    fn stored(&self, key: &str) -> &str {
        match self.nvs.mqtt.get(key) {
            Some(Json::Text(text)) => text,
            _ => "",
        }
    }

    fn start_transport(&mut self) {
        self.display(&["SetStatus: Logging in..."]);
        if self.ram.websocket {
            return self.schedule(Job::ActivationDone);
        }
        self.ram.mqtt.activating = true;
        self.connect_mqtt();
    }

    fn connect_mqtt(&mut self) {
        let endpoint = self.stored("endpoint").to_owned();
        if endpoint.is_empty() {
            self.log('W', "MQTT", "MQTT endpoint is not specified");
            return self.mqtt_settled();
        }
        self.log('I', "MQTT", &format!("Connecting to endpoint {endpoint}"));
        let (host, port) = match endpoint.split_once(':') {
            None => (endpoint.as_str(), Ok(8883)),
            Some((host, port)) => (host, stoi(port)),
        };
        let Ok(port) = port else { return self.abort() };
        let number = self.number();
        self.ram.mqtt.number = number;
        self.ram.mqtt.received.clear();
        self.ram.mqtt.ping_open = false;
        self.ram.mqtt.phase = Phase::Opening;
        match u16::try_from(port) {
            // Port 8883 speaks TLS, which this board can't.
            Ok(port) if port != 0 && port != 8883 => {
                self.emit(Output::Open(Socket::Mqtt, host.into(), port));
                self.plan(MQTT_PATIENCE, Event::MqttTimeout(number));
            }
            _ => self.mqtt_lost(),
        }
    }

    /// The boot no longer waits for MQTT.
    fn mqtt_settled(&mut self) {
        if std::mem::take(&mut self.ram.mqtt.activating) {
            self.schedule(Job::ActivationDone);
        }
    }

    pub(super) fn mqtt_connected(&mut self) {
        if self.ram.mqtt.phase != Phase::Opening {
            return;
        }
        self.ram.mqtt.phase = Phase::Greeting;
        let mut connect = Connect::new(self.stored("client_id"));
        connect.keep_alive = self.keepalive();
        connect.set_login(self.stored("username"), self.stored("password"));
        self.send_packet(&Packet::Connect(connect));
    }

    fn keepalive(&self) -> u16 {
        let stored = self.nvs.mqtt.get("keepalive").and_then(Json::int);
        stored.and_then(|seconds| u16::try_from(seconds).ok()).filter(|s| *s > 0).unwrap_or(240)
    }

    fn send_packet(&mut self, packet: &Packet) {
        let mut bytes = BytesMut::new();
        if packet.write(&mut bytes, MAX_PACKET).is_ok() {
            self.emit(Output::Send(Socket::Mqtt, bytes.to_vec()));
        }
    }

    pub(super) fn publish(&mut self, text: &str) {
        let topic = self.stored("publish_topic");
        if self.ram.mqtt.is_up() && !topic.is_empty() {
            let packet = Publish::new(topic, QoS::AtMostOnce, text.as_bytes());
            self.send_packet(&Packet::Publish(packet));
        }
    }

    pub(super) fn mqtt_received(&mut self, bytes: &[u8]) {
        if matches!(self.ram.mqtt.phase, Phase::Off | Phase::Opening) {
            return;
        }
        self.ram.mqtt.received.extend_from_slice(bytes);
        let number = self.ram.mqtt.number;
        while self.ram.mqtt.number == number && self.ram.mqtt.phase != Phase::Off {
            match Packet::read(&mut self.ram.mqtt.received, MAX_PACKET) {
                Ok(packet) => self.mqtt_packet(packet),
                Err(Error::InsufficientBytes(_)) => return,
                Err(_) => {
                    self.log('E', "mqtt_client", "mqtt_message_receive() returned -1");
                    self.emit(Output::Close(Socket::Mqtt));
                    return self.mqtt_lost();
                }
            }
        }
    }

    fn mqtt_packet(&mut self, packet: Packet) {
        match packet {
            Packet::ConnAck(ack) if self.ram.mqtt.phase == Phase::Greeting => {
                if ack.code != ConnectReturnCode::Success {
                    self.emit(Output::Close(Socket::Mqtt));
                    return self.mqtt_lost();
                }
                self.ram.mqtt.phase = Phase::Up;
                self.log('I', "MQTT", "Connected to endpoint");
                self.plan_ping();
                self.mqtt_settled();
            }
            Packet::Publish(publish) if self.ram.mqtt.is_up() => {
                match publish.qos {
                    QoS::AtMostOnce => {}
                    QoS::AtLeastOnce => {
                        self.send_packet(&Packet::PubAck(PubAck::new(publish.pkid)))
                    }
                    QoS::ExactlyOnce => {
                        self.send_packet(&Packet::PubRec(PubRec::new(publish.pkid)))
                    }
                }
                self.message(&publish.payload);
            }
            Packet::PubRel(release) => {
                self.send_packet(&Packet::PubComp(PubComp::new(release.pkid)))
            }
            Packet::PingResp => self.ram.mqtt.ping_open = false,
            _ => {}
        }
    }

    fn plan_ping(&mut self) {
        let half = Duration::from_secs(u64::from(self.keepalive())) / 2;
        self.plan(half, Event::Ping(self.ram.mqtt.number));
    }

    pub(super) fn ping(&mut self, number: u64) {
        if self.ram.mqtt.number != number || !self.ram.mqtt.is_up() {
            return;
        }
        if self.ram.mqtt.ping_open {
            self.log('E', "mqtt_client", "No PING_RESP, disconnected");
            self.emit(Output::Close(Socket::Mqtt));
            return self.mqtt_lost();
        }
        self.ram.mqtt.ping_open = true;
        self.send_packet(&Packet::PingReq);
        self.plan_ping();
    }

    pub(super) fn mqtt_timeout(&mut self, number: u64) {
        let mqtt = &self.ram.mqtt;
        if mqtt.number == number && matches!(mqtt.phase, Phase::Opening | Phase::Greeting) {
            self.emit(Output::Close(Socket::Mqtt));
            self.mqtt_lost();
        }
    }

    /// The connection is gone, or never came about.
    pub(super) fn mqtt_lost(&mut self) {
        let phase = std::mem::take(&mut self.ram.mqtt.phase);
        match phase {
            Phase::Off => return,
            Phase::Up => {
                self.log('I', "MQTT", "MQTT disconnected, schedule reconnect in 60 seconds");
            }
            Phase::Opening | Phase::Greeting => {
                self.log('E', "MQTT", "Failed to connect to endpoint, code=0x6f");
                if self.ram.mqtt.activating {
                    self.alert("cloud_slash", "Error", "Unable to connect to the server");
                    self.buzz();
                }
            }
        }
        let number = self.number();
        self.ram.mqtt.number = number;
        self.plan(RECONNECT, Event::MqttReconnect(number));
        self.mqtt_settled();
    }

    pub(super) fn mqtt_reconnect(&mut self, number: u64) {
        if self.ram.mqtt.number == number && self.ram.mqtt.phase == Phase::Off {
            self.connect_mqtt();
        }
    }

    /// The orderly end of the connection before a restart.
    pub(super) fn mqtt_goodbye(&mut self) {
        if self.ram.websocket {
            return;
        }
        self.log('I', "MQTT", "MqttProtocol deinit");
        if self.ram.mqtt.is_up() {
            self.send_packet(&Packet::Disconnect);
        }
        if self.ram.mqtt.phase != Phase::Off {
            self.emit(Output::Close(Socket::Mqtt));
        }
        self.ram.mqtt = Mqtt::default();
    }
}

/// `std::stoi` throws and nobody catches.
#[derive(Debug)]
struct NotANumber;

/// C++'s `std::stoi`: blanks, a sign, as many digits as there are.
fn stoi(text: &str) -> Result<i32, NotANumber> {
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
