//! `meta.json`, and of it only what no other file says. Its ground truth and measurements are for
//! those who check the judge; reading them here would let the answer leak into the evidence.

use super::error::{ImportError, Place, need, no_byte_order_mark};
use super::events::moment;
use crate::audio::law::Law;
use crate::journal::open_file;
use crate::time::Moment;
use serde::Deserialize;
use std::io::Read as _;
use std::path::Path;

/// What the import takes from `meta.json`.
#[derive(Debug)]
pub(super) struct Meta {
    /// Kind of session, `volume` or `reboot`.
    pub kind: Option<String>,
    /// AES-128 key of the UDP audio, 32 hex digits.
    pub udp_key: Option<String>,
    /// MAC address of the device.
    pub mac: String,
    /// The codec as the recorder names it.
    codec: Option<String>,
    /// The file, for errors.
    place: Place,
    /// When the first sample of `speaker.wav` sounds.
    pub starts: Moment,
    /// Samples in `speaker.wav`.
    pub samples: u64,
    /// Samples per second.
    pub rate: u32,
}

#[derive(Deserialize)]
struct File {
    kind: Option<String>,
    udp: Option<Udp>,
    speaker_wav: Option<SpeakerWav>,
    device: Option<Device>,
}

#[derive(Deserialize)]
struct Udp {
    key_hex: Option<String>,
}

#[derive(Deserialize)]
struct SpeakerWav {
    starts_at_session_t: Option<f64>,
    samples: Option<u64>,
    rate: Option<u32>,
}

#[derive(Deserialize)]
struct Device {
    mac: Option<String>,
    codec: Option<String>,
}

impl Meta {
    /// Reads and checks the file.
    pub fn read(path: &Path) -> Result<Meta, ImportError> {
        let mut text = Vec::new();
        let read = open_file(path).and_then(|mut file| file.read_to_end(&mut text));
        read.map_err(ImportError::reading(path))?;
        no_byte_order_mark(path, &text)?;
        let file: File =
            serde_json::from_slice(&text).map_err(|e| ImportError::json(path, None, &e))?;
        let place = Place::file(path);
        let wav = need(file.speaker_wav, "speaker_wav", &place)?;
        let device = need(file.device, "device.mac", &place)?;
        let starts = need(wav.starts_at_session_t, "speaker_wav.starts_at_session_t", &place)?;
        let hex = |text: &str| text.bytes().filter(u8::is_ascii_hexdigit).count();
        let wrong = |field, found: &str, accepted| ImportError::BadValue {
            place: place.clone(),
            field,
            found: found.into(),
            accepted,
        };
        let mac = need(device.mac, "device.mac", &place)?;
        if hex(&mac) != 12 {
            return Err(wrong("device.mac", &mac, "six pairs of hex digits, 24:6f:28:aa:bb:01"));
        }
        let udp_key = file.udp.and_then(|udp| udp.key_hex);
        if let Some(key) = udp_key.as_deref().filter(|key| key.len() != 32 || hex(key) != 32) {
            return Err(wrong("udp.key_hex", key, "the 32 hex digits of an AES-128 key"));
        }
        Ok(Meta {
            kind: file.kind,
            udp_key,
            mac,
            codec: device.codec,
            place: place.clone(),
            starts: moment(starts, "speaker_wav.starts_at_session_t", &place)?,
            samples: need(wav.samples, "speaker_wav.samples", &place)?,
            rate: need(wav.rate, "speaker_wav.rate", &place)?,
        })
    }

    /// The gain law of the session's codec; `None` when it names none. The board's own log can't
    /// stand in for a codec that we don't know, because it may name another.
    pub fn law(&self) -> Result<Option<Law>, ImportError> {
        match self.codec.as_deref() {
            None => Ok(None),
            Some("noaudio") => Ok(Some(Law::NoAudioCodec)),
            Some("es8311") => Ok(Some(Law::EspCodecDev)),
            Some(codec) => Err(ImportError::BadValue {
                place: self.place.clone(),
                field: "device.codec",
                found: codec.into(),
                accepted: "noaudio, es8311, or an import with --law",
            }),
        }
    }
}
