//! The scenario in motion: facts in, records out (commands, step edges, decisions), and the instant
//! at which it wants to be called again. It has no clock and does not know which world it plays in.

mod running;
mod stimuli;

use self::running::Running;
use self::stimuli::Stimuli;
use super::step::{Act, Step};
use super::{Demand, Scenario};
use crate::audio::decide;
use crate::backend::{Backend, Settings};
use crate::decode::sound::{self, Hearing, References};
use crate::decode::uart::{BootEvent, Meaning, UartLine};
use crate::decode::{self, Fact, Story, What};
use crate::journal::{Edge, Entry, Evidence, JournalError};
use crate::time::Moment;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The tool whose effect the bench takes back, and where the status tells its value.
const SET_VOLUME: &str = "self.audio_speaker.set_volume";
const VOLUME: &str = "/audio_speaker/volume";

/// How long putting the board back may take after a session that was cut short.
const RESTORE_LIMIT: Duration = Duration::from_secs(15);

/// How long a status may take that no step of the scenario asks for.
const STATUS_LIMIT: Duration = Duration::from_secs(5);

/// What the conductor must be told of the bench.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The part that the bench plays towards the device.
    pub backend: Settings,
    /// How many passes an `interleave` may take at most.
    pub repeat_limit: u32,
    /// Type B standard uncertainty of a level step at this ear, dB.
    pub step_sigma_db: f64,
}

/// A scenario on its way.
#[derive(Debug)]
pub struct Conductor {
    bench: Bench,
    claims: Vec<Demand>,
    backend: Backend,
    plan: VecDeque<Planned>,
    running: Option<Running>,
    entries: VecDeque<Entry>,
    stimuli: Stimuli,
    board: Board,
    limit: Moment,
    ending: bool,
    passes: BTreeMap<String, u32>,
    /// What was heard in the plays of groups, by step instance.
    heard: BTreeMap<String, Hearing>,
    references: References,
}

/// What is known of the board.
#[derive(Debug, Default)]
struct Board {
    /// The application's state, as the console tells it.
    state: Option<String>,
    /// Boots so far.
    boots: u32,
    /// Its volume before the session changed it.
    volume: Option<Value>,
    /// The session changed it.
    changed: bool,
}

/// Something to do, in order.
#[derive(Clone, Debug)]
struct Planned {
    /// The step instance.
    path: String,
    required: bool,
    work: Work,
}

#[derive(Clone, Debug)]
enum Work {
    /// A step of the scenario.
    Do(Act),
    /// Reads what the session is about to change.
    Remember,
    /// Decides whether the passes so far are enough.
    Weigh { group: String, pass: u32, steps: Vec<Step> },
}

impl Conductor {
    /// A scenario that begins at [`Moment::START`].
    pub fn new(scenario: &Scenario, bench: Bench) -> Conductor {
        let mut conductor = Conductor {
            claims: scenario.claims.iter().flat_map(|c| c.demands.iter().cloned()).collect(),
            backend: Backend::new(bench.backend.clone()),
            stimuli: Stimuli::new(bench.backend.seed),
            bench,
            plan: VecDeque::new(),
            running: None,
            entries: VecDeque::new(),
            board: Board::default(),
            limit: Moment::START + scenario.limit,
            ending: false,
            passes: BTreeMap::new(),
            heard: BTreeMap::new(),
            references: References::default(),
        };
        for step in &scenario.steps {
            conductor.lay_out(step);
        }
        conductor.remember_first();
        if !scenario.steps.iter().any(|s| s.act == Act::Restore) {
            conductor.plan.push_back(restore());
        }
        conductor
    }

    fn lay_out(&mut self, step: &Step) {
        let required = step.required;
        let planned = match &step.act {
            Act::Repeat { times, steps } => (0..*times).flat_map(|_| self.pass(steps)).collect(),
            Act::Interleave { times, steps } => {
                let mut all: Vec<Planned> = (0..*times).flat_map(|_| self.pass(steps)).collect();
                all.push(weigh(&step.id, *times, steps));
                all
            }
            act => vec![Planned { path: step.id.clone(), required, work: Work::Do(act.clone()) }],
        };
        self.plan.extend(planned);
    }

    /// One more pass of a group: each step with the number of its instance.
    fn pass(&mut self, steps: &[Step]) -> Vec<Planned> {
        let planned = steps.iter().map(|step| {
            let pass = self.passes.entry(step.id.clone()).or_default();
            *pass += 1;
            let path = format!("{}#{pass}", step.id);
            Planned { path, required: step.required, work: Work::Do(step.act.clone()) }
        });
        planned.collect()
    }

