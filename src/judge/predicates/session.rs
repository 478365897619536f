//! What no claim has to ask for: restarts that the bench did not cause, and panics.

use super::restarts;
use crate::decode::uart::{BootEvent, PanicKind};
use crate::decode::{Fact, What};
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding};
use crate::scenario::Rung;
use crate::time::{Moment, Window};

/// A finding for each kind of trouble; empty when there was none. From the first call on that
/// a claim expects to restart the board, that claim judges.
pub(in crate::judge) fn findings(case: &Case) -> Vec<Finding> {
    let until = case.reboots().map(|call| call.at).min().unwrap_or(Moment::NEVER);
    let facts = &case.story.facts;
    let (mut boots, mut panics) = (Vec::new(), Vec::new());
    for (n, fact) in facts.iter().enumerate().filter(|(_, f)| f.until < until) {
        match &fact.what {
            // Power came with the start of the session, if nothing was there to lose it.
            What::Boot(BootEvent::Began { .. })
                if !facts[..n].iter().any(|f| f.what.is_of_firmware() || is_boot(f)) => {}
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
        .collect()
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
