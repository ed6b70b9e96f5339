//! Permission requests in a chat: who may answer, how often, and with which token.

use std::time::Duration;

use teamster_channel::{Address, Author, Button, Content, Inbox as _, PromptAnswer, PromptDecision};
use teamster_store::{
    Claim, ClaimRequest, Effects, HostId, Json, NewPermission, PermissionId, PermissionOutcome, WorkStore as _,
};
use uuid::Uuid;

use super::service::Service;
use super::{World, accept, address, events, shut_down};
use crate::channels::deliveries::{self, Choice, Recipient};
use crate::channels::inbox::ChannelInbox;
use crate::config::Rule;
use crate::engine::Gateway;
use teamster_store::Decision;

/// Starts a turn that waits for a permission, and returns the request.
pub(super) async fn request(gateway: &Gateway, world: &World, approvers: &[&str]) -> (Claim, PermissionId) {
    let claim = ClaimRequest {
        worker: gateway.worker().clone(),
        host: HostId::new("host"),
        lease_for: Duration::from_mins(1),
        max_running: 9,
        max_running_per_chat: 9,
        affinity: Duration::ZERO,
    };
    let claim = world.store.claim(claim, gateway.now()).await.unwrap().unwrap();
    let id = PermissionId::new(Uuid::now_v7());
    let to = Recipient::of_turn(claim.lease, &claim.conversation.address, gateway.now());
    let choice = |label: &str, decision| Choice { label: label.into(), decision, message: None, takes_text: false };
    let choices =
        [choice("Allow", Decision::Allow), choice("Always", Decision::AllowAlways), choice("Deny", Decision::Deny)];
    let deliveries = deliveries::prompt(&to, id, "May I?", &choices).unwrap();
    let body = Json::of(&serde_json::json!({"approvers": approvers})).unwrap();
    let new = NewPermission { id, body, deadline: gateway.now().after(Duration::from_mins(10)) };
    let effects = Effects { events: Vec::new(), deliveries };
    gateway.store().request_permission(claim.lease, new, effects, gateway.now()).await.unwrap();
    gateway.announce_growth(claim.conversation.id);
    (claim, id)
}

/// Returns the prompt that a chat with these approvers gets.
fn shown(approvers: &[&str]) -> teamster_channel::Prompt {
    shown_command(approvers, "rm -rf /")
}

fn shown_command(approvers: &[&str], command: &str) -> teamster_channel::Prompt {
    let input = serde_json::json!({"command": command});
    let request = serde_json::json!({"requestId": "r", "toolName": "Bash", "input": input, "options": []});
    let request: teamster::event::PermissionRequest = serde_json::from_value(request).unwrap();
    let address = address("c");
    let conversation = teamster_store::ConversationId::new(Uuid::now_v7());
    let to = Recipient::of_conversation(conversation, &address, teamster_store::Timestamp::from_millis(0));
    let approvers: Vec<_> = approvers.iter().map(|id| (*id).to_owned()).collect();
    let id = PermissionId::new(Uuid::from_u128(1));
    let deliveries = deliveries::permission_prompt(&to, id, &request, &approvers).unwrap();
    let body: serde_json::Value = deliveries[0].body.to().unwrap();
    let Content::Prompt(prompt) = serde_json::from_value(body["content"].clone()).unwrap() else { panic!("a prompt") };
    prompt
}

#[test]
fn a_chat_gets_no_buttons_if_none_of_its_members_may_answer() {
    for approvers in [&[][..], &["http:alice"], &["token:1"], &["double2:alice"]] {
        let prompt = shown(approvers);
        assert!(prompt.buttons.is_empty(), "{approvers:?}");
        assert!(prompt.text.contains("rm -rf /"), "{}", prompt.text);
        let id = Uuid::from_u128(1);
        assert!(prompt.text.ends_with(&format!("or with `teamster approve {id}`.")), "{}", prompt.text);
    }
    for approvers in [&["double:alice"][..], &["*"]] {
        let prompt = shown(approvers);
        assert_eq!(prompt.buttons.len(), 2, "{approvers:?}");
        assert!(!prompt.text.contains("teamster approve"), "{}", prompt.text);
    }
}

#[test]
fn a_chat_cannot_allow_what_it_does_not_show() {
    let whole = shown_command(&["*"], &"x".repeat(11_000));
    let labels = |prompt: &teamster_channel::Prompt| {
        prompt.buttons.iter().map(|button| button.label.clone()).collect::<Vec<_>>()
    };
    assert_eq!(labels(&whole), ["Allow", "Deny"]);
    assert!(whole.text.contains(&"x".repeat(11_000)));
    let long = shown_command(&["*"], &"x".repeat(13_000));
    assert_eq!(labels(&long), ["Deny"]);
    assert!(long.text.contains("Parts of the call are hidden here"), "{}", long.text);
    assert!(long.text.contains("teamster approve"), "{}", long.text);
}

fn press(token: &str, author: &str, chat: &str) -> PromptAnswer {
    PromptAnswer {
        token: token.to_owned(),
        message: None,
        author: Author { id: author.into(), name: String::new(), is_bot: false },
        address: Address { chat: chat.into(), thread: String::new() },
    }
}

