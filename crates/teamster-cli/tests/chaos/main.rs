//! The gateway under SIGKILLs: programs send messages by HTTP and by signed webhooks, and people write in Telegram, Discord and
//! Slack, while the process is killed repeatedly. A checker reads the API, the webhook's receiver and the chats. It verifies that
//! each message was answered exactly once and in order, that no log and no stream has a gap, and that no permission was granted
//! which no client gave.
//!
//! The variable `TEAMSTER_CHAOS` sets the size: `messages=2000,conversations=100,kills=50,rounds=3`. `point=NAME` selects one
//! failpoint.

#![expect(
    clippy::disallowed_macros,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "the lints take helpers of tests for library code, and the summary is for the person who runs the test"
)]

mod agents;
mod approver;
mod attempts;
mod chats;
mod checker;
mod client;
mod follower;
mod gateway;
mod plan;
mod receiver;
#[cfg(all(feature = "discord", feature = "slack", feature = "telegram"))]
mod services;
mod sse;
mod traffic;
mod webhook;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use teamster_gateway::FAILPOINTS;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::checker::Observations;
use crate::client::Client;
use crate::follower::Follower;
use crate::gateway::{GatewayProcess, Setup, TURN};
use crate::plan::{Plan, one_in};
use crate::receiver::{Fates, Receiver};
use crate::traffic::Address;
use crate::webhook::Approvals;

/// The time in which a failpoint must be reached.
const REACH: Duration = Duration::from_secs(30);

/// The number of conversations that have a subscriber of their own.
const FOLLOWED: usize = 4;

/// A gateway with the programs around it.
struct World {
    gateway: Arc<GatewayProcess>,
    client: Client,
    receiver: Receiver,
    approvals: Approvals,
    /// They answer permission requests.
    approvers: Vec<JoinHandle<()>>,
}

impl World {
    /// Starts the gateway and the programs.
    async fn start(setup: Setup, fates: Fates) -> Self {
        // The result is an error if another test of this process was first.
        _ = rustls::crypto::ring::default_provider().install_default();
        let (receiver, prompts) = Receiver::start(fates).await;
        let gateway = Arc::new(GatewayProcess::new(&webhook::configuration(&receiver.url), setup));
        gateway.start(None).await;
        let (client, approvals) = (Client::new(&gateway), Approvals::default());
        let approvers = vec![
            tokio::spawn(client.clone().answer_requests(approvals.clone())),
            tokio::spawn(client.clone().press_buttons(prompts, approvals.clone())),
        ];
        Self { gateway, client, receiver, approvals, approvers }
    }

