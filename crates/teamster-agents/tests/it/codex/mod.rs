//! Codex's `exec` interface: the requests of recorded runs, and behavior that no recorded run shows.

mod launch;
mod output;

use teamster_types::request::{AgentInterface, Conversation, McpServer, RunRequest};

use crate::capture::Capture;

/// Returns the request of a recorded run.
pub(crate) fn request(capture: &Capture) -> RunRequest {
    let mut request = RunRequest::new("recorded");
    if capture.has(&["app-server"]) {
        return app_request(capture, request);
    }
    request.interface = AgentInterface::Exec;
    let args = capture.argv.iter().map(String::as_str);
    // The text after `--` is a prompt.
    let args: Vec<&str> = args.take_while(|arg| *arg != "--").collect();
    let subcommand = args.iter().position(|arg| ["resume", "fork"].contains(arg));
    let id = subcommand.and_then(|at| args[at..].iter().find(|arg| is_uuid(arg)));
    request.conversation = match (subcommand.map(|at| args[at]), id) {
        (Some("fork"), Some(id)) => Conversation::Fork((*id).into()),
        (Some(_), Some(id)) => Conversation::Resume((*id).into()),
        // The newest thread, or one by its name, which Teamster rejects.
        (Some(_), None) => Conversation::Continue,
        (None, _) => Conversation::New,
    };
    request
}

/// Returns the request of a recorded app-server. The note of the recording names the thread.
fn app_request(capture: &Capture, mut request: RunRequest) -> RunRequest {
    request.model = Some("gpt-5.5".to_owned());
    request.conversation = match capture.note.as_deref().and_then(|note| note.split_once(' ')) {
        Some(("resume", id)) => Conversation::Resume(id.into()),
        Some(("fork", id)) => Conversation::Fork(id.into()),
        _ => Conversation::New,
    };
    if capture.name.starts_with("app_mcp") {
        for name in ["demo", "bad", "worse"] {
            request.mcp_servers.insert(name.to_owned(), McpServer::stdio(name).required());
        }
    }
    if capture.name == "app_mcp_failed" {
        request.mcp_servers.insert("bad".to_owned(), McpServer::stdio("bad"));
    }
    request
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.matches('-').count() == 4
}

const ID: &str = "01a20090-01c2-7bc2-adbf-c7a50060ea3c";

/// Returns a request for `exec`. The app-server has its own tests (`app_server`).
fn exec() -> RunRequest {
    let mut request = RunRequest::new("x");
    request.interface = AgentInterface::Exec;
    request
}

fn with(conversation: Conversation) -> RunRequest {
    let mut request = exec();
    request.conversation = conversation;
    request
}
