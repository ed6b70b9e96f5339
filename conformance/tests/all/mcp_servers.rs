//! The MCP servers of the tests, and the requests and models that use them.

use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::request::McpServer;
use teamster_conformance::{Agent, TestEnv};
use teamster_testkit::provider::Scenario;

/// The testkit's MCP server. Its tools: `add`, `slow`, `fail`, `image`.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_teamster-conformance-mcp-server");

pub(crate) fn server() -> McpServer {
    McpServer::stdio(PROGRAM)
}

/// A model that calls one tool, and then answers `Done.`.
pub(crate) fn one_call(agent: &Agent, server: &str, tool: &str, input: Value) -> Scenario {
    Scenario::new().reply(agent.reply().tool(agent.mcp_tool(server, tool), input)).reply(agent.reply().text("Done."))
}

/// A model that calls the tool `slow`, whose result is `slept` on every agent.
pub(crate) fn slow_call(agent: &Agent, server: &str) -> Scenario {
    one_call(agent, server, "slow", json!({"seconds": 0}))
}

/// Returns a request whose model is offered all tools at once.
pub(crate) fn request(agent: &Agent, env: &TestEnv) -> RunRequest {
    let mut request = agent.request(env, "Go.");
    if agent.name == "codex" {
        // It hides MCP tools from the models that it knows, until they search for tools.
        request.model = Some("test-model".to_owned());
    }
    request
}
