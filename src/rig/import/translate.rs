//! Events of the recorder become entries of our journal, free of secrets.

use super::error::{ImportError, Place};
use super::events::{Event, Listener, What};
use super::wire;
use crate::journal::{
    Blob, Edge, Entry, Observation, Party, Redactor, Service, redact_mqtt_connect,
};
use crate::time::{Moment, Window};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The redactor's name for the console.
const CONSOLE: &str = "uart";

/// Entries with the instant at which each belongs, in any order until they are sorted.
pub(super) type Timeline = Vec<(Moment, Entry)>;

/// What is known while the lines go by.
pub(super) struct Translator {
    path: PathBuf,
    redactor: Redactor,
    timeline: Timeline,
    links: u32,
    mqtt: Option<u32>,
    ws: Option<u32>,
    http: Option<u32>,
    step: Option<String>,
    names: StepNames,
    latest: Moment,
    hellos: Vec<(u64, String)>,
    sent: Vec<Window>,
    sending: bool,
    datagrams: bool,
}

/// Everything that the events said.
pub(super) struct Translated {
    /// Entries, not yet sorted.
    pub timeline: Timeline,
    /// The time of the last event.
    pub latest: Moment,
    /// For each phase with audio for the device: from the first packet sent to the last.
    pub sent: Vec<Window>,
    /// Whether there was any datagram that could be decrypted.
    pub datagrams: bool,
    /// UDP keys of the server hellos, each with its line.
    pub hellos: Vec<(u64, String)>,
    /// Step paths in use.
    pub names: StepNames,
}

