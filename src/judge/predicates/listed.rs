//! Does the device say that it can?

use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding};
use crate::scenario::Rung;

pub(super) fn finding(tool: &str, case: &Case) -> Finding {
    let rung = Rung::Listed;
    let Some(list) = case.tools() else {
        return Finding::silent(rung, "tools/list was never answered");
    };
    let count = list.names.len();
    let finding = if list.names.iter().any(|name| name == tool) {
        Finding::proven(rung, format!("{tool} is one of {count} tools"))
    } else if !list.complete {
        Finding::silent(
            rung,
            format!("{tool} is not among the {count} tools of an unfinished list"),
        )
    } else if !list.with_user_tools {
        let what = format!("{tool} is not listed, but user-only tools were not asked for");
        Finding::silent(rung, what)
    } else {
        let reason = format!("{tool} is none of the {count} tools that the device lists");
        Finding::refuted(rung, Discrepancy::NotListed, reason)
    };
    finding.citing(list.records)
}
