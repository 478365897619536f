//! A simulated bench in virtual time: the software board, its room, and the network between them.
//! Chance comes from the seed; what it gave is the first observation of a session.

use super::{Next, Rig, Seen};
use crate::audio::law::Law;
use crate::audio::noise::Noise;
use crate::board::{Acoustics, Board, Fault, Input, Output, Room, Setup, Socket};
use crate::journal::{
    Blob, Command, Observation, Origin, Party, Service, Sound, redact_mqtt_connect,
};
use crate::time::{Moment, SampleIndex};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;

/// The bench's microphone: samples per second, and how often they arrive.
const RATE: u32 = 24_000;
const BLOCK: Duration = Duration::from_millis(100);

/// How long the BOOT button is held.
const PRESS: Duration = Duration::from_millis(100);

/// From the command to the beacon's first sound.
const BEACON_DELAY: Duration = Duration::from_millis(20);
const BEACON_LENGTH: Duration = Duration::from_secs(1);

/// Level of the beacon at the ear, dBFS.
const BEACON_DBFS: f64 = -20.0;

/// The quietest tone that scenarios play, to which the drawn SNR13 refers: -12 dBFS at volume 40.
const QUIETEST: (f64, u32) = (-12.0, 40);

/// The part of a board's MAC that all of them share, and its UUID.
const MAC: [u8; 6] = [0x24, 0x6f, 0x28, 0xaa, 0xbb, 0x01];
const UUID: &str = "7b94d69a-9808-4c59-9c9b-704333b38aff";

/// What is chosen, not drawn.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Where all chance comes from.
    pub seed: u64,
    /// How the board turns a volume into gain.
    pub law: Law,
    /// What is wrong, if anything.
    pub fault: Option<Fault>,
    /// From the board's full output to the ear, dB.
    pub path_gain_db: f64,
    /// Host of the bench as the board reaches it.
    pub host: String,
    /// Port of the config endpoint.
    pub port: u16,
    /// SNR13 of the quietest tone, dB, where it is not drawn (15 to 40 dB).
    pub snr13_db: Option<f64>,
}

/// The simulated bench.
#[derive(Debug)]
pub struct SimRig {
    board: Board,
    room: Room,
    chance: Noise,
    /// Longest time that a message waits in the access point while the board sleeps, seconds.
    wifi_sleep: f64,
    now: Moment,
    events: BinaryHeap<Reverse<Queued>>,
    queued: u64,
    ready: VecDeque<Seen>,
    links: BTreeMap<u32, Link>,
    next_link: u32,
    /// When the last datagram reaches the board.
    datagram_at: Moment,
    heard: u64,
    microphone_at: Moment,
    /// An audio channel is open: the board does not sleep.
    awake: bool,
    config_link: Option<u32>,
    mqtt_link: Option<u32>,
}

#[derive(Debug)]
struct Link {
    socket: Socket,
    /// Bytes of an MQTT packet that is not whole yet.
    pending: Vec<u8>,
    /// When the last byte in each direction arrives: TCP keeps the order.
    to_board: Moment,
    to_bench: Moment,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Queued {
    at: Moment,
    n: u64,
    what: Event,
}

/// What is on its way.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// To the board.
    Connected(u32),
    Received(u32, Vec<u8>),
    ClosedByBench(u32),
    Datagram(Vec<u8>),
    Button(bool),
    /// To the room: the frequency's bits, since numbers with a point have no order.
    Beacon(u64),
    /// To the bench.
    Arrived(u32, Vec<u8>),
    ClosedByBoard(u32),
    DatagramArrived(Vec<u8>),
    Uart(Vec<u8>),
}

