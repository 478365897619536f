//! The MQTT gateway (facts/xiaozhi.md 4.1; MQTT 3.1.1).

use super::*;
use crate::decode::{Control, Transport};
use rumqttc::mqttbytes::Protocol;
use rumqttc::mqttbytes::v4::{Subscribe, SubscribeFilter, Unsubscribe};

#[test]
fn a_client_is_served() {
    let mut bench = Bench::new();
    bench.connect(1, "board");
    assert_eq!(bench.said(), "ConnAck(0)");
    assert!(bench.backend.is_online());
    bench.packet(1, &Packet::PingReq);
    assert_eq!(bench.said(), "PingResp");
    let mut subscribe = Subscribe::new_many([
        SubscribeFilter::new("a/#".into(), QoS::ExactlyOnce),
        SubscribeFilter::new("b".into(), QoS::AtMostOnce),
    ]);
    subscribe.pkid = 9;
    bench.packet(1, &Packet::Subscribe(subscribe));
    assert_eq!(bench.said(), "SubAck(9)");
    let mut unsubscribe = Unsubscribe::new("b");
    unsubscribe.pkid = 10;
    bench.packet(1, &Packet::Unsubscribe(unsubscribe));
    assert_eq!(bench.said(), "UnsubAck(10)");
    bench.packet(1, &publish(QoS::AtMostOnce, 0, "{}"));
    assert_eq!(bench.said(), "");
    bench.packet(1, &publish(QoS::AtLeastOnce, 11, "{}"));
    assert_eq!(bench.said(), "PubAck(11)");
    bench.packet(1, &publish(QoS::ExactlyOnce, 12, "{}"));
    assert_eq!(bench.said(), "PubRec(12)");
    bench.mqtt(1, &[0x62, 2, 0, 12]);
    assert_eq!(bench.said(), "PubComp(12)");
    bench.packet(1, &Packet::Disconnect);
    assert_eq!((bench.said().as_str(), &bench.closed[..]), ("", &[1][..]));
    assert!(!bench.backend.is_online() && bench.backend.take_refusals().is_empty());
}

/// Raw bytes: rumqttc would take a CONNECT of MQTT 5 for one of 3.1.1.
#[test]
fn another_protocol_level_is_refused_with_code_1() {
    let v5 = b"\x10\x11\0\x04MQTT\x05\x02\0\x3c\0\0\x04test";
    let v31 = b"\x10\x12\0\x06MQIsdp\x03\x02\0\x3c\0\x04test";
    let mut future = connect("board", 60);
    future.protocol = Protocol::V5;
    let mut bytes = BytesMut::new();
    future.write(&mut bytes).unwrap();
    for packet in [&v5[..], &v31[..], &bytes] {
        let mut bench = Bench::new();
        bench.mqtt(1, packet);
        assert_eq!((bench.said().as_str(), &bench.closed[..]), ("ConnAck(1)", &[1][..]));
        assert!(!bench.backend.is_online());
        assert!(bench.backend.take_refusals()[0].contains("protocol level"));
        // What it sends all the same means nothing.
        bench.publish(1, HELLO);
        assert_eq!((bench.said().as_str(), bench.closed.len()), ("", 1));
    }
}

#[test]
fn packets_against_the_protocol_end_the_connection() {
    let check = |packets: &[&[u8]], why: &str| {
        let mut bench = Bench::new();
        bench.connect(1, "board");
        assert_eq!(bench.said(), "ConnAck(0)");
        packets.iter().for_each(|packet| bench.mqtt(1, packet));
        assert_eq!((bench.said().as_str(), &bench.closed[..]), ("", &[1][..]), "{why}");
        assert!(!bench.backend.is_online());
        assert_eq!(bench.backend.take_refusals(), [format!("connection 1 closed: {why}")]);
    };
    let again = b"\x10\x11\0\x04MQTT\x04\x02\0\x3c\0\x05board";
    check(&[again], "a second CONNECT");
    let malformed = "it sent no MQTT packet";
    check(&[b"GET / HTTP/1.1\r\n"], malformed);
    check(&[&[0x30]], malformed);
    check(&[&[0x30, 0xff, 0xff, 0xff, 0xff, 0x01]], malformed);
    check(&[&[0x30, 0xff, 0xff, 0xff, 0x7f]], malformed);
    check(&[&[0xf0, 0]], malformed);
    check(&[&[0x36, 5, 0, 1, b'a', 0, 1]], malformed);
    check(&[b""], malformed);
    check(&[b"\xc0\0\xc0\0"], malformed);
    check(&[&[0x20, 2, 0, 0]], "it sent what only servers send");
    check(&[&[0xd0, 0], &[0xd0, 0]], "it sent what only servers send");
}

#[test]
fn a_connection_begins_with_connect() {
    for first in [&b"\xc0\0"[..], b"\x30\x05\0\x01a{}", b"\x82\x06\0\x01\0\x01a\0", b"nonsense"] {
        let mut bench = Bench::new();
        bench.see(Observation::Opened { link: 4, service: Service::Mqtt });
        bench.mqtt(4, first);
        assert_eq!((bench.said().as_str(), &bench.closed[..]), ("", &[4][..]), "{first:?}");
        assert_eq!(bench.backend.take_refusals().len(), 1, "{first:?}");
    }
}

