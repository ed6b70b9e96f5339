//! The display of an answer while the agent writes it.

use std::time::Duration;

use serde_json::json;
use teamster::event::Event;
use teamster_channel::SendError;
use teamster_store::Epoch;

use super::service::{Reaction, Service};
use super::{World, accept, address, shut_down, until};
use crate::channels::LiveAnswer;
use crate::channels::deliveries::{self, Recipient};

fn text(text: &str) -> Event {
    serde_json::from_value(json!({"type": "text", "messageId": "m1", "text": text})).unwrap()
}

/// Shows a text by an edit to which the service reacts in this way. Returns the wait of the answer.
async fn wait_after_an_edit(reaction: Reaction) -> Duration {
    let mut service = Service::new([Reaction::Show, reaction]);
    service.capabilities.edits = true;
    service.capabilities.edit_interval = Duration::from_millis(10);
    service.capabilities.send_timeout = Duration::from_millis(100);
    let service = service.shared();
    let world = World::new(service.clone()).await;
    let (gateway, mut tasks) = world.start();
    let address = address("a");
    let accepted = accept(&gateway, address.clone()).await;
    let turn = Some((accepted.turn, Epoch::new(1)));
    let to = Recipient { conversation: accepted.conversation, address: &address, turn, now: gateway.now() };
    let mut live = LiveAnswer::start(&gateway, &to).unwrap();
    assert!(live.push(&text("half of ")), "the first text adds the progress message");
    gateway.store().enqueue(deliveries::progress(&to).unwrap(), gateway.now()).await.unwrap();
    gateway.announce_growth(accepted.conversation);
    until("the text is shown", || service.texts("a") == ["half of"]).await;
    let wait = live.finish().await;
    shut_down(&gateway, &mut tasks).await;
    wait
}

#[tokio::test]
async fn the_answer_waits_until_an_edit_without_a_known_outcome_can_no_longer_replace_it() {
    assert_eq!(wait_after_an_edit(Reaction::Show).await, Duration::ZERO);
    let uncertain = Reaction::Refuse(SendError::later("502"));
    for reaction in [Reaction::ShowAndHang, Reaction::ShowAndLose, uncertain] {
        let wait = wait_after_an_edit(reaction.clone()).await;
        assert!(wait > Duration::from_secs(20) && wait <= Duration::from_secs(30), "{reaction:?}: {wait:?}");
    }
}
