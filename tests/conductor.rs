//! Evidence: the conductor in virtual time. What it leaves out, puts back, remembers and repeats.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use earwitness::app::session::{Choices, Texts, simulate};
use earwitness::board::Fault;
use earwitness::decode::{Answer, Exchange, Story, tell};
use earwitness::journal::{Entry, Evidence, MemoryRecording, NamedText};
use earwitness::scenario::Profile;
use earwitness::time::Moment;
use serde_json::json;
use std::path::Path;
use std::str::FromStr;

const HEAD: &str = "version = 1\nquestion = \"What does the conductor do?\"\n";
const ONLINE: &str = "[[step]]\nwait = { online = true, within = \"30s\" }\nrequired = true\n";
const CHANNEL: &str = "[[step]]\nopen_audio = { within = \"10s\" }\nrequired = true\n";
const CLAIM: &str = "[[claim]]\nid = \"it\"\nrequires = \"accepted\"\n\
                     accepted = { step = \"asked\", text = \"true\" }\n";
const SET: &str = "[[step]]\nid = \"asked\"\n\
                   call = { tool = \"self.audio_speaker.set_volume\", args = { volume = 33 } }\n";

const QUIET: Choices = Choices { seed: 4, fault: None, law: None, snr13_db: Some(30.0) };

/// A session of steps; `limit` is that of the scenario.
fn session(limit: &str, steps: &[&str], choices: &Choices) -> MemoryRecording {
    let text = format!("{HEAD}limit = \"{limit}\"\n{}{CLAIM}", steps.concat());
    let rig = Path::new(env!("CARGO_MANIFEST_DIR")).join("rigs/sim.toml");
    let rig = NamedText::new("rigs/sim.toml", std::fs::read_to_string(rig).unwrap());
    let scenario = NamedText::new("test.toml", text);
    let texts = Texts { scenario, rig, profile: Profile::xiaozhi() };
    simulate(&texts, choices).unwrap()
}

fn healthy(limit: &str, steps: &[&str]) -> (MemoryRecording, Story) {
    let recording = session(limit, steps, &QUIET);
    let story = tell(&recording).unwrap();
    (recording, story)
}

fn paths(story: &Story) -> Vec<&str> {
    story.steps.iter().map(|step| step.path.as_str()).collect()
}

fn decisions(recording: &MemoryRecording) -> Vec<String> {
    let decided = recording.records().filter_map(|record| match record.unwrap().entry {
        Entry::Decided { what } => Some(what),
        _ => None,
    });
    decided.collect()
}

/// The volumes that were asked for, in order.
fn volumes(story: &Story) -> Vec<i64> {
    let set = |x: &&Exchange| x.request.tool.as_deref() == Some("self.audio_speaker.set_volume");
    let volume = |x: &Exchange| x.request.arguments["volume"].as_i64().unwrap();
    story.mcp.exchanges.iter().filter(set).map(volume).collect()
}

