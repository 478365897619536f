//! What must be true: claims and, rung by rung, what they demand.

use super::file::{FileError, Many, load};
use super::units;
use crate::journal::NamedText;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;

/// How long an answer, a log line or a reading may take when a scenario doesn't say: a board
/// outside a conversation sleeps up to 1.02 s at a time (facts/xiaozhi.md 4.5).
const DEFAULT_WITHIN: Duration = Duration::from_secs(5);

/// The rungs of the evidence ladder, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// The device says that it can.
    Listed,
    /// The device says yes.
    Accepted,
    /// There is a trace of doing.
    Executed,
    /// The device reports the new state.
    Readback,
    /// An instrument outside the device saw it.
    Physical,
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rung::Listed => "listed",
            Rung::Accepted => "accepted",
            Rung::Executed => "executed",
            Rung::Readback => "readback",
            Rung::Physical => "physical",
        })
    }
}

/// A scenario, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// File name without its ending.
    pub name: String,
    /// The question that it answers.
    pub question: String,
    /// What must be true.
    pub claims: Vec<Claim>,
}

/// One claim: proven when `requires` and every rung it names below are proven.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// The rung up to which it must be proven.
    pub requires: Rung,
    /// What it demands, lowest rung first.
    pub demands: Vec<Demand>,
}

/// One thing that must be true.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// The complete tool list holds a tool.
    Listed {
        /// Its name.
        tool: String,
    },
    /// Each call of a step is answered with a text.
    Accepted {
        /// The step's id.
        step: String,
        /// The text.
        text: String,
        /// How long the answer may take.
        within: Duration,
    },
    /// Each call of a step leaves a line on the console.
    Executed {
        /// The step's id.
        step: String,
        /// The line's text, or `TAG: text`; `{volume}` stands for the call's argument `volume`.
        log: String,
        /// How long it may take.
        within: Duration,
    },
    /// The status that a step asked for says what it should.
    Readback {
        /// The step's id.
        step: String,
        /// Path in the status, `audio_speaker.volume`.
        path: String,
        /// What must stand there.
        value: ReadBack,
        /// The step is repeated until it is answered: calls without an answer don't count.
        poll: bool,
        /// How long the answer may take.
        within: Duration,
    },
    /// The level changes from one play to another; pairs in order, their mean counts.
    LevelStep {
        /// Ids of the steps that play before.
        from: Vec<String>,
        /// Ids of the steps that play after.
        to: Vec<String>,
        /// By how much.
        expect: Expectation,
        /// Tolerance in dB.
        tolerance_db: f64,
    },
    /// The board restarts exactly once after the call of a step, in order and without a panic.
    Boot {
        /// The step's id.
        step: String,
        /// How long the ROM's banner may take.
        within: Duration,
    },
}

/// What a status must say.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadBack {
    /// This value.
    Equals(serde_json::Value),
    /// What another step's status said.
    SameAs(String),
    /// What another step's call asked for: its argument that is called like the path's last part.
    AsAsked(String),
}

/// By how much a level must change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expectation {
    /// What the codec's law promises for the volumes that were asked for.
    BoardLaw,
    /// A fixed step in dB.
    Decibels(f64),
}

