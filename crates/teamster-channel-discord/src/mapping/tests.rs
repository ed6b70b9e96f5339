use serde_json::json;

use super::*;
use crate::types::Interaction;

fn message(value: serde_json::Value) -> Message {
    serde_json::from_value(value).unwrap()
}

fn channel(kind: u8, parent: Option<&str>, owner: &str) -> Channel {
    Channel { id: "5".to_owned(), r#type: kind, parent_id: parent.map(str::to_owned), owner_id: Some(owner.to_owned()) }
}

fn context(channel: Option<&Channel>) -> Context<'_> {
    Context { bot: "42", servers: Servers::Mentions, threads: true, roles: &[], channel }
}

#[test]
fn a_mention_opens_a_thread_in_text_channels_only() {
    let mention = message(json!({"id": "9", "channel_id": "5", "author": {"id": "1", "username": "ada"},
        "content": "<@!42> hi", "mentions": [{"id": "42"}]}));
    for (kind, opens) in [(0, true), (5, true), (2, false), (11, false), (15, false), (255, false)] {
        let channel = channel(kind, None, "1");
        let Incoming::Message(received) = incoming(&mention, context(Some(&channel))) else { panic!() };
        assert_eq!((received.opens_thread, received.text.as_str()), (opens, "hi"), "{kind}");
        assert_eq!(received.origin.address.thread, if opens { "9" } else { "" });
    }
}

#[test]
fn a_forwarded_message_cannot_be_read_unless_it_has_a_text() {
    let forwarded = |content: &str| {
        message(json!({"id": "9", "channel_id": "5", "author": {"id": "1"}, "content": content,
            "message_snapshots": [{"message": {"content": "of another channel"}}]}))
    };
    assert!(matches!(incoming(&forwarded(""), context(None)), Incoming::Unreadable { .. }));
    assert!(matches!(incoming(&forwarded("see"), context(None)), Incoming::Message(_)));
}

#[test]
fn a_name_is_that_of_the_server_then_the_global_one_then_the_user_name() {
    let user = |global: Option<&str>| User {
        id: "1".to_owned(),
        username: "ada".to_owned(),
        global_name: global.map(str::to_owned),
        bot: false,
    };
    let member = Member { nick: Some("Countess".to_owned()), ..Member::default() };
    assert_eq!(author_of(&user(Some("Ada")), Some(&member), false).name, "Countess");
    assert_eq!(author_of(&user(Some("Ada")), Some(&Member::default()), false).name, "Ada");
    assert_eq!(author_of(&user(None), None, false).name, "ada");
    assert!(author_of(&user(None), None, true).is_bot, "a webhook");
}

#[test]
fn an_event_with_missing_or_null_fields_is_read() {
    for value in [json!({}), json!({"id": "1", "content": null}), json!({"attachments": [{}], "unknown": {"a": [1]}})] {
        let message = message(value);
        assert_eq!(message.content, "");
        let plain = channel(0, None, "1");
        assert!(edited(&message, context(Some(&plain))).is_none());
    }
}

#[test]
fn the_text_of_a_form_is_found_in_rows_and_in_labels() {
    let form = |components: serde_json::Value| -> Interaction {
        let data = json!({"custom_id": "t:token", "components": components});
        serde_json::from_value(json!({"id": "1", "type": 5, "token": "secret", "data": data})).unwrap()
    };
    let row = form(json!([{"type": 1, "components": [{"type": 4, "value": " blue "}]}]));
    let label = form(json!([{"type": 18, "component": {"type": 4, "value": "blue"}}]));
    for interaction in [row, label] {
        assert!(matches!(pressed(&interaction), Pressed::Text(token, text) if token == "token" && text == "blue"));
        assert!(!format!("{interaction:?}").contains("secret"), "the token of an interaction is never printed");
    }
    assert!(matches!(
        pressed(&form(json!([{"type": 1, "components": [{"type": 4, "value": " "}]}]))),
        Pressed::Unknown
    ));
}

#[test]
fn each_kind_of_interaction_has_its_first_answer() {
    let interaction = |kind: u8, id: &str| -> Interaction {
        serde_json::from_value(json!({"id": "1", "type": kind, "data": {"custom_id": id, "name": "status"}})).unwrap()
    };
    assert_eq!(ack(&interaction(2, "")), Some(Ack::Reply { repeatable: false }));
    assert_eq!(ack(&interaction(3, "b:x")), Some(Ack::Update));
    assert_eq!(ack(&interaction(3, "t:x")), Some(Ack::Form("x".to_owned())));
    assert_eq!(ack(&interaction(5, "t:x")), Some(Ack::Reply { repeatable: true }));
    assert_eq!(ack(&interaction(4, "")), None, "completion of a command");
}
