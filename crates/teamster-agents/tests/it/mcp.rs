//! MCP servers of a request: their formats, their errors, and the names that each agent receives.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use teamster_agents::agent::{Agent, claude::Claude, codex::Codex, gemini::Gemini, opencode::OpenCode};
use teamster_agents::launch::{Arg, Launch, ShadowEntry};
use teamster_agents::protocol::Input;
use teamster_types::event::{ErrorCode, Event, WarningCode};
use teamster_types::request::{AgentInterface, McpServer, RequestError, RunRequest, UserMcpServers};

use crate::drive::{Driver, Step, events};
use crate::subject::{SUBJECTS, Subject};

fn variable(name: &str) -> Option<String> {
    (name == "KEY").then(|| "${k3y}".to_owned())
}

fn json_servers(text: &str) -> Result<BTreeMap<String, McpServer>, RequestError> {
    McpServer::from_json(text, variable)
}

fn one(entry: &Value) -> Result<McpServer, String> {
    let servers = json_servers(&json!({"mcpServers": {"a": entry}}).to_string()).map_err(|error| error.to_string())?;
    servers.get("a").cloned().ok_or_else(|| "it is omitted".to_owned())
}

#[test]
fn the_formats_of_agents_and_editors_are_read() {
    let url = || McpServer::http("http://x/mcp");
    for (entry, server) in [
        (json!({"command": "x"}), McpServer::stdio("x")),
        (
            json!({"type": "local", "command": ["x", "-y"], "environment": {"A": "b"}}),
            McpServer::stdio("x").args(["-y"]).env("A", "b"),
        ),
        (json!({"url": "http://x/mcp"}), url()),
        (json!({"httpUrl": "http://x/mcp", "headers": {"A": "b"}}), url().header("A", "b")),
        (json!({"serverUrl": "http://x/mcp", "type": "streamable-http"}), url()),
        (json!({"type": "remote", "url": "http://x/mcp", "enabled": true}), url()),
        (json!({"transport": "sse", "url": "http://x/sse"}), McpServer::sse("http://x/sse")),
        (json!({"url": "http://x/mcp", "bearer_token_env_var": "KEY"}), url().bearer_token("${k3y}")),
        (
            json!({"url": "http://x/mcp", "http_headers": {"A": "b"}, "env_http_headers": {"C": "KEY"}}),
            url().header("A", "b").header("C", "${k3y}"),
        ),
        (json!({"command": "x", "env_vars": ["KEY", "NONE"]}), McpServer::stdio("x").env("KEY", "${k3y}")),
        (
            json!({"command": "x", "startup_timeout_sec": 1.5, "tool_timeout_sec": 60, "required": true}),
            McpServer::stdio("x")
                .startup_timeout(Duration::from_millis(1500))
                .tool_timeout(Duration::from_mins(1))
                .required(),
        ),
        (json!({"command": "x", "timeout": 5000}), McpServer::stdio("x").tool_timeout(Duration::from_secs(5))),
        (
            json!({"command": "x", "includeTools": ["a"], "excludeTools": ["b"]}),
            McpServer::stdio("x").enable_tools(["a"]).disable_tools(["b"]),
        ),
        (
            json!({"command": "${KEY}", "args": ["-k=${KEY}", "$${KEY}"], "cwd": "/${NONE:-tmp}"}),
            McpServer::stdio("${k3y}").args(["-k=${k3y}", "${KEY}"]).cwd("/tmp"),
        ),
    ] {
        assert_eq!(one(&entry), Ok(server), "{entry}");
    }
    for off in [json!({"command": "x", "enabled": false}), json!({"command": "x", "disabled": true})] {
        assert_eq!(one(&off), Err("it is omitted".to_owned()));
    }
}

#[test]
fn the_configuration_format_of_codex_is_read() {
    let text = "model = 'x'\n[features]\na = true\n[mcp_servers.\"my.files\"]\ncommand = 'x'\nargs = ['${KEY}']\n\
                [mcp_servers.web]\nurl = 'https://x'\nbearer_token_env_var = 'KEY'\nenabled_tools = ['a']\n";
    let web = McpServer::http("https://x").bearer_token("${k3y}").enable_tools(["a"]);
    let expected = [("my.files".to_owned(), McpServer::stdio("x").args(["${k3y}"])), ("web".to_owned(), web)];
    assert_eq!(McpServer::from_toml(text, variable), Ok(expected.into()));
    let ours = "[mcpServers.a]\ncommand = 'x'\ntoolTimeoutMs = 2000\n";
    let server = McpServer::stdio("x").tool_timeout(Duration::from_secs(2));
    assert_eq!(McpServer::from_toml(ours, variable), Ok([("a".to_owned(), server)].into()));
}

