//! One file per predicate: a demand and a case in, a finding out.

mod accepted;
mod boot;
mod damage;
mod executed;
mod identity;
mod level_step;
mod listed;
mod online;
mod readback;
mod restarts;
pub(super) mod session;

use super::case::Case;
use super::{Discrepancy, Finding};
use crate::decode::{Answer, Exchange};
use crate::journal::JournalError;
use crate::scenario::{Claim, Demand, Rung};
use crate::time::Moment;
use std::time::Duration;

/// What the evidence says about a demand.
pub(super) fn finding(demand: &Demand, case: &Case) -> Result<Finding, JournalError> {
    Ok(match demand {
        Demand::Listed { tool } => listed::finding(tool, case),
        Demand::Accepted { step, text, within } => accepted::finding(step, text, *within, case),
        Demand::Executed { step, log, within } => executed::finding(step, log, *within, case),
        Demand::Online { step, within } => online::finding(step, *within, case),
        Demand::Readback { step, path, value, poll, within } => {
            readback::finding(step, path, value, *poll, *within, case)
        }
        Demand::LevelStep { from, to, expect, tolerance_db } => {
            level_step::finding(from, to, *expect, *tolerance_db, case)
        }
        Demand::Boot { step, within } => boot::finding(step, *within, case),
    })
}

/// A call that was refused although the claim asks for no answer to it: a yes, or none, may be
/// lawful then, but a no is not, whatever happened.
pub(super) fn contradiction(claim: &Claim, case: &Case) -> Option<Finding> {
    if claim.demands.iter().any(|d| matches!(d, Demand::Accepted { .. })) {
        return None;
    }
    let steps = claim.demands.iter().filter_map(|demand| match demand {
        Demand::Executed { step, .. } | Demand::Boot { step, .. } => Some(step),
        _ => None,
    });
    let mut calls = steps.flat_map(|id| case.story.instances(id)).flat_map(|s| case.story.calls(s));
    calls.find_map(|call| {
        let (error, record) = call.replies.iter().find_map(|reply| match &reply.answer {
            Answer::Error(error) => Some((error, reply.record)),
            _ => None,
        })?;
        let finding =
            Finding::refuted(Rung::Accepted, Discrepancy::Refused, format!("it refused: {error}"));
        Some(finding.citing([call.record, record]))
    })
}

/// The tool calls of all instances of a step; a finding when there are none.
fn calls<'a>(rung: Rung, step: &'a str, case: &'a Case) -> Result<Vec<&'a Exchange>, Finding> {
    let calls: Vec<_> = case.story.instances(step).flat_map(|s| case.story.calls(s)).collect();
    if !calls.is_empty() {
        return Ok(calls);
    }
    Err(Finding::silent(
        rung,
        match case.story.instances(step).next() {
            Some(_) => format!("no tool was called in step `{step}`"),
            None => {
                let known: Vec<&str> = case.story.steps.iter().map(|s| s.path.as_str()).collect();
                format!("there is no step `{step}`; the session has: {}", known.join(", "))
            }
        },
    ))
}

/// The reply to a call, if there was one, in time; else the finding that it was not so.
fn answer<'a>(
    rung: Rung,
    call: &'a Exchange,
    within: Duration,
    case: &Case,
) -> Result<(&'a Answer, u64, Moment), Finding> {
    let tool = call.request.tool.as_deref().unwrap_or(&call.request.method);
    let limit = within.as_secs_f64();
    if call.replies.len() > 1 {
        let differs = call.replies.iter().any(|r| r.answer != call.replies[0].answer);
        let how = if differs { ", differently" } else { "" };
        let reason = format!("it answered {} times to one call{how}", call.replies.len());
        let all = call.replies.iter().map(|r| r.record).chain([call.record]);
        return Err(Finding::refuted(rung, Discrepancy::MalformedReply, reason).citing(all));
    }
    if let (true, Some(ahead)) = (call.replies.is_empty(), call.ahead) {
        let why = format!("an answer to {tool} with this call's id was captured just before it");
        return Err(Finding::silent(rung, why).citing([call.record, ahead]));
    }
    match call.replies.first() {
        Some(reply) if reply.at.seconds_since(call.at) > limit => {
            let took = reply.at.seconds_since(call.at);
            let reason = format!("{tool} answered after {took:.1} s, the limit is {limit:.1} s");
            let finding = Finding::refuted(rung, Discrepancy::Late, reason);
            Err(finding.citing([call.record, reply.record]))
        }
        Some(reply) => Ok((&reply.answer, reply.record, reply.at)),
        None if case.story.until.seconds_since(call.at) < limit => Err(Finding::silent(
            rung,
            format!("the session ended before the {limit:.1} s for an answer of {tool} were over"),
        )
        .citing([call.record])),
        None => {
            let elsewhere = match call.elsewhere {
                Some(_) => "; a reply with its id came on another connection",
                None => "",
            };
            let reason = format!("{tool} was not answered within {limit:.1} s{elsewhere}");
            let records = [call.record].into_iter().chain(call.elsewhere);
            Err(Finding::refuted(rung, Discrepancy::NoReply, reason).citing(records))
        }
    }
}