impl SimRig {
    /// A bench whose board gets power at the first instant.
    pub fn new(choice: &Choice) -> SimRig {
        let mut chance = Noise::new(choice.seed, 0x51);
        let mut between = |low: f64, high: f64| low + (high - low) * chance.uniform();
        let (snr13, drift, wifi) = (between(15.0, 40.0), between(-100.0, 100.0), between(0.1, 1.0));
        let delay = between(0.001, 0.01);
        let snr13 = choice.snr13_db.unwrap_or(snr13);
        let (dbfs, volume) = QUIETEST;
        let quietest = dbfs + choice.law.gain_db(volume) + choice.path_gain_db;
        let acoustics = Acoustics {
            seed: choice.seed,
            noise_dbfs: quietest - snr13,
            delay: Duration::from_secs_f64(delay),
            drift_ppm: drift,
            gain_db: choice.path_gain_db,
            beacon_dbfs: BEACON_DBFS,
            fault: choice.fault,
        };
        let setup = Setup {
            law: choice.law,
            fault: choice.fault,
            seed: choice.seed,
            config_host: choice.host.clone(),
            config_port: choice.port,
            mac: MAC,
            uuid: UUID.into(),
            ..Setup::default()
        };
        let mut board = Board::new(setup);
        board.input(Moment::START, Input::Power);
        let drew = [
            ("snr13_db", snr13),
            ("drift_ppm", drift),
            ("wifi_sleep_s", wifi),
            ("acoustic_delay_s", delay),
        ];
        let values = drew.map(|(name, value)| (name.to_owned(), value)).into();
        let mut rig = SimRig {
            board,
            room: Room::new(acoustics),
            chance,
            wifi_sleep: wifi,
            now: Moment::START,
            events: BinaryHeap::new(),
            queued: 0,
            ready: VecDeque::new(),
            links: BTreeMap::new(),
            next_link: 1,
            datagram_at: Moment::START,
            heard: 0,
            microphone_at: Moment::START + BLOCK,
            awake: false,
            config_link: None,
            mqtt_link: None,
        };
        rig.saw(Moment::START, Observation::Drew { values });
        rig
    }

    fn saw(&mut self, at: Moment, what: Observation) {
        self.ready.push_back(Seen { at, captured_at: at, what, sound: None });
    }

    fn queue(&mut self, at: Moment, what: Event) {
        self.queued += 1;
        self.events.push(Reverse(Queued { at, n: self.queued, what }));
    }

    /// A few milliseconds of network, scheduler and driver.
    fn jitter(&mut self) -> Duration {
        Duration::from_secs_f64(0.001 + 0.006 * self.chance.uniform().powi(3))
    }

    /// How long a message to the board waits: until its radio wakes, while it sleeps.
    fn downlink(&mut self) -> Duration {
        let sleep = if self.awake { 0.0 } else { self.wifi_sleep * self.chance.uniform() };
        self.jitter() + Duration::from_secs_f64(sleep)
    }

    /// The next instant at which something happens.
    fn next_at(&self) -> Moment {
        let event = self.events.peek().map_or(Moment::NEVER, |Reverse(queued)| queued.at);
        let board = self.board.next_at().unwrap_or(Moment::NEVER);
        event.min(board).min(self.microphone_at)
    }

    /// Lets everything happen that is due at `self.now`.
    fn happen(&mut self) {
        for (at, output) in self.board.advance(self.now) {
            self.output(at, output);
        }
        while self.events.peek().is_some_and(|Reverse(queued)| queued.at <= self.now) {
            let Some(Reverse(queued)) = self.events.pop() else { return };
            self.event(queued.what);
        }
        for (at, output) in self.board.advance(self.now) {
            self.output(at, output);
        }
        if self.microphone_at <= self.now {
            self.listen();
        }
    }

    fn listen(&mut self) {
        let samples = self.room.microphone(self.microphone_at);
        let (first, count) = (SampleIndex(self.heard), samples.len() as u64);
        self.heard += count;
        let captured_at = self.microphone_at.before(BLOCK);
        let what = Observation::Sound { segment: 1, first, count };
        let sound = Some(Sound { rate: RATE, samples });
        self.ready.push_back(Seen { at: self.now, captured_at, what, sound });
        self.microphone_at = self.microphone_at + BLOCK;
    }

