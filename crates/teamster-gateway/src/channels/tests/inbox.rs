//! Access rules, duplicates, loops, edits and commands.

use teamster_channel::{Address, Attachment, Author, ChatCommand, Edit, EditOutcome, Inbox as _, Message, Receipt};
use teamster_store::{DeliveryFilter, MessageMode, PageRequest, TurnState};

use super::World;
use super::service::Service;
use crate::channels::inbox::ChannelInbox;
use crate::config::Rule;
use crate::engine::{Gateway, IncomingMessage, MessageTarget, is_by_api};
use crate::hooks::{HookConfig, HookEventKind, OnFailure};

struct Fixture {
    world: World,
    gateway: Gateway,
    inbox: ChannelInbox,
}

async fn fixture(change: impl FnOnce(&mut crate::config::Config)) -> Fixture {
    let service = Service::new([]).shared();
    let mut world = World::new(service.clone()).await;
    change(&mut world.config);
    let gateway = world.gateway();
    let inbox = ChannelInbox::new(gateway.clone(), &*service);
    Fixture { world, gateway, inbox }
}

fn address(chat: &str) -> Address {
    Address { chat: chat.to_owned(), thread: String::new() }
}

fn author(id: &str) -> Author {
    Author { id: id.to_owned(), name: "A name".to_owned(), is_bot: false }
}

fn message(id: &str, chat: &str, from: &str) -> Message {
    Message {
        ids: vec![id.to_owned()],
        address: address(chat),
        author: author(from),
        text: "hello".to_owned(),
        attachments: Vec::new(),
        is_addressed: true,
    }
}

fn named(from: &str) -> Rule {
    Rule { authors: Some(vec![from.to_owned()]), ..Rule::default() }
}

fn open_channel(config: &mut crate::config::Config) {
    config.rules = vec![Rule { channel: Some("double".to_owned()), ..Rule::default() }];
}

impl Fixture {
    async fn command(&self, name: &str, argument: &str) -> String {
        let command = ChatCommand {
            name: name.to_owned(),
            argument: argument.to_owned(),
            author: author("alice"),
            address: address("c"),
        };
        self.inbox.command(command).await.unwrap().text
    }

    async fn conversation(&self, chat: &str) -> teamster_store::Conversation {
        let address = super::address(chat);
        self.gateway.store().conversation_at(address, self.gateway.now()).await.unwrap().unwrap()
    }
}

#[tokio::test]
async fn a_stranger_without_a_rule_gets_nothing_and_leaves_nothing() {
    let fixture =
        fixture(|config| config.rules = vec![named("alice"), Rule { model: Some("m".into()), ..Rule::default() }])
            .await;
    assert_eq!(fixture.inbox.message(message("1", "c", "mallory")).await.unwrap(), Receipt::Ignored);
    let found = fixture.gateway.store().conversation_at(super::address("c"), fixture.gateway.now()).await.unwrap();
    assert!(found.is_none());
    assert!(matches!(fixture.inbox.message(message("1", "c", "alice")).await.unwrap(), Receipt::Accepted { .. }));
}

#[tokio::test]
async fn a_stranger_and_a_program_are_not_admitted_before_they_send_anything() {
    let mut program = author("alice");
    program.is_bot = true;
    for accept in [false, true] {
        let fixture = fixture(|config| {
            config.rules = vec![named("alice")];
            config.channels.bots.accept = accept;
        })
        .await;
        assert!(fixture.inbox.is_admitted(&address("c"), &author("alice")));
        assert!(!fixture.inbox.is_admitted(&address("c"), &author("mallory")));
        assert_eq!(fixture.inbox.is_admitted(&address("c"), &program), accept);
    }
}

