//! A session laid out for the predicates: its story, what the ear heard, and whether it hears.

use super::{ClaimVerdict, Coverage, Ear, Identity, Status, Terms};
use crate::audio::law::Law;
use crate::decode::ear::{self, Check};
use crate::decode::sound::{self, Heard, Hearing, References, Unheard};
use crate::decode::uart::{BootEvent, Meaning, UartLine};
use crate::decode::{Exchange, Fact, Step, Story, What, tell};
use crate::journal::{Evidence, JournalError};
use crate::scenario::{Demand, Rung, Scenario};
use crate::time::Moment;
use serde_json::Value;

/// The tool whose argument is the volume in force.
const SET_VOLUME: &str = "self.audio_speaker.set_volume";

/// Everything the predicates look at.
pub(super) struct Case<'a> {
    pub terms: &'a Terms,
    pub story: Story,
    /// What was heard in the steps that any claim listens to.
    pub hearings: Vec<Hearing>,
    /// Those of them that nobody can listen to.
    unheard: Vec<Unheard>,
    /// What the ear made of the bench's beacons.
    pub checks: Vec<Check>,
    /// Records of the calls that a claim expects to restart the board, in order.
    licensed: Vec<u64>,
}

/// Whether a missing or present sound means anything.
pub(super) enum EarState {
    /// Proven alive; why.
    Alive(String),
    /// Proven deaf; why.
    Blind(String),
    /// Nobody knows; why.
    Unproven(String),
}

impl<'a> Case<'a> {
    pub fn open(
        scenario: &Scenario,
        terms: &'a Terms,
        evidence: &dyn Evidence,
    ) -> Result<Self, JournalError> {
        let story = tell(evidence)?;
        let checks = ear::check_ear(evidence, &story)?;
        let (mut hearings, mut unheard) = (Vec::new(), Vec::new());
        let mut references = References::default();
        for step in &story.steps {
            let listens = scenario.claims.iter().flat_map(|c| &c.demands).any(|d| match d {
                Demand::LevelStep { from, to, .. } => from.iter().chain(to).any(|id| step.is(id)),
                _ => false,
            });
            let mut hear = || sound::hear(evidence, &story, step, &mut references);
            match listens.then(&mut hear).transpose()?.flatten() {
                Some(Ok(hearing)) => hearings.push(hearing),
                Some(Err(nothing)) => unheard.push(nothing),
                None => {}
            }
        }
        let restarts = scenario.claims.iter().flat_map(|c| &c.demands).filter_map(|d| match d {
            Demand::Boot { step, .. } => Some(step),
            _ => None,
        });
        let steps = restarts.flat_map(|id| story.instances(id));
        let mut licensed: Vec<u64> = steps.flat_map(|s| story.calls(s)).map(|x| x.record).collect();
        licensed.sort_unstable();
        licensed.dedup();
        Ok(Case { terms, story, hearings, unheard, checks, licensed })
    }

    /// The calls that a claim expects to restart the board, in order.
    pub fn reboots(&self) -> impl Iterator<Item = &Exchange> {
        let licensed = |x: &&Exchange| self.licensed.binary_search(&x.record).is_ok();
        self.story.mcp.exchanges.iter().filter(licensed)
    }

    /// What was heard in a step instance; `None` when no tone was sent in it.
    pub fn heard(&self, step: &Step) -> Option<&Hearing> {
        self.hearings.iter().find(|h| h.path == step.path && step.window.contains(h.sent))
    }

    /// The first instance of these steps that nobody can listen to.
    pub fn unheard(&self, ids: &[String]) -> Option<&Unheard> {
        let mut paths = ids.iter().flat_map(|id| self.story.instances(id)).map(|step| &step.path);
        paths.find_map(|path| self.unheard.iter().find(|u| u.path == *path))
    }

    pub fn ear(&self) -> EarState {
        if self.hearings.iter().any(|h| h.heard == Heard::Lost) {
            return EarState::Unproven("samples are missing while the board played".into());
        }
        match self.terms.ear {
            Ear::Tap => EarState::Alive("electrical tap, every sample there".into()),
            Ear::Microphone => self.microphone(),
        }
    }

