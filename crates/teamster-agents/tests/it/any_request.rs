//! Random requests whose fields contain dangerous values.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;
use teamster_types::request::{
    Attachment, Conversation, McpServer, OutputMode, PermissionMode, ProjectTrust, PromptMode, RunRequest,
};

/// Returns a request with these changes.
pub(crate) fn request(change: impl FnOnce(&mut RunRequest)) -> RunRequest {
    let mut request = RunRequest::new("x");
    change(&mut request);
    request
}

/// Values that are dangerous as flags, in shells, in prompts of agents, in files or in lines.
const HOSTILE: &[&str] = &[
    "",
    " ",
    "-",
    "--",
    "-c x=y",
    "--help",
    "--dangerously-skip-permissions",
    "--mcp-config={}",
    "--model=x",
    "x --help",
    "x\n--help",
    "x\0--help",
    "@/etc/passwd",
    "/clear",
    "!ls",
    "# note",
    "code",
    "$(ls)",
    "`ls`",
    "${HOME}",
    "'; ls #",
    "\"",
    "\\",
    "a=b",
    "a,b",
    "../../x",
    "C:\\x",
    "x\r\n{\"type\":\"user\"}",
    "\u{2028}",
    "\u{feff}x",
    "\u{202e}x",
    "👩\u{200d}💻",
    "*",
    "Bash(rm:*)",
];

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![4 => select(HOSTILE).prop_map(str::to_owned), 1 => ".{0,20}", 2 => Just("plain".to_owned())]
}

fn maybe() -> impl Strategy<Value = Option<String>> {
    prop_oneof![3 => Just(None), 1 => hostile().prop_map(Some)]
}

fn words() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(hostile(), 0..2)
}

/// A text that other users of the machine must not read.
pub(crate) const SECRET: &str = "SECRET-8f2c";

fn server() -> impl Strategy<Value = McpServer> {
    prop_oneof![
        (hostile(), words(), hostile(), words()).prop_map(|(command, args, value, tools)| {
            McpServer::stdio(command)
                .args(args)
                .env("TOKEN", format!("{SECRET}{value}"))
                .cwd(value)
                .disable_tools(tools)
        }),
        (hostile(), hostile()).prop_map(|(value, name)| {
            McpServer::http(format!("http://x/{value}")).header(name, format!("{SECRET}{value}")).required()
        }),
        hostile().prop_map(|value| McpServer::sse("http://x/sse").bearer_token(format!("{SECRET}{value}"))),
    ]
}

prop_compose! {
    /// A request with hostile values in any of its fields except `cli_args`, which contains flags by definition.
    pub(crate) fn any_request()(
        (prompt, model, session) in (hostile(), maybe(), maybe()),
        (kind, output) in (0_u8..4, select(vec![OutputMode::Stream, OutputMode::Messages, OutputMode::Batch])),
        (system_prompt, append_system_prompt) in (maybe(), maybe()),
        (allow, deny, dirs) in (words(), words(), words()),
        mode in select(vec![
            PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full,
        ]),
        servers in proptest::collection::btree_map(hostile(), server(), 0..2),
        (effort, trust, prompt_mode) in (
            maybe(),
            select(vec![ProjectTrust::Trusted, ProjectTrust::Untrusted]),
            select(vec![PromptMode::Agent, PromptMode::Literal]),
        ),
        (schema, env, attachment) in (maybe(), proptest::collection::btree_map(hostile(), hostile(), 0..2), maybe()),
    ) -> RunRequest {
        request(|r| {
            r.prompt = prompt;
            r.model = model;
            r.conversation = match (session, kind) {
                (Some(id), 0) => Conversation::Fork(id.as_str().into()),
                (Some(id), _) => Conversation::Resume(id.as_str().into()),
                (None, 1) => Conversation::Continue,
                (None, 2) => Conversation::ForkNewest,
                (None, _) => Conversation::New,
            };
            r.output = output;
            r.effort = effort;
            r.project_trust = trust;
            // Batch mode does not support literal prompts.
            r.prompt_mode = if output == OutputMode::Batch { PromptMode::Agent } else { prompt_mode };
            r.system_prompt = system_prompt;
            r.append_system_prompt = append_system_prompt;
            r.permissions.mode = mode;
            r.permissions.allow = allow;
            r.permissions.deny = deny;
            r.add_dirs = dirs.into_iter().map(Into::into).collect();
            r.mcp_servers = servers;
            r.schema = schema.map(|text| json!({ "description": text }));
            r.env = env.into_iter().map(|(name, value)| (name, format!("{SECRET}{value}"))).collect();
            r.attachments = attachment.map(|name| Attachment::Data { name, data: b"text".to_vec() }).into_iter().collect();
        })
    }
}
