//! From Opus packets to the loudspeaker: the decode queue, volume and amplifier, local sounds.

use super::app::Wait;
use super::{Board, Event, Fault, Output};
use crate::audio::law::Law;
use crate::audio::opus::{Decoder, RATE};
use crate::time::Moment;
use std::collections::VecDeque;
use std::f64::consts::TAU;
use std::time::Duration;

/// The way from packets to the loudspeaker.
#[derive(Debug, Default)]
pub(super) struct Playback {
    decoder: Decoder,
    queue: VecDeque<Packet>,
    /// What the stretched sound of a wrong pitch still needs of the packet before.
    before: [f32; 3],
    playing: bool,
    stopped: bool,
    output_enabled: bool,
    last_sample: Moment,
    resampled: bool,
    output_idle: u64,
    input_idle: u64,
    /// Whether the microphone runs.
    pub input_enabled: bool,
}

#[derive(Debug)]
enum Packet {
    Opus { bytes: Vec<u8>, longest: usize },
    Local(Vec<f32>),
}

/// Packets that the decode queue holds.
const QUEUE: usize = 40;

/// The amplifier goes off this long after the last sample, looked at each second.
const IDLE: Duration = Duration::from_secs(15);

const SECOND: Duration = Duration::from_secs(1);

/// The volume above which a clamped board gets no louder.
const CLAMP: i32 = 70;

impl Playback {
    /// Forgets what waits, not what sounds.
    pub fn clear(&mut self) {
        self.queue.clear();
        self.decoder = Decoder::default();
    }

    /// The audio tasks end; nothing sounds any more.
    pub fn stop(&mut self) {
        self.clear();
        self.stopped = true;
    }

    pub fn is_silent(&self) -> bool {
        !self.playing && self.queue.is_empty()
    }
}

impl Board {
    /// The firmware's `SetOutputVolume`, as far as the board lets it work.
    pub(super) fn set_volume(&mut self, asked: i32) {
        let volume = if self.has(Fault::ClampSw) { asked.min(CLAMP) } else { asked };
        self.ram.volume = volume;
        self.nvs.volume = volume;
        self.log('I', "AudioCodec", &format!("Set output volume to {volume}"));
    }

    /// The factor that samples are really multiplied with.
    fn gain(&self) -> f32 {
        let volume = match self.setup.fault {
            Some(Fault::DeadAmp) => 0,
            Some(Fault::StuckVolume) => self.ram.volume_at_boot,
            Some(Fault::Clamp) => self.ram.volume.min(CLAMP),
            _ => self.ram.volume,
        };
        let decibels = self.setup.law.gain_db(u32::try_from(volume).unwrap_or(0));
        10f64.powf(decibels / 20.0) as f32
    }

    pub(super) fn queue_packet(&mut self, bytes: Vec<u8>, longest: usize) {
        if self.ram.playback.queue.len() < QUEUE {
            self.queue(Packet::Opus { bytes, longest });
        }
    }

    fn queue(&mut self, packet: Packet) {
        if self.ram.playback.stopped {
            return;
        }
        if matches!(packet, Packet::Local(_)) && !self.ram.playback.resampled {
            self.ram.playback.resampled = true;
            self.enable_output();
            self.log('I', "AudioService", "Resampling audio from 16000 to 24000");
        }
        self.ram.playback.queue.push_back(packet);
        if !self.ram.playback.playing {
            self.ram.playback.playing = true;
            let ready = self.enable_output();
            self.plan(ready, Event::Play);
        }
    }

    /// Returns how long it takes until samples come out.
    fn enable_output(&mut self) -> Duration {
        if self.ram.playback.output_enabled {
            return self.about(4_000, 8_000);
        }
        self.ram.playback.output_enabled = true;
        self.log('I', "AudioCodec", "Set output enable to true");
        self.about(20_000, 40_000)
    }

    /// The last packet has been played; here is the next, or the end.
    pub(super) fn play(&mut self) {
        while let Some(packet) = self.ram.playback.queue.pop_front() {
            let Some(samples) = self.samples(packet) else { continue };
            let length = Duration::from_secs(samples.len() as u64) / RATE;
            self.ram.playback.last_sample = self.now + length;
            self.emit(Output::Speaker(samples));
            return self.plan(length, Event::Play);
        }
        let playback = &mut self.ram.playback;
        playback.playing = false;
        playback.before = [0.0; 3];
        self.plan_output_off(IDLE);
        if self.waits_for(Wait::Drain) {
            self.resume();
            self.drained();
        }
    }

