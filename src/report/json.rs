//! `run.json`: everything the screens say, and where it stands in the records.

use super::{Judged, Refused, UNTESTED, discrepancy, exit_code};
use crate::judge::Finding;
use serde_json::{Value, json};

/// Version of the layout of `run.json`.
const SCHEMA_VERSION: u32 = 1;

/// The report of several sessions, and of what could not be judged.
pub fn run_json(sessions: &[Judged], refused: &[Refused], exit: u8) -> Value {
    json!({
        "schema_version": SCHEMA_VERSION,
        "tool": concat!("earwitness ", env!("CARGO_PKG_VERSION")),
        "exit_code": exit,
        "sessions": sessions.iter().map(session).collect::<Vec<_>>(),
        "refused": refused,
    })
}

fn session(judged: &Judged) -> Value {
    let Judged { head, verdict, .. } = judged;
    json!({
        "path": judged.path,
        "run_id": head.run_id,
        "recorded_by": head.tool,
        "origin": head.origin,
        "seed": head.seed,
        "rig": { "name": judged.rig, "ear": judged.ear },
        "profile": head.profile.name,
        "scenario": {
            "name": judged.scenario,
            "question": judged.question,
            "sha256": judged.scenario_sha256,
        },
        "device": verdict.identity,
        "software_board": head.device,
        "law": verdict.law,
        "outcome": verdict.outcome,
        "discrepancy": discrepancy(verdict),
        "exit_code": exit_code(verdict.outcome),
        "incomplete": verdict.incomplete,
        "claims": verdict.claims,
        "session_findings": verdict.session().map(with_next).collect::<Vec<_>>(),
        "notes": verdict.notes,
        "controls": verdict.controls,
        "coverage": verdict.coverage,
        // On the session's monotonic clock, which begins at 0.
        "ends_ns": verdict.until,
        "cited_records_ns": judged.cited_at,
        "level_reference": "aes17",
        "loudness_tested": false,
        "not_tested": UNTESTED,
    })
}

fn with_next((finding, next): (&Finding, &[&str])) -> Value {
    let mut told = json!(finding);
    told["next"] = json!(next);
    told
}
