//! Is there a trace of doing on the console?

use super::calls;
use super::damage::{self, is_near};
use crate::decode::uart::{Meaning, UartLine};
use crate::decode::{Exchange, Fact, What};
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding};
use crate::scenario::{Rung, nearest};
use crate::time::Window;
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
        let tagged = tagged(log, case);
        let said = |window: Window| {
            let mut lines = lines(case).filter(|(f, _)| window.contains(f.at));
            lines.find(|(_, line)| line.says(log, tagged)).map(|(fact, _)| fact.record)
        };
        // A trace counts until the next call that changes anything: it could be that one's.
        let alone = window(call, within, case, Exchange::changes_something);
        let again = window(call, within, case, |x| x.request.tool == call.request.tool);
        match (said(alone), said(again)) {
            (Some(line), _) => records.extend([call.record, line]),
            (None, Some(line)) => {
                let why =
                    format!("\"{log}\" came only after another call: for which, nobody knows");
                return Finding::silent(rung, why).citing([call.record, line]);
            }
            (None, None) => return missing(call, log, again, case),
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

/// From a call to the first later one that `ends` it.
fn window(
    call: &Exchange,
    within: Duration,
    case: &Case,
    ends: impl Fn(&Exchange) -> bool,
) -> Window {
    let limit = call.at + within;
    let mut later = case.story.mcp.exchanges.iter().filter(|x| x.record > call.record);
    Window { from: call.at, until: later.find(|x| ends(x)).map_or(limit, |x| x.at.min(limit)) }
}

fn lines<'a>(case: &'a Case) -> impl Iterator<Item = (&'a Fact, &'a UartLine)> + Clone {
    case.story.facts.iter().filter_map(|f| match &f.what {
        What::Uart(line) => Some((f, line)),
        _ => None,
    })
}

/// The tag and the message that a claim names. A message may hold a colon, too: only what is a
/// tag somewhere on this console is one.
fn tagged<'a>(wanted: &'a str, case: &Case) -> Option<(&'a str, &'a str)> {
    let (tag, text) = wanted.split_once(": ")?;
    let mut logs = lines(case).filter_map(|(_, line)| line.log.as_ref());
    logs.any(|log| log.tag == tag).then_some((tag, text))
}

fn missing(call: &Exchange, log: &str, window: Window, case: &Case) -> Finding {
    let rung = Rung::Executed;
    let finding = if let Some((why, record)) = excuse(call, log, window, case) {
        Finding::silent(rung, why).citing([record])
    } else if case.story.until < window.until {
        Finding::silent(rung, format!("the session ended before \"{log}\" could be expected"))
    } else {
        let reason = format!("the console never said \"{log}\" after the call");
        Finding::refuted(rung, Discrepancy::SilentSuccess, reason)
    };
    finding.citing([call.record])
}

/// Why the missing line says nothing about the device, and the record that shows it.
fn excuse(call: &Exchange, log: &str, window: Window, case: &Case) -> Option<(String, u64)> {
    let seen = |when: &dyn Fn(&Fact) -> bool| {
        lines(case).any(|(fact, line)| when(fact) && line.log.is_some())
    };
    let nobody = if !seen(&|f| f.boot == call.boot && f.at < call.at) {
        Some("no line of the console since the board started reads as one of its log")
    } else if !seen(&|f| f.at >= call.at) {
        Some("the console said nothing any more from the call on")
    } else {
        None
    };
    if let Some(why) = nobody {
        return Some((format!("{why}: nobody looked"), call.record));
    }
    let mut of_boot = lines(case).filter(|(f, _)| f.boot == call.boot);
    let straddles = |f: &Fact| f.at < call.at && call.at <= f.until;
    let during = |f: &Fact| straddles(f) || window.contains(f.at);
    if let Some((fact, line)) = of_boot.clone().find(|(f, l)| during(f) && is_near(l, log)) {
        let why = match straddles(fact) {
            true => format!("the line with \"{log}\" began before the call, at {}", fact.at),
            false => format!("\"{}\" may be \"{log}\", damaged or in other words", line.text),
        };
        return Some((why, fact.record));
    }
    let raw = |line: &UartLine| line.log.is_none() && line.means == Meaning::Nothing;
    let hurt = damage::first(of_boot.clone())
        .or_else(|| of_boot.find(|(f, line)| window.contains(f.at) && raw(line)).map(|(f, _)| f))?;
    let why = format!("the console lost or damaged bytes at {}", hurt.at);
    Some((format!("{why}: a line that was printed may be missing"), hurt.record))
}