#[tokio::test]
async fn an_ignored_message_does_not_use_up_its_id() {
    let fixture = fixture(open_channel).await;
    let mut not_addressed = message("1", "c", "alice");
    not_addressed.is_addressed = false;
    assert_eq!(fixture.inbox.message(not_addressed).await.unwrap(), Receipt::Ignored);
    assert!(matches!(fixture.inbox.message(message("1", "c", "alice")).await.unwrap(), Receipt::Accepted { .. }));
    assert_eq!(fixture.inbox.message(message("1", "c", "alice")).await.unwrap(), Receipt::Duplicate);
}

#[tokio::test]
async fn a_message_of_a_deleted_conversation_is_not_accepted_again() {
    let fixture = fixture(open_channel).await;
    fixture.inbox.message(message("1", "c", "alice")).await.unwrap();
    fixture.gateway.delete_conversation(fixture.conversation("c").await.id).await.unwrap();
    let repeated = fixture.inbox.message(message("1", "c", "alice")).await.unwrap();
    assert!(matches!(&repeated, Receipt::Refused(text) if text.contains("accepted before")), "{repeated:?}");
    let found = fixture.gateway.store().conversation_at(super::address("c"), fixture.gateway.now()).await.unwrap();
    assert!(found.is_none());
}

#[tokio::test]
async fn an_error_of_the_store_is_not_shown_to_a_program_or_a_chat() {
    let fixture = fixture(open_channel).await;
    fixture.world.store.close().await;
    let refused = fixture.inbox.message(message("1", "c", "alice")).await.unwrap_err();
    assert_eq!(refused.0, "internal error of the gateway; its log has the cause");
    let command = ChatCommand {
        name: "status".to_owned(),
        argument: String::new(),
        author: author("alice"),
        address: address("c"),
    };
    assert_eq!(fixture.inbox.command(command).await.unwrap_err().0, refused.0);
}

#[tokio::test]
async fn an_album_is_one_message_by_each_of_its_ids() {
    let fixture = fixture(open_channel).await;
    let album = Message { ids: vec!["1".into(), "2".into()], ..message("1", "c", "alice") };
    assert!(matches!(fixture.inbox.message(album).await.unwrap(), Receipt::Accepted { .. }));
    assert_eq!(fixture.inbox.message(message("2", "c", "alice")).await.unwrap(), Receipt::Duplicate);
}

#[tokio::test]
async fn threads_are_conversations_of_their_own() {
    let fixture = fixture(open_channel).await;
    fixture.inbox.message(message("1", "c", "alice")).await.unwrap();
    let threaded = Message { address: Address { thread: "t".into(), ..address("c") }, ..message("2", "c", "alice") };
    fixture.inbox.message(threaded).await.unwrap();
    assert_eq!(fixture.conversation("c").await.queued, 1);
}

#[tokio::test]
async fn messages_of_programs_are_ignored_by_default_and_cannot_loop() {
    let bot = |id: &str| Message { author: Author { is_bot: true, ..author("bot") }, ..message(id, "c", "bot") };
    let closed = fixture(open_channel).await;
    assert_eq!(closed.inbox.message(bot("1")).await.unwrap(), Receipt::Ignored);
    let open = fixture(|config| {
        open_channel(config);
        config.channels.bots.accept = true;
        config.channels.bots.max_in_a_row = 2;
    })
    .await;
    let mut accepted = 0;
    for id in ["1", "2", "3", "4"] {
        accepted += u32::from(matches!(open.inbox.message(bot(id)).await.unwrap(), Receipt::Accepted { .. }));
    }
    assert_eq!(accepted, 2);
    open.inbox.message(message("5", "c", "alice")).await.unwrap();
    assert!(matches!(open.inbox.message(bot("6")).await.unwrap(), Receipt::Accepted { .. }));
}

