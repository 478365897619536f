//! Files that people write: each way to get one wrong is refused with its place and the remedy, and
//! random edits of the shipped files never do worse than that.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use earwitness::journal::NamedText;
use earwitness::rig::plan::Plan;
use earwitness::scenario::{FileError, Profile, Scenario, text};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn profile(name: &str) -> Profile {
    Profile::load(&NamedText::new(name, read("rigs/boards/xiaozhi.toml"))).unwrap()
}

/// Reads a file as a bench does before it runs anything.
type Reader = fn(&NamedText) -> Result<(), FileError>;

fn scenario(file: &NamedText) -> Result<(), FileError> {
    Scenario::load(file).and_then(|s| s.check_runnable(file, &profile("xiaozhi.toml")))
}

fn claims(file: &NamedText) -> Result<(), FileError> {
    Scenario::load(file).map(drop)
}

fn rig(file: &NamedText) -> Result<(), FileError> {
    let plan = Plan::load(file)?;
    plan.accepts(&profile("xiaozhi.toml"), file)?;
    plan.world_or_refuse(file).map(drop)
}

fn board(file: &NamedText) -> Result<(), FileError> {
    Profile::load(file).map(drop)
}

/// Every shipped file and who reads it.
const SHIPPED: [(&str, Reader); 6] = [
    ("scenarios/volume-step.toml", scenario),
    ("scenarios/reboot.toml", scenario),
    ("scenarios/imported-volume.toml", claims),
    ("scenarios/imported-reboot.toml", claims),
    ("rigs/sim.toml", rig),
    ("rigs/boards/xiaozhi.toml", board),
];

/// The refusals of a shipped file, each with one thing in it replaced: what was written instead,
/// and what is said of it.
fn refusals(path: &str, reader: Reader, edits: &[(&str, &str)]) -> String {
    let shipped = read(path);
    let name = Path::new(path).file_name().unwrap().to_str().unwrap();
    let mut told = String::new();
    for (from, to) in edits {
        assert!(shipped.contains(from), "{path} has no {from}");
        let file = NamedText::new(name, shipped.replacen(from, to, 1));
        let Err(error) = reader(&file) else { panic!("{path} is accepted with {to}") };
        told += &format!("{}\n    {error}\n", if to.is_empty() { "(nothing)" } else { to });
    }
    told
}

const SET: &str = "self.audio_speaker.set_volume\", args = { volume = 40 }";
const STEP: &str = "level_step = { from = \"tone-quiet\", to = \"tone-middle\" }, expect = \
                    \"board-law\", tolerance = \"1.5dB\"";
const BEACON: &str = "beacon = {}   ";
const ONLINE: &str = "{ online = true, within = \"30s\" }";
const TONE: &str = "{ tone = \"coded\", level = \"-12dBFS\", for = \"2s\" }";

#[test]
fn wrong_frames() {
    let edits = [
        ("version  = 1", ""),
        ("version  = 1", "version = 2"),
        ("version  = 1", "version = \"1\""),
        ("version  = 1", "version = "),
        ("version  = 1", "version = 1\nversion = 1"),
        ("question = ", "questoin = "),
        ("question = ", "# question = "),
        ("question = \"", "question = \" \" # \""),
        ("limit    = \"300s\"", "limit = 300"),
        ("limit    = \"300s\"", "limit = \"300\""),
        ("limit    = \"300s\"", "limit = \"0s\""),
        ("limit    = \"300s\"", "limit = \"25hours\""),
        ("limit    = \"300s\"", "limit = \"2000min\""),
        ("limit    = \"300s\"", "limit = \"soon\""),
        ("[[claim]]", "[[clam]]"),
        ("[[claim]]", "[claim]"),
        ("[[claim]]", "[[claim]"),
        ("[[step]]\nwait", "[[setp]]\nwait"),
    ];
    let shipped = refusals("scenarios/volume-step.toml", scenario, &edits);
    let bare = NamedText::new("bare.toml", "version = 1\nquestion = \"?\"\nclaim = []\n");
    insta::assert_snapshot!(format!("{shipped}\nclaim = []\n    {}", claims(&bare).unwrap_err()));
}

