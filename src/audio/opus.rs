//! Opus packets to samples, so that the reference of a measurement is what was really sent.

/// A packet that no Opus decoder accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("audio packet {index} is not Opus")]
pub struct NotOpus {
    /// Which packet, from 0.
    pub index: usize,
}

/// Sample rate of [`decode`]'s output.
pub const RATE: u32 = 24_000;

mod encoder;
pub use encoder::encode;

/// Decodes a stream of mono packets to 24 kHz, full scale = 1.0.
///
/// # Errors
/// The first packet that can't be decoded.
pub fn decode<'a>(packets: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<f64>, NotOpus> {
    let mut decoder = ropus::Decoder::new(RATE, ropus::Channels::Mono)
        .expect("24 kHz mono is a combination that Opus defines");
    // The longest packet that Opus allows holds 120 ms.
    let mut frame = vec![0f32; RATE as usize * 120 / 1000];
    let mut samples = Vec::new();
    for (index, packet) in packets.into_iter().enumerate() {
        if packet.is_empty() {
            return Err(NotOpus { index });
        }
        let count = decoder
            .decode_float(packet, &mut frame, ropus::DecodeMode::Normal)
            .map_err(|_| NotOpus { index })?;
        samples.extend(frame[..count].iter().map(|&x| f64::from(x)));
    }
    Ok(samples)
}
