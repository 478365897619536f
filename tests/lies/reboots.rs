//! Restarts: asked for, not asked for, seen and not seen.

use super::*;
use earwitness::journal::NamedText;

/// The session again from the reboot on, 6 s later, as `reboot-b` and `status-b-1`.
fn rebooted_again(events: &mut Events) {
    let start = events.iter().position(|e| e["phase"] == "reboot").unwrap();
    let again = events[start..].to_vec();
    for mut event in again {
        event["t"] = (event["t"].as_f64().unwrap() + 6.0).into();
        match event["phase"].as_str() {
            Some("reboot") => event["phase"] = "reboot-b".into(),
            Some("status-after-1") => event["phase"] = "status-b-1".into(),
            _ => {}
        }
        if event["ch"] == "mqtt" {
            let text = bytes(&event).replace("\"id\":4,", "\"id\":14,");
            event["b64"] = STANDARD.encode(text.replace("\"id\":5,", "\"id\":15,")).into();
        }
        events.push(event);
    }
}

#[test]
fn each_of_two_reboots_is_judged_by_itself() {
    let (mut events, source) = session("mqtt-reboot-nosub");
    rebooted_again(&mut events);
    let claim = |id: &str, step: &str| {
        format!(
            "[[claim]]\nid = \"{id}\"\nrequires = \"physical\"\n\
             physical = {{ boot = {{ step = \"{step}\", within = \"10s\" }} }}\n"
        )
    };
    let header = "version = 1\nquestion = \"?\"\n";
    let two = format!("{header}{}{}", claim("a", "reboot"), claim("b", "reboot-b"));
    let both = format!("{header}{}", claim("a", "reboot*"));
    for (scenario, spoilt, expect) in
        [(&two, false, Pass), (&both, false, Pass), (&two, true, Fail), (&both, true, Fail)]
    {
        let mut events = events.clone();
        if spoilt {
            print(9.0, "\r\nabort() was called at PC 0x42012345 on core 0\r\n")(&mut events);
        }
        let home = recorded(events, &source);
        let name = NamedText::new("two.toml", scenario);
        let evidence = open(home.path(), None).unwrap();
        let verdict = evaluate(evidence.as_ref(), Some(&name)).unwrap().verdict;
        assert_eq!(verdict.outcome, expect, "{scenario} {spoilt}");
        assert!(verdict.session.is_empty());
        assert_eq!(verdict.claims[0].outcome, expect);
        if let Some(second) = verdict.claims.get(1) {
            assert_eq!(second.outcome, Pass, "the first one's abort is not the second's");
        }
    }
}

#[test]
fn a_session_finding_says_why_and_where_to_look() {
    let (mut events, source) = session("mqtt-healthy");
    print(9.5, BANNER)(&mut events);
    let home = recorded(events, &source);
    let evidence = open(home.path(), None).unwrap();
    let verdict = evaluate(evidence.as_ref(), None).unwrap().verdict;
    let (finding, next) = verdict.session().next().unwrap();
    assert_eq!(
        finding.reason,
        "the board restarted once without being told to, at 9.500 s, by a watchdog (rst:0x8)"
    );
    assert!(!finding.records.is_empty() && next.iter().any(|place| place.contains("reset reason")));
}

