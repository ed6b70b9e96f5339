//! Log lines as JSON.

use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::registry::LookupSpan;

/// Returns a layer that writes each event as one line of JSON: `timestamp` (RFC 3339, UTC), `level`, `target`, the fields of the
/// event with its text as `message`, and `spans`, from the outermost to the innermost. The spans of a turn name its
/// conversation and turn.
///
/// Control characters are escaped, so no text can start a new line. Filter the layer: it writes everything it gets.
pub fn json_logs<S, W>(writer: W) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(true)
        .with_ansi(false)
        .with_writer(writer)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use serde_json::Value;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_event_is_one_line_of_json_with_its_spans() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::registry().with(json_logs(move || writer.clone()));
        tracing::subscriber::with_default(subscriber, || {
            let _turn = tracing::info_span!("turn", turn = "t1").entered();
            tracing::warn!(code = "X", "first\nsecond \u{1b}[31m");
        });
        let bytes = lines.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert!(!text.contains('\u{1b}'), "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "first\nsecond \u{1b}[31m");
        assert_eq!(line["code"], "X");
        assert_eq!(line["spans"][0]["turn"], "t1");
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
    }
}
