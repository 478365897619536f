//! The room between the board's loudspeaker, the bench's own loudspeaker and the bench's
//! microphone.

use super::Fault;
use crate::audio::level::{THIRD_OCTAVE, mean_square};
use crate::audio::noise::Noise;
use crate::time::Moment;
use std::collections::VecDeque;
use std::f64::consts::{PI, TAU};
use std::time::Duration;

/// How a room sounds and what its microphone is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acoustics {
    /// Where the noise comes from.
    pub seed: u64,
    /// Level of the noise in the third octave around 1 kHz, dBFS (AES17).
    pub noise_dbfs: f64,
    /// From a loudspeaker to the microphone.
    pub delay: Duration,
    /// How much faster than 24 kHz the microphone's clock runs, millionths.
    pub drift_ppm: f64,
    /// From the loudspeaker's full scale to the microphone's, dB.
    pub gain_db: f64,
    /// Level of the beacon at the microphone, dBFS (AES17).
    pub beacon_dbfs: f64,
    /// A fault of microphone or room; others do nothing here.
    pub fault: Option<Fault>,
}

/// Nominal rate of loudspeaker and microphone, hertz.
const RATE: f64 = 24_000.0;

/// The centre of the third octave whose level is stated.
const CENTRE: f64 = 1000.0;

/// How long a beacon sounds, and its raised-cosine ramps, seconds.
const BEACON: f64 = 1.0;
const RAMP: f64 = 0.020;

/// Samples of one sound that are kept after the microphone has passed them.
const LONG: usize = 240_000;

/// The noise of a noisy room over the loudspeaker's full scale, dB in a third octave: a tone of
/// -12 dBFS is 15 dB and more below it wherever it lies in the band.
const NOISY_DB: f64 = 7.5;

/// A noisy room's band, hertz: tones lie in it.
const NOISY_BAND: (f64, f64) = (700.0, 2200.0);

/// The room's use of the seed.
const ROOM_STREAM: u64 = 0x0a00_e501;

/// The room; all times are those of the session.
#[derive(Debug)]
pub struct Room {
    draw: Acoustics,
    noise: Noise,
    sigma: f64,
    band: Option<BandPass>,
    gain: f64,
    /// The loudspeaker's sound that the microphone hasn't passed yet.
    played: VecDeque<Played>,
    beacons: Vec<(f64, f64)>,
    /// The microphone's next sample.
    next: u64,
}

#[derive(Debug)]
struct Played {
    /// When the first sample sounds, seconds.
    from: f64,
    samples: Vec<f32>,
}

impl Played {
    fn until(&self) -> f64 {
        self.from + self.samples.len() as f64 / RATE
    }
}

impl Room {
    /// A silent room, its microphone running since the session's start.
    pub fn new(draw: Acoustics) -> Room {
        let noisy = draw.fault == Some(Fault::NoisyRoom);
        let level =
            if noisy { draw.noise_dbfs.max(draw.gain_db + NOISY_DB) } else { draw.noise_dbfs };
        let density = mean_square(level) / (THIRD_OCTAVE * CENTRE);
        Room {
            draw,
            noise: Noise::new(draw.seed, ROOM_STREAM),
            sigma: (density * RATE / 2.0).sqrt(),
            band: noisy.then(|| BandPass::new(NOISY_BAND)),
            gain: 10f64.powf(draw.gain_db / 20.0),
            played: VecDeque::new(),
            beacons: Vec::new(),
            next: 0,
        }
    }

    /// The board's loudspeaker plays: 24 kHz, the first sample at `at`.
    pub fn speaker(&mut self, at: Moment, samples: &[f32]) {
        let from = at.as_secs_f64();
        match self.played.back_mut() {
            // What follows without a gap is one sound, so that nothing clicks in between.
            Some(last) if (last.until() - from).abs() < 0.5 / RATE => {
                last.samples.extend_from_slice(samples);
            }
            _ => self.played.push_back(Played { from, samples: samples.to_vec() }),
        }
    }

    /// The bench's loudspeaker plays a tone of 1 s with raised-cosine ramps of 20 ms.
    pub fn beacon(&mut self, at: Moment, hz: f64) {
        self.beacons.push((at.as_secs_f64(), hz));
    }

    /// The microphone's samples from where it stopped last up to `until`, full scale 1.0. All
    /// sound up to `until` must have been told before.
    pub fn microphone(&mut self, until: Moment) -> Vec<f32> {
        let rate = RATE * (1.0 + self.draw.drift_ppm * 1e-6);
        let end = (until.as_secs_f64() * rate).ceil() as u64;
        let count = end.saturating_sub(self.next) as usize;
        let mut heard = vec![0f32; count];
        if self.draw.fault != Some(Fault::ZeroMic) {
            self.hear_noise(&mut heard);
            if self.draw.fault != Some(Fault::DeafMic) {
                // The time at which that sounds which the first sample hears.
                let from = self.next as f64 / rate - self.draw.delay.as_secs_f64();
                self.hear_loudspeaker(&mut heard, from, RATE / rate);
                self.hear_beacons(&mut heard, from, 1.0 / rate);
            }
            heard.iter_mut().for_each(|sample| *sample = sample.clamp(-1.0, 1.0));
        }
        self.next += count as u64;
        let from = self.next as f64 / rate - self.draw.delay.as_secs_f64();
        // The interpolation looks two samples back.
        self.played.retain(|played| played.until() + 4.0 / RATE > from);
        self.beacons.retain(|(at, _)| at + BEACON > from);
        if let Some(long) = self.played.front_mut() {
            let passed = ((from - long.from) * RATE) as usize;
            if passed > LONG {
                long.samples.drain(..passed - 8);
                long.from += (passed - 8) as f64 / RATE;
            }
        }
        heard
    }

