//! What to do: the steps of a scenario, read from `[[step]]` tables.

use super::file::FileError;
use super::words::{Json, Length, Level, Log, StepId, Text, Times, Within};
use crate::journal::NamedText;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use toml::Spanned;

/// How long a device may take to answer when a step doesn't say (facts/xiaozhi.md 4.5).
const DEFAULT_WITHIN: Duration = Duration::from_secs(5);

/// One step of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its id, unique in the scenario; the kind's name (`beacon`, `beacon-2`) unless it has one.
    pub id: String,
    /// When it fails, the session ends (after restoring).
    pub required: bool,
    /// What it does.
    pub act: Act,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Waits until something has happened.
    Wait(Wait),
    /// Opens the audio channel with the board's button, unless it is open.
    OpenAudio {
        /// How long that may take.
        within: Duration,
    },
    /// Asks for the complete tool list.
    Discover {
        /// User-only tools, too.
        user_tools: bool,
        /// How long that may take.
        within: Duration,
    },
    /// Calls a tool and waits for its answer.
    Call {
        /// Its name.
        tool: String,
        /// Its arguments, a JSON object.
        arguments: Value,
        /// How long the answer may take.
        within: Duration,
    },
    /// Asks for the device's status.
    Status {
        /// How long the answer may take.
        within: Duration,
    },
    /// Plays the beacon on the bench's own loudspeaker.
    Beacon,
    /// Makes the board play a tone whose frequency comes from the session's seed.
    Play {
        /// Level of the tone as sent, dBFS (AES17).
        dbfs: f64,
        /// Its length in seconds.
        seconds: f64,
    },
    /// Listens while nothing plays.
    Listen {
        /// How long.
        length: Duration,
    },
    /// Calls `self.reboot`, for which no answer is due, and waits until the board is back.
    Reboot {
        /// How long the way back may take.
        within: Duration,
    },
    /// Gives the board back what the session changed.
    Restore,
    /// The same steps several times in a row.
    Repeat {
        /// How many passes.
        times: u32,
        /// The steps of a pass.
        steps: Vec<Step>,
    },
    /// Steps that are held against each other, pass by pass (A B A B, never A A B B), and more
    /// passes while what they yield is too uncertain for the claims.
    Interleave {
        /// How many passes at least; the rig says how many at most.
        times: u32,
        /// The steps of a pass.
        steps: Vec<Step>,
    },
}

