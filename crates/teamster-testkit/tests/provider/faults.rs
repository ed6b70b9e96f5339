//! Faults of the provider, at the positions that the scenario defines.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;
use teamster_testkit::provider::{HttpError, Provider, Reply, Scenario};

use crate::client::{BOUND, Ending, ask, ask_whole, deltas, types};

async fn play(scenario: impl Into<Scenario>) -> Result<Provider> {
    Ok(Provider::anthropic(scenario).start().await?)
}

#[tokio::test]
async fn errors_have_the_status_and_the_type_that_the_vendor_uses() -> Result<()> {
    for (error, status, type_name) in [
        (HttpError::unauthorized(), 401, "authentication_error"),
        (HttpError::forbidden(), 403, "permission_error"),
        (HttpError::out_of_credit(), 400, "invalid_request_error"),
        (HttpError::model_not_found(), 404, "not_found_error"),
        (HttpError::rate_limited(), 429, "rate_limit_error"),
        (HttpError::overloaded(), 529, "overloaded_error"),
        (HttpError::internal(), 500, "api_error"),
        (HttpError::unavailable(), 503, "api_error"),
        (HttpError::bad_request("no"), 400, "invalid_request_error"),
        (HttpError::prompt_too_long(), 400, "invalid_request_error"),
        (HttpError::request_too_large(), 413, "request_too_large"),
        (HttpError::internal().status(520).type_name("odd_error"), 520, "odd_error"),
    ] {
        let provider = play(Scenario::new().reply(error)).await?;
        let answer = ask(&provider, json!("hi")).await?;
        assert_eq!(answer.status, status);
        let body = answer.json().await?;
        assert_eq!(body["type"], "error");
        assert_eq!(body["error"]["type"], type_name);
        assert_ne!(body["error"]["message"], "");
    }
    Ok(())
}

