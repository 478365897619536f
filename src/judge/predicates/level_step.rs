//! Did the level at the ear change, by as much as it should?

use crate::audio::decide::{self, Decision};
use crate::audio::law::Law;
use crate::decode::sound::{self, Heard, Hearing};
use crate::decode::{Fact, Step};
use crate::judge::case::{Case, EarState};
use crate::judge::{Discrepancy, Ear, Finding, Measurement, Status};
use crate::scenario::{Expectation, Rung};
use crate::time::Measured;
use std::time::Duration;

const RUNG: Rung = Rung::Physical;

/// Ratios of two common sample rates: what a wrong rate does to the pitch (acoustics.md 3.3).
const WRONG_RATES: [f64; 8] = [1.0 / 3.0, 0.5, 2.0 / 3.0, 0.9188, 1.0884, 1.5, 2.0, 3.0];

/// A tone this much weaker than the path promises is not taken for the loudspeaker's (estimated:
/// more than any placement of an ear does).
const FAINT_DB: f64 = 20.0;

/// What is promised for one pair of plays.
struct Promise {
    step_db: f64,
    law: Option<Law>,
    volumes: Option<(u32, u32)>,
}

pub(super) fn finding(
    from: &[String],
    to: &[String],
    expect: Expectation,
    tolerance_db: f64,
    case: &Case,
) -> Finding {
    if let Some(play) = case.unheard(from).or_else(|| case.unheard(to)) {
        let reason = format!("{}: {}", play.path, play.why);
        return Finding::silent(RUNG, reason).citing(vec![play.record]);
    }
    let pairs = match pairs(from, to, case) {
        Ok(pairs) => pairs,
        Err(why) => return Finding::silent(RUNG, why),
    };
    let (before, after): (Vec<&Hearing>, Vec<&Hearing>) = pairs.into_iter().unzip();
    let plays: Vec<&Hearing> = before.iter().chain(&after).copied().collect();
    let records = plays.iter().map(|h| h.record).collect::<Vec<_>>();
    match case.ear() {
        EarState::Blind(why) => return Finding::blind(why).citing(records),
        EarState::Unproven(why) => return Finding::silent(RUNG, why).citing(records),
        EarState::Alive(_) => {}
    }
    if let Some((fact, why)) = plays.iter().find_map(|play| turned(play, case)) {
        return Finding::silent(RUNG, why).citing(records).citing([fact.record]);
    }
    let mut promises = Vec::new();
    for (a, b) in before.iter().zip(&after) {
        match promise(a, b, expect, tolerance_db, case) {
            Ok(promise) => promises.push(promise),
            Err(why) => return Finding::silent(RUNG, why).citing(records),
        }
    }
    let finding = strange(&plays)
        .or_else(|| unable(&plays, case))
        .or_else(|| absent(&plays, case))
        .or_else(|| faint(&plays, case))
        .unwrap_or_else(|| step(&before, &after, &promises, tolerance_db, case));
    let unlike = (finding.status == Status::Proven).then(|| unlike(&plays, tolerance_db, case));
    let finding = match unlike.flatten() {
        Some(unlike) => Finding { measurements: finding.measurements, ..unlike },
        None => finding,
    };
    finding.citing(records)
}

/// The console line that tells of another volume than the one that was asked for before a play.
fn turned<'a>(play: &Hearing, case: &'a Case) -> Option<(&'a Fact, String)> {
    let (_, record) = case.volume_asked(play.sent)?;
    let call = case.story.mcp.exchanges.iter().find(|x| x.record == record)?;
    let (fact, value) = case.another_writer(call, play.window.until)?;
    let path = &play.path;
    Some((fact, format!("{path}: another writer set the volume to {value} at {}", fact.at)))
}

/// Plays at one volume that differ in level: something other than the volume decides it. In a room
/// that may be the room.
fn unlike(plays: &[&Hearing], tolerance_db: f64, case: &Case) -> Option<Finding> {
    let pairs =
        plays.iter().enumerate().flat_map(|(n, a)| plays[n + 1..].iter().map(move |b| (a, b)));
    pairs.into_iter().find_map(|(a, b)| {
        let volume = |play: &Hearing| case.volume_asked(play.sent).map(|(volume, _)| volume);
        let at = volume(a).filter(|at| volume(b) == Some(*at))?;
        let pair = sound::step(a, b)?;
        let by = pair.db - (b.stimulus.dbfs - a.stimulus.dbfs);
        let uncertain = 2.0 * pair.sigma_db.hypot(sigma_b(case)) + pair.interference_db;
        let reason = format!(
            "{} and {} differ by {by:+.1} dB at one volume, {at}: the steps may be right, the \
             levels are not",
            a.path, b.path
        );
        let other = by.abs() > tolerance_db + uncertain;
        other.then(|| match case.terms.ear {
            Ear::Tap => Finding::refuted(RUNG, Discrepancy::WrongMagnitude, reason),
            Ear::Microphone => Finding::silent(RUNG, format!("{reason}, or the ear was moved")),
        })
    })
}

