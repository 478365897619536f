//! What no claim has to ask for: restarts that the bench did not cause, and panics.

use crate::decode::What;
use crate::decode::uart::BootEvent;
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding};
use crate::scenario::{Demand, Rung, Scenario};

/// A finding for each kind of trouble; empty when there was none.
pub(in crate::judge) fn findings(case: &Case, scenario: &Scenario) -> Vec<Finding> {
    // A claim about a boot judges everything from its call on.
    let judged_from = scenario
        .claims
        .iter()
        .flat_map(|c| &c.demands)
        .filter_map(|d| match d {
            Demand::Boot { step, .. } => {
                let calls = case.story.instances(step).flat_map(|s| case.story.calls(s));
                calls.map(|call| call.at).max()
            }
            _ => None,
        })
        .min();
    let unjudged = |f: &&crate::decode::Fact| judged_from.is_none_or(|from| f.at < from);
    let (mut boots, mut panics) = (Vec::new(), Vec::new());
    for fact in case.story.facts.iter().filter(unjudged) {
        match &fact.what {
            What::Boot(BootEvent::Began { .. }) => boots.push(fact),
            What::Boot(BootEvent::Panicked { kind, .. }) => panics.push((fact, kind)),
            _ => {}
        }
    }
    let mut findings = Vec::new();
    // The first boot of a session is caused by its start.
    if boots.len() > 1 {
        let unexpected = boots.len() - 1;
        let (name, times) = match unexpected {
            1 => (Discrepancy::UnexpectedReset, "once".to_owned()),
            2 => (Discrepancy::UnexpectedReset, "twice".to_owned()),
            n => (Discrepancy::BootLoop, format!("{n} times")),
        };
        let reason =
            format!("the board restarted {times} without being told to, at {}", boots[1].at);
        let finding = Finding::refuted(Rung::Physical, name, reason);
        findings.push(finding.citing(boots[1..].iter().map(|f| f.record)));
    }
    if let Some((fact, kind)) = panics.first() {
        let reason = format!("the firmware panicked at {}: {kind:?}", fact.at);
        let finding = Finding::refuted(Rung::Executed, Discrepancy::UnexpectedReset, reason);
        findings.push(finding.citing(panics.iter().map(|(f, _)| f.record)));
    }
    findings
}
