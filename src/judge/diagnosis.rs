//! Where to look next: the cheapest probe first, by broken rung and pattern.

use super::{Discrepancy, Finding};
use crate::scenario::Rung;

/// The next places to look after the finding that decided.
pub(super) fn next(finding: &Finding, discrepancy: Discrepancy) -> Vec<&'static str> {
    let sounds = finding.measurements.iter().any(|m| m.name == "level_step");
    match (discrepancy, finding.rung) {
        (Discrepancy::SilentSuccess, Rung::Physical) if sounds => vec![
            "codec volume register: was the I2C write acknowledged?",
            "another volume in the path: mixer, amplifier gain pin, button or knob",
            "a limiter or AGC in the amplifier that holds the level",
        ],
        (Discrepancy::SilentSuccess, Rung::Physical) => vec![
            "loudspeaker connected, 3.5 to 9 ohm",
            "amplifier awake: SD_MODE above 1.4 V, or PA enable active",
            "scope DIN and BCLK while it plays; codec registers over I2C",
        ],
        (Discrepancy::WrongMagnitude | Discrepancy::WrongLaw, _) => vec![
            "the codec of this board and the rig's `law`",
            "clipping or compression: repeat at a lower level",
            "microphone gain control (AGC) off",
        ],
        (Discrepancy::WrongDirection, _) => {
            vec!["order of the steps in the scenario", "codec volume register: inverted scale"]
        }
        (Discrepancy::WrongSource, _) => vec![
            "sample rate of the codec against the rate announced in hello",
            "other sound sources near the ear",
        ],
        (Discrepancy::RigBlind, _) => {
            vec![
                "mute switch and plug of the microphone",
                "capture volume",
                "the bench's loudspeaker",
            ]
        }
        (Discrepancy::NoReply | Discrepancy::Late, _) => vec![
            "console: is the main loop alive (heartbeat every 10 s)?",
            "a slow tool in front of this call in the same queue",
            "Wi-Fi power save adds up to 1 s outside a conversation",
        ],
        (Discrepancy::MalformedReply | Discrepancy::PhantomEffect, _) => {
            vec![
                "the raw reply in records.jsonl",
                "arguments of the call against the tool's schema",
            ]
        }
        (Discrepancy::NotListed, _) => {
            vec!["`MCP: Add tool` lines at boot", "is this the build that was meant?"]
        }
        (Discrepancy::StaleReadback, _) => {
            vec![
                "the value in flash after a reboot",
                "another writer: buttons, knobs, second client",
            ]
        }
        (Discrepancy::UnexpectedReset | Discrepancy::BootLoop, _) => {
            vec![
                "reset reason and last console lines",
                "supply: brown-out under load",
                "backtrace with the ELF",
            ]
        }
        (Discrepancy::NoReboot, _) => {
            vec!["console after `User requested reboot`", "main loop alive?"]
        }
        (Discrepancy::SilentSuccess, Rung::Executed) => {
            vec!["was the call queued and dropped: main loop alive?", "console log level"]
        }
        (Discrepancy::Inconclusive, Rung::Physical) => {
            vec![
                "more repeats, a longer tone or less noise",
                "a beacon of the bench's own loudspeaker",
            ]
        }
        _ => vec!["records.jsonl at the cited records"],
    }
}
