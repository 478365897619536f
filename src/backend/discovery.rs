//! The complete list of a device's tools, page by page.

use crate::decode::{Answer, Fact, Ledger};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// No board has as many pages.
const MAX_PAGES: usize = 64;

/// How a search for the device's tools stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Discovery {
    /// A reply is awaited.
    Running,
    /// The list is complete and not empty.
    Done {
        /// The tools as the device describes them, in its order.
        tools: Vec<Value>,
    },
    /// There is no complete list.
    Failed {
        /// Why, in words.
        why: String,
    },
}

/// What a search does next.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// Sends a request, and before it the notification that the session is initialized.
    Ask { announce: bool, method: &'static str, params: Value },
    /// Ends.
    End(Discovery),
}

/// A search under way.
#[derive(Debug)]
pub(super) struct Search {
    user_tools: bool,
    /// Id of the request whose reply is awaited.
    id: i64,
    /// Cursors of the pages asked for; none while `initialize` is awaited.
    cursors: BTreeSet<String>,
    tools: Vec<Value>,
    ledger: Ledger,
}

/// The params of `initialize`.
pub(super) fn initialize() -> Value {
    json!({
        "protocolVersion": "2024-11-05",
        "capabilities": {},
        "clientInfo": { "name": "earwitness", "version": env!("CARGO_PKG_VERSION") },
    })
}

impl Search {
    /// `initialize` was sent with this id.
    pub fn new(id: i64, user_tools: bool) -> Search {
        let (cursors, tools, ledger) = Default::default();
        Search { user_tools, id, cursors, tools, ledger }
    }

    /// The next request was sent with this id.
    pub fn asked(&mut self, id: i64) {
        self.id = id;
        self.ledger = Ledger::default();
    }

    /// Takes the next fact; `None` while there is nothing to do.
    pub fn note(&mut self, fact: &Fact) -> Option<Next> {
        self.ledger.note(fact);
        let ours = |x: &&crate::decode::Exchange| x.request.id == Some(self.id);
        let exchange = self.ledger.exchanges.iter().find(ours)?;
        let answer = exchange.replies.first()?.answer.clone();
        let method = exchange.request.method.clone();
        Some(
            self.answered(&method, answer).unwrap_or_else(|why| {
                Next::End(Discovery::Failed { why: format!("{method}: {why}") })
            }),
        )
    }

    fn answered(&mut self, method: &str, answer: Answer) -> Result<Next, String> {
        let result = match answer {
            Answer::Result(result) => result,
            Answer::Text(_) => {
                return Err("the device answered as if a tool had been called".into());
            }
            Answer::Error(why) => return Err(format!("the device answered with an error: {why}")),
            Answer::Malformed(_) => return Err("the device's answer is no JSON".into()),
            Answer::Irregular(why) => return Err(why),
        };
        if method == "initialize" {
            return self.page(String::new());
        }
        let Some(tools) = result.get("tools").and_then(Value::as_array) else {
            return Err("an answer without a list of tools".into());
        };
        self.tools.extend_from_slice(tools);
        match result.get("nextCursor") {
            None | Some(Value::Null) if self.tools.is_empty() => Err("the list is empty".into()),
            None | Some(Value::Null) => {
                Ok(Next::End(Discovery::Done { tools: std::mem::take(&mut self.tools) }))
            }
            Some(Value::String(cursor)) => self.page(cursor.clone()),
            Some(_) => Err("a cursor that is no text".into()),
        }
    }

    fn page(&mut self, cursor: String) -> Result<Next, String> {
        if self.cursors.len() == MAX_PAGES {
            return Err(format!("more than {MAX_PAGES} pages"));
        }
        let announce = self.cursors.is_empty();
        let params = json!({ "cursor": cursor, "withUserTools": self.user_tools });
        match self.cursors.insert(cursor) {
            true => Ok(Next::Ask { announce, method: "tools/list", params }),
            false => Err("the same cursor twice".into()),
        }
    }
}