#[test]
fn an_invalid_document_is_rejected_and_the_error_names_the_server_and_field() {
    let documents =
        ["nonsense", "[]", r#"{"mcpServers": []}"#, r#"{"mcpServers": {}, "mcp_servers": {}}"#, r#"{"a": 1}"#];
    let mut texts: Vec<_> = documents.iter().map(|text| json_servers(text).unwrap_err().to_string()).collect();
    for entry in [
        json!({"command": "x", "extra": 1}),
        json!({"command": "x", "env": {"A": "s3cret"}, "args": "s3cret"}),
        json!({"type": "carrier-pigeon", "url": "http://x"}),
        json!({}),
        json!({"type": "http", "command": "x"}),
        json!({"type": "stdio", "url": "x"}),
        json!({"url": "http://x/sse"}),
        json!({"command": "x", "url": "http://x"}),
        json!({"url": "http://x", "cwd": "/"}),
        json!({"command": "x", "env": {}, "environment": {}}),
        json!({"command": ["x"], "args": []}),
        json!({"command": []}),
        json!({"command": "x", "timeout": 30}),
        json!({"command": "x", "tool_timeout_sec": "30"}),
        json!({"command": "x", "env": {"A": "${NONE}"}}),
        json!({"command": "x", "args": ["${input:key}"]}),
        json!({"url": "http://x", "bearer_token_env_var": "NONE"}),
        json!({"command": "x", "enabled": "no"}),
    ] {
        texts.push(one(&entry).unwrap_err());
    }
    let toml = ["[mcp_servers.a]\ncommand = 'x'\nargs = [\n", "model = 'x'\n", "mcp_servers = 1\n"];
    texts.extend(toml.map(|text| McpServer::from_toml(text, variable).unwrap_err().to_string()));
    insta::assert_snapshot!(texts.join("\n"), @r##"
    MCP configuration: is not JSON: expected ident at line 1 column 2
    MCP configuration: must be an object with "mcpServers"
    MCP configuration: "mcpServers" must be an object of servers by name
    MCP configuration: has both "mcpServers" and "mcp_servers"
    MCP configuration: server "a": must be an object
    MCP configuration: server "a": unknown field `extra`, expected one of `type`, `command`, `args`, `env`, `cwd`, `url`, `headers`, `bearerToken`, `required`, `startupTimeoutMs`, `toolTimeoutMs`, `enabledTools`, `disabledTools`
    MCP configuration: server "a": "args" must be a list of texts
    MCP configuration: server "a": "type" must be stdio, http or sse
    MCP configuration: server "a": "command" or "url" is missing
    MCP configuration: server "a": "url" is missing: where the server listens
    MCP configuration: server "a": "command" is missing: the program that is the server
    MCP configuration: server "a": "type" is missing: is it "http" (streamable HTTP) or "sse"?
    MCP configuration: server "a": "url" is not for a server with a command
    MCP configuration: server "a": "cwd" is not for a server with a URL
    MCP configuration: server "a": "environment" and "env" are the same field: omit one of them
    MCP configuration: server "a": "command" is a list: its further words are the arguments, so omit "args"
    MCP configuration: server "a": "command" is empty
    MCP configuration: server "a": "timeout" counts milliseconds, so 30 is too short: for 30 seconds write 30000
    MCP configuration: server "a": "tool_timeout_sec" must be a number of seconds
    MCP configuration: server "a": "env", "A", needs the variable NONE, which is not set: set it, or write ${NONE:-a default}
    MCP configuration: server "a": "args" holds ${input:key}, which names no variable: write "$${" for the text itself
    MCP configuration: server "a": "bearer_token_env_var" needs the variable NONE, which is not set
    MCP configuration: server "a": "enabled" must be true or false
    MCP configuration: is not TOML: unclosed array, expected `]` at line 3
    MCP configuration: has no table [mcp_servers.NAME]
    MCP configuration: "mcp_servers" must be an object of servers by name
    "##);
}

#[test]
fn an_invalid_server_is_rejected_and_the_error_names_the_change() {
    let http = || McpServer::http("https://x");
    let stdio = || McpServer::stdio("x");
    let table = [
        ("", stdio()),
        (" a", stdio()),
        ("a\nb", stdio()),
        (&*"a".repeat(129), stdio()),
        ("a b/ü", McpServer::stdio("")),
        ("a", stdio().env("A=B", "x")),
        ("a", McpServer::stdio("x\0")),
        ("a", stdio().cwd("")),
        ("a", McpServer::http("file:///etc/passwd")),
        ("a", McpServer::http("https:///path")),
        ("a", McpServer::http("https://x/a b")),
        ("a", http().header("A b", "x")),
        ("a", http().header("A", "x\r\nB: y")),
        ("a", http().bearer_token("Bearer x")),
        ("a", http().bearer_token("x").header("authorization", "y")),
        ("a", stdio().startup_timeout(Duration::ZERO)),
        ("a", stdio().tool_timeout(Duration::from_millis(500))),
        ("a", stdio().tool_timeout(Duration::from_hours(25))),
        ("a", stdio().enable_tools([""; 0])),
        ("a", stdio().disable_tools(["get_*"])),
    ];
    let refused = |(name, server): (&str, McpServer)| {
        let mut request = RunRequest::new("x");
        request.mcp_servers.insert(name.to_owned(), server);
        request.validate().unwrap_err().to_string()
    };
    let texts: Vec<_> = table.into_iter().map(refused).collect();
    insta::assert_snapshot!(texts.join("\n"), @r##"
    MCP configuration: server "": a name must not be empty, nor begin or end with a blank
    MCP configuration: server " a": a name must not be empty, nor begin or end with a blank
    MCP configuration: server "a\nb": a name must not hold control characters
    MCP configuration: server "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": a name has at most 128 characters
    MCP configuration: server "a b/ü": "command" is empty
    MCP configuration: server "a": "A=B" in "env" cannot name an environment variable
    MCP configuration: server "a": a value contains a NUL byte
    MCP configuration: server "a": "cwd" is empty: omit it instead
    MCP configuration: server "a": "url" must begin with http:// or https:// and a host
    MCP configuration: server "a": "url" must begin with http:// or https:// and a host
    MCP configuration: server "a": "url" holds a blank or a control character: write it as %20
    MCP configuration: server "a": "A b" in "headers" is no name of a header
    MCP configuration: server "a": the header "A" holds a line break or a NUL byte
    MCP configuration: server "a": "bearerToken" is empty or holds blanks: it is the token alone, without "Bearer"
    MCP configuration: server "a": "bearerToken" and an Authorization header exclude each other
    MCP configuration: server "a": "startupTimeoutMs" must be at least 1000
    MCP configuration: server "a": "toolTimeoutMs" must be at least 1000
    MCP configuration: server "a": "toolTimeoutMs" must be at most 24 hours, 86400000
    MCP configuration: server "a": "enabledTools" is empty: name tools, or leave the server out
    MCP configuration: server "a": "get_*" in "disabledTools" is no name of a tool: patterns are not possible
    "##);
}

const AGENTS: [&dyn Agent; 4] = [&Claude, &Codex, &Gemini, &OpenCode];

/// Returns the names of the servers in the configuration of the CLI.
fn wire_names(agent: &dyn Agent, launch: &Launch) -> Vec<String> {
    let keys = |servers: &Value| servers.as_object().unwrap().keys().cloned().collect();
    match agent.name() {
        "claude" => {
            let file = launch.files.iter().find(|file| file.name == "mcp.json").unwrap();
            keys(&serde_json::from_slice::<Value>(&file.content).unwrap()["mcpServers"])
        }
        "codex" => {
            let texts = launch.args.iter().filter_map(|arg| match arg {
                Arg::Text(text) => text.strip_prefix("--config="),
                Arg::PathOf { .. } => None,
            });
            let text = texts.into_iter().find(|text| text.starts_with("mcp_servers=")).unwrap();
            keys(&toml::from_str::<Value>(text).unwrap()["mcp_servers"])
        }
        "gemini" => {
            let entries = &launch.shadow_home.as_ref().unwrap().entries;
            let ShadowEntry::Merge(values) = &entries.iter().find(|(name, _)| *name == "settings.json").unwrap().1
            else {
                panic!("settings are merged")
            };
            keys(&values.overrides["mcpServers"])
        }
        _ => keys(&serde_json::from_str::<Value>(&launch.json_env["OPENCODE_CONFIG_CONTENT"]).unwrap()["mcp"]),
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_rejected(text in ".{0,60}") {
        let _: Result<_, RequestError> = json_servers(&text);
        let _: Result<_, RequestError> = McpServer::from_toml(&text, variable);
    }

    #[test]
    fn each_server_has_a_unique_name_on_every_agent_or_the_error_names_two(
        names in proptest::collection::btree_set("[a-c_.\\-/ ü]{1,5}", 1..5),
    ) {
        let mut request = RunRequest::new("x");
        // With this interface, Codex receives servers by argv.
        request.interface = AgentInterface::Exec;
        request.mcp_servers = names.iter().map(|name| (name.clone(), McpServer::stdio("x"))).collect();
        prop_assume!(request.validate().is_ok());
        for agent in AGENTS {
            match agent.plan(&request) {
                Ok(plan) => {
                    let wires = wire_names(agent, &plan.launch);
                    prop_assert_eq!(wires.len(), names.len());
                    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
                    prop_assert!(wires.iter().all(|name| !name.is_empty() && name.chars().all(plain)));
                }
                Err(RequestError::McpConfig { message }) => {
                    let named = names.iter().filter(|name| message.contains(&format!("{name:?}"))).count();
                    prop_assert!(named >= 2, "{}", message);
                }
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }
}

#[test]
fn an_option_of_a_server_that_an_agent_does_not_support_is_an_error() {
    let request = |server: McpServer| {
        let mut request = RunRequest::new("x");
        request.mcp_servers.insert("a".to_owned(), server);
        request
    };
    let stdio = || McpServer::stdio("x");
    let differing = stdio().startup_timeout(Duration::from_secs(5)).tool_timeout(Duration::from_secs(9));
    let mut two = request(differing.clone());
    two.mcp_servers.insert("b".to_owned(), stdio().startup_timeout(Duration::from_secs(6)));
    let mut strict = RunRequest::new("x");
    strict.user_mcp_servers = UserMcpServers::LeftOut;
    let requests = [request(stdio().enable_tools(["a"])), request(differing), two, strict];
    let mut texts = Vec::new();
    for agent in AGENTS {
        for request in &requests {
            let checked = agent.capabilities().unwrap().check(agent.name(), request);
            let planned = checked.and_then(|warnings| agent.plan(request).map(|_| warnings));
            texts.extend(planned.err().map(|error| error.to_string()));
        }
    }
    insta::assert_snapshot!(texts.join("\n"), @r##"
    claude does not support mcp_servers.enabled_tools: it can only exclude tools: use `disabledTools`
    claude does not support different start-up timeouts of MCP servers: it has one for all; give "a" and "b" the same
    codex does not support user_mcp_servers=left-out: servers are disabled by name only; pass `--config=mcp_servers.NAME.enabled=false` in `cli_args` for each
    gemini does not support different timeouts for the start and the tools of an MCP server: the agent has one timeout for both; set the same for server "a", or only one of them
    gemini does not support different timeouts for the start and the tools of an MCP server: the agent has one timeout for both; set the same for server "a", or only one of them
    opencode does not support different timeouts for the start and the tools of an MCP server: the agent has one timeout for both; set the same for server "a", or only one of them
    opencode does not support different timeouts for the start and the tools of an MCP server: the agent has one timeout for both; set the same for server "a", or only one of them
    opencode does not support user_mcp_servers=left-out: servers are disabled by name only; set `mcp.NAME.enabled` to false in OPENCODE_CONFIG_CONTENT
    "##);
}

/// Returns the steps of a run with this diagnostic line, with a required or optional server.
fn steps_of(subject: &Subject, required: bool, line: &str) -> Vec<Step> {
    let mut request = RunRequest::new("x");
    // With this interface, Codex reports the failure only in its diagnostics.
    request.interface = AgentInterface::Exec;
    let server = McpServer::stdio("x");
    request.mcp_servers.insert("my_calc.1".to_owned(), if required { server.required() } else { server });
    let mut driver = Driver::start_of(subject, &request);
    for _ in 0..2 {
        driver.handle(Input::Diagnostic(line.as_bytes()));
    }
    driver.end(&teamster_agents::transcript::End::default())
}

#[test]
fn a_failed_server_is_reported_once_by_its_given_name_and_ends_the_run_if_it_is_required() {
    for (agent, line) in [
        (
            "codex",
            r#"2026-01-01T00:00:00Z  WARN codex_mcp::rmcp_client: MCP server startup failed server_name="my_calc_1" error=no such file"#,
        ),
        (
            "gemini",
            "[2026-11-22T07:58:16.032Z] [LOG] [MCP error] Error during discovery for MCP server 'my-calc-1': no such file",
        ),
        ("opencode", r#"level=WARN message="server unavailable" key=my-calc-1 type=local status=failed"#),
    ] {
        for required in [false, true] {
            let subject = SUBJECTS.iter().find(|subject| subject.agent.name() == agent).unwrap();
            let steps = steps_of(subject, required, line);
            let events = events(&steps);
            let warnings: Vec<_> = events
                .iter()
                .filter_map(|event| match event {
                    Event::Warning(warning) => Some(warning),
                    _ => None,
                })
                .collect();
            let [warning] = warnings[..] else { panic!("{events:?}") };
            assert_eq!(warning.code, WarningCode::McpServerFailed);
            let data = warning.data.clone().unwrap();
            assert_eq!((&data["server"], &data["status"]), (&json!("my_calc.1"), &json!("failed")));
            assert!(data["reason"].as_str().unwrap().starts_with("did not start"));
            assert_eq!(steps.iter().any(|step| matches!(step, Step::Stop)), required);
            let failed =
                events.iter().any(|event| matches!(event, Event::Error(failure) if failure.code == ErrorCode::Config));
            assert_eq!(failed, required, "{events:?}");
        }
    }
}