#[tokio::test]
async fn a_full_queue_is_reported_to_the_author_and_large_attachments_are_refused() {
    let fixture = fixture(|config| {
        open_channel(config);
        config.limits.queue_per_chat = 1;
        config.limits.attachment_bytes = 3;
    })
    .await;
    fixture.inbox.message(message("1", "c", "alice")).await.unwrap();
    assert!(matches!(fixture.inbox.message(message("2", "c", "alice")).await.unwrap(), Receipt::Busy(_)));
    let attachment = Attachment { name: "a".into(), media_type: "text/plain".into(), bytes: b"four".to_vec() };
    let large = Message { attachments: vec![attachment], ..message("3", "d", "alice") };
    let receipt = fixture.inbox.message(large).await.unwrap();
    assert!(matches!(&receipt, Receipt::Refused(text) if text.contains("the limit is 3")), "{receipt:?}");
}

#[tokio::test]
async fn an_edit_replaces_a_waiting_message_and_an_unknown_one_has_no_effect() {
    let fixture = fixture(open_channel).await;
    fixture.inbox.message(message("1", "c", "alice")).await.unwrap();
    for (id, expected) in [("1", EditOutcome::Edited), ("unknown", EditOutcome::Unknown)] {
        let outcome = fixture.inbox.edit(Edit { id: id.into(), text: "changed".into() }).await.unwrap();
        assert_eq!(outcome, expected, "{id}");
    }
    let empty = fixture.inbox.edit(Edit { id: "1".into(), text: " ".into() }).await.unwrap();
    assert!(matches!(empty, EditOutcome::Refused(_)), "{empty:?}");
    let turns = fixture.gateway.store().open_turns(fixture.conversation("c").await.id).await.unwrap();
    assert_eq!(turns[0].message.text, "changed");
    fixture.gateway.abort_turn(turns[0].id).await.unwrap();
    let late = fixture.inbox.edit(Edit { id: "1".into(), text: "again".into() }).await.unwrap();
    assert_eq!(late, EditOutcome::NotWaiting);
}

#[tokio::test]
async fn a_message_that_was_removed_while_it_waits_is_not_answered() {
    let fixture = fixture(open_channel).await;
    fixture.inbox.message(message("1", "c", "alice")).await.unwrap();
    let conversation = fixture.conversation("c").await.id;
    fixture.inbox.delete("unknown").await.unwrap();
    assert_eq!(fixture.gateway.store().open_turns(conversation).await.unwrap().len(), 1);
    for _ in 0..2 {
        fixture.inbox.delete("1").await.unwrap();
        assert!(fixture.gateway.store().open_turns(conversation).await.unwrap().is_empty());
    }
}

/// A hook of accepted messages that rejects or rewrites some words.
fn moderation() -> HookConfig {
    let script = r#"event=$(cat)
case $event in
    *forbidden*) echo '{"decision": "reject", "reason": "a word is not permitted"}' ;;
    *rude*) echo '{"text": "polite"}' ;;
    *) echo '{}' ;;
esac"#;
    HookConfig {
        name: "moderation".to_owned(),
        events: vec![HookEventKind::MessageAccepted],
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        on_failure: OnFailure::Closed,
        ..HookConfig::default()
    }
}

#[tokio::test]
async fn an_edit_passes_the_same_checks_as_a_new_message() {
    let fixture = fixture(|config| {
        open_channel(config);
        config.hooks = vec![moderation()];
    })
    .await;
    fixture.inbox.message(message("1", "c", "alice")).await.unwrap();
    let conversation = fixture.conversation("c").await.id;
    for (text, expected) in [("a forbidden word", "hello"), ("rude", "polite"), ("forbidden again", "polite")] {
        let outcome = fixture.inbox.edit(Edit { id: "1".into(), text: text.into() }).await.unwrap();
        assert_eq!(matches!(outcome, EditOutcome::Refused(_)), text.contains("forbidden"), "{outcome:?}");
        let turns = fixture.gateway.store().open_turns(conversation).await.unwrap();
        assert_eq!(turns[0].message.text, expected, "{text}");
    }
    let page = fixture.gateway.store().deliveries(DeliveryFilter::default(), PageRequest::first(9)).await.unwrap();
    assert_eq!(page.items.len(), 2, "the chat learns that an edit was rejected");
    let notice: serde_json::Value = page.items[0].body.to().unwrap();
    assert!(notice["content"]["text"].as_str().unwrap().contains("a word is not permitted"), "{notice}");
}

