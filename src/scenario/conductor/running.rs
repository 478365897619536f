//! A step under way.

use super::stimuli::Stimuli;
use super::{Board, SET_VOLUME, STATUS_LIMIT, VOLUME};
use crate::backend::{Backend, Discovery};
use crate::decode::uart::UartLine;
use crate::decode::{Answer, Fact, What};
use crate::journal::{Command, Party};
use crate::scenario::step::{Act, Wait};
use crate::time::Moment;
use serde_json::{Value, json};
use std::time::Duration;

/// How long a beacon sounds, and its way to the recorded samples.
const BEACON: Duration = Duration::from_millis(1500);

/// After `tts stop`: the longest way of a sound to the recorded samples, so that the next step
/// changes nothing that is still sounding.
const PLAY_OUT: Duration = Duration::from_millis(1300);

/// How much longer than its tone a play may take before something is wrong.
const PLAY_MARGIN: Duration = Duration::from_secs(5);

/// A step under way.
#[derive(Debug)]
pub(super) struct Running {
    path: String,
    required: bool,
    until: Moment,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Over when its time is.
    Time,
    /// Waits for a control channel and the state `idle`.
    Online,
    /// Waits for a console line.
    Log { log: String, seen: bool },
    /// Waits for the audio channel.
    Channel,
    /// Waits for the tool list.
    Discovery,
    /// Waits for the answer to a request.
    Answer { id: i64, answer: Option<Answer>, then: Then },
    /// Waits until everything was played.
    Speech,
    /// Waits for a boot, then for a control channel.
    Restart { boots: u32 },
    /// Over before it began.
    Failed(String),
    /// Nothing to do.
    Done,
}

/// What an answer is good for.
#[derive(Debug)]
enum Then {
    /// The judge reads it.
    Nothing,
    /// The status of the board before the session changed it.
    Remember,
    /// The volume was given back; the status must say so.
    Confirm,
    /// The status after it was given back.
    Check,
}

impl Running {
    /// Begins a step: what is waited for, and what is to be done besides the backend's doing.
    pub fn start(
        now: Moment,
        act: Act,
        backend: &mut Backend,
        stimuli: &mut Stimuli,
        board: &Board,
    ) -> (Running, Option<Command>) {
        let mut command = None;
        let (until, phase) = match act {
            Act::Wait(Wait::Time(length)) | Act::Listen { length } => (now + length, Phase::Time),
            Act::Wait(Wait::Online { within }) => (now + within, Phase::Online),
            Act::Wait(Wait::Log { log, within }) => (now + within, Phase::Log { log, seen: false }),
            Act::OpenAudio { within } => (now + within, open(backend, board, &mut command)),
            Act::Discover { user_tools, within } => {
                backend.discover(user_tools);
                (now + within, Phase::Discovery)
            }
            Act::Call { tool, arguments, within } => {
                (now + within, waiting(backend.call(&tool, arguments), Then::Nothing))
            }
            Act::Status { within } => {
                let first = board.volume.is_none() && !board.changed;
                let then = if first { Then::Remember } else { Then::Nothing };
                (now + within, waiting(backend.call(STATUS, json!({})), then))
            }
            Act::Beacon => {
                command = Some(Command::Beacon { hz: stimuli.beacon() });
                (now + BEACON, Phase::Time)
            }
            Act::Play { dbfs, seconds } => {
                let packets = stimuli.packets(dbfs, seconds);
                let long = Duration::from_millis(60) * packets.len() as u32 + PLAY_MARGIN;
                let phase = match backend.speak(now, packets) {
                    true => Phase::Speech,
                    false => Phase::Failed("there is no audio channel".into()),
                };
                (now + long, phase)
            }
            Act::Reboot { within } => {
                let phase = match backend.call("self.reboot", json!({})) {
                    Some(_) => Phase::Restart { boots: board.boots },
                    None => no_channel(),
                };
                (now + within, phase)
            }
            Act::Restore => (now + STATUS_LIMIT * 2, restore(backend, board)),
            Act::Repeat { .. } | Act::Interleave { .. } => {
                unreachable!("groups are laid out before")
            }
        };
        (Running { path: String::new(), required: false, until, phase }, command)
    }

