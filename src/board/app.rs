//! The application: its states, its one main task, and what it makes of messages.

use super::boot::Cause;
use super::codec::Json;
use super::tools::Argument;
use super::{Board, Event, Fault};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The state machine's states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Unknown,
    Starting,
    WifiConfiguring,
    Idle,
    Connecting,
    Listening,
    Speaking,
    Upgrading,
    Activating,
    AudioTesting,
}

impl State {
    fn allows(self, next: State) -> bool {
        use State::*;
        let allowed: &[State] = match self {
            Unknown => &[Starting],
            Starting => &[WifiConfiguring, Activating],
            WifiConfiguring => &[Activating, AudioTesting],
            AudioTesting => &[WifiConfiguring],
            Activating => &[Upgrading, Idle, WifiConfiguring],
            Upgrading => &[Idle, Activating],
            Idle => &[Connecting, Listening, Speaking, Activating, Upgrading, WifiConfiguring],
            Connecting => &[Idle, Listening],
            Listening => &[Speaking, Idle],
            Speaking => &[Listening, Idle],
        };
        allowed.contains(&next)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Unknown => "unknown",
            State::Starting => "starting",
            State::WifiConfiguring => "wifi_configuring",
            State::Idle => "idle",
            State::Connecting => "connecting",
            State::Listening => "listening",
            State::Speaking => "speaking",
            State::Upgrading => "upgrading",
            State::Activating => "activating",
            State::AudioTesting => "audio_testing",
        })
    }
}

/// What the main task does, one after the other.
#[derive(Debug)]
pub(super) enum Job {
    /// Sends an MCP payload.
    Send(String),
    /// Runs a tool: request id, tool, arguments.
    Call(i32, usize, Vec<Argument>),
    ActivationDone,
    /// Tells by its sound that the board is ready.
    Chime,
    Entered(State),
    Toggle,
    OpenChannel,
    CloseChannel {
        goodbye: bool,
    },
    ChannelClosed,
    StartSpeaking,
    StopSpeaking,
    /// Restarts, after a second if a tool asked for it.
    Reboot {
        tool: bool,
    },
    Upgrade(String),
}

/// What the main task waits for while nothing else can run on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The pause of `self.reboot` before it restarts.
    BeforeReboot,
    /// The pause of every restart.
    Restart {
        tool: bool,
    },
    Hello,
    /// The end of what is being played.
    Drain,
    Download,
    AfterDownload,
}

/// The main task: it takes all jobs that wait and runs them in order; what they queue meanwhile
/// waits for the next turn.
#[derive(Debug, Default)]
pub(super) struct MainTask {
    queue: VecDeque<Job>,
    batch: VecDeque<Job>,
    wait: Option<(Wait, u64)>,
    turn_planned: bool,
}

/// How often the main loop prints free memory when the state doesn't change.
const HEARTBEAT: Duration = Duration::from_secs(10);

impl Board {
    pub(super) fn schedule(&mut self, job: Job) {
        self.ram.main.queue.push_back(job);
        self.wake();
    }

    fn wake(&mut self) {
        let main = &mut self.ram.main;
        if main.wait.is_none() && !main.turn_planned {
            main.turn_planned = true;
            let turn = self.about(300, 1_500);
            self.plan(turn, Event::Turn);
        }
    }

    pub(super) fn turn(&mut self) {
        let main = &mut self.ram.main;
        main.turn_planned = false;
        if main.wait.is_some() {
            return;
        }
        if main.batch.is_empty() {
            main.batch = std::mem::take(&mut main.queue);
        }
        while let Some(job) = self.ram.main.batch.pop_front() {
            self.run(job);
            if self.ram.main.wait.is_some() {
                return;
            }
        }
        if !self.ram.main.queue.is_empty() {
            self.wake();
        }
    }

    /// Blocks the main task, at most for `limit`.
    pub(super) fn wait(&mut self, wait: Wait, limit: Duration) {
        let number = self.number();
        self.ram.main.wait = Some((wait, number));
        self.plan(limit, Event::WaitOver(number));
    }

    pub(super) fn waits_for(&self, wait: Wait) -> bool {
        self.ram.main.wait.is_some_and(|(waits, _)| waits == wait)
    }

