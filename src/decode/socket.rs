//! HTTP and WebSocket from the bytes of a TCP connection, one direction at a time.

use super::fact::HttpMessage;
use super::stream::{Origin, Stream};
use crate::journal::Party;

/// No HTTP message or WebSocket frame of the protocol is larger; more is not decoded.
const MAX_MESSAGE: usize = 4 << 20;

/// No start line with its headers is longer. A head is read anew with every chunk until it is
/// complete, so a small limit also keeps an endless one cheap.
const MAX_HEAD: usize = 16 << 10;

/// What a direction of a connection yields.
#[derive(Debug)]
pub(super) enum Part {
    Http(HttpMessage),
    Text(Vec<u8>),
    Binary(Vec<u8>),
    /// The rest of this direction is not decoded.
    Broken(String),
}

#[derive(Debug, Default, PartialEq)]
enum Mode {
    #[default]
    Http,
    WebSocket,
    Broken,
}

/// One direction of a connection.
#[derive(Debug)]
pub(super) struct Half {
    from: Party,
    mode: Mode,
    stream: Stream,
    /// Payload of an unfinished fragmented WebSocket message and its opcode.
    fragments: Option<(u8, Origin, Vec<u8>)>,
}

impl Half {
    pub fn new(from: Party) -> Self {
        Half { from, mode: Mode::Http, stream: Stream::default(), fragments: None }
    }

    /// The messages that `chunk` completes.
    pub fn push(&mut self, chunk: &[u8], origin: Origin) -> Vec<(Origin, Part)> {
        if self.mode == Mode::Broken {
            return Vec::new();
        }
        self.stream.push(chunk, origin);
        let mut parts = Vec::new();
        while let Some(origin) = self.stream.origin() {
            let step = match self.mode {
                Mode::Http => self.http(false),
                Mode::WebSocket => self.frame(origin),
                Mode::Broken => return parts,
            };
            match step {
                Ok(Step::Message(part)) => parts.push((origin, part)),
                Ok(Step::Assembled(first, part)) => parts.push((first, part)),
                Ok(Step::Nothing) => {}
                Ok(Step::NeedsMore) => return parts,
                Err(why) => parts.push((origin, self.give_up(why))),
            }
        }
        parts
    }

    /// The connection is closed: an HTTP body without a length is complete now.
    pub fn close(&mut self) -> Option<(Origin, Part)> {
        if let Some((_, first, _)) = self.fragments.take() {
            return Some((first, self.give_up("the connection ended inside a message")));
        }
        let origin = self.stream.origin()?;
        match self.mode {
            Mode::Http => match self.http(true) {
                Ok(Step::Message(part)) => Some((origin, part)),
                _ => Some((origin, self.give_up("the connection ended inside a message"))),
            },
            Mode::WebSocket => Some((origin, self.give_up("the connection ended inside a frame"))),
            Mode::Broken => None,
        }
    }

    fn give_up(&mut self, why: &str) -> Part {
        self.mode = Mode::Broken;
        self.stream = Stream::default();
        Part::Broken(format!("{why} ({} to {})", self.from.name(), self.from.other().name()))
    }

