//! The tools that the gateway offers to agents, called by the real CLIs.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster::request::PermissionMode;
use teamster::{RunRequest, Runtime};
use teamster_conformance::{Agent, Recording, TestGateway, agent_tests};
use teamster_gateway::config::Config;
use teamster_gateway::tools::{self, AgentTools, SessionTools, ToolTurn};
use teamster_gateway::{Clock, Gateway, IncomingMessage, MessageTarget, Parts};
use teamster_store::{
    ChatAddress, ClaimRequest, ConversationId, HostId, Json, Lease, MemoryStore, MessageMode, NewConversation, Seq,
};
use teamster_testkit::provider::{ModelRequest, Reply, Scenario, Script};
use tempfile::TempDir;

agent_tests! {
    an_agent_sends_messages_and_files_and_makes_schedules_without_a_permission: all,
    a_warm_session_cannot_use_the_tools_between_turns: [claude, codex, opencode],
}

/// A model that calls these tools, one after the other.
fn calls(agent: &Agent, tools: &[(&str, Value)]) -> Script {
    let call = |script: Script, (tool, input): &(&str, Value)| {
        script.reply(agent.reply().tool(agent.mcp_tool("teamster", tool), input.clone()))
    };
    tools.iter().fold(Script::new(), call)
}

/// Returns the first UUID in the result of the last call.
fn id_in_result(request: &ModelRequest) -> String {
    let outputs: String = request.tool_results().iter().map(|result| result.output.as_str()).collect();
    let is_part = |character: char| character.is_ascii_hexdigit() || character == '-';
    let id = outputs.split(|character| !is_part(character)).find(|word| word.len() == 36);
    id.unwrap_or_default().to_owned()
}

/// A model that makes two schedules, deletes the first one, and reads the history.
fn plans(agent: &Agent) -> Script {
    let plan = |text: &str| json!({"text": text, "cron": "0 9 * * *", "timeZone": "Europe/London"});
    let (reply, delete) = (agent.reply(), agent.mcp_tool("teamster", "schedule_delete"));
    let created =
        calls(agent, &[("schedule_create", plan("Water the roses.")), ("schedule_create", plan("Cut the grass."))]);
    let listed = created.reply(agent.reply().tool(agent.mcp_tool("teamster", "schedule_list"), json!({})));
    let deleted = listed.reply(Reply::from_fn(move |request: &ModelRequest| {
        reply.clone().tool(delete.clone(), json!({ "id": id_in_result(request) }))
    }));
    let read = deleted.reply(agent.reply().tool(agent.mcp_tool("teamster", "read_history"), json!({})));
    read.reply(agent.reply().text("Planned."))
}

/// Returns the outputs of a turn's tools, each with whether it is an error.
fn results(log: &[Value], turn: &str) -> Vec<(String, bool)> {
    let results = log.iter().filter(|event| event["turnId"] == turn && event["type"] == "tool_result");
    let output = |event: &Value| event["output"].as_str().unwrap_or_default().to_owned();
    results.map(|event| (output(event), event["isError"] == true)).collect()
}

async fn an_agent_sends_messages_and_files_and_makes_schedules_without_a_permission(agent: &Agent) -> Result<()> {
    let sends = [
        ("send_message", json!({"text": "I water them now."})),
        ("send_file", json!({"path": "plan.json", "caption": "The plan"})),
        ("send_file", json!({"path": "/etc/hostname"})),
    ];
    let sends = calls(agent, &sends).reply(agent.reply().text("Sent."));
    let scenario = Scenario::new().branch("send", sends).branch("plan", plans(agent));
    let env = agent.test_env(scenario).await?;
    fs::write(env.project().join("plan.json"), "[\"every day\"]")?;
    // Gemini CLI starts MCP servers only in a trusted directory.
    let trust = if agent.name == "gemini" { "project_trust = \"trusted\"" } else { "" };
    let gateway = TestGateway::start(agent, &env, &format!("permission = \"read-only\"\n{trust}")).await?;
    let conversation = gateway.create_conversation(&json!({})).await?;
    let sent = gateway.answered(&conversation, "The roses are dry. SCN:send").await?;
    assert_eq!(sent["result"]["finalText"], "Sent.", "{sent}");
    let planned = gateway.answered(&conversation, "Do it each day. SCN:plan").await?;
    assert_eq!(planned["result"]["finalText"], "Planned.", "{planned}");

    let log = gateway.log(&conversation).await?;
    assert!(log.iter().all(|event| event["type"] != "permission_request"), "no permission is requested");
    let outputs = results(&log, sent["id"].as_str().context("an id")?);
    let errors: Vec<bool> = outputs.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [false, false, true], "a file elsewhere is refused: {outputs:?}");
    let messages: Vec<_> = log.iter().filter(|event| event["type"] == "message_sent").collect();
    assert_eq!((messages.len(), &messages[0]["text"]), (2, &json!("I water them now.")));
    let hash = messages[1]["file"]["hash"].as_str().context("no file")?;
    assert_eq!(gateway.get(&format!("/v1/files/{hash}")).await?, json!(["every day"]));

    let outputs = results(&log, planned["id"].as_str().context("an id")?);
    assert_eq!(outputs.len(), 5, "{outputs:?}");
    assert!(outputs.iter().all(|(_, is_error)| !is_error), "{outputs:?}");
    assert!(outputs[2].0.contains("Water the roses.") && outputs[2].0.contains("Cut the grass."), "{outputs:?}");
    assert!(outputs[4].0.contains("The roses are dry.") && !outputs[4].0.contains("Do it each day."), "{outputs:?}");
    let schedules = gateway.get(&format!("/v1/schedules?conversationId={conversation}")).await?;
    let items = schedules["items"].as_array().context("a list")?;
    assert_eq!(items.len(), 1, "one of two is deleted: {schedules}");
    assert_eq!((&items[0]["author"], &items[0]["timeZone"]), (&json!("operator"), &json!("Europe/London")));
    gateway.stop().await
}

