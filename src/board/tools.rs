//! The tools of the firmware's builds: names, texts and arguments as it lists them, and the rules
//! by which it accepts a call.

use super::codec::{Json, quoted};
use super::setup::Build;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Status,
    SetVolume,
    SetBrightness,
    SetTheme,
    TakePhoto,
    Lamp(bool),
    LampState,
    /// Does nothing that can be seen, and says `true`.
    Nod,
    SystemInfo,
    Reboot,
    Upgrade,
    ScreenInfo,
    Snapshot,
    Preview,
}

/// A tool.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub name: String,
    description: String,
    arguments: Vec<(&'static str, Kind)>,
    pub action: Action,
    /// Listed only when user tools are asked for.
    pub user: bool,
}

/// What an argument must be; with a default it may be absent.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Text { default: Option<&'static str> },
    Int { default: Option<i32>, min: i32, max: i32 },
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Argument {
    Text(String),
    Int(i32),
}

const TEXT: Kind = Kind::Text { default: None };
const PERCENT: Kind = Kind::Int { default: None, min: 0, max: 100 };

impl Tool {
    fn new(
        (name, description): (&str, &str),
        arguments: &[(&'static str, Kind)],
        action: Action,
    ) -> Self {
        Tool {
            name: name.into(),
            description: description.into(),
            arguments: arguments.to_vec(),
            action,
            user: false,
        }
    }

    /// The tool in `tools/list`.
    pub fn json(&self) -> String {
        let properties: Vec<_> = self.arguments.iter().map(property).collect();
        let properties = properties.join(",");
        let required = self.arguments.iter().filter(|(_, kind)| kind.is_required());
        let required: Vec<_> = required.map(|(name, _)| quoted(name)).collect();
        let required = match required.is_empty() {
            true => String::new(),
            false => format!(r#","required":[{}]"#, required.join(",")),
        };
        let schema = format!(r#""type":"object","properties":{{{properties}}}{required}"#);
        let user = if self.user { r#","annotations":{"audience":["user"]}"# } else { "" };
        let (name, description) = (quoted(&self.name), quoted(&self.description));
        let head = format!(r#""name":{name},"description":{description}"#);
        format!(r#"{{{head},"inputSchema":{{{schema}}}{user}}}"#)
    }

    /// The arguments of a call as the tool takes them.
    ///
    /// # Errors
    /// The firmware's words for what is wrong.
    pub fn accept(&self, given: Option<&Json>) -> Result<Vec<Argument>, String> {
        let take = |(name, kind): &(&str, Kind)| {
            let given = given.and_then(|given| given.get(name));
            kind.accept(given)?.ok_or_else(|| format!("Missing valid argument: {name}"))
        };
        self.arguments.iter().map(take).collect()
    }
}

fn property((name, kind): &(&'static str, Kind)) -> String {
    let schema = match kind {
        Kind::Text { default: None } => r#""type":"string""#.to_owned(),
        Kind::Text { default: Some(text) } => {
            format!(r#""type":"string","default":{}"#, quoted(text))
        }
        Kind::Int { default, min, max } => {
            let default = default.map(|int| format!(r#""default":{int},"#)).unwrap_or_default();
            format!(r#""type":"integer",{default}"minimum":{min},"maximum":{max}"#)
        }
    };
    format!("{}:{{{schema}}}", quoted(name))
}

impl Kind {
    fn is_required(self) -> bool {
        matches!(self, Kind::Text { default: None } | Kind::Int { default: None, .. })
    }

    /// `None` where the argument is neither given rightly nor optional.
    fn accept(self, given: Option<&Json>) -> Result<Option<Argument>, String> {
        match self {
            Kind::Text { default } => Ok(match given {
                Some(Json::Text(text)) => Some(Argument::Text(text.clone())),
                _ => default.map(|text| Argument::Text(text.into())),
            }),
            Kind::Int { default, min, max } => match given.and_then(Json::int) {
                Some(int) if int < min => Err(format!("Value is below minimum allowed: {min}")),
                Some(int) if int > max => Err(format!("Value exceeds maximum allowed: {max}")),
                int => Ok(int.or(default).map(Argument::Int)),
            },
        }
    }
}

const STATUS: (&str, &str) = (
    "self.get_device_status",
    "Provides the real-time information of the device, including the current status of the audio \
     speaker, screen, battery, network, etc.\nUse this tool for: \n1. Answering questions about \
     current condition (e.g. what is the current volume of the audio speaker?)\n2. As the first \
     step to control the device (e.g. turn up / down the volume of the audio speaker, etc.)",
);
const VOLUME: (&str, &str) = (
    "self.audio_speaker.set_volume",
    "Set the volume of the audio speaker. If the current volume is unknown, you must call \
     `self.get_device_status` tool first and then call this tool.",
);
const BRIGHTNESS: (&str, &str) =
    ("self.screen.set_brightness", "Set the brightness of the screen.");
const THEME: (&str, &str) =
    ("self.screen.set_theme", "Set the theme of the screen. The theme can be `light` or `dark`.");
const PHOTO: (&str, &str) = (
    "self.camera.take_photo",
    "Always remember you have a camera. If the user asks you to see something, use this tool to \
     take a photo and then explain it.\nArgs:\n  `question`: The question that you want to ask \
     about the photo.\nReturn:\n  A JSON object that provides the photo information.",
);
const TALK: (&str, &str) = (
    "self.set_press_to_talk",
    "Switch between press to talk mode (长按说话) and click to talk mode (单击说话).\nThe mode \
     can be `press_to_talk` or `click_to_talk`.",
);
const UPGRADE: (&str, &str) = (
    "self.upgrade_firmware",
    "Upgrade firmware from a specific URL. This will download and install the firmware, then \
     reboot the device.",
);
const BINARY: &str = "The URL of the firmware binary file to download and install";
const INFO: (&str, &str) =
    ("self.screen.get_info", "Information about the screen, including width, height, etc.");
const SNAPSHOT: (&str, &str) =
    ("self.screen.snapshot", "Snapshot the screen and upload it to a specific URL");
const PREVIEW: (&str, &str) = ("self.screen.preview_image", "Preview an image on the screen");

/// The tools of a build in the order of its list: common ones, the board's, the user's.
pub(super) fn tools(build: Build) -> Vec<Tool> {
    let mut tools = common(build);
    let user = user(build).into_iter().map(|tool| Tool { user: true, ..tool });
    tools.extend(user);
    tools
}

fn common(build: Build) -> Vec<Tool> {
    let mut tools = vec![
        Tool::new(STATUS, &[], Action::Status),
        Tool::new(VOLUME, &[("volume", PERCENT)], Action::SetVolume),
    ];
    if matches!(build, Build::Oled | Build::LcdFull) {
        tools.push(Tool::new(BRIGHTNESS, &[("brightness", PERCENT)], Action::SetBrightness));
        tools.push(Tool::new(THEME, &[("theme", TEXT)], Action::SetTheme));
    }
    let extra = |n: usize, length: usize| {
        let (name, description) = (format!("self.extra.tool_{n:02}"), "x".repeat(length));
        Tool::new((&name, &description), &[], Action::Nod)
    };
    match build {
        Build::Headless | Build::Oled => {}
        Build::Extra40 => tools.extend((1..=40).map(|n| extra(n, 300))),
        Build::HugeTool => tools.push(extra(1, 9000)),
        Build::LcdFull => {
            let state = ("self.lamp.get_state", "Get the power state of the lamp");
            let on = ("self.lamp.turn_on", "Turn on the lamp");
            let off = ("self.lamp.turn_off", "Turn off the lamp");
            tools.push(Tool::new(PHOTO, &[("question", TEXT)], Action::TakePhoto));
            tools.push(Tool::new(state, &[], Action::LampState));
            tools.push(Tool::new(on, &[], Action::Lamp(true)));
            tools.push(Tool::new(off, &[], Action::Lamp(false)));
            tools.push(Tool::new(TALK, &[("mode", TEXT)], Action::Nod));
        }
    }
    tools
}

fn user(build: Build) -> Vec<Tool> {
    let info = ("self.get_system_info", "Get the system information");
    let assets = ("self.assets.set_download_url", "Set the download url for the assets");
    let binary = Kind::Text { default: Some(BINARY) };
    let mut tools = vec![
        Tool::new(info, &[], Action::SystemInfo),
        Tool::new(("self.reboot", "Reboot the system"), &[], Action::Reboot),
        Tool::new(UPGRADE, &[("url", binary)], Action::Upgrade),
    ];
    if build == Build::LcdFull {
        let quality = Kind::Int { default: Some(80), min: 1, max: 100 };
        tools.push(Tool::new(INFO, &[], Action::ScreenInfo));
        let arguments = [("url", TEXT), ("quality", quality)];
        tools.push(Tool::new(SNAPSHOT, &arguments, Action::Snapshot));
        tools.push(Tool::new(PREVIEW, &[("url", TEXT)], Action::Preview));
    }
    tools.push(Tool::new(assets, &[("url", TEXT)], Action::Nod));
    tools
}
