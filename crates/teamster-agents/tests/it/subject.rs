//! The agents under test, with their recorded runs and the requests of these runs.

use teamster_agents::agent::{Agent, acp::Acp, claude::Claude, codex::Codex, gemini::Gemini, opencode::OpenCode};
use teamster_types::request::{AgentInterface, Conversation, McpServer, OutputMode, PermissionMode, RunRequest};

use crate::capture::{self, Capture};

/// An agent under test.
pub(crate) struct Subject {
    pub(crate) agent: &'static dyn Agent,
    /// The minimum number of recorded runs. A missing folder must not be a success.
    least: usize,
    /// Returns the request of a recorded run, as far as the output depends on it.
    pub(crate) request: fn(&Capture) -> RunRequest,
}

/// All agents.
pub(crate) const SUBJECTS: &[Subject] = &[
    Subject { agent: &Claude, least: 352, request: claude },
    Subject { agent: &Gemini, least: 257, request: gemini },
    Subject { agent: &OpenCode, least: 212, request: opencode },
    Subject { agent: &Codex, least: 344, request: crate::codex::request },
    Subject { agent: &Acp::any(), least: 27, request: acp },
];

/// The agent of tests that need only one.
pub(crate) const CLAUDE: &Subject = &SUBJECTS[0];

impl Subject {
    pub(crate) fn captures(&self) -> Vec<Capture> {
        let captures = capture::all(self.agent.name());
        assert!(captures.len() >= self.least, "only {} captures of {} were found", captures.len(), self.agent.name());
        captures
    }
}

fn claude(capture: &Capture) -> RunRequest {
    let mut request = RunRequest::new("recorded");
    if capture.value(&["--output-format"]) == Some("json") {
        request.output = OutputMode::Batch;
    }
    request.conversation = match capture.value(&["--resume", "-r"]) {
        Some(id) if capture.has(&["--fork-session"]) => Conversation::Fork(id.into()),
        Some(id) => Conversation::Resume(id.into()),
        None if capture.has(&["--continue", "-c"]) => Conversation::Continue,
        None => Conversation::New,
    };
    let schema = capture.value(&["--json-schema"]);
    request.schema = schema.and_then(|text| serde_json::from_str(text).ok());
    if let Some(servers) = capture.value(&["--mcp-config"]).and_then(|text| McpServer::from_json(text, |_| None).ok()) {
        request.mcp_servers = servers;
    }
    request
}

fn gemini(capture: &Capture) -> RunRequest {
    let mut request = RunRequest::new("recorded");
    if capture.value(&["--output-format", "-o"]) == Some("json") {
        request.output = OutputMode::Batch;
    }
    request.conversation = match capture.value(&["--resume", "-r"]) {
        None if !capture.has(&["--resume", "-r"]) => Conversation::New,
        None | Some("latest") => Conversation::Continue,
        // An index in a list.
        Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => Conversation::New,
        Some(id) => Conversation::Resume(id.into()),
    };
    request
}

fn opencode(capture: &Capture) -> RunRequest {
    let mut request = RunRequest::new("recorded");
    request.interface = AgentInterface::Exec;
    let session = capture.value(&["--session", "-s"]).filter(|id| !id.is_empty());
    request.conversation = match session {
        Some(id) if capture.has(&["--fork"]) => Conversation::Fork(id.into()),
        Some(id) => Conversation::Resume(id.into()),
        None if capture.has(&["--continue", "-c"]) => Conversation::Continue,
        None => Conversation::New,
    };
    // The configuration was in the environment, always with the same server.
    if capture.name.starts_with("mcp_") {
        request.mcp_servers.insert("tiny".to_owned(), McpServer::stdio("tiny"));
    }
    request
}

/// Returns a request with all fields that some agents require.
pub(crate) fn complete_request(prompt: &str) -> RunRequest {
    let mut request = RunRequest::new(prompt);
    (request.cwd, request.cli_path) = (Some("/home/dev/project".into()), Some("agent".into()));
    request
}

fn acp(capture: &Capture) -> RunRequest {
    let mut request = complete_request("recorded");
    let contains = |words: &str| capture.stdout.windows(words.len()).any(|window| window == words.as_bytes());
    // The recorded agent allowed all calls.
    if contains("\"currentModeId\":\"yolo\"") {
        request.permissions.mode = PermissionMode::Full;
    }
    request.conversation = match capture.name.as_str() {
        "gemini_load_same_minute" => Conversation::Resume("08de391e-4b09-4535-8307-40c9312339cb".into()),
        "gemini_load_none" => Conversation::Resume("unknown".into()),
        "claude_load_unknown" => Conversation::Resume("00000000-0000-4000-8000-000000000001".into()),
        "opencode_resume_unknown" => Conversation::Resume("ses_11111111111111111111111111".into()),
        "gemini_load_other_minute" => Conversation::Resume("13adaf38-0cee-43f0-a7fa-083d0aba0f55".into()),
        _ => Conversation::New,
    };
    request
}