#[test]
fn wrong_steps() {
    let edits = [
        ("id = \"channel\"", "id = \"my channel\""),
        ("id = \"channel\"", "id = \"\""),
        ("id = \"channel\"", "id = \"quiet\""),
        ("id = \"channel\"", "id = \"before\""),
        ("id = \"channel\"", "id = \"restore\""),
        ("required = true", "required = \"yes\""),
        ("required = true", "require = true"),
        ("id = \"volumes\"", "id = \"volumes\"\nrequired = true"),
        (BEACON, ""),
        (BEACON, "becon = {}"),
        (BEACON, "beacon = true"),
        (BEACON, "beacon = { for = \"1s\" }"),
        (BEACON, "beacon = {}\nlisten = { for = \"1s\" }"),
        (BEACON, "[[step.step]]"),
        (BEACON, "beacon = {}\n[[step.step]]\nstatus = {}"),
        (BEACON, "repeat = { times = 2 }"),
        (BEACON, "listen = {}"),
        (BEACON, "listen = { for = \"0ms\" }"),
        (BEACON, "reboot = { within = \"40\" }"),
        (BEACON, "status = { wthin = \"5s\" }"),
        (ONLINE, "{ online = true }"),
        (ONLINE, "{ onlin = true, within = \"30s\" }"),
        (ONLINE, "{ online = false, within = \"30s\" }"),
        (ONLINE, "{ online = true, log = \"a\", within = \"30s\" }"),
        (ONLINE, "{ log = \"\", within = \"30s\" }"),
        (ONLINE, "{ for = \"5s\", within = \"30s\" }"),
        (ONLINE, "{}"),
        ("{ within = \"10s\" }", "{ within = \"10m\" }"),
        ("{ user_tools = true }", "{ user_tool = true }"),
        ("{ user_tools = true }", "{ user_tools = \"all\" }"),
        ("{ times = 2 }", "{}"),
        ("{ times = 2 }", "{ times = 0 }"),
        ("{ times = 2 }", "{ times = 101 }"),
        ("{ times = 2 }", "{ times = \"2\" }"),
        ("status = {}", "repeat = { times = 2 }\n[[step.step.step]]\nstatus = {}"),
        ("{ tool = ", "{ tol = "),
        (SET, "\", args = {}"),
        ("args = { volume = 40 }", "args = [40]"),
        ("args = { volume = 40 }", "args = { volume = nan }"),
        ("args = { volume = 40 }", "args = { at = 2027-01-01 }"),
        (TONE, "{ tone = \"code\", level = \"-12dBFS\", for = \"2s\" }"),
        (TONE, "{ level = \"-12dBFS\", for = \"2s\" }"),
        (TONE, "{ tone = \"coded\", level = \"-12dB\", for = \"2s\" }"),
        (TONE, "{ tone = \"coded\", level = \"-3dBFS\", for = \"2s\" }"),
        (TONE, "{ tone = \"coded\", level = \"loud\", for = \"2s\" }"),
        (TONE, "{ tone = \"coded\", level = \"-12dBFS\", for = \"20s\" }"),
        (TONE, "{ tone = \"coded\", level = \"-12dBFS\", for = \"2\" }"),
        (TONE, "\"coded\""),
        (SET, "self.system.reconfigure_wifi\""),
        (SET, "self.disp.network\""),
        (SET, "self.system.switch_TFT\""),
        (SET, "self.upgrade_firmware\", args = { url = \"http://192.168.4.2/a.bin\" }"),
    ];
    insta::assert_snapshot!(refusals("scenarios/volume-step.toml", scenario, &edits));
}