/// What a step waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Wait {
    /// A control channel and, where the console tells it, the state `idle`.
    Online {
        /// How long at most.
        within: Duration,
    },
    /// A console line, written like in a claim.
    Log {
        /// `TAG: text`.
        log: String,
        /// How long at most.
        within: Duration,
    },
    /// Nothing but time.
    Time(Duration),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepFile {
    id: Option<Spanned<StepId>>,
    #[serde(default)]
    required: bool,
    wait: Option<Spanned<WaitFile>>,
    open_audio: Option<WithinFile>,
    discover: Option<DiscoverFile>,
    call: Option<CallFile>,
    status: Option<WithinFile>,
    beacon: Option<NothingFile>,
    play: Option<PlayFile>,
    listen: Option<ListenFile>,
    reboot: Option<WithinFile>,
    restore: Option<NothingFile>,
    repeat: Option<TimesFile>,
    interleave: Option<TimesFile>,
    #[serde(default)]
    step: Vec<Spanned<StepFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitFile {
    online: Option<bool>,
    log: Option<Log>,
    within: Option<Within>,
    #[serde(rename = "for")]
    length: Option<Within>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithinFile {
    within: Option<Within>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DiscoverFile {
    #[serde(default)]
    user_tools: bool,
    within: Option<Within>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallFile {
    tool: Text,
    #[serde(default)]
    args: BTreeMap<String, Json>,
    within: Option<Within>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NothingFile {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlayFile {
    // The only stimulus so far; the word keeps room for others.
    #[serde(rename = "tone")]
    _tone: Stimulus,
    level: Level,
    #[serde(rename = "for")]
    length: Length,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stimulus {
    Coded,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListenFile {
    #[serde(rename = "for")]
    length: Within,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimesFile {
    times: Times,
}

/// Reads the steps of a scenario.
pub(super) fn check(file: &NamedText, raw: Vec<Spanned<StepFile>>) -> Result<Vec<Step>, FileError> {
    let mut reader = Reader { file, ids: Vec::new() };
    raw.iter().try_for_each(|step| reader.reserve(step))?;
    raw.into_iter().map(|step| reader.step(step, false)).collect()
}

struct Reader<'a> {
    file: &'a NamedText,
    ids: Vec<String>,
}

impl Reader<'_> {
    /// Takes the ids that the file gives, so that made-up ones can't collide with them.
    fn reserve(&mut self, step: &Spanned<StepFile>) -> Result<(), FileError> {
        if let Some(id) = &step.get_ref().id {
            let name = &id.get_ref().0;
            if self.ids.contains(name) {
                let what = format!("a second step with the id `{name}`");
                return Err(FileError::at(self.file, id.span(), what));
            }
            self.ids.push(name.clone());
        }
        step.get_ref().step.iter().try_for_each(|inner| self.reserve(inner))
    }

    fn step(&mut self, raw: Spanned<StepFile>, inside: bool) -> Result<Step, FileError> {
        let (file, span) = (self.file, raw.span());
        let refuse = |what: &str| Err(FileError::at(file, span.clone(), what));
        let mut raw = raw.into_inner();
        let (id, required) = (raw.id.take(), raw.required);
        let inner = std::mem::take(&mut raw.step);
        let steps: Vec<Step> =
            inner.into_iter().map(|step| self.step(step, true)).collect::<Result<_, _>>()?;
        let (empty, group) = (steps.is_empty(), raw.repeat.is_some() || raw.interleave.is_some());
        match (group, empty, inside) {
            (true, _, true) => return refuse("groups don't nest"),
            (true, true, _) => return refuse("a group needs [[step.step]] tables"),
            (false, false, _) => {
                return refuse("only `repeat` and `interleave` hold [[step.step]] tables");
            }
            _ => {}
        }
        let mut acts = acts(file, raw, steps)?;
        let (Some((kind, act)), true) = (acts.pop(), acts.is_empty()) else {
            return refuse(
                "a step does exactly one thing: wait, open_audio, discover, call, status, beacon, \
                 play, listen, reboot, restore, repeat or interleave",
            );
        };
        let id = id.map_or_else(|| self.made_up(kind), |id| id.into_inner().0);
        Ok(Step { id, required, act })
    }

    fn made_up(&mut self, kind: &str) -> String {
        let numbered = (2..).map(|n| format!("{kind}-{n}"));
        let mut names = std::iter::once(kind.to_owned()).chain(numbered);
        let id = names.find(|name| !self.ids.contains(name)).expect("there is no last number");
        self.ids.push(id.clone());
        id
    }
}

/// Everything that a table says to do; it should be one thing.
fn acts(
    file: &NamedText,
    raw: StepFile,
    steps: Vec<Step>,
) -> Result<Vec<(&'static str, Act)>, FileError> {
    let within = |limit: Option<Within>| limit.map_or(DEFAULT_WITHIN, |Within(limit)| limit);
    let wait = raw.wait.map(|wait| wait_for(file, wait)).transpose()?;
    let all = [
        wait.map(|wait| ("wait", Act::Wait(wait))),
        raw.open_audio.map(|open| ("open_audio", Act::OpenAudio { within: within(open.within) })),
        raw.discover.map(|d| {
            let within = within(d.within);
            ("discover", Act::Discover { user_tools: d.user_tools, within })
        }),
        raw.call.map(|call| {
            let arguments = call.args.into_iter().map(|(name, Json(value))| (name, value));
            let (tool, within) = (call.tool.0, within(call.within));
            ("call", Act::Call { tool, arguments: Value::Object(arguments.collect()), within })
        }),
        raw.status.map(|status| ("status", Act::Status { within: within(status.within) })),
        raw.beacon.map(|NothingFile {}| ("beacon", Act::Beacon)),
        raw.play.map(|play| {
            ("play", Act::Play { dbfs: play.level.0, seconds: play.length.0.as_secs_f64() })
        }),
        raw.listen.map(|listen| ("listen", Act::Listen { length: listen.length.0 })),
        raw.reboot.map(|reboot| ("reboot", Act::Reboot { within: within(reboot.within) })),
        raw.restore.map(|NothingFile {}| ("restore", Act::Restore)),
        raw.repeat
            .map(|group| ("repeat", Act::Repeat { times: group.times.0, steps: steps.clone() })),
        raw.interleave.map(|group| ("interleave", Act::Interleave { times: group.times.0, steps })),
    ];
    Ok(all.into_iter().flatten().collect())
}

fn wait_for(file: &NamedText, wait: Spanned<WaitFile>) -> Result<Wait, FileError> {
    let span = wait.span();
    match wait.into_inner() {
        WaitFile { online: Some(true), log: None, length: None, within: Some(within) } => {
            Ok(Wait::Online { within: within.0 })
        }
        WaitFile { online: None, log: Some(log), length: None, within: Some(within) } => {
            Ok(Wait::Log { log: log.0, within: within.0 })
        }
        WaitFile { online: None, log: None, length: Some(length), within: None } => {
            Ok(Wait::Time(length.0))
        }
        _ => {
            let what = "`wait` is `online = true` or `log = \"...\"` with `within`, or `for` alone";
            Err(FileError::at(file, span, what))
        }
    }
}

impl Step {
    /// This step's id and those inside it.
    pub fn ids(&self) -> Vec<&str> {
        match &self.act {
            Act::Repeat { steps, .. } | Act::Interleave { steps, .. } => {
                steps.iter().map(|s| s.id.as_str()).collect()
            }
            _ => vec![&self.id],
        }
    }

    /// Tools that it calls by name.
    pub fn tools(&self) -> Vec<&str> {
        match &self.act {
            Act::Repeat { steps, .. } | Act::Interleave { steps, .. } => {
                steps.iter().flat_map(Step::tools).collect()
            }
            Act::Call { tool, .. } => vec![tool],
            _ => Vec::new(),
        }
    }
}
