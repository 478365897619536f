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
    within: Duration,
    case: &Case,
) -> Finding {
    let readings = match read(step, path, within, case) {
        Ok(readings) => readings,
        Err(finding) => return finding,
    };
    let (wanted, of_boot, mut records) = match value {
        ReadBack::Equals(wanted) => (wanted.clone(), None, Vec::new()),
        ReadBack::SameAs(other) => match read(other, path, within, case) {
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

/// The value at `path` in the status answers of a step, one per call.
fn read(step: &str, path: &str, within: Duration, case: &Case) -> Result<Vec<Reading>, Finding> {
    let rung = Rung::Readback;
    let mut readings = Vec::new();
    for call in calls(rung, step, case)? {
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
