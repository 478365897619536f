//! The MCP server: requests are checked on the network task, tools run on the main task, and every
//! reply is one more job of the main task. Hence errors and lists overtake calls, and a reboot
//! never answers.

use super::app::Job;
use super::codec::{Json, quoted};
use super::setup::Build;
use super::tools::{Action, Argument};
use super::{Board, Event, Fault};
use crate::time::Moment;
use std::time::Duration;

/// What the display and its surroundings are set to.
#[derive(Debug)]
pub(super) struct Screen {
    /// Brightness fades one step in 5 ms: from where, since when, to where.
    fade: (i32, Moment, i32),
    dark: bool,
    lamp: bool,
    /// Whether a request said where photos are explained.
    vision: bool,
}

impl Default for Screen {
    fn default() -> Self {
        Screen { fade: (75, Moment::START, 75), dark: false, lamp: false, vision: false }
    }
}

impl Screen {
    fn brightness(&self, now: Moment) -> i32 {
        let (from, since, to) = self.fade;
        let steps = i32::try_from((now - since).as_millis() / 5).unwrap_or(i32::MAX);
        let way = (to - from).abs().min(steps);
        if to < from { from - way } else { from + way }
    }
}

const CAPABILITIES: &str = r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}"#;

const NETWORK: &str = r#""network":{"type":"wifi","ssid":"bench-ap","signal":"strong"}"#;

/// Bytes of a page of `tools/list`.
const PAGE: usize = 8000;

impl Board {
    /// A request, or what came in its place.
    pub(super) fn mcp(&mut self, request: &Json) {
        if request.text("jsonrpc") != Some("2.0") {
            let version = request.text("jsonrpc").unwrap_or("null");
            return self.log('E', "MCP", &format!("Invalid JSONRPC version: {version}"));
        }
        let Some(method) = request.text("method") else {
            return self.log('E', "MCP", "Missing method");
        };
        if method.starts_with("notifications") {
            return;
        }
        let params = request.get("params");
        if params.is_some_and(|params| !params.is_object()) {
            return self.log('E', "MCP", &format!("Invalid params for method: {method}"));
        }
        let Some(id) = request.get("id").and_then(Json::int) else {
            return self.log('E', "MCP", &format!("Invalid id for method: {method}"));
        };
        match method {
            "initialize" => {
                let vision = params.and_then(|params| params.get("capabilities")?.get("vision"));
                self.ram.screen.vision |= vision.is_some_and(|vision| vision.text("url").is_some());
                let result = format!(
                    r#"{CAPABILITIES},"serverInfo":{{"name":"{}","version":"2.4.2"}}}}"#,
                    self.name()
                );
                self.result(id, &result);
            }
            "tools/list" => self.list(id, params),
            "tools/call" => match self.check_call(params) {
                Ok((tool, arguments)) => self.schedule(Job::Call(id, tool, arguments)),
                Err(message) => self.refuse_call(id, &message),
            },
            _ => {
                let message = format!("Method not implemented: {method}");
                self.log('E', "MCP", &message);
                self.error(id, &message);
            }
        }
    }

