//! The launch of `exec`: the arguments and the standard input of any request, and requests that are rejected.

use proptest::prelude::*;
use teamster_agents::agent::{Agent, codex::Codex};
use teamster_agents::launch::{Arg, Launch, Stdin};
use teamster_types::request::{
    AgentInterface, Conversation, McpServer, PermissionMode, ProjectTrust, PromptMode, RunRequest,
};

use super::{ID, exec, is_uuid, with};
use crate::any_request::{SECRET, any_request};

#[test]
fn an_addition_that_a_resumed_thread_ignores_is_prepended_to_the_prompt() {
    let prompt = |request: &RunRequest| match Codex.plan(request).unwrap().launch.stdin {
        Stdin::Write(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    };
    let mut request = with(Conversation::Resume(ID.into()));
    let plain = prompt(&request);
    request.append_system_prompt = Some("more".to_owned());
    assert_eq!(prompt(&request), format!("<instructions>\nmore\n</instructions>\n\n{plain}"));
    request.system_prompt = Some("all".to_owned());
    assert_eq!(prompt(&request), plain);
    request.system_prompt = None;
    request.conversation = Conversation::New;
    assert_eq!(prompt(&request), plain);
}

/// The flags without a value.
const ALONE: &[&str] =
    &["exec", "--json", "--skip-git-repo-check", "--ignore-rules", "--dangerously-bypass-approvals-and-sandbox"];

/// The configuration keys that Teamster sets.
const KEYS: &[&str] = &[
    "features.unbounded_connection_retries",
    "model_reasoning_effort",
    "developer_instructions",
    "mcp_servers",
    "mcp_optional_startup_grace_ms",
    "shell_environment_policy.set",
    "projects",
    "project_doc_max_bytes",
    "skills.include_instructions",
    "skills.config",
];

/// Checks that each argument is a known flag, a value in `--flag=`, or the path of a file. The conversation is last, then `-`.
fn only_our_flags(launch: &Launch) -> Result<(), String> {
    let texts = launch.args.iter().map(|arg| match arg {
        Arg::Text(text) => text.as_str(),
        Arg::PathOf { before, .. } => before.as_str(),
    });
    let texts: Vec<&str> = texts.collect();
    let Some((&"-", texts)) = texts.split_last() else { return Err("the last argument is not `-`".to_owned()) };
    let texts = match texts {
        [before @ .., "resume", "--last"] => before,
        [before @ .., "resume" | "fork", id] if is_uuid(id) => before,
        all => all,
    };
    for text in texts {
        let known = ALONE.contains(text)
            || ["--cd=", "--model=", "--sandbox=", "--add-dir=", "--image=", "--output-schema="]
                .iter()
                .any(|flag| text.starts_with(flag))
            || *text == "--config=model_instructions_file="
            || KEYS
                .iter()
                .any(|key| text.strip_prefix("--config=").is_some_and(|rest| rest.starts_with(&format!("{key}="))));
        if !known {
            return Err(format!("{text:?} is not a known flag"));
        }
    }
    Ok(())
}

/// Returns whether a text is one TOML value: quotes are closed, brackets match, and no text follows.
fn is_one_value(text: &str) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_i32, false, false);
    for (at, c) in text.char_indices() {
        match (quoted, c) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (true, '"') => quoted = false,
            (true, '\0'..' ' | '\u{7f}') => return false,
            (true, _) => {}
            (false, '"') => quoted = true,
            (false, '{' | '[') => depth += 1,
            (false, '}' | ']') => depth -= 1,
            (false, c) if c.is_ascii_alphanumeric() || "=,._".contains(c) => {}
            (false, _) => return false,
        }
        let has_ended = depth == 0 && !quoted && !c.is_ascii_alphanumeric();
        if has_ended && at + c.len_utf8() != text.len() {
            return false;
        }
    }
    depth == 0 && !quoted
}

fn planned(request: &RunRequest) -> Option<Launch> {
    request.validate().ok()?;
    Some(Codex.plan(request).ok()?.launch)
}

