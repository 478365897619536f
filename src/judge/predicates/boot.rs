//! Did the board restart: once, in order, and without a panic? Witnessed by the chip's ROM.

use super::calls;
use crate::decode::uart::{BootEvent, ResetCause};
use crate::decode::{Transport, What};
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding, Measurement};
use crate::scenario::Rung;
use crate::time::Moment;
use std::time::Duration;

const RUNG: Rung = Rung::Physical;

pub(super) fn finding(step: &str, within: Duration, case: &Case) -> Finding {
    let calls = match calls(RUNG, step, case) {
        Ok(calls) => calls,
        Err(finding) => return finding,
    };
    let call = calls[calls.len() - 1];
    let after = case.story.facts.iter().filter(|f| f.at >= call.at);
    let (mut boots, mut panics, mut resets, mut records) = (Vec::new(), 0, Vec::new(), Vec::new());
    for fact in after.clone() {
        match &fact.what {
            What::Boot(BootEvent::Began { .. }) => boots.push(fact.at),
            What::Boot(BootEvent::Panicked { .. }) => panics += 1,
            What::Boot(BootEvent::Reset { reset, .. }) => resets.push(reset),
            _ => continue,
        }
        records.push(fact.record);
    }
    let count = |name: &str, n: usize, right: f64| {
        Measurement::new(name, n as f64, "1").within(right, right)
    };
    let mut measurements = vec![count("boots", boots.len(), 1.0), count("panics", panics, 0.0)];
    measurements.extend(chain(call.at, &boots, case));
    let limit = within.as_secs_f64();
    let refuted = |name, reason: String| Finding::refuted(RUNG, name, reason);
    let finding = match boots.first() {
        None if case.story.until < call.at + within => {
            let why = format!("the session ended before the {limit:.0} s for a restart were over");
            Finding::silent(RUNG, why)
        }
        None => refuted(Discrepancy::NoReboot, format!("no ROM banner within {limit:.0} s")),
        Some(_) if boots.len() > 2 => {
            refuted(Discrepancy::BootLoop, format!("{} boots after one request", boots.len()))
        }
        Some(_) if boots.len() > 1 || panics > 0 => {
            let what = format!("{} boots and {panics} panics after one request", boots.len());
            refuted(Discrepancy::UnexpectedReset, what)
        }
        Some(first) if first.seconds_since(call.at) > limit => {
            let took = first.seconds_since(call.at);
            refuted(Discrepancy::Late, format!("the ROM banner came after {took:.1} s"))
        }
        Some(first) => match resets.first().map(|r| (r.cause(), r.code)) {
            None => Finding::silent(RUNG, "the banner names no reset reason"),
            Some((ResetCause::SoftwareCpu | ResetCause::SoftwareSystem, code)) => {
                let took = first.seconds_since(call.at);
                let told = format!("1 boot after {took:.2} s, rst:0x{code:x}, no panic");
                Finding::proven(RUNG, told)
            }
            Some((cause, code)) => {
                let told = format!("the board restarted, but by {cause:?} (rst:0x{code:x})");
                refuted(Discrepancy::UnexpectedReset, told)
            }
        },
    };
    Finding { measurements, ..finding }.citing(records).citing([call.record])
}

/// Seconds from the call to each independent event of the way back.
fn chain(call: Moment, boots: &[Moment], case: &Case) -> Vec<Measurement> {
    let Some(banner) = boots.first() else { return Vec::new() };
    let first = |name: &str, is: &dyn Fn(&What) -> bool| {
        let event = case.story.facts.iter().find(|f| f.at > *banner && is(&f.what))?;
        Some((name.to_owned(), event.at))
    };
    let events = [
        Some(("call_to_banner".to_owned(), *banner)),
        first(
            "call_to_config_request",
            &|w| matches!(w, What::Http(m) if m.start.starts_with("POST")),
        ),
        first("call_to_connection", &|w| {
            matches!(w, What::Connected { transport: Transport::Mqtt | Transport::WebSocket, .. })
        }),
        first("call_to_first_reply", &|w| matches!(w, What::Reply(_))),
    ];
    let seconds =
        |(name, at): (String, Moment)| Measurement::new(name, at.seconds_since(call), "s");
    events.into_iter().flatten().map(seconds).collect()
}
