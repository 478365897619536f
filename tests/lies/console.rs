//! The console: what it lost or never carried is no silence of the device.

use super::*;

const LINE: &str = "AudioCodec: Set output volume to 60";

#[test]
fn a_damaged_console_convicts_nobody() {
    let check = |what, change: &dyn Fn(&mut Events)| {
        let none = Outcome::Inconclusive;
        check("mqtt-healthy", what, change, none, Discrepancy::Inconclusive);
    };
    let line = |new| replace(console, LINE, new);
    check("a letter", &line("AudioCodec: Set oudput volume to 60"));
    check("a letter of the tag", &line("AudioKodec: Set output volume to 60"));
    check("a digit", &line("AudioCodec: Set output volume to 6p"));
    check("a byte lost", &line("AudioCodec: Set output volme to 60"));
    check("cut short", &line("AudioCodec: Set outp"));
    check("two lines in one", &|events: &mut Events| {
        line("AudI (7460) x: y")(events);
    });
    check("damage elsewhere", &|events: &mut Events| {
        line("x")(events);
        replace(console, "Network connected", "Netw\u{fffd}rk connected")(events);
    });
    check("a state was lost", &|events: &mut Events| {
        line("x")(events);
        replace(console, "State: activating -> idle", "x")(events);
    });
    check("a raw rest of a line", &|events: &mut Events| {
        line("x")(events);
        print(8.0, "ume to 60\r\n")(events);
    });
    check("nothing is read as log", &|events: &mut Events| {
        for event in events.iter_mut().filter(|e| console(e)) {
            let text = bytes(event).replace("\nI (", "\n> I (").replace("\nW (", "\n> W (");
            let text = text.strip_prefix("I (").map_or(text.clone(), |t| format!("> I ({t}"));
            let text = text.strip_prefix("W (").map_or(text.clone(), |t| format!("> W ({t}"));
            event["b64"] = STANDARD.encode(text).into();
        }
    });
    check("dead from the call on", &|events: &mut Events| {
        events.retain(|e| !(console(e) && e["t"].as_f64().unwrap() > 7.49));
    });
}

#[test]
fn a_trace_after_another_call_is_nobodys() {
    let other = |events: &mut Events| {
        let call = |e: &&Value| is(e, "mqtt", "tx") && bytes(e).contains("\"id\":6,");
        let mut other = events.iter().find(call).unwrap().clone();
        let text = bytes(&other).replace("\"id\":6,", "\"id\":96,");
        let text = text.replace("audio_speaker.set_volume", "screen.set_brightness");
        other["b64"] = STANDARD.encode(text).into();
        other["t"] = 7.492.into();
        events.push(json!({"t": 7.4915, "ch": "note", "phase": "other"}));
        events.push(other);
    };
    let none = Outcome::Inconclusive;
    check("mqtt-healthy", "another tool in between", other, none, Discrepancy::Inconclusive);
}
