//! The agents under test: each with its recorded runs, and the request that such a run stands for.

use teamster_protocol::agent::{Agent, claude::Claude, codex::Codex, gemini::Gemini, opencode::OpenCode};
use teamster_protocol::request::{Conversation, McpServer, Mode, OutputMode, RunRequest};

use crate::capture::{self, Capture};

/// An agent under test.
pub(crate) struct Subject {
    pub(crate) agent: &'static dyn Agent,
    /// How many recorded runs there are at least: a folder that is not found is no success.
    least: usize,
    /// What a caller would have asked for, as far as the reading of the answer depends on it.
    pub(crate) request: fn(&Capture) -> RunRequest,
}

/// Every agent.
pub(crate) const SUBJECTS: &[Subject] = &[
    Subject { agent: &Claude, least: 339, request: claude },
    Subject { agent: &Gemini, least: 255, request: gemini },
    Subject { agent: &OpenCode, least: 212, request: opencode },
    Subject { agent: &Codex, least: 344, request: crate::codex::request },
];

/// The agent of most tests that need just one.
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
        // A place in a list.
        Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => Conversation::New,
        Some(id) => Conversation::Resume(id.into()),
    };
    request
}

fn opencode(capture: &Capture) -> RunRequest {
    let mut request = RunRequest::new("recorded");
    request.mode = Mode::Exec;
    let session = capture.value(&["--session", "-s"]).filter(|id| !id.is_empty());
    request.conversation = match session {
        Some(id) if capture.has(&["--fork"]) => Conversation::Fork(id.into()),
        Some(id) => Conversation::Resume(id.into()),
        None if capture.has(&["--continue", "-c"]) => Conversation::Continue,
        None => Conversation::New,
    };
    // The configuration stood in the environment; its server was always the same.
    if capture.name.starts_with("mcp_") {
        request.mcp_servers.insert("tiny".to_owned(), McpServer::stdio("tiny"));
    }
    request
}
