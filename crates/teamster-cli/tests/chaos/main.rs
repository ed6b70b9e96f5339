//! The gateway under SIGKILLs: clients send messages by HTTP while the process is killed again and again, and a checker that
//! sees only the API verifies that each message was answered exactly once, in order, without a gap in any log.
//!
//! The variable `TEAMSTER_CHAOS` sets the size, as `messages=2000,conversations=100,kills=50`.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]
#![expect(clippy::disallowed_macros, reason = "the summary is for the person who runs the test")]

mod checker;
mod client;
mod gateway;
mod plan;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plan::Plan;
use teamster_gateway::FAILPOINTS;

use crate::client::Client;
use crate::gateway::GatewayProcess;

/// The time in which all messages must have ended after the last kill.
const SETTLE: Duration = Duration::from_mins(5);

fn install_tls() {
    // The result is an error if another test of this process was first.
    _ = rustls::crypto::ring::default_provider().install_default();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_is_answered_once_and_in_order_however_often_the_gateway_is_killed() {
    install_tls();
    let plan = Plan::from_variable();
    let gateway = Arc::new(GatewayProcess::new());
    gateway.start(None).await;
    let client = Client::new(&gateway);
    let conversations = client.create_conversations(plan.conversations).await;
    let over = Arc::new(AtomicBool::new(false));
    let approving = tokio::spawn(client.clone().approve_until(Arc::clone(&over)));
    let sending = tokio::spawn({
        let (client, conversations) = (client.clone(), conversations.clone());
        async move { client.send_all(&conversations, plan.messages).await }
    });
    let began = Instant::now();
    for _ in 0..plan.kills {
        gateway.run_for_a_while().await;
        gateway.kill();
        gateway.start(None).await;
    }
    let sent = sending.await.expect("all messages are accepted");
    client.wait_until_ended(&sent, SETTLE).await;
    over.store(true, Ordering::Relaxed);
    let approved = approving.await.expect("the approver ends");
    let summary = checker::check(&client, &conversations, &sent, &approved).await;
    println!("{} messages, {} kills, {:.0?}: {summary}", sent.len(), plan.kills, began.elapsed());
    gateway.stop().await;
    gateway.assert_no_process_is_left();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_between_any_two_durable_steps_loses_and_repeats_nothing() {
    install_tls();
    for name in FAILPOINTS {
        for count in [1, 3] {
            let gateway = Arc::new(GatewayProcess::new());
            gateway.start(Some(&format!("{name}:{count}"))).await;
            let client = Client::new(&gateway);
            let over = Arc::new(AtomicBool::new(false));
            let approving = tokio::spawn(client.clone().approve_until(Arc::clone(&over)));
            let restarting = tokio::spawn({
                let (gateway, over) = (Arc::clone(&gateway), Arc::clone(&over));
                async move { gateway.restart_when_dead(&over).await }
            });
            let conversations = client.create_conversations(2).await;
            let sent = client.send_all(&conversations, 8).await;
            client.wait_until_ended(&sent, SETTLE).await;
            over.store(true, Ordering::Relaxed);
            let approved = approving.await.expect("the approver ends");
            restarting.await.expect("the restarts end");
            checker::check(&client, &conversations, &sent, &approved).await;
            gateway.stop().await;
            gateway.assert_no_process_is_left();
        }
    }
}
