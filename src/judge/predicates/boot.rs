//! Did the board restart: once, in order, and without a panic? Witnessed by the chip's ROM.

use super::{calls, restarts};
use crate::decode::uart::{BootEvent, Meaning, PanicKind, Reset, ResetCause, UartLine};
use crate::decode::{Exchange, Fact, Transport, What};
use crate::judge::case::Case;
use crate::judge::{Discrepancy, Finding, Measurement, Status};
use crate::scenario::Rung;
use crate::time::{Moment, Window};
use std::time::Duration;

const RUNG: Rung = Rung::Physical;

/// Each call of the step must have restarted the board.
pub(super) fn finding(step: &str, within: Duration, case: &Case) -> Finding {
    let calls = match calls(RUNG, step, case) {
        Ok(calls) => calls,
        Err(finding) => return finding,
    };
    let mut findings: Vec<Finding> =
        calls.iter().map(|call| Aftermath::of(call, case).finding(within, case)).collect();
    let status = |status| findings.iter().position(|f| f.status == status);
    let worst = status(Status::Refuted).or_else(|| status(Status::Silent)).unwrap_or(0);
    let all_records: Vec<u64> = findings.iter().flat_map(|f| f.records.clone()).collect();
    let finding = findings.swap_remove(worst);
    match finding.status {
        Status::Proven => finding.citing(all_records),
        _ => finding,
    }
}

/// What followed a call, until the next that may restart the board.
struct Aftermath<'a> {
    call: &'a Exchange,
    window: Window,
    boots: Vec<&'a Fact>,
    deaths: Vec<(&'a Fact, &'a PanicKind)>,
    reset: Option<&'a Reset>,
    /// The application said that it restarts, before the first banner.
    announced: Option<&'a Fact>,
    /// The firmware said anything after the last banner.
    alive: bool,
    /// A banner or a panic whose line had begun before the call.
    straddling: Option<&'a Fact>,
}

impl<'a> Aftermath<'a> {
    fn of(call: &'a Exchange, case: &'a Case) -> Self {
        let next = case.reboots().find(|x| x.record > call.record);
        let until = next.map_or(Moment::NEVER, |x| x.at);
        let mut after = Aftermath {
            call,
            window: Window { from: call.at, until },
            boots: Vec::new(),
            deaths: Vec::new(),
            reset: None,
            announced: None,
            alive: false,
            straddling: None,
        };
        for fact in &case.story.facts {
            if after.window.contains(fact.at) {
                after.note(fact);
            } else if matches!(fact.what, What::Boot(_)) && after.window.contains(fact.until) {
                after.straddling = Some(fact);
            }
        }
        after
    }

    fn note(&mut self, fact: &'a Fact) {
        match &fact.what {
            What::Boot(BootEvent::Began { .. }) => {
                self.boots.push(fact);
                self.alive = false;
            }
            What::Boot(BootEvent::Panicked { kind, .. }) => self.deaths.push((fact, kind)),
            What::Boot(BootEvent::Reset { reset, .. }) => {
                self.reset.get_or_insert(reset);
            }
            What::Uart(UartLine { means: Meaning::Rebooting, .. }) if self.boots.is_empty() => {
                self.announced = Some(fact);
            }
            what => self.alive |= what.is_of_firmware(),
        }
    }

    fn finding(&self, within: Duration, case: &Case) -> Finding {
        let (boots, deaths) = (self.boots.len(), self.deaths.len());
        let count = |name: &str, n: usize, right: f64| {
            Measurement::new(name, n as f64, "1").within(right, right)
        };
        let mut measurements = vec![count("boots", boots, 1.0), count("panics", deaths, 0.0)];
        measurements.extend(self.chain(case));
        let finding = match (self.straddling, self.boots.first()) {
            (Some(fact), _) => {
                let why = format!("a console line that began before the call, at {}", fact.at);
                let why = format!("{why}, ended after it: nobody knows which came first");
                Finding::silent(RUNG, why).citing([fact.record])
            }
            (None, Some(first)) => self.restarted(first, within, case),
            (None, None) => self.never(within, case),
        };
        let records = self.boots.iter().copied().chain(self.deaths.iter().map(|(f, _)| *f));
        let records = records.chain(self.announced).map(|f| f.record);
        Finding { measurements, ..finding }.citing(records).citing([self.call.record])
    }

