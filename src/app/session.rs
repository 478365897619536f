//! A scenario on a rig: prepared from texts, run in a world or replayed from its recording.

use super::evaluate::Refusal;
use crate::audio::decide;
use crate::audio::law::Law;
use crate::backend::Settings;
use crate::board::Fault;
use crate::journal::{
    Evidence, FORMAT, Head, MemoryRecording, NamedText, Origin, SoftwareBoard, run_id,
};
use crate::rig::plan::{EarKind, Plan, World};
use crate::rig::replay::{Divergence, Mirror, ReplayRig};
use crate::rig::sim::{Choice, SimRig};
use crate::run;
use crate::scenario::conductor::{Bench, Conductor};
use crate::scenario::{Profile, Scenario};

/// Where the simulated board finds the simulated bench.
const HOST: &str = "192.168.4.2";
const CONFIG_PORT: u16 = 8002;

/// When simulated sessions begin: a Monday in 2027. Virtual time has no calendar of its own.
const SIMULATED_START_MS: u64 = 1_798_966_800_000;

/// What is chosen for a session besides its files.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// Seed of everything random.
    pub seed: u64,
    /// What is wrong with the software board.
    pub fault: Option<Fault>,
    /// Its gain law, where it is not the rig's.
    pub law: Option<Law>,
    /// SNR13 of the quietest tone in the simulated room, dB, where it is not drawn.
    pub snr13_db: Option<f64>,
}

/// The texts of a session, each of them checked.
#[derive(Clone, Debug)]
pub struct Texts {
    /// What to do and what must be true.
    pub scenario: NamedText,
    /// The bench.
    pub rig: NamedText,
    /// What is expected of the board.
    pub profile: NamedText,
}

/// Runs a scenario against the software board in virtual time.
///
/// # Errors
/// When one of the texts is not valid, or the scenario or the rig can't be run.
pub fn simulate(texts: &Texts, choices: &Choices) -> Result<MemoryRecording, Refusal> {
    let part = |part| move |error| Refusal::Head { part, error };
    let scenario = Scenario::load(&texts.scenario).map_err(part("scenario"))?;
    let plan = Plan::load(&texts.rig).map_err(part("rig"))?;
    let profile = Profile::load(&texts.profile).map_err(part("profile"))?;
    scenario.check_runnable(&texts.scenario, &profile).map_err(part("scenario"))?;
    plan.accepts(&profile, &texts.rig).map_err(part("rig"))?;
    let World::Simulated { law } = *plan.world_or_refuse(&texts.rig).map_err(part("rig"))?;
    let law = choices.law.unwrap_or(law);
    let chosen = format!("{choices:?} {law}");
    let head = Head {
        format: FORMAT,
        tool: concat!("earwitness ", env!("CARGO_PKG_VERSION")).into(),
        run_id: run_id(&[&chosen, &texts.scenario.text, &texts.rig.text, &texts.profile.text]),
        origin: Origin::Simulated,
        seed: choices.seed,
        started_at_ms: SIMULATED_START_MS,
        device: Some(SoftwareBoard {
            law: law.to_string(),
            fault: choices.fault.map(|fault| fault.to_string()),
        }),
        scenario: texts.scenario.clone(),
        rig: texts.rig.clone(),
        profile: texts.profile.clone(),
    };
    let choice = Choice {
        seed: choices.seed,
        law,
        fault: choices.fault,
        path_gain_db: plan.path_gain_db.unwrap_or(0.0),
        host: HOST.into(),
        port: CONFIG_PORT,
        snr13_db: choices.snr13_db,
    };
    let mut conductor = Conductor::new(&scenario, bench(&plan, &head));
    let mut journal = MemoryRecording::begin(head);
    run::run(&mut SimRig::new(&choice), &mut conductor, &mut journal)?;
    Ok(journal)
}

