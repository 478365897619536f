//! MCP over the board's JSON messages: requests, replies, and who belongs to whom.
//!
//! A reply is matched by its id, on the connection of its request, and never by position:
//! `tools/list`, `initialize` and errors overtake calls (facts/xiaozhi.md 5.7).

use super::fact::{Fact, What};
use crate::journal::Party;
use crate::time::Moment;
use regex::Regex;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::sync::LazyLock;

/// Seconds by which a recorder that listens in several places may mistake the order of two
/// messages. No board answers that fast.
const A_HAIR: f64 = 0.002;

/// A JSON-RPC request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Request {
    /// Who asked.
    pub from: Party,
    /// The id; `None` for notifications and for ids that are no numbers.
    pub id: Option<i64>,
    /// The method, `tools/call`.
    pub method: String,
    /// The tool of a `tools/call`.
    pub tool: Option<String>,
    /// Arguments of a `tools/call`, params of anything else.
    pub arguments: Value,
}

/// A JSON-RPC reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reply {
    /// Who answered.
    pub from: Party,
    /// The id as it came back.
    pub id: Option<i64>,
    /// What it says.
    pub answer: Answer,
}

/// The content of a reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Text of the first content item of a tool call.
    Text(String),
    /// Any other result.
    Result(Value),
    /// A JSON-RPC error, or a tool result marked `isError`.
    Error(String),
    /// Not JSON, but the id can be read; the message as it came.
    Malformed(String),
    /// JSON, but no reply as it must be: why, one sentence about `it`.
    Irregular(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Text(text) => write!(f, "the text \"{text}\""),
            Answer::Result(value) => write!(f, "a result without a text: {value}"),
            Answer::Error(error) => write!(f, "an error: {error}"),
            Answer::Malformed(raw) => write!(f, "no JSON: {raw}"),
            Answer::Irregular(why) => write!(f, "no proper reply: {why}"),
        }
    }
}

/// The MCP meaning of an `mcp` payload; `None` when it is neither request nor reply.
pub(super) fn read(from: Party, payload: &Value) -> Option<What> {
    let asked = payload.get("id");
    let id = asked.and_then(number);
    if let Some(method) = payload.get("method").and_then(Value::as_str) {
        let params = payload.get("params").cloned().unwrap_or(Value::Null);
        let tool = params.get("name").and_then(Value::as_str).map(str::to_owned);
        let arguments = match method {
            "tools/call" => params.get("arguments").cloned().unwrap_or(Value::Null),
            _ => params,
        };
        let tool = tool.filter(|_| method == "tools/call");
        return Some(What::Request(Request { from, id, method: method.into(), tool, arguments }));
    }
    let fraction = asked.and_then(Value::as_f64).is_some_and(|id| id.fract() != 0.0);
    let answer = match (payload.get("result"), payload.get("error")) {
        _ if fraction => Answer::Irregular(format!("it carries the id {}", payload["id"])),
        (Some(_), Some(_)) => Answer::Irregular("it holds both a result and an error".into()),
        (Some(result), None) => answer_of(result),
        (None, Some(error)) => {
            let message = error.get("message").and_then(Value::as_str);
            Answer::Error(message.map_or_else(|| error.to_string(), str::to_owned))
        }
        (None, None) => return None,
    };
    Some(What::Reply(Reply { from, id, answer }))
}

fn answer_of(result: &Value) -> Answer {
    let is_text = result.pointer("/content/0/type").is_none_or(|kind| kind == "text");
    let text = result.pointer("/content/0/text").filter(|_| is_text).and_then(Value::as_str);
    let contents = result.get("content").and_then(Value::as_array).map_or(0, Vec::len);
    let failed = match result.get("isError") {
        None => false,
        Some(Value::Bool(failed)) => *failed,
        Some(other) => return Answer::Irregular(format!("its isError is {other}, no bool")),
    };
    match text {
        Some(text) if failed => Answer::Error(text.into()),
        Some(_) if contents > 1 => {
            Answer::Irregular(format!("it holds {contents} contents, a tool gives one"))
        }
        Some(text) => Answer::Text(text.into()),
        None => Answer::Result(result.clone()),
    }
}

fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().filter(|f| f.is_finite()).map(|f| f as i64))
}

/// The id in a message that is no JSON; only a whole one, for a cut id is another request's.
pub(super) fn salvage_id(raw: &str) -> Option<i64> {
    static ID: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r#""id"\s*:\s*(-?[0-9]+)\s*[,}]"#).expect("a fixed pattern"));
    ID.captures(raw).and_then(|c| c[1].parse().ok())
}

/// A request of ours with everything that came back for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// What was asked.
    pub request: Request,
    /// Record of the request.
    pub record: u64,
    /// When it was sent.
    pub at: Moment,
    /// Boot in which it was sent.
    pub boot: u32,
    /// Connection on which it was sent.
    pub connection: u32,
    /// Replies in order of arrival; more than one is a defect of the device.
    pub replies: Vec<Returned>,
    /// Record of a reply with this id that was captured before the request, but by so little that
    /// the recorder may have mistaken their order.
    pub ahead: Option<u64>,
    /// Record of a reply with this id that came on another connection, so that it is no answer.
    pub elsewhere: Option<u64>,
}

impl Exchange {
    /// Whether the call may have changed the board: any tool but one that is named `get_...`.
    pub fn changes_something(&self) -> bool {
        let name = self.request.tool.as_deref().and_then(|tool| tool.rsplit('.').next());
        name.is_some_and(|name| !name.starts_with("get_"))
    }
}

/// A reply that found its request.
#[derive(Clone, Debug, PartialEq)]
pub struct Returned {
    /// Record of the reply.
    pub record: u64,
    /// When it came.
    pub at: Moment,
    /// What it says.
    pub answer: Answer,
}

/// All MCP traffic of a session, paired.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Our requests in order.
    pub exchanges: Vec<Exchange>,
    /// Records of replies that answer none of our requests on their connection.
    pub foreign: Vec<u64>,
    /// The latest of them.
    latest: Option<Foreign>,
}

/// A reply that answers none of our requests.
#[derive(Clone, Debug, PartialEq)]
struct Foreign {
    record: u64,
    at: Moment,
    connection: u32,
    id: Option<i64>,
}

impl Ledger {
    /// Takes the next fact; what is not MCP is passed over.
    pub fn note(&mut self, fact: &Fact) {
        match &fact.what {
            What::Request(request) if request.from == Party::Bench => {
                self.exchanges.push(Exchange {
                    request: request.clone(),
                    record: fact.record,
                    at: fact.at,
                    boot: fact.boot,
                    connection: fact.connection,
                    replies: Vec::new(),
                    ahead: self.ahead(request, fact),
                    elsewhere: None,
                });
            }
            What::Reply(reply) if reply.from == Party::Device => {
                self.answer(fact, reply.id, reply.answer.clone());
            }
            What::Malformed { from: Party::Device, raw, id: Some(id) } => {
                self.answer(fact, Some(*id), Answer::Malformed(raw.clone()));
            }
            _ => {}
        }
    }

    /// The latest request with the id on the same connection is the one that was answered.
    fn answer(&mut self, fact: &Fact, id: Option<i64>, answer: Answer) {
        let asked = |x: &&mut Exchange| {
            id.is_some() && x.request.id == id && x.connection == fact.connection
        };
        match self.exchanges.iter_mut().rev().find(asked) {
            Some(exchange) => {
                exchange.replies.push(Returned { record: fact.record, at: fact.at, answer });
            }
            None => {
                self.foreign.push(fact.record);
                let same = |x: &&mut Exchange| id.is_some() && x.request.id == id;
                if let Some(exchange) = self.exchanges.iter_mut().rev().find(same) {
                    exchange.elsewhere.get_or_insert(fact.record);
                }
                let Fact { record, at, connection, .. } = *fact;
                self.latest = Some(Foreign { record, at, connection, id });
            }
        }
    }

    fn ahead(&self, request: &Request, fact: &Fact) -> Option<u64> {
        let latest = self.latest.as_ref()?;
        let same = request.id.is_some() && latest.id == request.id;
        let near = fact.at.seconds_since(latest.at) < A_HAIR;
        (same && near && latest.connection == fact.connection).then_some(latest.record)
    }
}