    fn never(&self, within: Duration, case: &Case) -> Finding {
        let limit = within.as_secs_f64();
        let deadline = self.call.at + within;
        let told = |f: &Fact| f.boot == self.call.boot && matches!(f.what, What::Uart(_));
        if let Some((fact, sign)) = restarts::sign(self.window, case) {
            let why = format!("no ROM banner, but the board may have restarted: {sign}");
            Finding::silent(RUNG, why).citing([fact.record])
        } else if !case.story.facts.iter().any(told) {
            Finding::silent(RUNG, "the console was mute, so no banner could be seen: is it wired?")
        } else if let Some((_, kind)) = self.deaths.first() {
            refuted(Discrepancy::UnexpectedReset, format!("the firmware died instead: {kind}"))
        } else if case.story.until.min(self.window.until) < deadline {
            let who = match self.window.until < deadline {
                true => "the next call came",
                false => "the session ended",
            };
            Finding::silent(RUNG, format!("{who} before the {limit:.0} s for a restart were over"))
        } else {
            refuted(Discrepancy::NoReboot, format!("no ROM banner within {limit:.0} s"))
        }
    }

    fn restarted(&self, first: &Fact, within: Duration, case: &Case) -> Finding {
        let (boots, limit) = (self.boots.len(), within.as_secs_f64());
        let took = first.at.seconds_since(self.call.at);
        if boots > 2 {
            let what = format!("{boots} boots after one request");
            return refuted(Discrepancy::BootLoop, what);
        }
        if boots > 1 || !self.deaths.is_empty() {
            let panics = self.deaths.len();
            let mut what = format!("{boots} boots and {panics} panics after one request");
            if let Some((_, kind)) = self.deaths.first() {
                what = format!("{what}: {kind}");
            }
            return refuted(Discrepancy::UnexpectedReset, what);
        }
        if let Some((fact, sign)) = restarts::sign(self.window, case) {
            let why =
                format!("the board may have restarted more than once, at {}: {sign}", fact.at);
            return Finding::silent(RUNG, why).citing([fact.record]);
        }
        if took > limit {
            return refuted(Discrepancy::Late, format!("the ROM banner came after {took:.1} s"));
        }
        let Some(reset) = self.reset else {
            return Finding::silent(RUNG, "the banner names no reset reason");
        };
        // `esp_restart()` resets the CPU on every chip; so does a panic, hence the words before.
        if reset.cause() != ResetCause::SoftwareCpu {
            let what = format!("the board restarted, but by {reset}");
            return refuted(Discrepancy::UnexpectedReset, what);
        }
        if reset.download {
            let what = "the ROM waits for a download instead of starting the firmware";
            return refuted(Discrepancy::UnexpectedReset, what.to_owned());
        }
        let mut others = case.story.mcp.exchanges.iter().filter(|x| {
            x.changes_something() && x.record > self.call.record && self.window.contains(x.at)
        });
        if let Some(other) = others.find(|x| self.announced.is_some_and(|told| x.at < told.at)) {
            let why = "another call came before the board said that it restarts: for which, nobody";
            return Finding::silent(RUNG, format!("{why} knows")).citing([other.record]);
        }
        if self.announced.is_none() {
            let why = "the board restarted, but never said `Application: Rebooting...`";
            return Finding::silent(RUNG, format!("{why}: on command or by a crash, nobody knows"));
        }
        if !self.alive {
            let why = "the ROM started, but nothing was heard of the firmware after it";
            return Finding::silent(RUNG, why);
        }
        let told = format!("1 boot after {took:.2} s, rst:0x{:x}, no panic", reset.code);
        Finding::proven(RUNG, told)
    }

    /// Seconds from the call to each independent event of the way back.
    fn chain(&self, case: &Case) -> Vec<Measurement> {
        let Some(banner) = self.boots.first().map(|f| f.at) else { return Vec::new() };
        let window = Window { from: banner, ..self.window };
        let first = |name: &'static str, is: &dyn Fn(&What) -> bool| {
            let mut facts = case.story.facts.iter().filter(|f| window.contains(f.at));
            facts.find(|f| is(&f.what)).map(|event| (name, event.at))
        };
        let online = |w: &What| {
            matches!(w, What::Connected { transport: Transport::Mqtt | Transport::WebSocket, .. })
        };
        let asks = |w: &What| matches!(w, What::Http(m) if m.asks_for_configuration());
        let events = [
            Some(("call_to_banner", banner)),
            first("call_to_config_request", &asks),
            first("call_to_connection", &online),
            first("call_to_first_reply", &|w| matches!(w, What::Reply(_))),
        ];
        let seconds = |(name, at): (&str, Moment)| {
            Measurement::new(name, at.seconds_since(self.call.at), "s")
        };
        events.into_iter().flatten().map(seconds).collect()
    }
}

fn refuted(name: Discrepancy, reason: String) -> Finding {
    Finding::refuted(RUNG, name, reason)
}
