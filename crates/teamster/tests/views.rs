//! Other views of the stream.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use teamster::event::{Delta, Done, ErrorCode, Event, Retract, RunResult};
use teamster::stream::EventStream;
use teamster::{RunRequest, Runtime};

/// A stream that is there at once.
struct Ready(VecDeque<Event>);

impl Stream for Ready {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Event>> {
        Poll::Ready(self.0.pop_front())
    }
}

fn stream(events: impl IntoIterator<Item = Event>) -> Ready {
    Ready(events.into_iter().collect())
}

fn delta(message: &str, text: &str) -> Delta {
    Delta::new(message, text)
}

fn text(message: &str, words: &str) -> Event {
    Event::Text(delta(message, words))
}

fn done() -> Event {
    Event::Done(Box::new(Done::new(RunResult::default())))
}

async fn all(mut stream: impl Stream<Item = Event> + Unpin) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = std::future::poll_fn(|context| Pin::new(&mut stream).poll_next(context)).await {
        events.push(event);
    }
    events
}

#[tokio::test]
async fn whole_messages_join_the_deltas_of_a_message_and_keep_the_order() {
    let events = [
        text("a", "one "),
        text("a", "two"),
        Event::Thinking(delta("b", "hm")),
        text("b", "three"),
        text("b", "!"),
        done(),
    ];
    let whole = [text("a", "one two"), Event::Thinking(delta("b", "hm")), text("b", "three!"), done()];
    assert_eq!(all(stream(events).whole_messages()).await, whole);
}

#[tokio::test]
async fn whole_messages_never_include_retracted_text() {
    let retract = Event::Retract(Retract::new("a"));
    let events = [text("a", "half of"), retract.clone(), text("b", "whole"), done()];
    assert_eq!(all(stream(events).whole_messages()).await, [retract, text("b", "whole"), done()]);
}

#[tokio::test]
async fn only_lets_pass_what_the_predicate_names() {
    let events = [text("a", "one"), Event::Thinking(delta("a", "hm")), done()];
    let texts = stream(events).only(|event| matches!(event, Event::Text(_)));
    assert_eq!(all(texts).await, [text("a", "one")]);
}

#[tokio::test]
async fn the_result_alone_is_the_end_of_the_stream() {
    assert_eq!(stream([text("a", "one"), done()]).into_result().await, Ok(RunResult::default()));
    let cut = stream([text("a", "one")]).into_result().await.unwrap_err();
    assert_eq!(cut.code(), &ErrorCode::InvalidRequest);
}

#[tokio::test]
async fn a_run_is_such_a_stream() {
    let mut request = RunRequest::new("hi");
    request.cli_path = Some("/nowhere/at/all".into());
    let run = Runtime::new().run("claude", request).unwrap();
    let failure = run.into_result().await.unwrap_err();
    assert_eq!(failure.code(), &ErrorCode::CliNotFound);
    assert!(failure.result.is_error);
}
