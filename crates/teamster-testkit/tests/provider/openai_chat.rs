//! The Chat Completions API: encoding of replies and parsing of requests.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster_testkit::provider::{HttpError, Part, Provider, Reply, Scenario, Stop, Usage};

use crate::client::{Answer, BOUND, send};

async fn play(scenario: impl Into<Scenario>) -> Result<Provider> {
    Ok(Provider::openai_chat(scenario).start().await?)
}

fn request(messages: &Value, stream: bool) -> String {
    json!({"model": "m1", "stream": stream, "messages": messages}).to_string()
}

async fn ask(provider: &Provider, messages: &Value, stream: bool) -> Result<Answer> {
    send(provider, "POST", "/v1/chat/completions", request(messages, stream)).await
}

fn prompt(text: &str) -> Value {
    json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}])
}

/// Returns the chunks of a stream, and whether it ended with `[DONE]`.
async fn chunks(answer: Answer) -> Result<(Vec<Value>, bool)> {
    let bytes = answer.bytes().await?;
    let text = std::str::from_utf8(&bytes)?;
    let data: Vec<&str> = text.split("\n\n").filter_map(|event| event.strip_prefix("data: ")).collect();
    let done = data.last() == Some(&"[DONE]");
    let chunks = data.iter().filter(|data| **data != "[DONE]").map(|data| Ok(serde_json::from_str(data)?));
    Ok((chunks.collect::<Result<_>>()?, done))
}

fn joined(chunks: &[Value], field: &str) -> String {
    chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta")?.get(field)?.as_str()).collect()
}

#[tokio::test]
async fn a_reply_is_streamed_in_chunks_with_its_finish_reason_and_its_usage() -> Result<()> {
    let usage = Usage { input: 25, cache_read: 50, cache_write: 0, output: 40 };
    let reply =
        Reply::new().thinking("Think first.").text("Let me run that.").tool("bash", json!({"command": "echo hi"}));
    let provider = play(reply.usage(usage)).await?;
    let (chunks, done) = chunks(ask(&provider, &prompt("Hi."), true).await?).await?;
    assert!(done);
    assert_eq!(joined(&chunks, "reasoning_content"), "Think first.");
    assert_eq!(joined(&chunks, "content"), "Let me run that.");
    let calls = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0].as_object());
    let arguments: String = calls.clone().filter_map(|call| call["function"]["arguments"].as_str()).collect();
    assert_eq!(serde_json::from_str::<Value>(&arguments)?, json!({"command": "echo hi"}));
    assert_eq!(calls.filter(|call| call.contains_key("id")).count(), 1);
    let reasons: Vec<_> = chunks.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str()).collect();
    assert_eq!(reasons, ["tool_calls"]);
    let usage_field = &chunks.last().context("no chunks")?["usage"];
    assert_eq!((&usage_field["prompt_tokens"], &usage_field["completion_tokens"]), (&json!(75), &json!(40)));
    assert_eq!(usage_field["prompt_tokens_details"]["cached_tokens"], 50);
    assert_eq!(provider.usage_total(), usage);
    Ok(())
}

#[tokio::test]
async fn a_reply_without_streaming_has_the_same_content() -> Result<()> {
    let provider = play(Reply::new().thinking("So.").text("Cut").tool("a", json!({})).stop(Stop::MaxTokens)).await?;
    let whole = ask(&provider, &prompt("Hi."), false).await?.json().await?;
    let choice = &whole["choices"][0];
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!("Cut"), &json!("length")));
    assert_eq!(choice["message"]["reasoning_content"], "So.");
    assert_eq!(choice["message"]["tool_calls"][0]["function"]["arguments"], "{}");
    Ok(())
}

#[tokio::test]
async fn a_request_is_recorded_with_its_conversation_and_counts_its_turns() -> Result<()> {
    let provider = play(Scenario::new().reply(Reply::new().text("one")).reply(Reply::new().text("two"))).await?;
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        {"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": "image_url", "image_url": {"url": "data:"}}]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{\"a\":1}"}}
        ]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]);
    let (chunks, _) = chunks(ask(&provider, &messages, true).await?).await?;
    assert_eq!(joined(&chunks, "content"), "two");
    let request = provider.wait_for_request(1, BOUND).await?;
    assert_eq!((request.system.as_str(), request.turn), ("Be brief.\nBe kind.", 1));
    assert_eq!(request.prompts(), ["Hi."]);
    assert_eq!(request.tool_results()[0].output, "done");
    assert!(request.messages[0].parts.iter().any(|part| matches!(part, Part::Other(_))));
    let Part::ToolUse { name, input, .. } = &request.messages[1].parts[0] else { panic!("no call") };
    assert_eq!((name.as_str(), input), ("bash", &json!({"a": 1})));
    Ok(())
}

#[tokio::test]
async fn errors_have_the_vendors_status_and_format() -> Result<()> {
    let table = [
        (HttpError::unauthorized(), 401, json!("invalid_api_key")),
        (HttpError::rate_limited(), 429, json!("rate_limit_exceeded")),
        (HttpError::prompt_too_long(), 400, json!("context_length_exceeded")),
        (HttpError::internal(), 500, Value::Null),
    ];
    for (error, status, code) in table {
        let provider = play(error).await?;
        let answer = ask(&provider, &prompt("Hi."), true).await?;
        assert_eq!(answer.status, status);
        assert_eq!(answer.json().await?["error"]["code"], code);
    }
    Ok(())
}

#[tokio::test]
async fn an_error_during_a_stream_ends_it_without_its_proper_end() -> Result<()> {
    let provider = play(Reply::new().text("It breaks off.").error_after(1, HttpError::overloaded())).await?;
    let (chunks, done) = chunks(ask(&provider, &prompt("Hi."), true).await?).await?;
    assert!(!done);
    assert!(chunks.last().is_some_and(|chunk| chunk["error"]["message"].is_string()));
    Ok(())
}

#[tokio::test]
async fn an_invalid_request_is_rejected_and_recorded() -> Result<()> {
    let provider = play(Reply::new()).await?;
    for body in ["not json", "{}", r#"{"model":"m","messages":[{"role":"robot"}]}"#] {
        assert_eq!(send(&provider, "POST", "/v1/chat/completions", body.to_owned()).await?.status, 400, "{body}");
    }
    assert_eq!(send(&provider, "GET", "/v1/models", String::new()).await?.status, 200);
    assert_eq!(send(&provider, "POST", "/v1/responses", String::new()).await?.status, 404);
    assert_eq!(provider.side_requests().len(), 5);
    assert!(provider.requests().is_empty());
    Ok(())
}
