//! Closed form: synthetic recordings whose levels, frequencies and steps follow from how they were
//! made (`vectors/manifest.json` says how, and how exactly), and Opus packets with the samples
//! that libopus makes of them.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use earwitness::audio::level::{dbfs, decibels, power, ratio};
use earwitness::audio::noise::Noise;
use earwitness::audio::opus;
use earwitness::audio::spectrum::Spectrum;
use earwitness::audio::tone::Tone;
use serde_json::Value;
use std::f64::consts::TAU;
use std::fs;
use std::path::{Path, PathBuf};

/// How far from the expected frequency a tone is looked for, a fraction.
const SEARCH: f64 = 0.01;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)
}

fn vectors(manifest: &str) -> Vec<Value> {
    let text = fs::read_to_string(file(manifest)).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    manifest["vectors"].as_array().unwrap().clone()
}

/// Samples at full scale 1.0 and their rate, read without the code under test.
fn wav(name: &str) -> (Vec<f64>, f64) {
    let mut reader = hound::WavReader::open(file(name)).unwrap();
    let spec = reader.spec();
    let scale = f64::from(1u32 << (spec.bits_per_sample - 1));
    let samples = reader.samples::<i32>().map(|x| f64::from(x.unwrap()) / scale).collect();
    (samples, f64::from(spec.sample_rate))
}

/// The metrics of one vector, by name, as far as this crate measures them.
fn measured(metric: &str, samples: &[f64], rate: f64, hz: f64) -> Vec<f64> {
    let tone = |samples: &[f64]| Tone::measure(samples, rate, hz, SEARCH);
    let (low, high) = samples.split_at(samples.len() / 2);
    match metric {
        "level_dbfs" => vec![tone(samples).dbfs(), dbfs(Spectrum::of(samples, rate).lobe(hz))],
        "level_dbrms" => vec![decibels(tone(samples).power)],
        "level_total_dbrms" => vec![decibels(power(samples))],
        "frequency_hz" => vec![tone(samples).hz],
        "step_db" => vec![tone(high).dbfs() - tone(low).dbfs()],
        "level_lo_dbfs" => vec![tone(low).dbfs()],
        "naive_broadband_rms_step_db" => vec![decibels(power(high) / power(low))],
        "noise_dbfs" => vec![dbfs(power(samples))],
        _ => Vec::new(),
    }
}

#[test]
fn tones_and_steps_read_what_they_were_made_with() {
    let mut checks = 0;
    for vector in vectors("manifest.json") {
        let (samples, rate) = wav(vector["file"].as_str().unwrap());
        let expected = vector["expected"].as_array().unwrap();
        let hz = expected.iter().find(|e| e["metric"] == "frequency_hz");
        let hz = hz.map_or(1000.0, |e| e["value"].as_f64().unwrap());
        for entry in expected {
            let (metric, tolerance) = (entry["metric"].as_str().unwrap(), entry["tol"].as_f64());
            for value in measured(metric, &samples, rate, hz) {
                let (wanted, tolerance) = (entry["value"].as_f64().unwrap(), tolerance.unwrap());
                let place = format!("{} {metric}", vector["id"]);
                let off = (value - wanted).abs();
                assert!(off <= tolerance, "{place}: {value}, made with {wanted} +-{tolerance}");
                checks += 1;
            }
        }
    }
    assert_eq!(checks, 38, "as many as the manifest asks for and the crate can answer");
}

/// The stated uncertainty of a step covers its error at every SNR, files and made here alike.
#[test]
fn a_step_in_noise_is_as_uncertain_as_it_says() {
    let check = |place: &str, samples: &[f64], rate: f64| {
        let (low, high) = samples.split_at(samples.len() / 2);
        let measure = |half: &[f64]| Tone::measure(half, rate, 1000.0, SEARCH);
        let (low, high) = (measure(low), measure(high));
        assert!(low.is_present() && high.is_present(), "{place}");
        let error = high.dbfs() - low.dbfs() - decibels(4.0);
        // 16 bit rounding alone, with no noise to speak of, may add this much.
        let limit = 4.0 * low.sigma_db().hypot(high.sigma_db()) + 0.001;
        assert!(error.abs() <= limit, "{place}: off by {error} dB, limit {limit} dB");
    };
    for name in ["step6_snr40.wav", "step6_snr20.wav", "step6_snrm10.wav"] {
        let (samples, rate) = wav(name);
        check(name, &samples, rate);
    }
    for snr_db in [40.0, 20.0, 10.0, 0.0, -10.0] {
        for seed in 0..5 {
            let (amplitude, rate) = (0.01, 16000.0);
            let sigma = (amplitude * amplitude / 2.0 / ratio(snr_db)).sqrt();
            let mut noise = Noise::new(seed, 0);
            let sample = |n: usize| {
                let amplitude = if n < 8000 { amplitude } else { 2.0 * amplitude };
                amplitude * (TAU * n as f64 / 16.0).sin() + sigma * noise.gaussian()
            };
            let samples: Vec<f64> = (0..16000).map(sample).collect();
            check(&format!("{snr_db} dB, seed {seed}"), &samples, rate);
        }
    }
}

#[test]
fn nothing_is_no_tone() {
    for name in ["digital_zero.wav", "noise_only.wav"] {
        let (samples, rate) = wav(name);
        for hz in [440.0, 1000.0, 1897.9, 5000.0] {
            let tone = Tone::measure(&samples, rate, hz, SEARCH);
            assert!(!tone.is_present(), "{name} {hz} Hz: {} sigmas", tone.sigmas());
        }
    }
    let (zeros, rate) = wav("digital_zero.wav");
    assert_eq!(Tone::measure(&zeros, rate, 1000.0, SEARCH).ceiling_dbfs(), f64::NEG_INFINITY);
}

/// Packets as the manifest stores them: length in two bytes, little end first, then the packet.
fn packets(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut packets = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let (packet, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)));
        packets.push(packet);
        bytes = rest;
    }
    assert!(bytes.is_empty(), "half a length at the end");
    packets
}

#[test]
fn opus_decodes_as_libopus_does() {
    for vector in vectors("manifest_opus.json") {
        let text = |key: &str| vector[key].as_str().unwrap();
        let bytes = fs::read(file(text("packets"))).unwrap();
        let packets = packets(&bytes);
        assert_eq!(packets.len() as u64, vector["packet_count"].as_u64().unwrap());
        let ours = opus::decode(packets).unwrap();
        let (theirs, rate) = wav(text("decoded"));
        assert_eq!((ours.len(), rate), (theirs.len(), f64::from(opus::RATE)));
        assert!(power(&theirs) > 1e-4, "the reference sounds");
        let rest: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a - b).collect();
        let residual = decibels(power(&rest) / power(&theirs));
        let most = vector["expected"][0]["value"].as_f64().unwrap();
        assert!(residual <= most, "{}: {residual:.1} dBc, at most {most}", text("id"));
        println!("{}: residual {residual:.1} dBc", text("id"));
    }
}
