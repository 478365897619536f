//! WAV files as evidence. A recorder that was killed never came back to fill in the lengths, so a
//! data length of 0 or 0xffffffff means all of the file; every other one is meant.

use super::{JournalError, SampleFormat, Segment, open_file};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Sample rates at which a voice can be judged, hertz.
const RATES: RangeInclusive<u32> = 8_000..=192_000;

/// The data lengths of a header that nobody completed.
const UNKNOWN: [u32; 2] = [0, u32::MAX];

/// A mono PCM file, opened; samples are read on demand.
#[derive(Debug)]
pub struct WavReader {
    path: PathBuf,
    format: SampleFormat,
    /// Samples per second.
    pub rate: u32,
    data_offset: u64,
    /// Samples that are really in the file, and not more than the header claims.
    pub frames: u64,
    /// Samples that the header claims.
    pub claimed_frames: u64,
}

impl WavReader {
    /// Reads the header.
    ///
    /// # Errors
    /// When the file can't be read, is no RIFF/WAVE file, ends inside its header, holds anything
    /// but 16, 24 or 32 bit integers or 32 bit floats, is not mono, or has a sample rate below
    /// 8 kHz or above 192 kHz.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let wrong = |what: &str| JournalError::Wav { path: path.into(), what: what.into() };
        let file = open_file(path).map_err(JournalError::io(path))?;
        let length = file.metadata().map_err(JournalError::io(path))?.len();
        let mut file = BufReader::new(file);
        let mut riff = [0u8; 12];
        let torn = "the file ends inside its header; record it again";
        file.read_exact(&mut riff).map_err(|_| wrong(torn))?;
        if &riff[0..4] != b"RIFF" || &riff[8..12] != b"WAVE" {
            return Err(wrong("this is no RIFF/WAVE file; give a PCM .wav"));
        }
        let mut fmt: Option<(SampleFormat, u32)> = None;
        loop {
            let mut chunk = [0u8; 8];
            file.read_exact(&mut chunk).map_err(|_| wrong(torn))?;
            let size = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
            match (&chunk[0..4], fmt) {
                (b"fmt ", _) => {
                    if !(16..=4096).contains(&size) {
                        return Err(wrong(UNSUPPORTED));
                    }
                    let mut bytes = vec![0u8; (size + size % 2) as usize];
                    file.read_exact(&mut bytes).map_err(|_| wrong(torn))?;
                    fmt = Some(parse_fmt(&bytes).map_err(|what| wrong(&what))?);
                }
                (b"data", Some((format, rate))) => {
                    let data_offset = file.stream_position().map_err(JournalError::io(path))?;
                    let there = length.saturating_sub(data_offset);
                    let claimed = if UNKNOWN.contains(&size) { there } else { u64::from(size) };
                    let width = u64::from(format.bytes());
                    return Ok(WavReader {
                        path: path.into(),
                        format,
                        rate,
                        data_offset,
                        frames: there.min(claimed) / width,
                        claimed_frames: claimed / width,
                    });
                }
                (b"data", None) => return Err(wrong("the data comes before the format")),
                _ => {
                    let skip = i64::from(size) + i64::from(size % 2);
                    file.seek_relative(skip).map_err(JournalError::io(path))?;
                }
            }
        }
    }

    /// `count` samples from `first` on, full scale = 1.0; fewer at the end.
    ///
    /// # Errors
    /// When the file can't be read, or a float sample in it is infinite or no number.
    pub fn read(&self, first: u64, count: u64) -> Result<Vec<f64>, JournalError> {
        let first = first.min(self.frames);
        let count = count.min(self.frames - first);
        let width = usize::from(self.format.bytes());
        let mut file = open_file(&self.path).map_err(JournalError::io(&self.path))?;
        let offset = self.data_offset + first * width as u64;
        file.seek(SeekFrom::Start(offset)).map_err(JournalError::io(&self.path))?;
        let mut bytes = vec![0u8; count as usize * width];
        file.read_exact(&mut bytes).map_err(JournalError::io(&self.path))?;
        let samples: Vec<f64> =
            bytes.chunks_exact(width).map(|sample| self.format.decode(sample)).collect();
        match samples.iter().position(|sample| !sample.is_finite()) {
            None => Ok(samples),
            Some(at) => {
                let (index, value) = (first + at as u64, samples[at]);
                let what = format!("sample {index} is {value}; record it again");
                Err(JournalError::Wav { path: self.path.clone(), what })
            }
        }
    }

    /// The whole file as a segment.
    ///
    /// # Errors
    /// As [`WavReader::read`].
    pub fn segment(&self) -> Result<Segment, JournalError> {
        let samples = self.read(0, self.frames)?;
        Ok(Segment { rate: self.rate, format: self.format, samples })
    }
}

