//! THE SOFTWARE BOARD: an imitation of an ESP32 voice board with the xiaozhi firmware, and of the
//! room that it stands in. Bytes and moments go in, bytes and sound come out; it holds no clock,
//! no socket and no file.
//!
//! It reads the protocols on its own, without the ears that judge it.

mod app;
mod boot;
mod channel;
mod codec;
mod config;
mod mcp;
mod mqtt;
mod playback;
mod room;
mod setup;
mod tools;

use crate::audio::noise::Noise;
use crate::time::Moment;
use app::{MainTask, State};
use boot::Cause;
use channel::Channel;
use codec::Json;
use config::Http;
use mcp::Screen;
use mqtt::Mqtt;
use playback::Playback;
use std::collections::BTreeMap;
use std::time::Duration;
use tools::Tool;

pub use room::{Acoustics, Room};
pub use setup::{Build, Fault, FaultError, Setup};

/// The board's TCP connections; UDP has its own inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Socket {
    /// To the config endpoint, HTTP.
    Config,
    /// To the MQTT endpoint.
    Mqtt,
}

/// What happens to the board.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// It gets power (again); before the first time it does nothing.
    Power,
    /// Somebody pulls EN.
    Reset,
    /// The BOOT button.
    Button {
        /// Pressed or released.
        down: bool,
    },
    /// A connection that it opened stands.
    Connected(Socket),
    /// A connection that it opened was refused.
    Refused(Socket),
    /// Bytes came.
    Received(Socket, &'a [u8]),
    /// The other side closed.
    Closed(Socket),
    /// A datagram came from the audio server.
    Datagram(&'a [u8]),
}

/// What the board does.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Bytes on UART0.
    Uart(Vec<u8>),
    /// Connects to a host and port. An earlier connection of the same name is dead by then, even
    /// if nobody closed it: a reset forgets connections.
    Open(Socket, String, u16),
    /// Sends bytes.
    Send(Socket, Vec<u8>),
    /// Closes a connection.
    Close(Socket),
    /// Sends a datagram to a host and port.
    Datagram(Vec<u8>, String, u16),
    /// Sound: 24 kHz mono, full scale 1.0; the first sample sounds at the output's time.
    Speaker(Vec<f32>),
}

/// What the board has set itself to do later. A number says which of several it belongs to: an
/// event whose number is no longer the current one does nothing.
#[derive(Debug)]
enum Event {
    Banner(Cause),
    EarlyBoot,
    StartApp,
    Panic,
    FoundAp,
    Associated,
    CheckConfig,
    ConfigTimeout(u64),
    MqttTimeout(u64),
    MqttReconnect(u64),
    Ping(u64),
    Turn,
    WaitOver(u64),
    Click,
    Heartbeat(u64),
    LateReply(String),
    Play,
    OutputOff(u64),
    InputOff(u64),
    Microphone(u64),
}

/// What survives a reset.
#[derive(Debug, Default)]
struct Nvs {
    volume: i32,
    mqtt: BTreeMap<String, Json>,
}

/// What does not.
#[derive(Debug, Default)]
struct Ram {
    state: State,
    main: MainTask,
    http: Http,
    mqtt: Mqtt,
    channel: Channel,
    playback: Playback,
    screen: Screen,
    volume: i32,
    volume_at_boot: i32,
    /// Failed config checks in a row.
    failed_checks: u32,
    websocket: bool,
    button_down: Option<Moment>,
    heartbeat: u64,
}

/// The board. Without [`Input::Power`] it does nothing.
#[derive(Debug)]
pub struct Board {
    setup: Setup,
    tools: Vec<Tool>,
    nvs: Nvs,
    ram: Ram,
    powered: bool,
    booted: Moment,
    /// Panics at every boot from now on.
    looping: bool,
    now: Moment,
    chance: Noise,
    agenda: BTreeMap<(Moment, u64), Event>,
    counter: u64,
    out: Vec<(Moment, Output)>,
}

/// The board's use of the seed.
const BOARD_STREAM: u64 = 0x0b0a_2d00;

impl Board {
    /// A board without power.
    pub fn new(setup: Setup) -> Board {
        Board {
            tools: tools::tools(setup.build),
            nvs: Nvs { volume: setup.volume, mqtt: BTreeMap::new() },
            ram: Ram::default(),
            powered: false,
            booted: Moment::START,
            looping: false,
            now: Moment::START,
            chance: Noise::new(setup.seed, BOARD_STREAM),
            agenda: BTreeMap::new(),
            counter: 0,
            out: Vec::new(),
            setup,
        }
    }

