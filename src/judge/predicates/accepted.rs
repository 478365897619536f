//! Does the device say yes?

use super::{answer, calls};
use crate::decode::Answer;
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding, Measurement};
use crate::scenario::Rung;
use std::time::Duration;

pub(super) fn finding(step: &str, text: &str, within: Duration, case: &Case) -> Finding {
    let rung = Rung::Accepted;
    let calls = match calls(rung, step, case) {
        Ok(calls) => calls,
        Err(finding) => return finding,
    };
    let (mut records, mut slowest) = (Vec::new(), 0f64);
    for call in calls {
        let (said, record, at) = match answer(rung, call, within, case) {
            Ok(answer) => answer,
            Err(finding) => return finding,
        };
        let refuted = |name, reason: String| {
            Finding::refuted(rung, name, reason).citing([call.record, record])
        };
        match said {
            Answer::Text(said) if said == text => {}
            Answer::Text(said) => {
                let reason = format!("it answered \"{said}\" instead of \"{text}\"");
                return refuted(Discrepancy::Refused, reason);
            }
            Answer::Error(error) => {
                return refuted(Discrepancy::Refused, format!("it refused: {error}"));
            }
            Answer::Result(_) | Answer::Malformed(_) | Answer::Irregular(_) => {
                return refuted(Discrepancy::MalformedReply, format!("its answer is {said}"));
            }
        }
        records.extend([call.record, record]);
        slowest = slowest.max(at.seconds_since(call.at));
    }
    let latency = Measurement::new("reply_latency", slowest, "s").within(0.0, within.as_secs_f64());
    let reason = format!("\"{text}\" after {:.0} ms", slowest * 1e3);
    Finding { measurements: vec![latency], ..Finding::proven(rung, reason).citing(records) }
}
