//! The MQTT 3.1.1 gateway: every client is served, one of them is the device.
//!
//! The firmware never subscribes, so what is for the device is published to it unasked. Each
//! observation must hold one whole packet; bytes that can't become one are told as they are, and
//! end their connection here.

use super::outbox::Outbox;
use crate::decode::Control;
use crate::time::Moment;
use rumqttc::mqttbytes::QoS;
use rumqttc::mqttbytes::v4::{
    ConnAck, ConnectReturnCode, Packet, PubAck, PubComp, PubRec, Publish, SubAck,
    SubscribeReasonCode, UnsubAck,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A client that is connected.
#[derive(Debug)]
struct Client {
    id: String,
    /// Longest silence that it promised, seconds; 0 is no promise.
    keep_alive: u16,
    /// When it last sent something.
    heard: Moment,
}

impl Client {
    /// After one and a half keep-alives of silence a server must take it for gone (MQTT-3.1.2-24).
    fn expires(&self) -> Moment {
        match self.keep_alive {
            0 => Moment::NEVER,
            seconds => self.heard + Duration::from_millis(1500) * u32::from(seconds),
        }
    }

    /// Where the upstream gateway publishes: `devices/p2p/24_6f_28_aa_bb_cc`.
    fn topic(&self) -> String {
        let mac = self.id.split("@@@").nth(1).unwrap_or(&self.id);
        let plain = |c: char| if matches!(c, ':' | '/' | '+' | '#' | '\0') { '_' } else { c };
        format!("devices/p2p/{}", mac.chars().map(plain).take(256).collect::<String>())
    }
}

/// The clients, and which of them is the device.
#[derive(Debug, Default)]
pub(super) struct Gateway {
    clients: BTreeMap<u32, Client>,
    device: Option<u32>,
    /// The client id that the device was given; before that any client may be the device.
    expected: Option<String>,
    /// Links that we closed; what still comes from them means nothing.
    closed: BTreeSet<u32>,
}

impl Gateway {
    /// The device's link.
    pub fn device(&self) -> Option<u32> {
        self.device
    }

    pub fn is_closed(&self, link: u32) -> bool {
        self.closed.contains(&link)
    }

    /// The device asked for its config, as it does once at boot, before it connects: a connection
    /// from before is dead, even if nobody was told.
    pub fn expect(&mut self, client_id: String, out: &mut Outbox) {
        let old = self.clients.iter().find(|(_, client)| client.id == client_id);
        if let Some((&link, _)) = old {
            self.refuse(link, "the device has booted since", out);
        }
        self.expected = Some(client_id);
        self.elect();
    }

    /// A control packet of a client.
    pub fn packet(&mut self, now: Moment, link: u32, packet: &Control, out: &mut Outbox) {
        if self.is_closed(link) {
            return;
        }
        let Some(client) = self.clients.get_mut(&link) else {
            return match packet {
                Control::Connect { level, client, keep_alive } => {
                    let client = Client { id: client.clone(), keep_alive: *keep_alive, heard: now };
                    self.connect(link, *level, client, out);
                }
                Control::Unreadable => {} // its reason follows
                _ => self.refuse(link, "no CONNECT came first", out),
            };
        };
        client.heard = now;
        let answer = match packet {
            Control::PingReq => Packet::PingResp,
            Control::Subscribe { pkid, topics } => {
                let granted = SubscribeReasonCode::Success(QoS::AtMostOnce);
                Packet::SubAck(SubAck::new(*pkid, vec![granted; topics.len()]))
            }
            Control::Unsubscribe(pkid) => Packet::UnsubAck(UnsubAck::new(*pkid)),
            Control::Publish { pkid, qos: 1 } => Packet::PubAck(PubAck::new(*pkid)),
            Control::Publish { pkid, .. } => Packet::PubRec(PubRec::new(*pkid)),
            Control::PubRel(pkid) => Packet::PubComp(PubComp::new(*pkid)),
            Control::Disconnect => return self.close(link, out),
            Control::Unreadable => return self.refuse(link, "it sent no MQTT packet", out),
            Control::Connect { .. } => return self.refuse(link, "a second CONNECT", out),
            // Nothing is sent that these could answer.
            Control::PubAck(_) | Control::PubRec(_) | Control::PubComp(_) => return,
            Control::ConnAck(_) | Control::SubAck(_) | Control::UnsubAck(_) | Control::PingResp => {
                return self.refuse(link, "it sent what only servers send", out);
            }
        };
        out.mqtt(link, &answer);
    }

    /// The device or another client sent a message; `true` if it was the device.
    pub fn message(&mut self, now: Moment, link: u32, out: &mut Outbox) -> bool {
        if let Some(client) = self.clients.get_mut(&link) {
            client.heard = now;
        } else if !self.is_closed(link) {
            self.refuse(link, "no CONNECT came first", out);
        }
        self.device == Some(link)
    }

    /// Bytes that mean nothing. A client may send what we don't use; others are no use at all.
    pub fn ignored(&mut self, link: u32, why: &str, out: &mut Outbox) {
        if !self.clients.contains_key(&link) && !self.is_closed(link) {
            self.refuse(link, why, out);
        }
    }

    /// The connection has ended.
    pub fn lost(&mut self, link: u32) {
        self.clients.remove(&link);
        self.elect();
    }

    /// Ends a connection.
    pub fn close(&mut self, link: u32, out: &mut Outbox) {
        self.closed.insert(link);
        self.clients.remove(&link);
        self.elect();
        out.close(link);
    }

    /// When a client will have been silent for too long.
    pub fn deadline(&self) -> Moment {
        self.clients.values().map(Client::expires).min().unwrap_or(Moment::NEVER)
    }

    /// Ends the connections that have been silent for too long.
    pub fn expire(&mut self, now: Moment, out: &mut Outbox) {
        let silent = |(link, client): (&u32, &Client)| (client.expires() <= now).then_some(*link);
        let silent: Vec<u32> = self.clients.iter().filter_map(silent).collect();
        for link in silent {
            self.refuse(link, "silent for one and a half keep-alives", out);
        }
    }

    /// Publishes to the device; `false` without one.
    pub fn publish(&self, message: &Value, out: &mut Outbox) -> bool {
        let device = self.device.and_then(|link| Some((link, self.clients.get(&link)?)));
        device.is_some_and(|(link, client)| {
            let message = Publish::new(client.topic(), QoS::AtMostOnce, message.to_string());
            out.mqtt(link, &Packet::Publish(message))
        })
    }

    fn connect(&mut self, link: u32, level: u8, client: Client, out: &mut Outbox) {
        if level != 4 {
            let code = ConnectReturnCode::RefusedProtocolVersion;
            out.mqtt(link, &Packet::ConnAck(ConnAck::new(code, false)));
            return self.refuse(link, &format!("protocol level {level}, not 4"), out);
        }
        let same = |(_, other): &(&u32, &Client)| !client.id.is_empty() && other.id == client.id;
        if let Some((&old, _)) = self.clients.iter().find(same) {
            self.refuse(old, "its client has connected anew", out);
        }
        self.clients.insert(link, client);
        self.elect();
        out.mqtt(link, &Packet::ConnAck(ConnAck::new(ConnectReturnCode::Success, false)));
    }

    /// The device stays who it is; else it is the latest of those that it may be.
    fn elect(&mut self) {
        let may_be = |link: &u32| {
            let client = self.clients.get(link);
            client.is_some_and(|client| self.expected.as_ref().is_none_or(|id| *id == client.id))
        };
        let device = self.device.filter(may_be);
        self.device = device.or_else(|| self.clients.keys().copied().rev().find(may_be));
    }

    fn refuse(&mut self, link: u32, why: &str, out: &mut Outbox) {
        out.refusals.push(format!("connection {link} closed: {why}"));
        self.close(link, out);
    }
}