/// What a step is uncertain by, whatever the noise, dB.
fn sigma_b(case: &Case) -> f64 {
    match case.terms.ear {
        Ear::Tap => decide::TAP_STEP_SIGMA_DB,
        Ear::Microphone => decide::MICROPHONE_STEP_SIGMA_DB,
    }
}

/// The plays of `from` with those of `to`: the steps as they are written, their instances in
/// order. Nothing is left out: what was not heard is a reason not to judge.
fn pairs<'a>(
    from: &[String],
    to: &[String],
    case: &'a Case,
) -> Result<Vec<(&'a Hearing, &'a Hearing)>, String> {
    let mut pairs = Vec::new();
    for (low, high) in from.iter().zip(to) {
        let instances = |id| case.story.instances(id).collect::<Vec<_>>();
        let (lows, highs) = (instances(low), instances(high));
        if let Some((_, id)) = [(&lows, low), (&highs, high)].iter().find(|(s, _)| s.is_empty()) {
            return Err(format!("no tone was sent in a step `{id}`"));
        }
        if lows.len() != highs.len() {
            let counts = format!("{} and {} times", lows.len(), highs.len());
            return Err(format!("`{low}` and `{high}` were played {counts}: they must pair"));
        }
        for (a, b) in lows.into_iter().zip(highs) {
            if a.record == b.record {
                return Err(format!("{} is compared with itself", a.path));
            }
            let heard = |step: &Step| {
                case.heard(step).ok_or_else(|| format!("{}: no tone was sent", step.path))
            };
            pairs.push((heard(a)?, heard(b)?));
        }
    }
    Ok(pairs)
}

fn promise(
    a: &Hearing,
    b: &Hearing,
    expect: Expectation,
    tolerance_db: f64,
    case: &Case,
) -> Result<Promise, String> {
    let volumes = case.volume_asked(a.sent).zip(case.volume_asked(b.sent));
    let volumes = volumes.map(|((from, _), (to, _))| (from, to));
    if let Expectation::Decibels(step_db) = expect {
        return Ok(Promise { step_db, law: None, volumes });
    }
    let Some((from, to)) = volumes else {
        return Err("no set_volume came before the tone, so nobody knows what to expect".into());
    };
    let Some((law, _)) = case.law() else {
        return Err("the board's gain law is not known: state `law` in the rig".into());
    };
    let step_db = law.step_db(from, to).ok_or_else(|| {
        format!("volume {from} to {to}: a step from or to silence is not a number of dB")
    })?;
    if step_db.abs() <= tolerance_db {
        return Err(format!(
            "volume {from} to {to} is worth {step_db:+.2} dB: within {tolerance_db} dB of that \
             a board that does nothing would pass"
        ));
    }
    Ok(Promise { step_db, law: Some(law), volumes: Some((from, to)) })
}

/// Sounds that are not our stimulus.
fn strange(plays: &[&Hearing]) -> Option<Finding> {
    plays.iter().find_map(|play| match play.heard {
        Heard::Clipped => {
            let reason =
                format!("{}: the ear was at full scale: lower the capture gain", play.path);
            Some(Finding::silent(RUNG, reason))
        }
        Heard::Unsteady(jolt) => {
            let at = play.window.from + Duration::from_secs_f64(jolt.begins);
            let reason = format!(
                "{}: the tone was not steady: for {:.0} ms at {at} it was {:+.1} dB and \
                 {:.0} degrees off the whole: it has no level",
                play.path,
                1000.0 * jolt.seconds,
                jolt.db,
                jolt.degrees.abs()
            );
            Some(Finding::silent(RUNG, reason))
        }
        Heard::SecondSource(tone, contrast) => {
            let reason = format!(
                "{}: the {:.1} dBFS at {:.0} Hz are only {contrast:.1} dB more than before or \
                 after the board was made to play: another source",
                play.path,
                tone.dbfs(),
                tone.hz
            );
            let mut finding = Finding::silent(RUNG, reason);
            finding.discrepancy = Some(Discrepancy::WrongSource);
            Some(finding)
        }
        Heard::Another(tone) => {
            let ratio = tone.hz / play.stimulus.hz;
            let known = WRONG_RATES.iter().find(|r| (ratio / **r - 1.0).abs() < 0.005);
            let sent = format!(
                "{}: {:.0} Hz were sent and {:.1} Hz heard",
                play.path, play.stimulus.hz, tone.hz
            );
            Some(match known {
                Some(_) => Finding::refuted(
                    RUNG,
                    Discrepancy::WrongSource,
                    format!("{sent}: {ratio:.3} times the pitch, a wrong sample rate"),
                ),
                None => Finding {
                    discrepancy: Some(Discrepancy::WrongSource),
                    ..Finding::silent(RUNG, format!("{sent}: not our stimulus"))
                },
            })
        }
        _ => None,
    })
}

