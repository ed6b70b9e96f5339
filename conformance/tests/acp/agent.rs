//! The ACP agents of the tests, and their names for the parts of a scenario.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::{Event, RequestId};
use teamster::request::PermissionMode;
use teamster_conformance::{Recording, TestEnv, TestRun, request_id};
use teamster_testkit::provider::{Message, ModelRequest, Reply, Scenario};

/// An agent that supports ACP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcpAgent {
    Gemini,
    OpenCode,
    ClaudeAgent,
}

impl AcpAgent {
    pub(crate) async fn test_env(self, scenario: impl Into<Scenario>) -> Result<TestEnv> {
        match self {
            Self::Gemini => TestEnv::gemini(scenario).await,
            Self::OpenCode => {
                // Without a rule, it does not ask before a command.
                let asks = [("OPENCODE_PERMISSION", r#"{"bash": "ask"}"#)];
                Ok(TestEnv::opencode(scenario).await?.as_acp_agent(&["acp"]).with_variables(asks))
            }
            Self::ClaudeAgent => TestEnv::claude_agent(scenario).await,
        }
    }

    /// Returns the request of a session.
    pub(crate) fn request(self, env: &TestEnv) -> RunRequest {
        let mut request = env.request("");
        if self == Self::Gemini {
            // With `auto`, it asks a second model first.
            request.model = Some("gemini-2.5-flash".to_owned());
        }
        request
    }

    pub(crate) fn request_in(self, env: &TestEnv, mode: PermissionMode) -> RunRequest {
        let mut request = self.request(env);
        request.permissions.mode = mode;
        request
    }

    /// Returns a call of the agent's shell tool.
    pub(crate) fn shell(self, command: &str) -> (&'static str, Value) {
        let tool = match self {
            Self::Gemini => "run_shell_command",
            Self::OpenCode => "bash",
            Self::ClaudeAgent => "Bash",
        };
        (tool, json!({"command": command, "description": "Run a command"}))
    }

    /// Returns the name of another model that the agent accepts.
    pub(crate) fn other_model(self) -> &'static str {
        match self {
            Self::Gemini => "gemini-2.5-pro",
            Self::OpenCode => "test/m2",
            Self::ClaudeAgent => "haiku",
        }
    }

    /// Whether it offers permission for later calls of the shell too. (claude-agent-acp 0.101.0 does not.)
    pub(crate) fn allows_always(self) -> bool {
        self != Self::ClaudeAgent
    }

    /// Returns a valid session id that does not exist.
    pub(crate) fn unknown_session(self) -> &'static str {
        match self {
            Self::Gemini | Self::OpenCode => "ses_11111111111111111111111111",
            Self::ClaudeAgent => "00000000-0000-4000-8000-000000000001",
        }
    }

    /// Returns words in the arguments of the agent's process.
    pub(crate) fn process(self) -> &'static str {
        match self {
            Self::Gemini => "--acp",
            Self::OpenCode => "opencode acp",
            Self::ClaudeAgent => "claude-agent-acp",
        }
    }
}

/// Returns the caller's prompts as the model receives them.
pub(crate) fn prompts(request: &ModelRequest) -> Vec<String> {
    let prompts = request.messages.iter().filter(|message| message.is_prompt());
    // Some agents add a text of their own before the user's.
    let texts = prompts.flat_map(Message::texts).filter_map(|text| text.split_once("Prompt "));
    texts.map(|(_, rest)| format!("Prompt {rest}")).collect()
}

/// Returns the last request of a turn to the model. (claude-agent-acp also requests a title of the conversation.)
pub(crate) fn last_request(recording: &Recording) -> Result<&ModelRequest> {
    let is_title = |request: &ModelRequest| prompts(request).iter().any(|prompt| prompt.contains("</session>"));
    let last = recording.requests.iter().rev().find(|request| !is_title(request));
    last.map(AsRef::as_ref).context("no request")
}

/// A model that answers with the number of prompts that it received.
pub(crate) fn counts() -> Scenario {
    Reply::from_fn(move |request: &ModelRequest| Reply::new().text(format!("Received {}.", prompts(request).len())))
        .into()
}

/// Waits for a permission request. Its call was reported before.
pub(crate) async fn next_request(run: &mut TestRun) -> Result<RequestId> {
    let event = run.until("a permission request", |event| request_id(event).is_some()).await?;
    if let Event::PermissionRequest(request) = &event {
        let reported = run
            .events()
            .iter()
            .any(|event| matches!(event, Event::ToolUse(tool) if Some(&tool.tool_id) == request.tool_id.as_ref()));
        assert!(reported, "the call was not reported before its request: {request:?}");
    }
    request_id(&event).cloned().context("no request")
}
