//! The tools that the gateway offers to agents, called by the real CLIs.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster::request::PermissionMode;
use teamster::{RunRequest, Runtime};
use teamster_conformance::{Agent, Recording, agent_tests};
use teamster_gateway::config::Config;
use teamster_gateway::tools::{AgentTools, SessionTools, ToolTurn};
use teamster_gateway::{Clock, Gateway, IncomingMessage, MessageTarget, Parts};
use teamster_store::{
    ChatAddress, ConversationId, Delivery, DeliveryFilter, HostId, Json, MemoryStore, MessageMode, NewConversation,
    PageRequest, ScheduleFilter, TurnId,
};
use teamster_testkit::provider::Scenario;
use tempfile::TempDir;

agent_tests! {
    an_agent_sends_a_message_and_a_file_without_a_permission: all,
    an_agent_schedules_a_message_and_reads_the_history: all,
    a_warm_session_cannot_use_the_tools_between_turns: [claude, codex, opencode],
}

/// A gateway that runs no turns, with a conversation that has two messages.
struct Chat {
    gateway: Gateway,
    conversation: ConversationId,
    turn: TurnId,
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
        let mut turn = None;
        for text in ["The roses are dry.", "Water them."] {
            let message = IncomingMessage {
                target: MessageTarget::Conversation(conversation),
                channel_ids: Vec::new(),
                idempotency: None,
                author: "ann".to_owned(),
                text: text.to_owned(),
                attachments: Vec::new(),
                mode: MessageMode::Queue,
            };
            turn = Some(gateway.accept(message).await?.turn.turn);
        }
        let tools = AgentTools::default();
        tools.start(&gateway).await?;
        Ok(Self { gateway, conversation, turn: turn.context("no turn")?, tools, _data: data })
    }

    fn turn(&self, directory: PathBuf) -> ToolTurn {
        let (conversation, turn) = (self.conversation, self.turn);
        ToolTurn { conversation, turn, address: address(), author: "ann".to_owned(), directory }
    }

    /// Adds the tools to a request that permits nothing else.
    fn offer(&self, mut request: RunRequest) -> (RunRequest, SessionTools) {
        request.permissions.mode = PermissionMode::ReadOnly;
        let tools = self.tools.offer(self.conversation, &mut request);
        (request, tools)
    }

    async fn deliveries(&self) -> Result<Vec<Delivery>> {
        Ok(self.gateway.store().deliveries(DeliveryFilter::default(), PageRequest::first(9)).await?.items)
    }
}

/// A model that calls these tools, one after the other.
fn calls(agent: &Agent, tools: &[(&str, Value)]) -> Scenario {
    let call = |scenario: Scenario, (tool, input): &(&str, Value)| {
        scenario.reply(agent.reply().tool(agent.mcp_tool("teamster", tool), input.clone()))
    };
    tools.iter().fold(Scenario::new(), call).reply(agent.reply().text("Done."))
}

/// Returns the output of each tool, with whether it is an error.
fn outputs(recording: &Recording) -> Vec<(String, bool)> {
    let tools = recording.tools();
    tools.iter().map(|(_, result)| (result.output.as_str().to_owned(), result.is_error == Some(true))).collect()
}

async fn an_agent_sends_a_message_and_a_file_without_a_permission(agent: &Agent) -> Result<()> {
    let chat = Chat::new().await?;
    let tools = [
        ("send_message", json!({"text": "I water them now."})),
        ("send_file", json!({"path": "plan.txt", "caption": "The plan"})),
        ("send_file", json!({"path": "/etc/hostname"})),
    ];
    let env = agent.test_env(calls(agent, &tools)).await?;
    fs::write(env.project().join("plan.txt"), "every day")?;
    let (request, session) = chat.offer(agent.request(&env, "Go."));
    session.begin_turn(chat.turn(env.project()));
    let recording = env.run(request).await?;
    assert_eq!(recording.result.final_text, "Done.", "{:?}", recording.failure());
    assert!(recording.result.permission_denials.is_empty());
    let outputs = outputs(&recording);
    let errors: Vec<bool> = outputs.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [false, false, true], "{outputs:?}");
    let deliveries = chat.deliveries().await?;
    let contents = deliveries.iter().map(|delivery| Ok(delivery.body.to::<Value>()?["content"].clone()));
    let contents = contents.collect::<Result<Vec<Value>>>()?;
    assert_eq!((contents.len(), &contents[0]["text"]), (2, &json!("I water them now.")));
    let hash = contents[1]["hash"].as_str().context("no file")?;
    assert_eq!(chat.gateway.attachments().get(hash).await?, b"every day");
    Ok(())
}

async fn an_agent_schedules_a_message_and_reads_the_history(agent: &Agent) -> Result<()> {
    let chat = Chat::new().await?;
    let plan = json!({"text": "Water the roses.", "cron": "0 9 * * *", "timeZone": "Europe/London"});
    let tools = [("schedule_create", plan), ("schedule_list", json!({})), ("read_history", json!({}))];
    let env = agent.test_env(calls(agent, &tools)).await?;
    let (request, session) = chat.offer(agent.request(&env, "Go."));
    session.begin_turn(chat.turn(env.project()));
    let recording = env.run(request).await?;
    assert_eq!(recording.result.final_text, "Done.", "{:?}", recording.failure());
    let outputs = outputs(&recording);
    let page = chat.gateway.store().schedules(ScheduleFilter::default(), PageRequest::first(9)).await?;
    assert_eq!(page.items.len(), 1, "{outputs:?}");
    assert_eq!(page.items[0].body.to::<Value>()?["author"], "ann");
    assert!(outputs[1].0.contains(&page.items[0].id.to_string()), "{outputs:?}");
    assert!(outputs[2].0.contains("The roses are dry.") && !outputs[2].0.contains("Water them."), "{outputs:?}");
    Ok(())
}

async fn a_warm_session_cannot_use_the_tools_between_turns(agent: &Agent) -> Result<()> {
    let chat = Chat::new().await?;
    let message = |text: &str| agent.reply().tool(agent.mcp_tool("teamster", "send_message"), json!({ "text": text }));
    let done = || agent.reply().text("Done.");
    let scenario = Scenario::new().reply(message("one")).reply(done()).reply(message("two")).reply(done());
    let env = agent.test_env(scenario.reply(message("three")).reply(done())).await?;
    let (request, tools) = chat.offer(agent.request(&env, ""));
    let session = env.open(request)?;
    let mut errors = Vec::new();
    for runs in [true, false, true] {
        if runs {
            tools.begin_turn(chat.turn(env.project()));
        }
        let recording = session.run_turn("Go.").await?;
        errors.extend(outputs(&recording).into_iter().map(|(_, is_error)| is_error));
        tools.end_turn();
    }
    assert_eq!(errors, [false, true, false]);
    assert_eq!(chat.deliveries().await?.len(), 2);
    Ok(())
}