    fn result(&mut self, id: i32, result: &str) {
        self.schedule(Job::Send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)));
    }

    /// The message is not escaped.
    fn error(&mut self, id: i32, message: &str) {
        let error = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"message":"{message}"}}}}"#);
        self.schedule(Job::Send(error));
    }

    fn refuse_call(&mut self, id: i32, message: &str) {
        self.log('E', "MCP", &format!("tools/call: {message}"));
        self.error(id, message);
    }

    fn list(&mut self, id: i32, params: Option<&Json>) {
        let cursor = params.and_then(|params| params.text("cursor")).unwrap_or_default();
        let user = params.and_then(|params| params.get("withUserTools"));
        let user = user == Some(&Json::Bool(true));
        let skipped =
            self.tools.iter().skip_while(|tool| !cursor.is_empty() && tool.name != cursor);
        let mut page = r#"{"tools":["#.to_owned();
        let mut next = "";
        for tool in skipped.filter(|tool| user || !tool.user) {
            let json = tool.json() + ",";
            if page.len() + json.len() + 30 > PAGE {
                next = &tool.name;
                break;
            }
            page += &json;
        }
        if page.ends_with('[') {
            let message = format!("Failed to add tool {next} because of payload size limit");
            self.log('E', "MCP", &format!("tools/list: {message}"));
            return self.error(id, &message);
        }
        page.pop();
        page += "]";
        if !next.is_empty() {
            page += &format!(r#","nextCursor":"{next}""#);
        }
        self.result(id, &(page + "}"));
    }

    fn check_call(&self, params: Option<&Json>) -> Result<(usize, Vec<Argument>), String> {
        let params = params.ok_or("Missing params")?;
        let name = params.text("name").ok_or("Missing name")?;
        let arguments = params.get("arguments");
        if arguments.is_some_and(|arguments| !arguments.is_object()) {
            return Err("Invalid arguments".into());
        }
        let tool = self.tools.iter().position(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| format!("Unknown tool: {name}"))?;
        Ok((tool, self.tools[tool].accept(arguments)?))
    }

    /// Runs a tool; the reply waits for the next turn of the main task.
    pub(super) fn call(&mut self, id: i32, tool: usize, arguments: &[Argument]) {
        let action = self.tools[tool].action;
        let text = match self.act(action, arguments) {
            Ok(text) => text,
            Err(message) => return self.refuse_call(id, &message),
        };
        let result = format!(
            r#"{{"content":[{{"type":"text","text":{}}}],"isError":false}}"#,
            quoted(&text)
        );
        match self.setup.fault {
            Some(Fault::DropResponse) if action == Action::SetVolume => {}
            Some(Fault::LateResponse { ms }) if action == Action::SetVolume => {
                let reply = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                self.plan(Duration::from_millis(ms), Event::LateReply(reply));
            }
            _ => self.result(id, &result),
        }
    }

    fn act(&mut self, action: Action, arguments: &[Argument]) -> Result<String, String> {
        let said = match (action, arguments) {
            (Action::Status, _) => return Ok(self.status()),
            (Action::SystemInfo, _) => return Ok(self.system_info()),
            (Action::SetVolume, [Argument::Int(volume)]) => {
                if !self.has(Fault::QueueLost) {
                    self.set_volume(*volume);
                }
                true
            }
            (Action::SetBrightness, [Argument::Int(brightness)]) => {
                let from = self.ram.screen.brightness(self.now);
                if from != *brightness {
                    self.ram.screen.fade = (from, self.now, *brightness);
                    self.log('I', "Backlight", &format!("Set brightness to {brightness}"));
                }
                true
            }
            (Action::SetTheme, [Argument::Text(theme)]) => {
                let known = matches!(theme.as_str(), "light" | "dark");
                self.ram.screen.dark = if known { theme == "dark" } else { self.ram.screen.dark };
                known
            }
            (Action::Lamp(on), _) => {
                self.ram.screen.lamp = on;
                true
            }
            (Action::LampState, _) => {
                return Ok(format!(r#"{{"power": {}}}"#, self.ram.screen.lamp));
            }
            (Action::TakePhoto, _) if !self.ram.screen.vision => {
                return Err("Image explain URL or token is not set".into());
            }
            (Action::TakePhoto, _) => {
                return Ok(r#"{"success":true,"result":"a grey wall"}"#.into());
            }
            (Action::ScreenInfo, _) => {
                return Ok(r#"{"width":320,"height":240,"monochrome":false}"#.into());
            }
            (Action::Reboot, _) => {
                self.log('W', "MCP", "User requested reboot");
                self.schedule(Job::Reboot { tool: true });
                true
            }
            (Action::Upgrade, [Argument::Text(url)]) => {
                let text = format!("User requested firmware upgrade from URL: {url}");
                self.log('I', "MCP", &text);
                self.schedule(Job::Upgrade(url.clone()));
                true
            }
            (Action::Snapshot, [Argument::Text(url), _]) => {
                self.log('I', "MCP", &format!("Upload snapshot 22 bytes to {url}"));
                return Err(format!("Failed to open URL: {url}"));
            }
            (Action::Preview, [Argument::Text(url)]) => {
                return Err(format!("Failed to open URL: {url}"));
            }
            _ => true,
        };
        Ok(said.to_string())
    }

    fn status(&self) -> String {
        let brightness = self.ram.screen.brightness(self.now);
        let theme = if self.ram.screen.dark { "dark" } else { "light" };
        let (screen, battery, chip) = match self.setup.build {
            Build::Headless | Build::Extra40 | Build::HugeTool => (String::new(), "", ""),
            Build::Oled => (format!(r#""brightness":{brightness}"#), "", ""),
            Build::LcdFull => (
                format!(r#""brightness":{brightness},"theme":"{theme}""#),
                r#""battery":{"level":87,"charging":false},"#,
                r#","chip":{"temperature":41.5}"#,
            ),
        };
        let speaker = format!(r#""audio_speaker":{{"volume":{}}}"#, self.ram.volume);
        format!(r#"{{{speaker},"screen":{{{screen}}},{battery}{NETWORK}{chip}}}"#)
    }
}