    /// Waits for the end of all work, checks everything, and stops the gateway. Returns the checker's summary.
    async fn finish(
        self,
        sent: &[traffic::SentMessage],
        followers: Vec<(Address, Follower)>,
        feed: Option<Follower>,
    ) -> String {
        let Self { gateway, client, receiver, approvals, approvers } = self;
        client.wait_until_idle(Plan::from_variable().settle()).await;
        for approver in approvers {
            assert!(!approver.is_finished(), "an approver has failed");
            approver.abort();
        }
        let observations =
            Observations { client: &client, receiver: &receiver, sent, approvals: &approvals, followers, feed };
        let summary = checker::check(observations).await;
        gateway.stop().await;
        gateway.assert_no_process_is_left();
        summary
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_is_answered_once_and_in_order_however_often_the_gateway_is_killed() {
    let plan = Plan::from_variable();
    let world = World::start(Setup { behaviors: agents::ALL, idle_sessions: 6, turn: TURN }, receiver::ALL).await;
    let (gateway, client) = (Arc::clone(&world.gateway), world.client.clone());
    let addresses = client.create_conversations(plan.conversations).await;
    let follow = |address: &Address| match address {
        Address::Http(id) => {
            Some((address.clone(), Follower::start(&client, format!("/v1/conversations/{id}/events"))))
        }
        Address::Webhook { .. } => None,
    };
    let followers: Vec<_> = addresses.iter().filter_map(follow).take(FOLLOWED).collect();
    let feed = Follower::start(&client, "/v1/events".to_owned());
    let permits = Arc::new(Semaphore::new(0));
    let sending = tokio::spawn({
        let (client, addresses, permits) = (client.clone(), addresses.clone(), Arc::clone(&permits));
        async move { client.send_all(&addresses, plan.messages, &permits).await }
    });
    let began = Instant::now();
    for _ in 0..plan.kills {
        // Messages arrive during the whole test.
        permits.add_permits(plan.messages / usize::try_from(plan.kills).expect("a small number"));
        gateway.run_for_a_while().await;
        gateway.kill();
        gateway.start(None).await;
        if one_in(6) {
            gateway.pause().await;
        }
        if one_in(6) {
            gateway.stop().await;
            gateway.start(None).await;
        }
    }
    permits.add_permits(plan.messages);
    let sent = sending.await.expect("all messages are accepted");
    let killed = began.elapsed();
    let summary = world.finish(&sent, followers, Some(feed)).await;
    let (messages, kills, all) = (sent.len(), plan.kills, began.elapsed());
    println!("{messages} messages, {kills} kills in {killed:.0?}, {all:.0?} in all: {summary}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_agent_of_a_killed_gateway_is_left_when_the_next_one_accepts_messages() {
    // No turn reaches its time limit before the kill.
    let setup = Setup { behaviors: agents::STUBBORN_ONLY, idle_sessions: 6, turn: Duration::from_mins(10) };
    let world = World::start(setup, receiver::QUICK).await;
    let (gateway, client) = (Arc::clone(&world.gateway), world.client.clone());
    let mut sent = Vec::new();
    for address in client.create_conversations(2).await {
        // An abort could end the turn before its text.
        sent.push(client.send(address, &format!("message {}", sent.len()), false).await);
    }
    for conversation in client.conversations().await.values().filter(|one| one["state"] != "idle") {
        client.wait_for_event(conversation["id"].as_str().expect("an id"), "text").await;
    }
    gateway.kill();
    // The start checks it.
    gateway.start(None).await;
    let summary = world.finish(&sent, Vec::new(), None).await;
    println!("{summary}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_between_any_two_durable_steps_loses_and_repeats_nothing() {
    let plan = Plan::from_variable();
    let world = World::start(Setup { behaviors: agents::QUICK, idle_sessions: 0, turn: TURN }, receiver::QUICK).await;
    let (gateway, client) = (Arc::clone(&world.gateway), world.client.clone());
    let addresses = client.create_conversations(8).await;
    let over = Arc::new(AtomicBool::new(false));
    let sending = tokio::spawn({
        let (client, over) = (client.clone(), Arc::clone(&over));
        async move { client.send_until(&addresses, &over).await }
    });
    let began = Instant::now();
    gateway.kill();
    for count in 1..=plan.rounds {
        for name in FAILPOINTS.iter().filter(|name| plan.point.as_ref().is_none_or(|only| only == *name)) {
            let started = Instant::now();
            gateway.start(Some(&format!("{name}:{count}"))).await;
            let is_reached = gateway.ends_within(REACH).await;
            assert!(is_reached, "{name} is not reached {count} times\n{}", gateway.log());
            println!("{name}:{count} after {:.1?}", started.elapsed());
        }
    }
    gateway.start(None).await;
    over.store(true, Ordering::Relaxed);
    let sent = sending.await.expect("all messages are accepted");
    let summary = world.finish(&sent, Vec::new(), None).await;
    println!("{} messages in {:.0?}: {summary}", sent.len(), began.elapsed());
}

/// The chat services permit few messages a second, so this test sends about half of `messages`.
#[cfg(all(feature = "discord", feature = "slack", feature = "telegram"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_message_in_a_chat_service_is_answered_once_however_often_the_gateway_is_killed() {
    _ = rustls::crypto::ring::default_provider().install_default();
    let plan = Plan::from_variable();
    let services = services::Services::start().await;
    let (tables, files) = services.configuration();
    let gateway =
        Arc::new(GatewayProcess::new(&tables, Setup { behaviors: agents::ALL, idle_sessions: 6, turn: TURN }));
    for (name, text) in &files {
        gateway.write_secret(name, text);
    }
    gateway.start(None).await;
    services.wait_for_bots(REACH).await;
    let client = Client::new(&gateway);
    let presser = tokio::spawn(services::press_buttons(services.clone()));
    let began = Instant::now();
    let batch = plan.messages / 2 / usize::try_from(plan.kills + 1).expect("a small number");
    for _ in 0..plan.kills {
        (0..batch).for_each(|_| services.write_somewhere());
        gateway.run_for_a_while().await;
        gateway.kill();
        gateway.start(None).await;
        if one_in(6) {
            gateway.pause().await;
        }
    }
    (0..batch).for_each(|_| services.write_somewhere());
    services.wait_until_accepted(&client, plan.settle()).await;
    client.wait_until_idle(plan.settle()).await;
    assert!(!presser.is_finished(), "the task that presses buttons has failed");
    presser.abort();
    let summary = services::check(&services, &client).await;
    gateway.stop().await;
    gateway.assert_no_process_is_left();
    let (messages, kills, all) =
        (batch * usize::try_from(plan.kills + 1).expect("a small number"), plan.kills, began.elapsed());
    println!("{messages} messages, {kills} kills, {all:.0?} in all: {summary}");
}
