//! Architecture: who may use whom in the house (the crate docs draw it), what each room must not
//! touch, and the house numbers. Every rule has a test that shows it a violation.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "tidy/source.rs"]
mod source;

use source::Source;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms and what each may use: a room, or one part of a room.
///
/// Wider than a bare list of rooms where the code needs one part: `audio` takes `Measured` and
/// nothing else from `time`; `scenario` and `judge` take the board laws and the decision rule from
/// `audio`, so that conductor and judge decide alike; `report` names rungs, which are `scenario`'s
/// words; `rig` parses the profile that a rig file names and, for imports, gives a room its sound.
const ARROWS: [(&str, &[&str]); 13] = [
    ("time", &[]),
    ("audio", &["time"]),
    ("journal", &["time"]),
    ("decode", &["journal", "time", "audio"]),
    ("backend", &["decode", "journal", "time"]),
    ("board", &["time", "audio"]),
    (
        "scenario",
        &[
            "backend",
            "decode",
            "journal",
            "time",
            "audio::decide",
            "audio::law",
            "audio::opus",
            "audio::stimulus",
        ],
    ),
    ("run", &["rig", "scenario", "decode", "journal", "time"]),
    ("judge", &["scenario", "decode", "journal", "time", "audio"]),
    ("report", &["judge", "decode", "audio", "journal", "time", "scenario"]),
    ("rig", &["journal", "time", "audio"]),
    ("rig::sim", &["journal", "time", "audio", "board"]),
    ("rig::plan", &["journal", "time", "audio", "scenario"]),
];

/// Rooms that may use all.
const FREE: [&str; 4] = ["app", "cli", "main", "lib"];

/// Library parts that reach the world, and who may use them.
const WORLD: [(&str, &[&str]); 5] = [
    ("std::fs", &["rig", "app", "main", "cli", "journal"]),
    ("std::net", &["rig", "app", "main", "cli"]),
    ("std::os::unix::net", &["rig", "app", "main", "cli"]),
    ("std::thread", &["rig", "app", "main", "cli"]),
    ("tokio", &["rig", "app", "main", "cli"]),
];

/// Words that no code may use, and what to do instead.
const NOWHERE: [(&str, &str); 5] = [
    ("Instant::now", "take the time from the observation; the core has no clock"),
    ("SystemTime", "take the calendar from the recording's head"),
    ("thread::sleep", "wait for an observation or a deadline"),
    ("static mut", "pass the value to who needs it"),
    ("unsafe", "find the safe way; the crate forbids the other"),
];

/// Words that only tests may use, and what to do instead.
const TESTS_ONLY: [(&str, &str); 4] = [
    (".unwrap()", "return the error, or `expect` with the reason why it can't fail"),
    ("todo!", "write it, or leave it out"),
    ("unimplemented!", "write it, or leave it out"),
    ("dbg!", "use `tracing`"),
];

const PRINTS: [&str; 4] = ["println!", "eprintln!", "print!", "eprint!"];

const MAX_COLUMNS: usize = 100;
const MAX_FUNCTION: usize = 70;
const MAX_FILE: usize = 500;

/// What may lie at the top, beside hidden files and what git ignores.
const TOP: [&str; 12] = [
    "Cargo.toml",
    "Cargo.lock",
    "src",
    "benches",
    "rigs",
    "scenarios",
    "recordings",
    "tests",
    "README.md",
    "LICENSE-",
    "target",
    "earwitness-runs",
];

/// A broken rule: `file:line: rule: what to do instead`.
type Violations = Vec<String>;

fn violation(source: &Source, line: usize, rule: &str, instead: &str) -> String {
    format!("{}:{line}: {rule}: {instead}", source.path)
}