const UNSUPPORTED: &str =
    "unsupported sample format; convert it to 16, 24 or 32 bit PCM or float32";

/// Format and rate of a `fmt ` chunk of at least 16 bytes.
fn parse_fmt(fmt: &[u8]) -> Result<(SampleFormat, u32), String> {
    let word = |i: usize| u16::from_le_bytes([fmt[i], fmt[i + 1]]);
    let tag = if word(0) == 0xfffe && fmt.len() >= 26 { word(24) } else { word(0) };
    let (channels, bits) = (word(2), word(14));
    let rate = u32::from_le_bytes([fmt[4], fmt[5], fmt[6], fmt[7]]);
    let format = match (tag, bits) {
        (1, 16) => SampleFormat::Int16,
        (1, 24) => SampleFormat::Int24,
        (1, 32) => SampleFormat::Int32,
        (3, 32) => SampleFormat::Float32,
        _ => return Err(UNSUPPORTED.into()),
    };
    if channels != 1 {
        return Err(format!("it has {channels} channels; give one, that of the ear"));
    }
    if !RATES.contains(&rate) {
        let (least, most) = RATES.into_inner();
        return Err(format!("its sample rate is {rate} Hz; give {least} to {most} Hz"));
    }
    Ok((format, rate))
}

/// Writes a segment as a mono WAV file in its own sample format.
///
/// # Errors
/// When the file can't be written.
pub fn write_wav(path: &Path, segment: &Segment) -> Result<(), JournalError> {
    let wrong = |e: hound::Error| JournalError::Wav { path: path.into(), what: e.to_string() };
    let format = segment.format;
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: segment.rate,
        bits_per_sample: 8 * u16::from(format.bytes()),
        sample_format: match format {
            SampleFormat::Float32 => hound::SampleFormat::Float,
            _ => hound::SampleFormat::Int,
        },
    };
    let mut file = hound::WavWriter::create(path, spec).map_err(wrong)?;
    for &sample in &segment.samples {
        match format {
            SampleFormat::Float32 => file.write_sample(sample as f32),
            _ => file.write_sample(format.quantise(sample)),
        }
        .map_err(wrong)?;
    }
    file.finalize().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of `channels`, `rate` and a data chunk that claims `size`, followed by `rest`.
    fn wav(tag: u16, channels: u16, rate: u32, size: u32, rest: &[u8]) -> Vec<u8> {
        let bits = if tag == 3 { 32u16 } else { 16 };
        let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0".to_vec();
        file.extend(tag.to_le_bytes());
        file.extend(channels.to_le_bytes());
        file.extend(rate.to_le_bytes());
        file.extend([0; 6]);
        file.extend(bits.to_le_bytes());
        file.extend(b"data");
        file.extend(size.to_le_bytes());
        file.extend(rest);
        file
    }

    fn read(bytes: &[u8]) -> Result<Vec<f64>, String> {
        let home = tempfile::TempDir::new().unwrap();
        let path = home.path().join("x.wav");
        std::fs::write(&path, bytes).unwrap();
        let wav = WavReader::open(&path).map_err(|error| error.to_string())?;
        assert!(wav.read(u64::MAX, u64::MAX).unwrap().is_empty());
        wav.read(0, u64::MAX).map_err(|error| error.to_string())
    }

    #[test]
    fn only_what_can_be_judged_is_read() {
        let refused = |bytes: &[u8], why: &str| {
            let error = read(bytes).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        refused(&wav(1, 2, 24_000, 4, &[0; 4]), "2 channels");
        refused(&wav(1, 0, 24_000, 4, &[0; 4]), "0 channels");
        refused(&wav(1, 1, 7_999, 4, &[0; 4]), "7999 Hz");
        refused(&wav(1, 1, 4_000_000_000, 4, &[0; 4]), "8000 to 192000 Hz");
        for value in [f32::NAN, f32::INFINITY] {
            let samples = [0f32.to_le_bytes(), value.to_le_bytes()].concat();
            refused(&wav(3, 1, 24_000, 8, &samples), "sample 1 is ");
        }
    }

    #[test]
    fn the_data_is_as_long_as_the_header_says_unless_it_was_never_completed() {
        let list = b"\0\x40\0\x40LIST\x04\0\0\0INFO";
        assert_eq!(read(&wav(1, 1, 24_000, 4, list)).unwrap(), [0.5, 0.5]);
        for unknown in UNKNOWN {
            assert_eq!(read(&wav(1, 1, 24_000, unknown, &list[..4])).unwrap(), [0.5, 0.5]);
        }
        assert_eq!(read(&wav(1, 1, 24_000, 8, &list[..4])).unwrap(), [0.5, 0.5]);
    }
}
