//! The audio channel: hello, UDP both ways, listening.

use super::app::{Job, State, Wait};
use super::codec::{HEADER, Json, cipher, hex16, quoted};
use super::{Board, Event, Output};
use std::time::Duration;

/// An audio channel, open or not.
#[derive(Debug, Default)]
pub(super) struct Channel {
    session: String,
    udp: Option<Udp>,
    listening: u64,
}

#[derive(Debug)]
struct Udp {
    host: String,
    port: u16,
    key: [u8; 16],
    nonce: [u8; HEADER],
    sent: u32,
    received: u32,
    /// The longest packet that was announced, in samples at 24 kHz.
    longest: usize,
}

impl Channel {
    pub fn is_open(&self) -> bool {
        self.udp.is_some()
    }
}

const HELLO: &str = concat!(
    r#"{"type":"hello","version":3,"transport":"udp","features":{"mcp":true,"glyph_push":true},"#,
    r#""text_font":{"bundle":"noto-v1","charset":"basic","size":14,"bpp":1},"#,
    r#""audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}"#,
);

/// How long a device waits for the server's hello, or for the end of a sound.
const PATIENCE: Duration = Duration::from_secs(10);

/// A packet of the microphone: 60 ms of SILK wide-band in which nothing is coded, as the encoder
/// sends it for silence (DTX).
const SILENCE: [u8; 1] = [0x58];

/// Largest datagram that the firmware receives.
const MAX_DATAGRAM: usize = 1500;

impl Board {
    pub(super) fn open_channel(&mut self) {
        if self.ram.channel.is_open() {
            return self.set_state(State::Listening);
        }
        if self.ram.websocket || !self.ram.mqtt.is_up() {
            self.log('E', "MQTT", "MQTT is not connected, cannot open the audio channel");
            return self.set_state(State::Idle);
        }
        self.ram.channel.session.clear();
        self.publish(HELLO);
        self.wait(Wait::Hello, PATIENCE);
    }

    pub(super) fn no_hello(&mut self) {
        self.log('E', "MQTT", "Failed to receive server hello");
        self.alert("cloud_slash", "Error", "Waiting for the server timed out");
        self.set_state(State::Idle);
        self.buzz();
    }

    pub(super) fn server_hello(&mut self, hello: &Json) {
        if hello.text("transport") != Some("udp") {
            return self.log('E', "MQTT", "Unsupported transport");
        }
        if let Some(session) = hello.text("session_id") {
            self.ram.channel.session = session.into();
            self.log('I', "MQTT", &format!("Session ID: {session}"));
        }
        let parameter = |name: &str, default| {
            let value = hello.get("audio_params").and_then(|audio| audio.get(name)?.int());
            value.unwrap_or(default)
        };
        let (rate, frame) = (parameter("sample_rate", 24000), parameter("frame_duration", 60));
        let Some(udp) = hello.get("udp").and_then(|udp| endpoint(udp, frame)) else {
            return self.log('E', "MQTT", "UDP is not specified or invalid");
        };
        self.ram.channel.udp = Some(udp);
        if self.waits_for(Wait::Hello) {
            self.resume();
            if rate != 24000 {
                let text = format!(
                    "Server sample rate {rate} does not match device output sample rate 24000, \
                     resampling may cause distortion"
                );
                self.log('W', "Application", &text);
            }
            self.set_state(State::Listening);
        }
    }

    pub(super) fn server_goodbye(&mut self, message: &Json) {
        let session = message.text("session_id").unwrap_or_default();
        self.log('I', "MQTT", &format!("Received goodbye message, session_id: {session}"));
        if session == self.ram.channel.session {
            self.schedule(Job::CloseChannel { goodbye: false });
        }
    }

    pub(super) fn close_channel(&mut self, goodbye: bool) {
        let text = format!("Closing audio channel, send_goodbye: {}", u8::from(goodbye));
        self.log('I', "MQTT", &text);
        if goodbye {
            self.say("goodbye", "");
        }
        self.ram.channel.udp = None;
        self.ram.channel.listening = 0;
        self.schedule(Job::ChannelClosed);
    }

