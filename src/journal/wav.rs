//! WAV files as evidence: the file's length is trusted, its header's length fields are not,
//! because a recorder that was killed never came back to fill them in.

use super::{JournalError, SampleFormat, Segment};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A mono or multi-channel PCM file, opened; samples are read on demand.
#[derive(Debug)]
pub struct WavReader {
    path: PathBuf,
    format: SampleFormat,
    channels: u16,
    /// Samples per second.
    pub rate: u32,
    data_offset: u64,
    /// Frames that are really in the file.
    pub frames: u64,
    /// Frames that the header claims.
    pub claimed_frames: u64,
}

impl WavReader {
    /// Reads the header.
    ///
    /// # Errors
    /// When the file can't be read, is no RIFF/WAVE file, ends inside its header, or holds
    /// anything but 16, 24 or 32 bit integers or 32 bit floats.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let wrong = |what: &str| JournalError::Wav { path: path.into(), what: what.into() };
        let file = File::open(path).map_err(JournalError::io(path))?;
        let length = file.metadata().map_err(JournalError::io(path))?.len();
        let mut file = BufReader::new(file);
        let mut riff = [0u8; 12];
        let torn = "the file ends inside its header; record it again";
        file.read_exact(&mut riff).map_err(|_| wrong(torn))?;
        if &riff[0..4] != b"RIFF" || &riff[8..12] != b"WAVE" {
            return Err(wrong("this is no RIFF/WAVE file; give a PCM .wav"));
        }
        let mut fmt: Option<(SampleFormat, u16, u32)> = None;
        loop {
            let mut chunk = [0u8; 8];
            file.read_exact(&mut chunk).map_err(|_| wrong(torn))?;
            let size = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
            match (&chunk[0..4], fmt) {
                (b"fmt ", _) => {
                    let unsupported =
                        "unsupported sample format; convert it to 16, 24 or 32 bit PCM or float32";
                    if !(16..=4096).contains(&size) {
                        return Err(wrong(unsupported));
                    }
                    let mut bytes = vec![0u8; (size + size % 2) as usize];
                    file.read_exact(&mut bytes).map_err(|_| wrong(torn))?;
                    fmt = Some(parse_fmt(&bytes).ok_or_else(|| wrong(unsupported))?);
                }
                (b"data", Some((format, channels, rate))) => {
                    let data_offset = file.stream_position().map_err(JournalError::io(path))?;
                    let frame = u64::from(format.bytes()) * u64::from(channels);
                    return Ok(WavReader {
                        path: path.into(),
                        format,
                        channels,
                        rate,
                        data_offset,
                        frames: length.saturating_sub(data_offset) / frame,
                        claimed_frames: u64::from(size) / frame,
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

    /// The first channel of `count` frames from `first` on, full scale = 1.0; fewer at the end.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn read(&self, first: u64, count: u64) -> Result<Vec<f64>, JournalError> {
        let count = count.min(self.frames.saturating_sub(first));
        let width = usize::from(self.format.bytes());
        let frame = width * usize::from(self.channels);
        let mut file = File::open(&self.path).map_err(JournalError::io(&self.path))?;
        let offset = self.data_offset + first * frame as u64;
        file.seek(SeekFrom::Start(offset)).map_err(JournalError::io(&self.path))?;
        let mut bytes = vec![0u8; count as usize * frame];
        file.read_exact(&mut bytes).map_err(JournalError::io(&self.path))?;
        Ok(bytes.chunks_exact(frame).map(|f| self.format.decode(&f[..width])).collect())
    }

    /// The whole file as a segment that starts at `start`.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn segment(&self) -> Result<Segment, JournalError> {
        let samples = self.read(0, self.frames)?;
        Ok(Segment { rate: self.rate, format: self.format, samples })
    }
}

/// Format, channels and rate of a `fmt ` chunk of at least 16 bytes.
fn parse_fmt(fmt: &[u8]) -> Option<(SampleFormat, u16, u32)> {
    let word = |i: usize| u16::from_le_bytes([fmt[i], fmt[i + 1]]);
    let tag = if word(0) == 0xfffe && fmt.len() >= 26 { word(24) } else { word(0) };
    let (channels, bits) = (word(2), word(14));
    let rate = u32::from_le_bytes([fmt[4], fmt[5], fmt[6], fmt[7]]);
    let format = match (tag, bits) {
        (1, 16) => SampleFormat::Int16,
        (1, 24) => SampleFormat::Int24,
        (1, 32) => SampleFormat::Int32,
        (3, 32) => SampleFormat::Float32,
        _ => return None,
    };
    (channels > 0 && rate > 0).then_some((format, channels, rate))
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
