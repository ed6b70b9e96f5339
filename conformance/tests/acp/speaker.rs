//! Who speaks ACP, and what a scenario calls by another name on each.

use std::future::Future;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::{Event, RequestId};
use teamster::request::PermissionMode;
use teamster_conformance::{Live, Recording, TestEnv, request_of};
use teamster_testkit::provider::{Message, ModelRequest, Reply, Scenario};

/// An agent that speaks ACP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    Gemini,
    OpenCode,
    /// claude-agent-acp, of which Teamster knows nothing.
    ClaudeAgent,
}

/// All of them.
pub(crate) const SPEAKERS: &[Speaker] = &[Speaker::Gemini, Speaker::OpenCode, Speaker::ClaudeAgent];

impl Speaker {
    pub(crate) async fn lab(self, scenario: impl Into<Scenario>) -> Result<TestEnv> {
        match self {
            Self::Gemini => TestEnv::gemini(scenario).await,
            Self::OpenCode => {
                // Without a rule it asks for nothing.
                let asks = [("OPENCODE_PERMISSION", r#"{"bash": "ask"}"#)];
                Ok(TestEnv::opencode(scenario).await?.by_acp(&["acp"]).with_variables(asks))
            }
            Self::ClaudeAgent => TestEnv::claude_agent(scenario).await,
        }
    }

    /// A session's frame.
    pub(crate) fn frame(self, lab: &TestEnv) -> RunRequest {
        let mut frame = lab.request("");
        if self == Self::Gemini {
            // `auto` would ask another model first.
            frame.model = Some("gemini-2.5-flash".to_owned());
        }
        frame
    }

    pub(crate) fn frame_in(self, lab: &TestEnv, mode: PermissionMode) -> RunRequest {
        let mut frame = self.frame(lab);
        frame.permissions.mode = mode;
        frame
    }

    /// A call of the agent's shell tool.
    pub(crate) fn shell(self, command: &str) -> (&'static str, Value) {
        let tool = match self {
            Self::Gemini => "run_shell_command",
            Self::OpenCode => "bash",
            Self::ClaudeAgent => "Bash",
        };
        (tool, json!({"command": command, "description": "Run a command"}))
    }

    /// Another model that the agent can be asked for.
    pub(crate) fn other_model(self) -> &'static str {
        match self {
            Self::Gemini => "gemini-2.5-pro",
            Self::OpenCode => "lab/m2",
            Self::ClaudeAgent => "haiku",
        }
    }

    /// Whether it offers leave for more than one call of the shell. (claude-agent-acp 0.101.0 does not.)
    pub(crate) fn allows_always(self) -> bool {
        self != Self::ClaudeAgent
    }

    /// An id that it could have given to a session.
    pub(crate) fn unknown_session(self) -> &'static str {
        match self {
            Self::Gemini | Self::OpenCode => "ses_11111111111111111111111111",
            Self::ClaudeAgent => "00000000-0000-4000-8000-000000000001",
        }
    }

    /// Words in the arguments of the process that speaks.
    pub(crate) fn process(self) -> &'static str {
        match self {
            Self::Gemini => "--acp",
            Self::OpenCode => "opencode acp",
            Self::ClaudeAgent => "claude-agent-acp",
        }
    }
}

/// Does the same with each of them.
pub(crate) async fn with_each<F: Future<Output = Result<()>>>(look: impl Fn(Speaker) -> F) -> Result<()> {
    for speaker in SPEAKERS {
        look(*speaker).await.with_context(|| format!("{speaker:?}"))?;
    }
    Ok(())
}

/// What the user has said, as the model sees it.
pub(crate) fn heard(request: &ModelRequest) -> Vec<String> {
    let prompts = request.messages.iter().filter(|message| message.is_prompt());
    // Some put words of their own before the user's.
    let texts = prompts.flat_map(Message::texts).filter_map(|text| text.split_once("Prompt "));
    texts.map(|(_, rest)| format!("Prompt {rest}")).collect()
}

/// What the model was asked last in a turn. (claude-agent-acp asks it for a title of the conversation beside that.)
pub(crate) fn last_asked(recording: &Recording) -> Result<&ModelRequest> {
    let is_title = |request: &ModelRequest| heard(request).iter().any(|prompt| prompt.contains("</session>"));
    let asked = recording.requests.iter().rev().find(|request| !is_title(request));
    asked.map(AsRef::as_ref).context("no request")
}

/// Says how many prompts it has heard.
pub(crate) fn counts() -> Scenario {
    Reply::from_fn(move |request: &ModelRequest| Reply::new().text(format!("Heard {}.", heard(request).len()))).into()
}

/// Waits for a request of the agent.
pub(crate) async fn asked(live: &mut Live<'_>) -> Result<RequestId> {
    let event = live.until("a permission request", |event| request_of(event).is_some()).await?;
    if let Event::PermissionRequest(request) = &event {
        let told = live
            .events()
            .iter()
            .any(|event| matches!(event, Event::ToolUse(tool) if Some(&tool.tool_id) == request.tool_id.as_ref()));
        assert!(told, "the call that waits was told before: {request:?}");
    }
    request_of(&event).cloned().context("no request")
}