    fn microphone(&self) -> EarState {
        let (checks, plays) = (self.checks.iter(), self.hearings.iter());
        let zeros = checks.filter_map(|c| c.zeros).chain(plays.filter_map(|h| h.zeros)).min();
        if let Some(at) = zeros {
            return EarState::Blind(format!("the microphone delivers exact zeros at {at}"));
        }
        if self.checks.is_empty() {
            return EarState::Unproven(
                "nothing but the board was there to hear: no beacon was played".into(),
            );
        }
        if let Some(deaf) = self.checks.iter().find(|c| !c.is_heard()) {
            let at = deaf.beacon.from;
            return match deaf.tone {
                Err(why) => EarState::Unproven(format!("{why} at the beacon, {at}")),
                Ok(tone) if deaf.is_drowned() => EarState::Unproven(format!(
                    "noise of {:.1} dBFS (third octave) drowns the beacon of {:.1} dBFS at {at}",
                    tone.floor_dbfs(),
                    deaf.beacon.level_dbfs
                )),
                Ok(tone) => EarState::Blind(format!(
                    "the beacon at {at} was not heard: at most {:.1} dBFS, expected {:.1} dBFS",
                    tone.ceiling_dbfs(),
                    deaf.beacon.level_dbfs
                )),
            };
        }
        match ear::unrest(&self.hearings, &self.checks) {
            Some(why) => EarState::Unproven(why),
            None => EarState::Alive(self.beacons_heard()),
        }
    }

    /// How long before and after the board's tones the beacon was heard, and how loud.
    fn beacons_heard(&self) -> String {
        let first = self.hearings.iter().map(|h| h.window.from).min().unwrap_or(Moment::START);
        let last = self.hearings.iter().map(|h| h.window.until).max().unwrap_or(Moment::NEVER);
        let heard = self.checks.iter().filter_map(|c| c.tone.ok().map(|tone| (c.beacon, tone)));
        let told = heard.map(|(beacon, tone)| {
            let level = format!("{:.1} dBFS", tone.dbfs());
            let (before, after) =
                (first.seconds_since(beacon.until), beacon.from.seconds_since(last));
            match (before > 0.0, after > 0.0) {
                (true, _) => format!("{before:.0} s before ({level})"),
                (_, true) => format!("{after:.0} s after ({level})"),
                _ => format!("between the tones ({level})"),
            }
        });
        format!("beacon heard {}", told.collect::<Vec<_>>().join(" and "))
    }

    /// One sentence about the controls of the ear.
    pub fn controls(&self) -> String {
        if self.hearings.is_empty() {
            return "no sound was judged".into();
        }
        let contrasts: Option<Vec<f64>> = self.hearings.iter().map(Hearing::contrast_db).collect();
        let beside = match contrasts.map(|all| all.into_iter().fold(f64::INFINITY, f64::min)) {
            Some(f64::INFINITY) => {
                ", only noise at their frequency before and after the tones".into()
            }
            Some(least) => {
                format!(", before and after the tones {least:.0} dB less at their frequency")
            }
            None => String::new(),
        };
        match self.ear() {
            EarState::Alive(why) => format!("{why}{beside}"),
            EarState::Blind(why) | EarState::Unproven(why) => why,
        }
    }

    /// The application's state at an instant, as the console told it in the same boot.
    pub fn state_at(&self, at: Moment) -> Option<&str> {
        let mut state = None;
        for fact in self.story.facts.iter().filter(|f| f.at <= at) {
            match &fact.what {
                What::Boot(BootEvent::Began { .. } | BootEvent::Missed { .. }) => state = None,
                What::Uart(UartLine { means: Meaning::State { to, .. }, .. }) => {
                    state = Some(to.as_str());
                }
                _ => {}
            }
        }
        state
    }

    /// The board's law and how we know it.
    pub fn law(&self) -> Option<(Law, &'static str)> {
        let stated = self.terms.law.map(|law| (law, "stated by the rig"));
        stated.or_else(|| {
            let tags = self.story.facts.iter().filter_map(|f| match &f.what {
                What::Uart(line) => match &line.means {
                    Meaning::Codec(tag) => Some(tag),
                    _ => None,
                },
                _ => None,
            });
            let mut laws = tags.filter_map(|tag| self.terms.profile.codecs.get(tag));
            laws.next_back().map(|law| (*law, "from the codec's log tag"))
        })
    }

    /// The volume that was asked for before `at`, in the same boot, and the record that asked.
    pub fn volume_asked(&self, at: Moment) -> Option<(u32, u64)> {
        let before = self
            .story
            .mcp
            .exchanges
            .iter()
            .rev()
            .find(|x| x.at < at && x.request.tool.as_deref() == Some(SET_VOLUME))?;
        let same_boot =
            !self.story.facts.iter().any(|f| f.at > before.at && f.at < at && f.boot > before.boot);
        let volume = before.request.arguments.get("volume").and_then(Value::as_u64)?;
        same_boot.then_some((volume.min(100) as u32, before.record))
    }