    /// Has the volume read before the first call that changes it.
    fn remember_first(&mut self) {
        let sets =
            |p: &Planned| matches!(&p.work, Work::Do(Act::Call { tool, .. }) if tool == SET_VOLUME);
        if let Some(first) = self.plan.iter().position(sets) {
            let planned = Planned { path: "before".into(), required: false, work: Work::Remember };
            self.plan.insert(first, planned);
        }
    }

    /// Takes what a record means.
    pub fn note(&mut self, now: Moment, fact: &Fact) {
        match &fact.what {
            What::Boot(BootEvent::Began { .. }) => {
                self.board.state = None;
                self.board.boots += 1;
            }
            What::Uart(UartLine { means: Meaning::State { to, .. }, .. }) => {
                self.board.state = Some(to.clone());
            }
            _ => {}
        }
        self.backend.note(now, fact);
        if let Some(running) = &mut self.running {
            running.note(fact);
        }
    }

    /// Does everything that is due; the records come out of [`next_entry`](Self::next_entry).
    ///
    /// # Errors
    /// When what was heard can't be read.
    pub fn advance(
        &mut self,
        now: Moment,
        story: &Story,
        evidence: &dyn Evidence,
    ) -> Result<(), JournalError> {
        loop {
            if now >= self.limit {
                match self.ending {
                    false => self.cut_short(now, "the session's limit is reached"),
                    true => self.give_up(),
                }
            }
            self.backend.advance(now);
            if let Some(mut running) = self.running.take() {
                let result = running.poll(now, &mut self.backend, &mut self.board);
                self.drain();
                match result {
                    None => {
                        self.running = Some(running);
                        return Ok(());
                    }
                    Some(result) => self.finish(now, running, result),
                }
            } else if let Some(planned) = self.plan.pop_front() {
                self.start(now, planned, story, evidence)?;
            } else {
                // The board is left as it was found: without an audio channel.
                self.backend.goodbye();
                self.drain();
                return Ok(());
            }
        }
    }

    fn start(
        &mut self,
        now: Moment,
        planned: Planned,
        story: &Story,
        evidence: &dyn Evidence,
    ) -> Result<(), JournalError> {
        let Planned { path, required, work } = planned;
        let act = match work {
            Work::Weigh { group, pass, steps } => {
                return self.weigh(&group, pass, &steps, story, evidence);
            }
            Work::Remember => Act::Status { within: STATUS_LIMIT },
            Work::Do(act) => act,
        };
        if matches!(&act, Act::Call { tool, .. } if tool == SET_VOLUME) {
            self.board.changed = true;
        }
        self.entries.push_back(Entry::Step { path: path.clone(), edge: Edge::Start });
        let started = Running::start(now, act, &mut self.backend, &mut self.stimuli, &self.board);
        let (running, command) = started;
        self.entries.extend(command.map(|command| Entry::Did { command }));
        self.drain();
        self.running = Some(running.named(path, required));
        Ok(())
    }

    fn finish(&mut self, now: Moment, running: Running, result: Result<(), String>) {
        let path = running.path().to_owned();
        if let Err(why) = &result {
            self.decide(format!("step `{path}` failed: {why}"));
        }
        self.entries.push_back(Entry::Step { path: path.clone(), edge: Edge::End });
        if result.is_err() && running.required() && !self.ending {
            self.cut_short(now, &format!("step `{path}` is required"));
        }
    }

    /// Leaves the rest of the scenario, and puts the board back.
    fn cut_short(&mut self, now: Moment, why: &str) {
        self.decide(format!("{why}: the rest of the scenario is left out"));
        if let Some(running) = self.running.take() {
            let path = running.path().to_owned();
            self.entries.push_back(Entry::Step { path, edge: Edge::Cut });
        }
        self.ending = true;
        self.limit = now + RESTORE_LIMIT;
        self.plan = VecDeque::from([restore()]);
    }

    /// The board could not be put back in time.
    fn give_up(&mut self) {
        if let Some(running) = self.running.take() {
            let path = running.path().to_owned();
            self.decide(format!("step `{path}` failed: the time for it is over"));
            self.entries.push_back(Entry::Step { path, edge: Edge::End });
        }
        self.plan.clear();
        self.limit = Moment::NEVER;
    }

