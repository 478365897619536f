//! The MQTT client: it connects, pings and comes back; it never subscribes.

use super::app::Job;
use super::codec::Json;
use super::config::stoi;
use super::{Board, Event, Output, Socket};
use bytes::BytesMut;
use rumqttc::mqttbytes::v4::{
    Connect, ConnectReturnCode, Packet, PubAck, PubComp, PubRec, Publish,
};
use rumqttc::mqttbytes::{Error, QoS};
use std::time::Duration;

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

/// How long the board waits for a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// When a lost connection is tried again.
const RECONNECT: Duration = Duration::from_secs(10);

/// Largest MQTT packet.
const MAX_PACKET: usize = 1 << 20;

impl Board {
    fn stored(&self, key: &str) -> &str {
        match self.nvs.mqtt.get(key) {
            Some(Json::Text(text)) => text,
            _ => "",
        }
    }

    pub(super) fn start_transport(&mut self) {
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
                self.plan(PATIENCE, Event::MqttTimeout(number));
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
