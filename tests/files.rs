//! Wrong files: every refusal with its place, and random edits of the shipped files.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use earwitness::journal::NamedText;
use earwitness::rig::plan::Plan;
use earwitness::scenario::{FileError, Profile, Scenario};
use proptest::prelude::*;

const STEP: &str = "version = 1\nquestion = \"?\"\n[[step]]\n";
const CLAIM: &str = "version = 1\nquestion = \"?\"\n[[claim]]\nid = \"a\"\n";
const REST: &str = "\n[[claim]]\nid = \"a\"\nrequires = \"listed\"\nlisted = { tool = \"t\" }\n";

/// Reads a text as one of the three kinds of files.
type Load = fn(&str) -> Result<(), FileError>;

/// What the three kinds of files say to a text.
fn scenario(text: &str) -> Result<(), FileError> {
    let file = NamedText::new("x.toml", text);
    let profile = Profile::load(&Profile::xiaozhi()).unwrap();
    Scenario::load(&file)?.check_runnable(&file, &profile)
}

fn rig(text: &str) -> Result<(), FileError> {
    Plan::load(&NamedText::new("x.toml", text)).map(|_| ())
}

fn profile(text: &str) -> Result<(), FileError> {
    Profile::load(&NamedText::new("x.toml", text)).map(|_| ())
}

#[test]
fn every_refusal_says_what_and_where() {
    let mut told = String::new();
    let mut check = |text: &str, shown: &str, load: Load| {
        let error = load(text).expect_err(shown);
        told += &format!("{}\n  {error}\n", shown.replace('\n', "\n  | "));
    };
    for whole in [
        "",
        "question = \"?\"\n",
        "version = 2\n",
        "version = 1\nquestion = \"\"\n[[claim]]\n",
        "version = 1\nquestion = \"?\"\nlimit = \"90\"\n",
        "version = 1\nquestion = \"?\"\nclaim = []\n",
        "version = 1\nquestion = \"?\"\n[[clam]]\n",
        "version = 1\nquestion = \n",
    ] {
        check(whole, whole, scenario);
    }
    for step in [
        "",
        "id = \"x\"",
        "wait = { online = true }",
        "wait = { online = false, within = \"1s\" }",
        "wait = { for = \"1s\", within = \"1s\" }",
        "wait = { log = \"\", within = \"1s\" }",
        "wait = { for = \"0s\" }",
        "wait = { for = 3 }",
        "wiat = { for = \"1s\" }",
        "wait = { for = \"1s\" }\nbeacon = {}",
        "beacon = { hz = 3 }",
        "beacon = {}\nid = \"a b\"",
        "beacon = {}\nid = \"b*\"",
        "beacon = {}\nid = \"b\"\n[[step]]\nbeacon = {}\nid = \"b\"",
        "open_audio = { within = \"5\" }",
        "discover = { user_tools = 1 }",
        "call = { args = {} }",
        "call = { tool = \"\" }",
        "call = { tool = \"t\", args = { at = 2026-01-01 } }",
        "call = { tool = \"t\", args = { x = nan } }",
        "call = { tool = \"self.system.reconfigure_wifi\" }",
        "status = { in = \"1s\" }",
        "play = { tone = \"codet\", level = \"-12dBFS\", for = \"1s\" }",
        "play = { tone = \"coded\", level = \"-12dB\", for = \"1s\" }",
        "play = { tone = \"coded\", level = \"0dBFS\", for = \"1s\" }",
        "play = { tone = \"coded\", level = \"-12dBFS\", for = \"11s\" }",
        "play = { tone = \"coded\", level = \"-12dBFS\" }",
        "listen = {}",
        "reboot = { within = \"soon\" }",
        "restore = { volume = 3 }",
        "repeat = { times = 0 }\n[[step.step]]\nbeacon = {}",
        "repeat = { times = 2 }",
        "interleave = { times = 2.5 }\n[[step.step]]\nbeacon = {}",
        "beacon = {}\n[[step.step]]\nbeacon = {}",
        "repeat = { times = 2 }\n[[step.step]]\nrepeat = { times = 2 }\n\
         [[step.step.step]]\nbeacon = {}",
        "required = \"yes\"\nbeacon = {}",
    ] {
        check(&format!("{STEP}{step}{REST}"), step, scenario);
    }
    for claim in [
        "requires = \"physical\"",
        "requires = \"fysical\"",
        "requires = \"listed\"\nlisted = { tol = \"t\" }",
        "requires = \"accepted\"\naccepted = { step = \"*\", text = \"true\" }",
        "requires = \"accepted\"\naccepted = { step = \"a*b\", text = \"true\" }",
        "requires = \"accepted\"\naccepted = { step = \"a\", text = \"\" }",
        "requires = \"accepted\"\naccepted = { step = \"a\", text = \"true\", within = \"-1s\" }",
        "requires = \"executed\"\nexecuted = { step = \"a\" }",
        "requires = \"executed\"\nexecuted = { step = \"a\", log = \"x\", online = true }",
        "requires = \"executed\"\nexecuted = { step = \"a\", log = \"{volume\" }",
        "requires = \"readback\"\nreadback = { step = \"a\", path = \"p\" }",
        "requires = \"readback\"\nreadback = { step = \"a\", path = \"p..q\", equals = 1 }",
        "requires = \"readback\"\nreadback = { step = \"a\", path = \"p\", same_as = \"a\" }",
        "requires = \"readback\"\nreadback = { step = \"a\", path = \"p\", equals = 2026-01-01 }",
        "requires = \"physical\"\nphysical = {}",
        "requires = \"physical\"\nphysical = { boot = { step = \"a\" } }",
    ] {
        check(&format!("{CLAIM}{claim}\n"), claim, scenario);
    }
    for (from, to, expect, tolerance) in [
        ("\"a\"", "\"a\"", "board-law", "1dB"),
        ("[\"a\", \"b\"]", "\"c\"", "board-law", "1dB"),
        ("[\"a\", \"a\"]", "[\"b\", \"c\"]", "board-law", "1dB"),
        ("\"a\"", "\"b\"", "boardlaw", "1dB"),
        ("\"a\"", "\"b\"", "3dB", "3dB"),
        ("\"a\"", "\"b\"", "0dB", "1dB"),
        ("\"a\"", "\"b\"", "3dB", "0dB"),
    ] {
        let sides = format!("from = {from}, to = {to}");
        let limits = format!("expect = \"{expect}\", tolerance = \"{tolerance}\"");
        let claim = format!(
            "requires = \"physical\"\nphysical = {{ level_step = {{ {sides} }}, {limits} }}"
        );
        check(&format!("{CLAIM}{claim}\n"), &claim, scenario);
    }
    let missing = "beacon = {}\nid = \"tone\"";
    let claim = "\n[[claim]]\nid = \"a\"\nrequires = \"accepted\"\n\
                 accepted = { step = \"tony\", text = \"true\" }\n";
    check(&format!("{STEP}{missing}{claim}"), "a claim about `tony`, the step is `tone`", scenario);
    check(
        &format!("{CLAIM}requires = \"listed\"\nlisted = {{ tool = \"t\" }}\n"),
        "no step",
        scenario,
    );
    let plan = "version = 1\nname = \"n\"\near = \"tap\"\nprofile = \"xiaozhi\"\n";
    for line in [
        "ears = 2",
        "path_gain = \"3\"",
        "law = \"no_audio\"",
        "repeat_limit = 0",
        "[simulated]\nlaw = \"x\"",
        "[simulated]",
    ] {
        check(&format!("{plan}{line}\n"), line, rig);
    }
    check("version = 1\nname = \"n\"\near = \"nose\"\nprofile = \"x\"\n", "ear = nose", rig);
    for line in [
        "deny = \"x\"",
        "[readback]\n\"a.b\" = \"same\"",
        "[floor]\n\"a.b\" = { up_to = 0 }",
        "[codecs]\nX = \"law\"",
        "[codes]",
    ] {
        check(&format!("version = 1\nname = \"n\"\n{line}\n"), line, profile);
    }
    insta::assert_snapshot!(told);
}

