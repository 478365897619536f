//! What waits to be done and to be said.

use crate::journal::{Blob, Command};
use bytes::BytesMut;
use rumqttc::mqttbytes::v4::Packet;

/// Larger than every packet that is sent here.
const MAX_PACKET: usize = 1 << 20;

/// Commands and refusals in order.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub commands: Vec<Command>,
    pub refusals: Vec<String>,
}

impl Outbox {
    /// Bytes for an HTTP connection.
    pub fn send(&mut self, link: u32, bytes: Vec<u8>) {
        self.commands.push(Command::Send { link, bytes: Blob(bytes) });
    }

    /// A packet for an MQTT client; `false` when it is too large.
    pub fn mqtt(&mut self, link: u32, packet: &Packet) -> bool {
        let mut bytes = BytesMut::new();
        let written = packet.write(&mut bytes, MAX_PACKET).is_ok();
        if written {
            self.commands.push(Command::Mqtt { link, packet: Blob(bytes.to_vec()) });
        }
        written
    }

    /// The command for a datagram.
    pub fn datagram(bytes: Vec<u8>) -> Command {
        Command::Datagram { bytes: Blob(bytes) }
    }

    pub fn close(&mut self, link: u32) {
        self.commands.push(Command::Close { link });
    }
}
