//! The records of the provider, and how a test waits for them.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use teamster_testkit::provider::{Part, Provider, Reply, Role, Scenario};

use crate::client::{BOUND, ask, post, request, send};

async fn provider() -> Result<Provider> {
    let scenario = Scenario::new().reply(Reply::new().text("ok"));
    Ok(Provider::anthropic(scenario).start().await?)
}

#[tokio::test]
async fn a_request_is_recorded_completely() -> Result<()> {
    let provider = provider().await?;
    let body = json!({
        "model": "claude-test",
        "stream": true,
        "system": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}],
        "tools": [{"name": "Bash"}, {"name": "Read"}],
        "messages": [
            {"role": "user", "content": "first"},
            {"role": "system", "content": "between"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": [
                    {"type": "text", "text": "one"}, {"type": "text", "text": "two"},
                ]},
                {"type": "image", "source": {}},
            ]},
        ],
    });
    let answer = post(&provider, &body).await?;
    assert_eq!(answer.status, 200);
    let request = provider.wait_for_request(1, BOUND).await?;
    assert_eq!(request.path, "/v1/messages?beta=true");
    assert_eq!(request.header("x-api-key"), Some("sk-test"));
    assert_eq!((request.model.as_str(), request.system.as_str()), ("claude-test", "Be\nbrief."));
    assert_eq!(request.tools(), ["Bash", "Read"]);
    assert_eq!(request.prompts(), ["first"]);
    assert_eq!(request.body, body);
    assert!(request.stream);
    assert_eq!(request.messages[1].role, Role::System);
    assert_eq!(request.messages[2].parts[0], Part::Thinking("hm".to_owned()));
    let results = request.tool_results();
    assert_eq!(results.len(), 1);
    assert_eq!((results[0].tool_id.as_str(), results[0].output.as_str()), ("t1", "one\ntwo"));
    assert!(results[0].is_error);
    Ok(())
}

#[tokio::test]
async fn prompts_omit_text_that_the_agent_added() -> Result<()> {
    let provider = provider().await?;
    let messages = json!([{"role": "user", "content": [
        {"type": "text", "text": "<system-reminder>SCN:nowhere</system-reminder>"},
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two"},
    ]}]);
    assert_eq!(ask(&provider, messages).await?.status, 200);
    assert_eq!(provider.requests()[0].prompts(), ["one", "two"]);
    Ok(())
}

#[tokio::test]
async fn only_new_tool_results_are_new() -> Result<()> {
    let provider = provider().await?;
    let result =
        |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": id}]});
    let call = json!({"role": "assistant", "content": "calling"});
    let messages = json!([
        {"role": "user", "content": "go"}, call, result("a"), call, result("b"), result("c"),
    ]);
    ask(&provider, messages).await?;
    let requests = provider.requests();
    let ids = |results: Vec<&teamster_testkit::provider::ToolResult>| {
        results.iter().map(|result| result.tool_id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(requests[0].tool_results()), ["b", "c"]);
    assert_eq!(ids(requests[0].all_tool_results()), ["a", "b", "c"]);
    Ok(())
}

#[tokio::test]
async fn a_long_prompt_is_recorded_whole() -> Result<()> {
    let provider = provider().await?;
    let prompt = "0123456789abcdef".repeat(5 << 16);
    assert_eq!(ask(&provider, json!(prompt)).await?.status, 200);
    assert!(provider.requests()[0].prompts() == [prompt]);
    Ok(())
}

#[tokio::test]
async fn requests_other_than_model_requests_are_recorded_separately() -> Result<()> {
    let provider = provider().await?;
    let text = request(json!("count me"), false).to_string();
    for (method, path, status) in [
        ("HEAD", "/", 200),
        ("GET", "/v1/models", 200),
        ("POST", "/v1/messages/count_tokens", 200),
        ("GET", "/nowhere", 404),
    ] {
        let answer = send(&provider, method, path, text.clone()).await?;
        assert_eq!(answer.status, status, "{path}");
    }
    let counted = send(&provider, "POST", "/v1/messages/count_tokens", text).await?;
    assert!(counted.json().await?["input_tokens"].as_u64() > Some(0));
    assert!(provider.requests().is_empty());
    let seen: Vec<_> =
        provider.side_requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect();
    assert_eq!(seen[0], "HEAD /");
    assert_eq!(seen.len(), 5);
    Ok(())
}

#[tokio::test]
async fn a_request_that_cannot_be_parsed_is_rejected_and_recorded() -> Result<()> {
    let provider = provider().await?;
    for body in ["not json", "{}", r#"{"model":"m","messages":[{"role":"robot","content":""}]}"#] {
        let answer = send(&provider, "POST", "/v1/messages", body.to_owned()).await?;
        assert_eq!(answer.status, 400, "{body}");
    }
    assert_eq!(provider.side_requests().len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_test_can_wait_for_requests_that_satisfy_a_condition() -> Result<()> {
    let provider = provider().await?;
    let asking = async {
        for prompt in ["one", "two", "three"] {
            ask(&provider, json!(prompt)).await?;
        }
        Ok(())
    };
    let second = async { Ok(provider.wait_for_request(2, BOUND).await?) };
    let all = async {
        let wanted = provider.wait_until(BOUND, |requests| {
            // Calling the provider from the condition must not block.
            requests.iter().any(|request| request.prompts() == ["three"]) && provider.requests().len() >= requests.len()
        });
        Ok::<_, anyhow::Error>(wanted.await?)
    };
    let ((), second, all) = tokio::try_join!(asking, second, all)?;
    assert_eq!(second.prompts(), ["two"]);
    assert_eq!(all.len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_wait_that_times_out_names_what_it_waited_for() -> Result<()> {
    let provider = provider().await?;
    let bound = Duration::from_millis(1);
    let error = provider.wait_for_request(1, bound).await.expect_err("there is no request");
    assert_eq!(
        error.to_string(),
        "timed out after 1ms while waiting for request 1; the provider has received 0 requests"
    );
    assert!(provider.wait_for_disconnect(bound).await.is_err());
    assert!(provider.gate("none").wait_reached(bound).await.is_err());
    Ok(())
}
