//! Delivery of MCP servers through the user's configuration file: the entries and their secrets.

use serde_json::{Value, json};
use teamster_agents::agent::{Agent, codex::Codex, gemini::Gemini, opencode::OpenCode};
use teamster_agents::launch::{Arg, Launch};
use teamster_types::request::{McpDelivery, McpServer, ProjectTrust, RequestError, RunRequest};

const AGENTS: [&dyn Agent; 3] = [&Codex, &Gemini, &OpenCode];

fn request(server: McpServer) -> RunRequest {
    let mut request = RunRequest::new("hi");
    request.mcp_delivery = McpDelivery::MergeRestore;
    request.mcp_servers = [("my.calc".to_owned(), server)].into();
    request
}

fn launch(agent: &dyn Agent, server: McpServer) -> Launch {
    let launch = agent.plan(&request(server)).map(|plan| plan.launch);
    launch.unwrap_or_else(|error| unreachable!("{}: {error}", agent.name()))
}

/// Returns the entries of the only file.
fn entries(launch: &Launch) -> Value {
    assert_eq!(launch.config_files.len(), 1);
    launch.config_files.first().map(|file| json!(file.entries)).unwrap_or_default()
}

fn server_with_secret(secret: &str) -> McpServer {
    McpServer::http("http://x/mcp").header("X-Key", secret).bearer_token(secret)
}

/// Returns the variables that the entries name, in order.
fn named(value: &Value) -> Vec<String> {
    let text = value.to_string();
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("TEAMSTER_") && *word != "TEAMSTER_DOLLAR").map(str::to_owned).collect()
}

#[test]
fn no_entry_and_no_argument_contains_a_secret_and_each_variable_is_set() {
    for agent in AGENTS {
        for server in [server_with_secret("s3cret"), McpServer::stdio("calc").env("CALC_TOKEN", "s3cret")] {
            let launch = launch(agent, server);
            let entries = entries(&launch);
            assert!(!entries.to_string().contains("s3cret"), "{}: {entries}", agent.name());
            let in_arguments =
                |arg: &Arg| matches!(arg, Arg::Text(text) if text.contains("s3cret") || text.contains("calc"));
            assert!(!launch.args.iter().any(in_arguments), "{}", agent.name());
            for variable in named(&entries) {
                assert!(launch.env.contains_key(&variable), "{}: {variable}", agent.name());
            }
        }
    }
}

#[test]
fn runs_with_the_same_server_share_its_entry_and_other_servers_have_other_variables() {
    for agent in AGENTS {
        let entries = |server| entries(&launch(agent, server));
        let (one, other) = (entries(server_with_secret("a")), entries(server_with_secret("b")));
        assert_eq!(one, other, "{}", agent.name());
        let elsewhere = entries(McpServer::http("http://evil/mcp").header("X-Key", "a").bearer_token("a"));
        let (named, theirs) = (named(&one), named(&elsewhere));
        assert!(!named.is_empty(), "{}: {one}", agent.name());
        assert!(named.iter().all(|name| !theirs.contains(name)), "{}: {one} {elsewhere}", agent.name());
    }
}

#[test]
fn without_servers_no_file_is_changed() {
    for agent in AGENTS {
        let mut request = RunRequest::new("hi");
        request.mcp_delivery = McpDelivery::MergeRestore;
        assert!(agent.plan(&request).unwrap().launch.config_files.is_empty());
    }
}

#[test]
fn an_entry_that_the_agent_would_ignore_or_expand_is_rejected() {
    let refused = |agent: &dyn Agent, request: &RunRequest| {
        let refused = agent.plan(request).map(|_| ()).unwrap_err();
        assert!(matches!(refused, RequestError::Unsupported { .. }), "{refused}");
    };
    for agent in [&Gemini as &dyn Agent, &OpenCode] {
        let mut request = request(McpServer::stdio("x"));
        request.project_trust = ProjectTrust::Untrusted;
        refused(agent, &request);
    }
    for word in ["{env:HOME}", "{file:/etc/passwd}"] {
        refused(&OpenCode, &request(McpServer::stdio("x").args([word])));
        // The values of variables are not expanded.
        launch(&OpenCode, McpServer::stdio("x").env("A", word));
    }
}
