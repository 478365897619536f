//! What to do: the steps of a scenario, read from `[[step]]` tables.

use super::file::FileError;
use super::words::{Json, Length, Level, Log, StepId, Text, Times, Within};
use crate::journal::NamedText;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
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
    /// Where the file says so, in bytes: at the tool's name where a tool is called.
    pub place: Range<usize>,
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
    required: Option<Spanned<bool>>,
    wait: Option<Spanned<WaitFile>>,
    open_audio: Option<Spanned<WithinFile>>,
    discover: Option<Spanned<DiscoverFile>>,
    call: Option<Spanned<CallFile>>,
    status: Option<Spanned<WithinFile>>,
    beacon: Option<Spanned<NothingFile>>,
    play: Option<Spanned<PlayFile>>,
    listen: Option<Spanned<ListenFile>>,
    reboot: Option<Spanned<WithinFile>>,
    restore: Option<Spanned<NothingFile>>,
    repeat: Option<Spanned<TimesFile>>,
    interleave: Option<Spanned<TimesFile>>,
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
    tool: Spanned<Text>,
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
        let refuse = |span: Range<usize>, what: String| Err(FileError::at(file, span, what));
        let mut raw = raw.into_inner();
        let (id, required) = (raw.id.take(), raw.required.take());
        let inner = std::mem::take(&mut raw.step);
        let first_inner = inner.first().map(Spanned::span);
        let steps: Vec<Step> =
            inner.into_iter().map(|step| self.step(step, true)).collect::<Result<_, _>>()?;
        let mut acts = acts(file, raw, steps)?;
        acts.sort_by_key(|(place, _)| place.start);
        if let [(_, act), (place, other), ..] = &acts[..] {
            let what =
                format!("a `{}` in a step with `{}`: a step does one", other.kind(), act.kind());
            return refuse(place.clone(), what);
        }
        let Some((place, act)) = acts.pop() else {
            let what = format!("a step does one thing: {}", Act::KINDS.join(", "));
            return refuse(span, what);
        };
        match (act.steps(), first_inner) {
            (Some(_), _) if inside => return refuse(place, "groups don't nest".into()),
            (Some([]), _) => return refuse(place, "a group needs [[step.step]] tables".into()),
            (Some(_), _) => {
                if let Some(required) = required {
                    let what = "a group can't be `required`: say so in its steps";
                    return refuse(required.span(), what.into());
                }
            }
            (None, Some(inner)) => {
                let what = "only `repeat` and `interleave` hold [[step.step]] tables";
                return refuse(inner, what.into());
            }
            (None, None) => {}
        }
        let id = match id {
            None => self.made_up(act.kind()),
            // The bench itself takes steps of these names: `before`, and `restore` at the end.
            Some(id) if id.get_ref().0 == "before" => {
                return refuse(id.span(), "the bench's own first status is `before`".into());
            }
            Some(id) if id.get_ref().0 == "restore" && act != Act::Restore => {
                return refuse(id.span(), "only a `restore` is called `restore`".into());
            }
            Some(id) => id.into_inner().0,
        };
        Ok(Step { id, required: required.is_some_and(Spanned::into_inner), act, place })
    }

    fn made_up(&mut self, kind: &str) -> String {
        let numbered = (2..).map(|n| format!("{kind}-{n}"));
        let mut names = std::iter::once(kind.to_owned()).chain(numbered);
        let id = names.find(|name| !self.ids.contains(name)).expect("there is no last number");
        self.ids.push(id.clone());
        id
    }
}

/// Everything that a table says to do, and where; it should be one thing.
fn acts(
    file: &NamedText,
    raw: StepFile,
    steps: Vec<Step>,
) -> Result<Vec<(Range<usize>, Act)>, FileError> {
    fn act<T>(raw: Option<Spanned<T>>, act: impl FnOnce(T) -> Act) -> Option<(Range<usize>, Act)> {
        raw.map(|raw| (raw.span(), act(raw.into_inner())))
    }
    let within = |limit: Option<Within>| limit.map_or(DEFAULT_WITHIN, |Within(limit)| limit);
    let wait = raw.wait.map(|wait| Ok((wait.span(), Act::Wait(wait_for(file, wait)?))));
    let call = raw.call.map(|call| {
        let CallFile { tool, args, within: limit } = call.into_inner();
        let arguments = args.into_iter().map(|(name, Json(value))| (name, value));
        let (arguments, within) = (Value::Object(arguments.collect()), within(limit));
        (tool.span(), Act::Call { tool: tool.into_inner().0, arguments, within })
    });
    let all = [
        wait.transpose()?,
        act(raw.open_audio, |open| Act::OpenAudio { within: within(open.within) }),
        act(raw.discover, |d| Act::Discover { user_tools: d.user_tools, within: within(d.within) }),
        call,
        act(raw.status, |status| Act::Status { within: within(status.within) }),
        act(raw.beacon, |NothingFile {}| Act::Beacon),
        act(raw.play, |play| Act::Play {
            dbfs: play.level.0,
            seconds: play.length.0.as_secs_f64(),
        }),
        act(raw.listen, |listen| Act::Listen { length: listen.length.0 }),
        act(raw.reboot, |reboot| Act::Reboot { within: within(reboot.within) }),
        act(raw.restore, |NothingFile {}| Act::Restore),
        act(raw.repeat, |group| Act::Repeat { times: group.times.0, steps: steps.clone() }),
        act(raw.interleave, |group| Act::Interleave { times: group.times.0, steps }),
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

impl Act {
    const KINDS: [&str; 12] = [
        "wait",
        "open_audio",
        "discover",
        "call",
        "status",
        "beacon",
        "play",
        "listen",
        "reboot",
        "restore",
        "repeat",
        "interleave",
    ];

    /// Its word in a file.
    pub fn kind(&self) -> &'static str {
        match self {
            Act::Wait(_) => "wait",
            Act::OpenAudio { .. } => "open_audio",
            Act::Discover { .. } => "discover",
            Act::Call { .. } => "call",
            Act::Status { .. } => "status",
            Act::Beacon => "beacon",
            Act::Play { .. } => "play",
            Act::Listen { .. } => "listen",
            Act::Reboot { .. } => "reboot",
            Act::Restore => "restore",
            Act::Repeat { .. } => "repeat",
            Act::Interleave { .. } => "interleave",
        }
    }

    /// The steps of a group.
    fn steps(&self) -> Option<&[Step]> {
        match self {
            Act::Repeat { steps, .. } | Act::Interleave { steps, .. } => Some(steps),
            _ => None,
        }
    }

    /// The tool that it calls by name.
    pub fn tool(&self) -> Option<&str> {
        match self {
            Act::Call { tool, .. } => Some(tool),
            Act::Status { .. } => Some("self.get_device_status"),
            Act::Reboot { .. } => Some("self.reboot"),
            _ => None,
        }
    }
}

impl Step {
    /// How many instances of it a session has at least, or of each step in it.
    pub fn times(&self) -> usize {
        match self.act {
            Act::Repeat { times, .. } | Act::Interleave { times, .. } => times as usize,
            _ => 1,
        }
    }

    /// The steps of a group, or this one.
    pub fn single(&self) -> &[Step] {
        self.act.steps().unwrap_or(std::slice::from_ref(self))
    }
}