    /// Lets the main task go on before the limit.
    pub(super) fn resume(&mut self) {
        self.ram.main.wait = None;
        self.wake();
    }

    pub(super) fn wait_over(&mut self, number: u64) {
        let Some((wait, _)) = self.ram.main.wait.filter(|(_, current)| *current == number) else {
            return;
        };
        self.resume();
        match wait {
            Wait::BeforeReboot if self.has(Fault::NoReboot) => {}
            Wait::BeforeReboot => self.reboot(true),
            Wait::Restart { tool } => {
                let cause = if tool { Cause::Rebooted } else { Cause::Restart };
                self.reset(cause, Duration::from_millis(20));
            }
            Wait::Hello => self.no_hello(),
            Wait::Drain => self.drained(),
            Wait::Download => self.download_failed(),
            Wait::AfterDownload => self.log('E', "MCP", "Firmware upgrade failed"),
        }
    }

    fn run(&mut self, job: Job) {
        match job {
            Job::Send(payload) => self.send_mcp(&payload),
            Job::Call(id, tool, arguments) => self.call(id, tool, &arguments),
            Job::ActivationDone => self.activation_done(),
            Job::Chime => self.chime(),
            Job::Entered(state) => self.entered(state),
            Job::Toggle => self.toggle(),
            Job::OpenChannel => self.open_channel(),
            Job::CloseChannel { goodbye } => self.close_channel(goodbye),
            Job::ChannelClosed => {
                self.display(&["Role:system", "     "]);
                self.set_state(State::Idle);
            }
            Job::StartSpeaking => {
                if matches!(self.ram.state, State::Idle | State::Listening) {
                    self.set_state(State::Speaking);
                }
            }
            Job::StopSpeaking => {
                if self.ram.state == State::Speaking {
                    self.set_state(State::Listening);
                }
            }
            Job::Reboot { tool: true } => self.wait(Wait::BeforeReboot, Duration::from_secs(1)),
            Job::Reboot { tool: false } => self.reboot(false),
            Job::Upgrade(url) => self.upgrade(&url),
        }
    }

    pub(super) fn set_state(&mut self, next: State) {
        let state = self.ram.state;
        if state == next {
            return;
        }
        if !state.allows(next) {
            let text = format!("Invalid state transition: {state} -> {next}");
            return self.log('W', "StateMachine", &text);
        }
        self.ram.state = next;
        self.log('I', "StateMachine", &format!("State: {state} -> {next}"));
        self.restart_heartbeat();
        self.schedule(Job::Entered(next));
    }

    fn restart_heartbeat(&mut self) {
        self.ram.heartbeat = self.number();
        self.plan(HEARTBEAT, Event::Heartbeat(self.ram.heartbeat));
    }

    pub(super) fn heartbeat(&mut self, number: u64) {
        if number == self.ram.heartbeat {
            // Printed by the main loop: none while it is blocked.
            if self.ram.main.wait.is_none() {
                self.log('I', "SystemInfo", "free sram: 143211 minimal sram: 120487");
            }
            self.restart_heartbeat();
        }
    }

    fn entered(&mut self, state: State) {
        if state != self.ram.state {
            return;
        }
        match state {
            State::Idle => self.display(&["SetStatus: Standby", "SetEmotion: neutral"]),
            State::Connecting => self.display(&[
                "SetStatus: Connecting...",
                "SetEmotion: neutral",
                "Role:system",
                "     ",
            ]),
            State::Listening => {
                self.display(&["SetStatus: Listening...", "SetEmotion: neutral"]);
                self.wait_for_silence();
            }
            State::Speaking => {
                self.display(&["SetStatus: Speaking..."]);
                self.ram.playback.clear();
            }
            _ => {}
        }
    }

    fn activation_done(&mut self) {
        self.log('I', "Application", "Activation done");
        self.log('I', "SystemInfo", "free sram: 143211 minimal sram: 120487");
        self.set_state(State::Idle);
        self.display(&["ShowNotification: Ver 2.4.2", "Role:system", "     "]);
        self.schedule(Job::Chime);
    }

    pub(super) fn button(&mut self, down: bool) {
        match (down, self.ram.button_down.take()) {
            (true, _) => self.ram.button_down = Some(self.now),
            (false, Some(since)) => {
                // Debounced below 10 ms, a long press from 1.5 s; a click is reported when no
                // second one can follow.
                let held = self.now - since;
                if (Duration::from_millis(10)..Duration::from_millis(1500)).contains(&held) {
                    self.plan(Duration::from_millis(180), Event::Click);
                }
            }
            (false, None) => {}
        }
    }

