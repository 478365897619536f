//! Where to look next: the cheapest probe first, by pattern and by what was heard.

use super::{Discrepancy, Finding};
use crate::scenario::Rung;

/// Places to look, nearest first.
type Places = &'static [&'static str];

const SILENT_BOARD: Places = &[
    "loudspeaker connected, 3.5 to 9 ohm",
    "amplifier awake: SD_MODE above 1.4 V, or PA enable active",
    "scope DIN and BCLK while it plays; codec registers over I2C",
];
const STUCK_LEVEL: Places = &[
    "codec volume register: was the I2C write acknowledged?",
    "another volume in the path: mixer, amplifier gain pin, button or knob",
    "a limiter or AGC in the amplifier that holds the level",
];
const WRONG_SIZE: Places = &[
    "the codec of this board and the rig's `law`",
    "clipping or compression: repeat at a lower level",
    "microphone gain control (AGC) off",
];
const WRONG_SIGN: Places =
    &["order of the steps in the scenario", "codec volume register: inverted scale"];
const WRONG_SOUND: Places = &[
    "sample rate of the codec against the rate announced in hello",
    "other sound sources near the ear",
];
const DEAF_EAR: Places =
    &["mute switch and plug of the microphone", "capture volume", "the bench's loudspeaker"];
const NO_ANSWER: Places = &[
    "console: is the main loop alive (heartbeat every 10 s)?",
    "a slow tool in front of this call in the same queue",
    "Wi-Fi power save adds up to 1 s outside a conversation",
];
const BAD_ANSWER: Places =
    &["the raw reply in records.jsonl", "arguments of the call against the tool's schema"];
const NOT_LISTED: Places = &["`MCP: Add tool` lines at boot", "is this the build that was meant?"];
const OLD_VALUE: Places =
    &["the value in flash after a reboot", "another writer: buttons, knobs, second client"];
const CLAMPED: Places = &[
    "a volume limit in the firmware or its settings",
    "the tool's schema: which range does it claim?",
];
const RESET: Places = &[
    "reset reason and last console lines",
    "supply: brown-out under load",
    "backtrace with the ELF",
];
const NO_RESET: Places = &["console after `User requested reboot`", "main loop alive?"];
const OTHER_BUILD: Places = &[
    "console: `Running partition` and `App version` of each boot",
    "an image that was never confirmed: the bootloader goes back to the one before",
];
const NO_TRACE: Places =
    &["was the call queued and dropped: main loop alive?", "console log level"];
const UNCERTAIN: Places = &[
    "more repeats, a longer tone or less noise",
    "a beacon of the bench's own loudspeaker before and after",
];
const HOLE: Places = &[
    "console lines around the cited record: is the recording whole?",
    "console wiring: lost bytes, a port that vanished",
];
const RECORDS: Places = &["records.jsonl at the cited records"];

/// After a recording that is not whole.
pub(super) const INCOMPLETE: Places =
    &["the recording's original, or the same session once more", "space on the bench's disk"];

const CUT: Places = &[
    "records.jsonl: the last decisions say why steps were left out",
    "the scenario's limit, and its steps that are required",
];

/// The next places to look after a finding that no claim asked for.
pub(super) fn unasked(finding: &Finding) -> Places {
    match finding.discrepancy {
        None => HOLE,
        Some(Discrepancy::Inconclusive) => CUT,
        Some(name) => next(finding, name),
    }
}

/// The next places to look after the finding that decided.
pub(super) fn next(finding: &Finding, discrepancy: Discrepancy) -> Places {
    let sounds = finding.measurements.iter().any(|m| m.name == "level_step");
    match discrepancy {
        Discrepancy::SilentSuccess if finding.rung != Rung::Physical => NO_TRACE,
        Discrepancy::SilentSuccess if sounds => STUCK_LEVEL,
        Discrepancy::SilentSuccess => SILENT_BOARD,
        Discrepancy::WrongMagnitude | Discrepancy::WrongLaw => WRONG_SIZE,
        Discrepancy::WrongDirection => WRONG_SIGN,
        Discrepancy::WrongSource => WRONG_SOUND,
        Discrepancy::RigBlind => DEAF_EAR,
        Discrepancy::NoReply | Discrepancy::Late => NO_ANSWER,
        Discrepancy::MalformedReply => BAD_ANSWER,
        Discrepancy::Refused | Discrepancy::PhantomEffect => BAD_ANSWER,
        Discrepancy::NotListed => NOT_LISTED,
        Discrepancy::StaleReadback => OLD_VALUE,
        Discrepancy::Clamped => CLAMPED,
        Discrepancy::UnexpectedReset | Discrepancy::BootLoop => RESET,
        Discrepancy::NoReboot => NO_RESET,
        Discrepancy::WrongBuild => OTHER_BUILD,
        Discrepancy::Inconclusive if finding.measurements.iter().any(|m| m.name == "boots") => HOLE,
        Discrepancy::Inconclusive if finding.rung == Rung::Physical => UNCERTAIN,
        Discrepancy::Inconclusive | Discrepancy::Agree => RECORDS,
    }
}