#[test]
fn a_retained_message_of_a_client_ends_nothing() {
    let mut bench = Bench::new();
    bench.connect(1, "board");
    let mut retained = Publish::new("x", QoS::AtLeastOnce, "{}");
    (retained.retain, retained.pkid) = (true, 5);
    bench.packet(1, &Packet::Publish(retained));
    assert_eq!((bench.said().as_str(), bench.closed.len()), ("ConnAck(0); PubAck(5)", 0));
}

#[test]
fn messages_reach_the_device_without_a_subscription() {
    for (client, topic) in [
        ("GID@@@24_6f_28_aa_bb_cc@@@uuid", "devices/p2p/24_6f_28_aa_bb_cc"),
        ("24:6f:28:aa:bb:cc", "devices/p2p/24_6f_28_aa_bb_cc"),
        ("a/#+b", "devices/p2p/a___b"),
    ] {
        let mut bench = Bench::new();
        bench.connect(1, client);
        bench.backend.request("tools/list", json!({}));
        let commands = bench.backend.take_commands();
        let [Command::Mqtt { link: 1, packet }] = &commands[..] else { panic!("{commands:?}") };
        let packet = Packet::read(&mut BytesMut::from(&packet.0[..]), 1 << 20).unwrap();
        let Packet::Publish(message) = packet else { panic!("{packet:?}") };
        assert_eq!((message.topic.as_str(), message.qos), (topic, QoS::AtMostOnce));
        assert!(!message.retain);
    }
}

#[test]
fn silence_of_one_and_a_half_keep_alives_ends_the_connection() {
    let mut bench = Bench::new();
    bench.connect(1, "board");
    let connected = bench.now;
    assert_eq!(bench.backend.deadline(), connected + std::time::Duration::from_secs(90));
    bench.advance_to(connected + std::time::Duration::from_secs(80));
    bench.packet(1, &Packet::PingReq);
    bench.advance_to(connected + std::time::Duration::from_secs(160));
    bench.publish(1, "{}");
    bench.advance_to(connected + std::time::Duration::from_secs(250));
    assert!(bench.backend.is_online());
    bench.advance_to(connected + std::time::Duration::from_secs(251));
    assert!(!bench.backend.is_online());
    assert_eq!((&bench.closed[..], bench.backend.deadline()), (&[1][..], Moment::NEVER));
    let mut bench = Bench::new();
    bench.packet(1, &Packet::Connect(connect("no promise", 0)));
    assert_eq!(bench.backend.deadline(), Moment::NEVER);
}

#[test]
fn the_same_client_takes_over_its_old_connection() {
    let mut bench = Bench::talking();
    bench.connect(2, "a@@@24_6f_28_aa_bb_cc@@@u");
    assert_eq!((bench.said().as_str(), &bench.closed[..]), ("ConnAck(0)", &[1][..]));
    assert!(bench.backend.is_online() && !bench.backend.has_channel());
    // Clients without a name are not the same one.
    let mut bench = Bench::new();
    bench.connect(1, "");
    bench.connect(2, "");
    assert!(bench.closed.is_empty());
}

#[test]
fn once_the_device_is_known_another_client_is_not_taken_for_it() {
    let mut bench = Bench::new();
    bench.connect(1, "tool");
    assert!(bench.backend.is_online());
    bench.post(2, &post_with("2.4.2"));
    assert!(!bench.backend.is_online());
    let device = "GID_bench@@@24_6f_28_aa_bb_cc@@@11111111-2222-4333-8444-555555555555";
    bench.connect(3, device);
    bench.connect(4, "another tool");
    assert!(bench.backend.is_online());
    bench.take_sent();
    bench.publish(4, HELLO);
    bench.packet(1, &Packet::PingReq);
    assert_eq!(bench.said(), "PingResp");
    bench.publish(3, HELLO);
    assert_eq!(bench.said(), "hello");
    // It boots without a word of farewell and asks for its config again.
    bench.post(5, &post_with("2.4.2"));
    assert!(!bench.backend.is_online());
    assert_eq!(bench.closed, [2, 3, 5]);
}

#[test]
fn what_only_echoes_the_bench_is_not_answered() {
    let mut bench = Bench::new();
    let mut bytes = BytesMut::new();
    connect("us", 60).write(&mut bytes).unwrap();
    let packet = Blob(bytes.to_vec());
    bench.see(Observation::Mqtt { link: 1, from: Party::Bench, packet });
    assert_eq!((bench.said().as_str(), bench.backend.is_online()), ("", false));
}

#[test]
fn levels_and_silences_are_told_as_facts() {
    let mut decoder = Decoder::default();
    let mut facts = |packet: &[u8]| {
        let what = Observation::Mqtt { link: 1, from: Party::Device, packet: packet.into() };
        let entry = Entry::Saw { captured_at: Moment::START, what };
        let facts = decoder.take(&Record { n: 0, at: Moment::START, entry });
        assert!(facts.iter().all(|fact| fact.link == Some(1)));
        facts.into_iter().map(|fact| fact.what).collect::<Vec<_>>()
    };
    let (from, transport) = (Party::Device, Transport::Mqtt);
    let connect = |level, client: &str, keep_alive| What::Mqtt {
        from,
        packet: Control::Connect { level, client: client.into(), keep_alive },
    };
    assert_eq!(
        facts(b"\x10\x0d\0\x04MQTT\x04\x02\0\x3c\0\x01b"),
        [What::Connected { transport, client: "b".into() }, connect(4, "b", 60)]
    );
    assert_eq!(facts(b"\x10\x0e\0\x04MQTT\x05\x02\0\x3c\0\0\x01b"), [connect(5, "", 0)]);
}
