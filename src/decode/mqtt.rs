//! One whole MQTT control packet: which it is, and what a PUBLISH holds.

use super::fact::Control;
use bytes::BytesMut;
use rumqttc::mqttbytes::v4::Packet as V4;

/// The longest packet that is decoded, bytes.
const MAX_PACKET: usize = 4 << 20;

/// The protocol level that is spoken here, MQTT 3.1.1.
pub(super) const LEVEL: u8 = 4;

/// What a packet says.
#[derive(Debug)]
pub(super) struct Packet {
    /// Which packet it is; `None` for a PUBLISH that wants no answer.
    pub control: Option<Control>,
    /// Topic and message of a PUBLISH, or why there is none to be read.
    pub content: Option<Result<(String, Vec<u8>), String>>,
}

/// Reads a packet; what is none is `Unreadable`.
pub(super) fn read(bytes: &[u8]) -> Packet {
    // The codec reads a CONNECT of MQTT 5 as if it were one of 3.1.1, with a wrong client id.
    if let Some(level) = connect_level(bytes).filter(|&level| level != LEVEL) {
        let control = Control::Connect { level, client: String::new(), keep_alive: 0 };
        return Packet { control: Some(control), content: None };
    }
    let mut rest = BytesMut::from(bytes);
    match V4::read(&mut rest, MAX_PACKET) {
        Ok(packet) if rest.is_empty() => of(packet),
        Ok(_) => unreadable(format!("{} bytes follow an MQTT packet", rest.len())),
        Err(error) => unreadable(format!("not an MQTT packet: {error}")),
    }
}

fn unreadable(why: String) -> Packet {
    Packet { control: Some(Control::Unreadable), content: Some(Err(why)) }
}

fn of(packet: V4) -> Packet {
    let control = match packet {
        V4::Connect(connect) => Control::Connect {
            level: LEVEL,
            client: connect.client_id,
            keep_alive: connect.keep_alive,
        },
        V4::Publish(publish) => {
            let content = match publish.retain {
                true => Err(format!("a retained message on {}", publish.topic)),
                false => Ok((publish.topic, publish.payload.to_vec())),
            };
            let (pkid, qos) = (publish.pkid, publish.qos as u8);
            let control = (qos > 0).then_some(Control::Publish { pkid, qos });
            return Packet { control, content: Some(content) };
        }
        V4::ConnAck(ack) => Control::ConnAck(ack.code as u8),
        V4::PubAck(ack) => Control::PubAck(ack.pkid),
        V4::PubRec(ack) => Control::PubRec(ack.pkid),
        V4::PubRel(ack) => Control::PubRel(ack.pkid),
        V4::PubComp(ack) => Control::PubComp(ack.pkid),
        V4::Subscribe(subscribe) => Control::Subscribe {
            pkid: subscribe.pkid,
            topics: subscribe.filters.into_iter().map(|filter| filter.path).collect(),
        },
        V4::SubAck(ack) => Control::SubAck(ack.pkid),
        V4::Unsubscribe(unsubscribe) => Control::Unsubscribe(unsubscribe.pkid),
        V4::UnsubAck(ack) => Control::UnsubAck(ack.pkid),
        V4::PingReq => Control::PingReq,
        V4::PingResp => Control::PingResp,
        V4::Disconnect => Control::Disconnect,
    };
    Packet { control: Some(control), content: None }
}

/// The protocol level of a CONNECT; `None` for any other packet.
fn connect_level(bytes: &[u8]) -> Option<u8> {
    let (0x10, rest) = bytes.split_first().map(|(first, rest)| (first & 0xf0, rest))? else {
        return None;
    };
    let length = rest.iter().take(4).position(|byte| byte & 0x80 == 0)? + 1;
    let name = rest[length..].split_first_chunk().map(|(&n, rest)| (u16::from_be_bytes(n), rest));
    let (name, level) = name.and_then(|(n, rest)| rest.split_at_checked(usize::from(n)))?;
    matches!(name, b"MQTT" | b"MQIsdp").then(|| level.first().copied())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_of_a_connect_is_read_before_the_rest() {
        let check = |bytes: &[u8], expect| assert_eq!(connect_level(bytes), expect, "{bytes:?}");
        check(b"\x10\x0c\0\x04MQTT\x04\x02\0\x0a\0\0", Some(4));
        check(b"\x10\x0d\0\x04MQTT\x05\x02\0\x0a\0\0\0", Some(5));
        check(b"\x10\x8e\x80\x00\0\x06MQIsdp\x03\x02\0\x0a\0\0", Some(3));
        check(b"\x10\x0c\0\x04HTTP\x05", None);
        check(b"\x30\x0c\0\x04MQTT\x05", None);
        check(b"\x10\x0c\0\x04MQTT", None);
        check(b"\x10\xff\xff\xff\xff\0\x04MQTT\x05", None);
        check(b"\x10", None);
        check(b"", None);
    }
}
