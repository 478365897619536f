//! What else takes part: another writer, old packets, another firmware, calls that no claim names.

use super::*;
use earwitness::judge::Verdict;

const NONE: Outcome = Outcome::Inconclusive;
const SOFT: &str =
    "\r\nESP-ROM:esp32s3-20210327\r\nrst:0xc (RTC_SW_CPU_RST),boot:0x8 (SPI_FAST_FLASH_BOOT)\r\n";

fn judged(name: &str, change: impl Fn(&mut Events)) -> Verdict {
    let (mut events, source) = session(name);
    change(&mut events);
    let home = recorded(events, &source);
    evaluate(open(home.path(), None).unwrap().as_ref(), None).unwrap().verdict
}

/// Says something over MQTT, as the device or the bench.
fn say(t: f64, dir: &'static str, payload: &'static str) -> impl Fn(&mut Events) {
    move |events| {
        let mut event = events.iter().find(|e| reply(2)(e)).unwrap().clone();
        if dir == "tx" {
            event = events.iter().find(|e| is(e, "mqtt", "tx")).unwrap().clone();
        }
        let text = format!("{{\"session_id\":\"\",\"type\":\"mcp\",\"payload\":{payload}}}");
        event["t"] = t.into();
        event["b64"] = STANDARD.encode(text).into();
        events.push(event);
    }
}

#[test]
fn a_no_to_a_restart_is_judged_although_no_yes_is_due() {
    let check = |what, change: &dyn Fn(&mut Events), outcome, named| {
        check("mqtt-reboot-nosub", what, change, outcome, named);
    };
    let error = r#"{"jsonrpc":"2.0","id":4,"error":{"message":"Unknown tool: self.reboot"}}"#;
    let yes = concat!(
        r#"{"jsonrpc":"2.0","id":4,"result":{"content":"#,
        r#"[{"type":"text","text":"true"}],"isError":false}}"#
    );
    check("a no, and it restarts", &say(3.996, "rx", error), Fail, PhantomEffect);
    check("a yes of old firmware", &say(3.996, "rx", yes), Pass, Agree);
    let refused = |events: &mut Events| {
        events.retain(|e| e["t"].as_f64().unwrap() < 3.9935);
        say(3.996, "rx", error)(events);
        events.push(json!({"t": 20.0, "ch": "note", "phase": "late"}));
    };
    check("a no, and it does not", &refused, Fail, Refused);
}

#[test]
fn another_writer_is_not_the_device() {
    let line = "I (11700) AudioCodec: Set output volume to 45\r\n";
    let status = |events: &mut Events| {
        replace(reply(11), "\\\"volume\\\":60", "\\\"volume\\\":45")(events);
    };
    let knob = |events: &mut Events| {
        print(11.75, line)(events);
        status(events);
    };
    let reason = check("mqtt-healthy", "a knob", knob, NONE, Discrepancy::Inconclusive);
    assert!(reason.contains("another writer set it to 45"), "{reason}");
    let unnoticed = check(
        "mqtt-healthy",
        "a knob, and the old status",
        print(11.75, line),
        NONE,
        Discrepancy::Inconclusive,
    );
    assert!(unnoticed.contains("another writer"), "{unnoticed}");
    let clamped = |events: &mut Events| {
        let last = |e: &Value| console(e) && e["t"].as_f64().unwrap() > 11.7;
        replace(last, "Set output volume to 60", "Set output volume to 45")(events);
        status(events);
    };
    check("mqtt-healthy", "a limit", clamped, Fail, Clamped);
}

#[test]
fn what_the_board_drops_was_not_sent() {
    let again = |events: &mut Events| {
        let at = events.iter().find(|e| e["phase"] == "tone-1").unwrap()["t"].as_f64().unwrap();
        let sent = |e: &&Value| is(e, "udp", "tx") && e["t"].as_f64().unwrap() > at;
        let mut old = events.iter().find(sent).unwrap().clone();
        old["t"] = (at + 1.0).into();
        events.push(old);
    };
    let reason = check("mqtt-healthy", "an old number", again, NONE, Discrepancy::Inconclusive);
    assert!(reason.contains("the board drops packets with old sequence numbers"), "{reason}");
}

