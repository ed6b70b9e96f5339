//! The status of a channel that cannot be used.

use std::sync::Arc;

use async_trait::async_trait;
use teamster_channel::{Capabilities, Channel, ChannelError, Inbox, Outgoing, SendOutcome};
use tokio_util::sync::CancellationToken;

use super::service::Service;
use super::{World, address, answer, shut_down, until};
use crate::channels::{CheckError, check};

/// A channel whose service rejects its token.
struct Rejected {
    receives: bool,
}

fn rejected() -> ChannelError {
    ChannelError::Credentials { service: "the double", reason: "the token is revoked".to_owned() }
}

#[async_trait]
impl Channel for Rejected {
    fn name(&self) -> &'static str {
        "double"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn check(&self) -> Result<(), ChannelError> {
        Err(rejected())
    }

    async fn receive(&self, _inbox: &dyn Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        if self.receives {
            stop.cancelled().await;
            return Ok(());
        }
        Err(rejected())
    }

    async fn send(&self, _outgoing: &Outgoing) -> SendOutcome {
        SendOutcome::Unknown("not used".to_owned())
    }
}

#[tokio::test]
async fn the_operator_sees_why_a_channel_cannot_be_used_since_its_start() {
    for receives in [true, false] {
        let channel = Arc::new(Rejected { receives });
        let expected = "the double rejects the credentials: the token is revoked";
        assert_eq!(check(&*channel).await, Err(CheckError::Unusable(expected.to_owned())));
        let world = World::new(channel).await;
        let (gateway, mut tasks) = world.start();
        let status = || gateway.channel_status().remove("double").unwrap_or_default();
        until("the failure is visible", || {
            let status = status();
            status.last_error.as_deref() == Some(expected) && status.receives == receives
        })
        .await;
        assert!(status().failed_at.is_some());
        shut_down(&gateway, &mut tasks).await;
        assert!(!status().receives);
    }
}

#[tokio::test]
async fn the_operator_sees_the_deliveries_of_a_channel_that_is_no_longer_configured() {
    let mut world = World::new(Service::new([]).shared()).await;
    let idle = world.gateway();
    answer(&idle, "a", "first").await;
    answer(&idle, "b", "second").await;
    let double = std::mem::take(&mut world.channels);
    let (gateway, mut tasks) = world.start();
    let status = || gateway.channel_status().remove(&address("a").channel).unwrap_or_default();
    until("the status has the deliveries", || status().last_error.is_some()).await;
    let expected = "the channel is not configured, and 2 deliveries wait for it";
    assert_eq!(status().last_error.as_deref(), Some(expected));
    assert!(!status().receives);
    shut_down(&gateway, &mut tasks).await;
    world.channels = double;
    let (gateway, mut tasks) = world.start();
    let sent = world.settled().await;
    assert_eq!(sent, [teamster_store::DeliveryState::Sent; 2], "they are sent when it is configured again");
    shut_down(&gateway, &mut tasks).await;
}