    /// The console line with which something else changed the volume after a call had set it, and
    /// the value: a button, a knob, a second client. A board that sets another value in place of
    /// the wanted one is none.
    pub fn another_writer(&self, call: &Exchange, until: Moment) -> Option<(&Fact, i32)> {
        let is_volume = call.request.tool.as_deref() == Some(SET_VOLUME);
        let asked = call.request.arguments.get("volume").and_then(Value::as_i64)?;
        let mut later = self.story.mcp.exchanges.iter().filter(|x| x.record > call.record);
        let next = later.find(|x| x.request.tool == call.request.tool);
        let until = next.map_or(until, |x| x.at.min(until));
        let mut set = self.story.facts.iter().filter_map(|fact| match &fact.what {
            What::Uart(UartLine { means: Meaning::VolumeSet(value), .. }) => Some((fact, *value)),
            _ => None,
        });
        let of_call = |f: &Fact| f.boot == call.boot && f.at >= call.at && f.at < until;
        set.find(|(fact, value)| of_call(fact) && i64::from(*value) == asked)?;
        set.find(|(fact, value)| is_volume && of_call(fact) && i64::from(*value) != asked)
    }

    /// Board name, firmware version and ELF hash, as the config request or the console tell them.
    pub fn identity(&self) -> Identity {
        let mut identity = Identity::default();
        for fact in &self.story.facts {
            match &fact.what {
                What::Http(request) if request.start.starts_with("POST") => {
                    let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
                    let text = |path| body.pointer(path).and_then(Value::as_str).map(str::to_owned);
                    identity.board = text("/board/name").or(identity.board);
                    identity.firmware = text("/application/version").or(identity.firmware);
                    identity.elf_sha256 = text("/application/elf_sha256").or(identity.elf_sha256);
                }
                What::Uart(line) => match &line.means {
                    Meaning::AppVersion(version) => {
                        identity.firmware.get_or_insert(version.clone());
                    }
                    Meaning::Board { sku, .. } => {
                        identity.board.get_or_insert(sku.clone());
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        identity
    }

    /// Replies to `tools/list` as one list: names, and whether it is complete.
    pub fn tools(&self) -> Option<ToolList> {
        let mut list: Option<ToolList> = None;
        for x in self.story.mcp.exchanges.iter().filter(|x| x.request.method == "tools/list") {
            let first = x.replies.first().and_then(|r| match &r.answer {
                crate::decode::Answer::Result(value) => Some((r.record, value)),
                _ => None,
            });
            let Some((record, result)) = first else { continue };
            let names = result.get("tools").and_then(Value::as_array).into_iter().flatten();
            let names = names.filter_map(|t| t.get("name").and_then(Value::as_str));
            let cursor = x.request.arguments.get("cursor").and_then(Value::as_str);
            let next = result.get("nextCursor").and_then(Value::as_str).unwrap_or("");
            let list = match cursor {
                None | Some("") => list.insert(ToolList::default()),
                Some(_) => list.get_or_insert_default(),
            };
            list.names.extend(names.map(str::to_owned));
            list.complete = next.is_empty();
            list.with_user_tools =
                x.request.arguments.get("withUserTools").and_then(Value::as_bool) == Some(true);
            list.records.push(record);
        }
        list
    }

    /// Which advertised tools this session says something about: a physical finding speaks for
    /// the tools that its claim lists, as far as they were called and have to do with it.
    pub fn coverage(&self, scenario: &Scenario, verdicts: &[ClaimVerdict]) -> Coverage {
        let mut coverage = Coverage::default();
        let called = |name: &str, step: Option<&str>| {
            let tool = |x: &Exchange| x.request.tool.as_deref() == Some(name);
            match step {
                None => self.story.mcp.exchanges.iter().any(tool),
                Some(step) => self.story.instances(step).any(|s| self.story.calls(s).any(tool)),
            }
        };
        // Demands of one rung and their findings stand in the same order.
        let witnessed = |name: &str, status: Status| {
            scenario.claims.iter().zip(verdicts).any(|(claim, verdict)| {
                let lists = |d: &Demand| matches!(d, Demand::Listed { tool } if tool == name);
                let physical = |d: &&Demand| d.rung() == Rung::Physical;
                let findings = verdict.findings.iter().filter(|f| f.rung == Rung::Physical);
                let mut pairs = claim.demands.iter().filter(physical).zip(findings);
                claim.demands.iter().any(lists)
                    && pairs.any(|(demand, f)| {
                        f.status == status
                            && match demand {
                                Demand::LevelStep { .. } => {
                                    name == SET_VOLUME && called(name, None)
                                }
                                Demand::Boot { step, .. } => called(name, Some(step)),
                                _ => false,
                            }
                    })
            })
        };
        for name in self.tools().map(|t| t.names).unwrap_or_default() {
            let list = if witnessed(&name, Status::Refuted) {
                &mut coverage.refuted
            } else if witnessed(&name, Status::Proven) {
                &mut coverage.physical
            } else if called(&name, None) {
                &mut coverage.software_only
            } else {
                &mut coverage.not_exercised
            };
            list.push(name);
        }
        coverage
    }
}

/// What `tools/list` said.
#[derive(Default)]
pub(super) struct ToolList {
    pub names: Vec<String>,
    /// The last page had no `nextCursor`.
    pub complete: bool,
    /// User-only tools were asked for.
    pub with_user_tools: bool,
    pub records: Vec<u64>,
}