/// What the last status says.
fn last_status(story: &Story) -> serde_json::Value {
    let last = story.mcp.exchanges.last().unwrap();
    assert_eq!(last.request.tool.as_deref(), Some("self.get_device_status"));
    let [reply] = &last.replies[..] else { panic!("{last:?}") };
    let Answer::Text(text) = &reply.answer else { panic!("{reply:?}") };
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_required_step_that_fails_ends_the_session_and_the_board_is_put_back() {
    let missed = "[[step]]\nid = \"missed\"\nrequired = true\n\
                  wait = { log = \"Nobody: says this\", within = \"1s\" }\n";
    let after = "[[step]]\nid = \"after\"\nstatus = {}\n";
    let (recording, story) = healthy("120s", &[ONLINE, SET, missed, after]);
    assert_eq!(paths(&story), ["wait", "before", "asked", "missed", "restore"]);
    assert_eq!(volumes(&story), [33, 70]);
    assert_eq!(last_status(&story)["audio_speaker"]["volume"], 70);
    assert_eq!(
        decisions(&recording),
        [
            "step `missed` failed: the console did not say \"Nobody: says this\"",
            "step `missed` is required: the rest of the scenario is left out",
        ]
    );
    // The same step without `required` ends only itself.
    let (recording, story) =
        healthy("120s", &[ONLINE, SET, &missed.replace("required = true\n", ""), after]);
    assert_eq!(paths(&story), ["wait", "before", "asked", "missed", "after", "restore"]);
    assert_eq!(decisions(&recording).len(), 1);
    assert_eq!(volumes(&story), [33, 70]);
}

#[test]
fn the_board_is_put_back_after_the_limit_too() {
    let long = "[[step]]\nid = \"long\"\nlisten = { for = \"60s\" }\n";
    let (recording, story) = healthy("20s", &[ONLINE, SET, long]);
    assert_eq!(paths(&story), ["wait", "before", "asked", "long", "restore"]);
    let long = &story.steps[3];
    assert_eq!(long.window.until, Moment::from_secs_f64(20.0));
    assert_eq!(volumes(&story), [33, 70]);
    assert_eq!(last_status(&story)["audio_speaker"]["volume"], 70);
    let limit = "the session's limit is reached: the rest of the scenario is left out";
    assert_eq!(decisions(&recording), [limit]);
    assert!(story.until < Moment::from_secs_f64(35.0), "{}", story.until);
}

#[test]
fn a_board_that_was_not_changed_is_sent_nothing() {
    let asked = "[[step]]\nid = \"asked\"\nstatus = {}\n";
    let (recording, story) = healthy("120s", &[ONLINE, asked]);
    assert_eq!(paths(&story), ["wait", "asked", "restore"]);
    assert!(volumes(&story).is_empty());
    let tools = story.mcp.exchanges.iter().filter_map(|x| x.request.tool.as_deref());
    assert_eq!(tools.collect::<Vec<_>>(), ["self.get_device_status"]);
    assert!(decisions(&recording).is_empty());
    // Not even by a step of the scenario, nor where the board was never there.
    let (_, story) = healthy("120s", &[ONLINE, asked, "[[step]]\nrestore = {}\n"]);
    assert_eq!((paths(&story).len(), volumes(&story).len()), (3, 0));
    let (recording, story) = healthy("1s", &[ONLINE, SET]);
    assert_eq!(paths(&story), ["wait", "restore"]);
    assert!(story.mcp.exchanges.is_empty() && decisions(&recording).len() == 1);
}

#[test]
fn the_volume_is_read_before_the_first_change_and_only_then() {
    let again = SET.replace("asked", "again").replace("33", "44");
    let (_, story) = healthy("120s", &[ONLINE, SET, &again]);
    assert_eq!(paths(&story), ["wait", "before", "asked", "again", "restore"]);
    let asked = story.mcp.exchanges.iter().filter_map(|x| {
        let tool = x.request.tool.as_deref()?;
        Some((tool.trim_start_matches("self."), x.request.arguments.clone()))
    });
    let (status, set) = ("get_device_status", "audio_speaker.set_volume");
    assert_eq!(
        asked.collect::<Vec<_>>(),
        [
            (status, json!({})),
            (set, json!({ "volume": 33 })),
            (set, json!({ "volume": 44 })),
            (set, json!({ "volume": 70 })),
            (status, json!({})),
        ]
    );
}

#[test]
fn a_board_that_does_not_confirm_its_old_volume_is_told_of() {
    let fault = Some(Fault::from_str("drop-response").unwrap());
    let recording = session("120s", &[ONLINE, SET], &Choices { seed: 4, fault, ..QUIET });
    assert_eq!(volumes(&tell(&recording).unwrap()), [33, 70]);
    let silent = |step| format!("step `{step}` failed: there was no answer in time");
    assert_eq!(decisions(&recording), ["asked", "restore"].map(silent));
}

/// Two volumes, compared at least twice.
const PASSES: &str = r#"[[step]]
id = "group"
interleave = { times = 2 }
[[step.step]]
id = "asked"
call = { tool = "self.audio_speaker.set_volume", args = { volume = 40 } }
[[step.step]]
id = "tone-quiet"
play = { tone = "coded", level = "-12dBFS", for = "500ms" }
[[step.step]]
id = "loud"
call = { tool = "self.audio_speaker.set_volume", args = { volume = 60 } }
[[step.step]]
id = "tone-loud"
play = { tone = "coded", level = "-12dBFS", for = "500ms" }
[[claim]]
id = "step"
requires = "physical"
[claim.physical]
level_step = { from = "tone-quiet", to = "tone-loud" }
expect = "board-law"
tolerance = "1.5dB"
"#;

fn passes(seed: u64, snr13_db: f64) -> (usize, Vec<String>, Story) {
    let choices = Choices { seed, snr13_db: Some(snr13_db), ..Choices::default() };
    let recording = session("280s", &[ONLINE, CHANNEL, PASSES], &choices);
    let story = tell(&recording).unwrap();
    (story.instances("tone-loud").count(), decisions(&recording), story)
}

#[test]
fn a_quiet_room_needs_no_more_passes_than_the_scenario_says() {
    let (count, decisions, story) = passes(4, 30.0);
    assert_eq!((count, decisions.len()), (2, 0));
    let once = ["asked", "tone-quiet", "loud", "tone-loud"];
    let twice = (1..=2).flat_map(|k| once.map(|id| format!("{id}#{k}")));
    let expected = ["wait", "open_audio", "before"].map(str::to_owned).into_iter().chain(twice);
    assert_eq!(paths(&story)[..11], expected.collect::<Vec<_>>());
}

#[test]
fn a_noisy_room_needs_more_and_the_rig_says_how_many_at_most() {
    let mut most = 0;
    for (seed, snr13_db) in [(1, -2.0), (2, -1.0), (3, 0.0), (4, 1.0), (5, 2.0), (6, 3.0)] {
        let (count, decisions, story) = passes(seed, snr13_db);
        assert!((2..=6).contains(&count), "{count} passes");
        let more: Vec<_> = decisions.iter().filter(|d| d.ends_with("; one more pass")).collect();
        assert_eq!(more.len(), count - 2, "{decisions:?}");
        for (k, told) in more.iter().enumerate() {
            let begins = told.starts_with("group: +-");
            assert!(begins && told.contains(&format!(" after {} passes", k + 2)), "{told}");
            assert!(told.contains("needed are +-0.50 dB"), "{told}");
        }
        let last = format!("tone-loud#{count}");
        assert!(paths(&story).contains(&last.as_str()));
        let reached = decisions.iter().filter(|d| d.contains("limit of 6 passes is reached"));
        assert!(reached.count() <= usize::from(count == 6));
        most = most.max(count);
    }
    assert!(most > 2, "none of these rooms needed more");
}