    fn http(&mut self, closed: bool) -> Result<Step, &'static str> {
        let Some((length, message, body)) = parse_head(self.from, self.stream.bytes())? else {
            return Ok(Step::NeedsMore);
        };
        let upgrade =
            message.header("upgrade").is_some_and(|u| u.eq_ignore_ascii_case("websocket"));
        let available = self.stream.bytes().len() - length;
        let body = match body {
            // Limits never count what happens to be buffered: chunk borders are no evidence.
            Body::Length(count) if count > MAX_MESSAGE => return Err("too long a body"),
            Body::UntilClose if available > MAX_MESSAGE => return Err("too long a body"),
            Body::Length(count) if count <= available => count,
            Body::UntilClose if closed => available,
            _ => return Ok(Step::NeedsMore),
        };
        let text = String::from_utf8_lossy(&self.stream.bytes()[length..length + body]);
        let message = HttpMessage { body: text.into_owned(), ..message };
        self.stream.consume(length + body);
        // The firmware asks of an answer nothing but its 101 (facts/xiaozhi.md 3.2).
        if message.start == "101" || (upgrade && self.from == Party::Device) {
            self.mode = Mode::WebSocket;
        }
        Ok(Step::Message(Part::Http(message)))
    }

    /// One RFC 6455 frame.
    fn frame(&mut self, origin: Origin) -> Result<Step, &'static str> {
        let bytes = self.stream.bytes();
        let Some((header, payload)) = frame_header(bytes)? else { return Ok(Step::NeedsMore) };
        if bytes.len() < header.length + payload {
            return Ok(Step::NeedsMore);
        }
        let mut data = bytes[header.length..header.length + payload].to_vec();
        for (k, byte) in data.iter_mut().enumerate() {
            *byte ^= header.mask[k % 4];
        }
        self.stream.consume(header.length + payload);
        let (opcode, first, data) = match (header.opcode, self.fragments.take()) {
            (0, Some((opcode, first, mut whole))) => {
                whole.extend(data);
                (opcode, first, whole)
            }
            (0, None) => return Err("a continuation of no message"),
            (8..=10, open) => {
                self.fragments = open;
                return Ok(Step::Nothing);
            }
            (1 | 2, Some(_)) => return Err("a message inside an unfinished one"),
            (opcode @ (1 | 2), None) => (opcode, origin, data),
            _ => return Err("an unknown WebSocket opcode"),
        };
        if data.len() > MAX_MESSAGE {
            return Err("too long a message");
        }
        if !header.last {
            self.fragments = Some((opcode, first, data));
            return Ok(Step::Nothing);
        }
        let part = if opcode == 1 { Part::Text(data) } else { Part::Binary(data) };
        Ok(Step::Assembled(first, part))
    }
}

enum Step {
    Message(Part),
    Assembled(Origin, Part),
    Nothing,
    NeedsMore,
}

enum Body {
    Length(usize),
    UntilClose,
}

type Head = (usize, HttpMessage, Body);

/// Start line and headers; `None` when they are not complete.
fn parse_head(from: Party, bytes: &[u8]) -> Result<Option<Head>, &'static str> {
    let head = &bytes[..bytes.len().min(MAX_HEAD)];
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let (parsed, start, headers) = match from {
        Party::Device => {
            let mut request = httparse::Request::new(&mut headers);
            let parsed = request.parse(head).map_err(|_| "not an HTTP request")?;
            let (method, path) = (request.method.unwrap_or(""), request.path.unwrap_or(""));
            (parsed, format!("{method} {path}"), request.headers)
        }
        Party::Bench => {
            let mut response = httparse::Response::new(&mut headers);
            let parsed = response.parse(head).map_err(|_| "not an HTTP response")?;
            (parsed, response.code.map_or(String::new(), |c| c.to_string()), response.headers)
        }
    };
    let httparse::Status::Complete(length) = parsed else {
        return if bytes.len() > MAX_HEAD { Err("too long a head") } else { Ok(None) };
    };
    let text = |h: &httparse::Header| {
        (h.name.to_ascii_lowercase(), String::from_utf8_lossy(h.value).trim().to_owned())
    };
    let headers = headers.iter().map(text).collect();
    let message = HttpMessage { from, start, headers, body: String::new() };
    let body = match message.header("content-length").map(str::parse) {
        Some(Ok(count)) => Body::Length(count),
        Some(Err(_)) => return Err("a Content-Length that is no number"),
        None if from == Party::Device || message.start == "101" => Body::Length(0),
        None => Body::UntilClose,
    };
    Ok(Some((length, message, body)))
}

struct FrameHeader {
    last: bool,
    opcode: u8,
    mask: [u8; 4],
    length: usize,
}

/// Header and payload length of a frame; `None` when the header is not complete.
fn frame_header(bytes: &[u8]) -> Result<Option<(FrameHeader, usize)>, &'static str> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let extra = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let masked = if second & 0x80 != 0 { 4 } else { 0 };
    if rest.len() < extra + masked {
        return Ok(None);
    }
    let payload = match extra {
        0 => u64::from(second & 0x7f),
        _ => rest[..extra].iter().fold(0u64, |n, &b| n << 8 | u64::from(b)),
    };
    let payload = usize::try_from(payload).unwrap_or(usize::MAX);
    if payload > MAX_MESSAGE {
        return Err("too long a frame");
    }
    let mut mask = [0; 4];
    mask[..masked].copy_from_slice(&rest[extra..extra + masked]);
    let length = 2 + extra + masked;
    Ok(Some((FrameHeader { last: first & 0x80 != 0, opcode: first & 0x0f, mask, length }, payload)))
}
