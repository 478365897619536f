//! Does the device report the new state?

use super::{answer, calls};
use crate::decode::Answer;
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding};
use crate::scenario::{ReadBack, Rung, Strength};
use serde_json::Value;
use std::time::Duration;

/// What a status said.
struct Reading {
    value: Value,
    boot: u32,
    records: [u64; 2],
}

pub(super) fn finding(
    step: &str,
    path: &str,
    value: &ReadBack,
    poll: bool,
    within: Duration,
    case: &Case,
) -> Finding {
    let readings = match read(step, path, poll, within, case) {
        Ok(readings) => readings,
        Err(finding) => return finding,
    };
    let (wanted, of_boot, mut records) = match value {
        ReadBack::Equals(wanted) => (wanted.clone(), None, Vec::new()),
        ReadBack::AsAsked(other) => match asked(other, path, case) {
            Ok((wanted, record)) => (wanted, None, vec![record]),
            Err(finding) => return finding,
        },
        ReadBack::SameAs(other) => match read(other, path, false, within, case) {
            Ok(mut before) => match before.pop() {
                Some(last) => (last.value, Some(last.boot), last.records.to_vec()),
                None => return Finding::silent(Rung::Readback, format!("`{other}` read nothing")),
            },
            Err(finding) => return finding,
        },
    };
    let mut rebooted = of_boot.is_some();
    for reading in &readings {
        records.extend(reading.records);
        rebooted &= of_boot.is_some_and(|boot| reading.boot > boot);
        if reading.value != wanted {
            let reason = format!("{path} reads {}, not {wanted}", reading.value);
            let finding = Finding::refuted(Rung::Readback, Discrepancy::StaleReadback, reason);
            return finding.citing(records);
        }
    }
    let same_variable = case.terms.profile.readback.get(path) == Some(&Strength::SameVariable);
    let weak = (same_variable && !rebooted)
        .then(|| "same variable that the call wrote: it can't disagree".to_owned());
    let source = if rebooted { " after a restart, from flash" } else { "" };
    let finding = Finding::proven(Rung::Readback, format!("{path} = {wanted}{source}"));
    Finding { weak, ..finding.citing(records) }
}

/// What the last call of a step asked for, by the last part of `path`.
fn asked(step: &str, path: &str, case: &Case) -> Result<(Value, u64), Finding> {
    let calls = calls(Rung::Readback, step, case)?;
    let name = path.rsplit('.').next().unwrap_or(path);
    let last = calls[calls.len() - 1];
    let value = last.request.arguments.get(name).cloned();
    value.map(|v| (v, last.record)).ok_or_else(|| {
        let why = format!("the call in `{step}` has no argument `{name}`");
        Finding::silent(Rung::Readback, why).citing([last.record])
    })
}

/// The value at `path` in the status answers of a step, one per call; with `poll` only of the
/// calls that were answered, if any was.
fn read(
    step: &str,
    path: &str,
    poll: bool,
    within: Duration,
    case: &Case,
) -> Result<Vec<Reading>, Finding> {
    let rung = Rung::Readback;
    let mut readings = Vec::new();
    let mut calls = calls(rung, step, case)?;
    if poll && calls.iter().any(|call| !call.replies.is_empty()) {
        calls.retain(|call| !call.replies.is_empty());
    }
    for call in calls {
        let (said, record, _) = answer(rung, call, within, case)?;
        let malformed = |reason: String| {
            let finding = Finding::refuted(rung, Discrepancy::MalformedReply, reason);
            finding.citing([call.record, record])
        };
        let Answer::Text(text) = said else {
            return Err(malformed(format!("the status is no text: {said:?}")));
        };
        let status: Value = serde_json::from_str(text)
            .map_err(|error| malformed(format!("the status is no JSON: {error}")))?;
        let pointer = format!("/{}", path.replace('.', "/"));
        let value = status
            .pointer(&pointer)
            .ok_or_else(|| malformed(format!("the status holds no {path}")))?;
        let records = [call.record, record];
        readings.push(Reading { value: value.clone(), boot: call.boot, records });
    }
    Ok(readings)
}
