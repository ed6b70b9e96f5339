//! Replies of the provider without faults.

use anyhow::Result;
use serde_json::{Value, json};
use teamster_testkit::provider::{Provider, Reply, Scenario, Script, StartError, Stop, Usage, marker};

use crate::client::{BOUND, Ending, ask, ask_whole, deltas, types};

async fn play(scenario: impl Into<Scenario>) -> Result<Provider> {
    Ok(Provider::anthropic(scenario).start().await?)
}

/// A conversation after this number of model responses.
fn after_turns(prompt: &str, turns: usize) -> Value {
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    for _ in 0..turns {
        messages.push(json!({"role": "assistant", "content": [{"type": "text", "text": "a reply"}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": "done"},
            {"type": "text", "text": "<system-reminder>continue</system-reminder>"},
        ]}));
    }
    Value::Array(messages)
}

async fn reply_text(provider: &Provider, messages: Value) -> Result<String> {
    let (events, _) = ask(provider, messages).await?.events().await;
    Ok(deltas(&events).concat())
}

#[tokio::test]
async fn a_reply_is_streamed_in_the_order_of_the_messages_api() -> Result<()> {
    let reply = Reply::new().text("Let me run that.").tool("Bash", json!({"command": "echo hi"}));
    let provider = play(Scenario::new().reply(reply)).await?;
    let (events, ending) = ask(&provider, json!("hi")).await?.events().await;
    assert_eq!(ending, Ending::Proper);
    assert_eq!(
        types(&events),
        [
            "message_start",
            "content_block_start",
            "ping",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    assert_eq!(deltas(&events), ["Let me ", "run tha", "t.", "", r#"{"command":"echo hi"}"#]);
    let message = &events[0]["message"];
    assert_eq!(message["model"], "claude-test");
    assert_eq!(message["usage"]["input_tokens"], 25);
    let end = &events[events.len() - 2];
    assert_eq!(end["delta"]["stop_reason"], "tool_use");
    assert_eq!(end["usage"]["output_tokens"], 40);
    Ok(())
}

#[tokio::test]
async fn every_kind_of_block_can_be_sent() -> Result<()> {
    let reply = Reply::new()
        .thinking("hm")
        .thinking("")
        .thinking_tokens([50, 120])
        .thinking_redacted("c2VjcmV0")
        .text_by(4, "abcdef")
        .text_deltas(["", "漢字"])
        .tool_raw("Bash", [r#"{"comm"#, "and"])
        .server_tool("web_search", json!({"query": "x"}))
        .stop(Stop::Other("odd".to_owned()));
    let provider = play(reply).await?;
    let (events, _) = ask(&provider, json!("hi")).await?.events().await;
    let opened: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "content_block_start")
        .map(|event| &event["content_block"]["type"])
        .collect();
    assert_eq!(
        opened,
        ["thinking", "thinking", "thinking", "redacted_thinking", "text", "text", "tool_use", "server_tool_use",]
    );
    let estimates: Vec<u64> = events.iter().filter_map(|event| event["delta"]["estimated_tokens"].as_u64()).collect();
    assert_eq!(estimates, [50, 120]);
    let signatures = events.iter().filter(|event| event["delta"]["type"] == "signature_delta");
    assert_eq!(signatures.count(), 3);
    let texts = deltas(&events);
    for text in ["abcd", "ef", "漢字", r#"{"comm"#, "and"] {
        assert!(texts.iter().any(|delta| delta == text), "{text}");
    }
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "odd");
    Ok(())
}

#[tokio::test]
async fn a_request_without_streaming_gets_one_complete_message() -> Result<()> {
    let usage = Usage { input: 1, cache_read: 2, cache_write: 3, output: 4 };
    let reply = Reply::new().thinking("hm").text("Running.").tool("Bash", json!({"command": "ls"})).usage(usage);
    let provider = play(reply).await?;
    let message = ask_whole(&provider, json!("hi")).await?;
    assert_eq!(message["content"][0]["thinking"], "hm");
    assert_eq!(message["content"][1]["text"], "Running.");
    assert_eq!(message["content"][2]["input"]["command"], "ls");
    assert_eq!(message["stop_reason"], "tool_use");
    assert_eq!(message["usage"]["cache_read_input_tokens"], 2);
    assert_eq!(provider.usage_total(), usage);
    Ok(())
}

#[tokio::test]
async fn the_nth_turn_gets_the_nth_reply_and_the_last_is_repeated() -> Result<()> {
    let scenario = Scenario::new().reply(Reply::new().text("first")).reply(Reply::new().text("second"));
    let provider = play(scenario).await?;
    for (turns, text) in [(0, "first"), (1, "second"), (2, "second"), (0, "first")] {
        assert_eq!(reply_text(&provider, after_turns("hi", turns)).await?, text);
    }
    Ok(())
}

#[tokio::test]
async fn a_script_can_fail_after_its_last_reply_with_an_error_that_is_not_retried() -> Result<()> {
    let scenario = Scenario::new().reply(Reply::new().text("only")).then_fail();
    let provider = play(scenario).await?;
    assert_eq!(reply_text(&provider, after_turns("hi", 0)).await?, "only");
    let answer = ask(&provider, after_turns("hi", 1)).await?;
    assert_eq!(answer.status, 400);
    let message = answer.json().await?["error"]["message"].to_string();
    assert!(message.contains("no reply for turn 1"), "{message}");
    Ok(())
}

#[tokio::test]
async fn a_marker_in_the_prompt_selects_the_branch() -> Result<()> {
    let scenario = Scenario::new()
        .reply(Reply::new().text("main"))
        .branch("worker", Script::new().reply(Reply::new().text("w0")).reply(Reply::new().text("w1")));
    let provider = play(scenario).await?;
    let prompt = format!("work {}", marker("worker"));
    assert_eq!(reply_text(&provider, after_turns(&prompt, 1)).await?, "w1");
    assert_eq!(reply_text(&provider, after_turns("plain", 1)).await?, "main");
    let unknown = ask(&provider, json!("SCN:unknown")).await?;
    assert_eq!(unknown.status, 400);
    let requests = provider.requests();
    let chosen: Vec<_> = requests.iter().map(|request| (request.branch.as_str(), request.turn)).collect();
    assert_eq!(chosen, [("worker", 1), ("default", 1), ("unknown", 0)]);
    Ok(())
}

#[tokio::test]
async fn a_branch_name_that_no_marker_can_contain_is_an_error_at_the_start() {
    for name in ["two words", "", "default"] {
        let scenario = Scenario::new().branch(name, Reply::new());
        let started = Provider::anthropic(scenario).start().await;
        assert!(matches!(started, Err(StartError::BranchName { .. })), "{name}");
    }
}

#[tokio::test]
async fn a_reply_can_be_computed_from_the_request() -> Result<()> {
    let reply = Reply::from_fn(|request| Reply::new().text(format!("{} messages", request.messages.len())));
    let provider = play(Scenario::new().reply(reply)).await?;
    assert_eq!(reply_text(&provider, after_turns("hi", 2)).await?, "5 messages");
    Ok(())
}

#[tokio::test]
async fn a_closed_gate_holds_the_stream_until_the_test_opens_it() -> Result<()> {
    let reply = Reply::new().text_by(1, "abc").gate_after(2, "half");
    let provider = play(reply).await?;
    let gate = provider.gate("half");
    let mut answer = ask(&provider, json!("hi")).await?;
    assert_eq!(answer.read_deltas(2).await?, ["a", "b"]);
    gate.wait_reached(BOUND).await?;
    assert_eq!(provider.usage_total(), Usage::ZERO);
    gate.open();
    let (rest, _) = answer.events().await;
    assert_eq!(deltas(&rest), ["c"]);
    assert_eq!(reply_text(&provider, json!("again")).await?, "abc");
    Ok(())
}

#[tokio::test]
async fn a_gate_before_the_reply_delays_even_its_headers() -> Result<()> {
    let provider = play(Reply::new().text("late").gate_before("start")).await?;
    let gate = provider.gate("start");
    let asking = async { ask_whole(&provider, json!("hi")).await };
    let opening = async {
        gate.wait_reached(BOUND).await?;
        assert_eq!(provider.usage_total(), Usage::ZERO);
        gate.open();
        Ok(())
    };
    let (message, ()) = tokio::try_join!(asking, opening)?;
    assert_eq!(message["content"][0]["text"], "late");
    Ok(())
}

#[tokio::test]
async fn usage_is_summed_over_complete_replies() -> Result<()> {
    let scenario = Scenario::new()
        .reply(Reply::new().text("main"))
        .branch("cut", Reply::new().text("cut").cut_after(1))
        .branch("side", Reply::new().text("side").usage(Usage { output: 7, ..Usage::ZERO }));
    let provider = play(scenario).await?;
    for prompt in ["x", "SCN:cut", "SCN:side"] {
        reply_text(&provider, json!(prompt)).await?;
    }
    let side = provider.usage_where(|request| request.branch == "side");
    assert_eq!(side.output, 7);
    assert_eq!(provider.usage_total(), Usage::default() + side);
    Ok(())
}
