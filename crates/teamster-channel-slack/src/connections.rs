//! Which connections there are, and when another one is opened.
//!
//! One connection is current. The service announces its end: then another one is opened, and the old one is read until the service
//! closes it. The service sends each envelope over any connection that is open, so a connection that this side closes could lose
//! one for a while.

use std::time::Duration;

use futures_util::future::BoxFuture;
use teamster_channel::ChannelError;

use crate::check::{SOCKET_MODE_OFF, socket_error};
use crate::envelope::Hello;
use crate::error::CallError;
use crate::handshake::Stream;
use crate::service::SlackChannel;
use crate::socket::{SocketId, Sockets};

/// The delay after the first failed attempt. It doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The number of acknowledgments that wait for a connection. One more is dropped: the service sends the envelope again.
const MAX_UNWRITTEN: usize = 1_024;

/// The connections of the app.
pub(crate) struct Connections<'a> {
    channel: &'a SlackChannel,
    pub(crate) sockets: Sockets,
    /// The connection that is opened.
    opening: Option<BoxFuture<'a, Result<Stream, CallError>>>,
    /// The last connection, unless the service will end it.
    current: Option<SocketId>,
    /// Connections that the service will end.
    ending: Vec<SocketId>,
    failures: u32,
    /// Acknowledgments that wait for a connection.
    unwritten: Vec<String>,
}

impl<'a> Connections<'a> {
    /// Opens the first connection.
    pub(crate) fn new(channel: &'a SlackChannel) -> Self {
        let mut connections = Self {
            channel,
            sockets: Sockets::new(),
            opening: None,
            current: None,
            ending: Vec::new(),
            failures: 0,
            unwritten: Vec::new(),
        };
        connections.open(Duration::ZERO);
        connections
    }

    /// Waits until a connection is opened, or has failed.
    pub(crate) async fn opened(
        opening: &mut Option<BoxFuture<'a, Result<Stream, CallError>>>,
    ) -> Result<Stream, CallError> {
        let Some(future) = opening else { return std::future::pending().await };
        let opened = future.await;
        *opening = None;
        opened
    }

    /// Returns what is awaited: an opened connection, and the events of the others.
    pub(crate) const fn parts(&mut self) -> (&mut Option<BoxFuture<'a, Result<Stream, CallError>>>, &mut Sockets) {
        (&mut self.opening, &mut self.sockets)
    }

    /// A connection was opened, or not.
    pub(crate) fn on_opened(&mut self, opened: Result<Stream, CallError>) -> Result<(), ChannelError> {
        match opened {
            Ok(stream) => {
                let id = self.sockets.add(stream);
                self.current = Some(id);
                for text in std::mem::take(&mut self.unwritten) {
                    self.acknowledge(id, text);
                }
            }
            Err(CallError::Limited { retry_after, .. }) => self.open(retry_after),
            Err(error)
                if error.is_of_token() || error.is_of_permission() || error.is_refusal("socket_mode_not_enabled") =>
            {
                return Err(socket_error(&error));
            }
            Err(error) => {
                let delay = self.next_delay();
                tracing::warn!(%error, ?delay, "a connection to Slack has failed; it is tried again");
                self.open(delay);
            }
        }
        Ok(())
    }

    /// A connection is ready: those that the service will end have a time limit now.
    pub(crate) fn on_hello(&mut self, hello: &Hello) {
        self.failures = 0;
        let own = u32::try_from(self.ending.len()).unwrap_or(u32::MAX).saturating_add(1);
        if let Some(count) = hello.num_connections.filter(|count| *count > own) {
            tracing::warn!(
                connections = count,
                "the Slack app has connections of another program, which gets a share of its messages: stop it, or give it another \
                 app"
            );
        }
        for id in &self.ending {
            self.sockets.close_later(*id);
        }
    }

    /// The service will end a connection.
    pub(crate) fn on_disconnect(&mut self, id: SocketId, reason: &str) -> Result<(), ChannelError> {
        match reason {
            "link_disabled" => return Err(ChannelError::Setting(SOCKET_MODE_OFF.to_owned())),
            "too_many_websockets" => {
                tracing::warn!("the Slack app has too many connections: stop the other programs that use it");
                self.sockets.close(id);
                return Ok(());
            }
            _ => tracing::debug!(reason, "Slack will end a connection; another one is opened"),
        }
        self.ending.push(id);
        if self.current == Some(id) {
            self.current = None;
            self.open(Duration::ZERO);
        }
        Ok(())
    }

    /// A connection is closed. The acknowledgments that it has not written go over another one.
    pub(crate) fn on_closed(&mut self, id: SocketId, reason: &str, unwritten: Vec<String>) {
        self.sockets.remove(id);
        self.ending.retain(|known| *known != id);
        for text in unwritten {
            self.acknowledge(id, text);
        }
        if self.current == Some(id) {
            self.current = None;
            let delay = self.next_delay();
            tracing::warn!(reason, ?delay, "a connection to Slack is closed; another one is opened");
            self.open(delay);
        }
    }

    /// Writes an acknowledgment. A connection that the service will end may lose it, so it goes over the current one if possible. If
    /// no connection is open, it waits for the next one.
    pub(crate) fn acknowledge(&mut self, id: SocketId, text: String) {
        let id = if self.ending.contains(&id) { self.current.unwrap_or(id) } else { id };
        if let Err(text) = self.sockets.write(id, text) {
            if self.unwritten.len() < MAX_UNWRITTEN {
                self.unwritten.push(text);
            } else {
                tracing::debug!("an acknowledgment to Slack was not written");
            }
        }
    }

    fn open(&mut self, delay: Duration) {
        if self.opening.is_some() {
            return;
        }
        let api = self.channel.api();
        self.opening = Some(Box::pin(async move {
            tokio::time::sleep(delay).await;
            api.open_socket().await
        }));
    }

    fn next_delay(&mut self) -> Duration {
        let delay = delay_after(self.failures);
        self.failures = self.failures.saturating_add(1);
        delay
    }
}

/// Returns the delay after this number of failures in a row.
pub(crate) fn delay_after(failures: u32) -> Duration {
    FIRST_DELAY.saturating_mul(2_u32.saturating_pow(failures.min(16))).min(MAX_DELAY)
}