#[test]
fn wrong_claims() {
    let [loud, same] = ["tone-loud", "tone-quiet"].map(|to| STEP.replace("tone-middle", to));
    let pair =
        |from: &str, to: &str| STEP.replace("\"tone-quiet\"", from).replace("\"tone-middle\"", to);
    let uneven = pair("[\"tone-quiet\", \"tone-loud\"]", "\"tone-middle\"");
    let twice = pair("[\"tone-quiet\", \"tone-quiet\"]", "[\"tone-middle\", \"tone-loud\"]");
    let none = pair("[]", "[]");
    let unknown = pair("[\"tone-loud\", \"tone-quit\"]", "[\"tone-middle\", \"tone-*\"]");
    let silent = loud.replace("tone-quiet", "beacon-after");
    let zero = STEP.replace("1.5dB", "0dB");
    let wide = STEP.replace("board-law", "1dB");
    let law = STEP.replace("board-law", "bord-law");
    let lone = STEP.replace("\"1.5dB\"", "\"1.5\"");
    let second = "[[claim]]\nid = \"volume\"\nrequires = \"listed\"\nlisted = { tool = \"t\" }";
    let second = format!("{second}\n[[claim]]");
    let read = "path = \"audio_speaker.volume\", equals = 40";
    let edits = [
        ("id       = \"volume\"", ""),
        ("id       = \"volume\"", "id = \"\""),
        ("id       = \"volume\"", "id = 1"),
        ("[[claim]]", &second),
        ("requires = \"physical\"", ""),
        ("requires = \"physical\"", "requires = \"fysical\""),
        ("listed   = {", "lised = {"),
        ("listed   = { tool", "listed = { tol"),
        ("listed   = { tool = \"self.audio_speaker.set_volume\" }", "listed = []"),
        ("listed   = { tool = \"self.audio_speaker.set_volume\" }", "listed = { tool = \"\" }"),
        ("listed   = { tool = \"self.audio_speaker.set_volume\" }", "listed = 1"),
        ("step = \"quiet\", text", "step = \"quit\", text"),
        ("step = \"quiet\", text", "step = \"qui*t\", text"),
        ("step = \"quiet\", text", "step = \"*\", text"),
        ("step = \"quiet\", text", "step = \"loud*\", txt"),
        ("step = \"quiet\", text", "step = \"noisy*\", text"),
        ("step = \"quiet\", text", "step = \"tone*\", text"),
        ("text = \"true\"", "text = \"\""),
        ("text = \"true\"", "text = true"),
        ("text = \"true\" }", "text = \"true\", within = \"-1s\" }"),
        ("step = \"quiet\", log", "step = \"beacon\", log"),
        ("Set output volume to {volume}", "Set output volume to {volume"),
        ("log = \"AudioCodec", "online = true, log = \"AudioCodec"),
        (read, "path = \"audio_speaker..volume\", equals = 40"),
        (read, "path = \"audio_speaker.volume\""),
        (read, "path = \"audio_speaker.volume\", equal = 40"),
        (read, "path = \"audio_speaker.volume\", equals = 40, as_asked = \"quiet\""),
        (read, "path = \"audio_speaker.volume\", as_asked = \"quit\""),
        (read, "path = \"audio_speaker.volume\", equals = 2027-01-01"),
        (read, "path = \"audio_speaker.volume\", equals = inf"),
        (read, "path = \"audio_speaker.volume\", same_as = \"status-quiet\""),
        (read, "path = \"audio_speaker.volume\", same_as = \"tone-quiet\""),
        (read, "path = \"audio_speaker.volume\", as_asked = \"status-quiet\""),
        ("step = \"status-quiet\"", "step = \"quiet\""),
        (STEP, &same),
        (STEP, &uneven),
        (STEP, &twice),
        (STEP, &none),
        (STEP, &unknown),
        (STEP, &silent),
        (STEP, &zero),
        (STEP, &wide),
        (STEP, &law),
        (STEP, &lone),
        (STEP, "level_step = { from = \"tone-quiet\" }"),
        (STEP, "level_step = { from = \"tone-quiet\", to = \"tone-middle\" }"),
        (STEP, "boot = { step = \"quiet\", within = \"10s\" }, tolerance = \"1dB\""),
        (STEP, "boot = { step = \"tone-quiet\", within = \"10s\" }"),
        (STEP, "boot = { step = \"quiet\" }"),
        (STEP, &format!("boot = {{ step = \"quiet\", within = \"10s\" }}, {STEP}")),
        (STEP, ""),
    ];
    insta::assert_snapshot!(refusals("scenarios/volume-step.toml", scenario, &edits));
}

#[test]
fn wrong_claims_about_a_restart() {
    let edits = [
        ("executed = [", "accepted = { step = \"reboot\", text = \"true\" }\nexecuted = ["),
        ("online = true, within = \"40s\" }", "onlin = true, within = \"40s\" }"),
        ("same_as = \"status-before\"", "same_as = \"status-befor\""),
        ("physical = { boot = { step = \"reboot\", within = \"10s\" } }", ""),
        ("[[claim]]", "#"),
    ];
    let reboot = refusals("scenarios/reboot.toml", scenario, &edits);
    let edits = [
        ("# Pairs", "# Piars"),
        ("expect = \"board-law\"", "expect = \"0dB\""),
        ("from = [\"tone-1\", \"tone-3\"]", "from = [\"tone-*\", \"tone-3\"]"),
        ("to = [\"tone-2\", \"tone-4\"]", "to = [\"tone-2\", \"tone-3#2\"]"),
    ];
    // An import has no steps, and so nothing to run.
    let imported = refusals("scenarios/imported-volume.toml", scenario, &edits);
    insta::assert_snapshot!(format!("{reboot}\n{imported}"));
}