    pub(super) fn send_abort(&mut self) {
        self.log('I', "Application", "Abort speaking");
        self.say("abort", "");
    }

    pub(super) fn send_mcp(&mut self, payload: &str) {
        self.say("mcp", &format!(r#","payload":{payload}"#));
    }

    fn say(&mut self, kind: &str, rest: &str) {
        let session = quoted(&self.ram.channel.session);
        self.publish(&format!(r#"{{"session_id":{session},"type":"{kind}"{rest}}}"#));
    }

    /// Listening begins when what is being played has ended.
    pub(super) fn wait_for_silence(&mut self) {
        match self.ram.playback.is_silent() {
            true => self.drained(),
            false => self.wait(Wait::Drain, PATIENCE),
        }
    }

    pub(super) fn drained(&mut self) {
        if self.ram.state != State::Listening {
            return;
        }
        self.say("listen", r#","state":"start","mode":"auto""#);
        self.ram.channel.listening = self.number();
        let starts = self.about(110_000, 180_000);
        self.plan(starts, Event::Microphone(self.ram.channel.listening));
    }

    /// The microphone has 60 ms more.
    pub(super) fn microphone(&mut self, number: u64) {
        if number != self.ram.channel.listening {
            return;
        }
        if self.ram.state != State::Listening {
            self.ram.channel.listening = 0;
            return self.input_idle();
        }
        if !self.ram.playback.input_enabled {
            self.ram.playback.input_enabled = true;
            self.log('I', "AudioCodec", "Set input enable to true");
        } else if let Some(udp) = &mut self.ram.channel.udp {
            udp.sent = udp.sent.wrapping_add(1);
            let mut header = udp.nonce;
            header[2..4].copy_from_slice(&(SILENCE.len() as u16).to_be_bytes());
            header[8..12].fill(0);
            header[12..].copy_from_slice(&udp.sent.to_be_bytes());
            let mut payload = SILENCE;
            cipher(&udp.key, &header, &mut payload);
            let datagram = [&header[..], &payload].concat();
            let output = Output::Datagram(datagram, udp.host.clone(), udp.port);
            self.emit(output);
        }
        self.plan(Duration::from_millis(60), Event::Microphone(number));
    }

    pub(super) fn datagram(&mut self, bytes: &[u8]) {
        let Some(udp) = &mut self.ram.channel.udp else { return };
        let Some((header, payload)) =
            bytes[..bytes.len().min(MAX_DATAGRAM)].split_first_chunk::<HEADER>()
        else {
            return self.log('E', "MQTT", &format!("Invalid audio packet size: {}", bytes.len()));
        };
        if header[0] != 1 {
            return self.log('E', "MQTT", &format!("Invalid audio packet type: {:x}", header[0]));
        }
        let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|k| header[at + k]));
        let (sequence, length) = (word(12), usize::from(header[2]) << 8 | usize::from(header[3]));
        if length != payload.len() {
            let text = format!("Audio payload length mismatch: {length} != {}", payload.len());
            return self.log('E', "MQTT", &text);
        }
        let (expected, key, longest) = (udp.received.wrapping_add(1), udp.key, udp.longest);
        if sequence < expected || sequence <= udp.received {
            let text = format!("Received duplicate/old audio sequence: {sequence}");
            return self.log('W', "MQTT", &text);
        }
        udp.received = sequence;
        if sequence != expected {
            let text = format!(
                "Received audio packet with wrong sequence: {sequence}, expected: {expected}"
            );
            self.log('W', "MQTT", &text);
        }
        if self.ram.state == State::Speaking {
            let mut packet = payload.to_vec();
            cipher(&key, header, &mut packet);
            self.queue_packet(packet, longest);
        }
    }
}

fn endpoint(udp: &Json, frame_ms: i32) -> Option<Udp> {
    let port = u16::try_from(udp.get("port")?.int()?).ok().filter(|port| *port != 0)?;
    Some(Udp {
        host: udp.text("server")?.into(),
        port,
        key: hex16(udp.text("key")?)?,
        nonce: hex16(udp.text("nonce")?)?,
        sent: 0,
        received: 0,
        longest: usize::try_from(frame_ms).unwrap_or(0).min(120) * 24,
    })
}