/// Whether `path` is `prefix` or inside of it; both written with `::`.
fn is_within(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn arrows(source: &Source) -> Violations {
    let module = source.module().join("::");
    let room = source.module()[0].to_owned();
    if FREE.contains(&room.as_str()) {
        return Vec::new();
    }
    let narrowest = ARROWS.iter().filter(|(name, _)| is_within(&module, name));
    let Some((name, allowed)) = narrowest.max_by_key(|(name, _)| name.len()) else {
        let instead = "give it a line in ARROWS, or put the code into a room that there is";
        return vec![violation(source, 1, &format!("room `{room}` is unknown"), instead)];
    };
    let mut violations = Vec::new();
    for (line, path) in source.paths() {
        let [root, target, ..] = path.as_slice() else { continue };
        let is_module = target.starts_with(|c: char| c.is_lowercase());
        if root != "crate" || *target == room || !is_module {
            continue;
        }
        let target = path[1..].join("::");
        if !allowed.iter().any(|allowed| is_within(&target, allowed)) {
            let rule = format!("`{name}` must not use `{target}`");
            let instead = format!(
                "it may use {}",
                match allowed.is_empty() {
                    true => "no other room".to_owned(),
                    false => allowed.join(", "),
                }
            );
            violations.push(violation(source, line, &rule, &instead));
        }
    }
    violations
}

fn world(source: &Source) -> Violations {
    let room = source.module()[0];
    let mut violations = Vec::new();
    for (line, path) in source.paths() {
        let path = path.join("::");
        for (part, rooms) in WORLD {
            if is_within(&path, part) && !rooms.contains(&room) && !source.in_test[line - 1] {
                let rule = format!("`{room}` must not use `{part}`");
                let instead = format!("leave the world to {}", rooms.join(", "));
                violations.push(violation(source, line, &rule, &instead));
            }
        }
    }
    violations
}

/// Whether `code` has `word` with no other word grown on to either end.
fn has_word(code: &str, word: &str) -> bool {
    let joined = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(word).any(|(at, _)| {
        let open = !word.starts_with('.') && joined(code[..at].chars().next_back());
        !open && !joined(code[at + word.len()..].chars().next())
    })
}

fn words(source: &Source) -> Violations {
    let mut violations = Vec::new();
    for (n, code) in source.code.iter().enumerate() {
        let mut broken = |word: &str, instead: &str| {
            violations.push(violation(source, n + 1, &format!("`{word}`"), instead));
        };
        for (word, instead) in NOWHERE {
            if has_word(code, word) {
                broken(word, instead);
            }
        }
        if code.trim_start().starts_with("#[ignore") {
            broken("#[ignore", "run it, or delete it");
        }
        if source.in_test[n] {
            continue;
        }
        for (word, instead) in TESTS_ONLY {
            if has_word(code, word) {
                broken(word, instead);
            }
        }
        for word in PRINTS.iter().filter(|_| source.path != "src/main.rs") {
            if has_word(code, word) {
                broken(word, "write to the writer that `app::run` is given, or use `tracing`");
            }
        }
    }
    violations
}

fn sizes(source: &Source) -> Violations {
    let mut violations = Vec::new();
    if !source.text.first().is_some_and(|line| line.starts_with("//!")) {
        let rule = "begins without `//!`";
        violations.push(violation(source, 1, rule, "say first what the file is for"));
    }
    for (n, line) in source.text.iter().enumerate() {
        let columns = line.chars().count();
        if columns > MAX_COLUMNS {
            let rule = format!("{columns} columns");
            let instead = format!("break the line at {MAX_COLUMNS}");
            violations.push(violation(source, n + 1, &rule, &instead));
        }
    }
    for (name, line, count) in source.functions() {
        if count > MAX_FUNCTION && !source.in_test[line - 1] {
            let rule = format!("`{name}` has {count} lines");
            let instead = format!("cut it into functions of {MAX_FUNCTION} at most");
            violations.push(violation(source, line, &rule, &instead));
        }
    }
    if source.text.len() > MAX_FILE {
        let rule = format!("{} lines", source.text.len());
        let instead = format!("cut the file into files of {MAX_FILE} at most");
        violations.push(violation(source, 1, &rule, &instead));
    }
    violations
}

/// Places that exist on one machine only. Written in halves, since this file is searched too.
fn places() -> Vec<String> {
    let halves = [
        ["/wo", "rk/"],
        ["/tm", "p/"],
        ["/ho", "me/"],
        ["/ro", "ot/"],
        ["crates", ".io"],
        ["pypi", ".org"],
        ["pythonhosted", ".org"],
        ["npmjs", ".org"],
        ["deb.debian", ".org"],
    ];
    halves.map(|halves| halves.concat()).to_vec()
}

fn mentions(source: &Source) -> Violations {
    let mut violations = Vec::new();
    for (n, line) in source.text.iter().enumerate() {
        for place in places().iter().filter(|place| line.contains(*place)) {
            let rule = format!("mentions {place}");
            let instead = "say it so that it holds on every machine";
            violations.push(violation(source, n + 1, &rule, instead));
        }
    }
    violations
}

fn top<'a>(names: impl IntoIterator<Item = &'a str>) -> Violations {
    let known = |name: &str| {
        let fits = |top: &&str| *top == name || top.ends_with('-') && name.starts_with(*top);
        name.starts_with('.') || TOP.iter().any(fits)
    };
    let strange = names.into_iter().filter(|name| !known(name));
    let say = |name| format!("{name}:1: strange at the top: it belongs into one of the folders");
    strange.map(say).collect()
}

fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder` whose name ends in one of `endings`, in order.
fn files(folder: &str, endings: &[&str]) -> Vec<Source> {
    let mut pending: Vec<PathBuf> = vec![home().join(folder)];
    let mut files = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            let short = path.strip_prefix(home()).unwrap().to_string_lossy().replace('\\', "/");
            let text = fs::read_to_string(&path).unwrap_or_default();
            files.push(Source::new(&short, &text));
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn expect_none(violations: &[String]) {
    assert!(violations.is_empty(), "{} violations:\n{}", violations.len(), violations.join("\n"));
}

#[test]
fn the_house_is_tidy() {
    let (src, tests) = (files("src", &[".rs"]), files("tests", &[".rs"]));
    // What finds nothing forbids nothing.
    let count = |of: fn(&Source) -> usize| src.iter().map(of).sum::<usize>();
    let (functions, paths) = (count(|s| s.functions().len()), count(|s| s.paths().len()));
    assert!(src.len() > 40 && tests.len() > 5, "{} and {}", src.len(), tests.len());
    assert!(functions > 300 && paths > 150, "{functions} functions, {paths} paths");
    let mut violations = Vec::new();
    for source in &src {
        violations.extend(arrows(source));
        violations.extend(world(source));
    }
    for source in src.iter().chain(&tests) {
        violations.extend(words(source));
        violations.extend(sizes(source));
    }
    expect_none(&violations);
}

#[test]
fn no_text_names_a_place_of_one_machine() {
    let mut texts = files("src", &[""]);
    texts.extend(files("rigs", &[""]));
    texts.extend(files("scenarios", &[""]));
    texts.extend(files("tests", &[".rs", ".py", "requirements.txt"]));
    texts.extend(files("README.md", &[""]));
    expect_none(&texts.iter().flat_map(mentions).collect::<Vec<_>>());
}

#[test]
fn nothing_strange_lies_at_the_top() {
    let names: Vec<String> = fs::read_dir(home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    expect_none(&top(names.iter().map(String::as_str)));
}

/// What `rule` says of `text` in the file `path`: the lines, each with a part of what it says.
fn check(rule: fn(&Source) -> Violations, path: &str, text: &str, expected: &[(usize, &str)]) {
    let found = rule(&Source::new(path, text));
    assert_eq!(found.len(), expected.len(), "{text}: {found:#?}");
    for (found, (line, part)) in found.iter().zip(expected) {
        let place = format!("{path}:{line}: ");
        assert!(found.starts_with(&place) && found.contains(part), "{found}, not {place}{part}");
    }
}

#[test]
fn arrows_in_the_wrong_direction_are_seen() {
    let judge = "src/judge/x.rs";
    check(arrows, judge, "use crate::journal::Record;\nuse crate::rig::Rig;", &[(2, "`rig::Rig`")]);
    check(arrows, judge, "use crate::{time::Moment,\n    app};", &[(1, "`app`")]);
    check(arrows, judge, "use super::super::cli::Cli;", &[(1, "`cli::Cli`")]);
    check(arrows, judge, "use super::app::Own;\nuse crate::Error;\n// crate::rig", &[]);
    check(arrows, judge, "const X: &str = \"crate::rig::Rig\";", &[]);
    check(arrows, "src/judge/mod.rs", "use super::rig::Rig;", &[(1, "`rig::Rig`")]);
    check(arrows, "src/time.rs", "fn f(x: crate::audio::Tone) {}", &[(1, "no other room")]);
    check(arrows, "src/audio/tone.rs", "use crate::journal::Clip;", &[(1, "may use time")]);
    let scenario = "use crate::audio::{decide::within, tone as pitch, law};";
    check(arrows, "src/scenario/file.rs", scenario, &[(1, "`audio::tone`")]);
    check(arrows, "src/rig/plan.rs", "use crate::scenario::Profile;", &[]);
    check(
        arrows,
        "src/rig/room.rs",
        "use crate::scenario::Profile;",
        &[(1, "`scenario::Profile`")],
    );
    check(arrows, "src/attic/mod.rs", "", &[(1, "room `attic` is unknown")]);
    let tests = "#[cfg(test)]\nmod tests {\n    use super::super::level;\n    use crate::rig;\n}";
    check(arrows, "src/audio/spectrum.rs", tests, &[(4, "`rig`")]);
    check(arrows, "src/app/judge.rs", "use crate::rig::import;", &[]);
}

#[test]
fn a_room_that_reaches_into_the_world_is_seen() {
    let text = "use std::{fmt, fs::File};\nuse std::thread;\nuse std::net::UdpSocket;";
    let all = [(1, "`std::fs`"), (3, "`std::net`"), (2, "`std::thread`")];
    let mut sorted = all;
    sorted.sort_by_key(|(line, _)| *line);
    check(world, "src/decode/x.rs", text, &sorted);
    check(world, "src/rig/x.rs", text, &[]);
    check(world, "src/journal/x.rs", text, &sorted[1..]);
    check(world, "src/judge/x.rs", "async fn f() { tokio::spawn(x()); }", &[(1, "`tokio`")]);
    check(world, "src/judge/x.rs", "#[cfg(test)]\nmod tests {\n    use std::fs;\n}", &[]);
}

#[test]
fn forbidden_words_are_seen() {
    let src = "src/judge/x.rs";
    check(words, src, "let t = std::time::Instant::now();", &[(1, "has no clock")]);
    check(words, src, "use std::time::SystemTime;", &[(1, "`SystemTime`")]);
    check(words, src, "static mut X: u8 = 0;", &[(1, "`static mut`")]);
    check(words, src, "unsafe { x() }", &[(1, "`unsafe`")]);
    check(words, src, "#![forbid(unsafe_code)] // unsafe, \"SystemTime\"", &[]);
    check(words, src, "x.unwrap();\ny.unwrap_or(0);\ntodo!()", &[(1, "expect"), (3, "`todo!`")]);
    check(words, src, "unimplemented!()", &[(1, "`unimplemented!`")]);
    check(words, src, "dbg!(x)", &[(1, "`dbg!`")]);
    let tests =
        "#[cfg(test)]\nmod tests {\n    fn f() {\n        x.unwrap();\n    }\n}\ny.unwrap();";
    check(words, src, tests, &[(7, "`.unwrap()`")]);
    check(words, "src/judge/tests.rs", "x.unwrap();\nprintln!();", &[]);
    check(words, "src/judge/tests/x.rs", "x.unwrap();", &[]);
    check(words, "tests/x.rs", "x.unwrap();\nthread::sleep(d);", &[(2, "`thread::sleep`")]);
    check(words, "tests/x.rs", "#[ignore = \"slow\"]\nfn f() {}", &[(1, "run it")]);
    check(words, src, "eprintln!();\nprint!();", &[(1, "`eprintln!`"), (2, "`print!`")]);
    check(words, "src/main.rs", "eprintln!();", &[]);
}

#[test]
fn sizes_beyond_the_house_numbers_are_seen() {
    let src = "src/judge/x.rs";
    check(sizes, src, "use x;", &[(1, "//!")]);
    check(sizes, "tests/x.rs", &format!("//! X\n// {}", "é".repeat(98)), &[(2, "101 columns")]);
    check(sizes, src, &format!("//! X\n// {}", "é".repeat(97)), &[]);
    let function = |lines: usize| {
        let body = "        g(\"}\");\n".repeat(lines - 3);
        format!("//! X\nimpl X {{\n    pub(super) const fn f(\n    ) {{\n{body}    }}\n}}\n")
    };
    check(sizes, src, &function(70), &[]);
    check(sizes, src, &function(71), &[(3, "`f` has 71 lines")]);
    check(sizes, "src/judge/tests.rs", &function(71), &[]);
    check(sizes, src, &format!("//! X\n{}", "\n".repeat(499)), &[]);
    check(sizes, src, &format!("//! X\n{}", "\n".repeat(500)), &[(1, "501 lines")]);
}

#[test]
fn places_of_one_machine_are_seen() {
    for place in places() {
        check(mentions, "README.md", &format!("# X\nsee {place}x"), &[(2, &place)]);
    }
    check(mentions, "README.md", "works with a tmp/ folder", &[]);
}

#[test]
fn strange_things_at_the_top_are_seen() {
    assert_eq!(top(["src", ".github", "LICENSE-MIT", "README.md", "target"]), [""; 0]);
    assert_eq!(top(["src", "docs", "LICENSE"]).len(), 2);
}
