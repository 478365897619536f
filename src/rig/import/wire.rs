//! Bytes of the wire, built again from the payloads that the recorder kept: MQTT 3.1.1 PUBLISH
//! packets and RFC 6455 frames. Their lengths and contents are evidence, their borders are not.

use crate::journal::Party;
use bytes::BytesMut;
use rumqttc::mqttbytes::QoS;
use rumqttc::mqttbytes::v4::Publish;
use serde::Deserialize;

/// A whole PUBLISH packet.
pub(super) fn publish(topic: String, qos: QoS, retain: bool, payload: Vec<u8>) -> Vec<u8> {
    let mut publish = Publish::new(topic, qos, payload);
    publish.retain = retain;
    if qos != QoS::AtMostOnce {
        // The recorder didn't keep the packet id; any but 0 is lawful.
        publish.pkid = 1;
    }
    let mut packet = BytesMut::new();
    publish.write(&mut packet).expect("a line, and so its payload, is far below MQTT's 256 MiB");
    packet.to_vec()
}

/// A whole WebSocket message as one frame; the device's are masked, with the key 0.
pub(super) fn frame(from: Party, text: bool, payload: &[u8]) -> Vec<u8> {
    let masked = from == Party::Device;
    let mask_bit = if masked { 0x80 } else { 0 };
    let mut frame = vec![if text { 0x81 } else { 0x82 }];
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length @ 0..=125), _) => frame.push(mask_bit | length),
        (_, Ok(length)) => {
            frame.push(mask_bit | 126);
            frame.extend(length.to_be_bytes());
        }
        _ => {
            frame.push(mask_bit | 127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    if masked {
        frame.extend([0; 4]);
    }
    frame.extend(payload);
    frame
}

/// The UDP key in a server hello; `None` when the payload is anything else.
pub(super) fn hello_key(payload: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Hello {
        r#type: String,
        udp: Udp,
    }
    #[derive(Deserialize)]
    struct Udp {
        key: String,
    }
    let hello: Hello = serde_json::from_slice(payload).ok()?;
    (hello.r#type == "hello").then_some(hello.udp.key)
}

/// Whether the head of an HTTP response says that its connection ends with it.
pub(super) fn closes(response: &[u8]) -> bool {
    response
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .take_while(|line| !line.is_empty())
        .any(|line| {
            let mut parts = line.splitn(2, |&byte| byte == b':').map(<[u8]>::trim_ascii);
            parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"connection"))
                && parts.next().is_some_and(|value| value.eq_ignore_ascii_case(b"close"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6455, 5.2.
    #[test]
    fn frames_have_the_three_forms_of_length() {
        let check = |from, text, length: usize, head: &[u8]| {
            let frame = frame(from, text, &vec![7; length]);
            assert_eq!(&frame[..head.len()], head);
            assert_eq!(frame.len(), head.len() + length);
        };
        check(Party::Bench, true, 0, &[0x81, 0]);
        check(Party::Bench, false, 125, &[0x82, 125]);
        check(Party::Bench, false, 126, &[0x82, 126, 0, 126]);
        check(Party::Device, true, 5, &[0x81, 0x85, 0, 0, 0, 0]);
        check(Party::Device, true, 65_535, &[0x81, 0xfe, 0xff, 0xff, 0, 0, 0, 0]);
        check(Party::Bench, true, 65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn a_publish_reads_back() {
        use rumqttc::mqttbytes::v4::Packet;
        for (qos, retain) in [(QoS::AtMostOnce, false), (QoS::AtLeastOnce, true)] {
            let packet = publish("a/b".into(), qos, retain, b"{}".to_vec());
            let read = Packet::read(&mut BytesMut::from(&packet[..]), 1 << 20).unwrap();
            let Packet::Publish(read) = read else { panic!("{read:?}") };
            assert_eq!((read.topic.as_str(), read.qos, read.retain), ("a/b", qos, retain));
            assert_eq!(&read.payload[..], b"{}");
        }
    }

    #[test]
    fn only_the_head_of_a_response_closes_it() {
        assert!(closes(b"HTTP/1.1 200 OK\r\ncONNECTION: Close\r\n\r\n"));
        assert!(!closes(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nConnection: close\r\n"));
    }
}