#[test]
fn one_volume_has_one_level() {
    let (events, source) = session("mqtt-healthy");
    let home = recorded(events, &source);
    let path = home.path().join("speaker.wav");
    let mut wav = hound::WavReader::open(&path).unwrap();
    let (spec, samples) = (wav.spec(), wav.samples::<i16>().map(Result::unwrap));
    let meta = fs::read_to_string(home.path().join("meta.json")).unwrap();
    let meta: Value = serde_json::from_str(&meta).unwrap();
    let starts = meta["speaker_wav"]["starts_at_session_t"].as_f64().unwrap();
    let late = ((9.6 - starts) * f64::from(spec.sample_rate)) as usize;
    let quieter = |(n, x): (usize, i16)| if n < late { x } else { (f64::from(x) * 0.5) as i16 };
    let samples: Vec<i16> = samples.enumerate().map(quieter).collect();
    let mut out = hound::WavWriter::create(&path, spec).unwrap();
    samples.into_iter().for_each(|x| out.write_sample(x).unwrap());
    out.finalize().unwrap();
    let evidence = open(home.path(), None).unwrap();
    let claim = evaluate(evidence.as_ref(), None).unwrap().verdict.claims.remove(0);
    assert_eq!((claim.outcome, claim.discrepancy), (Fail, WrongMagnitude));
    let reason = &claim.decisive().unwrap().reason;
    assert!(reason.starts_with("tone-1 and tone-3 differ by -6.0 dB at one volume"), "{reason}");
}

#[test]
fn it_is_one_board_with_one_firmware() {
    let asks = |e: &Value| is(e, "http", "rx") && e["t"].as_f64().unwrap() > 9.0;
    let check = |what, old, new, outcome, named| {
        check("mqtt-reboot-nosub", what, replace(asks, old, new), outcome, named);
    };
    check("an older version", "2.4.2", "2.3.9", Fail, WrongBuild);
    let lost = Discrepancy::Inconclusive;
    check("another board", "bb:01", "bb:02", NONE, lost);
    check("the UUID", "11111111-2222", "99999999-2222", NONE, lost);
    check("the partition", "ota_0", "ota_1", NONE, lost);
}

#[test]
fn the_default_is_weak_evidence_of_memory() {
    let verdict = judged("mqtt-reboot-nosub", |_| {});
    assert_eq!(verdict.outcome, Pass);
    let weak = verdict.claims[0].findings.iter().find_map(|f| f.weak.clone()).unwrap();
    assert!(weak.starts_with("70 is also the firmware's default"), "{weak}");
    let other = |events: &mut Events| {
        let status = |e: &Value| reply(3)(e) || reply(5)(e);
        replace(status, "\\\"volume\\\":70", "\\\"volume\\\":55")(events);
    };
    let verdict = judged("mqtt-reboot-nosub", other);
    assert!(verdict.claims[0].findings.iter().all(|f| f.weak.is_none()));
}

#[test]
fn a_restart_that_was_asked_for_is_no_surprise() {
    let call = r#"{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"self.reboot"}}"#;
    let asked = |events: &mut Events| {
        say(14.0, "tx", call)(events);
        print(15.0, "I (14999) Application: Rebooting...\r\n")(events);
        print(16.0, SOFT)(events);
    };
    let verdict = judged("mqtt-healthy", asked);
    assert_eq!((verdict.outcome, verdict.session.len()), (Pass, 0));
    assert_eq!(
        verdict.notes,
        ["the board restarted at 16.000 s, as it was told to; no claim asks about it"]
    );
    check(
        "mqtt-healthy",
        "once more",
        |events: &mut Events| {
            asked(events);
            print(18.0, SOFT)(events);
        },
        Fail,
        UnexpectedReset,
    );
    check(
        "mqtt-healthy",
        "not announced",
        |events: &mut Events| {
            say(14.0, "tx", call)(events);
            print(16.0, SOFT)(events);
        },
        Fail,
        UnexpectedReset,
    );
}

#[test]
fn calls_that_no_claim_names_are_told() {
    let late = |events: &mut Events| {
        events.push(json!({"t": 20.0, "ch": "note", "phase": "late"}));
    };
    let verdict = judged("mqtt-healthy", late);
    assert!(verdict.notes.is_empty(), "{:?}", verdict.notes);
    let verdict = judged("mqtt-healthy", |events: &mut Events| {
        late(events);
        remove(reply(12))(events);
    });
    assert_eq!(verdict.outcome, Pass);
    let [note] = &verdict.notes[..] else { panic!("{:?}", verdict.notes) };
    assert!(note.ends_with("was not answered; no claim asks about it"), "{note}");
    let verdict = judged("mqtt-healthy", |events: &mut Events| {
        let result = "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"true\"}],\
                      \"isError\":false}";
        replace(reply(12), result, "\"error\":{\"message\":\"x\"}")(events);
    });
    let [note] = &verdict.notes[..] else { panic!("{:?}", verdict.notes) };
    assert!(note.contains("was answered with an error: x"), "{note}");
}
