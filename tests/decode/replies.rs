//! Real recorded bytes: what the xiaozhi firmware's own MCP code answered
//! (`tests/firmware-mcp.jsonl`), paired by the ledger; and, by hand, the replies that belong to
//! nothing or to something else than they seem to.

use super::{connect, decode, publish, records};
use earwitness::decode::{Answer, Ledger, What};
use earwitness::journal::{Observation, Party};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

/// The payload in the envelope of both transports; raw text, because some of it is no JSON.
fn mcp(link: u32, from: Party, payload: &str) -> Observation {
    publish(link, from, &format!(r#"{{"type":"mcp","payload":{payload}}}"#))
}

/// The ledger in words: `7 tools/call self.reboot <- text true`, one exchange a line, then what
/// belongs to none.
fn ledger(observations: impl IntoIterator<Item = Observation>) -> String {
    let mut ledger = Ledger::default();
    let mut malformed = 0;
    for fact in decode(&records(observations)) {
        ledger.note(&fact);
        malformed += usize::from(matches!(fact.what, What::Malformed { .. }));
    }
    let mut text = String::new();
    for exchange in &ledger.exchanges {
        let request = &exchange.request;
        let id = request.id.map_or("-".into(), |id| id.to_string());
        write!(text, "{id} {}", request.method).unwrap();
        if let Some(tool) = &request.tool {
            write!(text, " {tool} {}", request.arguments).unwrap();
        }
        for returned in &exchange.replies {
            assert!(returned.record > exchange.record && returned.at > exchange.at);
            write!(text, " <- {}", brief(&returned.answer)).unwrap();
        }
        text.push('\n');
    }
    if !ledger.foreign.is_empty() {
        writeln!(text, "foreign {:?}", ledger.foreign).unwrap();
    }
    if malformed > 0 {
        writeln!(text, "malformed {malformed}").unwrap();
    }
    text
}

fn brief(answer: &Answer) -> String {
    let short = |text: &str| match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    };
    match answer {
        Answer::Text(text) => format!("text {}", short(text)),
        Answer::Result(value) => format!("result {}", short(&value.to_string())),
        Answer::Error(text) => format!("error {}", short(text)),
        Answer::Malformed(raw) => format!("malformed {raw}"),
        Answer::Irregular(why) => format!("irregular {why}"),
    }
}

struct Case {
    note: String,
    requests: Vec<String>,
    replies: Vec<String>,
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/firmware-mcp.jsonl");
    let case = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Case {
            note: format!("{}: {}", text(&line["config"]), text(&line["note"]).trim()),
            // Two requests "in one go" stand on two lines.
            requests: text(&line["request"]).lines().map(str::to_owned).collect(),
            replies: line["replies"].as_array().unwrap().iter().map(text).collect(),
        }
    };
    std::fs::read_to_string(path).unwrap().lines().map(case).collect()
}

#[test]
fn the_firmwares_own_replies_find_their_requests() {
    let mut told = String::new();
    let (mut replies, mut foreign) = (0, Vec::new());
    for (number, case) in (1..).zip(cases()) {
        let sent = case.requests.iter().map(|request| mcp(1, Party::Bench, request));
        let came = case.replies.iter().map(|reply| mcp(1, Party::Device, reply));
        let ledger = ledger([connect(1)].into_iter().chain(sent).chain(came));
        let paired = ledger.matches(" <- ").count();
        if paired < case.replies.len() {
            foreign.push(number);
        }
        replies += case.replies.len();
        writeln!(told, "{number}. {}\n{ledger}", case.note).unwrap();
    }
    // 2^32 and a clock in milliseconds come back as 2^31-1: not the id that was asked.
    assert_eq!((replies, foreign), (88, vec![8, 9]));
    insta::assert_snapshot!(told);
}

