//! Restarts that no ROM banner tells of. Without the ROM's word nobody knows why, or even that.

use crate::decode::uart::BootEvent;
use crate::decode::{Fact, Transport, What};
use crate::judge::case::Case;
use crate::time::Window;

/// The first sign in a window that the board restarted without its banner being seen.
pub(super) fn sign<'a>(window: Window, case: &'a Case) -> Option<(&'a Fact, String)> {
    let facts = &case.story.facts;
    let mut during = facts.iter().enumerate().filter(|(_, f)| window.contains(f.at));
    during.find_map(|(n, fact)| told(fact, &facts[..n]).map(|what| (fact, what)))
}

fn told(fact: &Fact, before: &[Fact]) -> Option<String> {
    let mut same_boot = before.iter().filter(|f| f.boot == fact.boot);
    let online = |f: &Fact| matches!(f.what, What::Connected { .. });
    match &fact.what {
        What::Boot(BootEvent::Missed { sign, .. }) => Some(sign.to_string()),
        // It asks once a boot, before it connects (facts/xiaozhi.md 1.5, 4.1).
        What::Http(request) if request.asks_for_configuration() => same_boot
            .any(online)
            .then(|| "it asked for its configuration again after it had been online".into()),
        // Lawful after a loss, and then the console goes on; only a mute one leaves it open.
        What::Connected { transport: Transport::Mqtt, .. } => {
            let mute = same_boot.clone().all(|f| !matches!(f.what, What::Uart(_)));
            (mute && same_boot.any(online))
                .then(|| "it connected again, and the console is mute".into())
        }
        _ => None,
    }
}
