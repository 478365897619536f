//! Is it one board with one firmware from the beginning to the end? As its config requests say,
//! which come once a boot, over a wire that loses nothing.

use crate::decode::{Fact, HttpMessage, What};
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding};
use crate::scenario::Rung;
use serde_json::Value;

/// The tool that changes the firmware lawfully.
const UPGRADE: &str = "self.upgrade_firmware";

/// What a config request tells of who asks.
enum Trait {
    Header(&'static str),
    Body(&'static str),
}

/// Most telling first: each explains those below it. A board that answers for another build is
/// refuted; another board, or the same with its memory lost, leaves open who was judged.
const TRAITS: [(Trait, &str, Option<Discrepancy>); 5] = [
    (Trait::Header("device-id"), "two boards speak in this session: its Device-Id", None),
    (Trait::Body("/application/version"), "the firmware version", Some(Discrepancy::WrongBuild)),
    (Trait::Body("/application/elf_sha256"), "the ELF", Some(Discrepancy::WrongBuild)),
    (Trait::Header("client-id"), "its memory (NVS) was wiped: the UUID", None),
    (Trait::Body("/ota/label"), "the partition it runs from", None),
];

/// What changed from one config request to the next, if anything did.
pub(super) fn changed(case: &Case) -> Option<Finding> {
    let requests = case.story.facts.iter().filter_map(|fact| match &fact.what {
        What::Http(message) if message.asks_for_configuration() => Some((fact, message)),
        _ => None,
    });
    let requests: Vec<(&Fact, &HttpMessage)> = requests.collect();
    let mut exchanges = case.story.mcp.exchanges.iter();
    let upgraded = exchanges.any(|x| x.request.tool.as_deref() == Some(UPGRADE));
    let told = |what: &Trait, message: &HttpMessage| match what {
        Trait::Header(name) => message.header(name).map(str::to_owned),
        Trait::Body(path) => {
            let body: Value = serde_json::from_str(&message.body).ok()?;
            body.pointer(path).and_then(Value::as_str).map(str::to_owned)
        }
    };
    TRAITS.iter().find_map(|(what, words, name)| {
        let known = requests.iter().filter_map(|(fact, m)| Some((*fact, told(what, m)?)));
        let known: Vec<(&Fact, String)> = known.collect();
        let pair = known.windows(2).find(|pair| pair[0].1 != pair[1].1)?;
        let lawful = upgraded && matches!(what, Trait::Body(_));
        let [(first, old), (then, new)] = pair else { return None };
        let why = format!("{words} changed from {old} to {new} at {}", then.at);
        let finding = match name {
            Some(name) => Finding::refuted(Rung::Listed, *name, why),
            None => Finding::silent(Rung::Listed, why),
        };
        (!lawful).then(|| finding.citing([first.record, then.record]))
    })
}