    /// Something happens at `at`, not before anything that was told already; what comes of it is
    /// told by [`Board::advance`].
    pub fn input(&mut self, at: Moment, input: Input<'_>) {
        self.run_until(at);
        match input {
            Input::Power => {
                self.powered = true;
                self.looping = false;
                self.reset(Cause::PowerOn, Duration::from_millis(30));
            }
            _ if !self.powered => {}
            Input::Reset => self.reset(Cause::Enable, Duration::from_millis(30)),
            Input::Button { down } => self.button(down),
            Input::Connected(Socket::Config) => self.config_connected(),
            Input::Refused(Socket::Config) => self.config_refused(),
            Input::Received(Socket::Config, bytes) => self.config_received(bytes),
            Input::Closed(Socket::Config) => self.config_closed(),
            Input::Connected(Socket::Mqtt) => self.mqtt_connected(),
            Input::Refused(Socket::Mqtt) | Input::Closed(Socket::Mqtt) => self.mqtt_lost(),
            Input::Received(Socket::Mqtt, bytes) => self.mqtt_received(bytes),
            Input::Datagram(bytes) => self.datagram(bytes),
        }
    }

    /// When it wants to act next.
    pub fn next_at(&self) -> Option<Moment> {
        let waiting = self.out.first().map(|(at, _)| *at);
        let planned = self.agenda.first_key_value().map(|((at, _), _)| *at);
        waiting.into_iter().chain(planned).min()
    }

    /// Everything that it does up to and at `now`, in order.
    pub fn advance(&mut self, now: Moment) -> Vec<(Moment, Output)> {
        self.run_until(now);
        std::mem::take(&mut self.out)
    }

    fn run_until(&mut self, until: Moment) {
        while let Some(entry) = self.agenda.first_entry() {
            let (at, _) = *entry.key();
            if at > until {
                break;
            }
            let event = entry.remove();
            self.now = self.now.max(at);
            self.happen(event);
        }
        self.now = self.now.max(until);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Banner(cause) => self.banner(cause),
            Event::EarlyBoot => self.early_boot(),
            Event::StartApp => self.start_app(),
            Event::Panic => self.panic_in_boot(),
            Event::FoundAp => self.found_ap(),
            Event::Associated => self.associated(),
            Event::CheckConfig => self.check_config(),
            Event::ConfigTimeout(n) => self.config_timeout(n),
            Event::MqttTimeout(n) => self.mqtt_timeout(n),
            Event::MqttReconnect(n) => self.mqtt_reconnect(n),
            Event::Ping(n) => self.ping(n),
            Event::Turn => self.turn(),
            Event::WaitOver(n) => self.wait_over(n),
            Event::Click => self.click(),
            Event::Heartbeat(n) => self.heartbeat(n),
            Event::LateReply(reply) => self.schedule(app::Job::Send(reply)),
            Event::Play => self.play(),
            Event::OutputOff(n) => self.output_off(n),
            Event::InputOff(n) => self.input_off(n),
            Event::Microphone(n) => self.microphone(n),
        }
    }

    fn plan(&mut self, after: Duration, event: Event) {
        let number = self.number();
        self.agenda.insert((self.now + after, number), event);
    }

    /// A number that was never used before.
    fn number(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// A span between two numbers of microseconds, by chance.
    fn about(&mut self, from_us: u64, to_us: u64) -> Duration {
        let drawn = from_us as f64 + self.chance.uniform() * (to_us - from_us) as f64;
        Duration::from_nanos((drawn * 1e3) as u64)
    }

    fn emit(&mut self, output: Output) {
        self.out.push((self.now, output));
    }

    fn uart(&mut self, line: &str) {
        self.emit(Output::Uart(format!("{line}\r\n").into_bytes()));
    }

    /// A log line; the device's clock counts 10 ms ticks from its boot.
    fn log(&mut self, level: char, tag: &str, text: &str) {
        let ticks = (self.now - self.booted).as_millis() / 10 * 10;
        self.uart(&format!("{level} ({ticks}) {tag}: {text}"));
    }

    fn display(&mut self, lines: &[&str]) {
        for line in lines {
            self.log('W', "Display", line);
        }
    }

    fn has(&self, fault: Fault) -> bool {
        self.setup.fault == Some(fault)
    }
}
