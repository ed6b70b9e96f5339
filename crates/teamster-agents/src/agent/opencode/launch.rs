//! How OpenCode 1.18.33 is started.
//!
//! Texts go by standard input or by private files, never by argv. Everything that the run asks for and no flag has goes to
//! `OPENCODE_CONFIG_CONTENT`, which beats every file of the user's and the project's, laid over what the user has there.
//! The directory is `PWD`, which the driver sets; `--dir` would be read from there once more.

use super::config::{object, path_of, quote, secret};
use super::permissions::Asking;
use super::{NAME, mcp, permissions, serve};
use crate::agent::mcp::Names;
use crate::launch::{Arg, ForbiddenFiles, Launch, LocalServer, PrivateFile, Stdin};
use teamster_types::event::Failure;
use teamster_types::request::{Attachment, Conversation, McpDelivery, ProjectTrust, RequestError, RunRequest};

/// The agent configuration of a run. It has a name of its own so that nobody else's rules are mixed into it: a user's
/// rules for `build` would come after ours.
pub(super) const AGENT: &str = "teamster";

/// 1.18.33 reads its configuration twice: for most things, and once more ("location services") to tell the model of other
/// directories. The second reader knows no switch: before the first call of the model in a process it takes these files from
/// the working directory and those above it, tells the model what they refer to, and loads the plugins of both.
const UNFENCED: ForbiddenFiles = ForbiddenFiles {
    names: &[".opencode", "opencode.json", "opencode.jsonc"],
    why: "opencode 1.18.33 reads it, and runs the plugins that it finds by it, whatever it is told",
};

pub(super) fn launch(request: &RunRequest, names: &Names) -> Result<Launch, RequestError> {
    let program = request.cli_path.clone().unwrap_or_else(|| NAME.into());
    let mut launch = Launch::new(program);
    launch.cwd.clone_from(&request.cwd);
    launch.arg("run");
    attachments(&mut launch, request)?;
    // Some reasons stand in the log alone: an unknown model, an MCP server that failed.
    for part in ["--format=json", "--thinking", "--print-logs", "--log-level=WARN"] {
        launch.arg(part);
    }
    launch.flag("--agent", AGENT);
    conversation(&mut launch, &request.conversation);
    launch.refused = no_session(&request.conversation);
    if let Some(model) = &request.model {
        launch.flag("--model", model);
    }
    if let Some(effort) = &request.effort {
        launch.flag("--variant", effort);
    }
    for argument in &request.cli_args {
        launch.arg(argument.as_str());
    }
    environment(&mut launch, request, names, Asking::Nobody)?;
    launch.stdin = Stdin::Write(request.prompt.clone().into_bytes());
    Ok(launch)
}

/// The server. Nothing of the request stands in its arguments.
pub(super) fn server(request: &RunRequest, names: &Names, asking: Asking) -> Result<Launch, RequestError> {
    let program = request.cli_path.clone().unwrap_or_else(|| NAME.into());
    let mut launch = Launch::new(program);
    launch.cwd.clone_from(&request.cwd);
    // Port 0 is 4096 where that is free, and else any other.
    for part in ["serve", "--hostname=127.0.0.1", "--port=0", "--print-logs", "--log-level=WARN"] {
        launch.arg(part);
    }
    environment(&mut launch, request, names, asking)?;
    let server = LocalServer { user: "opencode", password_variable: "OPENCODE_SERVER_PASSWORD" };
    launch.env("OPENCODE_SERVER_USERNAME", server.user);
    launch.server = Some(server);
    launch.refused = no_session(&request.conversation);
    Ok(launch)
}

/// What is wrong where a session is to be gone on with that cannot be one, by the form of its id.
fn no_session(conversation: &Conversation) -> Option<Failure> {
    match conversation {
        Conversation::Resume(id) | Conversation::Fork(id) if !serve::is_session_id(id.as_str()) => {
            Some(serve::not_found(id))
        }
        _ => None,
    }
}

fn conversation(launch: &mut Launch, conversation: &Conversation) {
    match conversation {
        // Without a title a new session asks the model for one, which no figure of the run tells (trap 12).
        Conversation::New => {
            launch.flag("--title", "Teamster");
        }
        Conversation::Resume(id) => {
            launch.flag("--session", id.as_str());
        }
        Conversation::Fork(id) => {
            launch.flag("--session", id.as_str()).arg("--fork");
        }
        Conversation::Continue => {
            launch.flag("--title", "Teamster").arg("--continue");
        }
    }
}

/// `--file` takes every word that follows it; with its `=` and another flag behind, it takes its own.
fn attachments(launch: &mut Launch, request: &RunRequest) -> Result<(), RequestError> {
    for (index, attachment) in request.attachments.iter().enumerate() {
        let Attachment::Data { name, data } = attachment else {
            let (name, problem) = ("a path".to_owned(), "it has not been read".to_owned());
            return Err(RequestError::Attachment { name, problem });
        };
        let file = format!("{}-{}", index + 1, file_name(name));
        launch.files.push(PrivateFile { name: file.clone().into(), content: data.clone() });
        launch.args.push(Arg::PathOf { before: "--file=".to_owned(), file: file.into(), after: String::new() });
    }
    Ok(())
}

/// A name that is a single path component: what is neither letter nor digit is `_`, but for the dots of its kind.
fn file_name(name: &str) -> String {
    let clean: Vec<char> =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' }).collect();
    clean.iter().skip(clean.len().saturating_sub(100)).collect()
}

fn environment(launch: &mut Launch, request: &RunRequest, names: &Names, asking: Asking) -> Result<(), RequestError> {
    for (name, value) in &request.env {
        launch.env(name.as_str(), value.as_str());
    }
    let rules = permissions::rules(request, names, asking)?;
    let config = config(launch, request, names, &rules)?;
    launch.json_env.insert("OPENCODE_CONFIG_CONTENT".to_owned(), config);
    // For subagents, which do not have our agent's rules.
    launch.env("OPENCODE_PERMISSION", rules);
    // A run must not replace the CLI that it runs on.
    launch.env("OPENCODE_DISABLE_AUTOUPDATE", "1");
    if request.project_trust == ProjectTrust::Untrusted {
        launch.env("OPENCODE_DISABLE_PROJECT_CONFIG", "1");
        launch.env("OPENCODE_DISABLE_CLAUDE_CODE", "1");
        launch.env("OPENCODE_DISABLE_EXTERNAL_SKILLS", "1");
        // Plugins of `.opencode` run in spite of all that.
        launch.env("OPENCODE_PURE", "1");
        launch.forbidden_files = Some(UNFENCED);
    }
    Ok(())
}

fn config(launch: &mut Launch, request: &RunRequest, names: &Names, rules: &str) -> Result<String, RequestError> {
    let mut agent = vec![
        (quote("mode"), quote("primary")),
        (quote("description"), quote("What this run asked for")),
        (quote("permission"), rules.to_owned()),
    ];
    if let Some(text) = &request.system_prompt {
        agent.push((quote("prompt"), secret(launch, text)));
    }
    let mut fields = vec![(quote("agent"), object([(quote(AGENT), object(agent))]))];
    if let Some(text) = &request.append_system_prompt {
        fields.push((quote("instructions"), format!("[{}]", path_of(launch, text))));
    }
    if request.mcp_delivery == McpDelivery::Auto {
        fields.extend(mcp::servers(launch, request, names)?.map(|servers| (quote("mcp"), servers)));
    } else if !request.mcp_servers.is_empty() {
        mcp::merge(launch, request, names)?;
    }
    Ok(object(fields))
}
