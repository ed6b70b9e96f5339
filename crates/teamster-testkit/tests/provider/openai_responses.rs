//! The Responses API: the same scenarios in another wire format.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster_testkit::provider::{HttpError, Part, Provider, Reply, Scenario, Stop, Usage};

use crate::client::{Answer, Ending, send};

fn body(input: &Value, stream: bool) -> Value {
    json!({"model": "gpt-test", "stream": stream, "input": input, "tools": [
        {"type": "function", "name": "exec_command"},
        {"type": "namespace", "name": "mcp__calc", "tools": [{"name": "add"}]},
        {"type": "web_search"},
    ]})
}

async fn ask(provider: &Provider, input: Value, stream: bool) -> Result<Answer> {
    send(provider, "POST", "/v1/responses", body(&input, stream).to_string()).await
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[tokio::test]
async fn a_stream_has_numbered_events_and_deltas_that_make_the_whole_item() -> Result<()> {
    let usage = Usage { input: 1, cache_read: 2, cache_write: 4, output: 8 };
    let reply = Reply::new().thinking("Hmm.").text_by(4, "Hello, you.").tool("exec_command", json!({"cmd": "ls"}));
    let provider = Provider::openai_responses(reply.usage(usage)).start().await?;
    let (events, ending) = ask(&provider, json!([user("Hi.")]), true).await?.events().await;
    assert!(matches!(ending, Ending::Proper));
    let numbers: Vec<_> = events.iter().map(|event| event["sequence_number"].as_u64()).collect();
    assert_eq!(numbers, (0..events.len() as u64).map(Some).collect::<Vec<_>>());
    let text = of_type(&events, "response.output_text.delta").into_iter().filter_map(|event| event["delta"].as_str());
    assert_eq!(text.collect::<Vec<_>>(), ["Hell", "o, y", "ou."]);
    let done = of_type(&events, "response.output_item.done");
    let kinds: Vec<_> = done.iter().map(|event| &event["item"]["type"]).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(done[2]["item"]["arguments"], "{\"cmd\":\"ls\"}");
    let last = events.last().context("no event")?;
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["output"][1]["content"][0]["text"], "Hello, you.");
    let usage_field = &last["response"]["usage"];
    assert_eq!((&usage_field["input_tokens"], &usage_field["output_tokens"]), (&json!(7), &json!(8)));
    assert_eq!(usage_field["input_tokens_details"], json!({"cached_tokens": 2, "cache_write_tokens": 4}));
    assert_eq!(provider.usage_total(), usage);
    Ok(())
}

#[tokio::test]
async fn a_reply_without_streaming_is_the_same_response() -> Result<()> {
    let provider = Provider::openai_responses(Reply::new().text("Hello.")).start().await?;
    let whole: Value = ask(&provider, json!("Hi."), false).await?.json().await?;
    assert_eq!((&whole["status"], &whole["output"][0]["content"][0]["text"]), (&json!("completed"), &json!("Hello.")));
    Ok(())
}

#[tokio::test]
async fn a_text_input_calls_a_custom_tool_and_a_slash_names_a_namespace() -> Result<()> {
    let reply = Reply::new().tool("apply_patch", "*** Begin\n").tool("mcp__calc/add", json!({"a": 1}));
    let provider = Provider::openai_responses(reply.server_tool("web_search", json!({"query": "q"}))).start().await?;
    let (events, _) = ask(&provider, json!("Hi."), true).await?.events().await;
    let done: Vec<_> = of_type(&events, "response.output_item.done").into_iter().map(|event| &event["item"]).collect();
    assert_eq!((&done[0]["type"], &done[0]["input"]), (&json!("custom_tool_call"), &json!("*** Begin\n")));
    assert_eq!((&done[1]["namespace"], &done[1]["name"]), (&json!("mcp__calc"), &json!("add")));
    assert_eq!((&done[2]["type"], &done[2]["action"]["query"]), (&json!("web_search_call"), &json!("q")));
    Ok(())
}

