//! Sends one part of a delivery: its start is durable before the call, and its outcome after it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use teamster_channel::{Address, Content, Operation, Outgoing, Part, RateScope, SendError, SendOutcome};
use teamster_store::{Delivery, DeliveryLease, DeliveryStep, PartState, StoreError};

use super::context::Context;
use super::decision::{Attempt, Next, Settlement, UNKNOWN, settle};
use super::failpoint::Step;

/// The longest wait for the rate limit of a service while a delivery is held. For a longer wait, the delivery returns
/// to the queue.
const MAX_PACE_WAIT: Duration = Duration::from_secs(10);

/// An attempt at a delivery, for its parts.
pub(super) struct Job<'a> {
    pub(super) context: &'a Context,
    pub(super) delivery: &'a Delivery,
    pub(super) lease: DeliveryLease,
    pub(super) attempt: Attempt,
    pub(super) bytes: Arc<[u8]>,
    pub(super) count: usize,
}

/// The outcome of a part.
pub(super) enum PartEnd {
    /// The service has it.
    Confirmed,
    /// The attempt ends here.
    Open(Next),
}

impl Job<'_> {
    /// Sends a part, unless it is confirmed.
    pub(super) async fn part(
        &self,
        index: usize,
        content: Content,
        operation: Operation,
    ) -> Result<PartEnd, StoreError> {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let mut outgoing = self.outgoing(number, content, operation);
        match self.state(number) {
            Some(PartState::Sent(_)) => return Ok(PartEnd::Confirmed),
            Some(PartState::Started) => {
                if let Some(end) = self.settle(number, &mut outgoing).await? {
                    return Ok(end);
                }
            }
            None => {}
        }
        self.send(number, outgoing).await
    }

    /// Settles a part whose outcome is unknown. `None`: send it.
    async fn settle(&self, number: u32, outgoing: &mut Outgoing) -> Result<Option<PartEnd>, StoreError> {
        Ok(match self.settlement(outgoing).await {
            Settlement::Confirmed(id) => {
                self.context.step(self.lease, DeliveryStep::PartSent(number, id)).await?;
                Some(PartEnd::Confirmed)
            }
            Settlement::Send { may_be_repeat } => {
                outgoing.may_be_repeat = may_be_repeat;
                None
            }
            Settlement::AskLater(reason) => Some(PartEnd::Open(self.attempt.unknown(&reason))),
            Settlement::Unavailable(reason, after) => Some(PartEnd::Open(self.unavailable(&reason, after))),
            Settlement::Report => {
                let reason = "the gateway or the connection ended during the call";
                Some(PartEnd::Open(Next::Unknown(format!("{UNKNOWN}{reason}"))))
            }
        })
    }

    fn state(&self, number: u32) -> Option<&PartState> {
        self.delivery.parts.iter().find(|part| part.index == number).map(|part| &part.state)
    }

    /// Returns whether an earlier attempt has called the service for this part.
    fn was_started(&self, number: u32) -> bool {
        matches!(self.state(number), Some(PartState::Started))
    }

    async fn settlement(&self, outgoing: &Outgoing) -> Settlement {
        let capabilities = self.context.channel.capabilities();
        let found = tokio::time::timeout(capabilities.send_timeout, self.context.channel.find(outgoing)).await;
        let found = found.unwrap_or_else(|_| Some(SendOutcome::Unknown("the service does not answer".to_owned())));
        let recognized = capabilities.recognizes_repeats_for.is_some_and(|window| self.attempt.age < window);
        let is_requested = self.delivery.error.as_deref().is_some_and(|error| error.starts_with(UNKNOWN));
        let policy = self.context.gateway.config().channels.delivery.unknown;
        settle(found, &outgoing.operation, recognized, is_requested, policy)
    }

    async fn send(&self, number: u32, mut outgoing: Outgoing) -> Result<PartEnd, StoreError> {
        if let Some(next) = self.wait_for_pace().await {
            return Ok(PartEnd::Open(next));
        }
        let outcome = self.call(number, &outgoing).await?;
        if let SendOutcome::NotSent(SendError::Gone(_)) = &outcome
            && outgoing.operation != Operation::New
        {
            outgoing.operation = Operation::New;
            // An earlier attempt may have found the same, and sent a new message already.
            if self.was_started(number)
                && let Some(end) = self.settle(number, &mut outgoing).await?
            {
                return Ok(end);
            }
            let outcome = self.call(number, &outgoing).await?;
            return self.settle_call(number, outcome).await;
        }
        self.settle_call(number, outcome).await
    }

    /// Calls the service. The start is durable before the call.
    async fn call(&self, number: u32, outgoing: &Outgoing) -> Result<SendOutcome, StoreError> {
        let Context { channel, failpoint, .. } = self.context;
        self.context.step(self.lease, DeliveryStep::PartStarted(number)).await?;
        failpoint.reach(Step::Started).await;
        let limit = channel.capabilities().send_timeout;
        self.context.pace().called(&self.delivery.address.chat, Instant::now());
        let outcome = match tokio::time::timeout(limit, channel.send(outgoing)).await {
            Ok(outcome) => outcome,
            Err(_) => SendOutcome::Unknown(format!("the service did not answer within {limit:?}")),
        };
        failpoint.reach(Step::Sent).await;
        Ok(outcome)
    }

    /// Records the outcome of a call, and decides how the attempt continues.
    async fn settle_call(&self, number: u32, outcome: SendOutcome) -> Result<PartEnd, StoreError> {
        let error = match outcome {
            SendOutcome::Sent(delivered) => {
                self.context.step(self.lease, DeliveryStep::PartSent(number, delivered.message_id)).await?;
                return Ok(PartEnd::Confirmed);
            }
            // The part stays started: the next attempt checks with the service.
            SendOutcome::Unknown(reason) => return Ok(PartEnd::Open(self.attempt.unknown(&reason))),
            SendOutcome::NotSent(error) => error,
        };
        // An earlier call for this part may have succeeded; the refusal of this one does not show that it failed.
        if !self.was_started(number) {
            self.context.step(self.lease, DeliveryStep::PartNotSent(number)).await?;
        }
        Ok(PartEnd::Open(match error {
            SendError::Never(reason) | SendError::Gone(reason) => Next::Failed(reason),
            SendError::Later { reason, after, scope } => {
                if let Some(after) = after {
                    self.context.pace().hold(&self.delivery.address.chat, scope, after, Instant::now());
                }
                self.attempt.later(&reason, after)
            }
            SendError::Unavailable { reason, after } => self.unavailable(&reason, after),
        }))
    }

    /// Decides while the service can send nothing. All chats of the channel wait as long as it demands.
    fn unavailable(&self, reason: &str, after: Option<Duration>) -> Next {
        if let Some(after) = after {
            self.context.pace().hold(&self.delivery.address.chat, RateScope::Channel, after, Instant::now());
        }
        self.attempt.unavailable(reason, after)
    }

    /// Waits until the service permits a call. Before a long wait, or at a shutdown, the delivery returns to the queue.
    async fn wait_for_pace(&self) -> Option<Next> {
        let stop = &self.context.stop;
        loop {
            if stop.is_cancelled() {
                return Some(Next::Postpone(self.context.gateway.now()));
            }
            let wait = self.context.pace().reserve(&self.delivery.address.chat, Instant::now());
            let Err(wait) = wait else { return None };
            if wait > MAX_PACE_WAIT {
                return Some(Next::Postpone(self.context.gateway.now().after(wait)));
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn outgoing(&self, index: u32, content: Content, operation: Operation) -> Outgoing {
        let Delivery { key, address, conversation, turn, created_at, .. } = self.delivery;
        Outgoing {
            key: format!("{key}:{index}"),
            address: Address { chat: address.chat.clone(), thread: address.thread.clone() },
            conversation: conversation.map(|id| id.to_string()),
            turn: turn.map(|id| id.to_string()),
            operation,
            content,
            part: Part { index, count: u32::try_from(self.count).unwrap_or(u32::MAX) },
            bytes: Arc::clone(&self.bytes),
            may_be_repeat: false,
            created_at_ms: created_at.as_millis(),
        }
    }
}
