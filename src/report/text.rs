//! The screens at the end of a run: one per session, the decision in the first word, the reason in
//! one sentence, and what to do next.

use super::{Judged, Refused, UNTESTED, discrepancy, exit_code};
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

/// The longest quotation of evidence on a screen, in characters; `run.json` has all of it.
const LONGEST: usize = 400;

/// The screen of one session, ending with a line end.
pub fn screen(judged: &Judged, style: Style) -> String {
    let verdict = &judged.verdict;
    let mut out = headline(judged, style);
    row(&mut out, "question", &judged.question);
    for reason in &verdict.incomplete {
        row(&mut out, "incomplete", reason);
    }
    for finding in &verdict.session {
        why(&mut out, &finding.reason, finding);
    }
    for claim in &verdict.claims {
        if !verdict.incomplete.is_empty() {
            row(&mut out, &claim.id, "not judged, because the recording is not whole");
            continue;
        }
        painted_row(&mut out, &claim.id, &ladder(claim, style));
        match (claim.outcome, claim.decisive()) {
            (Outcome::Pass, _) => proofs(&mut out, claim),
            (_, Some(f)) => why(&mut out, &format!("{}: {}", f.rung, f.reason), f),
            (_, None) => {}
        }
    }
    let reasons = verdict.claims.iter().filter_map(|c| c.decisive());
    // An ear that is no good is the reason already.
    if !reasons.into_iter().any(|f| f.reason == verdict.controls) {
        row(&mut out, "controls", &verdict.controls);
    }
    for note in &verdict.notes {
        row(&mut out, "also", note);
    }
    row(&mut out, "NOT TESTED", &not_tested(verdict));
    let what = if verdict.outcome == Outcome::Fail { "next" } else { "do" };
    let mut places: Vec<&str> = Vec::new();
    let session = verdict.session().flat_map(|(_, next)| next);
    for place in session.chain(verdict.claims.iter().flat_map(|c| c.next)) {
        if !places.contains(place) {
            places.push(place);
        }
    }
    for (n, place) in places.into_iter().enumerate() {
        row(&mut out, if n == 0 { what } else { "" }, &format!("{}) {place}", n + 1));
    }
    out
}

/// The screen of what was not judged at all, ending with a line end.
pub fn refusal(refused: &Refused, style: Style) -> String {
    let Refused { path, reason, exit_code: code } = refused;
    let word = if *code == 2 { "INVALID" } else { "NO VERDICT" };
    let (word, path) = (style.paint("1;33", word), printable(path));
    let mut out = format!("{word}  {path}  exit {code}  the device was NOT judged\n");
    row(&mut out, "why", reason);
    out
}

/// What became of several sessions, in one line.
pub fn tally(sessions: &[Judged], refused: &[Refused], exit: u8) -> String {
    let of = |outcome| sessions.iter().filter(|s| s.verdict.outcome == outcome).count();
    let (passed, failed) = (of(Outcome::Pass), of(Outcome::Fail));
    let all = sessions.len() + refused.len();
    let unjudged = all - passed - failed;
    format!(
        "{all} sessions: {passed} passed, {failed} failed, {unjudged} not judged  exit {exit}\n"
    )
}

fn row(out: &mut String, name: &str, text: &str) {
    painted_row(out, &printable(name), &printable(text));
}

fn painted_row(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "  {name:<NAME$} {text}");
}

/// What a board said may hold anything; on a screen it must not look like a line of ours.
fn printable(text: &str) -> String {
    let mut told = String::new();
    for (n, c) in text.chars().enumerate() {
        match c {
            _ if n == LONGEST => return told + " ...",
            c if c.is_control() => told.extend(c.escape_default()),
            c => told.push(c),
        }
    }
    told
}

fn headline(judged: &Judged, style: Style) -> String {
    let verdict = &judged.verdict;
    let origin = match judged.head.origin {
        Origin::Simulated => "SIMULATED",
        Origin::Loopback => "LOOPBACK",
        Origin::Live => "LIVE",
        Origin::Imported => "IMPORTED",
    };
    let name = match verdict.incomplete.is_empty() {
        true => discrepancy(verdict).name(),
        false => "incomplete".to_owned(),
    };
    let (word, told) = match verdict.outcome {
        Outcome::Pass => (style.paint("1;32", "PASS"), String::new()),
        Outcome::Fail => (style.paint("1;31", "FAIL"), format!("  {name}")),
        _ => (style.paint("1;33", "NO VERDICT"), format!("  {name}")),
    };
    let (path, scenario, ear) = (printable(&judged.path), printable(&judged.scenario), judged.ear);
    let fault = judged.head.device.as_ref().and_then(|device| device.fault.as_deref());
    let fault = fault.map(|fault| format!(", fault {}", printable(fault))).unwrap_or_default();
    let mut line = format!("{word}{told}  {path}  {scenario}  {origin} ({ear}{fault})");
    if let Some(firmware) = &verdict.identity.firmware {
        let _ = write!(line, "  fw {}", printable(firmware));
    }
    if let Some(sha) = verdict.identity.elf_sha256.as_ref().and_then(|sha| sha.get(..9)) {
        let _ = write!(line, " ({})", printable(sha));
    }
    let _ = write!(line, "  {:.1} s", verdict.until.as_secs_f64());
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
            format!("{name}: {}{weak}", printable(&last.reason))
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

/// The reason in one sentence, and where it stands.
fn why(out: &mut String, reason: &str, finding: &Finding) {
    row(out, "why", reason);
    if !finding.records.is_empty() {
        let records: Vec<String> = finding.records.iter().map(u64::to_string).collect();
        row(out, "records", &records.join(", "));
    }
}

fn not_tested(verdict: &Verdict) -> String {
    let coverage = &verdict.coverage;
    let (software, not) = (coverage.software_only.len(), coverage.not_exercised.len());
    let all = coverage.physical.len() + coverage.refuted.len() + software + not;
    let mut what = UNTESTED.join(", ");
    if all > 0 {
        let _ = write!(what, "; of {all} tools {not} not at all, {software} only by software");
    }
    what
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_board_says_never_looks_like_a_line_of_ours() {
        assert_eq!(printable("a\nPASS  \x1b[2J\u{9b}b"), "a\\nPASS  \\u{1b}[2J\\u{9b}b");
        assert_eq!(printable("volume \u{e9}"), "volume \u{e9}");
        assert_eq!(printable(&"x".repeat(LONGEST + 1)).len(), LONGEST + 4);
        let refused = Refused { path: "a\nb".into(), reason: "torn".into(), exit_code: 3 };
        let screen = refusal(&refused, Style::Plain);
        assert!(screen.starts_with("NO VERDICT  a\\nb  exit 3  "), "{screen}");
        assert_eq!(screen.lines().count(), 2);
    }
}
