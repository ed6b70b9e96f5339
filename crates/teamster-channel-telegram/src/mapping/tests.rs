//! Updates mean what people want, and any other one means nothing.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn bot() -> Bot {
    Bot { id: 42, username: "team_bot".to_owned(), can_read_all_group_messages: false }
}

fn mapped_in(update: Value, groups: Groups) -> Incoming {
    let update: Update = serde_json::from_value(update).unwrap();
    let (bot, aliases) = (bot(), Aliases::default());
    incoming(&[update], Context { bot: &bot, groups, aliases: &aliases })
}

/// Maps a message in a group, with more fields.
fn in_group(text: &str, more: Value) -> Incoming {
    mapped_in(json!({"update_id": 1, "message": message(text, "supergroup", more)}), Groups::Mentions)
}

fn in_private(text: &str, more: Value) -> Incoming {
    mapped_in(json!({"update_id": 1, "message": message(text, "private", more)}), Groups::Mentions)
}

#[expect(clippy::needless_pass_by_value, reason = "the callers write a literal")]
fn message(text: &str, kind: &str, more: Value) -> Value {
    let mut message = json!({"message_id": 7, "date": 1, "chat": {"id": -5, "type": kind}, "text": text,
        "from": {"id": 11, "is_bot": false, "first_name": "Ada", "last_name": "L"}});
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    message
}

fn received(incoming: Incoming) -> Received {
    match incoming {
        Incoming::Message(received) => received,
        other => panic!("{other:?}"),
    }
}

fn mention(offset: usize, length: usize) -> Value {
    json!({"entities": [{"type": "mention", "offset": offset, "length": length}]})
}

#[test]
fn a_direct_message_is_addressed_and_its_id_names_bot_chat_and_message() {
    let message = received(in_private("hello", json!({})));
    assert!(message.is_addressed);
    assert_eq!(message.ids, ["42:-5:7"]);
    assert_eq!((message.author.id.as_str(), message.author.name.as_str()), ("11", "Ada L"));
    assert_eq!(message.origin.address, Address { chat: "-5".to_owned(), thread: String::new() });
}

#[test]
fn in_a_group_a_mention_a_reply_or_a_command_addresses_the_bot() {
    assert!(!received(in_group("hello", json!({}))).is_addressed);
    let mentioned = received(in_group("😀 @Team_Bot do it", mention(3, 9)));
    assert!(mentioned.is_addressed);
    assert_eq!(mentioned.text, "😀  do it");
    assert!(!received(in_group("@other_bot do it", mention(0, 10))).is_addressed);
    let by_name = json!({"entities": [{"type": "text_mention", "offset": 0, "length": 2, "user": {"id": 42}}]});
    assert_eq!(received(in_group("T, do it", by_name)).text, "do it");
    let reply = json!({"reply_to_message": message("x", "supergroup", json!({"from": {"id": 42}}))});
    assert!(received(in_group("and now?", reply)).is_addressed);
    let command = json!({"entities": [{"type": "bot_command", "offset": 0, "length": 14}]});
    let Incoming::Command { name, argument, .. } = in_group("/agent@team_bot codex", command) else { panic!() };
    assert_eq!((name, argument.as_str()), ("agent", "codex"));
}

#[test]
fn a_command_to_another_bot_or_without_a_bot_in_a_group_is_none() {
    assert_eq!(in_group("/stop@other_bot", json!({})), Incoming::Nothing);
    assert!(!received(in_group("/stop", json!({}))).is_addressed);
    assert!(matches!(in_private("/stop", json!({})), Incoming::Command { name: "stop", .. }));
    assert!(matches!(in_private("/start x", json!({})), Incoming::Help { .. }));
    assert_eq!(received(in_private("/etc/passwd", json!({}))).text, "/etc/passwd");
}

#[test]
fn a_message_of_a_topic_has_a_thread_and_a_reply_in_a_plain_group_has_none() {
    let topic = received(in_group("x", json!({"message_thread_id": 9, "is_topic_message": true})));
    assert_eq!(topic.origin.address.thread, "9");
    let plain = received(in_group("x", json!({"message_thread_id": 9})));
    assert_eq!(plain.origin.address.thread, "");
    let root = message("", "supergroup", json!({"from": {"id": 42}, "forum_topic_created": {"name": "t"}}));
    let in_topic = json!({"message_thread_id": 9, "is_topic_message": true, "reply_to_message": root});
    assert!(!received(in_group("x", in_topic)).is_addressed, "a topic of the bot's is no reply to it");
}

#[test]
fn groups_can_be_off_or_whole() {
    let update = json!({"update_id": 1, "message": message("x", "group", json!({}))});
    assert_eq!(mapped_in(update.clone(), Groups::Off), Incoming::Nothing);
    assert!(received(mapped_in(update, Groups::All)).is_addressed);
    let channel = json!({"update_id": 1, "message": message("x", "channel", json!({}))});
    assert_eq!(mapped_in(channel, Groups::All), Incoming::Nothing);
}

