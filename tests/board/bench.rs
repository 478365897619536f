//! The smallest bench that a software board is content with: a config endpoint, an MQTT gateway,
//! and ears for everything that it does.

use bytes::BytesMut;
use earwitness::board::{Board, Input, Output, Setup, Socket};
use earwitness::time::Moment;
use rumqttc::mqttbytes::QoS;
use rumqttc::mqttbytes::v4::{ConnAck, ConnectReturnCode, Packet, Publish};
use std::time::Duration;

pub const KEY: &str = "fbfe9bbcb03209ec107af1f00feb8d5b";
pub const NONCE: &str = "01000000e53dd56a0000000000000000";

/// A board and the bench around it.
pub struct Bench {
    pub board: Board,
    pub now: Moment,
    /// Body of the answer to the config POST.
    pub config: String,
    /// What the board printed, with the times of the lines.
    pub uart: Vec<(Moment, String)>,
    /// What it published.
    pub published: Vec<(Moment, String)>,
    /// MQTT packets of other kinds.
    pub packets: Vec<(Moment, Packet)>,
    pub datagrams: Vec<(Moment, Vec<u8>)>,
    pub sound: Vec<(Moment, Vec<f32>)>,
    /// Requests that the config endpoint got.
    pub posts: Vec<String>,
    pub opened: Vec<(Socket, String, u16)>,
    pub outputs: Vec<(Moment, Output)>,
    received: BytesMut,
    post: Vec<u8>,
}

impl Bench {
    /// A board with power.
    pub fn new(setup: Setup) -> Bench {
        let mut bench = Bench {
            board: Board::new(setup),
            now: Moment::START,
            config: config("127.0.0.1:1883"),
            uart: Vec::new(),
            published: Vec::new(),
            packets: Vec::new(),
            datagrams: Vec::new(),
            sound: Vec::new(),
            posts: Vec::new(),
            opened: Vec::new(),
            outputs: Vec::new(),
            received: BytesMut::new(),
            post: Vec::new(),
        };
        bench.board.input(Moment::START, Input::Power);
        bench
    }

    /// A board that is online.
    pub fn online(setup: Setup) -> Bench {
        let mut bench = Bench::new(setup);
        bench.until("State: activating -> idle", 200.0);
        bench.run(1.0);
        bench
    }