/// Generates requests that Codex can serve.
fn servable_requests() -> impl Strategy<Value = RunRequest> {
    any_request().prop_map(|mut request| {
        request.interface = AgentInterface::Exec;
        request.permissions.allow.clear();
        request.cwd = Some("/made/up \"directory\"".into());
        request.conversation = match request.conversation {
            Conversation::Resume(_) => Conversation::Resume(ID.into()),
            Conversation::Fork(_) => Conversation::Fork(ID.into()),
            other => other,
        };
        request
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_value_can_become_a_flag_or_a_key(request in servable_requests()) {
        if let Some(launch) = planned(&request) {
            prop_assert_eq!(only_our_flags(&launch), Ok(()));
            for arg in &launch.args {
                let Arg::Text(text) = arg else { continue };
                prop_assert!(!text.contains('\0'));
                if let Some((_, value)) = text.strip_prefix("--config=").and_then(|rest| rest.split_once('=')) {
                    prop_assert!(is_one_value(value), "{}", value);
                }
            }
        }
    }

    #[test]
    fn no_argument_contains_a_secret_or_a_prompt(request in servable_requests()) {
        let mut request = request;
        request.prompt = format!("PROMPT-OF-THIS-RUN {}", request.prompt);
        request.system_prompt = Some("SYSTEM-OF-THIS-RUN".to_owned());
        if let Some(launch) = planned(&request) {
            for arg in &launch.args {
                let Arg::Text(text) = arg else { continue };
                for hidden in [SECRET, "PROMPT-OF-THIS-RUN", "SYSTEM-OF-THIS-RUN"] {
                    prop_assert!(!text.contains(hidden), "{:?}", text);
                }
            }
            let Stdin::Write(written) = &launch.stdin else { panic!("the prompt goes to standard input") };
            prop_assert!(written.ends_with(request.prompt.as_bytes()));
        }
    }

    #[test]
    fn a_session_id_that_is_not_a_uuid_is_rejected(name in ".{0,40}") {
        let conversations = [Conversation::Resume(name.as_str().into()), Conversation::Fork(name.as_str().into())];
        prop_assume!(!is_uuid(&name));
        for conversation in conversations {
            prop_assert!(Codex.plan(&with(conversation)).is_err());
        }
    }
}

fn stdio(env: &[(&str, &str)]) -> McpServer {
    env.iter().fold(McpServer::stdio("x"), |server, (name, value)| server.env(*name, *value))
}

#[test]
fn unsupported_requests_are_rejected_with_a_reason() {
    let change = |change: fn(&mut RunRequest)| {
        let mut request = exec();
        change(&mut request);
        request
    };
    let table = [
        change(|r| r.permissions.allow = vec!["Bash".into()]),
        change(|r| r.permissions.allow = vec!["mcp__other".into()]),
        change(|r| r.permissions.deny = vec!["command_execution(rm:*)".into()]),
        change(|r| {
            r.mcp_servers = [("a".to_owned(), McpServer::sse("http://x"))].into();
        }),
        change(|r| r.mcp_servers = [("a".to_owned(), stdio(&[("path", "/x")]))].into()),
        change(|r| {
            r.mcp_servers = [("a".to_owned(), stdio(&[("T", "1")])), ("b".to_owned(), stdio(&[("T", "2")]))].into();
        }),
        change(|r| {
            r.mcp_servers = [("a".to_owned(), stdio(&[("T", "1")]))].into();
            r.env = [("T".to_owned(), "2".to_owned())].into();
        }),
        change(|r| r.project_trust = ProjectTrust::Untrusted),
        change(|r| {
            r.prompt = "see [$x](plugin://x)".into();
            r.prompt_mode = PromptMode::Literal;
        }),
        change(|r| r.prompt = "x".repeat((1 << 20) + 1)),
        change(|r| r.append_system_prompt = Some("x".repeat(128 * 1024))),
        change(|r| r.conversation = Conversation::Resume("some name".into())),
    ];
    let texts = table.map(|request| Codex.plan(&request).unwrap_err().to_string()).join("\n");
    insta::assert_snapshot!(texts, @r#"
    codex does not support permissions.allow: only mcp__SERVER and mcp__SERVER__TOOL of the run's own servers, not "Bash"
    codex does not support permissions.allow: only mcp__SERVER and mcp__SERVER__TOOL of the run's own servers, not "mcp__other"
    codex does not support permissions.deny: only mcp__SERVER and mcp__SERVER__TOOL of the run's own servers, not "command_execution(rm:*)": it does not request permission for actions that its sandbox permits, so another rule could not be enforced
    codex does not support an MCP server of type sse: it supports streamable HTTP only; use type http
    codex does not support this environment of an MCP server: server "a", variable path: it would change the agent itself, through whose environment values go to servers
    codex does not support this environment of an MCP server: server "b", variable T: it has another value elsewhere, and all values share one environment
    codex does not support this environment of an MCP server: server "a", variable T: it has another value elsewhere, and all values share one environment
    codex does not support project_trust=untrusted: the working directory must be an absolute path
    codex does not support prompt_mode=literal: the prompt contains a link to a plugin, an app or a skill, which the agent would follow
    codex does not support a prompt of this length: the limit is 1048576 characters, which includes attached texts
    codex does not support an option of this length: the addition to the system prompt, MCP servers and skills are arguments, whose length is limited
    codex does not support conversation=resume: a session id of this agent is a UUID
    "#);
}

#[test]
fn the_capabilities_accept_supported_requests_and_reject_others() {
    let capabilities = Codex.capabilities().unwrap();
    let mut request = exec();
    request.permissions.mode = PermissionMode::Full;
    assert_eq!(capabilities.check("codex", &request), Ok(Vec::new()));
    request.max_budget_usd = Some(1.0);
    assert!(capabilities.check("codex", &request).is_err());
}
