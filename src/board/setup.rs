//! What kind of board stands on the bench, and what is wrong with it.

use crate::audio::law::Law;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A board before it gets power.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How a volume becomes gain.
    pub law: Law,
    /// Which build of the firmware runs.
    pub build: Build,
    /// What is wrong with it.
    pub fault: Option<Fault>,
    /// Where its small variations of time come from.
    pub seed: u64,
    /// The volume in its NVS before the first boot.
    pub volume: i32,
    /// Host of its config URL, `http://HOST:PORT/xiaozhi/ota/`.
    pub config_host: String,
    /// Port of its config URL.
    pub config_port: u16,
    /// Station MAC.
    pub mac: [u8; 6],
    /// UUID in its NVS, the `Client-Id`.
    pub uuid: String,
}

impl Default for Setup {
    fn default() -> Self {
        Setup {
            law: Law::NoAudioCodec,
            build: Build::Headless,
            fault: None,
            seed: 0,
            volume: 70,
            config_host: "127.0.0.1".into(),
            config_port: 8002,
            mac: [0x24, 0x6f, 0x28, 0xaa, 0xbb, 0x01],
            uuid: "11111111-2222-4333-8444-555555555555".into(),
        }
    }
}

/// Builds of the firmware, which differ in their tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// No display, no backlight, no camera.
    Headless,
    /// No display and 40 tools of a long description: three pages of them.
    Extra40,
    /// No display and one tool larger than a page.
    HugeTool,
    /// A monochrome display of 64 lines.
    Oled,
    /// A colour display, a camera, a battery, a lamp.
    LcdFull,
}

/// What can be wrong with a board or with the room it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// All software is right, no sound comes out.
    DeadAmp,
    /// All software is right, the gain stays as it was at boot.
    StuckVolume,
    /// `set_volume` answers `true` and is never executed.
    QueueLost,
    /// Says what was asked, but is never louder than at volume 70.
    Clamp,
    /// Limits the volume to 70 and says so in log and status.
    ClampSw,
    /// Loses the reply of `set_volume`.
    DropResponse,
    /// Delays the reply of `set_volume`.
    LateResponse {
        /// By how many milliseconds.
        ms: u64,
    },
    /// Accepts `self.reboot` and goes on.
    NoReboot,
    /// Takes 60 s more to boot.
    SlowBoot,
    /// Panics at every boot after `self.reboot`.
    BootLoop,
    /// The room's microphone hears nothing but its own noise.
    DeafMic,
    /// The room's microphone delivers exact zeros.
    ZeroMic,
    /// Noise of the room hides the tones.
    NoisyRoom,
    /// Plays at two thirds of the sample rate.
    WrongPitch,
}

impl Fault {
    /// How late a reply comes if nobody says otherwise, milliseconds.
    pub const LATE_MS: u64 = 7000;

    /// Every fault, its name and what it does in one line.
    pub const ALL: [(&'static str, Fault, &'static str); 14] = [
        ("dead-amp", Fault::DeadAmp, "all software is right, no sound comes out"),
        ("stuck-volume", Fault::StuckVolume, "all software is right, the gain stays as at boot"),
        ("queue-lost", Fault::QueueLost, "set_volume answers true and is never executed"),
        ("clamp", Fault::Clamp, "says what was asked, but is never louder than at volume 70"),
        ("clamp-sw", Fault::ClampSw, "limits the volume to 70, log and status tell it"),
        ("drop-response", Fault::DropResponse, "loses the reply of set_volume"),
        (
            "late-response",
            Fault::LateResponse { ms: Fault::LATE_MS },
            "late-response=MS: the reply of set_volume comes MS milliseconds late",
        ),
        ("no-reboot", Fault::NoReboot, "accepts self.reboot and never restarts"),
        ("slow-boot", Fault::SlowBoot, "takes 60 s more to boot"),
        ("boot-loop", Fault::BootLoop, "panics at every boot after self.reboot"),
        ("deaf-mic", Fault::DeafMic, "the microphone hears only its own noise"),
        ("zero-mic", Fault::ZeroMic, "the microphone delivers exact zeros"),
        ("noisy-room", Fault::NoisyRoom, "noise of the room hides the tones"),
        ("wrong-pitch", Fault::WrongPitch, "plays at two thirds of the sample rate"),
    ];
}

impl fmt::Display for Fault {
    /// The name that it is read by: `dead-amp`, `late-response=7000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let same = |fault: &Fault| std::mem::discriminant(fault) == std::mem::discriminant(self);
        let named = Fault::ALL.iter().find(|(_, fault, _)| same(fault));
        f.write_str(named.expect("the table holds every fault").0)?;
        match self {
            Fault::LateResponse { ms } => write!(f, "={ms}"),
            _ => Ok(()),
        }
    }
}

/// Why a text names no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No fault has this name.
    #[error("there is no fault `{0}`; did you mean `{1}`?")]
    Unknown(String, &'static str),
    /// The fault takes no value, or another one.
    #[error("fault `{0}` {1}")]
    Value(String, &'static str),
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let Some((_, fault, _)) = Fault::ALL.iter().find(|(known, ..)| *known == name) else {
            let near = |known: &&str| strsim::jaro_winkler(known, name);
            let names = Fault::ALL.iter().map(|(known, ..)| *known);
            let nearest = names.max_by(|a, b| near(a).total_cmp(&near(b)));
            return Err(FaultError::Unknown(name.into(), nearest.unwrap_or_default()));
        };
        match (*fault, value) {
            (fault, None) => Ok(fault),
            (Fault::LateResponse { .. }, Some(ms)) => {
                let ms = ms.parse().ok().filter(|ms| *ms <= LATEST_MS);
                let ms = ms.ok_or(FaultError::Value(name.into(), "takes 0 to 3600000 ms"))?;
                Ok(Fault::LateResponse { ms })
            }
            _ => Err(FaultError::Value(name.into(), "takes no value")),
        }
    }
}

/// Later than an hour is never.
const LATEST_MS: u64 = Duration::from_secs(3600).as_millis() as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_written_as_it_is_read() {
        for (name, fault, _) in Fault::ALL {
            assert_eq!(name.parse::<Fault>().unwrap(), fault);
            assert_eq!(fault.to_string().parse::<Fault>().unwrap(), fault);
        }
        assert_eq!("late-response=1500".parse(), Ok(Fault::LateResponse { ms: 1500 }));
        assert_eq!(Fault::LateResponse { ms: 7000 }.to_string(), "late-response=7000");
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let check = |text: &str, says: &str| {
            assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), says);
        };
        check("dead-map", "there is no fault `dead-map`; did you mean `dead-amp`?");
        check("clampsw", "there is no fault `clampsw`; did you mean `clamp-sw`?");
        check("clamp=3", "fault `clamp` takes no value");
        check("late-response=soon", "fault `late-response` takes 0 to 3600000 ms");
    }
}