    /// One more pass while a claim can't be decided with what was heard so far.
    fn weigh(
        &mut self,
        group: &str,
        pass: u32,
        steps: &[Step],
        story: &Story,
        evidence: &dyn Evidence,
    ) -> Result<(), JournalError> {
        let Some((uncertainty, tolerance)) = self.doubt(steps, story, evidence)? else {
            return Ok(());
        };
        let told = format!(
            "{group}: +-{uncertainty:.2} dB after {pass} passes, needed are +-{:.2} dB",
            tolerance / 3.0
        );
        if pass >= self.bench.repeat_limit {
            self.decide(format!("{told}; the rig's limit of {pass} passes is reached"));
            return Ok(());
        }
        self.decide(format!("{told}; one more pass"));
        let mut more = self.pass(steps);
        more.push(weigh(group, pass + 1, steps));
        for planned in more.into_iter().rev() {
            self.plan.push_front(planned);
        }
        Ok(())
    }

    /// The largest uncertainty that is too large for its claim, and the claim's tolerance; `None`
    /// when all are small enough, and when more of the same would not help.
    fn doubt(
        &mut self,
        steps: &[Step],
        story: &Story,
        evidence: &dyn Evidence,
    ) -> Result<Option<(f64, f64)>, JournalError> {
        self.hear(steps, story, evidence)?;
        let mut worst: Option<(f64, f64)> = None;
        for demand in &self.claims {
            let Demand::LevelStep { from, to, tolerance_db, .. } = demand else { continue };
            for (low, high) in from.iter().zip(to) {
                let inside = |id: &String| steps.iter().any(|step| step.id == *id);
                if !inside(low) || !inside(high) {
                    continue;
                }
                let mut pairs = Vec::new();
                for (a, b) in story.instances(low).zip(story.instances(high)) {
                    let heard = |step: &decode::Step| self.heard.get(&step.path);
                    let (Some(a), Some(b)) = (heard(a), heard(b)) else { return Ok(None) };
                    pairs.push((a, b));
                }
                let Some(uncertainty) = self.uncertainty(&pairs) else { return Ok(None) };
                let excess = uncertainty / tolerance_db;
                if !decide::is_certain(uncertainty, *tolerance_db)
                    && worst.is_none_or(|(u, t)| excess > u / t)
                {
                    worst = Some((uncertainty, *tolerance_db));
                }
            }
        }
        Ok(worst)
    }

    /// Listens to the plays of a group that it has not listened to yet.
    fn hear(
        &mut self,
        steps: &[Step],
        story: &Story,
        evidence: &dyn Evidence,
    ) -> Result<(), JournalError> {
        let plays = |step: &&Step| matches!(step.act, Act::Play { .. });
        for instance in steps.iter().filter(plays).flat_map(|step| story.instances(&step.id)) {
            if self.heard.contains_key(&instance.path) {
                continue;
            }
            let references = &mut self.references;
            if let Some(Ok(hearing)) = sound::hear(evidence, story, instance, references)? {
                self.heard.insert(instance.path.clone(), hearing);
            }
        }
        Ok(())
    }

    fn uncertainty(&self, pairs: &[(&Hearing, &Hearing)]) -> Option<f64> {
        let steps: Option<Vec<_>> = pairs.iter().map(|(a, b)| sound::step(a, b)).collect();
        let steps = steps?;
        let values: Vec<(f64, f64)> = steps.iter().map(|s| (s.db, s.sigma_db)).collect();
        let mean = decide::combine(&values, self.bench.step_sigma_db)?;
        let interference: f64 = steps.iter().map(|s| s.interference_db).sum();
        Some(mean.plus_minus + interference / steps.len() as f64)
    }

    fn decide(&mut self, what: String) {
        self.entries.push_back(Entry::Decided { what });
    }

    /// Takes over what the backend wants done.
    fn drain(&mut self) {
        for why in self.backend.take_refusals() {
            self.decide(format!("refused: {why}"));
        }
        let commands = self.backend.take_commands().into_iter();
        self.entries.extend(commands.map(|command| Entry::Did { command }));
    }

    /// The next record to write; the loop carries its command out.
    pub fn next_entry(&mut self) -> Option<Entry> {
        self.entries.pop_front()
    }

    /// When it wants to be called at the latest.
    pub fn deadline(&self) -> Moment {
        let step = self.running.as_ref().map_or(Moment::NEVER, Running::until);
        step.min(self.backend.deadline()).min(self.limit)
    }

    /// Everything was done.
    pub fn is_over(&self) -> bool {
        self.plan.is_empty() && self.running.is_none() && self.entries.is_empty()
    }
}

fn restore() -> Planned {
    Planned { path: "restore".into(), required: false, work: Work::Do(Act::Restore) }
}

fn weigh(group: &str, pass: u32, steps: &[Step]) -> Planned {
    let work = Work::Weigh { group: group.into(), pass, steps: steps.to_vec() };
    Planned { path: group.into(), required: false, work }
}