#[tokio::test]
async fn turns_are_counted_over_the_flat_list_of_items() -> Result<()> {
    let scenario = Scenario::new().reply(Reply::new().text("first")).reply(Reply::new().text("second"));
    let provider = Provider::openai_responses(scenario).start().await?;
    let input = json!([
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        user("<environment_context>here</environment_context>"),
        user("Hi."),
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hmm."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Wait."}]},
        {"type": "function_call", "name": "exec_command", "arguments": "{\"cmd\":\"ls\"}", "call_id": "c1"},
        {"type": "custom_tool_call", "name": "apply_patch", "input": "patch", "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "done"}]},
    ]);
    let answer: Value = ask(&provider, input, false).await?.json().await?;
    assert_eq!(answer["output"][0]["content"][0]["text"], "second");
    let request = &provider.requests()[0];
    assert_eq!((request.turn, request.prompts()), (1, vec!["Hi."]));
    assert_eq!(request.system, "Be brief.");
    assert_eq!(request.tools(), ["exec_command", "mcp__calc/add", "web_search"]);
    let outputs: Vec<_> = request.tool_results().iter().map(|result| result.output.as_str()).collect();
    assert_eq!(outputs, ["a.txt", "done"]);
    let call = request.messages.iter().flat_map(|message| &message.parts).find_map(|part| match part {
        Part::ToolUse { input, .. } => Some(input),
        _ => None,
    });
    assert_eq!(call, Some(&json!({"cmd": "ls"})));
    Ok(())
}

#[tokio::test]
async fn failures_have_the_vendors_status_and_code() -> Result<()> {
    for (error, status, code) in [
        (HttpError::unauthorized(), 401, "invalid_api_key"),
        (HttpError::rate_limited(), 429, "rate_limit_exceeded"),
        (HttpError::out_of_credit(), 429, "insufficient_quota"),
        (HttpError::overloaded(), 503, "server_is_overloaded"),
        (HttpError::prompt_too_long(), 400, "context_length_exceeded"),
    ] {
        let provider = Provider::openai_responses(error).start().await?;
        let answer = ask(&provider, json!("Hi."), true).await?;
        assert_eq!(answer.status.as_u16(), status);
        assert_eq!(answer.json().await?["error"]["code"], code);
    }
    Ok(())
}

#[tokio::test]
async fn faults_happen_during_a_stream_as_with_any_vendor() -> Result<()> {
    let scenario = Scenario::new()
        .branch("cut", Reply::new().text("Never whole.").cut_after(1))
        .branch("error", Reply::new().text("Never whole.").error_after(1, HttpError::rate_limited()))
        .branch("short", Reply::new().text("Too long").stop(Stop::MaxTokens));
    let provider = Provider::openai_responses(scenario).start().await?;
    let (_, ending) = ask(&provider, json!("SCN:cut"), true).await?.events().await;
    assert!(matches!(ending, Ending::Broken));
    let (events, _) = ask(&provider, json!("SCN:error"), true).await?.events().await;
    assert_eq!(events.last().context("none")?["response"]["error"]["code"], "rate_limit_exceeded");
    let (events, _) = ask(&provider, json!("SCN:short"), true).await?.events().await;
    let last = events.last().context("none")?;
    assert_eq!(
        (&last["type"], &last["response"]["incomplete_details"]["reason"]),
        (&json!("response.incomplete"), &json!("max_output_tokens"))
    );
    Ok(())
}

#[tokio::test]
async fn requests_other_than_model_requests_are_recorded_as_side_requests() -> Result<()> {
    let provider = Provider::openai_responses(Reply::new().text("Hello.")).start().await?;
    for (method, path) in [("GET", "/v1/models"), ("GET", "/v1/responses"), ("POST", "/elsewhere")] {
        send(&provider, method, path, String::new()).await?;
    }
    let nonsense = send(&provider, "POST", "/v1/responses", "{}".to_owned()).await?;
    assert_eq!(nonsense.status.as_u16(), 400);
    assert_eq!((provider.requests().len(), provider.side_requests().len()), (0, 4));
    Ok(())
}