#[tokio::test]
async fn a_reply_that_fails_twice_works_the_third_time() -> Result<()> {
    let limited = HttpError::rate_limited().message("slow down").retry_after(2);
    let provider = play(Reply::new().text("Recovered.").fail_times(2, limited)).await?;
    for _ in 0..2 {
        let answer = ask(&provider, json!("hi")).await?;
        assert_eq!(answer.status, 429);
        assert_eq!(answer.headers["retry-after"], "2");
        assert_eq!(answer.json().await?["error"]["message"], "slow down");
    }
    let (events, _) = ask(&provider, json!("hi")).await?.events().await;
    assert_eq!(deltas(&events).concat(), "Recovered.");
    let attempts: Vec<_> = provider.requests().iter().map(|request| request.attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
    Ok(())
}

#[tokio::test]
async fn a_raw_error_is_sent_byte_for_byte() -> Result<()> {
    let page = "<html>Bad gateway</html>";
    let provider = play(HttpError::raw(502, "text/html", page)).await?;
    let answer = ask(&provider, json!("hi")).await?;
    assert_eq!(answer.status, 502);
    assert_eq!(answer.headers["content-type"], "text/html");
    assert_eq!(answer.bytes().await?, page);
    Ok(())
}

#[tokio::test]
async fn a_cut_happens_after_exactly_this_many_deltas() -> Result<()> {
    let provider = play(Reply::new().text_by(1, "abcdef").cut_after(3)).await?;
    for _ in 0..20 {
        let (events, ending) = ask(&provider, json!("hi")).await?.events().await;
        assert_eq!(deltas(&events), ["a", "b", "c"]);
        assert_eq!(ending, Ending::Broken);
    }
    assert_eq!(provider.disconnects(), []);
    Ok(())
}

#[tokio::test]
async fn all_data_sent_before_a_cut_arrives() -> Result<()> {
    let text = "0123456789abcdef".repeat(1 << 18);
    let provider = play(Reply::new().text_by(1 << 12, &text).cut_after(1000)).await?;
    let (events, ending) = ask(&provider, json!("hi")).await?.events().await;
    assert_eq!(deltas(&events).len(), 1000);
    assert_eq!(ending, Ending::Broken);
    Ok(())
}

#[tokio::test]
async fn a_cut_beyond_the_last_delta_happens_before_the_end_of_the_message() -> Result<()> {
    let provider = play(Reply::new().text("short").cut_after(99)).await?;
    let (events, ending) = ask(&provider, json!("hi")).await?.events().await;
    assert_eq!(types(&events).last(), Some(&"content_block_stop"));
    assert_eq!(ending, Ending::Broken);
    Ok(())
}

#[tokio::test]
async fn a_cut_that_happens_once_does_not_affect_the_next_request() -> Result<()> {
    let provider = play(Reply::new().text_by(1, "abc").cut_once_after(1)).await?;
    let (_, ending) = ask(&provider, json!("hi")).await?.events().await;
    assert_eq!(ending, Ending::Broken);
    let message = ask_whole(&provider, json!("hi")).await?;
    assert_eq!(message["content"][0]["text"], "abc");
    Ok(())
}

#[tokio::test]
async fn a_request_without_streaming_can_be_disconnected() -> Result<()> {
    let provider = play(Reply::new().text("never").cut_after(1).drop_unstreamed()).await?;
    assert!(ask_whole(&provider, json!("hi")).await.is_err());
    Ok(())
}

#[tokio::test]
async fn an_error_event_is_the_last_of_its_stream() -> Result<()> {
    let provider = play(Reply::new().text_by(1, "abc").error_after(2, HttpError::overloaded())).await?;
    let (events, ending) = ask(&provider, json!("hi")).await?.events().await;
    assert_eq!(deltas(&events), ["a", "b"]);
    assert_eq!(events[events.len() - 1]["error"]["type"], "overloaded_error");
    assert_eq!(ending, Ending::Proper);
    Ok(())
}

#[tokio::test]
async fn a_stalled_stream_ends_with_the_provider() -> Result<()> {
    let provider = play(Reply::new().text_by(1, "abc").stall_after(2)).await?;
    let mut answer = ask(&provider, json!("hi")).await?;
    answer.read_deltas(2).await?;
    provider.shutdown().await;
    let (events, ending) = tokio::time::timeout(BOUND, answer.events()).await?;
    assert_eq!(deltas(&events), Vec::<String>::new());
    assert_eq!(ending, Ending::Broken);
    Ok(())
}

#[tokio::test]
async fn a_stream_that_only_pings_keeps_pinging() -> Result<()> {
    let reply = Reply::new().text_by(1, "abc").ping_forever_after(1, Duration::from_millis(1));
    let provider = play(reply).await?;
    let mut answer = ask(&provider, json!("hi")).await?;
    answer.read_deltas(1).await?;
    for _ in 0..3 {
        let event = answer.next_event().await?.unwrap_or_default();
        assert_eq!(event["type"], "ping");
    }
    Ok(())
}

#[tokio::test]
async fn delays_last_at_least_as_long_as_requested() -> Result<()> {
    let delay = Duration::from_millis(20);
    let reply = Reply::new().text_by(1, "abc").delay_before(delay).delay_between(delay);
    let provider = play(reply).await?;
    let asked = Instant::now();
    let answer = ask(&provider, json!("hi")).await?;
    assert!(asked.elapsed() >= delay);
    answer.events().await;
    assert!(asked.elapsed() >= delay * 3);
    Ok(())
}

#[tokio::test]
async fn a_reply_can_have_additional_headers() -> Result<()> {
    let name = "anthropic-ratelimit-unified-status";
    let provider = play(Reply::new().text("ok").header(name, "allowed_warning")).await?;
    let answer = ask(&provider, json!("hi")).await?;
    assert_eq!(answer.headers[name], "allowed_warning");
    Ok(())
}

#[tokio::test]
async fn an_invalid_header_causes_an_error_response() -> Result<()> {
    let provider = play(Reply::new().text("ok").header("two words", "x")).await?;
    let answer = ask(&provider, json!("hi")).await?;
    assert_eq!(answer.status, 500);
    let message = answer.bytes().await?;
    assert!(message.starts_with(b"the scenario contains"), "{message:?}");
    Ok(())
}

#[tokio::test]
async fn a_client_that_disconnects_during_a_stream_is_recorded() -> Result<()> {
    let provider = play(Reply::new().text_by(1, "abc").gate_after(2, "never")).await?;
    let mut answer = ask(&provider, json!("hi")).await?;
    answer.read_deltas(2).await?;
    assert_eq!(provider.disconnects(), []);
    drop(answer);
    let disconnect = provider.wait_for_disconnect(BOUND).await?;
    assert_eq!((disconnect.request, disconnect.deltas), (1, 2));
    Ok(())
}
