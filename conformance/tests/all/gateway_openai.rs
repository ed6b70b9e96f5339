//! The official OpenAI client for Python at the gateway's OpenAI-compatible API, with a real CLI.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster_conformance::{Agent, PythonProgram, TOKEN, TestEnv, TestGateway};
use teamster_testkit::provider::{HttpError, Message, Scenario};

const ANSWER: &str = "It is a long answer in several parts.";

/// The client and the gateway.
struct OpenAi {
    env: TestEnv,
    gateway: TestGateway,
    client: PythonProgram,
}

impl OpenAi {
    /// `None` if tests of Python programs are skipped.
    async fn start() -> Result<Option<Self>> {
        let agent = Agent::named("claude")?;
        let scenario = Scenario::new()
            .branch("slow", agent.reply().text_by(5, ANSWER).gate_after(2, "rest"))
            .branch("fast", agent.reply().text(ANSWER))
            .branch("endless", agent.reply().text_by(5, ANSWER).gate_after(2, "never"))
            .branch("broken", HttpError::unauthorized());
        let env = agent.test_env(scenario).await?;
        let gateway = TestGateway::start(agent, &env, "").await?;
        let url = format!("{}/v1", gateway.url());
        let variables = [("OPENAI_BASE_URL", url.as_str()), ("OPENAI_API_KEY", TOKEN)];
        let client = PythonProgram::start("openai", "openai_client.py", &variables)?;
        Ok(client.map(|client| Self { env, gateway, client }))
    }

    /// Makes a call, and returns its first result.
    async fn call(&mut self, name: &str, request: &Value) -> Result<Value> {
        self.client.write(&json!({"call": name, "request": request}))?;
        self.client.read().await
    }
}

fn request(prompt: &str) -> Value {
    json!({"model": "claude", "messages": [{"role": "user", "content": prompt}]})
}

/// Returns the text of a chunk.
fn text(chunk: &Value) -> &str {
    chunk.pointer("/chunk/choices/0/delta/content").and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test]
async fn the_client_lists_the_agents_and_gets_whole_answers_and_errors_with_their_causes() -> Result<()> {
    let Some(mut openai) = OpenAi::start().await? else { return Ok(()) };
    let models = openai.call("models", &json!({})).await?;
    assert!(models["models"].as_array().context("a list")?.contains(&json!("claude")), "{models}");

    let mut history = request("What was it? SCN:fast");
    let messages = history["messages"].as_array_mut().context("a list")?;
    messages.insert(0, json!({"role": "system", "content": "Be brief."}));
    messages.insert(1, json!({"role": "user", "content": "My name is Ada."}));
    messages.insert(2, json!({"role": "assistant", "content": "Hello, Ada."}));
    let completion = openai.call("complete", &history).await?["completion"].take();
    assert_eq!(completion["choices"][0]["message"]["content"], ANSWER, "{completion}");
    assert_eq!((&completion["choices"][0]["finish_reason"], &completion["model"]), (&json!("stop"), &json!("claude")));
    assert!(completion["usage"]["completion_tokens"].as_u64() >= Some(40), "{completion}");
    let requests = openai.env.provider().requests();
    let sent = requests.last().context("no request to the model")?;
    let texts: String = sent.messages.iter().flat_map(Message::texts).collect();
    assert!(texts.contains("My name is Ada.") && sent.system.contains("Be brief."), "{texts}");

    let mut unknown = request("Hello");
    unknown["model"] = "unknown".into();
    let error = openai.call("complete", &unknown).await?;
    assert_eq!((&error["error"], &error["code"]), (&json!("NotFoundError"), &json!("model_not_found")), "{error}");
    let mut several = request("Hello");
    several["n"] = 2.into();
    let error = openai.call("complete", &several).await?;
    assert_eq!((&error["error"], &error["param"]), (&json!("BadRequestError"), &json!("n")), "{error}");
    openai.client.write(&json!({"call": "models", "client": {"api_key": "a-wrong-token-of-some-length"}}))?;
    let error = openai.client.read().await?;
    assert_eq!((&error["error"], &error["status"]), (&json!("AuthenticationError"), &json!(401)), "{error}");
    openai.gateway.stop().await
}

#[tokio::test]
async fn the_client_streams_an_answer_while_the_agent_writes_it() -> Result<()> {
    let Some(mut openai) = OpenAi::start().await? else { return Ok(()) };
    let mut slow = request("Go. SCN:slow");
    slow["stream_options"] = json!({"include_usage": true});
    let mut chunks = vec![openai.call("stream", &slow).await?];
    while chunks.last().is_some_and(|chunk| text(chunk).is_empty()) {
        chunks.push(openai.client.read().await?);
    }
    // The client has the first text, and the model has not written the rest yet.
    openai.env.provider().gate("rest").open();
    while !chunks.last().is_some_and(|chunk| chunk["end"] == true) {
        let chunk = openai.client.read().await?;
        ensure!(chunk["error"].is_null(), "{chunk}");
        chunks.push(chunk);
    }
    chunks.pop();
    assert_eq!(chunks.iter().map(text).collect::<String>(), ANSWER);
    assert_eq!(chunks[0]["chunk"]["choices"][0]["delta"]["role"], "assistant");
    assert!(chunks.iter().all(|chunk| chunk["chunk"]["id"] == chunks[0]["chunk"]["id"]), "one id: {chunks:?}");
    let usage = &chunks.last().context("no chunks")?["chunk"]["usage"];
    assert!(usage["prompt_tokens"].as_u64() >= Some(25), "{usage}");
    assert!(usage["completion_tokens"].as_u64() >= Some(40), "{usage}");

    let mut last = openai.call("stream", &request("Go. SCN:broken")).await?;
    while last["error"].is_null() && last["end"].is_null() {
        last = openai.client.read().await?;
    }
    assert_eq!((&last["error"], &last["code"]), (&json!("APIError"), &json!("AUTH")), "a failure is no answer: {last}");
    openai.gateway.stop().await
}

#[tokio::test]
async fn a_client_that_leaves_a_stream_aborts_its_turn() -> Result<()> {
    let Some(mut openai) = OpenAi::start().await? else { return Ok(()) };
    let chunk = openai.call("leave", &request("Go. SCN:endless")).await?;
    let id = chunk.pointer("/chunk/id").and_then(Value::as_str).context("no id")?;
    assert_eq!(openai.client.read().await?["end"], true);
    let turn = openai.gateway.ended(id.strip_prefix("chatcmpl-").context("the id of a turn")?).await?;
    assert_eq!(turn["state"], "aborted", "{turn}");
    openai.gateway.stop().await
}