#[test]
fn a_message_in_the_name_of_a_chat_or_of_a_bot_is_one_of_a_program() {
    for more in [json!({"sender_chat": {"id": -5}}), json!({"from": {"id": 5, "is_bot": true}})] {
        assert!(received(in_private("x", more)).author.is_bot);
    }
    assert_eq!(in_private("x", json!({"from": {"id": 42, "is_bot": true}})), Incoming::Nothing, "its own message");
}

#[test]
fn a_reply_to_a_question_is_its_answer() {
    let keyboard = json!({"inline_keyboard": [[{"text": "Allow", "callback_data": "b:one"}],
        [{"text": "Answer", "callback_data": "t:two"}]]});
    let prompt = |from: i64| message("?", "private", json!({"from": {"id": from}, "reply_markup": keyboard}));
    let Incoming::Reply { token, message } = in_private("blue", json!({"reply_to_message": prompt(42)})) else {
        panic!()
    };
    assert_eq!((token.as_str(), message.text.as_str()), ("two", "blue"));
    assert!(matches!(in_private("blue", json!({"reply_to_message": prompt(43)})), Incoming::Message(_)));
}

#[test]
fn files_have_names_and_the_largest_photo_counts() {
    let photo = json!({"photo": [{"file_id": "s", "file_size": 5}, {"file_id": "l", "file_size": 50}], "text": null,
        "caption": "look"});
    let message = received(in_private("", photo));
    assert_eq!((message.text.as_str(), message.files[0].id.as_str()), ("look", "l"));
    let document = json!({"document": {"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf"}});
    let message = received(in_private("see", document));
    assert_eq!((message.files[0].name.as_str(), message.files[0].media_type.as_str()), ("a.pdf", "application/pdf"));
    assert!(matches!(in_private("", json!({"location": {"latitude": 1}})), Incoming::Unreadable { .. }));
    assert_eq!(in_private("", json!({"new_chat_title": "x"})), Incoming::Nothing);
}

#[test]
fn a_group_that_becomes_a_supergroup_keeps_its_conversation() {
    let to = json!({"migrate_to_chat_id": -1_005});
    assert_eq!(in_group("", to), Incoming::Migrated { from: -5, to: -1_005 });
    let from = json!({"migrate_from_chat_id": -4});
    assert_eq!(in_group("", from), Incoming::Migrated { from: -4, to: -5 });
    let (bot, mut aliases) = (bot(), Aliases::default());
    aliases.migrated(-4, -5);
    let update = json!({"update_id": 1, "message": message("x", "private", json!({}))});
    let update = serde_json::from_value(update).unwrap();
    let mapped = incoming(&[update], Context { bot: &bot, groups: Groups::Mentions, aliases: &aliases });
    assert_eq!(received(mapped).origin.address.chat, "-4");
}

/// JSON of any shape, with the names that the mapping reads.
fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
        prop_oneof!["private", "supergroup", "mention", "bot_command", "/stop@team_bot", "b:x", "t:x"]
            .prop_map(Value::from),
    ];
    let names = prop_oneof![
        "message",
        "edited_message",
        "callback_query",
        "from",
        "chat",
        "id",
        "type",
        "text",
        "caption",
        "entities",
        "offset",
        "length",
        "message_id",
        "update_id",
        "photo",
        "document",
        "file_id",
        "reply_to_message",
        "data",
        "media_group_id",
        "date",
        "reply_markup",
        "inline_keyboard",
        "sender_chat"
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(names.clone(), inner, 0..8).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_json_is_a_cause_for_a_panic(value in arbitrary_json(), offset in any::<i64>(), length in any::<i64>(), text in ".*") {
        let (bot, aliases) = (bot(), Aliases::default());
        let context = Context { bot: &bot, groups: Groups::Mentions, aliases: &aliases };
        for update in [value.clone(), json!({"update_id": 1, "message": value.clone()}), json!({"update_id": 1, "callback_query": value})] {
            if let Ok(update) = serde_json::from_value::<Update>(update) {
                incoming(&[update], context);
            }
        }
        let entities = json!([{"type": "mention", "offset": offset, "length": length}]);
        let more = json!({"entities": entities});
        in_group(&text, more);
    }

    #[test]
    fn a_mention_at_any_place_is_removed_and_the_rest_is_kept(before in "[^@]{0,20}", after in "[^@a-zA-Z_0-9][^@]{0,20}") {
        let text = format!("{before}@team_bot{after}");
        let message = in_group(&text, mention(before.encode_utf16().count(), 9));
        let rest = format!("{before}{after}");
        let rest = rest.trim();
        if rest.is_empty() || rest.starts_with('/') {
            return Ok(());
        }
        prop_assert_eq!(received(message).text, rest);
    }
}
