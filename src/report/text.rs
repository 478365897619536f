//! The screens at the end of a run: one per session, the decision in the first word, the reason in
//! one sentence, and what to do next.

use super::{Judged, exit_code};
use crate::journal::Origin;
use crate::judge::{ClaimVerdict, Finding, Outcome, Status, Verdict};
use crate::scenario::Rung;
use std::fmt::Write as _;

/// Whether to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// ANSI colours.
    Colour,
    /// Text only.
    Plain,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Style::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
            Style::Plain => text.to_owned(),
        }
    }
}

/// Width of the first column below the headline.
const NAME: usize = 15;

/// The screen of one session, ending with a line end.
pub fn screen(judged: &Judged, style: Style) -> String {
    let verdict = judged.verdict;
    let mut out = headline(judged, style);
    for reason in &verdict.incomplete {
        row(&mut out, "incomplete", reason);
    }
    for finding in &verdict.session {
        row(&mut out, "session", &finding.reason);
    }
    for claim in &verdict.claims {
        row(&mut out, &claim.id, &ladder(claim, style));
        match claim.outcome {
            Outcome::Pass => proofs(&mut out, claim),
            _ => reason(&mut out, claim),
        }
    }
    row(&mut out, "controls", &verdict.controls);
    row(&mut out, "NOT TESTED", &not_tested(verdict));
    for claim in verdict.claims.iter().filter(|c| !c.next.is_empty()) {
        let places: Vec<String> =
            claim.next.iter().enumerate().map(|(n, p)| format!("{}) {p}", n + 1)).collect();
        let what = if claim.outcome == Outcome::Fail { "next" } else { "do" };
        row(&mut out, what, &places.join("  "));
    }
    out
}

fn row(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "  {name:<NAME$} {text}");
}

fn headline(judged: &Judged, style: Style) -> String {
    let verdict = judged.verdict;
    let origin = match judged.head.origin {
        Origin::Simulated => "SIMULATED",
        Origin::Loopback => "LOOPBACK",
        Origin::Live => "LIVE",
        Origin::Imported => "IMPORTED",
    };
    let worst = verdict.claims.iter().find(|c| c.outcome == verdict.outcome);
    let name = match (verdict.incomplete.is_empty(), worst) {
        (false, _) => "incomplete".to_owned(),
        (true, Some(claim)) => claim.discrepancy.name(),
        (true, None) => {
            verdict.session.iter().find_map(|f| f.discrepancy).map_or(String::new(), |d| d.name())
        }
    };
    let (word, told) = match verdict.outcome {
        Outcome::Pass => (style.paint("1;32", "PASS"), String::new()),
        Outcome::Fail => (style.paint("1;31", "FAIL"), format!("  {name}")),
        _ => (style.paint("1;33", "NO VERDICT"), format!("  {name}")),
    };
    let (label, ear) = (judged.label, judged.ear);
    let mut line = format!("{word}{told}  {label}  {}  {origin} ({ear})", judged.scenario);
    if let Some(firmware) = &verdict.identity.firmware {
        let _ = write!(line, "  fw {firmware}");
    }
    if let Some(sha) = verdict.identity.elf_sha256.as_ref().and_then(|sha| sha.get(..9)) {
        let _ = write!(line, " ({sha})");
    }
    let _ = write!(line, "  {:.1} s", verdict.seconds);
    if matches!(verdict.outcome, Outcome::Error | Outcome::Inconclusive) {
        let _ = write!(line, "  exit {}  the device was NOT judged", exit_code(verdict.outcome));
    }
    line + "\n"
}

/// All rungs that a claim names, lowest first, the broken one in capitals.
fn ladder(claim: &ClaimVerdict, style: Style) -> String {
    let rungs = [Rung::Listed, Rung::Accepted, Rung::Executed, Rung::Readback, Rung::Physical];
    let told = rungs.into_iter().filter_map(|rung| {
        let findings: Vec<&Finding> = claim.findings.iter().filter(|f| f.rung == rung).collect();
        let last = findings.last()?;
        let has = |status| findings.iter().any(|f| f.status == status);
        let name = rung.to_string();
        Some(if has(Status::Refuted) {
            style.paint("1;31", &format!("{} REFUTED", name.to_uppercase()))
        } else if has(Status::Silent) {
            style.paint("1;33", &format!("{} SILENT", name.to_uppercase()))
        } else if matches!(rung, Rung::Listed | Rung::Physical) {
            format!("{name} ok")
        } else {
            let weak = if last.weak.is_some() { " (weak)" } else { "" };
            format!("{name}: {}{weak}", last.reason)
        })
    });
    told.collect::<Vec<_>>().join(" | ")
}

/// The numbers of a claim that holds.
fn proofs(out: &mut String, claim: &ClaimVerdict) {
    for finding in claim.findings.iter().filter(|f| f.rung == Rung::Physical) {
        row(out, "physical", &finding.reason);
        let chain: Vec<String> = finding
            .measurements
            .iter()
            .filter(|m| m.unit == "s")
            .map(|m| format!("{} {:.2} s", m.name.replace('_', " "), m.value))
            .collect();
        if !chain.is_empty() {
            row(out, "", &chain.join(", "));
        }
    }
    if let Some(weak) = claim.findings.iter().find_map(|f| f.weak.as_ref()) {
        row(out, "read-back", weak);
    }
}

/// Why a claim does not hold.
fn reason(out: &mut String, claim: &ClaimVerdict) {
    let Some(finding) = claim.decisive() else { return };
    row(out, &format!("{} rung", finding.rung), &finding.reason);
    let records: Vec<String> = finding.records.iter().map(u64::to_string).collect();
    row(out, "records", &records.join(", "));
}

fn not_tested(verdict: &Verdict) -> String {
    let coverage = &verdict.coverage;
    let (software, not) = (coverage.software_only.len(), coverage.not_exercised.len());
    let all = coverage.physical.len() + software + not;
    let mut what = "loudness, board microphone".to_owned();
    if all > 0 {
        let _ = write!(what, "; of {all} tools {not} not at all, {software} only by software");
    }
    what
}