impl Translator {
    /// For the events of the file `path` and the device with address `mac`; `names` holds the
    /// step paths already taken.
    pub fn new(path: &Path, mac: &str, names: StepNames) -> Self {
        Translator {
            path: path.into(),
            redactor: Redactor::knowing(&[mac]),
            timeline: Vec::new(),
            links: 0,
            mqtt: None,
            ws: None,
            http: None,
            step: None,
            names,
            latest: Moment::START,
            hellos: Vec::new(),
            sent: Vec::new(),
            sending: false,
            datagrams: false,
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: Event) -> Result<(), ImportError> {
        let Event { line, at, what } = event;
        self.latest = at;
        match what {
            What::Console(bytes) => {
                let chunks = self.redactor.push(CONSOLE, at, &bytes);
                self.console(chunks);
            }
            What::Request { accepted, bytes } => {
                let link = self.open(accepted, Service::Http);
                self.http = Some(link);
                self.socket(at, link, Party::Device, &bytes);
            }
            What::Response(bytes) => self.response(line, at, &bytes)?,
            What::Publish { from, topic, qos, retain, payload } => {
                if let (Party::Bench, Some(key)) = (from, wire::hello_key(&payload)) {
                    self.hellos.push((line, key));
                }
                self.packet(at, from, &wire::publish(topic, qos, retain, payload));
            }
            What::Packet { from, bytes } => self.packet(at, from, &bytes),
            What::Handshake { from, bytes } => {
                let link = self.link(at, Listener::Ws);
                self.socket(at, link, from, &bytes);
            }
            What::Message { from, text, payload } => self.message(at, from, text, &payload),
            What::Datagram { from, bytes } => self.datagram(line, at, from, bytes)?,
            What::Accepted(listener) => drop(self.accept(at, listener)),
            What::Closed { listener, by } => {
                if let Some(link) = self.current(listener).take() {
                    self.saw(at, Observation::Closed { link, by });
                }
            }
            What::Pressed => self.saw(at, Observation::Pressed { button: "boot".into() }),
            What::Phase(name) => self.phase(at, &name),
            What::Nothing => {}
        }
        Ok(())
    }

    /// Ends the last step and gives what the redactor still held.
    pub fn finish(mut self) -> Translated {
        let held = self.redactor.finish(CONSOLE);
        self.console(held);
        self.end_step(self.latest);
        Translated {
            timeline: self.timeline,
            latest: self.latest,
            sent: self.sent,
            datagrams: self.datagrams,
            hellos: self.hellos,
            names: self.names,
        }
    }

    fn saw(&mut self, captured_at: Moment, what: Observation) {
        self.timeline.push((captured_at, Entry::Saw { captured_at, what }));
    }

    fn console(&mut self, chunks: Vec<(Moment, Vec<u8>)>) {
        for (at, bytes) in chunks {
            self.saw(at, Observation::Uart(bytes.into()));
        }
    }

    fn open(&mut self, at: Moment, service: Service) -> u32 {
        self.links += 1;
        self.saw(at, Observation::Opened { link: self.links, service });
        self.links
    }

    fn accept(&mut self, at: Moment, listener: Listener) -> u32 {
        let link = match listener {
            Listener::Mqtt => self.open(at, Service::Mqtt),
            Listener::Ws => self.open(at, Service::Http),
        };
        *self.current(listener) = Some(link);
        link
    }

    fn current(&mut self, listener: Listener) -> &mut Option<u32> {
        match listener {
            Listener::Mqtt => &mut self.mqtt,
            Listener::Ws => &mut self.ws,
        }
    }

    /// The current link of a listener; a recorder that didn't note the accept is forgiven.
    fn link(&mut self, at: Moment, listener: Listener) -> u32 {
        match *self.current(listener) {
            Some(link) => link,
            None => self.accept(at, listener),
        }
    }

    /// A whole HTTP message or handshake, so nothing of it can wait for a later chunk.
    fn socket(&mut self, at: Moment, link: u32, from: Party, bytes: &[u8]) {
        let bytes = self.redactor.whole(bytes);
        if !bytes.is_empty() {
            self.saw(at, Observation::Socket { link, from, bytes: bytes.into() });
        }
    }

    fn response(&mut self, line: u64, at: Moment, bytes: &[u8]) -> Result<(), ImportError> {
        let place = || Place::line(&self.path, line);
        let link = self.http.take().ok_or_else(|| ImportError::LoneResponse { place: place() })?;
        self.socket(at, link, Party::Bench, bytes);
        if wire::closes(bytes) {
            self.saw(at, Observation::Closed { link, by: Party::Bench });
        }
        Ok(())
    }

    fn packet(&mut self, at: Moment, from: Party, packet: &[u8]) {
        let link = self.link(at, Listener::Mqtt);
        let packet = self.redactor.whole(&redact_mqtt_connect(packet));
        self.saw(at, Observation::Mqtt { link, from, packet: packet.into() });
    }

    fn message(&mut self, at: Moment, from: Party, text: bool, payload: &[u8]) {
        let link = self.link(at, Listener::Ws);
        let frame = match text {
            true => wire::frame(from, text, &self.redactor.whole(payload)),
            false => wire::frame(from, text, payload),
        };
        if from == Party::Bench && !text {
            self.audio_sent(at);
        }
        self.saw(at, Observation::Socket { link, from, bytes: frame.into() });
    }

    fn datagram(
        &mut self,
        line: u64,
        at: Moment,
        from: Party,
        bytes: Vec<u8>,
    ) -> Result<(), ImportError> {
        let before_hello = self.hellos.is_empty();
        if from == Party::Bench {
            if before_hello {
                return Err(ImportError::NoHello { place: Place::line(&self.path, line) });
            }
            self.audio_sent(at);
        }
        // A device may send what it likes whenever it likes: that is evidence, not an error.
        self.datagrams |= !before_hello;
        self.saw(at, Observation::Datagram { from, bytes: Blob(bytes) });
        Ok(())
    }

    fn audio_sent(&mut self, at: Moment) {
        match self.sent.last_mut() {
            Some(window) if self.sending => window.until = at,
            _ => self.sent.push(Window { from: at, until: at }),
        }
        self.sending = true;
    }

    fn phase(&mut self, at: Moment, name: &str) {
        self.end_step(at);
        self.sending = false;
        let name = self.redactor.whole(name.as_bytes());
        let path = self.names.next(&String::from_utf8_lossy(&name));
        self.timeline.push((at, Entry::Step { path: path.clone(), edge: Edge::Start }));
        self.step = Some(path);
    }

    fn end_step(&mut self, at: Moment) {
        if let Some(path) = self.step.take() {
            self.timeline.push((at, Entry::Step { path, edge: Edge::End }));
        }
    }
}

/// Step paths in use: the second `tone` is `tone#2`.
#[derive(Debug, Default)]
pub(super) struct StepNames {
    taken: BTreeSet<String>,
    /// The number that each name used last.
    last: BTreeMap<String, u64>,
}

impl StepNames {
    /// The path of the next step called `name`.
    pub fn next(&mut self, name: &str) -> String {
        let last = self.last.entry(name.into()).or_default();
        loop {
            *last += 1;
            let path = if *last == 1 { name.into() } else { format!("{name}#{last}") };
            // Another step may have been called `tone#2` in so many words.
            if self.taken.insert(path.clone()) {
                return path;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_its_own_path() {
        let mut names = StepNames::default();
        let paths = ["tone", "tone#2", "tone", "tone#2", "tone"].map(|name| names.next(name));
        assert_eq!(paths, ["tone", "tone#2", "tone#3", "tone#2#2", "tone#4"]);
        // A number is not looked for from the beginning each time: this would take minutes.
        let last = (0..100_000).map(|_| names.next("volume")).last();
        assert_eq!(last.as_deref(), Some("volume#100000"));
    }
}