    fn samples(&mut self, packet: Packet) -> Option<Vec<f32>> {
        let gain = self.gain();
        let playback = &mut self.ram.playback;
        let mut samples = match packet {
            Packet::Local(samples) => samples,
            Packet::Opus { bytes, longest } => match playback.decoder.decode(&bytes) {
                Ok(samples) if samples.len() <= longest => samples.to_vec(),
                _ => {
                    let text = "Failed to decode audio after resize, error code: -4";
                    self.log('E', "AudioService", text);
                    return None;
                }
            },
        };
        if self.has(Fault::WrongPitch) {
            samples = stretch(&mut self.ram.playback.before, &samples);
        }
        samples.iter_mut().for_each(|sample| *sample *= gain);
        (!samples.is_empty()).then_some(samples)
    }

    fn plan_output_off(&mut self, after: Duration) {
        let number = self.number();
        self.ram.playback.output_idle = number;
        // The timer counts seconds since the boot.
        let fired = (self.now + after - self.booted).as_secs() + 1;
        let at = self.booted + Duration::from_secs(fired);
        self.plan(at - self.now, Event::OutputOff(number));
    }

    pub(super) fn output_off(&mut self, number: u64) {
        let playback = &self.ram.playback;
        if number != playback.output_idle || playback.playing {
            return;
        }
        // A duplex codec stays on as long as the microphone runs.
        if self.setup.law != Law::NoAudioCodec && playback.input_enabled {
            return self.plan_output_off(SECOND);
        }
        if std::mem::take(&mut self.ram.playback.output_enabled) {
            self.log('I', "AudioCodec", "Set output enable to false");
        }
    }

    /// Nobody listens to the microphone any more.
    pub(super) fn input_idle(&mut self) {
        self.ram.playback.input_idle = self.number();
        self.plan(IDLE + SECOND, Event::InputOff(self.ram.playback.input_idle));
    }

    pub(super) fn input_off(&mut self, number: u64) {
        let listens = self.ram.state == super::app::State::Listening;
        if number == self.ram.playback.input_idle && self.ram.playback.input_enabled && !listens {
            self.ram.playback.input_enabled = false;
            self.log('I', "AudioCodec", "Set input enable to false");
        }
    }

    /// The sound of a board that is ready: half a second between 500 and 830 Hz.
    pub(super) fn chime(&mut self) {
        self.log('I', "LiteAudioEngine", "Initialized, WakeNet: no");
        self.sing(&[(523.0, 0.16), (659.0, 0.16), (784.0, 0.20)], 0.5);
    }

    /// The sound of an alert: almost everything below 200 Hz.
    pub(super) fn buzz(&mut self) {
        self.sing(&[(174.0, 0.2), (114.0, 0.2)], 0.52);
    }

    fn sing(&mut self, notes: &[(f64, f64)], amplitude: f64) {
        let note = |&(hz, seconds): &(f64, f64)| {
            let count = (seconds * f64::from(RATE)) as usize;
            (0..count).map(move |n| {
                let t = n as f64 / f64::from(RATE);
                let ramp = (t.min(seconds - t) / 0.01).min(1.0);
                (amplitude * ramp * (TAU * hz * t).sin()) as f32
            })
        };
        let song: Vec<f32> = notes.iter().flat_map(note).collect();
        for packet in song.chunks(RATE as usize * 60 / 1000) {
            self.queue(Packet::Local(packet.to_vec()));
        }
    }
}

/// Sound as a codec plays it that runs at two thirds of the rate: three samples for two
/// (Catmull-Rom between them).
fn stretch(before: &mut [f32; 3], samples: &[f32]) -> Vec<f32> {
    let at = |n: usize| if n < 3 { before[n] } else { samples[n - 3] };
    let stretched = (0..samples.len() * 3 / 2).map(|k| {
        let (n, part) = (1 + 2 * k / 3, (2 * k % 3) as f32 / 3.0);
        super::room::between([at(n - 1), at(n), at(n + 1), at(n + 2)], part)
    });
    let stretched = stretched.collect();
    if let [.., a, b, c] = samples {
        *before = [*a, *b, *c];
    }
    stretched
}