#[test]
fn a_restart_that_nobody_saw_is_no_failure_and_no_proof() {
    let check = |what, change: &dyn Fn(&mut Events)| {
        let none = Outcome::Inconclusive;
        check("mqtt-reboot-nosub", what, change, none, Discrepancy::Inconclusive);
    };
    let late = |events: &mut Events| {
        events.push(json!({"t": 20.0, "ch": "note", "phase": "late"}));
    };
    let later = |e: &Value| e["t"].as_f64().unwrap() > 5.0;
    for rom in [
        "\u{fffd}gESP-ROM:esp32s3-20210327\r\nrst:0xc (RTC_SW_CPU_RST),boot:0x8\r\n",
        "x\r\nSPIWP:0xee\r\nmode:DIO, clock div:1\r\nload:0x3fce2820,len:0x56c\r\n",
    ] {
        check("a second banner that is not whole", &|events: &mut Events| {
            print(12.0, rom)(events);
            late(events);
        });
    }
    check("back online, console dead", &|events: &mut Events| {
        events.retain(|e| !(console(e) && later(e)));
        late(events);
    });
    check("no console at all", &|events: &mut Events| {
        events.retain(|e| !console(e));
        late(events);
    });
    check("the banner is lost", &|events: &mut Events| {
        let rom = |e: &Value| console(e) && later(e) && bytes(e).contains("ESP-ROM");
        events.retain(|e| !rom(e));
        late(events);
    });
    let announced = "Application: Rebooting...";
    check("never announced", &replace(console, announced, "Application: Hm"));
    let call = |e: &Value| is(e, "mqtt", "tx") && bytes(e).contains("self.reboot");
    check("the banner began before the call", &|events: &mut Events| {
        let at = events.iter().find(|e| call(e)).unwrap()["t"].as_f64().unwrap();
        print(at - 0.01, "rst:0xc (X),boot:0x8 ")(events);
        print(at + 0.0005, "(SPI_FAST_FLASH_BOOT)\r\n")(events);
    });
}

#[test]
fn a_crash_is_no_reboot() {
    let check = |what, change: &dyn Fn(&mut Events), named| {
        check("mqtt-reboot-nosub", what, change, Fail, named);
    };
    let rom = "rst:0xc (RTC_SW_CPU_RST)";
    check("code 3", &replace(console, rom, "rst:0x3 (RTC_SW_SYS_RST)"), UnexpectedReset);
    let trace = "\r\nBacktrace: 0x4200f3bf:0x3fcb5d10 0x4200f5cd:0x3fcb5d30\r\n";
    check("the end of a panic", &print(5.5, trace), UnexpectedReset);
    check("the panic handler's word", &print(5.5, "\r\nRebooting...\r\n"), UnexpectedReset);
    let brown = "\r\nE BOD: Brownout detector was triggered\r\n";
    check("a brown-out", &print(5.5, brown), UnexpectedReset);
    let download = replace(console, "boot:0x8 (SPI_FAST_FLASH_BOOT)", "boot:0x0 (DOWNLOAD(USB))");
    check("download mode", &download, UnexpectedReset);
}

#[test]
fn an_answer_of_the_old_boot_proves_nothing() {
    let later = |e: &Value| e["t"].as_f64().unwrap() > 6.2;
    let old = |events: &mut Events| {
        let pick = |name: &str| events.iter().find(|e| bytes(e).contains(name)).cloned().unwrap();
        let (ask, reply) = (pick("\"id\":5,\"method\""), pick("\"id\":5,\"result\""));
        events.retain(|e| !(is(e, "mqtt", "tx") || is(e, "mqtt", "rx")) || !later(e));
        events.retain(|e| e["phase"] != "status-after-1");
        events.push(json!({"t": 4.2, "ch": "note", "phase": "status-after-1"}));
        for (t, mut event) in [(4.21, ask), (4.213, reply)] {
            event["t"] = t.into();
            events.push(event);
        }
    };
    let poll = |events: &mut Events| {
        let mut ask =
            events.iter().find(|e| bytes(e).contains("\"id\":5,\"method\"")).cloned().unwrap();
        ask["t"] = 11.01.into();
        ask["b64"] = STANDARD.encode(bytes(&ask).replace("\"id\":5,", "\"id\":6,")).into();
        events.push(json!({"t": 11.0, "ch": "note", "phase": "status-after-2"}));
        events.push(ask);
    };
    let none = Outcome::Inconclusive;
    check("mqtt-reboot-nosub", "nobody asked again", old, none, Discrepancy::Inconclusive);
    let asked = |events: &mut Events| {
        old(events);
        poll(events);
    };
    check("mqtt-reboot-nosub", "cut short", asked, none, Discrepancy::Inconclusive);
    let unanswered = |events: &mut Events| {
        asked(events);
        events.push(json!({"t": 25.0, "ch": "note", "phase": "late"}));
    };
    check("mqtt-reboot-nosub", "no answer after the restart", unanswered, Fail, NoReply);
}

