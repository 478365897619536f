//! Does the device report the new state?

use super::{answer, calls};
use crate::decode::uart::BootEvent;
use crate::decode::{Answer, Exchange, What, doubled_key};
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding};
use crate::scenario::{ReadBack, Rung, Strength};
use crate::time::Moment;
use serde_json::{Value, json};
use std::time::Duration;

/// What a status said.
struct Reading {
    value: Value,
    boot: u32,
    /// When it was answered.
    at: Moment,
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
    let mut setter = None;
    let (wanted, of_boot, mut records) = match value {
        ReadBack::Equals(wanted) => (wanted.clone(), None, Vec::new()),
        ReadBack::AsAsked(other) => match asked(other, path, &readings, case) {
            Ok((wanted, call)) => {
                setter = Some(call);
                (wanted, Some(call.boot), vec![call.record])
            }
            Err(finding) => return finding,
        },
        ReadBack::SameAs(other) => match read(other, path, false, within, case) {
            Ok(mut before) => match before.pop() {
                Some(last) if readings.iter().any(|r| r.records[0] <= last.records[0]) => {
                    let why = format!("`{step}` was read before `{other}`, or is the same reading");
                    return Finding::silent(Rung::Readback, why).citing(last.records);
                }
                Some(last) => (last.value, Some(last.boot), last.records.to_vec()),
                None => return Finding::silent(Rung::Readback, format!("`{other}` read nothing")),
            },
            Err(finding) => return finding,
        },
    };
    let mut rebooted = of_boot.is_some();
    let mut seen = wanted.clone();
    for reading in &readings {
        records.extend(reading.records);
        let stored = of_boot.is_some_and(|boot| reading.boot > boot);
        rebooted &= stored;
        let floor = case.terms.profile.floor.get(path).filter(|_| stored);
        let wanted = floor.map_or(wanted.clone(), |floor| floor.raised(wanted.clone()));
        seen.clone_from(&wanted);
        if !same(&reading.value, &wanted) {
            let reason = format!("{path} reads {}, not {wanted}", reading.value);
            let writer = setter.and_then(|call| case.another_writer(call, reading.at));
            if let Some((fact, value)) = writer {
                let why = format!("{reason}, but another writer set it to {value} at {}", fact.at);
                return Finding::silent(Rung::Readback, why).citing(records).citing([fact.record]);
            }
            let name = match is_between(&reading.value, before(reading, path, case), &wanted) {
                true => Discrepancy::Clamped,
                false => Discrepancy::StaleReadback,
            };
            return Finding::refuted(Rung::Readback, name, reason).citing(records);
        }
    }
    let weak = weakness(path, &seen, rebooted, case);
    let source = if rebooted { " after a restart, from flash" } else { "" };
    let finding = Finding::proven(Rung::Readback, format!("{path} = {seen}{source}"));
    Finding { weak, ..finding.citing(records) }
}

/// Why a value that was read as it should be proves little.
fn weakness(path: &str, seen: &Value, rebooted: bool, case: &Case) -> Option<String> {
    let default = case.terms.profile.default.get(path).filter(|d| same(&json!(d), seen));
    match case.terms.profile.readback.get(path) {
        _ if rebooted && default.is_some() => Some(format!(
            "{seen} is also the firmware's default: it reads the same when nothing was stored"
        )),
        _ if rebooted => None,
        Some(Strength::Independent) => None,
        Some(Strength::SameVariable) => {
            Some("same variable that the call wrote: it can't disagree".to_owned())
        }
        None => Some(format!("the board's profile does not say where {path} comes from")),
    }
}

