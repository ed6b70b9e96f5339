//! The spans that a gateway exports, as a collector gets them.

use std::sync::Arc;
use std::time::Duration;

use teamster_gateway::telemetry::otel::{ExportError, SpanExport};
use teamster_store::TurnState;
use teamster_testkit::otlp::{Collector, ReceivedSpan};
use tokio::time::timeout;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::test_gateway::{LIMIT, TestGateway, write_agent};

const TOOL: &str = "[[turns]]\nsteps = [{ say = \"answer-5521\" }, \
                    { run = { command = \"ls command-5521\", output = \"output-5521\\n\" } }, { say = \"after\" }]\n";

/// Exports the spans of this thread, on which all tasks of the test run.
fn export(endpoint: &str) -> (SpanExport, DefaultGuard) {
    let export = SpanExport::start(Some(endpoint)).unwrap();
    let subscriber = tracing_subscriber::registry().with(export.layer());
    let guard = tracing::subscriber::set_default(subscriber);
    (export, guard)
}

/// Stops the export on another thread: this one runs the collector.
async fn stop(export: SpanExport, limit: Duration) -> Result<(), ExportError> {
    tokio::task::spawn_blocking(move || export.shutdown(limit)).await.unwrap()
}

fn only<'a>(spans: &'a [ReceivedSpan], name: &str) -> &'a ReceivedSpan {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "one span {name} in {spans:#?}");
    found[0]
}

fn attributes(span: &ReceivedSpan) -> Vec<&str> {
    span.attributes.keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_turn_with_a_tool_call_is_one_trace_without_its_texts() {
    let collector = Collector::start().await.unwrap();
    let (export, guard) = export(&collector.endpoint());
    let mut test = TestGateway::start(TOOL).await;
    let conversation = test.conversation().await;
    let accepted = test.send(conversation, "prompt-5521").await;
    assert_eq!(test.ended(accepted.turn).await.state, TurnState::Done);
    test.shutdown().await;
    drop(guard);
    stop(export, LIMIT).await.unwrap();

    let spans = collector.spans();
    let (message, turn) = (only(&spans, "message"), only(&spans, "turn"));
    let (attempt, tool) = (only(&spans, "attempt"), only(&spans, "tool_call"));
    assert_eq!(spans.len(), 4, "{spans:#?}");
    assert_eq!(message.parent_id, None);
    for (child, parent) in [(turn, message), (attempt, turn), (tool, attempt)] {
        assert_eq!(child.parent_id.as_ref(), Some(&parent.span_id), "{} in {}", child.name, parent.name);
        assert_eq!(child.trace_id, parent.trace_id);
        assert!(child.start >= parent.start && child.end >= child.start);
        assert!(!child.is_error && child.events == 0, "{child:#?}");
    }
    assert_eq!(attributes(message), ["channel", "conversation", "turn"]);
    assert_eq!(attributes(turn), ["agent", "channel", "conversation", "state", "turn"]);
    assert_eq!(attributes(attempt), ["agent", "attempt"]);
    assert_eq!(attributes(tool), ["tool"]);
    assert_eq!(turn.attributes["turn"], accepted.turn.to_string());
    assert_eq!(turn.attributes["state"], "done");
    assert_eq!((attempt.attributes["attempt"].as_str(), tool.attributes["tool"].as_str()), ("1", "Bash"));
    assert_eq!(turn.resource["service.name"], "teamster");
    assert!(collector.has_received(b"tool_call") && !collector.has_received(b"5521"));
}

#[tokio::test]
async fn a_turn_that_runs_again_after_a_crash_stays_in_the_trace_of_its_message() {
    let collector = Collector::start().await.unwrap();
    let (export, guard) = export(&collector.endpoint());
    let test = TestGateway::start("[[turns]]\nsteps = [{ waitMs = 60000 }]\n").await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    test.event(conversation, "turn_started").await;
    let directory = test.crash();
    write_agent(directory.path(), "[[turns]]\nsteps = [{ say = \"again\" }]\n");
    let mut test = TestGateway::in_directory(Arc::clone(&directory), |_| {}).await;
    assert_eq!(test.ended(turn).await.state, TurnState::Done);
    test.shutdown().await;
    drop(guard);
    stop(export, LIMIT).await.unwrap();

    let spans = collector.spans();
    let message = only(&spans, "message");
    let turns: Vec<_> = spans.iter().filter(|span| span.name == "turn").collect();
    assert!(turns.iter().any(|turn| turn.attributes.get("state").is_some_and(|state| state == "done")), "{spans:#?}");
    for turn in turns {
        assert_eq!((turn.parent_id.as_ref(), &turn.trace_id), (Some(&message.span_id), &message.trace_id));
    }
}

#[tokio::test]
async fn each_attempt_of_a_failed_turn_has_a_span_with_the_code_of_its_error() {
    let collector = Collector::start().await.unwrap();
    let (export, guard) = export(&collector.endpoint());
    let mut test = TestGateway::start("[[turns]]\nsteps = [{ say = \"text-5521\" }, { exit = 3 }]\n").await;
    let conversation = test.conversation().await;
    assert_eq!(test.ended(test.send(conversation, "hello").await.turn).await.state, TurnState::Failed);
    test.shutdown().await;
    drop(guard);
    stop(export, LIMIT).await.unwrap();

    let spans = collector.spans();
    let message = only(&spans, "message");
    let attempts: Vec<_> = spans.iter().filter(|span| span.name == "attempt").collect();
    let numbers: Vec<_> = attempts.iter().map(|span| span.attributes["attempt"].as_str()).collect();
    assert_eq!(numbers, ["1", "2", "3", "4"]);
    for span in attempts {
        assert!(span.is_error && span.attributes["error_code"] == "CLI_EXIT", "{span:#?}");
        assert_eq!(span.trace_id, message.trace_id);
    }
    let failed: Vec<_> = spans.iter().filter(|span| span.name == "turn" && span.is_error).collect();
    assert_eq!(failed.len(), 1, "only the last one is the end of the turn: {spans:#?}");
    assert_eq!((failed[0].attributes["state"].as_str(), failed[0].events), ("failed", 0));
    assert!(!collector.has_received(b"5521"));
}

#[tokio::test]
async fn a_collector_that_does_not_answer_neither_stops_turns_nor_the_shutdown() {
    // The port is closed again at once.
    let endpoint = Collector::start().await.unwrap().endpoint();
    let (export, guard) = export(&endpoint);
    let mut test = TestGateway::start(TOOL).await;
    let conversation = test.conversation().await;
    assert_eq!(test.ended(test.send(conversation, "hello").await.turn).await.state, TurnState::Done);
    test.shutdown().await;
    drop(guard);
    let limit = Duration::from_secs(2);
    let flushed = timeout(LIMIT, stop(export, limit)).await.expect("the shutdown ends in time");
    assert!(flushed.unwrap_err().to_string().contains("were not exported"));
}

#[test]
fn an_invalid_endpoint_is_refused_at_the_start() {
    let refused = SpanExport::start(Some("not an address")).unwrap_err().to_string();
    assert!(refused.contains("check the endpoint"), "{refused}");
}