#[tokio::test]
async fn an_author_whom_a_rule_rejects_by_now_cannot_edit() {
    let open = fixture(open_channel).await;
    open.inbox.message(message("1", "c", "alice")).await.unwrap();
    // The operator has changed the rules in between.
    let mut world = open.world;
    world.config.rules.insert(0, Rule { reject: true, ..named("alice") });
    let gateway = world.gateway();
    let rejected = gateway.edit_message("double", "1", "changed").await;
    assert!(matches!(rejected, Err(crate::GatewayError::Rejected { .. })), "{rejected:?}");
    let turn = gateway.store().turn_of_message("double".to_owned(), "1".to_owned()).await.unwrap().unwrap();
    assert_eq!(turn.message.text, "hello");
}

#[tokio::test]
async fn a_message_through_the_api_is_not_that_of_a_chats_author_with_the_same_name() {
    let fixture = fixture(|config| {
        let rule = Rule { channel: Some("double".to_owned()), ..Rule::default() };
        config.rules = vec![Rule { reject: true, channel: Some("http".to_owned()), ..named("mallory") }, rule];
    })
    .await;
    fixture.inbox.message(message("1", "c", "mallory")).await.unwrap();
    let conversation = fixture.conversation("c").await.id;
    let through_api = |author: &str| IncomingMessage {
        target: MessageTarget::Conversation(conversation),
        channel_ids: Vec::new(),
        idempotency: None,
        author: author.to_owned(),
        text: "hello".to_owned(),
        attachments: Vec::new(),
        mode: MessageMode::Queue,
    };
    let rejected = fixture.gateway.accept(through_api("mallory")).await;
    assert!(matches!(rejected, Err(crate::GatewayError::Rejected { .. })), "{rejected:?}");
    let accepted = fixture.gateway.accept(through_api("alice")).await.unwrap();
    let turns = fixture.gateway.store().open_turns(conversation).await.unwrap();
    let by_api = |turn: &teamster_store::Turn| is_by_api(&turn.message).unwrap();
    assert_eq!(turns.iter().map(by_api).collect::<Vec<_>>(), [false, true]);
    assert_eq!(turns[1].id, accepted.turn.turn);
}

#[tokio::test]
async fn state_belongs_to_its_channel() {
    let fixture = fixture(open_channel).await;
    assert_eq!(fixture.inbox.state("offset").await.unwrap(), None);
    fixture.inbox.set_state("offset", 7.into()).await.unwrap();
    assert_eq!(fixture.inbox.state("offset").await.unwrap(), Some(7.into()));
    assert!(fixture.gateway.store().channel_state("double:offset".to_owned()).await.unwrap().is_some());
}

#[tokio::test]
async fn agent_and_model_are_selected_for_the_conversation_also_before_its_first_message() {
    let fixture = fixture(open_channel).await;
    assert!(fixture.command("agent", "").await.contains("`claude`"));
    assert!(fixture.command("agent", "no-such-agent").await.contains("no-such-agent"));
    assert!(fixture.command("agent", "codex").await.contains("`codex` from the next turn"));
    assert!(fixture.command("model", "gpt").await.contains("`gpt`"));
    assert!(fixture.command("model", "").await.contains("`gpt`"));
    assert_eq!(fixture.conversation("c").await.agent, "codex");
    fixture.command("agent", "claude").await;
    assert!(!fixture.command("model", "").await.contains("`gpt`"), "a model belongs to its agent");
    assert!(fixture.command("status", "").await.contains("- State: idle"));
    assert!(fixture.command("usage", "").await.contains("- In all: 0 tokens in"));
    assert!(fixture.command("rm", "-rf").await.contains("There is no command `rm`"));
}

