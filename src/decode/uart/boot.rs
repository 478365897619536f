//! Boots, their reset reasons and panics, counted from console lines in order.

use super::meaning::{Meaning, PanicKind, Reset, UartLine};
use serde::Serialize;

/// How many lines may stand between the ROM's first line and its reset reason.
const BANNER_LINES: u32 = 3;

/// What a line says about the board's life.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BootEvent {
    /// The ROM speaks: a boot begins.
    Began {
        /// Boots on this console so far, this one included.
        number: u32,
    },
    /// The ROM names the reset reason.
    Reset {
        /// The boot that begins.
        number: u32,
        /// The reason.
        reset: Reset,
        /// The firmware announced the restart and did not panic before it.
        clean: bool,
    },
    /// The firmware panicked; what follows until the restart belongs to the same panic.
    Panicked {
        /// The boot that ends.
        boot: u32,
        /// Its first marker.
        kind: PanicKind,
    },
}

/// Counts boots and panics.
#[derive(Debug, Default)]
pub struct Boots {
    number: u32,
    /// Lines since the ROM's first line, while the reset reason is still to come.
    banner: Option<u32>,
    panicking: bool,
    announced: bool,
}

impl Boots {
    /// What the next line says, in order: a reset without a ROM line before it is two events.
    pub fn see(&mut self, line: &UartLine) -> Vec<BootEvent> {
        let mut events = Vec::new();
        self.banner = self.banner.map(|lines| lines + 1).filter(|lines| *lines <= BANNER_LINES);
        match &line.means {
            Meaning::RomStart { .. } => {
                self.number += 1;
                self.banner = Some(0);
                events.push(BootEvent::Began { number: self.number });
            }
            Meaning::Reset(reset) => {
                if self.banner.take().is_none() {
                    self.number += 1;
                    events.push(BootEvent::Began { number: self.number });
                }
                let clean = self.announced && !self.panicking && reset.code == 0xc;
                let reset = reset.clone();
                events.push(BootEvent::Reset { number: self.number, reset, clean });
                (self.panicking, self.announced) = (false, false);
            }
            Meaning::Panic(panic) if !self.panicking => {
                self.panicking = true;
                events.push(BootEvent::Panicked { boot: self.number, kind: panic.kind.clone() });
            }
            Meaning::Rebooting => self.announced = true,
            _ => {}
        }
        events
    }
}