/// What the board was doing in the middle of what it was sent; the window of a hearing means
/// little where nothing was heard, the packets tell when it should have played.
fn state<'a>(play: &Hearing, case: &'a Case) -> Option<&'a str> {
    let amid = Duration::from_secs_f64(play.stimulus.begins + play.stimulus.seconds / 2.0);
    case.state_at(play.sent + amid)
}

/// A board that was in no state to play: nothing was asked of it, and what was heard was not it.
fn unable(plays: &[&Hearing], case: &Case) -> Option<Finding> {
    plays.iter().find_map(|play| {
        let other = state(play, case).filter(|state| *state != "speaking")?;
        let why = format!(
            "{}: the board was in `{other}`, where it drops what is sent to it; nothing was asked",
            play.path
        );
        Some(Finding::silent(RUNG, why))
    })
}

/// Tones that are missing: refuted when they are missing for sure, silent otherwise. The smallest
/// of all expected tones must stand clear of the noise, so that a quiet one is not missed just
/// because a loud one would have been heard.
fn absent(plays: &[&Hearing], case: &Case) -> Option<Finding> {
    let missing = |play: &&&Hearing| matches!(play.heard, Heard::Nothing(_));
    let play = plays.iter().find(missing)?;
    let Heard::Nothing(tone) = play.heard else { return None };
    let hz = play.stimulus.hz;
    let expected: Option<Vec<f64>> = plays.iter().map(|play| expected_dbfs(play, case)).collect();
    let Some(expected) = expected else {
        let why = format!(
            "{}: no {hz:.0} Hz heard, and how loud it should be is not known \
             (path gain, law and volume are needed)",
            play.path
        );
        return Some(Finding::silent(RUNG, why));
    };
    let smallest = expected.into_iter().fold(f64::INFINITY, f64::min);
    let (floor, ceiling) = (tone.floor_dbfs(), tone.ceiling_dbfs());
    if !decide::is_surely_absent(smallest, floor, ceiling) {
        let (over, least) = match smallest - floor < decide::ABSENCE_SNR13_DB {
            true => {
                (format!("{:.1} dB over the noise", smallest - floor), decide::ABSENCE_SNR13_DB)
            }
            false => (
                format!("{:.1} dB over the {ceiling:.1} dBFS that could hide", smallest - ceiling),
                decide::ABSENCE_CEILING_DB,
            ),
        };
        let why = format!(
            "{}: no {hz:.0} Hz heard, but the expected {smallest:.1} dBFS stand only {over}; \
             absence counts from {least:.0} dB on",
            play.path
        );
        return Some(Finding::silent(RUNG, why));
    }
    let found = match ceiling.is_finite() {
        true => format!("at most {ceiling:.1} dBFS"),
        false => "exact silence".into(),
    };
    let state = state(play, case).map_or(String::new(), |state| format!(", board in `{state}`"));
    let reason = format!(
        "{}: {hz:.0} Hz: {found}; expected {smallest:.1} dBFS ({} packets sent{state})",
        play.path, play.packets
    );
    let level = Measurement::new("tone_ceiling", ceiling, "dBFS");
    let finding = Finding::refuted(RUNG, Discrepancy::SilentSuccess, reason);
    Some(Finding { measurements: vec![level], ..finding })
}

/// Tones that are there, but so much weaker than a board at its volume makes them that something
/// other than the volume decides their level: what is heard may not even be the loudspeaker.
fn faint(plays: &[&Hearing], case: &Case) -> Option<Finding> {
    plays.iter().find_map(|play| {
        let (level, expected) = (play.tone()?.dbfs(), expected_dbfs(play, case)?);
        let reason = format!(
            "{}: {level:.1} dBFS where {expected:.1} dBFS are expected: more than {FAINT_DB:.0} dB \
             too weak for a level of it to mean anything",
            play.path
        );
        (expected - level > FAINT_DB).then(|| Finding::silent(RUNG, reason))
    })
}

/// How loud a play should be at the ear: the level sent, the law at the volume asked, the path.
fn expected_dbfs(play: &Hearing, case: &Case) -> Option<f64> {
    let (law, _) = case.law()?;
    let (volume, _) = case.volume_asked(play.sent)?;
    Some(play.stimulus.dbfs + law.gain_db(volume) + case.terms.path_gain_db?)
}

