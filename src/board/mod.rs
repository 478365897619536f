//! THE SOFTWARE BOARD: an imitation of an ESP32 voice board with the xiaozhi firmware, and of the
//! room that it stands in. Bytes and moments go in, bytes and sound come out; it holds no clock,
//! no socket and no file.
//!
//! It reads the protocols on its own, without the ears that judge it.

mod room;
mod setup;

use crate::time::Moment;
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
    /// It gets power (again).
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
    /// Connects to a host and port.
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

/// The board. Without [`Input::Power`] it does nothing.
#[derive(Debug)]
pub struct Board {
    _setup: Setup,
}

impl Board {
    /// A board without power.
    pub fn new(setup: Setup) -> Board {
        Board { _setup: setup }
    }

    /// Something happens at `at`; what comes of it is told by [`Board::advance`].
    pub fn input(&mut self, _at: Moment, _input: Input<'_>) {}

    /// When it wants to act next.
    pub fn next_at(&self) -> Option<Moment> {
        None
    }

    /// Everything that it does up to and at `now`, in order.
    pub fn advance(&mut self, _now: Moment) -> Vec<(Moment, Output)> {
        Vec::new()
    }
}