    fn hear_noise(&mut self, heard: &mut [f32]) {
        for sample in heard {
            let noise = self.sigma * self.noise.bell();
            *sample = match &mut self.band {
                Some(band) => band.pass(noise),
                None => noise,
            } as f32;
        }
    }

    fn hear_loudspeaker(&self, heard: &mut [f32], from: f64, step: f64) {
        let gain = self.gain as f32;
        for played in &self.played {
            let samples = &played.samples;
            let begin = (from - played.from) * RATE;
            let first = ((-1.0 - begin) / step).ceil().max(0.0) as usize;
            let last = ((samples.len() as f64 - begin) / step).ceil().max(0.0) as usize;
            let last = last.min(heard.len());
            for (k, sample) in heard.iter_mut().enumerate().take(last).skip(first) {
                let position = begin + k as f64 * step;
                let whole = position.floor();
                let part = (position - whole) as f32;
                let n = whole as isize;
                let around = match usize::try_from(n - 1).ok().and_then(|m| samples.get(m..m + 4)) {
                    Some(&[a, b, c, d]) => [a, b, c, d],
                    _ => [n - 1, n, n + 1, n + 2].map(|m| {
                        usize::try_from(m).ok().and_then(|m| samples.get(m)).copied().unwrap_or(0.0)
                    }),
                };
                *sample += gain * between(around, part);
            }
        }
    }

    fn hear_beacons(&self, heard: &mut [f32], from: f64, step: f64) {
        let amplitude = (2.0 * mean_square(self.draw.beacon_dbfs)).sqrt();
        for (at, hz) in &self.beacons {
            let first = ((at - from) / step).ceil().max(0.0) as usize;
            for (k, sample) in heard.iter_mut().enumerate().skip(first) {
                let t = from + k as f64 * step - at;
                if t >= BEACON {
                    break;
                }
                let ramp = (t.min(BEACON - t) / RAMP).min(1.0);
                let shape = 0.5 - 0.5 * (PI * ramp).cos();
                *sample += (amplitude * shape * (TAU * hz * t).sin()) as f32;
            }
        }
    }
}

/// The value between the second and the third of four samples, by a cubic curve through both
/// (Catmull-Rom). Loses 0.015 dB at 2 kHz where it is worst, half way.
pub(super) fn between([a, b, c, d]: [f32; 4], part: f32) -> f32 {
    let slope = (c - a) / 2.0;
    let bend = a - 2.5 * b + 2.0 * c - 0.5 * d;
    let twist = (d - a) / 2.0 + 1.5 * (b - c);
    b + part * (slope + part * (bend + part * twist))
}

/// A band-pass of second order with gain 1 at [`CENTRE`].
#[derive(Debug)]
struct BandPass {
    b0: f64,
    a1: f64,
    a2: f64,
    inputs: [f64; 2],
    outputs: [f64; 2],
}

impl BandPass {
    fn new((low, high): (f64, f64)) -> Self {
        let omega = TAU * (low * high).sqrt() / RATE;
        let alpha = omega.sin() / 2.0 * (high - low) / (low * high).sqrt();
        let (b0, a1, a2) = (alpha / (1.0 + alpha), -2.0 * omega.cos(), 1.0 - alpha);
        let (a1, a2) = (a1 / (1.0 + alpha), a2 / (1.0 + alpha));
        let z = TAU * CENTRE / RATE;
        let over = (b0 - b0 * (2.0 * z).cos()).hypot(b0 * (2.0 * z).sin());
        let real = 1.0 + a1 * z.cos() + a2 * (2.0 * z).cos();
        let imaginary = a1 * z.sin() + a2 * (2.0 * z).sin();
        let gain = over / real.hypot(imaginary);
        BandPass { b0: b0 / gain, a1, a2, inputs: [0.0; 2], outputs: [0.0; 2] }
    }