impl Demand {
    /// The rung on which it stands.
    pub fn rung(&self) -> Rung {
        match self {
            Demand::Listed { .. } => Rung::Listed,
            Demand::Accepted { .. } => Rung::Accepted,
            Demand::Executed { .. } => Rung::Executed,
            Demand::Readback { .. } => Rung::Readback,
            Demand::LevelStep { .. } | Demand::Boot { .. } => Rung::Physical,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    #[serde(rename = "version")]
    _version: i64,
    question: String,
    claim: Spanned<Vec<ClaimFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimFile {
    id: Spanned<String>,
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
    tool: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptedFile {
    step: String,
    text: String,
    within: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutedFile {
    step: String,
    log: String,
    within: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadbackFile {
    step: String,
    path: Spanned<String>,
    equals: Option<serde_json::Value>,
    same_as: Option<String>,
    as_asked: Option<String>,
    #[serde(default)]
    poll: bool,
    within: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhysicalFile {
    level_step: Option<LevelStepFile>,
    expect: Option<Spanned<String>>,
    tolerance: Option<Spanned<String>>,
    boot: Option<BootFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelStepFile {
    from: Spanned<Many<String>>,
    to: Many<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BootFile {
    step: String,
    within: Spanned<String>,
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
        let mut claims: Vec<Claim> = Vec::new();
        for claim in raw.claim.into_inner() {
            let place = claim.id.span();
            let claim = check(file, claim)?;
            if claims.iter().any(|c| c.id == claim.id) {
                let what = format!("a second claim with the id `{}`", claim.id);
                return Err(FileError::at(file, place, what));
            }
            claims.push(claim);
        }
        let name = file.name.rsplit('/').next().unwrap_or(&file.name);
        let name = name.strip_suffix(".toml").unwrap_or(name).to_owned();
        Ok(Scenario { name, question: raw.question, claims })
    }
}

fn check(file: &NamedText, raw: ClaimFile) -> Result<Claim, FileError> {
    let mut demands = Vec::new();
    let within = |text: Option<Spanned<String>>| -> Result<Duration, FileError> {
        text.map_or(Ok(DEFAULT_WITHIN), |text| parse(file, &text, units::duration))
    };
    for ListedFile { tool } in raw.listed.into_iter().flat_map(|m| m.0) {
        demands.push(Demand::Listed { tool });
    }
    for AcceptedFile { step, text, within: limit } in raw.accepted.into_iter().flat_map(|m| m.0) {
        demands.push(Demand::Accepted { step, text, within: within(limit)? });
    }
    for ExecutedFile { step, log, within: limit } in raw.executed.into_iter().flat_map(|m| m.0) {
        demands.push(Demand::Executed { step, log, within: within(limit)? });
    }
    for entry in raw.readback.into_iter().flat_map(|m| m.0) {
        let value = match (entry.equals, entry.same_as, entry.as_asked) {
            (Some(value), None, None) => ReadBack::Equals(value),
            (None, Some(step), None) => ReadBack::SameAs(step),
            (None, None, Some(step)) => ReadBack::AsAsked(step),
            _ => {
                let what = "a readback needs one of `equals`, `same_as` and `as_asked`";
                return Err(FileError::at(file, entry.path.span(), what));
            }
        };
        demands.push(Demand::Readback {
            step: entry.step,
            path: entry.path.into_inner(),
            value,
            poll: entry.poll,
            within: within(entry.within)?,
        });
    }
    if let Some(entries) = raw.physical {
        let span = entries.span();
        for entry in entries.into_inner().0 {
            demands.push(physical(file, entry, span.clone())?);
        }
    }
    let requires = *raw.requires.get_ref();
    if !demands.iter().any(|d| d.rung() == requires) {
        let what = format!("the claim requires `{requires}` but says nothing about that rung");
        return Err(FileError::at(file, raw.requires.span(), what));
    }
    Ok(Claim { id: raw.id.into_inner(), requires, demands })
}

fn physical(
    file: &NamedText,
    entry: PhysicalFile,
    span: Range<usize>,
) -> Result<Demand, FileError> {
    let refuse = |what: &str| Err(FileError::at(file, span.clone(), what));
    match entry {
        PhysicalFile {
            level_step: Some(step),
            expect: Some(expect),
            tolerance: Some(t),
            boot: None,
        } => {
            let (from, to) = (step.from.get_ref().0.clone(), step.to.0);
            if from.is_empty() || from.len() != to.len() {
                let what = "`from` and `to` are pairs: they need the same number of steps";
                return Err(FileError::at(file, step.from.span(), what));
            }
            let tolerance_db = parse(file, &t, units::decibels)?;
            if tolerance_db <= 0.0 {
                return Err(FileError::at(file, t.span(), "a tolerance is larger than 0dB"));
            }
            let expect = match expect.get_ref().as_str() {
                "board-law" => Expectation::BoardLaw,
                _ => Expectation::Decibels(parse(file, &expect, units::decibels)?),
            };
            // No change at all is a fair expectation, but not one that hides in a tolerance.
            if let Expectation::Decibels(db) = expect
                && db != 0.0
                && db.abs() <= tolerance_db
            {
                let what = "a board that does nothing would pass: the tolerance is too wide";
                return Err(FileError::at(file, t.span(), what));
            }
            Ok(Demand::LevelStep { from, to, expect, tolerance_db })
        }
        PhysicalFile { boot: Some(boot), level_step: None, expect: None, tolerance: None } => {
            let within = parse(file, &boot.within, units::duration)?;
            Ok(Demand::Boot { step: boot.step, within })
        }
        PhysicalFile { level_step: Some(_), boot: None, .. } => {
            refuse("a `level_step` needs `expect` (\"board-law\" or \"6dB\") and `tolerance`")
        }
        _ => refuse("a physical entry is either a `level_step` or a `boot`"),
    }
}

fn parse<T>(
    file: &NamedText,
    text: &Spanned<String>,
    read: fn(&str) -> Result<T, String>,
) -> Result<T, FileError> {
    read(text.get_ref()).map_err(|what| FileError::at(file, text.span(), what))
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
    fn a_file_without_its_version_is_refused() {
        assert_eq!(error("question = \"?\"\n"), "x.toml:1:1: `version = 1` is missing");
        assert!(error("version = 2\n").contains("this version is not known"));
        assert!(error("version = 1\nquestion = \n").starts_with("x.toml:2:12: "));
    }
}