const SHIPPED: [(&str, Load); 6] = [
    (include_str!("../scenarios/volume-step.toml"), scenario),
    (include_str!("../scenarios/reboot.toml"), scenario),
    (include_str!("../scenarios/imported-volume.toml"), scenario),
    (include_str!("../scenarios/imported-reboot.toml"), scenario),
    (include_str!("../rigs/sim.toml"), rig),
    (include_str!("../rigs/boards/xiaozhi.toml"), profile),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Whatever is done to a file, it is accepted or refused with a place inside of it.
    #[test]
    fn a_random_edit_is_accepted_or_refused_with_its_place(
        which in 0..SHIPPED.len(),
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..5usize, "\\PC{0,3}"),
            1..4,
        ),
    ) {
        let (text, load) = SHIPPED[which];
        let mut chars: Vec<char> = text.chars().collect();
        for (at, kind, new) in edits {
            let at = at.index(chars.len().max(1)).min(chars.len());
            let end = (at + 1 + new.len()).min(chars.len());
            match kind {
                0 => drop(chars.drain(at..end)),
                1 => drop(chars.splice(at..at, new.chars())),
                2 => drop(chars.splice(at..end, new.chars())),
                3 => chars.truncate(at),
                _ => {
                    let piece: Vec<char> = chars[at..end].to_vec();
                    chars.splice(0..0, piece);
                }
            }
            if chars.is_empty() {
                break;
            }
        }
        let text: String = chars.into_iter().collect();
        if let Err(error) = load(&text) {
            let line = text.split('\n').nth(error.line - 1);
            prop_assert!(line.is_some(), "{error}");
            prop_assert!(error.column <= line.unwrap().chars().count() + 1, "{error}\n{text}");
            prop_assert!(!error.what.is_empty());
        }
    }
}
