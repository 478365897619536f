//! A scenario file, checked completely: whatever in it is wrong is refused here with its place, so
//! that it can't be charged to a device later.

use super::claim::{Claim, Demand, Expectation, ReadBack, Rung, Scenario};
use super::file::{FileError, Many, did_you_mean, load};
use super::profile::Profile;
use super::references::{Needed, References};
use super::step::{self, Step, StepFile};
use super::words::{Decibels, Json, Log, Path, StepRef, Text, Within};
use crate::journal::NamedText;
use serde::Deserialize;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;

/// How long an answer, a log line or a reading may take when a scenario doesn't say: a board
/// outside a conversation sleeps up to 1.02 s at a time (facts/xiaozhi.md 4.5).
const DEFAULT_WITHIN: Duration = Duration::from_secs(5);

/// How long a session may take when a scenario doesn't say.
const DEFAULT_LIMIT: Duration = Duration::from_secs(300);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    #[serde(rename = "version")]
    _version: i64,
    question: Text,
    limit: Option<Within>,
    #[serde(default)]
    step: Vec<Spanned<StepFile>>,
    claim: Spanned<Vec<ClaimFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimFile {
    id: Spanned<Text>,
    requires: Spanned<Rung>,
    listed: Option<Many<ListedFile>>,
    accepted: Option<Many<AcceptedFile>>,
    executed: Option<Many<ExecutedFile>>,
    readback: Option<Many<ReadbackFile>>,
    physical: Option<Spanned<Many<PhysicalFile>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedFile {
    tool: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedFile {
    step: Spanned<StepRef>,
    text: Text,
    within: Option<Within>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutedFile {
    step: Spanned<StepRef>,
    log: Option<Log>,
    #[serde(default)]
    online: bool,
    within: Option<Within>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadbackFile {
    step: Spanned<StepRef>,
    path: Spanned<Path>,
    equals: Option<Json>,
    same_as: Option<Spanned<StepRef>>,
    as_asked: Option<Spanned<StepRef>>,
    #[serde(default)]
    poll: bool,
    within: Option<Within>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhysicalFile {
    level_step: Option<Spanned<LevelStepFile>>,
    expect: Option<Spanned<Expect>>,
    tolerance: Option<Spanned<Decibels>>,
    boot: Option<Spanned<BootFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelStepFile {
    from: Spanned<Many<StepRef>>,
    to: Spanned<Many<StepRef>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BootFile {
    step: Spanned<StepRef>,
    within: Within,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Expect(Expectation);

impl TryFrom<String> for Expect {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "board-law" => Ok(Expect(Expectation::BoardLaw)),
            _ => {
                let Ok(Decibels(db)) = Decibels::try_from(text.clone()) else {
                    let meant = did_you_mean(&text, ["board-law"].into_iter());
                    return Err(format!(
                        "`{text}` is neither `board-law` nor a step like \
                         \"6dB\"{meant}"
                    ));
                };
                Ok(Expect(Expectation::Decibels(db)))
            }
        }
    }
}

impl Scenario {
    /// Reads and checks a scenario.
    ///
    /// # Errors
    /// The first thing in it that is not as it should be, with its position.
    pub fn load(file: &NamedText) -> Result<Scenario, FileError> {
        let raw: ScenarioFile = load(file)?;
        if raw.claim.get_ref().is_empty() {
            return Err(FileError::at(file, raw.claim.span(), "a scenario needs a [[claim]]"));
        }
        let steps = step::check(file, raw.step)?;
        let references = References::new(file, &steps);
        let mut claims: Vec<Claim> = Vec::new();
        for claim in raw.claim.into_inner() {
            let place = claim.id.span();
            let claim = check(&references, claim)?;
            if claims.iter().any(|c| c.id == claim.id) {
                let what = format!("a second claim with the id `{}`", claim.id);
                return Err(FileError::at(file, place, what));
            }
            claims.push(claim);
        }
        let name = file.name.rsplit('/').next().unwrap_or(&file.name);
        let name = name.strip_suffix(".toml").unwrap_or(name).to_owned();
        let limit = raw.limit.map_or(DEFAULT_LIMIT, |Within(limit)| limit);
        Ok(Scenario { name, question: raw.question.0, limit, steps, claims })
    }
}

impl Scenario {
    /// Whether a bench can run it with a kind of board.
    ///
    /// # Errors
    /// When it has no steps, or calls a tool that the board's profile denies.
    pub fn check_runnable(&self, file: &NamedText, profile: &Profile) -> Result<(), FileError> {
        if self.steps.is_empty() {
            let what = "without a [[step]] this can only judge what another program did";
            return Err(FileError::at(file, 0..0, what));
        }
        for step in self.steps.iter().flat_map(Step::single) {
            if let Some(tool) = step.act.tool().filter(|tool| profile.denies(tool)) {
                let what = format!("the board's profile denies `{tool}`; see `deny` in it");
                return Err(FileError::at(file, step.place.clone(), what));
            }
        }
        Ok(())
    }
}

fn check(references: &References, raw: ClaimFile) -> Result<Claim, FileError> {
    let file = references.file;
    let mut demands = Vec::new();
    let within = |limit: Option<Within>| limit.map_or(DEFAULT_WITHIN, |Within(limit)| limit);
    for ListedFile { tool } in raw.listed.into_iter().flat_map(|m| m.0) {
        demands.push(Demand::Listed { tool: tool.0 });
    }
    for entry in raw.accepted.into_iter().flat_map(|m| m.0) {
        references.check(&entry.step, Needed::Answered)?;
        let (step, text) = (entry.step.into_inner().0, entry.text.0);
        demands.push(Demand::Accepted { step, text, within: within(entry.within) });
    }
    for entry in raw.executed.into_iter().flat_map(|m| m.0) {
        references.check(&entry.step, Needed::Called)?;
        let (place, within) = (entry.step.span(), within(entry.within));
        let StepRef(step) = entry.step.into_inner();
        demands.push(match (entry.log, entry.online) {
            (Some(Log(log)), false) => Demand::Executed { step, log, within },
            (None, true) => Demand::Online { step, within },
            _ => {
                let what = "an executed entry is either a `log` or `online = true`";
                return Err(FileError::at(file, place, what));
            }
        });
    }
    for entry in raw.readback.into_iter().flat_map(|m| m.0) {
        references.check(&entry.step, Needed::Read)?;
        let value = match (entry.equals, entry.same_as, entry.as_asked) {
            (Some(value), None, None) => ReadBack::Equals(value.0),
            (None, Some(other), None) if other.get_ref().meets(entry.step.get_ref()) => {
                let what = "a step reads the same as itself on any board; name another";
                return Err(FileError::at(file, other.span(), what));
            }
            (None, Some(other), None) => {
                references.check(&other, Needed::Read)?;
                ReadBack::SameAs(other.into_inner().0)
            }
            (None, None, Some(other)) => {
                references.check(&other, Needed::Asked)?;
                ReadBack::AsAsked(other.into_inner().0)
            }
            _ => {
                let what = "a readback needs one of `equals`, `same_as` and `as_asked`";
                return Err(FileError::at(file, entry.path.span(), what));
            }
        };
        let (step, path, poll) = (entry.step.into_inner().0, entry.path.into_inner().0, entry.poll);
        let within = within(entry.within);
        demands.push(Demand::Readback { step, path, value, poll, within });
    }
    let requires = *raw.requires.get_ref();
    if let Some(entries) = raw.physical {
        let span = entries.span();
        let first = demands.len();
        for entry in entries.into_inner().0 {
            demands.push(physical(references, entry, span.clone())?);
        }
        if requires == Rung::Physical && demands[first..].iter().all(is_still) {
            let what = "a board that does nothing would pass: besides a step of 0dB a claim needs \
                        one of another size, or a boot";
            return Err(FileError::at(file, span, what));
        }
    }
    if !demands.iter().any(|d| d.rung() == requires) {
        let what = format!("the claim requires `{requires}` but says nothing about that rung");
        return Err(FileError::at(file, raw.requires.span(), what));
    }
    Ok(Claim { id: raw.id.into_inner().0, requires, demands })
}

/// Whether a demand is met by a board whose level never changes.
fn is_still(demand: &Demand) -> bool {
    matches!(demand, Demand::LevelStep { expect: Expectation::Decibels(0.0), .. })
}

fn physical(
    references: &References,
    entry: PhysicalFile,
    span: Range<usize>,
) -> Result<Demand, FileError> {
    let refuse = |span, what: &str| Err(FileError::at(references.file, span, what));
    let PhysicalFile { level_step: step, expect, tolerance, boot } = entry;
    match (step, expect, tolerance, boot) {
        (Some(step), Some(expect), Some(tolerance), None) => {
            level_step(references, step.into_inner(), expect.into_inner().0, tolerance)
        }
        (None, None, None, Some(boot)) => {
            let BootFile { step, within } = boot.into_inner();
            references.check(&step, Needed::Restarted)?;
            Ok(Demand::Boot { step: step.into_inner().0, within: within.0 })
        }
        (Some(step), _, _, None) => {
            let what = "a `level_step` needs `expect` (\"board-law\" or \"6dB\") and `tolerance`";
            refuse(step.span(), what)
        }
        (None, expect, tolerance, boot) => {
            let stray = expect.map(|e| e.span()).or(tolerance.map(|t| t.span()));
            match (stray, boot) {
                (Some(stray), _) => refuse(stray, "only a `level_step` has this"),
                _ => refuse(span, "a physical entry is either a `level_step` or a `boot`"),
            }
        }
        (Some(_), _, _, Some(boot)) => {
            refuse(boot.span(), "a physical entry is either a `level_step` or a `boot`")
        }
    }
}

fn level_step(
    references: &References,
    step: LevelStepFile,
    expect: Expectation,
    tolerance: Spanned<Decibels>,
) -> Result<Demand, FileError> {
    let refuse = |span, what: String| Err(FileError::at(references.file, span, what));
    let (from, to) = (&step.from.get_ref().0, &step.to.get_ref().0);
    if from.len() != to.len() {
        let what = "`from` and `to` are pairs: they need the same number of steps";
        return refuse(step.from.span(), what.into());
    }
    for (side, others) in [(&step.from, from), (&step.to, to)] {
        for (n, id) in side.get_ref().0.iter().enumerate() {
            references.check_in(side.span(), id, Needed::Played)?;
            if let Some(other) = others[n + 1..].iter().find(|other| id.meets(other)) {
                let what = format!("`{}` and `{}` mean the same step twice", id.0, other.0);
                return refuse(side.span(), what);
            }
        }
    }
    for id in to {
        if let Some(other) = from.iter().find(|other| id.meets(other)) {
            let what = format!(
                "`{}` and `{}` of `from` mean the same step: a step from itself to itself is 0dB \
                 on any board",
                id.0, other.0
            );
            return refuse(step.to.span(), what);
        }
    }
    let Decibels(tolerance_db) = *tolerance.get_ref();
    if tolerance_db <= 0.0 {
        return refuse(tolerance.span(), "a tolerance is larger than 0dB".into());
    }
    // No change at all is a fair expectation, but not one that hides in a tolerance.
    if let Expectation::Decibels(db) = expect
        && db != 0.0
        && db.abs() <= tolerance_db
    {
        let what = "a board that does nothing would pass: the tolerance is too wide";
        return refuse(tolerance.span(), what.into());
    }
    let ids = |side: Spanned<Many<StepRef>>| side.into_inner().0.into_iter().map(|id| id.0);
    let (from, to) = (ids(step.from).collect(), ids(step.to).collect());
    Ok(Demand::LevelStep { from, to, expect, tolerance_db })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        match Scenario::load(&NamedText::new("x.toml", text)) {
            Ok(scenario) => panic!("accepted: {scenario:?}"),
            Err(error) => error.to_string(),
        }
    }

    const CLAIM: &str = "version = 1\nquestion = \"?\"\n[[claim]]\nid = \"a\"\n";

    #[test]
    fn the_shipped_scenarios_are_accepted() {
        for kind in ["volume", "reboot"] {
            let scenario = Scenario::load(&crate::scenario::for_imported(kind).unwrap()).unwrap();
            assert_eq!(scenario.claims[0].id, kind);
            assert_eq!(scenario.claims[0].requires, Rung::Physical);
        }
    }

    #[test]
    fn errors_say_where_and_what() {
        let check = |rest: &str, at: &str, what: &str| {
            let error = error(&format!("{CLAIM}{rest}"));
            assert!(error.starts_with(&format!("x.toml:{at}: ")), "{error}");
            assert!(error.contains(what), "{error}");
        };
        check("lisped = 1\n", "5:1", "did you mean `listed`?");
        check("requires = \"fysical\"\n", "5:12", "did you mean `physical`?");
        check("requires = \"physical\"\n", "5:12", "says nothing about that rung");
        let listed = "requires = \"listed\"\nlisted = { tool = \"t\" }\n";
        check(
            &format!(
                "{listed}executed = [\n  {{ step = \"s\", log = \"l\" }},\n  \
                 {{ step = \"s\", lag = \"l\" }},\n]\n"
            ),
            "9:17",
            "did you mean `log`?",
        );
        check(
            &format!("{listed}accepted = {{ step = \"s\", text = \"t\", within = \"5\" }}\n"),
            "7:47",
            "needs a unit",
        );
        check(&format!("{listed}physical = {{ }}\n"), "7:12", "level_step");
        let step =
            "level_step = { from = \"a\", to = \"b\" }, expect = \"3dB\", tolerance = \"4dB\"";
        check(&format!("{listed}physical = {{ {step} }}\n"), "7:81", "would pass");
        check(&format!("{listed}[[claim]]\nid = \"a\"\n{listed}"), "8:6", "a second claim");
        check(
            &format!("{listed}readback = {{ step = \"s\", path = \"p\" }}\n"),
            "7:33",
            "as_asked",
        );
    }

    #[test]
    fn what_would_be_charged_to_the_device_is_refused() {
        let check = |line: &str, what: &str| {
            let rest = format!("requires = \"listed\"\nlisted = {{ tool = \"t\" }}\n{line}\n");
            let error = error(&format!("{CLAIM}{rest}"));
            // The marked value is where the error is.
            let column = line.find(what.split('|').next().unwrap()).unwrap() + 1;
            assert!(error.starts_with(&format!("x.toml:7:{column}: ")), "{line}: {error}");
            assert!(error.contains(what.split('|').nth(1).unwrap()), "{line}: {error}");
        };
        let executed = |log: &str| format!("executed = {{ step = \"s\", log = \"{log}\" }}");
        check(&executed(""), "\"\" }|must not be empty");
        check(&executed("to {volume"), "\"to |write `{volume}`");
        check(&executed("to { volume }"), "\"to |write `{volume}`");
        check("executed = { step = \"\", log = \"l\" }", "\"\",|names no step");
        check("executed = { step = \"*\", log = \"l\" }", "\"*|names no step");
        check("executed = { step = \"a*b\", log = \"l\" }", "\"a*|at the end only");
        check("executed = []", "[]|an empty list");
        let accepted = "accepted = { step = \"s\", text = \"true\", within = \"0s\" }";
        check(accepted, "\"0s|less than 1ms");
        let readback = |rest: &str| format!("readback = {{ step = \"s\", {rest} }}");
        check(&readback("path = \"\", equals = 1"), "\"\",|is no path");
        check(&readback("path = \"a..b\", equals = 1"), "\"a..|is no path");
        check(&readback("path = \"a\", equals = 1979-05-27"), "1979|quote it");
        check(&readback("path = \"a\", equals = [nan]"), "[nan|can't hold");
        check(&readback("path = \"a\", same_as = \"s\""), "\"s\" }|itself");
        let step = |from: &str, to: &str| {
            let pair = format!("{{ from = {from}, to = {to} }}");
            format!("physical = {{ level_step = {pair}, expect = \"6dB\", tolerance = \"1dB\" }}")
        };
        check(&step("\"a\"", "\"a\""), "\"a\" }|itself");
        check(&step("\"t-*\"", "\"t-*\""), "\"t-*\" }|itself");
        check(&step("\"t-*\"", "\"t-2\""), "\"t-2|itself");
        check(&step("\"a\"", "\"a#2\""), "\"a#2|itself");
        check(&step("[\"a\", \"a\"]", "[\"b\", \"c\"]"), "[\"a|twice");
        check(&step("[\"a\", \"b\"]", "[\"c-1\", \"c*\"]"), "[\"c|twice");
        check(&step("\"a\"", "\"b\"").replace("6dB", "6"), "\"6\"|board-law");
    }

    #[test]
    fn no_change_is_no_proof_of_a_change() {
        let entry = |expect: &str| {
            let step = "level_step = { from = \"a\", to = \"b\" }";
            format!("{{ {step}, expect = \"{expect}\", tolerance = \"1dB\" }}")
        };
        let claim = |physical: &str| format!("{CLAIM}requires = \"physical\"\n{physical}\n");
        let lone = claim(&format!("physical = {}", entry("0dB")));
        assert!(error(&lone).starts_with("x.toml:6:12: a board that does nothing would pass"));
        let with_another = claim(&format!("physical = [{}, {}]", entry("0dB"), entry("6dB")));
        assert!(Scenario::load(&NamedText::new("x.toml", with_another)).is_ok());
    }

    #[test]
    fn only_a_slip_is_corrected() {
        let error = error("version = 1\nquestion = \"?\"\ncolour = 1\n");
        assert!(error.starts_with("x.toml:3:1: unknown field `colour`"), "{error}");
        assert!(!error.contains("did you mean"), "{error}");
    }

    #[test]
    fn a_file_without_its_version_is_refused() {
        assert_eq!(error("question = \"?\"\n"), "x.toml:1:1: `version = 1` is missing");
        let error_of_2 = error("# the version\n  version = 2\n");
        assert!(
            error_of_2.starts_with("x.toml:2:13: `version` is 2: this version"),
            "{error_of_2}"
        );
        assert!(error("version = \"1\"\n").contains("write `version = 1`"));
        assert!(error("version = 1\nquestion = \n").starts_with("x.toml:2:12: "));
    }
}
