//! Is there a trace of doing on the console?

use super::calls;
use crate::decode::uart::UartLine;
use crate::decode::{Exchange, Fact, What};
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding};
use crate::scenario::{Rung, nearest};
use crate::time::Moment;
use serde_json::Value;
use std::time::Duration;

pub(super) fn finding(step: &str, log: &str, within: Duration, case: &Case) -> Finding {
    let rung = Rung::Executed;
    let calls = match calls(rung, step, case) {
        Ok(calls) => calls,
        Err(finding) => return finding,
    };
    let (mut records, mut seen) = (Vec::new(), String::new());
    for call in calls {
        let log = &match filled_in(log, call) {
            Ok(log) => log,
            Err(why) => return Finding::silent(rung, why).citing([call.record]),
        };
        let until = ends(call, within, case);
        let tagged = tagged(log, case);
        let after = lines(case).filter(|(f, _)| f.at >= call.at && f.at < until);
        match after.clone().find(|(_, line)| says(line, log, tagged)) {
            Some((fact, _)) => records.extend([call.record, fact.record]),
            None => return missing(call, log, until, case),
        }
        seen.clone_from(log);
    }
    Finding::proven(rung, format!("console \"{seen}\"")).citing(records)
}

/// The text with `{name}` replaced by the call's argument of that name; why not, when it has none.
fn filled_in(text: &str, call: &Exchange) -> Result<String, String> {
    let arguments = call.request.arguments.as_object();
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        let Some((name, rest)) = part.split_once('}').filter(|(name, _)| is_name(name)) else {
            filled.extend(["{", part]);
            continue;
        };
        match arguments.and_then(|arguments| arguments.get(name)) {
            Some(Value::String(value)) => filled.extend([value, rest]),
            Some(value) => filled.extend([&value.to_string(), rest]),
            None => {
                let names = arguments.into_iter().flatten().map(|(name, _)| name.as_str());
                let meant = nearest(name, names.clone()).map(|n| format!("; did you mean `{n}`?"));
                return Err(format!(
                    "the scenario asks for `{{{name}}}`, but the call's arguments are: {}{}",
                    names.collect::<Vec<_>>().join(", "),
                    meant.unwrap_or_default()
                ));
            }
        }
    }
    Ok(filled)
}

/// A trace counts until the same tool is called again: it could be the next call's.
fn ends(call: &Exchange, within: Duration, case: &Case) -> Moment {
    let limit = call.at + within;
    let again = case
        .story
        .mcp
        .exchanges
        .iter()
        .find(|x| x.record > call.record && x.request.tool == call.request.tool);
    again.map_or(limit, |x| x.at.min(limit))
}

fn lines<'a>(case: &'a Case) -> impl Iterator<Item = (&'a Fact, &'a UartLine)> + Clone {
    case.story.facts.iter().filter_map(|f| match &f.what {
        What::Uart(line) => Some((f, line)),
        _ => None,
    })
}

/// The line's message is `wanted`, or `TAG: message`; a line that merely mentions it is not it,
/// nor one of another tag that quotes it.
fn says(line: &UartLine, wanted: &str, tagged: Option<(&str, &str)>) -> bool {
    match (&line.log, tagged) {
        (None, _) => line.text == wanted,
        (Some(log), Some((tag, text))) => log.tag == tag && log.text == text,
        (Some(log), None) => log.text == wanted && !line.quotes(),
    }
}

/// The tag and the message that a claim names. A message may hold a colon, too: only what is a
/// tag somewhere on this console is one.
fn tagged<'a>(wanted: &'a str, case: &Case) -> Option<(&'a str, &'a str)> {
    let (tag, text) = wanted.split_once(": ")?;
    let mut logs = lines(case).filter_map(|(_, line)| line.log.as_ref());
    logs.any(|log| log.tag == tag).then_some((tag, text))
}

fn mentions(line: &UartLine, wanted: &str) -> bool {
    let text = wanted.split_once(": ").map_or(wanted, |(_, text)| text);
    line.text.ends_with(text)
}

fn missing(call: &Exchange, log: &str, until: Moment, case: &Case) -> Finding {
    let rung = Rung::Executed;
    let mut before = lines(case).filter(|(f, _)| f.at < call.at && f.boot == call.boot);
    let straddles = |f: &Fact| f.at < call.at && call.at <= f.until;
    let mut torn = lines(case).filter(|(f, line)| straddles(f) && mentions(line, log));
    let finding = if let Some((fact, _)) = torn.next() {
        let why = format!("the line with \"{log}\" began before the call, at {}", fact.at);
        Finding::silent(rung, why).citing([fact.record])
    } else if before.next().is_none() {
        Finding::silent(rung, "the console was silent since the board started: nobody looked")
    } else if case.story.until < until {
        Finding::silent(rung, format!("the session ended before \"{log}\" could be expected"))
    } else {
        let reason = format!("the console never said \"{log}\" after the call");
        Finding::refuted(rung, Discrepancy::SilentSuccess, reason)
    };
    finding.citing([call.record])
}
