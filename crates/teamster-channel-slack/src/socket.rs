//! The tasks that own the connections.
//!
//! A task forwards what it reads, writes acknowledgments, and ends when the service closes the connection or is silent for too
//! long. The service sends pings, and answers ours: a connection over which nothing arrives is dead, even if it is not closed.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_websockets::{Message, WebSocketStream};

use crate::handshake::Stream;

/// How often a ping is sent.
const PING: Duration = Duration::from_secs(10);

/// The silence after which a connection counts as dead.
const MAX_SILENCE: Duration = Duration::from_secs(30);

/// The time limit of a write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the other side may take to confirm a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection is read that the service will end, after another one is ready.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// The number of frames that are read and wait. Then reading stops.
const MAX_FRAMES: usize = 256;

/// The number of acknowledgments that wait. One more is dropped: the service sends the envelope again.
const MAX_ACKS: usize = 1_024;

/// The number of a connection.
pub(crate) type SocketId = u64;

/// What a connection reports.
#[derive(Debug)]
pub(crate) enum SocketEvent {
    /// It has read a frame.
    Frame(String),
    /// It is closed.
    Closed {
        reason: String,
        /// The acknowledgments that were not written.
        unwritten: Vec<String>,
    },
}

/// What a connection must do.
enum Order {
    Write(String),
    Close,
    /// Close unless the service does it in time.
    CloseLater,
}

/// All connections. Dropping it ends them.
pub(crate) struct Sockets {
    tasks: JoinSet<()>,
    orders: Vec<(SocketId, mpsc::Sender<Order>)>,
    events: mpsc::Receiver<(SocketId, SocketEvent)>,
    sender: mpsc::Sender<(SocketId, SocketEvent)>,
    last: SocketId,
}

impl Sockets {
    pub(crate) fn new() -> Self {
        let (sender, events) = mpsc::channel(MAX_FRAMES);
        Self { tasks: JoinSet::new(), orders: Vec::new(), events, sender, last: 0 }
    }

    /// Takes over a connection.
    pub(crate) fn add(&mut self, stream: Stream) -> SocketId {
        self.last += 1;
        let (orders, received) = mpsc::channel(MAX_ACKS);
        self.orders.push((self.last, orders));
        self.tasks.spawn(run(self.last, stream, received, self.sender.clone()));
        self.last
    }

    /// Returns the next event. It waits as long as there is none.
    pub(crate) async fn next(&mut self) -> (SocketId, SocketEvent) {
        match self.events.recv().await {
            Some(event) => event,
            // It has a sender itself.
            None => std::future::pending().await,
        }
    }

    /// Forgets a connection that is closed.
    pub(crate) fn remove(&mut self, id: SocketId) {
        self.orders.retain(|(known, _)| *known != id);
        while self.tasks.try_join_next().is_some() {}
    }

    /// Writes on this connection, or on the last one if it is closed. Returns the text if no connection takes it.
    pub(crate) fn write(&self, id: SocketId, mut text: String) -> Result<(), String> {
        let own = self.orders.iter().filter(|(known, _)| *known == id);
        let others = self.orders.iter().rev().filter(|(known, _)| *known != id);
        for (_, orders) in own.chain(others) {
            match orders.try_send(Order::Write(text)) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    let Order::Write(refused) = error.into_inner() else { return Ok(()) };
                    text = refused;
                }
            }
        }
        Err(text)
    }

    /// Closes a connection after what was written before.
    pub(crate) fn close(&self, id: SocketId) {
        if let Some((_, orders)) = self.orders.iter().find(|(known, _)| *known == id) {
            _ = orders.try_send(Order::Close);
        }
    }

    /// Closes a connection unless the service does it in time. An envelope that it has sent before must be read.
    pub(crate) fn close_later(&self, id: SocketId) {
        if let Some((_, orders)) = self.orders.iter().find(|(known, _)| *known == id) {
            _ = orders.try_send(Order::CloseLater);
        }
    }

    /// Closes all connections, and waits for their ends, at most for the time of a close.
    pub(crate) async fn shutdown(mut self) {
        for (_, orders) in &self.orders {
            _ = orders.try_send(Order::Close);
        }
        self.orders.clear();
        let ended = async {
            loop {
                tokio::select! {
                    // The tasks must not wait for a reader.
                    _ = self.events.recv() => {}
                    ended = self.tasks.join_next() => if ended.is_none() { break },
                }
            }
        };
        _ = timeout(CLOSE_TIMEOUT, ended).await;
    }
}

async fn run<T: AsyncRead + AsyncWrite + Unpin>(
    id: SocketId,
    mut stream: WebSocketStream<T>,
    mut orders: mpsc::Receiver<Order>,
    events: mpsc::Sender<(SocketId, SocketEvent)>,
) {
    let mut unwritten = Vec::new();
    let reason = serve(id, &mut stream, &mut orders, &events, &mut unwritten).await;
    // After the close, `Sockets::write` uses another connection. What it has sent before is reported.
    orders.close();
    while let Ok(order) = orders.try_recv() {
        if let Order::Write(text) = order {
            unwritten.push(text);
        }
    }
    // There is no reader during a shutdown.
    _ = events.send((id, SocketEvent::Closed { reason, unwritten })).await;
}