#[test]
fn a_volume_of_nothing_is_raised_by_a_restart() {
    let (before, after) = (reply(3), reply(5));
    let (kept, none, floor) = ("\\\"volume\\\":70", "\\\"volume\\\":0", "\\\"volume\\\":10");
    let raised = |events: &mut Events| {
        replace(&before, kept, none)(events);
        replace(&after, kept, floor)(events);
    };
    check("mqtt-reboot-nosub", "0 becomes 10", raised, Pass, Agree);
    let not = |events: &mut Events| {
        replace(&before, kept, none)(events);
        replace(&after, kept, none)(events);
    };
    check("mqtt-reboot-nosub", "0 stays 0", not, Fail, StaleReadback);
}

#[test]
fn only_a_first_boot_is_forgiven() {
    let check = |what, change: &dyn Fn(&mut Events), outcome, named| {
        check("mqtt-healthy", what, change, outcome, named);
    };
    let none = Outcome::Inconclusive;
    check("the board spoke before", &print(0.01, "I (9) x: y\r\n"), Fail, UnexpectedReset);
    check("noise before", &print(0.01, "\0\u{fffd}x\r\n"), Pass, Agree);
    let attached = |events: &mut Events| {
        events.retain(|e| !(console(e) && bytes(e).contains("ESP-ROM")));
        print(9.5, BANNER)(events);
    };
    check("attached to a running board", &attached, Fail, UnexpectedReset);
    let trace = "\r\nBacktrace: 0x4200f3bf:0x3fcb5d10\r\n";
    check("the end of a panic", &print(9.5, trace), Fail, UnexpectedReset);
    check("the panic handler's word", &print(9.5, "\r\nRebooting...\r\n"), Fail, UnexpectedReset);
    let brown = "\r\nE BOD: Brownout detector was triggered\r\n";
    check("a brown-out", &print(9.5, brown), Fail, UnexpectedReset);
    let start = "I (2513) StateMachine: State: unknown -> starting\r\n";
    check("a start without a banner", &print(9.5, start), none, Discrepancy::Inconclusive);
    let asks_again = |events: &mut Events| {
        let mut post = events.iter().find(|e| is(e, "http", "rx")).cloned().unwrap();
        (post["t"], post["accepted"]) = (9.5.into(), 9.499.into());
        events.push(post);
    };
    check("asks again", &asks_again, none, Discrepancy::Inconclusive);
}

#[test]
fn a_second_restart_without_a_banner_is_no_proof() {
    let check = |what, change: &dyn Fn(&mut Events)| {
        let none = Outcome::Inconclusive;
        check("mqtt-reboot-nosub", what, change, none, Discrepancy::Inconclusive);
    };
    let again = |events: &mut Events, pick: &dyn Fn(&Value) -> bool| {
        let during = |e: &&Value| (8.5..9.346).contains(&e["t"].as_f64().unwrap()) && pick(e);
        let mut copies: Vec<Value> = events.iter().filter(during).cloned().collect();
        for event in &mut copies {
            for stamp in ["t", "accepted"] {
                if let Some(t) = event[stamp].as_f64() {
                    event[stamp] = (t + 4.0).into();
                }
            }
        }
        events.append(&mut copies);
    };
    check("the log again", &|events: &mut Events| again(events, &console));
    check("asks again", &|events: &mut Events| again(events, &|e| is(e, "http", "rx")));
    check("all again but the banner", &|events: &mut Events| {
        again(events, &|e| console(e) || is(e, "http", "rx") || e["mqtt_packet"] == "CONNECT");
    });
}

#[test]
fn another_call_before_the_announcement_leaves_it_open() {
    let other = |events: &mut Events| {
        let call = |e: &&Value| is(e, "mqtt", "tx") && bytes(e).contains("self.reboot");
        let mut other = events.iter().find(call).unwrap().clone();
        let text = bytes(&other).replace("self.reboot", "self.screen.set_theme");
        other["b64"] = STANDARD.encode(text.replace("\"id\":4,", "\"id\":94,")).into();
        other["t"] = 4.5.into();
        events.push(json!({"t": 4.4, "ch": "note", "phase": "other"}));
        events.push(other);
    };
    let none = Outcome::Inconclusive;
    let reason = check("mqtt-reboot-nosub", "a call", other, none, Discrepancy::Inconclusive);
    assert!(reason.starts_with("another call came before"), "{reason}");
}