    pub fn named(self, path: String, required: bool) -> Running {
        Running { path, required, ..self }
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn required(&self) -> bool {
        self.required
    }

    /// When it ends at the latest.
    pub fn until(&self) -> Moment {
        self.until
    }

    /// Takes what a record means.
    pub fn note(&mut self, fact: &Fact) {
        match (&mut self.phase, &fact.what) {
            (Phase::Answer { id, answer, .. }, What::Reply(reply))
                if reply.from == Party::Device && reply.id == Some(*id) =>
            {
                answer.get_or_insert_with(|| reply.answer.clone());
            }
            (
                Phase::Answer { id, answer, .. },
                What::Malformed { from: Party::Device, raw, id: Some(of) },
            ) if of == id => {
                answer.get_or_insert_with(|| Answer::Malformed(raw.clone()));
            }
            (Phase::Log { log, seen }, What::Uart(line)) => *seen |= says(line, log),
            _ => {}
        }
    }

    /// Whether it is over by now, and how.
    pub fn poll(
        &mut self,
        now: Moment,
        backend: &mut Backend,
        board: &mut Board,
    ) -> Option<Result<(), String>> {
        let late = now >= self.until;
        let idle = board.state.as_deref().is_none_or(|state| state == "idle");
        let result = match &mut self.phase {
            Phase::Done => Some(Ok(())),
            Phase::Failed(why) => Some(Err(std::mem::take(why))),
            Phase::Time => late.then_some(Ok(())),
            Phase::Online => (backend.is_online() && idle).then_some(Ok(())),
            Phase::Log { seen, .. } => seen.then_some(Ok(())),
            Phase::Channel => backend.has_channel().then_some(Ok(())),
            Phase::Discovery => match backend.discovery() {
                Discovery::Running => None,
                Discovery::Done { .. } => Some(Ok(())),
                Discovery::Failed { why } => Some(Err(why.clone())),
            },
            Phase::Speech if !backend.is_speaking() => {
                (self.until, self.phase) = (now + PLAY_OUT, Phase::Time);
                return None;
            }
            Phase::Speech => None,
            Phase::Restart { boots } => {
                (board.boots > *boots && backend.is_online() && idle).then_some(Ok(()))
            }
            Phase::Answer { answer: Some(answer), then, .. } => {
                let (answer, then) = (answer.clone(), std::mem::replace(then, Then::Nothing));
                match answered(&answer, then, backend, board) {
                    Ok(None) => Some(Ok(())),
                    Ok(Some(phase)) => {
                        (self.until, self.phase) = (now + STATUS_LIMIT, phase);
                        return None;
                    }
                    Err(why) => Some(Err(why)),
                }
            }
            Phase::Answer { .. } => None,
        };
        result.or_else(|| late.then(|| Err(self.missed())))
    }

    /// What did not happen in time.
    fn missed(&self) -> String {
        match &self.phase {
            Phase::Online => "the board is not online",
            Phase::Log { log, .. } => return format!("the console did not say \"{log}\""),
            Phase::Channel => "the board did not open an audio channel",
            Phase::Discovery => "the list of tools is not complete",
            Phase::Answer { .. } => "there was no answer in time",
            Phase::Speech => "the stimulus could not be sent in time",
            Phase::Restart { .. } => "the board is not back from its restart",
            Phase::Time | Phase::Failed(_) | Phase::Done => "its time is over",
        }
        .into()
    }
}

const STATUS: &str = "self.get_device_status";

fn no_channel() -> Phase {
    Phase::Failed("there is no control channel".into())
}

fn waiting(id: Option<i64>, then: Then) -> Phase {
    id.map_or_else(no_channel, |id| Phase::Answer { id, answer: None, then })
}

/// A press of the button, where it does what it should: in another state it would do harm.
fn open(backend: &Backend, board: &Board, command: &mut Option<Command>) -> Phase {
    match board.state.as_deref() {
        _ if backend.has_channel() => Phase::Done,
        None | Some("idle") => {
            *command = Some(Command::Press { button: "boot".into() });
            Phase::Channel
        }
        Some(state) => Phase::Failed(format!("the board is in `{state}`, not in `idle`")),
    }
}

fn restore(backend: &mut Backend, board: &Board) -> Phase {
    match &board.volume {
        _ if !board.changed => Phase::Done,
        None => Phase::Failed("the volume before the session is not known".into()),
        Some(volume) => {
            waiting(backend.call(SET_VOLUME, json!({ "volume": volume })), Then::Confirm)
        }
    }
}

/// What follows from an answer: nothing, or something more to wait for.
fn answered(
    answer: &Answer,
    then: Then,
    backend: &mut Backend,
    board: &mut Board,
) -> Result<Option<Phase>, String> {
    let volume = || match answer {
        Answer::Text(text) => {
            let status: Option<Value> = serde_json::from_str(text).ok();
            status.and_then(|s| s.pointer(VOLUME).cloned())
        }
        _ => None,
    };
    match then {
        Then::Nothing => Ok(None),
        Then::Remember => {
            board.volume = volume();
            Ok(None)
        }
        Then::Confirm => Ok(Some(waiting(backend.call(STATUS, json!({})), Then::Check))),
        Then::Check if volume() == board.volume => {
            board.changed = false;
            Ok(None)
        }
        Then::Check => {
            let told = |v: Option<&Value>| v.map_or("nothing".into(), Value::to_string);
            let (is, was) = (told(volume().as_ref()), told(board.volume.as_ref()));
            Err(format!("the volume reads {is}; before the session it was {was}"))
        }
    }
}

/// Whether a line is what a step waits for, `text` or `TAG: text`.
fn says(line: &UartLine, wanted: &str) -> bool {
    let is_of = |tag: &str| line.log.as_ref().is_some_and(|log| log.tag == tag);
    line.says(wanted, wanted.split_once(": ").filter(|(tag, _)| is_of(tag)))
}