    /// What the board does to the world.
    fn output(&mut self, at: Moment, output: Output) {
        let arrives = at.max(self.now) + self.jitter();
        match output {
            Output::Uart(bytes) => self.queue(at.max(self.now), Event::Uart(bytes)),
            Output::Open(socket, ..) => {
                let link = self.next_link;
                self.next_link += 1;
                let (pending, to_board, to_bench) = (Vec::new(), arrives, arrives);
                self.links.insert(link, Link { socket, pending, to_board, to_bench });
                *self.current(socket) = Some(link);
                self.queue(arrives, Event::Connected(link));
            }
            Output::Send(socket, bytes) => {
                if let Some((link, at)) = self.uplink(socket, arrives) {
                    self.queue(at, Event::Arrived(link, bytes));
                }
            }
            Output::Close(socket) => {
                if let Some((link, at)) = self.uplink(socket, arrives) {
                    *self.current(socket) = None;
                    self.queue(at, Event::ClosedByBoard(link));
                }
            }
            Output::Datagram(bytes, ..) => self.queue(arrives, Event::DatagramArrived(bytes)),
            Output::Speaker(samples) => self.room.speaker(at, &samples),
        }
    }

    fn current(&mut self, socket: Socket) -> &mut Option<u32> {
        match socket {
            Socket::Config => &mut self.config_link,
            Socket::Mqtt => &mut self.mqtt_link,
        }
    }

    /// The link of a socket, and when what is sent now arrives: after what was sent before.
    fn uplink(&mut self, socket: Socket, arrives: Moment) -> Option<(u32, Moment)> {
        let link = (*self.current(socket))?;
        let entry = self.links.get_mut(&link)?;
        entry.to_bench = entry.to_bench.max(arrives);
        Some((link, entry.to_bench))
    }

    fn event(&mut self, event: Event) {
        let now = self.now;
        let open = |links: &BTreeMap<u32, Link>, link| links.get(&link).map(|l: &Link| l.socket);
        match event {
            Event::Connected(link) => {
                let Some(socket) = open(&self.links, link) else { return };
                let service = match socket {
                    Socket::Config => Service::Http,
                    Socket::Mqtt => Service::Mqtt,
                };
                self.saw(now, Observation::Opened { link, service });
                self.board.input(now, Input::Connected(socket));
            }
            Event::Received(link, bytes) => {
                let Some(socket) = open(&self.links, link) else { return };
                if *self.current(socket) == Some(link) {
                    self.board.input(now, Input::Received(socket, &bytes));
                }
            }
            Event::ClosedByBench(link) => {
                let Some(socket) = open(&self.links, link) else { return };
                if *self.current(socket) == Some(link) {
                    *self.current(socket) = None;
                    self.board.input(now, Input::Closed(socket));
                }
                self.links.remove(&link);
            }
            Event::Datagram(bytes) => self.board.input(now, Input::Datagram(&bytes)),
            Event::Button(down) => self.board.input(now, Input::Button { down }),
            Event::Beacon(bits) => {
                let hz = f64::from_bits(bits);
                self.room.beacon(now, hz);
                let (level_dbfs, until) = (BEACON_DBFS, now + BEACON_LENGTH);
                self.saw(now, Observation::Beacon { hz, level_dbfs, until });
            }
            Event::Arrived(link, bytes) => self.arrived(link, bytes),
            Event::ClosedByBoard(link) => {
                if self.links.remove(&link).is_some() {
                    self.saw(now, Observation::Closed { link, by: Party::Device });
                }
            }
            Event::DatagramArrived(bytes) => {
                let bytes = Blob(bytes);
                self.saw(now, Observation::Datagram { from: Party::Device, bytes });
            }
            Event::Uart(bytes) => self.saw(now, Observation::Uart(Blob(bytes))),
        }
    }

