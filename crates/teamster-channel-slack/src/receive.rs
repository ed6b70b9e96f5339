//! The receiving side: it reads envelopes, and acknowledges them after their content was stored.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use teamster_channel::{ChannelError, Inbox};
use tokio_util::sync::CancellationToken;

use crate::connections::{Connections, delay_after};
use crate::envelope::{Envelope, Frame, acknowledgment, read};
use crate::error::{CallError, TokenName, channel_error};
use crate::handle::{Handled, state_key};
use crate::handler::Handler;
use crate::interact::Ack;
use crate::lanes::{Arrival, Lanes};
use crate::service::SlackChannel;
use crate::socket::{SocketEvent, SocketId};
use crate::threads::Threads;
use crate::types::Bot;

/// How long a stop waits for the messages that are being stored.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// An envelope that was handled, or work that remained after an acknowledgment.
enum Ended<'h> {
    Envelope(Box<Envelope>, Handled<'h>),
    Work,
}

/// The receiving side.
struct Receiver<'h> {
    handler: &'h Handler<'h>,
    connections: Connections<'h>,
    lanes: Lanes,
    running: FuturesUnordered<BoxFuture<'h, Ended<'h>>>,
}

/// Receives until `stop` is cancelled.
pub(crate) async fn receive(
    channel: &SlackChannel,
    inbox: &dyn Inbox,
    stop: CancellationToken,
) -> Result<(), ChannelError> {
    let Some(bot) = bot(channel, &stop).await? else { return Ok(()) };
    let stored = inbox.state(&state_key(&bot)).await.map_err(|error| ChannelError::Setting(error.to_string()))?;
    if let Some(stored) = stored {
        *channel.threads() = Threads::from_value(&stored);
    }
    let handler = Handler::new(channel, inbox, bot, stop);
    let mut receiver = Receiver {
        handler: &handler,
        connections: Connections::new(channel),
        lanes: Lanes::default(),
        running: FuturesUnordered::new(),
    };
    let result = receiver.run().await;
    receiver.end().await;
    result
}

/// Asks for the bot until the service answers. `None`: the gateway stops.
async fn bot(channel: &SlackChannel, stop: &CancellationToken) -> Result<Option<Bot>, ChannelError> {
    for failures in 0.. {
        let answered = tokio::select! {
            () = stop.cancelled() => return Ok(None),
            answered = channel.bot() => answered,
        };
        let delay = match answered {
            Ok(answered) => return Ok(Some(answered.result)),
            Err(error) if error.is_of_token() || error.is_of_permission() => {
                return Err(channel_error(&error, TokenName::Bot));
            }
            Err(CallError::Limited { retry_after, .. }) => retry_after,
            Err(error) => {
                tracing::warn!(%error, "Slack does not answer; it is asked again");
                delay_after(failures)
            }
        };
        tokio::select! {
            () = stop.cancelled() => return Ok(None),
            () = tokio::time::sleep(delay) => {}
        }
    }
    Ok(None)
}

impl<'h> Receiver<'h> {
    async fn run(&mut self) -> Result<(), ChannelError> {
        let mut stopped = pin!(self.handler.stop.cancelled());
        loop {
            let (opening, sockets) = self.connections.parts();
            tokio::select! {
                () = &mut stopped => return Ok(()),
                opened = Connections::opened(opening) => self.connections.on_opened(opened)?,
                (id, event) = sockets.next() => self.on_event(id, event)?,
                Some(ended) = self.running.next() => self.on_ended(ended),
            }
        }
    }

    fn on_event(&mut self, id: SocketId, event: SocketEvent) -> Result<(), ChannelError> {
        match event {
            SocketEvent::Closed { reason, unwritten } => self.connections.on_closed(id, &reason, unwritten),
            SocketEvent::Frame(text) => match read(&text) {
                Frame::Hello(hello) => self.connections.on_hello(&hello),
                Frame::Disconnect { reason } => self.connections.on_disconnect(id, &reason)?,
                Frame::Envelope(envelope) => self.on_envelope(id, envelope),
                Frame::Other => {}
            },
        }
        Ok(())
    }

    fn on_envelope(&mut self, id: SocketId, envelope: Envelope) {
        let envelope_id = envelope.envelope_id.clone();
        match self.lanes.arrived(id, envelope) {
            Arrival::Start(envelope) => self.start(envelope),
            Arrival::Waits => {}
            Arrival::Repeated => self.acknowledge(id, &envelope_id, None),
            Arrival::Full => tracing::warn!("too many messages of Slack wait; one is not taken, and comes again"),
        }
    }

    fn start(&self, envelope: Envelope) {
        let handler = self.handler;
        self.running.push(Box::pin(async move {
            let outcome = handler.handle(&envelope).await;
            Ended::Envelope(Box::new(envelope), outcome)
        }));
    }

    fn on_ended(&mut self, ended: Ended<'h>) {
        let Ended::Envelope(envelope, handled) = ended else { return };
        match handled {
            Handled::Done(Ack { payload, then }) => {
                for (id, envelope_id) in self.lanes.acknowledged(&envelope.key()) {
                    self.acknowledge(id, &envelope_id, payload.as_ref());
                }
                if let Some(work) = then {
                    self.running.push(Box::pin(async move {
                        work.await;
                        Ended::Work
                    }));
                }
            }
            Handled::NotDone => self.lanes.dropped(&envelope.key()),
        }
        if let Some(next) = envelope.lane().and_then(|lane| self.lanes.next(lane)) {
            self.start(next);
        }
    }

    fn acknowledge(&mut self, id: SocketId, envelope_id: &str, payload: Option<&serde_json::Value>) {
        self.connections.acknowledge(id, acknowledgment(envelope_id, payload));
    }

    /// Waits for what is being stored, acknowledges it, and closes the connections.
    async fn end(mut self) {
        let rest = async {
            while let Some(ended) = self.running.next().await {
                self.on_ended(ended);
            }
        };
        _ = tokio::time::timeout(STOP_TIMEOUT, rest).await;
        self.connections.sockets.shutdown().await;
    }
}