/// A gateway that runs no turns, with a conversation that has a message.
struct Chat {
    gateway: Gateway,
    conversation: ConversationId,
    lease: Lease,
    tools: AgentTools,
    _data: TempDir,
}

fn address() -> ChatAddress {
    ChatAddress { channel: "test".to_owned(), chat: "garden".to_owned(), thread: String::new() }
}

impl Chat {
    async fn new() -> Result<Self> {
        let data = tempfile::tempdir()?;
        let mut config = Config::default();
        config.data_dir = data.path().to_owned();
        let gateway = Gateway::new(Parts {
            config,
            store: Arc::new(MemoryStore::new()),
            runtime: Arc::new(Runtime::new()),
            channels: Vec::new(),
            host: HostId::new("test"),
            clock: Clock::system(),
        });
        let conversation = ConversationId::new("0197f3a0-0000-7000-8000-000000000001".parse()?);
        let agent = "claude".to_owned();
        let new = NewConversation { id: conversation, address: address(), agent, title: None, settings: Json::empty() };
        gateway.store().create_conversation(new, None, gateway.now()).await?;
        let message = IncomingMessage {
            target: MessageTarget::Conversation(conversation),
            channel_ids: Vec::new(),
            idempotency: None,
            author: "ann".to_owned(),
            text: "Water them.".to_owned(),
            attachments: Vec::new(),
            mode: MessageMode::Queue,
        };
        gateway.accept(message).await?;
        let request = ClaimRequest {
            worker: gateway.worker().clone(),
            host: HostId::new("test"),
            lease_for: Duration::from_hours(1),
            max_running: 1,
            max_running_per_chat: 1,
            affinity: Duration::ZERO,
        };
        let lease = gateway.store().claim(request, gateway.now()).await?.context("no turn waits")?.lease;
        let tools = AgentTools::default();
        tools::start(&tools, &gateway).await?;
        Ok(Self { gateway, conversation, lease, tools, _data: data })
    }

    fn turn(&self, directory: PathBuf) -> ToolTurn {
        let Lease { conversation, turn, epoch } = self.lease;
        ToolTurn { conversation, turn, epoch, address: address(), author: "ann".to_owned(), directory }
    }

    /// Adds the tools to a request that permits nothing else.
    fn offer(&self, mut request: RunRequest) -> (RunRequest, SessionTools) {
        request.permissions.mode = PermissionMode::ReadOnly;
        let tools = self.tools.offer(self.conversation, &mut request);
        (request, tools)
    }
}

/// Returns whether each call failed.
fn errors(recording: &Recording) -> Vec<bool> {
    recording.tools().iter().map(|(_, result)| result.is_error == Some(true)).collect()
}

async fn a_warm_session_cannot_use_the_tools_between_turns(agent: &Agent) -> Result<()> {
    let chat = Chat::new().await?;
    let sends =
        |text: &str| calls(agent, &[("send_message", json!({ "text": text }))]).reply(agent.reply().text("Done."));
    let scenario = Scenario::new().branch("one", sends("1")).branch("two", sends("2")).branch("three", sends("3"));
    let env = agent.test_env(scenario).await?;
    let (request, tools) = chat.offer(agent.request(&env, ""));
    let session = env.open(request)?;
    let mut failed = Vec::new();
    for (prompt, runs) in [("SCN:one", true), ("SCN:two", false), ("SCN:three", true)] {
        if runs {
            tools.begin_turn(chat.turn(env.project()));
        }
        failed.extend(errors(&session.run_turn(prompt).await?));
        tools.end_turn();
    }
    assert_eq!(failed, [false, true, false]);
    let log = chat.gateway.store().events(chat.conversation, Seq::START, 99).await?;
    assert_eq!(log.events.iter().filter(|event| event.kind == "message_sent").count(), 2);
    session.close().await
}
