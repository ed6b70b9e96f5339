//! A provider for an agent that is started by hand. It prints its address, and the requests it
//! received when its stdin ends:
//!
//! ```text
//! $ cargo run -p teamster-testkit --example provider
//! {"baseUrl":"http://127.0.0.1:40001","mcpUrl":"http://127.0.0.1:40002/mcp", ...}
//! $ ANTHROPIC_API_KEY=any ANTHROPIC_BASE_URL=http://127.0.0.1:40001 claude -p -- "hi SCN:tool_bash"
//! ```

use std::io::{Read, Write, stdin, stdout};
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use teamster_testkit::mcp_fixture::McpHttp;
use teamster_testkit::provider::{HttpError, ModelRequest, Provider, Reply, Scenario, Script};

/// The branches of [`scenario`]. A prompt selects one with the marker `SCN:<name>`.
const BRANCHES: [&str; 11] = [
    "tool_bash",
    "thinking",
    "parallel",
    "rate_limited_once",
    "cut_once",
    "error_once",
    "stall",
    "subagent",
    "sub_worker",
    "mcp",
    "count",
];

fn scenario() -> Scenario {
    let bash = |command: &str| json!({"command": command, "description": "Run it"});
    let worker = json!({
        "description": "Look around",
        "prompt": "Say hello from the shell, then report. SCN:sub_worker",
        "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    with_faults(Scenario::new())
        .reply(Reply::new().text("Hello, wörld! 👋 No branch was named."))
        .branch(
            "tool_bash",
            Script::new()
                .reply(Reply::new().text("Let me run that.").tool("Bash", bash("echo hi")))
                .reply(Reply::new().text("It printed hi.")),
        )
        .branch(
            "thinking",
            Reply::new().thinking("Two and two make four.").thinking_redacted("ZW5jcnlwdGVk").text("The answer is 4."),
        )
        .branch(
            "parallel",
            Script::new()
                .reply(Reply::new().tool("Bash", bash("sleep 0.3; echo one")).tool("Bash", bash("echo two")))
                .reply(Reply::new().text("Both done.")),
        )
        .branch(
            "subagent",
            Script::new()
                .reply(Reply::new().text("Delegating.").tool("Agent", worker))
                .reply(Reply::new().text("The worker has reported.")),
        )
        .branch(
            "sub_worker",
            Script::new()
                .reply(Reply::new().tool("Bash", bash("echo hello from the worker")))
                .reply(Reply::new().text("All fine.")),
        )
        .branch(
            "mcp",
            Script::new()
                .reply(Reply::new().tool("mcp__calc__add", json!({"a": 2, "b": 40})))
                .reply(Reply::new().tool("mcp__calc__fail", json!({})).tool("mcp__calc__image", json!({})))
                .reply(Reply::new().text("42, a failure and a picture.")),
        )
        .branch(
            "count",
            Reply::from_fn(|request| Reply::new().text(format!("I see {} messages.", request.messages.len()))),
        )
}

/// Adds the branches with faults of the provider.
fn with_faults(scenario: Scenario) -> Scenario {
    scenario
        .branch(
            "rate_limited_once",
            Reply::new().text("Recovered.").fail_times(1, HttpError::rate_limited().retry_after(1)),
        )
        .branch("cut_once", Reply::new().text("This sentence is cut in its middle.").cut_once_after(3))
        .branch(
            "error_once",
            Reply::new()
                .text("Whole.")
                .at_first(1, Reply::new().text("Some text before the error").error_after(2, HttpError::overloaded())),
        )
        .branch(
            "stall",
            Reply::new()
                .text("Silence comes after these words, and lasts.")
                .ping_forever_after(4, Duration::from_secs(1)),
        )
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let provider = Provider::anthropic(scenario()).start().await?;
    let mcp = McpHttp::start().await?;
    print(&json!({
        "baseUrl": provider.base_url(),
        "mcpUrl": mcp.url(),
        "branches": BRANCHES,
    }))?;
    tokio::task::spawn_blocking(|| stdin().read_to_end(&mut Vec::new())).await??;
    for request in provider.requests() {
        print(&summary(&request))?;
    }
    for request in provider.side_requests() {
        print(&json!({"method": request.method, "path": request.path}))?;
    }
    for call in mcp.calls() {
        print(&json!({"mcpTool": call.tool, "arguments": call.arguments}))?;
    }
    print(&json!({
        "usageTotal": format!("{:?}", provider.usage_total()),
        "disconnects": format!("{:?}", provider.disconnects()),
    }))
}

fn summary(request: &ModelRequest) -> Value {
    let results = request.tool_results();
    json!({
        "path": request.path,
        "model": request.model,
        "branch": request.branch,
        "turn": request.turn,
        "attempt": request.attempt,
        "stream": request.stream,
        "messages": request.messages.len(),
        "prompts": request.prompts(),
        "toolResults": results.iter().map(|result| &result.output).collect::<Vec<_>>(),
        "tools": request.tools().len(),
        "systemChars": request.system.chars().count(),
        "userAgent": request.header("user-agent"),
    })
}

fn print(value: &Value) -> Result<()> {
    writeln!(stdout(), "{value}")?;
    Ok(())
}