/// Plays a recording again: would everything be decided like that today? The first difference, if
/// there is one, and today's journal.
///
/// # Errors
/// When the recording can't be read, or was not made by a run.
pub fn replay(evidence: &dyn Evidence) -> Result<(Option<Divergence>, MemoryRecording), Refusal> {
    let head = evidence.head();
    if head.origin == Origin::Imported {
        return Err(Refusal::NotARun);
    }
    let part = |part| move |error| Refusal::Head { part, error };
    let scenario = Scenario::load(&head.scenario).map_err(part("scenario"))?;
    let plan = Plan::load(&head.rig).map_err(part("rig"))?;
    let mut conductor = Conductor::new(&scenario, bench(&plan, head));
    let mut mirror = Mirror::new(evidence);
    run::run(&mut ReplayRig::new(evidence), &mut conductor, &mut mirror)?;
    Ok(mirror.finish()?)
}

fn bench(plan: &Plan, head: &Head) -> Bench {
    Bench {
        backend: Settings {
            seed: head.seed,
            started_at_unix_ms: head.started_at_ms,
            host: HOST.into(),
            mqtt_port: 1883,
            udp_port: 8884,
            keepalive: 60,
        },
        repeat_limit: plan.repeat_limit,
        step_sigma_db: match plan.ear {
            EarKind::Tap => decide::TAP_STEP_SIGMA_DB,
            EarKind::Microphone => decide::MICROPHONE_STEP_SIGMA_DB,
        },
    }
}

/// What a difference between then and today is, in words.
pub fn told(divergence: &Divergence) -> String {
    let Divergence { n, then, today } = divergence;
    let told = |record: &Option<crate::journal::Record>| match record {
        Some(record) => serde_json::to_string(record).unwrap_or_default(),
        None => "nothing more".into(),
    };
    format!("diverged at record {n}\n  then   {}\n  today  {}", told(then), told(today))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::evaluate::evaluate;
    use crate::journal::{Condition, Edge, Entry};
    use crate::judge::Outcome;

    const VOLUME_STEP: &str = include_str!("../../scenarios/volume-step.toml");
    const REBOOT: &str = include_str!("../../scenarios/reboot.toml");

    /// A healthy board and a scenario with another limit.
    fn limited(scenario: &str, limit: &str) -> MemoryRecording {
        let line = scenario.lines().find(|line| line.starts_with("limit")).unwrap();
        let scenario = scenario.replace(line, &format!("limit = \"{limit}\""));
        let texts = Texts {
            scenario: NamedText::new("limited.toml", scenario),
            rig: NamedText::new("sim.toml", include_str!("../../rigs/sim.toml")),
            profile: Profile::xiaozhi(),
        };
        simulate(&texts, &Choices { seed: 3, ..Choices::default() }).unwrap()
    }

    #[test]
    fn at_its_limit_a_session_ends_in_order() {
        let recording = limited(VOLUME_STEP, "10s");
        let entries: Vec<_> = recording.records().map(|record| record.unwrap()).collect();
        let limit = entries.iter().position(
            |r| matches!(&r.entry, Entry::Decided { what } if what.contains("limit is reached")),
        );
        let limit = limit.expect("the limit is a decision");
        assert_eq!(entries[limit].at.seconds_since(crate::time::Moment::START), 10.0);
        let steps = entries[limit..].iter().filter_map(|r| match &r.entry {
            Entry::Step { path, edge } => Some((path.as_str(), *edge)),
            _ => None,
        });
        let steps: Vec<_> = steps.collect();
        assert_eq!(steps[0].1, Edge::Cut);
        assert_eq!(steps[steps.len() - 2..], [("restore", Edge::Start), ("restore", Edge::End)]);
        assert!(matches!(entries.last().unwrap().entry, Entry::End { .. }));
        assert_eq!(recording.condition(), &Condition::Complete);
    }

    #[test]
    fn what_a_limit_left_out_is_not_charged_to_the_board() {
        for (scenario, limits, enough) in [
            (VOLUME_STEP, &["1s", "5s", "10s", "14s", "18s", "24s", "30s", "36s"][..], "300s"),
            (REBOOT, &["1s", "5s", "10s", "14s", "18s", "22s", "26s"][..], "150s"),
        ] {
            let outcome =
                |limit| evaluate(&limited(scenario, limit), None).unwrap().verdict.outcome;
            for limit in limits {
                let outcome = outcome(limit);
                let unknown = [Outcome::Error, Outcome::Inconclusive].contains(&outcome);
                assert!(unknown, "{outcome} at {limit}");
            }
            assert_eq!(outcome(enough), Outcome::Pass);
        }
    }
}