/// The step of present tones against what was promised.
fn step(
    before: &[&Hearing],
    after: &[&Hearing],
    promises: &[Promise],
    tolerance_db: f64,
    case: &Case,
) -> Finding {
    // Each pair is held against its own promise, so that pairs of different volumes may be mixed.
    let (mut errors, mut measurements, mut snr13) = (Vec::new(), Vec::new(), f64::INFINITY);
    let mut interference = 0.0;
    for ((a, b), promise) in before.iter().zip(after).zip(promises) {
        let Some(pair) = sound::step(a, b) else { continue };
        errors.push((pair.db - promise.step_db, pair.sigma_db));
        interference += pair.interference_db / before.len() as f64;
        for (play, tone) in [a, b].iter().filter_map(|play| Some((play, play.tone()?))) {
            let name = format!("level {}", play.path);
            let level = Measurement::new(name, tone.dbfs(), "dBFS");
            measurements.push(level.plus_minus(2.0 * tone.sigma_db() + play.interference_db(tone)));
            snr13 = snr13.min(tone.snr13_db());
        }
    }
    let Some(error) = decide::combine(&errors, sigma_b(case)) else {
        return Finding::silent(RUNG, "no pair of tones was heard");
    };
    let first = &promises[0];
    let mean_promise = promises.iter().map(|p| p.step_db).sum::<f64>() / promises.len() as f64;
    let value = error.value + mean_promise;
    let step = Measured { value, plus_minus: error.plus_minus + interference };
    let measured = Measurement::new("level_step", value, "dB").plus_minus(step.plus_minus);
    let measured = measured.within(mean_promise - tolerance_db, mean_promise + tolerance_db);
    measurements.insert(0, measured);
    measurements.push(Measurement::new("snr13", snr13, "dB"));
    let law = first.law.map_or("expected".to_owned(), |law| format!("law {law}"));
    let what = match first.volumes {
        Some((from, to)) => format!("volume {from}->{to} {step} dB"),
        None => format!("{step} dB"),
    };
    let told = format!("{what}, {law} {mean_promise:+.2} +-{tolerance_db} dB");
    let finding = match decide::within(step, mean_promise, tolerance_db) {
        Decision::Inside => Finding::proven(RUNG, told),
        Decision::Outside => {
            let (name, why) = name(step, mean_promise, first, tolerance_db, case);
            Finding::refuted(RUNG, name, format!("{told}: {why}"))
        }
        Decision::GuardBand => {
            Finding::silent(RUNG, format!("{told}: within the uncertainty of a limit"))
        }
        Decision::TooUncertain => {
            let why = format!(
                "{told}: uncertain by more than a third of the tolerance (SNR13 {snr13:.1} dB, \
                 {interference:.2} dB from what else sounds at this frequency)"
            );
            let other = interference > error.plus_minus;
            let discrepancy = other.then_some(Discrepancy::WrongSource);
            Finding { discrepancy, ..Finding::silent(RUNG, why) }
        }
    };
    Finding { measurements, ..finding }
}

/// The name of a step that is not the promised one.
fn name(
    step: Measured,
    promised: f64,
    promise: &Promise,
    tolerance_db: f64,
    case: &Case,
) -> (Discrepancy, String) {
    let others: Vec<String> = match (promise.law, promise.volumes) {
        (Some(law), Some(_)) if is_in_force(law, tolerance_db, case) => Vec::new(),
        (Some(law), Some((from, to))) => Law::explaining(step.value, from, to, tolerance_db)
            .into_iter()
            .filter(|other| *other != law)
            .map(|other| other.to_string())
            .collect(),
        _ => Vec::new(),
    };
    if step.value.abs() + step.plus_minus < tolerance_db.min(promised.abs() / 2.0) {
        (Discrepancy::SilentSuccess, "the level did not change".into())
    } else if step.value * promised < 0.0 {
        (Discrepancy::WrongDirection, "the level went the other way".into())
    } else if others.is_empty() {
        (Discrepancy::WrongMagnitude, "the step has the wrong size".into())
    } else {
        (Discrepancy::WrongLaw, format!("that is the step of {}", others.join(" or ")))
    }
}

/// Whether the board follows its law somewhere in the session: then a step of another size is no
/// sign of another law.
fn is_in_force(law: Law, tolerance_db: f64, case: &Case) -> bool {
    case.hearings.windows(2).any(|plays| {
        let [a, b] = plays else { return false };
        let volumes = case.volume_asked(a.sent).zip(case.volume_asked(b.sent));
        let promised = volumes.and_then(|((from, _), (to, _))| law.step_db(from, to));
        let heard = sound::step(a, b).map(|step| step.db);
        promised.zip(heard).is_some_and(|(promised, heard)| {
            promised.abs() > tolerance_db && (heard - promised).abs() <= tolerance_db
        })
    })
}
