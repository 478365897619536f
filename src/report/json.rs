//! `run.json`: everything the screens say, and where it stands in the records.

use super::{Judged, exit_code};
use serde_json::{Value, json};

/// Version of the layout of `run.json`.
const SCHEMA_VERSION: u32 = 1;

/// The report of several sessions.
pub fn run_json(sessions: &[Judged], exit: u8) -> Value {
    json!({
        "schema_version": SCHEMA_VERSION,
        "tool": concat!("earwitness ", env!("CARGO_PKG_VERSION")),
        "exit_code": exit,
        "sessions": sessions.iter().map(session).collect::<Vec<_>>(),
    })
}

fn session(judged: &Judged) -> Value {
    let Judged { head, verdict, .. } = judged;
    json!({
        "label": judged.label,
        "run_id": head.run_id,
        "recorded_by": head.tool,
        "origin": head.origin,
        "seed": head.seed,
        "rig": { "name": head.rig.name, "ear": judged.ear },
        "profile": head.profile.name,
        "scenario": { "name": judged.scenario, "sha256": judged.scenario_sha256 },
        "device": verdict.identity,
        "seconds": verdict.seconds,
        "outcome": verdict.outcome,
        "exit_code": exit_code(verdict.outcome),
        "incomplete": verdict.incomplete,
        "claims": verdict.claims,
        "session_findings": verdict.session,
        "controls": verdict.controls,
        "coverage": verdict.coverage,
        "level_reference": "aes17",
        "loudness_tested": false,
    })
}