#[test]
fn wrong_rigs() {
    let edits = [
        ("version      = 1", "version = 3"),
        ("name         = \"sim\"", ""),
        ("name         = \"sim\"", "name = \"\""),
        ("ear          = \"microphone\"", "ear = \"microfone\""),
        ("ear          = \"microphone\"", "eer = \"microphone\""),
        ("path_gain    = \"-30dB\"", "path_gain = -30"),
        ("path_gain    = \"-30dB\"", "path_gain = \"-30\""),
        ("path_gain    = \"-30dB\"", "path_gain = \"quiet\""),
        ("profile      = \"xiaozhi\"", ""),
        ("profile      = \"xiaozhi\"", "profile = \"xiaozi\""),
        ("repeat_limit = 6", "repeat_limit = 0"),
        ("repeat_limit = 6", "repeat_limit = -1"),
        ("repeat_limit = 6", "repeat_limit = 101"),
        ("repeat_limit = 6", "repeat_limit = 99999999999999999999"),
        ("repeat_limit = 6", "repeat_limit = 6.0"),
        ("repeat_limit = 6", "repeat_limt = 6"),
        ("repeat_limit = 6", "law = \"esp_codec\""),
        ("[simulated]\nlaw = \"no_audio_codec\"", ""),
        ("law = \"no_audio_codec\"", ""),
        ("law = \"no_audio_codec\"", "law = \"no_audio_codek\""),
        ("law = \"no_audio_codec\"", "lav = \"no_audio_codec\""),
        ("[simulated]", "[simulatd]"),
    ];
    insta::assert_snapshot!(refusals("rigs/sim.toml", rig, &edits));
}

#[test]
fn wrong_profiles() {
    let floor = "\"audio_speaker.volume\" = { up_to = 0, becomes = 10 }";
    let edits = [
        ("version = 1", "version = 0"),
        ("name    = \"xiaozhi\"", ""),
        ("name    = \"xiaozhi\"", "name = \" \""),
        ("name    = \"xiaozhi\"", "nam = \"xiaozhi\""),
        ("deny = [", "denny = ["),
        ("deny = [", "deny = \"self.disp.network\"\nx = ["),
        ("\"self.disp.network\"", "\"\""),
        ("\"self.disp.network\"", "1"),
        ("[readback]", "[redback]"),
        ("= \"same_variable\"", "= \"same_varible\""),
        ("[floor]", "[flor]"),
        (floor, "\"audio_speaker.volume\" = { up_to = 10, becomes = 10 }"),
        (floor, "\"audio_speaker.volume\" = { up_to = 0, become = 10 }"),
        (floor, "\"audio_speaker.volume\" = { up_to = 0 }"),
        (floor, "\"audio_speaker.volume\" = 10"),
        ("[codecs]", "[codec]"),
        ("= \"esp_codec_dev\"", "= \"esp_codec_dv\""),
        ("= \"esp_codec_dev\"", "= \"es8311\""),
        ("NoAudioCodec      =", "BoxAudioCodec ="),
    ];
    insta::assert_snapshot!(refusals("rigs/boards/xiaozhi.toml", board, &edits));
}

#[test]
fn a_file_is_a_text() {
    let error = text("a.toml", b"version = 1\n# caf\xc3\xa9 caf\xe9\n".to_vec()).unwrap_err();
    assert_eq!(error.to_string(), "a.toml:2:11: this is no UTF-8 text");
}

/// Loads bytes as the file at `path`; an error's place must be in them.
fn check(path: &str, reader: Reader, bytes: Vec<u8>) -> Result<(), TestCaseError> {
    let lossy = String::from_utf8_lossy(&bytes).into_owned();
    let Err(error) = text(path, bytes).and_then(|file| reader(&file)) else { return Ok(()) };
    let FileError { line, column, .. } = error;
    let place = format!("{path}:{line}:{column}: ");
    prop_assert!(error.to_string().starts_with(&place));
    prop_assert!(!error.what.trim().is_empty() && !error.what.contains('\n'), "{error:?}");
    let length = lossy.split('\n').nth(line.wrapping_sub(1)).map(|line| line.chars().count());
    prop_assert!(length.is_some_and(|length| (1..=length + 1).contains(&column)), "{error:?}");
    Ok(())
}

