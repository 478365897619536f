//! Is the board back after a restart: booted, configured, connected and idle?

use super::calls;
use crate::decode::uart::{BootEvent, Meaning, UartLine};
use crate::decode::{Fact, Transport, What};
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding, Measurement};
use crate::scenario::Rung;
use crate::time::Moment;
use std::time::Duration;

const RUNG: Rung = Rung::Executed;

pub(super) fn finding(step: &str, within: Duration, case: &Case) -> Finding {
    let calls = match calls(RUNG, step, case) {
        Ok(calls) => calls,
        Err(finding) => return finding,
    };
    let call = calls[calls.len() - 1];
    let facts = &case.story.facts;
    let boots: Vec<&Fact> = facts.iter().filter(|f| f.at >= call.at && began(&f.what)).collect();
    let boot = match boots[..] {
        [boot] if matches!(boot.what, What::Boot(BootEvent::Began { .. })) => boot,
        [missed] => {
            let why = format!("how the board restarted before {} was not seen", missed.at);
            return Finding::silent(RUNG, why).citing([call.record, missed.record]);
        }
        _ => {
            let why = format!("{} boots after the call: nothing to come back from", boots.len());
            return Finding::silent(RUNG, why).citing([call.record]);
        }
    };
    type Witness = (&'static str, fn(&What) -> bool);
    let witnesses: [Witness; 3] =
        [("config request", configured), ("control channel", connected), ("state `idle`", idle)];
    let limit = within.as_secs_f64();
    let (mut back, mut records) = (Moment::START, vec![call.record, boot.record]);
    for (name, is) in witnesses {
        // What the board did not do before the call is not due after it.
        let wanted = facts.iter().any(|f| f.at < call.at && is(&f.what));
        match facts.iter().find(|f| f.at > boot.at && is(&f.what)) {
            Some(fact) => {
                back = back.max(fact.at);
                records.push(fact.record);
            }
            None if !wanted => {}
            None if case.story.until < call.at + within => {
                let why =
                    format!("the session ended before the {limit:.0} s to come back were over");
                return Finding::silent(RUNG, why).citing(records);
            }
            None => {
                let why = format!("no {name} in the {limit:.0} s after the call");
                return Finding::refuted(RUNG, Discrepancy::Late, why).citing(records);
            }
        }
    }
    if records.len() == 2 {
        let why = "nothing but the console told that the board was ever online";
        return Finding::silent(RUNG, why).citing(records);
    }
    let took = back.seconds_since(call.at);
    let time = Measurement::new("call_to_online", took, "s").within(0.0, limit);
    let finding = match took <= limit {
        true => Finding::proven(RUNG, format!("online again {took:.1} s after the call")),
        false => {
            let why = format!("online again only after {took:.1} s; the limit is {limit:.0} s");
            Finding::refuted(RUNG, Discrepancy::Late, why)
        }
    };
    Finding { measurements: vec![time], ..finding }.citing(records)
}

fn began(what: &What) -> bool {
    matches!(what, What::Boot(BootEvent::Began { .. } | BootEvent::Missed { .. }))
}

fn configured(what: &What) -> bool {
    matches!(what, What::Http(message) if message.start.starts_with("POST"))
}

fn connected(what: &What) -> bool {
    matches!(what, What::Connected { transport: Transport::Mqtt, .. })
}

fn idle(what: &What) -> bool {
    matches!(what, What::Uart(UartLine { means: Meaning::State { to, .. }, .. }) if to == "idle")
}
