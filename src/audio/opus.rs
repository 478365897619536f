//! Opus packets to samples, so that the reference of a measurement is what was really sent.

use std::fmt;

/// A packet that no Opus decoder accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("audio packet {index} is not Opus")]
pub struct NotOpus {
    /// Which packet, from 0.
    pub index: usize,
}

/// Sample rate of everything that is decoded here.
pub const RATE: u32 = 24_000;

mod encoder;
pub use encoder::encode;

/// Decodes a stream of mono packets to 24 kHz, full scale = 1.0.
///
/// # Errors
/// The first packet that can't be decoded.
pub fn decode<'a>(packets: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<f64>, NotOpus> {
    let mut decoder = Decoder::default();
    let mut samples = Vec::new();
    for (index, packet) in packets.into_iter().enumerate() {
        let frame = decoder.decode(packet).map_err(|_| NotOpus { index })?;
        samples.extend(frame.iter().map(|&x| f64::from(x)));
    }
    Ok(samples)
}

/// Decodes mono packets one by one to 24 kHz, full scale = 1.0.
pub struct Decoder {
    opus: ropus::Decoder,
    frame: Vec<f32>,
    count: usize,
}

impl Decoder {
    /// The samples of the next packet.
    ///
    /// # Errors
    /// The packet is not Opus.
    pub fn decode(&mut self, packet: &[u8]) -> Result<&[f32], NotOpus> {
        let index = self.count;
        self.count += 1;
        if packet.is_empty() {
            return Err(NotOpus { index });
        }
        let count = self.opus.decode_float(packet, &mut self.frame, ropus::DecodeMode::Normal);
        Ok(&self.frame[..count.map_err(|_| NotOpus { index })?])
    }
}

impl Default for Decoder {
    fn default() -> Self {
        let opus = ropus::Decoder::new(RATE, ropus::Channels::Mono)
            .expect("24 kHz mono is a combination that Opus defines");
        // The longest packet that Opus allows holds 120 ms.
        Decoder { opus, frame: vec![0.0; RATE as usize * 120 / 1000], count: 0 }
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("count", &self.count).finish_non_exhaustive()
    }
}
