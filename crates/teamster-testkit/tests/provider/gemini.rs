//! The Gemini API, called by a plain HTTP client.

use anyhow::{Context, Result};
use hyper::StatusCode;
use serde_json::{Value, json};
use teamster_testkit::provider::{HttpError, Provider, Reply, Scenario, Stop, Usage};

use super::client::{Answer, BOUND, send};

const USAGE: Usage = Usage { input: 20, cache_read: 10, cache_write: 0, output: 8 };

fn body(contents: &Value) -> String {
    let tools = json!([{"functionDeclarations": [{"name": "run_shell_command"}, {"name": "glob"}]}]);
    let system = json!({"role": "user", "parts": [{"text": "Be brief."}]});
    json!({"contents": contents, "systemInstruction": system, "tools": tools}).to_string()
}

fn prompt(text: &str) -> Value {
    json!([{"role": "user", "parts": [{"text": "<session_context>today</session_context>"}, {"text": text}]}])
}

async fn ask(provider: &Provider, contents: Value) -> Result<Answer> {
    send(provider, "POST", "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", body(&contents)).await
}

/// Returns the chunks of a stream, and whether it reached its end.
async fn chunks(answer: Answer) -> Result<(Vec<Value>, bool)> {
    let (text, whole) = answer.text().await;
    let chunks = text.split("\r\n\r\n").filter_map(|event| event.strip_prefix("data: "));
    Ok((chunks.map(serde_json::from_str).collect::<Result<_, _>>()?, whole))
}

fn texts(chunks: &[Value]) -> String {
    let parts = chunks.iter().filter_map(|chunk| chunk.pointer("/candidates/0/content/parts/0/text")?.as_str());
    parts.collect()
}

#[tokio::test]
async fn a_reply_is_streamed_with_its_finish_reason_and_its_usage_at_the_end() -> Result<()> {
    let reply = Reply::new().thinking("Hm.").text("Hello, you there.").usage(USAGE);
    let provider = Provider::gemini(reply).start().await?;
    let (chunks, whole) = chunks(ask(&provider, prompt("Hello?")).await?).await?;
    assert!(whole);
    assert_eq!(texts(&chunks), "Hm.Hello, you there.");
    assert_eq!(chunks[0]["candidates"][0]["content"]["parts"][0]["thought"], true);
    let last = chunks.last().context("no chunk")?;
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    let expected = json!({
        "promptTokenCount": 30, "cachedContentTokenCount": 10, "candidatesTokenCount": 6, "thoughtsTokenCount": 2,
        "totalTokenCount": 38,
    });
    assert_eq!(last["usageMetadata"], expected);
    assert_eq!(provider.usage_total(), USAGE);
    Ok(())
}

#[tokio::test]
async fn a_request_is_recorded_with_its_content() -> Result<()> {
    let provider = Provider::gemini(Reply::new().text("x")).start().await?;
    ask(&provider, prompt("Hello?")).await?;
    let request = &provider.requests()[0];
    assert_eq!((request.model.as_str(), request.system.as_str(), request.stream), ("gemini-x", "Be brief.", true));
    assert_eq!(request.prompts(), ["Hello?"]);
    assert_eq!(request.tools(), ["run_shell_command", "glob"]);
    Ok(())
}

#[tokio::test]
async fn a_call_is_whole_and_its_result_leads_to_the_next_turn() -> Result<()> {
    let scenario =
        Scenario::new().reply(Reply::new().tool("glob", json!({"pattern": "*"}))).reply(Reply::new().text("One file."));
    let provider = Provider::gemini(scenario).start().await?;
    let (first, _) = chunks(ask(&provider, prompt("Look.")).await?).await?;
    let call = first[0].pointer("/candidates/0/content/parts/0/functionCall").context("no call")?;
    assert_eq!((&call["name"], &call["args"]), (&json!("glob"), &json!({"pattern": "*"})));

    let response = json!({"id": call["id"], "name": "glob", "response": {"error": "no such thing"}});
    let mut contents = prompt("Look.");
    let messages = contents.as_array_mut().context("a list")?;
    messages.push(json!({"role": "model", "parts": [{"functionCall": call}]}));
    messages.push(json!({"role": "user", "parts": [{"functionResponse": response}]}));
    let (second, _) = chunks(ask(&provider, contents).await?).await?;
    assert_eq!(texts(&second), "One file.");
    let request = &provider.requests()[1];
    assert_eq!(request.turn, 1);
    let results = request.tool_results();
    assert_eq!((results[0].output.as_str(), results[0].is_error), ("no such thing", true));
    Ok(())
}

#[tokio::test]
async fn an_error_has_the_vendors_format() -> Result<()> {
    let provider = Provider::gemini(Scenario::new().reply(HttpError::rate_limited())).start().await?;
    let answer = ask(&provider, prompt("Hello?")).await?;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    let error = answer.json().await?;
    assert_eq!((&error["error"]["code"], &error["error"]["status"]), (&json!(429), &json!("RESOURCE_EXHAUSTED")));
    Ok(())
}

#[tokio::test]
async fn a_stream_breaks_where_the_scenario_cuts_it() -> Result<()> {
    let provider = Provider::gemini(Reply::new().text("It starts and breaks.").cut_after(1)).start().await?;
    let (chunks, whole) = chunks(ask(&provider, prompt("Hello?")).await?).await?;
    assert_eq!((texts(&chunks).as_str(), whole), ("It star", false));
    Ok(())
}

#[tokio::test]
async fn a_stream_can_end_without_a_finish_reason() -> Result<()> {
    let provider = Provider::gemini(Reply::new().text("Half.").stop(Stop::Other(String::new()))).start().await?;
    let (chunks, _) = chunks(ask(&provider, prompt("Hello?")).await?).await?;
    assert!(chunks.iter().all(|chunk| chunk.pointer("/candidates/0/finishReason").is_none()));
    Ok(())
}

#[tokio::test]
async fn a_gate_delays_a_reply() -> Result<()> {
    let provider = Provider::gemini(Reply::new().text("It waits here.").gate_after(1, "rest")).start().await?;
    let answer = ask(&provider, prompt("Hello?")).await?;
    provider.gate("rest").wait_reached(BOUND).await?;
    provider.gate("rest").open();
    assert_eq!(texts(&chunks(answer).await?.0), "It waits here.");
    Ok(())
}

#[tokio::test]
async fn a_request_without_streaming_gets_one_document_and_a_token_count_is_a_side_request() -> Result<()> {
    let provider = Provider::gemini(Reply::new().text("Hello, you.")).start().await?;
    let whole = send(&provider, "POST", "/v1beta/models/m:generateContent", body(&prompt("x"))).await?.json().await?;
    assert_eq!(whole["candidates"][0]["content"]["parts"][0]["text"], "Hello, you.");
    let count = send(&provider, "POST", "/v1beta/models/m:countTokens", body(&prompt("x"))).await?.json().await?;
    assert!(count["totalTokens"].as_u64() > Some(0));
    let unknown = send(&provider, "POST", "/v1beta/models/m:dream", String::new()).await?;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!((provider.requests().len(), provider.side_requests().len()), (1, 2));
    Ok(())
}
