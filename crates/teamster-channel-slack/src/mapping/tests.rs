//! Events mean what people want, and any other one means nothing.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn bot() -> Bot {
    Bot { user_id: "UBOT".to_owned(), bot_id: "BBOT".to_owned(), team_id: "T1".to_owned() }
}

fn mapped_in(event: Value, channels: Channels, replies: Replies) -> Incoming {
    let event: Event = serde_json::from_value(event).unwrap();
    let (bot, threads) = (bot(), Threads::from_value(&json!(["C1:5.0"])));
    incoming(&event, Context { bot: &bot, channels, replies, threads: &threads })
}

fn mapped(event: Value) -> Incoming {
    mapped_in(event, Channels::Mentions, Replies::Thread)
}

/// Returns a message in a channel, with more fields.
#[expect(clippy::needless_pass_by_value, reason = "the callers write a literal")]
fn message(text: &str, more: Value) -> Value {
    let mut message =
        json!({"type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "text": text, "ts": "7.0"});
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message
}

fn received(incoming: Incoming) -> Received {
    match incoming {
        Incoming::Message(received) => received,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_direct_message_is_addressed_and_its_id_names_workspace_channel_and_time() {
    let message = received(mapped(message("hello", json!({"channel": "D1", "channel_type": "im"}))));
    assert!(message.is_addressed && message.place.is_direct);
    assert_eq!((message.id.as_str(), message.author.as_str()), ("T1:D1:7.0", "U1"));
    assert_eq!(message.place.address, Address { chat: "D1".to_owned(), thread: String::new() });
}

#[test]
fn a_mention_is_the_same_message_in_both_events_and_starts_a_thread() {
    let as_message = received(mapped(message("<@UBOT> hi", json!({}))));
    let as_mention = received(mapped(message("<@UBOT> hi", json!({"type": "app_mention", "channel_type": null}))));
    assert_eq!(as_message, as_mention);
    assert!(as_message.is_addressed);
    assert_eq!((as_message.text.as_str(), as_message.place.address.thread.as_str()), ("hi", "7.0"));
    let event = message("<@UBOT> hi", json!({}));
    let in_channel = received(mapped_in(event, Channels::Mentions, Replies::Channel));
    assert_eq!(in_channel.place.address.thread, "");
}

#[test]
fn the_first_message_of_a_thread_is_in_no_thread_and_its_replies_are() {
    let first = received(mapped(message("<@UBOT> x", json!({"channel": "D1", "thread_ts": "7.0"}))));
    assert_eq!(first.place.address.thread, "");
    let reply = received(mapped(message("x", json!({"channel": "D1", "thread_ts": "5.0"}))));
    assert_eq!(reply.place.address.thread, "5.0");
}

#[test]
fn in_a_thread_of_the_bot_no_mention_is_needed_unless_it_is_one_of_another_person() {
    let in_thread = |text: &str, thread: &str| received(mapped(message(text, json!({"thread_ts": thread}))));
    assert!(in_thread("and now?", "5.0").is_addressed);
    assert!(!in_thread("<@U2> and you?", "5.0").is_addressed);
    assert!(in_thread("<@U2> <@UBOT> both", "5.0").is_addressed);
    assert!(!in_thread("and now?", "6.0").is_addressed, "a thread of others");
}

#[test]
fn channels_can_be_off_or_whole() {
    let in_channel = |channels| mapped_in(message("<@UBOT> x", json!({})), channels, Replies::Thread);
    assert_eq!(in_channel(Channels::Off), Incoming::Nothing);
    assert!(received(mapped_in(message("x", json!({})), Channels::All, Replies::Thread)).is_addressed);
    assert!(!received(mapped(message("x", json!({})))).is_addressed);
}

#[test]
fn a_message_of_the_bot_is_nothing_and_one_of_another_bot_is_one_of_a_program() {
    for own in [json!({"user": "UBOT"}), json!({"bot_id": "BBOT"}), json!({"user": null, "bot_id": "BBOT"})] {
        assert_eq!(mapped(message("<@UBOT> x", own)), Incoming::Nothing);
    }
    for other in [json!({"bot_id": "B2"}), json!({"user": null, "bot_id": "B2", "subtype": "bot_message"})] {
        assert!(received(mapped(message("<@UBOT> x", other))).is_bot);
    }
    assert_eq!(mapped(message("<@UBOT> x", json!({"user": null}))), Incoming::Nothing);
}

#[test]
fn a_command_to_the_bot_is_one_and_a_mention_alone_asks_for_help() {
    let Incoming::Command { name, argument, message: place } = mapped(message("<@UBOT> /agent codex", json!({})))
    else {
        panic!()
    };
    assert_eq!((name, argument.as_str(), place.place.address.thread.as_str()), ("agent", "codex", "7.0"));
    for text in ["<@UBOT>", "<@UBOT> /help"] {
        assert!(matches!(mapped(message(text, json!({}))), Incoming::Help(_)));
    }
    assert_eq!(received(mapped(message("/stop", json!({})))).text, "/stop", "it is not for the bot");
    assert_eq!(received(mapped(message("<@UBOT> /etc/passwd", json!({})))).text, "/etc/passwd");
    assert_eq!(mapped(message("", json!({}))), Incoming::Nothing);
}

#[test]
fn an_edit_is_one_of_the_author_that_changes_the_text() {
    let change = |before: &str, after: Value| {
        let before = json!({"user": "U1", "text": before, "ts": "6.0"});
        let more = json!({"subtype": "message_changed", "message": after, "previous_message": before});
        mapped(message("", more))
    };
    let after = json!({"user": "U1", "text": "<@UBOT> new", "ts": "6.0", "edited": {"user": "U1", "ts": "8.0"}});
    let expected = Incoming::Edit { id: "T1:C1:6.0".to_owned(), text: "new".to_owned() };
    assert_eq!(change("old", after.clone()), expected);
    assert_eq!(change("<@UBOT> new", after), Incoming::Nothing, "a preview of a link");
    let by_another = json!({"user": "U1", "text": "new", "ts": "6.0", "edited": {"user": "U2"}});
    assert_eq!(change("old", by_another), Incoming::Nothing);
    let own = json!({"user": "UBOT", "bot_id": "BBOT", "text": "new", "ts": "6.0", "edited": {"user": "UBOT"}});
    assert_eq!(change("old", own), Incoming::Nothing);
    assert_eq!(change("old", json!({"user": "U1", "text": "new", "ts": "6.0"})), Incoming::Nothing);
}

#[test]
fn the_deletion_of_a_message_of_a_person_is_one_and_that_of_the_bot_is_not() {
    let deletion = |before: Value| {
        mapped(message("", json!({"subtype": "message_deleted", "deleted_ts": "6.0", "previous_message": before})))
    };
    let id = "T1:C1:6.0".to_owned();
    assert_eq!(deletion(json!({"user": "U1", "text": "x", "ts": "6.0"})), Incoming::Delete { id });
    assert_eq!(deletion(json!({"user": "UBOT", "bot_id": "BBOT", "ts": "6.0"})), Incoming::Nothing);
    assert_eq!(deletion(json!({})), Incoming::Nothing);
}

#[test]
fn the_first_message_of_a_thread_is_deleted_when_a_tombstone_replaces_it() {
    let tombstone = json!({"subtype": "tombstone", "user": "USLACKBOT", "text": "deleted", "ts": "6.0"});
    let change = |more: Value| {
        let mut event = message("", json!({"subtype": "message_changed", "message": tombstone}));
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        mapped(event)
    };
    let deleted = Incoming::Delete { id: "T1:C1:6.0".to_owned() };
    assert_eq!(change(json!({"previous_message": {"user": "U1", "text": "x", "ts": "6.0"}})), deleted);
    assert_eq!(change(json!({})), deleted);
    assert_eq!(change(json!({"previous_message": {"user": "UBOT", "ts": "6.0"}})), Incoming::Nothing);
}

#[test]
fn other_kinds_of_messages_are_nothing() {
    for subtype in ["channel_join", "channel_topic", "assistant_app_thread", "unknown"] {
        assert_eq!(mapped(message("<@UBOT> x", json!({"subtype": subtype}))), Incoming::Nothing);
    }
    assert_eq!(mapped(message("x", json!({"type": "reaction_added"}))), Incoming::Nothing);
}

#[test]
fn files_have_names_and_those_of_other_services_have_no_content() {
    let files = json!([
        {"id": "F1", "name": "a.txt", "mimetype": "text/plain", "mode": "hosted", "size": 3, "url_private": "https://p"},
        {"id": "F2", "mode": "external", "url_private": "https://drive"},
        {"id": "F3", "mode": "hosted", "file_access": "check_file_info", "url_private": "https://p"}
    ]);
    let message = received(mapped(message("<@UBOT>", json!({"subtype": "file_share", "files": files}))));
    let urls: Vec<_> = message.files.iter().map(|file| (file.url.as_deref(), file.is_hosted)).collect();
    assert_eq!(urls, [(Some("https://p"), true), (Some("https://drive"), false), (None, true)]);
    assert_eq!((message.files[0].name.as_str(), message.files[1].name.as_str()), ("a.txt", "file"));
}

/// JSON of any shape, with the names that the mapping reads.
fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
        prop_oneof![
            "message",
            "app_mention",
            "message_changed",
            "message_deleted",
            "tombstone",
            "C1",
            "D1",
            "<@UBOT>",
            "U1",
            "/stop"
        ]
        .prop_map(Value::from),
    ];
    let names = prop_oneof![
        "type",
        "subtype",
        "channel",
        "user",
        "bot_id",
        "text",
        "ts",
        "thread_ts",
        "files",
        "message",
        "previous_message",
        "edited",
        "id",
        "name",
        "mode",
        "size"
    ];
    leaf.prop_recursive(4, 48, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(names.clone(), inner, 0..8).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_json_is_a_cause_for_a_panic(value in arbitrary_json()) {
        if let Ok(event) = serde_json::from_value::<Event>(value) {
            let (bot, threads) = (bot(), Threads::default());
            let context = Context { bot: &bot, channels: Channels::All, replies: Replies::Thread, threads: &threads };
            incoming(&event, context);
        }
    }
}