#[tokio::test]
async fn a_press_is_applied_once_for_an_approver_and_a_refused_one_uses_nothing_up() {
    let service = Service::new([]).shared();
    let mut world = World::new(service.clone()).await;
    world.config.rules = vec![Rule { channel: Some("double".into()), ..Rule::default() }];
    let (gateway, mut tasks) = world.start();
    let accepted = accept(&gateway, address("c")).await;
    let (_, id) = request(&gateway, &world, &["double:alice"]).await;
    world.settled().await;
    let shown = service.shown();
    let Content::Prompt(prompt) = &shown[0].content else { panic!("{shown:?}") };
    let [allow, always, deny]: &[Button; 3] = prompt.buttons.as_slice().try_into().unwrap();
    let inbox = ChannelInbox::new(gateway.clone(), &*service);
    let other = if allow.token.ends_with('A') { 'E' } else { 'A' };
    let wrong_end = format!("{}{other}", allow.token.get(..allow.token.len() - 1).unwrap());
    for (answer, wanted) in [
        (press("approve", "alice", "c"), PromptDecision::Closed),
        (press(&wrong_end, "alice", "c"), PromptDecision::Closed),
        (press(&allow.token, "alice", "other"), PromptDecision::Closed),
        (press(&allow.token, "mallory", "c"), PromptDecision::NotAllowed),
        (press(&deny.token, "alice", "c"), PromptDecision::Applied),
        (press(&allow.token, "alice", "c"), PromptDecision::Closed),
        (press(&always.token, "mallory", "c"), PromptDecision::NotAllowed),
    ] {
        assert_eq!(inbox.answer(answer.clone()).await.unwrap(), wanted, "{}", answer.author.id);
    }
    let permission = gateway.store().permission(id).await.unwrap().unwrap();
    let closing = permission.closing.unwrap();
    assert_eq!((closing.outcome, closing.by.as_deref()), (PermissionOutcome::Denied, Some("double:alice")));
    assert_eq!(events(&gateway, accepted, "permission_answered").await.len(), 1);
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    assert_eq!(service.texts("c")[1], "Denied by `double:alice`.");
}

#[tokio::test]
async fn a_press_after_a_restart_is_applied_and_the_prompt_loses_its_buttons_where_the_service_can_edit() {
    let mut service = Service::new([]);
    service.capabilities.edits = true;
    let service = service.shared();
    let mut world = World::new(service.clone()).await;
    world.config.rules = vec![Rule { channel: Some("double".into()), ..Rule::default() }];
    let (gateway, tasks) = world.start();
    accept(&gateway, address("c")).await;
    request(&gateway, &world, &["double:alice"]).await;
    world.settled().await;
    drop(tasks);
    let (gateway, mut tasks) = world.start();
    let Content::Prompt(prompt) = service.shown()[0].content.clone() else { panic!("it is a prompt") };
    let inbox = ChannelInbox::new(gateway.clone(), &*service);
    let pressed = inbox.answer(press(&prompt.buttons[1].token, "alice", "c")).await.unwrap();
    assert_eq!(pressed, PromptDecision::Applied);
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    let shown = service.shown();
    assert_eq!(shown.len(), 1);
    assert!(matches!(&shown[0].content, Content::PromptClosed { outcome, .. } if outcome == "allow_always"));
}

#[tokio::test]
async fn the_end_of_a_long_prompt_replaces_the_part_with_the_buttons() {
    let mut service = Service::new([]);
    service.capabilities.edits = true;
    let service = service.shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    let id = PermissionId::new(Uuid::now_v7());
    super::enqueue(&gateway, "c", |to| {
        let deny = Choice { label: "Deny".into(), decision: Decision::Deny, message: None, takes_text: false };
        let prompt = deliveries::prompt(to, id, &"word ".repeat(90), &[deny]).unwrap();
        let closed = deliveries::prompt_closed(to, id, PermissionOutcome::Denied, None).unwrap();
        [prompt, closed].concat()
    })
    .await;
    world.settled().await;
    shut_down(&gateway, &mut tasks).await;
    let shown = service.shown();
    let edits: Vec<_> = shown.iter().map(|shown| shown.edits).collect();
    assert!(shown.len() > 2 && edits[..edits.len() - 1].iter().all(|edits| *edits == 0), "{shown:?}");
    assert!(matches!(shown.last().unwrap().content, Content::PromptClosed { .. }), "{shown:?}");
}

#[tokio::test]
async fn a_chat_where_all_may_answer_has_no_answer_of_a_rejected_author_or_a_program() {
    let service = Service::new([]).shared();
    let mut world = World::new(service.clone()).await;
    let reject =
        Rule { channel: Some("double".into()), authors: Some(vec!["mallory".into()]), reject: true, ..Rule::default() };
    world.config.rules = vec![reject, Rule { channel: Some("double".into()), ..Rule::default() }];
    let (gateway, mut tasks) = world.start();
    accept(&gateway, address("c")).await;
    request(&gateway, &world, &["*"]).await;
    world.settled().await;
    let Content::Prompt(prompt) = service.shown()[0].content.clone() else { panic!("it is a prompt") };
    let inbox = ChannelInbox::new(gateway.clone(), &*service);
    let token = &prompt.buttons[0].token;
    let mut program = press(token, "program", "c");
    program.author.is_bot = true;
    for (answer, wanted) in [
        (press(token, "mallory", "c"), PromptDecision::NotAllowed),
        (program, PromptDecision::NotAllowed),
        (press(token, "bob", "c"), PromptDecision::Applied),
    ] {
        assert_eq!(inbox.answer(answer.clone()).await.unwrap(), wanted, "{}", answer.author.id);
    }
    shut_down(&gateway, &mut tasks).await;
}