    /// Lets `seconds` pass.
    pub fn run(&mut self, seconds: f64) {
        let until = self.now + Duration::from_secs_f64(seconds);
        while let Some(at) = self.board.next_at().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            for (at, output) in self.board.advance(self.now) {
                assert!(at <= self.now, "an output of the future");
                self.see(at, output);
            }
        }
        self.now = until;
        for (at, output) in self.board.advance(until) {
            self.see(at, output);
        }
    }

    /// Lets time pass until the board prints a line with `text`; panics after `limit` seconds.
    pub fn until(&mut self, text: &str, limit: f64) {
        let (first, deadline) = (self.uart.len(), self.now + Duration::from_secs_f64(limit));
        while !self.uart[first..].iter().any(|(_, line)| line.contains(text)) {
            assert!(self.now < deadline, "no `{text}` in {:#?}", &self.uart[first..]);
            self.run(0.01);
        }
    }

    pub fn input(&mut self, input: Input<'_>) {
        self.board.input(self.now, input);
    }

    fn see(&mut self, at: Moment, output: Output) {
        self.outputs.push((at, output.clone()));
        match output {
            Output::Uart(bytes) => {
                let line = String::from_utf8_lossy(&bytes).trim_end_matches("\r\n").to_owned();
                self.uart.push((at, line));
            }
            Output::Open(socket, host, port) => {
                self.opened.push((socket, host, port));
                self.received.clear();
                self.post.clear();
                self.input(Input::Connected(socket));
            }
            Output::Send(Socket::Config, bytes) => self.config_request(&bytes),
            Output::Send(Socket::Mqtt, bytes) => {
                self.received.extend_from_slice(&bytes);
                while let Ok(packet) = Packet::read(&mut self.received, 1 << 20) {
                    self.packet(at, packet);
                }
            }
            Output::Close(_) => {}
            Output::Datagram(bytes, ..) => self.datagrams.push((at, bytes)),
            Output::Speaker(samples) => self.sound.push((at, samples)),
        }
    }

    fn config_request(&mut self, bytes: &[u8]) {
        self.post.extend_from_slice(bytes);
        self.posts.push(String::from_utf8(std::mem::take(&mut self.post)).unwrap());
        let length = self.config.len();
        let header = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        let answer = header + &self.config;
        // In two pieces, as TCP may do it.
        let (a, b) = answer.as_bytes().split_at(answer.len() / 2);
        self.input(Input::Received(Socket::Config, a));
        self.input(Input::Received(Socket::Config, b));
    }

    fn packet(&mut self, at: Moment, packet: Packet) {
        match packet {
            Packet::Publish(publish) => {
                assert_eq!(publish.topic, "device-server");
                let text = String::from_utf8_lossy(&publish.payload).into_owned();
                if text.contains(r#""type":"hello""#) {
                    self.publish(&server_hello());
                }
                self.published.push((at, text));
            }
            Packet::Connect(connect) => {
                self.packets.push((at, Packet::Connect(connect)));
                self.send(&Packet::ConnAck(ConnAck::new(ConnectReturnCode::Success, false)));
            }
            other => {
                if other == Packet::PingReq {
                    self.send(&Packet::PingResp);
                }
                self.packets.push((at, other));
            }
        }
    }

    fn send(&mut self, packet: &Packet) {
        let mut bytes = BytesMut::new();
        packet.write(&mut bytes, 1 << 20).unwrap();
        self.input(Input::Received(Socket::Mqtt, &bytes));
    }

    /// Publishes a message to the board.
    pub fn publish(&mut self, text: &str) {
        self.send(&Packet::Publish(Publish::new("devices/p2p/x", QoS::AtMostOnce, text)));
    }

    /// Sends an MCP request and lets `seconds` pass; returns the payloads that came back.
    pub fn mcp(&mut self, request: &str, seconds: f64) -> Vec<String> {
        let first = self.published.len();
        self.publish(&format!(r#"{{"session_id":"s","type":"mcp","payload":{request}}}"#));
        self.run(seconds);
        let replies = self.published[first..].iter();
        replies.filter_map(|(_, text)| payload(text)).collect()
    }

    /// Calls a tool; returns the text of its result.
    pub fn call(&mut self, tool: &str, arguments: &str) -> Option<String> {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
        let reply: serde_json::Value =
            serde_json::from_str(self.mcp(&request, 0.3).first()?).unwrap();
        Some(reply.pointer("/result/content/0/text")?.as_str()?.to_owned())
    }

    pub fn set_volume(&mut self, volume: i32) -> Option<String> {
        self.call("self.audio_speaker.set_volume", &format!(r#"{{"volume":{volume}}}"#))
    }

    /// The volume that the board reports.
    pub fn volume(&mut self) -> i64 {
        let text = self.call("self.get_device_status", "{}").unwrap();
        let status: serde_json::Value = serde_json::from_str(&text).unwrap();
        status["audio_speaker"]["volume"].as_i64().unwrap()
    }

    /// Presses BOOT for 100 ms.
    pub fn press(&mut self) {
        self.input(Input::Button { down: true });
        self.run(0.1);
        self.input(Input::Button { down: false });
    }

    /// How many lines with `text` there were.
    pub fn lines(&self, text: &str) -> usize {
        self.uart.iter().filter(|(_, line)| line.contains(text)).count()
    }
}

/// The MCP payload of a message, raw: it need not be JSON.
pub fn payload(text: &str) -> Option<String> {
    let (_, payload) = text.split_once(r#""type":"mcp","payload":"#)?;
    Some(payload.strip_suffix('}')?.to_owned())
}

pub fn config(endpoint: &str) -> String {
    serde_json::json!({
        "server_time": {"timestamp": 1796072251018u64, "timezone_offset": 0},
        "firmware": {"version": "2.4.2", "url": ""},
        "mqtt": {
            "endpoint": endpoint,
            "client_id": "GID_bench@@@24_6f",
            "username": "bench",
            "password": "bench",
            "publish_topic": "device-server",
            "subscribe_topic": "null",
        },
    })
    .to_string()
}

pub fn server_hello() -> String {
    serde_json::json!({
        "type": "hello",
        "transport": "udp",
        "session_id": "s-1",
        "audio_params": {
            "format": "opus", "sample_rate": 24000, "channels": 1, "frame_duration": 60,
        },
        "udp": {"server": "127.0.0.1", "port": 49423, "key": KEY, "nonce": NONCE},
    })
    .to_string()
}
