//! Board laws: how many decibels a volume setting is worth, by codec driver.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The gain law of a codec driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// I2S amplifier without a codec: `factor = (v/100)^2`, that is `40 log10(v/100)` dB.
    NoAudioCodec,
    /// `esp_codec_dev` default curve: `-50 + v/2` dB, 0 mutes (ES83xx, AW88298, ES8156 ...).
    EspCodecDev,
    /// Linear factor `v/100` (LilyGo T-Circle, T-CameraPlus, T-Display-S3-Pro).
    LinearVolume,
}

impl Law {
    /// Every law.
    pub const ALL: [Law; 3] = [Law::NoAudioCodec, Law::EspCodecDev, Law::LinearVolume];

    /// The name used in rig files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Law::NoAudioCodec => "no_audio_codec",
            Law::EspCodecDev => "esp_codec_dev",
            Law::LinearVolume => "linear_volume",
        }
    }

    /// Gain in dB at a volume of 0 to 100, relative to full volume (for `esp_codec_dev` to its
    /// curve's 0 dB); minus infinity where the board is silent.
    pub fn gain_db(self, volume: u32) -> f64 {
        let v = f64::from(volume.min(100));
        match self {
            _ if volume == 0 => f64::NEG_INFINITY,
            Law::NoAudioCodec => 40.0 * (v / 100.0).log10(),
            Law::EspCodecDev => -50.0 + v / 2.0,
            Law::LinearVolume => 20.0 * (v / 100.0).log10(),
        }
    }

    /// Level step in dB when the volume goes from `from` to `to`; `None` when either is silence.
    pub fn step_db(self, from: u32, to: u32) -> Option<f64> {
        let step = self.gain_db(to) - self.gain_db(from);
        step.is_finite().then_some(step)
    }

    /// The laws that promise a step within `tolerance_db` of the measured one.
    pub fn explaining(step_db: f64, from: u32, to: u32, tolerance_db: f64) -> Vec<Law> {
        let fits = |law: &Law| {
            law.step_db(from, to).is_some_and(|promised| (promised - step_db).abs() <= tolerance_db)
        };
        Law::ALL.into_iter().filter(fits).collect()
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Law {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Law::ALL.into_iter().find(|law| law.name() == name).ok_or_else(|| {
            let known: Vec<_> = Law::ALL.iter().map(|law| law.name()).collect();
            format!("unknown law `{name}`; known: {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Closed form, read from the firmware's codec drivers.
    #[test]
    fn the_laws_promise_what_the_drivers_do() {
        let check = |law: Law, from, to, db: f64| {
            let step = law.step_db(from, to).unwrap();
            assert!((step - db).abs() < 0.005, "{law} {from}->{to}: {step}");
        };
        check(Law::NoAudioCodec, 40, 60, 7.0437);
        check(Law::NoAudioCodec, 80, 100, 3.8764);
        check(Law::EspCodecDev, 40, 60, 10.0);
        check(Law::LinearVolume, 40, 60, 3.5218);
        assert_eq!(Law::EspCodecDev.step_db(0, 60), None);
        assert_eq!(Law::explaining(9.8, 40, 60, 1.0), [Law::EspCodecDev]);
        assert_eq!(Law::explaining(0.0, 40, 60, 1.0), []);
    }
}
