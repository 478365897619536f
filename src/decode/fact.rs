//! What records mean. A fact cites its record and carries its boot and connection number, because
//! evidence never crosses either of them unless a question says so.

use super::mcp::{Reply, Request};
use super::uart::{BootEvent, Meaning, UartLine};
use crate::journal::{Edge, Party};
use crate::time::Moment;
use serde::Serialize;
use serde_json::Value;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// Number of the record that holds its first byte.
    pub record: u64,
    /// When that byte was captured; noise before a console line does not count.
    pub at: Moment,
    /// When the last byte of a console line was captured; for anything else the same as `at`.
    pub until: Moment,
    /// Boots seen so far on the console; 0 before the first ROM banner.
    pub boot: u32,
    /// Control connections opened so far; 0 before the first.
    pub connection: u32,
    /// Number of the TCP connection that carried it; `None` for what came another way.
    pub link: Option<u32>,
    /// What happened.
    pub what: What,
}

/// The kinds of facts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A console line.
    Uart(UartLine),
    /// A boot, its reset reason or a panic, as the console tells them.
    Boot(BootEvent),
    /// An HTTP request or response, whole.
    Http(HttpMessage),
    /// The device opened a control channel.
    Connected {
        /// Which kind.
        transport: Transport,
        /// MQTT client id or the `Device-Id` header.
        client: String,
    },
    /// A control channel ended.
    Disconnected {
        /// Which kind.
        transport: Transport,
        /// The device said goodbye (MQTT DISCONNECT) or closed its WebSocket itself.
        orderly: bool,
    },
    /// An MQTT control packet. What a PUBLISH holds, a new control channel and its end have facts
    /// of their own besides.
    Mqtt {
        /// Who sent it.
        from: Party,
        /// Which packet.
        packet: Control,
    },
    /// A JSON message that is not MCP.
    Message {
        /// Who sent it.
        from: Party,
        /// The whole message.
        body: Value,
    },
    /// An MCP request.
    Request(Request),
    /// An MCP reply.
    Reply(Reply),
    /// A message that is no JSON although it should be (the firmware does not escape error texts).
    Malformed {
        /// Who sent it.
        from: Party,
        /// The message as it came.
        raw: String,
        /// The JSON-RPC id that can be read from it all the same.
        id: Option<i64>,
    },
    /// An Opus packet.
    Audio {
        /// Who sent it.
        from: Party,
        /// Sequence number (UDP only).
        sequence: Option<u32>,
        /// The packet; kept for what we sent, empty for the board's microphone.
        opus: Vec<u8>,
    },
    /// Bytes that follow no known protocol; they are no evidence for anything.
    Ignored {
        /// Why.
        why: String,
    },
    /// The bench pressed a button.
    Pressed {
        /// Its name.
        button: String,
    },
    /// The bench's loudspeaker played its beacon.
    Beacon(Beacon),
    /// A step began or ended.
    Step {
        /// The step instance.
        path: String,
        /// Which end.
        edge: Edge,
    },
}

impl What {
    /// Whether the board's firmware said this: not its ROM, not noise, not the bench.
    pub fn is_of_firmware(&self) -> bool {
        use Meaning::{InvalidHeader, Nothing, Reset, RomStart, WaitingForDownload};
        match self {
            What::Uart(UartLine { log, means, .. }) => {
                let rom = matches!(means, RomStart { .. } | Reset(_));
                let rom = rom || matches!(means, WaitingForDownload | InvalidHeader);
                !rom && (log.is_some() || *means != Nothing)
            }
            What::Connected { .. } | What::Disconnected { .. } => true,
            What::Http(HttpMessage { from, .. })
            | What::Message { from, .. }
            | What::Request(Request { from, .. })
            | What::Reply(Reply { from, .. })
            | What::Malformed { from, .. }
            | What::Audio { from, .. } => *from == Party::Device,
            _ => false,
        }
    }
}

/// MQTT control packets, as far as the other end must answer them or can learn from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// CONNECT. Only protocol level 4 (MQTT 3.1.1) opens a control channel; of another level no
    /// more than the level is read.
    Connect {
        /// Protocol level: 3 is MQTT 3.1, 4 is 3.1.1, 5 is 5.0.
        level: u8,
        /// Client id.
        client: String,
        /// Longest silence that the client promises, seconds; 0 is no promise.
        keep_alive: u16,
    },
    /// CONNACK with its return code; 0 is yes.
    ConnAck(u8),
    /// PUBLISH of quality 1 or 2, which wants an answer.
    Publish {
        /// Packet id.
        pkid: u16,
        /// Quality of service, 1 or 2.
        qos: u8,
    },
    /// PUBACK with the packet id.
    PubAck(u16),
    /// PUBREC with the packet id.
    PubRec(u16),
    /// PUBREL with the packet id.
    PubRel(u16),
    /// PUBCOMP with the packet id.
    PubComp(u16),
    /// SUBSCRIBE.
    Subscribe {
        /// Packet id.
        pkid: u16,
        /// Topic filters in order.
        topics: Vec<String>,
    },
    /// SUBACK with the packet id.
    SubAck(u16),
    /// UNSUBSCRIBE with the packet id.
    Unsubscribe(u16),
    /// UNSUBACK with the packet id.
    UnsubAck(u16),
    /// PINGREQ.
    PingReq,
    /// PINGRESP.
    PingResp,
    /// DISCONNECT.
    Disconnect,
    /// No packet at all; the reason is told as `Ignored`.
    Unreadable,
}

/// A sound of the bench's own loudspeaker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Beacon {
    /// Its frequency.
    pub hz: f64,
    /// Level at which the ear should find it, dBFS (AES17).
    pub level_dbfs: f64,
    /// When it began.
    pub from: Moment,
    /// When it ended.
    pub until: Moment,
}

/// The kinds of control channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// MQTT with UDP audio.
    Mqtt,
    /// WebSocket.
    WebSocket,
}

/// An HTTP message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HttpMessage {
    /// Who sent it.
    pub from: Party,
    /// `POST /xiaozhi/ota/` or `200`.
    pub start: String,
    /// Header names (lower case) and values.
    pub headers: Vec<(String, String)>,
    /// The body, lossily decoded.
    pub body: String,
}

impl HttpMessage {
    /// The value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Whether a board asks for its configuration, which it does once a boot until it is answered
    /// (facts/xiaozhi.md 2.2). Its hand-made JSON is not always JSON.
    pub fn asks_for_configuration(&self) -> bool {
        let posted = self.from == Party::Device && self.start.starts_with("POST");
        posted && self.body.contains("\"application\"") && self.body.contains("\"board\"")
    }
}