/// What the last call of a step asked for, by the last part of `path`. Every reading must have been
/// asked for after it and before the next call of that tool: else it tells of another moment.
fn asked<'a>(
    step: &'a str,
    path: &str,
    readings: &[Reading],
    case: &'a Case,
) -> Result<(Value, &'a Exchange), Finding> {
    let calls = calls(Rung::Readback, step, case)?;
    let last = calls[calls.len() - 1];
    let silent = |why| Err(Finding::silent(Rung::Readback, why).citing([last.record]));
    for reading in readings {
        let status = reading.records[0];
        let exchanges = case.story.mcp.exchanges.iter();
        let mut same_tool = exchanges.filter(|x| x.request.tool == last.request.tool);
        if status < last.record {
            return silent(format!("{path} was asked for before the call in `{step}`"));
        }
        if same_tool.any(|x| x.record > last.record && x.record < status) {
            return silent(format!(
                "another call came between the one in `{step}` and the reading"
            ));
        }
    }
    let name = path.rsplit('.').next().unwrap_or(path);
    match last.request.arguments.get(name) {
        Some(value) => Ok((value.clone(), last)),
        None => silent(format!("the call in `{step}` has no argument `{name}`")),
    }
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
    let all: Vec<u64> = calls.iter().map(|call| call.record).collect();
    calls.retain(|call| counts(call, case));
    if calls.is_empty() {
        return Err(outlived(step, case).citing(all));
    }
    if poll && calls.iter().any(|call| !call.replies.is_empty()) {
        calls.retain(|call| !call.replies.is_empty());
    }
    for call in calls {
        let (said, record, at) = answer(rung, call, within, case)?;
        let malformed = |reason: String| {
            let finding = Finding::refuted(rung, Discrepancy::MalformedReply, reason);
            finding.citing([call.record, record])
        };
        let Answer::Text(text) = said else {
            return Err(malformed(format!("the status is {said}")));
        };
        if let Some(key) = doubled_key(text.as_bytes()) {
            return Err(malformed(format!("the status names \"{key}\" twice")));
        }
        let status: Value = serde_json::from_str(text)
            .map_err(|error| malformed(format!("the status is no JSON: {error}")))?;
        let pointer = format!("/{}", path.replace('.', "/"));
        let records = [call.record, record];
        let known = case.terms.profile.readback.contains_key(path);
        let value = status.pointer(&pointer).ok_or_else(|| match known {
            true => malformed(format!("the status holds no {path}")),
            // A slip of the scenario's is not the device's.
            false => {
                let why = format!("the status holds no {path}, nor does the board's profile");
                Finding::silent(rung, why).citing(records)
            }
        })?;
        readings.push(Reading { value: value.clone(), boot: call.boot, at, records });
    }
    Ok(readings)
}

/// What the status said at `path` before a reading.
fn before(reading: &Reading, path: &str, case: &Case) -> Option<Value> {
    let pointer = format!("/{}", path.replace('.', "/"));
    let earlier = case.story.mcp.exchanges.iter().rev().filter(|x| x.record < reading.records[0]);
    earlier.filter_map(|x| x.replies.first()).find_map(|reply| match &reply.answer {
        Answer::Text(text) => serde_json::from_str::<Value>(text).ok()?.pointer(&pointer).cloned(),
        _ => None,
    })
}

/// Whether a value went towards the wanted one, and stopped on the way.
fn is_between(value: &Value, before: Option<Value>, wanted: &Value) -> bool {
    let numbers = (value.as_f64(), before.and_then(|v| v.as_f64()), wanted.as_f64());
    let (Some(value), Some(before), Some(wanted)) = numbers else { return false };
    (before < value && value < wanted) || (wanted < value && value < before)
}

/// Whether two JSON values are equal, numbers as numbers: 40 is 40.0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        // Beyond 2^53 different integers share a float.
        (Value::Number(x), Value::Number(y)) if x.is_f64() || y.is_f64() => {
            x.as_f64() == y.as_f64()
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y))
        }
        (Value::Object(x), Value::Object(y)) => {
            let equal = |(key, x): (&String, &Value)| y.get(key).is_some_and(|y| same(x, y));
            x.len() == y.len() && x.iter().all(equal)
        }
        _ => a == b,
    }
}

/// Whether a call was made to the board as it is after the last restart that a claim asked for
/// before it: in a later boot, and answered, if at all, on a connection of that boot.
fn counts(call: &Exchange, case: &Case) -> bool {
    case.reboots().filter(|reboot| reboot.record < call.record).last().is_none_or(|reboot| {
        let anew = call.replies.is_empty() || call.connection > reboot.connection;
        call.boot > reboot.boot && anew
    })
}

/// All calls of a step went to the board before it restarted, or to one that nobody saw restart.
fn outlived(step: &str, case: &Case) -> Finding {
    let last = case.reboots().last().map_or(u64::MAX, |reboot| reboot.record);
    let mut after = case.story.facts.iter().filter(|f| f.record > last);
    let why = match after.any(|f| matches!(f.what, What::Boot(BootEvent::Began { .. }))) {
        true => "the board was asked only before it was back from its restart",
        false => "no restart was seen, so the answer may be that of the board as it was",
    };
    Finding::silent(Rung::Readback, format!("`{step}`: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert!(same(&json!({"a": [40, 60.0]}), &json!({"a": [40.0, 60]})));
        assert!(!same(&json!(40), &json!(40.5)));
        assert!(!same(&json!(40), &json!("40")));
        assert!(!same(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992_u64)));
        assert!(!same(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
    }
}
