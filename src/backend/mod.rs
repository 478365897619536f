//! THE PART WE PLAY towards the device: config endpoint, MQTT gateway, hello, MCP client, speech.
//!
//! Sans-I/O: facts in, commands out, and the instant at which it wants to be called again. No
//! clock, no socket, no chance: ids, keys and session ids derive from a seed, so that the same
//! facts at the same moments always give the same commands.
//!
//! What it sends comes back as facts from the bench (the echo of each command); of those it reads
//! only its own MCP requests, to pair them with their replies. The rules that the firmware imposes
//! are those of facts/xiaozhi.md 2.3, 2.7 and 4.

mod channel;
mod config;
mod discovery;
mod gateway;
mod outbox;
mod seed;
mod speech;

pub use discovery::Discovery;

use self::channel::Channel;
use self::discovery::{Next, Search};
use self::gateway::Gateway;
use self::outbox::Outbox;
use self::speech::{Sends, Speech};
use crate::decode::{Fact, HttpMessage, What, udp};
use crate::journal::{Command, Party};
use crate::time::Moment;
use serde_json::{Value, json};
use std::sync::Arc;

/// What the backend must be told of the bench and of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Ids, keys and session ids derive from it.
    pub seed: u64,
    /// Calendar time of [`Moment::START`], milliseconds since 1970-01-01 UTC; the server time that
    /// the device is told counts from there.
    pub started_at_unix_ms: u64,
    /// IPv4 address or host name under which the device reaches the bench. One with a `:` or a
    /// `/` would crash the board, so it is never told one.
    pub host: String,
    /// TCP port of the MQTT gateway; not 8883, for there the firmware expects TLS.
    pub mqtt_port: u16,
    /// UDP port for audio.
    pub udp_port: u16,
    /// MQTT keep-alive that the device is told, seconds.
    pub keepalive: u16,
}

/// The bench as its device sees it.
#[derive(Debug)]
pub struct Backend {
    settings: Settings,
    gateway: Gateway,
    /// Hellos answered so far.
    channels: u64,
    channel: Option<Channel>,
    speech: Option<Speech>,
    search: Option<Search>,
    discovery: Discovery,
    next_id: i64,
    out: Outbox,
}

impl Backend {
    /// A backend that nobody has talked to.
    pub fn new(settings: Settings) -> Backend {
        Backend {
            next_id: seed::first_id(settings.seed),
            settings,
            gateway: Gateway::default(),
            channels: 0,
            channel: None,
            speech: None,
            search: None,
            discovery: Discovery::Failed { why: "nobody asked for the tools".into() },
            out: Outbox::default(),
        }
    }

    /// Reacts to a fact, in the order of the decoder; `now` is when the fact came to be known.
    pub fn note(&mut self, now: Moment, fact: &Fact) {
        let before = self.gateway.device();
        match (&fact.what, fact.link) {
            (What::Http(message), Some(link)) if message.from == Party::Device => {
                self.answer(now, link, message);
            }
            (What::Mqtt { from: Party::Device, packet }, Some(link)) => {
                self.gateway.packet(now, link, packet, &mut self.out);
            }
            (What::Ignored { why }, Some(link)) => self.gateway.ignored(link, why, &mut self.out),
            (What::Disconnected { .. }, Some(link)) => self.gateway.lost(link),
            (What::Audio { from: Party::Device, .. }, None) => {
                self.channel.iter_mut().for_each(|channel| channel.spoken = true);
            }
            (what, Some(link)) if is_message(what) => {
                let known = self.gateway.message(now, link, &mut self.out);
                if let (true, What::Message { body, .. }) = (known, what) {
                    self.message(body);
                }
            }
            _ => {}
        }
        if self.gateway.device() != before {
            self.control_ended();
        }
        self.search(fact);
    }

    /// When [`advance`](Self::advance) wants to be called: a packet of sound is due, or a client
    /// has been silent for too long. [`Moment::NEVER`] if nothing is.
    pub fn deadline(&self) -> Moment {
        let speech = self.speech.as_ref().map_or(Moment::NEVER, Speech::due);
        speech.min(self.gateway.deadline())
    }

    /// Does what is due at `now`.
    pub fn advance(&mut self, now: Moment) {
        let before = self.gateway.device();
        self.gateway.expire(now, &mut self.out);
        if self.gateway.device() != before {
            self.control_ended();
        }
        while let (Some(speech), Some(channel)) = (&mut self.speech, &mut self.channel) {
            match speech.next(now) {
                Some(Sends::Packet(opus)) => {
                    self.out.commands.extend(channel.seal(opus).map(Outbox::datagram));
                }
                Some(Sends::Stop) => self.stop_speaking(),
                None => return,
            }
        }
    }