    fn arrived(&mut self, link: u32, bytes: Vec<u8>) {
        let now = self.now;
        let Some(entry) = self.links.get_mut(&link) else { return };
        let from = Party::Device;
        if entry.socket == Socket::Config {
            return self.saw(now, Observation::Socket { link, from, bytes: Blob(bytes) });
        }
        entry.pending.extend(bytes);
        let mut packets = Vec::new();
        while let Some(packet) = take_packet(&mut entry.pending) {
            packets.push(packet);
        }
        for packet in packets {
            let packet = Blob(redact_mqtt_connect(&packet));
            self.saw(now, Observation::Mqtt { link, from, packet });
        }
    }

    /// Sends bytes to the board on a link, as one message after the others.
    fn send(&mut self, at: Moment, link: u32, bytes: Vec<u8>, echo: Observation) {
        let arrives = at + self.downlink();
        let Some(entry) = self.links.get_mut(&link) else {
            let why = format!("connection {link} is closed");
            return self.saw(at, Observation::Refused { why });
        };
        entry.to_board = entry.to_board.max(arrives);
        let arrives = entry.to_board;
        self.queue(arrives, Event::Received(link, bytes));
        self.saw(at, echo);
    }
}

/// A whole MQTT control packet from the front of `bytes` (MQTT 3.1.1, 2.2.3).
fn take_packet(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let (mut length, mut shift, mut header) = (0usize, 0, 1);
    loop {
        let byte = *bytes.get(header)?;
        length |= usize::from(byte & 0x7f) << shift;
        (shift, header) = (shift + 7, header + 1);
        if byte & 0x80 == 0 || shift > 21 {
            break;
        }
    }
    (bytes.len() >= header + length).then(|| bytes.drain(..header + length).collect())
}

impl Rig for SimRig {
    fn origin(&self) -> Origin {
        Origin::Simulated
    }

    fn next(&mut self, deadline: Moment) -> Next {
        loop {
            if let Some(seen) = self.ready.front() {
                if seen.at >= deadline {
                    return Next::DeadlineReached;
                }
                if let Some(seen) = self.ready.pop_front() {
                    return Next::Saw(seen);
                }
            }
            let at = self.next_at();
            if at >= deadline {
                self.now = self.now.max(deadline);
                return Next::DeadlineReached;
            }
            self.now = self.now.max(at);
            self.happen();
        }
    }

    fn perform(&mut self, at: Moment, command: &Command) {
        self.now = self.now.max(at);
        let from = Party::Bench;
        match command.clone() {
            Command::Send { link, bytes } => {
                let echo = Observation::Socket { link, from, bytes: bytes.clone() };
                self.send(at, link, bytes.0, echo);
            }
            Command::Mqtt { link, packet } => {
                let echo = Observation::Mqtt { link, from, packet: packet.clone() };
                self.send(at, link, packet.0, echo);
            }
            Command::Datagram { bytes } => {
                // On one Wi-Fi link datagrams don't overtake each other.
                self.datagram_at = self.datagram_at.max(at + self.jitter());
                self.queue(self.datagram_at, Event::Datagram(bytes.0.clone()));
                self.saw(at, Observation::Datagram { from, bytes });
            }
            Command::Close { link } => {
                let Some(entry) = self.links.get(&link) else { return };
                let arrives = entry.to_board.max(at + Duration::from_millis(1));
                self.queue(arrives, Event::ClosedByBench(link));
                self.saw(at, Observation::Closed { link, by: from });
            }
            Command::Press { button } => {
                self.queue(at, Event::Button(true));
                self.queue(at + PRESS, Event::Button(false));
                self.saw(at, Observation::Pressed { button });
                self.awake = true;
            }
            Command::Beacon { hz } => {
                self.queue(at + BEACON_DELAY, Event::Beacon(hz.to_bits()));
            }
        }
    }
}