/// Serves a connection until its end, and returns the reason. Adds an acknowledgment whose write fails to `unwritten`.
async fn serve<T: AsyncRead + AsyncWrite + Unpin>(
    id: SocketId,
    stream: &mut WebSocketStream<T>,
    orders: &mut mpsc::Receiver<Order>,
    events: &mpsc::Sender<(SocketId, SocketEvent)>,
    unwritten: &mut Vec<String>,
) -> String {
    let mut pings = interval(PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_frame = Instant::now();
    let mut ends_at: Option<Instant> = None;
    loop {
        let is_over = async {
            match ends_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let written = tokio::select! {
            read = stream.next() => match read {
                Some(Ok(message)) => {
                    last_frame = Instant::now();
                    if forward(id, &message, events).await {
                        return "the service has closed it".to_owned();
                    }
                    continue;
                }
                Some(Err(error)) => return error.to_string(),
                None => return "it has ended".to_owned(),
            },
            order = orders.recv() => match order {
                Some(Order::Write(text)) => {
                    let written = timeout(WRITE_TIMEOUT, stream.send(Message::text(text.clone()))).await;
                    if !matches!(written, Ok(Ok(()))) {
                        unwritten.push(text);
                    }
                    written
                }
                Some(Order::CloseLater) => {
                    ends_at = Some(Instant::now() + ENDS_WITHIN);
                    continue;
                }
                Some(Order::Close) | None => {
                    close(id, stream, events).await;
                    return "it was closed".to_owned();
                }
            },
            () = is_over => {
                close(id, stream, events).await;
                return "it was closed".to_owned();
            }
            _ = pings.tick() => {
                if last_frame.elapsed() > MAX_SILENCE {
                    return "the service is silent".to_owned();
                }
                timeout(WRITE_TIMEOUT, stream.send(Message::ping("teamster"))).await
            }
        };
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return "a write takes too long".to_owned(),
        }
    }
}

/// Forwards the text of a message. Returns whether the message closes the connection.
async fn forward(id: SocketId, message: &Message, events: &mpsc::Sender<(SocketId, SocketEvent)>) -> bool {
    if let Some(text) = message.as_text() {
        // The receiver is gone during a shutdown only.
        _ = events.send((id, SocketEvent::Frame(text.to_owned()))).await;
    }
    message.is_close()
}

/// Closes a connection. What the service has sent before it confirms the close is forwarded.
async fn close<T: AsyncRead + AsyncWrite + Unpin>(
    id: SocketId,
    stream: &mut WebSocketStream<T>,
    events: &mpsc::Sender<(SocketId, SocketEvent)>,
) {
    let closing = async {
        stream.send(Message::close(None, "")).await.ok()?;
        while let Some(Ok(message)) = stream.next().await {
            if forward(id, &message, events).await {
                break;
            }
        }
        Some(())
    };
    _ = timeout(CLOSE_TIMEOUT, closing).await;
}

#[cfg(test)]
mod tests {
    use tokio_websockets::ClientBuilder;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_over_which_nothing_arrives_counts_as_dead() {
        // The other end is open, and never answers.
        let (stream, _other) = tokio::io::duplex(1 << 16);
        let (_orders, received) = mpsc::channel(1);
        let (events, mut reported) = mpsc::channel(1);
        let started = Instant::now();
        run(7, ClientBuilder::new().take_over(stream), received, events).await;
        let Some((7, SocketEvent::Closed { reason, .. })) = reported.recv().await else { panic!("it is closed") };
        assert_eq!(reason, "the service is silent");
        assert!(started.elapsed() <= MAX_SILENCE + PING * 2, "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_the_service_announces_to_end_is_read_for_a_while() {
        let (stream, other) = tokio::io::duplex(1 << 16);
        let (orders, received) = mpsc::channel(1);
        let (events, mut reported) = mpsc::channel(1);
        let served = tokio::spawn(run(7, ClientBuilder::new().take_over(stream), received, events));
        assert!(orders.send(Order::CloseLater).await.is_ok());
        let mut service = tokio_websockets::ServerBuilder::new().serve(other);
        assert!(service.send(Message::text("late")).await.is_ok());
        assert!(matches!(reported.recv().await, Some((7, SocketEvent::Frame(text))) if text == "late"));
        let started = Instant::now();
        // It answers pings, and confirms the close.
        while let Some(Ok(_)) = service.next().await {}
        assert!(started.elapsed() >= ENDS_WITHIN / 2, "{:?}", started.elapsed());
        assert!(matches!(reported.recv().await, Some((7, SocketEvent::Closed { .. }))));
        served.await.unwrap();
    }

    #[tokio::test]
    async fn an_acknowledgment_is_written_or_reported_when_the_service_closes_the_connection() {
        for _ in 0..50 {
            let (stream, other) = tokio::io::duplex(1 << 16);
            let (orders, received) = mpsc::channel(MAX_ACKS);
            let (events, mut reported) = mpsc::channel(MAX_FRAMES);
            let mut service = tokio_websockets::ServerBuilder::new().serve(other);
            service.send(Message::close(None, "")).await.unwrap();
            for number in 0..8 {
                assert!(orders.send(Order::Write(number.to_string())).await.is_ok());
            }
            run(7, ClientBuilder::new().take_over(stream), received, events).await;
            let Some((7, SocketEvent::Closed { unwritten, .. })) = reported.recv().await else {
                panic!("it is closed")
            };
            let mut all = unwritten;
            while let Some(Ok(message)) = service.next().await {
                all.extend(message.as_text().map(str::to_owned));
            }
            all.sort();
            assert_eq!(all, (0..8).map(|number| number.to_string()).collect::<Vec<_>>());
        }
    }
}
