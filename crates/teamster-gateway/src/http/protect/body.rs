//! Bodies that arrive too slowly.

use std::io;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, HttpBody as _};
use futures::StreamExt as _;
use tokio::time::{Instant, timeout_at};

/// The time for a body, besides the time for its length.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The slowest transfer that a large body may have, in bytes per second.
const SLOWEST: u64 = 16 << 10;

/// Limits the time in which a body must arrive. A handler that reads a body of one byte a minute would run for days.
pub(super) fn in_time(body: Body) -> Body {
    if body.is_end_stream() {
        return body;
    }
    let state = (body.into_data_stream(), Instant::now() + BODY_TIMEOUT, false);
    Body::from_stream(futures::stream::unfold(state, |(stream, deadline, is_over)| next(stream, deadline, is_over)))
}

type Item = Result<axum::body::Bytes, axum::Error>;

async fn next(
    mut stream: BodyDataStream,
    deadline: Instant,
    is_over: bool,
) -> Option<(Item, (BodyDataStream, Instant, bool))> {
    if is_over {
        return None;
    }
    let Ok(item) = timeout_at(deadline, stream.next()).await else {
        let error = io::Error::new(io::ErrorKind::TimedOut, "the body arrives too slowly");
        return Some((Err(axum::Error::new(error)), (stream, deadline, true)));
    };
    let item = item?;
    let received = item.as_ref().map_or(0, |bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    let is_over = item.is_err();
    let more = Duration::from_millis(received.saturating_mul(1_000) / SLOWEST);
    Some((item, (stream, deadline + more, is_over)))
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_fails_and_a_steady_one_does_not() {
        let every = |pause: u64, size: usize| {
            let chunks = futures::stream::iter(0..100).then(move |_| async move {
                tokio::time::sleep(Duration::from_secs(pause)).await;
                Ok::<_, io::Error>(vec![b'x'; size])
            });
            to_bytes(in_time(Body::from_stream(chunks)), usize::MAX)
        };
        assert!(every(1, 1).await.is_err());
        assert_eq!(every(1, 20 << 10).await.unwrap().len(), 100 * (20 << 10));
    }
}
