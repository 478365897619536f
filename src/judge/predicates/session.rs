//! What no claim has to ask for: restarts that the bench did not cause, panics, another firmware,
//! and steps that the session left out.

use super::{identity, restarts};
use crate::decode::uart::{BootEvent, PanicKind};
use crate::decode::{Answer, Exchange, Fact, What};
use crate::journal::Party;
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding};
use crate::scenario::{Demand, Rung, Scenario};
use crate::time::{Moment, Window};
use std::time::Duration;

/// The tool that restarts the board.
const REBOOT: &str = "self.reboot";

/// A call that has no answer after this is one that was not answered (facts/xiaozhi.md 4.5).
const PATIENCE: Duration = Duration::from_secs(5);

/// A finding for each kind of trouble; empty when there was none. From the first call on that
/// a claim expects to restart the board, that claim judges.
pub(in crate::judge) fn findings(scenario: &Scenario, case: &Case) -> Vec<Finding> {
    let until = case.reboots().map(|call| call.at).min().unwrap_or(Moment::NEVER);
    let facts = &case.story.facts;
    let (mut boots, mut panics) = (Vec::new(), Vec::new());
    for (n, fact) in facts.iter().enumerate().filter(|(_, f)| f.until < until) {
        match &fact.what {
            // Power came with the start of the session, if nothing was there to lose it.
            What::Boot(BootEvent::Began { .. })
                if !facts[..n].iter().any(|f| f.what.is_of_firmware() || is_boot(f)) => {}
            What::Boot(BootEvent::Began { .. }) if asked_for(fact, case).is_some() => {}
            What::Boot(BootEvent::Began { .. }) => boots.push(fact),
            What::Boot(BootEvent::Panicked { kind, .. }) => panics.push((fact, kind)),
            _ => {}
        }
    }
    let window = Window { from: Moment::START, until };
    restarted(&boots, case)
        .into_iter()
        .chain(panicked(&panics))
        .chain(missed(window, case))
        .chain(identity::changed(case))
        .chain(left_out(scenario, case))
        .collect()
}

/// What else happened that no claim speaks of, one sentence each.
pub(in crate::judge) fn notes(scenario: &Scenario, case: &Case) -> Vec<String> {
    let demands = || scenario.claims.iter().flat_map(|c| &c.demands);
    let boots = case.story.facts.iter().filter(|f| began(f));
    let asked = boots.filter_map(|boot| Some((boot, asked_for(boot, case)?)));
    let unnamed = |record: &u64| case.reboots().all(|x| x.record != *record);
    let boots = asked.filter(|(_, record)| unnamed(record)).map(|(boot, _)| {
        format!("the board restarted at {}, as it was told to; no claim asks about it", boot.at)
    });
    let named = |x: &Exchange| {
        let mut steps = demands().flat_map(Demand::steps).flat_map(|id| case.story.instances(id));
        steps.any(|step| step.window.contains(x.at))
    };
    let calls = case.story.mcp.exchanges.iter().filter(|x| !named(x)).filter_map(|x| {
        let tool = x.request.tool.as_deref()?;
        let what = match x.replies.first().map(|reply| &reply.answer) {
            Some(Answer::Text(_)) => return None,
            Some(answer) => format!("was answered with {answer}"),
            // Lawful (facts/xiaozhi.md 5.7), or too early to tell.
            None if tool == REBOOT || case.story.until < x.at + PATIENCE => return None,
            None => "was not answered".to_owned(),
        };
        Some(format!("{tool} at {} {what}; no claim asks about it", x.at))
    });
    boots.chain(calls).collect()
}

/// Record of the request to restart that a clean boot followed, the first after it.
fn asked_for(boot: &Fact, case: &Case) -> Option<u64> {
    let facts = &case.story.facts;
    let clean = facts.iter().any(|f| match &f.what {
        What::Boot(BootEvent::Reset { clean, .. }) => *clean && f.boot == boot.boot,
        _ => false,
    });
    let mut before = facts.iter().rev().filter(|f| f.until < boot.at);
    let last = before.find(|f| asks_to_restart(&f.what) || began(f))?;
    (clean && asks_to_restart(&last.what)).then_some(last.record)
}

fn asks_to_restart(what: &What) -> bool {
    match what {
        What::Request(request) => request.tool.as_deref() == Some(REBOOT),
        What::Message { from: Party::Bench, body } => {
            body["type"] == "system" && body["command"] == "reboot"
        }
        _ => false,
    }
}

fn began(fact: &Fact) -> bool {
    matches!(fact.what, What::Boot(BootEvent::Began { .. } | BootEvent::Missed { .. }))
}

fn is_boot(fact: &Fact) -> bool {
    matches!(fact.what, What::Boot(_))
}

fn restarted(boots: &[&Fact], case: &Case) -> Option<Finding> {
    let first = boots.first()?;
    let (name, times) = match boots.len() {
        1 => (Discrepancy::UnexpectedReset, "once".to_owned()),
        2 => (Discrepancy::UnexpectedReset, "twice".to_owned()),
        n => (Discrepancy::BootLoop, format!("{n} times")),
    };
    let reset = case.story.facts.iter().find_map(|f| match &f.what {
        What::Boot(BootEvent::Reset { reset, .. }) if f.boot == first.boot => Some(reset),
        _ => None,
    });
    let cause = reset.map_or("its ROM gives no reason".to_owned(), |r| format!("by {r}"));
    let reason =
        format!("the board restarted {times} without being told to, at {}, {cause}", first.at);
    let finding = Finding::refuted(Rung::Physical, name, reason);
    Some(finding.citing(boots.iter().map(|f| f.record)))
}

fn panicked(panics: &[(&Fact, &PanicKind)]) -> Option<Finding> {
    let (fact, kind) = panics.first()?;
    let reason = format!("the firmware died at {}: {kind}", fact.at);
    let finding = Finding::refuted(Rung::Executed, Discrepancy::UnexpectedReset, reason);
    Some(finding.citing(panics.iter().map(|(f, _)| f.record)))
}

fn missed(window: Window, case: &Case) -> Option<Finding> {
    let (fact, sign) = restarts::sign(window, case)?;
    let at = fact.at;
    let reason = format!("no ROM banner, but the board may have restarted before {at}: {sign}");
    Some(Finding::silent(Rung::Physical, reason).citing([fact.record]))
}

/// A session that was cut short has not seen what its scenario would have it see, such as that a
/// board stays up after a restart.
fn left_out(scenario: &Scenario, case: &Case) -> Option<Finding> {
    let whole = |id: &str| case.story.instances(id).filter(|step| step.is_whole).count();
    let mut steps = scenario
        .steps
        .iter()
        .flat_map(|step| step.single().iter().map(|single| (single.id.as_str(), step.times())));
    let (id, times) = steps.find(|(id, times)| whole(id) < *times)?;
    let reason = match (whole(id), times) {
        (_, 1) => format!("the session left out the step `{id}`, or cut it short"),
        (n, _) => format!("the session did the step `{id}` {n} instead of {times} times"),
    };
    let finding = Finding::silent(Rung::Physical, reason);
    Some(Finding { discrepancy: Some(Discrepancy::Inconclusive), ..finding })
}