/// Every reply cut short inside its envelope, as a full buffer of the board would do it: it is
/// malformed, and it is paired exactly when its id is still there.
#[test]
fn a_cut_reply_is_paired_by_the_id_that_is_left() {
    for case in cases().iter().filter(|case| case.replies.len() == 1) {
        let Ok(request) = serde_json::from_str::<Value>(&case.requests[0]) else { continue };
        let Some(id) = request["id"].as_i64().filter(|id| (1..1 << 31).contains(id)) else {
            continue;
        };
        let whole = format!(r#"{{"type":"mcp","payload":{}"#, case.replies[0]);
        let end_of_id =
            whole.find(&format!("\"id\":{id},")).unwrap() + format!("\"id\":{id},").len();
        for end in [whole.len(), whole.len() / 2 + 30, end_of_id, end_of_id - 1] {
            let end = (end..).find(|end| whole.is_char_boundary(*end)).unwrap().min(whole.len());
            let cut = publish(1, Party::Device, &whole[..end]);
            let told = ledger([connect(1), mcp(1, Party::Bench, &case.requests[0]), cut]);
            let paired = told.contains(" <- malformed ");
            assert_eq!(paired, end >= end_of_id, "{} {told}", &whole[..end]);
            assert!(told.ends_with("malformed 1\n"), "{told}");
        }
    }
}

#[test]
fn replies_that_belong_elsewhere_are_kept_apart() {
    let call = |id: i64| {
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#
        );
        mcp(1, Party::Bench, &request)
    };
    let reply_on = |link, from, id: &str, text: &str| {
        let content =
            format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#);
        mcp(link, from, &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{content}}}"#))
    };
    let reply = |id: &str, text: &str| reply_on(1, Party::Device, id, text);
    let closed = |link| Observation::Closed { link, by: Party::Device };
    let check = |case: &str, then: Vec<Observation>, expect: &str| {
        let all = [connect(1), call(7)].into_iter().chain(then);
        assert_eq!(ledger(all), expect.replace("CALL", "tools/call t null"), "{case}");
    };
    check("in order", vec![reply("7", "a")], "7 CALL <- text a\n");
    check("none", vec![], "7 CALL\n");
    check(
        "late: the next call is out already",
        vec![call(8), reply("7", "late"), reply("8", "b")],
        "7 CALL <- text late\n8 CALL <- text b\n",
    );
    check(
        "duplicate: both are kept, with the one request",
        vec![reply("7", "a"), reply("7", "again")],
        "7 CALL <- text a <- text again\n",
    );
    check("foreign: nobody asked 9", vec![reply("9", "a")], "7 CALL\nforeign [2]\n");
    check("no id", vec![reply("null", "a")], "7 CALL\nforeign [2]\n");
    check("an id in quotes is another id", vec![reply("\"7\"", "a")], "7 CALL\nforeign [2]\n");
    check("saturated", vec![reply("2147483647", "a")], "7 CALL\nforeign [2]\n");
    check("too early", vec![reply("8", "a"), call(8)], "7 CALL\n8 CALL\nforeign [2]\n");
    check(
        "on a connection of its own",
        vec![connect(2), reply_on(2, Party::Device, "7", "a")],
        "7 CALL\nforeign [3]\n",
    );
    check(
        "on the old connection, after a new one came",
        vec![connect(2), reply("7", "a")],
        "7 CALL <- text a\n",
    );
    check(
        "on the next connection, after the first was lost",
        vec![closed(1), connect(1), reply("7", "a")],
        "7 CALL\nforeign [4]\n",
    );
    let odd = |fields: &str| mcp(1, Party::Device, &format!(r#"{{"jsonrpc":"2.0",{fields}}}"#));
    for (fields, why) in [
        (r#""id":7.9,"result":{"content":[{"text":"a"}]}"#, "it carries the id 7.9"),
        (
            r#""id":7,"result":{"content":[{"text":"a"}]},"error":{"message":"b"}"#,
            "it holds both a result and an error",
        ),
        (r#""id":7,"result":{"content":[{"text":"a"}],"isError":1}"#, "its isError is 1, no bool"),
        (
            r#""id":7,"result":{"content":[{"text":"a"},{"text":"b"}],"isError":false}"#,
            "it holds 2 contents, a tool gives one",
        ),
        (r#""id":7,"result":{"content":[{"text":"b","text":"a"}]}"#, "it names \"text\" twice"),
    ] {
        check(fields, vec![odd(fields)], &format!("7 CALL <- irregular {why}\n"));
    }
    check("our own echo", vec![reply_on(1, Party::Bench, "7", "a")], "7 CALL\n");
    check(
        "malformed, then whole",
        vec![
            publish(
                1,
                Party::Device,
                r#"{"type":"mcp","payload":{"id":7,"error":{"message":"a"b"}}}"#,
            ),
            reply("7", "a"),
        ],
        "7 CALL <- malformed {\"type\":\"mcp\",\"payload\":{\"id\":7,\"error\":\
         {\"message\":\"a\"b\"}}} <- text a\nmalformed 1\n",
    );
    check(
        "malformed, with nobody's id",
        vec![publish(1, Party::Device, r#"{"type":"mcp","payload":{"id":9,"#)],
        "7 CALL\nforeign [2]\nmalformed 1\n",
    );
    check(
        "malformed, with an id of which the first digits would fit no number",
        vec![publish(1, Party::Device, r#"{"type":"mcp","payload":{"id":99999999999999999999,"#)],
        "7 CALL\nmalformed 1\n",
    );
    check(
        "a tool's own error",
        vec![mcp(
            1,
            Party::Device,
            r#"{"id":7,"result":{"content":[{"text":"no"}],"isError":true}}"#,
        )],
        "7 CALL <- error no\n",
    );
}