    fn pass(&mut self, input: f64) -> f64 {
        let [near, far] = self.outputs;
        let output = self.b0 * (input - self.inputs[1]) - self.a1 * near - self.a2 * far;
        self.inputs = [input, self.inputs[0]];
        self.outputs = [output, near];
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::level::{dbfs, power};
    use crate::audio::spectrum::Spectrum;
    use crate::audio::tone::Tone;

    const QUIET: Acoustics = Acoustics {
        seed: 1,
        noise_dbfs: -100.0,
        delay: Duration::from_micros(7_321),
        drift_ppm: 0.0,
        gain_db: -6.0,
        beacon_dbfs: -20.0,
        fault: None,
    };

    /// What the microphone hears in 4 s, told in chunks, of a tone that sounds from 1.0 to 2.2 s.
    fn heard(draw: Acoustics, hz: f64) -> Vec<f64> {
        let mut room = Room::new(draw);
        let mut samples = Vec::new();
        for chunk in 0..67u64 {
            let at = Moment::from_nanos(chunk * 60_000_000);
            samples.extend(room.microphone(at));
            if (17..37).contains(&chunk) {
                let first = (chunk - 17) * 1440;
                let tone = |n: u64| 0.25 * (TAU * hz * (first + n) as f64 / RATE).sin();
                let packet: Vec<f32> = (0..1440).map(|n| tone(n) as f32).collect();
                room.speaker(at, &packet);
            }
            if chunk == 40 {
                room.beacon(at, 2000.0);
            }
        }
        samples.iter().map(|&x| f64::from(x)).collect()
    }

    /// Closed form: 0.25 is -12.041 dBFS, less the path gain; the clock moves the pitch.
    #[test]
    fn the_level_is_right_with_drift_and_delay() {
        for (drift_ppm, hz, delay) in
            [(0.0, 1000.0, 0), (100.0, 997.3, 7), (-100.0, 1500.0, 21), (73.0, 2000.0, 1)]
        {
            let delay = Duration::from_micros(delay * 1_021);
            let samples = heard(Acoustics { drift_ppm, delay, ..QUIET }, hz);
            let tone = Tone::measure(&samples[26_400..50_400], RATE, hz, 0.01);
            assert!((tone.dbfs() + 18.041).abs() < 0.02, "{drift_ppm} {hz}: {}", tone.dbfs());
            let expected = hz / (1.0 + drift_ppm * 1e-6);
            assert!((tone.hz - expected).abs() < 0.002, "{drift_ppm} {hz}: {}", tone.hz);
        }
    }

    #[test]
    fn sound_comes_after_its_delay() {
        let mut room = Room::new(Acoustics { noise_dbfs: -300.0, gain_db: 0.0, ..QUIET });
        room.speaker(Moment::from_secs_f64(0.5), &[0.5; 240]);
        let samples = room.microphone(Moment::from_secs_f64(1.0));
        assert_eq!(samples.len(), 24_000);
        let first = samples.iter().position(|x| *x > 0.25).unwrap();
        assert_eq!(first, (0.507_321 * RATE).ceil() as usize);
        assert_eq!(samples.iter().filter(|x| **x > 0.25).count(), 240);
    }

    #[test]
    fn the_beacon_is_as_loud_as_asked() {
        let samples = heard(QUIET, 1000.0);
        let tone = Tone::measure(&samples[60_000..78_000], RATE, 2000.0, 0.01);
        assert!((tone.dbfs() + 20.0).abs() < 0.01, "{}", tone.dbfs());
    }

    #[test]
    fn the_noise_is_as_loud_as_asked() {
        let mut room = Room::new(Acoustics { noise_dbfs: -40.0, ..QUIET });
        let samples = room.microphone(Moment::from_secs_f64(20.0));
        let samples: Vec<f64> = samples.iter().map(|&x| f64::from(x)).collect();
        // White noise: the third octave around 1 kHz is 230.8 Hz of 12 kHz.
        let level = dbfs(power(&samples) * THIRD_OCTAVE * CENTRE / (RATE / 2.0));
        assert!((level + 40.0).abs() < 0.05, "{level}");
        let density = Spectrum::of(&samples, RATE).noise_density(1000.0);
        let level = dbfs(density * THIRD_OCTAVE * CENTRE);
        assert!((level + 40.0).abs() < 0.5, "{level}");
    }

    #[test]
    fn broken_ears_are_broken_as_they_say() {
        let with = |fault| Acoustics { fault: Some(fault), ..QUIET };
        assert!(heard(with(Fault::ZeroMic), 1000.0).iter().all(|x| *x == 0.0));
        let deaf = heard(with(Fault::DeafMic), 1000.0);
        assert!(power(&deaf) > 0.0 && deaf.iter().all(|x| x.abs() < 0.001));
        // The loudest tone, -12 dBFS at full gain, stands 15 dB and more below the noise.
        for hz in [750.0, 1000.0, 1500.0, 2000.0] {
            let noisy = heard(Acoustics { gain_db: -20.0, ..with(Fault::NoisyRoom) }, 3000.0);
            let density = Spectrum::of(&noisy, RATE).noise_density(hz);
            let snr = -32.0 - dbfs(density * THIRD_OCTAVE * hz);
            assert!((-24.0..-15.0).contains(&snr), "{hz}: {snr}");
        }
    }

    #[test]
    fn the_same_seed_sounds_the_same() {
        assert_eq!(heard(QUIET, 1000.0), heard(QUIET, 1000.0));
        assert_ne!(heard(QUIET, 1000.0), heard(Acoustics { seed: 2, ..QUIET }, 1000.0));
    }
}