/// One edit: what, where, and with which other place, byte or word.
#[derive(Clone, Debug)]
enum Edit {
    Delete(Index, Index),
    Insert(Index, Vec<u8>),
    Replace(Index, u8),
    Token(Index, &'static str),
    Copied(Index, Index),
    Swap(Index, Index),
}

const WORDS: [&str; 26] = [
    "nan",
    "-inf",
    "1e999",
    "0",
    "-1",
    "99999999999999999999",
    "true",
    "\"\"",
    "''",
    "'''",
    "\"\"\"",
    "{",
    "}",
    "[",
    "]]",
    "[[step]]",
    "[[step.step]]",
    "[[claim]]",
    "=",
    ".",
    "#",
    "\u{feff}",
    "\r\n",
    "2027-01-01T00:00:00Z",
    "\"9999999999999999999999999999min\"",
    "\u{e9}\0",
];

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    prop_oneof![
        (at(), at()).prop_map(|(from, to)| Edit::Delete(from, to)),
        (at(), prop::collection::vec(any::<u8>(), 1..4)).prop_map(|(at, b)| Edit::Insert(at, b)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        (at(), select(&WORDS[..])).prop_map(|(at, word)| Edit::Token(at, word)),
        (at(), at()).prop_map(|(at, from)| Edit::Copied(at, from)),
        (at(), at()).prop_map(|(a, b)| Edit::Swap(a, b)),
    ]
}

/// The byte ranges of the words and numbers of a file.
fn tokens(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let inside = |n: usize| bytes[n].is_ascii_alphanumeric() || b"_-".contains(&bytes[n]);
    let mut tokens: Vec<std::ops::Range<usize>> = Vec::new();
    for n in (0..bytes.len()).filter(|&n| inside(n)) {
        match tokens.last_mut().filter(|last| last.end == n) {
            Some(last) => last.end = n + 1,
            None => tokens.push(n..n + 1),
        }
    }
    tokens
}

impl Edit {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let words = tokens(bytes);
        if bytes.is_empty() || words.is_empty() {
            return;
        }
        match self {
            Edit::Delete(at, length) => {
                let at = at.index(bytes.len());
                let end = (at + 1 + length.index(12)).min(bytes.len());
                bytes.drain(at..end);
            }
            Edit::Insert(at, new) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, new.iter().copied());
            }
            Edit::Replace(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Edit::Token(at, word) => {
                bytes.splice(words[at.index(words.len())].clone(), word.bytes());
            }
            Edit::Copied(at, from) => {
                let word = bytes[words[from.index(words.len())].clone()].to_vec();
                bytes.splice(words[at.index(words.len())].clone(), word);
            }
            Edit::Swap(a, b) => {
                let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
                let (a, b) = (a.index(lines.len()), b.index(lines.len()));
                lines.swap(a, b);
                *bytes = lines.join(&b'\n');
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_edit_of_a_shipped_file_is_worse_than_refused(
        file in select(&SHIPPED[..]),
        edits in prop::collection::vec(edit(), 1..4),
    ) {
        let (path, reader) = file;
        let mut bytes = read(path).into_bytes();
        edits.iter().for_each(|edit| edit.apply(&mut bytes));
        check(path, reader, bytes)?;
    }
}

#[test]
fn the_shipped_files_are_accepted() {
    for (path, reader) in SHIPPED {
        assert_eq!(reader(&NamedText::new(path, read(path))), Ok(()));
    }
}

#[test]
fn depth_is_refused_before_the_stack_ends() {
    let deep = 20_000;
    for nested in [
        format!("[{}]\n", vec!["step"; deep].join(".")),
        format!("[[{}]]\n", vec!["step"; deep].join(".")),
        format!("{} = 1\n", vec!["a"; deep].join(".")),
        format!("limit = {}{}\n", "[".repeat(deep), "]".repeat(deep)),
        format!("limit = {}1{}\n", "{a=".repeat(deep), "}".repeat(deep)),
        format!("limit = {{ {} = 1 }}\n", vec!["a"; deep].join(".")),
    ] {
        for (path, reader) in SHIPPED {
            let file = NamedText::new(path, format!("version = 1\n{nested}"));
            assert!(reader(&file).is_err(), "{}", &nested[..20]);
        }
    }
}
