//! When each packet of a sound is sent (facts/xiaozhi.md 7.1).
//!
//! The device clears its queue once more a moment after `tts start`, holds 40 packets and drops
//! the rest without a word, and plays what it has in real time.

use crate::time::Moment;
use std::sync::Arc;
use std::time::Duration;

/// Length of a packet, milliseconds.
pub(super) const FRAME_MS: u32 = 60;
const FRAME: Duration = Duration::from_millis(FRAME_MS as u64);

/// From `tts start` to the first packet; the firmware needs 150 ms.
const PRE_ROLL: Duration = Duration::from_millis(200);

/// Packets that may be on their way or waiting in the device.
const AHEAD: u32 = 5;

/// From the end of the last packet to `tts stop`: for the way there and the device's DMA.
const TAIL: Duration = Duration::from_millis(300);

/// What is due.
#[derive(Debug, PartialEq)]
pub(super) enum Sends<'a> {
    /// An Opus packet.
    Packet(&'a [u8]),
    /// `tts stop`.
    Stop,
}

/// Packets on their way to the device.
#[derive(Debug)]
pub(super) struct Speech {
    packets: Arc<[Vec<u8>]>,
    next: u32,
    /// When the device begins to play the first packet, if the way there took no time.
    began: Moment,
}

impl Speech {
    /// `tts start` is sent now.
    pub fn new(now: Moment, packets: Arc<[Vec<u8>]>) -> Speech {
        Speech { packets, next: 0, began: now + PRE_ROLL }
    }

    /// When the next packet, or the stop, is due.
    pub fn due(&self) -> Moment {
        match self.packets.get(self.next as usize) {
            Some(_) => self.began + FRAME * (self.next + 1).saturating_sub(AHEAD),
            None => self.began + FRAME * self.next + TAIL,
        }
    }

    /// What is to be sent, if anything is due; after the stop there is nothing left to ask.
    pub fn next(&mut self, now: Moment) -> Option<Sends<'_>> {
        if now < self.due() {
            return None;
        }
        let Some(packet) = self.packets.get(self.next as usize) else { return Some(Sends::Stop) };
        // Whoever comes late finds that the device has played all it had: it goes on from now, and
        // what is overdue must not all be sent at once.
        let played = self.began + FRAME * self.next;
        if now > played {
            self.began = self.began + (now - played);
        }
        self.next += 1;
        Some(Sends::Packet(packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Moment {
        Moment::from_nanos(ms * 1_000_000)
    }

    /// How many packets go out at each call.
    fn sent(speech: &mut Speech, at: u64) -> usize {
        let mut count = 0;
        while let Some(Sends::Packet(_)) = speech.next(ms(at)) {
            count += 1;
        }
        count
    }

    #[test]
    fn packets_wait_for_the_device_and_then_go_out_in_real_time() {
        let mut speech = Speech::new(ms(1000), vec![vec![1]; 8].into());
        assert_eq!((speech.due(), sent(&mut speech, 1199)), (ms(1200), 0));
        assert_eq!(sent(&mut speech, 1200), AHEAD as usize);
        assert_eq!((speech.due(), sent(&mut speech, 1259)), (ms(1260), 0));
        assert_eq!(sent(&mut speech, 1260), 1);
        assert_eq!(sent(&mut speech, 1320), 1);
        assert_eq!(sent(&mut speech, 1380), 1);
        // Eight packets of 60 ms are played out at 1680.
        assert_eq!((speech.due(), speech.next(ms(1979))), (ms(1980), None));
        assert_eq!(speech.next(ms(1980)), Some(Sends::Stop));
    }

    #[test]
    fn whoever_comes_late_never_floods_the_device() {
        let mut speech = Speech::new(ms(0), vec![vec![1]; 100].into());
        assert_eq!(sent(&mut speech, 200), 5);
        // A little late: the device still has something, and gets what is due.
        assert_eq!(sent(&mut speech, 390), 3);
        // Very late: it has played all eight and starts anew.
        assert_eq!(sent(&mut speech, 5000), 5);
        assert_eq!(sent(&mut speech, 5060), 1);
        assert_eq!(sent(&mut speech, 5119), 0);
    }

    #[test]
    fn a_sound_without_packets_only_starts_and_stops() {
        let mut speech = Speech::new(ms(0), Vec::new().into());
        assert_eq!(speech.due(), ms(500));
        assert_eq!(speech.next(ms(500)), Some(Sends::Stop));
    }
}