    /// The commands since the last call, in order.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.out.commands)
    }

    /// What it refused and which connection it closed for it, one sentence each, since the last
    /// call; they belong into the journal beside the commands.
    pub fn take_refusals(&mut self) -> Vec<String> {
        std::mem::take(&mut self.out.refusals)
    }

    /// Whether the device has a control channel.
    pub fn is_online(&self) -> bool {
        self.gateway.device().is_some()
    }

    /// Whether sound can be sent: hellos were exchanged, and the device has spoken since, so that
    /// its UDP address is known.
    pub fn has_channel(&self) -> bool {
        self.channel.as_ref().is_some_and(|channel| channel.spoken)
    }

    /// Sends a JSON-RPC request and returns its id, which no other request of the run has
    /// (1 to 2^31-1). `params` are left out when they are null. `None` without a control channel.
    pub fn request(&mut self, method: &str, params: Value) -> Option<i64> {
        let id = self.next_id;
        let mut payload = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        if !params.is_null() {
            payload["params"] = params;
        }
        self.send_mcp(payload).then(|| {
            self.next_id = seed::next_id(id);
            id
        })
    }

    /// Calls a tool; see [`request`](Self::request). Arguments that are null are sent as `{}`.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Option<i64> {
        let arguments = if arguments.is_null() { json!({}) } else { arguments };
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Plays Opus packets (24 kHz mono, 60 ms each): `tts start` now, the packets from 200 ms
    /// later on, paced and at most five ahead of what can have been played, and `tts stop` when
    /// all of them were. `false`, and nothing is sent, without a channel, while it is speaking,
    /// and when a packet is empty or longer than a datagram can hold.
    pub fn speak(&mut self, now: Moment, packets: Arc<[Vec<u8>]>) -> bool {
        let fits = |packet: &Vec<u8>| (1..=udp::MAX_PAYLOAD).contains(&packet.len());
        if !self.has_channel() || self.is_speaking() || !packets.iter().all(fits) {
            return false;
        }
        let started = self.send_tts("start");
        if started {
            self.speech = Some(Speech::new(now, packets));
        }
        started
    }

    /// Whether a [`speak`](Self::speak) is under way: until `tts stop` was sent, the device
    /// aborted it, or the channel ended.
    pub fn is_speaking(&self) -> bool {
        self.speech.is_some()
    }

    /// Ends the channel with a goodbye, which the device doesn't return; `false` without one.
    pub fn goodbye(&mut self) -> bool {
        let open = self.channel.is_some();
        if open {
            self.send(&json!({ "type": "goodbye", "session_id": self.session_id() }));
            self.channel_ended();
        }
        open
    }

    /// Starts to ask for the complete list of tools, of the user-only ones too if `user_tools`:
    /// `initialize`, `notifications/initialized`, then each page of `tools/list`. An earlier
    /// search is forgotten. `false`, and [`Discovery::Failed`], without a control channel.
    pub fn discover(&mut self, user_tools: bool) -> bool {
        self.search = None;
        let id = self.request("initialize", discovery::initialize());
        (self.search, self.discovery) = match id {
            Some(id) => (Some(Search::new(id, user_tools)), Discovery::Running),
            None => (None, Discovery::Failed { why: "there is no control channel".into() }),
        };
        id.is_some()
    }

    /// How the last [`discover`](Self::discover) stands. Nothing here limits how long it may wait
    /// for a reply.
    pub fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    fn answer(&mut self, now: Moment, link: u32, request: &HttpMessage) {
        if self.gateway.is_closed(link) {
            return;
        }
        match config::answer(&self.settings, now, request) {
            Ok(config) => {
                self.gateway.expect(config.client_id, &mut self.out);
                self.out.send(link, config.response);
            }
            Err(refusal) => {
                self.out.send(link, refusal.response);
                self.out.refusals.push(refusal.why);
            }
        }
        self.gateway.close(link, &mut self.out);
    }

    /// A message of the device on its control channel.
    fn message(&mut self, body: &Value) {
        let word = |name: &str| body.get(name).and_then(Value::as_str);
        match (word("type"), word("transport")) {
            (Some("hello"), Some("udp")) => {
                self.channel_ended();
                let channel = Channel::new(self.settings.seed, self.channels);
                self.channels += 1;
                let hello = channel.hello(&self.settings.host, self.settings.udp_port);
                self.channel = Some(channel);
                self.send(&hello);
            }
            (Some("hello"), other) => {
                let other = other.unwrap_or("none");
                self.out.refusals.push(format!("a hello for the transport {other}, not udp"));
            }
            (Some("goodbye"), _) => self.channel_ended(),
            (Some("abort"), _) if self.is_speaking() => self.stop_speaking(),
            _ => {}
        }
    }

    fn search(&mut self, fact: &Fact) {
        let Some(search) = &mut self.search else { return };
        match search.note(fact) {
            Some(Next::Ask { announce, method, params }) => {
                if announce {
                    let method = "notifications/initialized";
                    self.send_mcp(json!({ "jsonrpc": "2.0", "method": method }));
                }
                let id = self.request(method, params);
                self.search.iter_mut().zip(id).for_each(|(search, id)| search.asked(id));
            }
            Some(Next::End(discovery)) => {
                self.search = None;
                self.discovery = discovery;
            }
            None => {}
        }
    }

    /// The control channel is gone, even if there is another one.
    fn control_ended(&mut self) {
        self.channel_ended();
        if self.search.take().is_some() {
            self.discovery = Discovery::Failed { why: "the control channel ended".into() };
        }
    }

    fn channel_ended(&mut self) {
        self.speech = None;
        self.channel = None;
    }

    fn stop_speaking(&mut self) {
        self.speech = None;
        self.send_tts("stop");
    }

    fn session_id(&self) -> &str {
        self.channel.as_ref().map_or("", |channel| &channel.session_id)
    }

    fn send_tts(&mut self, state: &str) -> bool {
        self.send(&json!({ "type": "tts", "state": state, "session_id": self.session_id() }))
    }

    fn send_mcp(&mut self, payload: Value) -> bool {
        let session_id = self.session_id();
        self.send(&json!({ "session_id": session_id, "type": "mcp", "payload": payload }))
    }

    fn send(&mut self, message: &Value) -> bool {
        self.gateway.publish(message, &mut self.out)
    }
}

/// Whether the device sent it as the payload of a PUBLISH.
fn is_message(what: &What) -> bool {
    match what {
        What::Message { from, .. } | What::Malformed { from, .. } => *from == Party::Device,
        What::Request(request) => request.from == Party::Device,
        What::Reply(reply) => reply.from == Party::Device,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
