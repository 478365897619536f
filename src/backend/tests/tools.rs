//! The search for the device's tools (facts/xiaozhi.md 5.4).

use super::*;

/// A device that answers each request as `answer` says, until the bench asks no more.
fn discover(user_tools: bool, answer: impl Fn(&str, &Value) -> Value) -> (Discovery, String) {
    let mut bench = Bench::new();
    bench.connect(1, "board");
    bench.take_sent();
    assert!(bench.backend.discover(user_tools));
    assert_eq!(bench.backend.discovery(), &Discovery::Running);
    let mut asked = Vec::new();
    for _ in 0..100 {
        bench.perform();
        let sent = bench.take_sent();
        asked.extend(sent.iter().map(brief));
        let last = sent.into_iter().rev().find_map(|what| match what {
            What::Request(request) if request.id.is_some() => Some(request),
            _ => None,
        });
        let Some(request) = last else { break };
        let mut payload = answer(&request.method, &request.arguments);
        payload["jsonrpc"] = "2.0".into();
        payload["id"] = request.id.into();
        bench.publish(1, &json!({ "type": "mcp", "payload": payload }).to_string());
    }
    let asked = asked.iter().map(|a| a.split(" {\"cap").next().unwrap()).collect::<Vec<_>>();
    (bench.backend.discovery().clone(), asked.join("; "))
}

fn failed(answer: impl Fn(&str, &Value) -> Value) -> String {
    match discover(true, answer) {
        (Discovery::Failed { why }, _) => why,
        (other, _) => panic!("{other:?}"),
    }
}

fn page(tools: &[&str], next: Option<&str>) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
    let mut result = json!({ "tools": tools });
    next.into_iter().for_each(|next| result["nextCursor"] = next.into());
    json!({ "result": result })
}

fn initialized(method: &str) -> Option<Value> {
    (method == "initialize").then(|| json!({ "result": { "protocolVersion": "2024-11-05" } }))
}

#[test]
fn all_pages_are_asked_for() {
    for user_tools in [false, true] {
        let (found, asked) = discover(user_tools, |method, params| {
            initialized(method).unwrap_or_else(|| match params["cursor"].as_str().unwrap() {
                "" => page(&["a", "b"], Some("c")),
                "c" => page(&["c"], Some("d")),
                _ => page(&["d"], None),
            })
        });
        let tools = ["a", "b", "c", "d"].map(|name| json!({ "name": name })).to_vec();
        assert_eq!(found, Discovery::Done { tools });
        let list = |cursor| {
            format!("tools/list {{\"cursor\":\"{cursor}\",\"withUserTools\":{user_tools}}}")
        };
        let [first, second, third] = ["", "c", "d"].map(list);
        let before = "initialize; notifications/initialized null";
        assert_eq!(asked, format!("{before}; {first}; {second}; {third}"));
    }
}

#[test]
fn a_list_without_an_end_is_no_list() {
    let round = failed(|method, params| {
        let next = if params["cursor"] == "" { "x" } else { "" };
        initialized(method).unwrap_or_else(|| page(&["a"], Some(next)))
    });
    assert_eq!(round, "tools/list: the same cursor twice");
    let endless = failed(|method, params| {
        let next = format!("{}x", params["cursor"].as_str().unwrap_or_default());
        initialized(method).unwrap_or_else(|| page(&["a"], Some(&next)))
    });
    assert_eq!(endless, "tools/list: more than 64 pages");
}

#[test]
fn a_list_that_is_empty_or_none_at_all_is_a_failure() {
    let list = |result: Value| {
        failed(move |method, _| initialized(method).unwrap_or_else(|| result.clone()))
    };
    assert_eq!(list(page(&[], None)), "tools/list: the list is empty");
    assert_eq!(list(json!({ "result": {} })), "tools/list: an answer without a list of tools");
    let cursor = json!({ "result": { "tools": [{ "name": "a" }], "nextCursor": 7 } });
    assert_eq!(list(cursor), "tools/list: a cursor that is no text");
    let error = json!({ "error": { "message": "no memory" } });
    assert_eq!(list(error.clone()), "tools/list: the device answered with an error: no memory");
    assert_eq!(
        failed(move |_, _| error.clone()),
        "initialize: the device answered with an error: no memory"
    );
    let text = json!({ "result": { "content": [{ "type": "text", "text": "true" }] } });
    assert!(list(text).contains("as if a tool had been called"));
}

#[test]
fn other_replies_are_not_taken_for_ours() {
    let mut bench = Bench::new();
    bench.connect(1, "board");
    bench.backend.discover(true);
    bench.perform();
    bench.take_sent();
    bench.publish(1, r#"{"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"result":{}}}"#);
    assert_eq!((bench.said().as_str(), bench.backend.discovery()), ("", &Discovery::Running));
}

#[test]
fn a_search_ends_with_its_connection() {
    let mut bench = Bench::new();
    assert!(!bench.backend.discover(true));
    let failed = |bench: &Bench, part: &str| {
        let Discovery::Failed { why } = bench.backend.discovery() else { panic!("not failed") };
        assert!(why.contains(part), "{why}");
    };
    failed(&bench, "no control channel");
    bench.connect(1, "board");
    bench.backend.discover(true);
    bench.perform();
    bench.see(Observation::Closed { link: 1, by: Party::Device });
    failed(&bench, "the control channel ended");
    bench.connect(2, "board");
    assert!(bench.backend.discover(true));
    // Also when the device is back before anybody knew that it was gone.
    bench.perform();
    bench.connect(3, "board");
    failed(&bench, "the control channel ended");
    assert!(bench.backend.is_online());
}
