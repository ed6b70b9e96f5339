//! The messages that were sent into a running turn.

use std::collections::VecDeque;
use std::pin::Pin;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use teamster::request::Prompt;
use teamster::{Run, SendError, Sent};

type Sending = Pin<Box<dyn Future<Output = SentMessage> + Send>>;

/// What became of a message that was sent into the running turn.
pub(super) struct SentMessage {
    pub(super) prompt: Prompt,
    pub(super) sent: Result<Sent, SendError>,
}

/// The messages that were sent into the running turn.
#[derive(Default)]
pub(super) struct Steering {
    pub(super) sending: FuturesUnordered<Sending>,
    /// Messages that the agent did not take into its run. They follow in runs of their own, in the same turn.
    pub(super) following: VecDeque<Following>,
}

pub(super) enum Following {
    Run(Box<Run>),
    Prompt(Prompt),
}

impl Steering {
    /// Returns the next message that the agent has taken or not. `None` at once if none is being sent.
    pub(super) async fn next(&mut self) -> Option<SentMessage> {
        self.sending.next().await
    }

    /// Notes what became of a message.
    pub(super) fn sent(&mut self, SentMessage { prompt, sent }: SentMessage) {
        match sent {
            Ok(Sent::Turn(run)) => self.following.push_back(Following::Run(run)),
            Ok(_) => {}
            Err(_) => self.following.push_back(Following::Prompt(prompt)),
        }
    }
}