#[tokio::test]
async fn a_command_cannot_change_the_agent_or_the_model_of_a_rule() {
    let fixture = fixture(|config| {
        let (agent, model) = (Some("claude".to_owned()), Some("haiku".to_owned()));
        config.rules = vec![Rule { channel: Some("double".to_owned()), agent, model, ..Rule::default() }];
    })
    .await;
    for (name, argument) in [("agent", "codex"), ("agent", "claude"), ("model", "opus"), ("model", "default")] {
        let reply = fixture.command(name, argument).await;
        assert!(reply.contains("a rule of the operator selects"), "{name} {argument}: {reply}");
    }
    let conversation = fixture.conversation("c").await;
    assert_eq!((conversation.agent.as_str(), conversation.version), ("claude", 1), "nothing was changed");
    assert!(fixture.command("status", "").await.contains("- Model: `haiku`"));
}

#[tokio::test]
async fn a_name_of_a_command_has_a_bounded_length() {
    let fixture = fixture(open_channel).await;
    for name in ["agent", "model"] {
        let reply = fixture.command(name, &"x".repeat(501)).await;
        assert!(reply.contains("at most 500 characters"), "{reply}");
    }
}

#[tokio::test]
async fn stop_ends_the_turn_that_waits_and_new_starts_anew() {
    let fixture = fixture(open_channel).await;
    assert_eq!(fixture.command("stop", "").await, "There is no conversation here yet.");
    fixture.inbox.message(message("1", "c", "alice")).await.unwrap();
    fixture.inbox.message(message("2", "c", "alice")).await.unwrap();
    assert_eq!(fixture.command("stop", "").await, "The waiting turn is stopped. 1 more waiting.");
    assert!(fixture.command("new", "").await.starts_with("The agent gets a new session"));
    let conversation = fixture.conversation("c").await;
    let turns = fixture.gateway.store().turns(conversation.id, PageRequest::first(9)).await.unwrap().items;
    assert_eq!(turns[0].state, TurnState::Aborted);
    let log = fixture.gateway.store().events(conversation.id, teamster_store::Seq::START, 99).await.unwrap();
    assert_eq!(log.events.last().unwrap().kind, "conversation_restarted");
}

#[tokio::test]
async fn a_stranger_cannot_run_commands() {
    let fixture = fixture(|config| config.rules = vec![named("bob")]).await;
    assert_eq!(fixture.command("agent", "codex").await, "You may not use this gateway.");
    let found = fixture.gateway.store().conversation_at(super::address("c"), fixture.gateway.now()).await.unwrap();
    assert!(found.is_none());
}

#[tokio::test]
async fn a_message_does_not_pass_an_earlier_one_whose_hook_is_slow() {
    let directory = tempfile::tempdir().unwrap();
    // The call for the first message waits a little for that of the second.
    let script = "if grep -q first; then n=0; while [ ! -e second ] && [ $n -lt 30 ]; do sleep 0.01; n=$((n+1)); done; \
                  else touch second; fi";
    let fixture = fixture(|config| {
        open_channel(config);
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        config.hooks = vec![HookConfig { command, directory: Some(directory.path().to_owned()), ..moderation() }];
    })
    .await;
    let written = |id: &str| Message { text: id.to_owned(), ..message(id, "c", "alice") };
    let (first, second) = (written("first"), written("second"));
    let (first, second) = tokio::join!(fixture.inbox.message(first), fixture.inbox.message(second));
    assert!(matches!((first, second), (Ok(Receipt::Accepted { .. }), Ok(Receipt::Accepted { .. }))));
    let conversation = fixture.conversation("c").await;
    let log = fixture.gateway.store().events(conversation.id, teamster_store::Seq::START, 10).await.unwrap();
    let text = |event: &teamster_store::Event| event.body.to::<serde_json::Value>().unwrap()["text"].clone();
    let texts: Vec<_> = log.events.iter().map(text).collect();
    assert_eq!(texts, ["first", "second"]);
}