    pub(super) fn click(&mut self) {
        match self.ram.state {
            State::Starting => self.enter_wifi_config(),
            State::WifiConfiguring => self.set_state(State::AudioTesting),
            State::AudioTesting => self.set_state(State::WifiConfiguring),
            _ => self.schedule(Job::Toggle),
        }
    }

    fn toggle(&mut self) {
        match self.ram.state {
            State::Activating => self.set_state(State::Idle),
            State::Idle => {
                self.set_state(State::Connecting);
                self.schedule(Job::OpenChannel);
            }
            State::Listening => self.close_channel(true),
            State::Speaking => self.send_abort(),
            _ => {}
        }
    }

    /// A message from the server; runs on the network task.
    pub(super) fn message(&mut self, bytes: &[u8]) {
        let Some(message) = Json::parse(bytes) else {
            let text = String::from_utf8_lossy(bytes);
            return self.log('E', "MQTT", &format!("Failed to parse json message {text}"));
        };
        let Some(kind) = message.text("type") else {
            return self.log('E', "MQTT", "Message type is invalid");
        };
        let text = message.text("text");
        match kind {
            "hello" => self.server_hello(&message),
            "goodbye" => self.server_goodbye(&message),
            "mcp" => {
                if let Some(payload) = message.get("payload").filter(|payload| payload.is_object())
                {
                    self.mcp(payload);
                }
            }
            "tts" => match message.text("state") {
                Some("start") => self.schedule(Job::StartSpeaking),
                Some("stop") => self.schedule(Job::StopSpeaking),
                Some("sentence_start") => self.said("<<", text),
                _ => {}
            },
            "stt" => self.said(">>", text),
            "llm" => {
                if let Some(emotion) = message.text("emotion") {
                    self.display(&[&format!("SetEmotion: {emotion}")]);
                }
            }
            "system" => match message.text("command") {
                Some("reboot") => {
                    self.log('I', "Application", "System command: reboot");
                    self.schedule(Job::Reboot { tool: false });
                }
                Some(other) => {
                    let text = format!("Unknown system command: {other}");
                    self.log('W', "Application", &text);
                }
                None => {}
            },
            "alert" => {
                let parts = ["emotion", "status", "message"].map(|part| message.text(part));
                if let [Some(emotion), Some(status), Some(message)] = parts {
                    self.alert(emotion, status, message);
                    self.buzz();
                }
            }
            other => self.log('W', "Application", &format!("Unknown message type: {other}")),
        }
    }

    fn said(&mut self, mark: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.log('I', "Application", &format!("{mark} {text}"));
        }
    }

    pub(super) fn alert(&mut self, emotion: &str, status: &str, message: &str) {
        self.log('W', "Application", &format!("Alert [{emotion}] {status}: {message}"));
    }

    /// What both ways to restart end in.
    fn reboot(&mut self, tool: bool) {
        self.log('I', "Application", "Rebooting...");
        if self.ram.channel.is_open() {
            self.close_channel(true);
        }
        self.mqtt_goodbye();
        if self.ram.playback.input_enabled {
            self.log('I', "AudioCodec", "Set input enable to false");
        }
        for task in ["Audio input", "Opus codec", "Audio output"] {
            self.log('W', "AudioService", &format!("{task} task stopped"));
        }
        self.ram.playback.stop();
        let pause = self.about(1_000_000, 1_060_000);
        self.wait(Wait::Restart { tool }, pause);
    }

    /// Every upgrade of this board meets a server that isn't there.
    pub(super) fn upgrade(&mut self, url: &str) {
        self.set_state(State::Upgrading);
        let pause = Duration::from_secs(4);
        self.alert("download", "New version", url);
        self.wait(Wait::Download, pause);
    }

    fn download_failed(&mut self) {
        self.log('E', "Ota", "Failed to open HTTP connection");
        let text = "Firmware upgrade failed, restarting audio service and continuing operation...";
        self.log('E', "Application", text);
        self.wait(Wait::AfterDownload, Duration::from_secs(3));
    }
}
