//! The MCP servers of a run: transports, names of tools, permissions, and isolation between runs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster::event::ToolKind;
use teamster::request::{McpServer, PermissionMode, UserMcpServers};
use teamster_conformance::{Agent, Recording, TIMEOUT, agent_tests};
use teamster_testkit::mcp_fixture::McpHttp;
use teamster_testkit::provider::{ModelRequest, Scenario};

use crate::mcp_servers::{PROGRAM, request, server, slow_call};

/// A value that contains what a configuration format might expand.
const SECRET: &str = "s3cret $HOME ${HOME} ${A:-b} $$ \\$x {env:HOME} {file:/etc/passwd} \"q\" 'q' #";

agent_tests! {
    a_program_and_a_url_work_side_by_side_with_their_secrets_on_every_agent: all,
    a_tool_without_permission_is_refused_and_the_denial_names_the_rule: all,
    a_rule_permits_the_tool_that_it_names_and_no_other: all,
    the_users_own_servers_work_beside_those_of_the_run_on_every_agent: all,
    a_strict_run_has_no_servers_but_its_own_or_is_refused: all,
    runs_at_once_in_one_home_and_directory_do_not_see_each_others_servers: all,
    tools_that_are_left_out_are_not_offered_on_any_agent: all,
}

/// Returns the arguments of every process of the machine.
fn all_arguments() -> Result<String> {
    let processes = fs::read_dir("/proc")?.flatten();
    Ok(processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|arguments| String::from_utf8_lossy(&arguments).into_owned())
        .collect())
}

/// Returns the first entry of a server's log, which describes its start.
fn logged_start(log: &Path) -> Result<Value> {
    let text = fs::read_to_string(log).with_context(|| format!("no log at {}", log.display()))?;
    Ok(serde_json::from_str(text.lines().next().context("the log is empty")?)?)
}

fn offers(agent: &Agent, request: &ModelRequest, server: &str, tool: &str) -> bool {
    request.tools().contains(&agent.mcp_tool(server, tool).as_str())
}

fn assert_done(recording: &Recording) -> Result<()> {
    ensure!(recording.result.final_text == "Done.", "{:?}", recording.failure());
    Ok(())
}

async fn a_program_and_a_url_work_side_by_side_with_their_secrets_on_every_agent(agent: &Agent) -> Result<()> {
    let web = McpHttp::setup().require_header("authorization", "Bearer t0ken-s3cret").start().await?;
    let input = || json!({"seconds": 0});
    let calls = agent.reply().tool(agent.mcp_tool("my.calc", "slow"), input());
    let calls = calls.tool(agent.mcp_tool("the_web", "slow"), input());
    let scenario = Scenario::new().reply(calls).reply(agent.reply().text("Done.").gate_before("end"));
    let env = agent.test_env(scenario).await?;
    let cwd = env.create_directory("directory of the server")?;
    let log = cwd.join("${HOME} $HOME {env:HOME}.log");
    let calc = server().args(["--log", &log.to_string_lossy()]).env("CALC_TOKEN", SECRET);
    let mut request = request(agent, &env);
    request.mcp_servers.insert("my.calc".to_owned(), calc.cwd(cwd.to_string_lossy()));
    let web_server = McpServer::http(web.url()).header("X-Key", SECRET).bearer_token("t0ken-s3cret");
    request.mcp_servers.insert("the_web".to_owned(), web_server);
    // Only these two are allowed.
    request.permissions.allow = vec!["mcp__my.calc".to_owned(), "mcp__the_web__slow".to_owned()];
    let run = env.start(request)?;
    env.provider().gate("end").wait_reached(TIMEOUT * 2).await?;

    let start = logged_start(&log)?;
    assert_eq!(start["cwd"].as_str(), cwd.to_str());
    let environment = fs::read(format!("/proc/{}/environ", start["pid"]))?;
    let expected = format!("CALC_TOKEN={SECRET}");
    let found = environment.split(|byte| *byte == 0).any(|entry| entry == expected.as_bytes());
    assert!(found, "the server has another secret");
    assert!(!all_arguments()?.contains("s3cret"));

    env.provider().gate("end").open();
    let recording = run.finish().await?;
    assert_done(&recording)?;
    let tools = recording.tools();
    for (server, (tool, result)) in ["my.calc", "the_web"].into_iter().zip(&tools) {
        let reported = (tool.server.as_deref(), tool.tool_name.as_str(), &tool.kind);
        assert_eq!(reported, (Some(server), "slow", &ToolKind::Mcp));
        assert_eq!((result.output.as_str(), result.is_error.unwrap_or(false)), ("slept", false));
    }
    assert_eq!(tools.len(), 2);
    for request in web.requests().iter().filter(|request| !request.rejected) {
        assert_eq!(request.headers.get("x-key").map(String::as_str), Some(SECRET));
    }
    Ok(())
}

/// Calls a tool in a run with this rule, and returns whether the tool was refused.
async fn is_refused(agent: &Agent, rule: Option<&str>) -> Result<bool> {
    let env = agent.test_env(slow_call(agent, "my.calc")).await?;
    let mut request = request(agent, &env);
    request.mcp_servers.insert("my.calc".to_owned(), server());
    request.permissions.allow = rule.map(str::to_owned).into_iter().collect();
    let recording = env.run(request).await?;
    assert_done(&recording)?;
    let (_, result) = recording.only_tool()?;
    let refused = result.is_error.unwrap_or(false);
    let denials = recording.result.permission_denials.iter().map(|denial| denial.tool_name.as_str());
    let expected = if refused { vec!["mcp__my.calc__slow"] } else { Vec::new() };
    assert_eq!(denials.collect::<Vec<_>>(), expected, "{rule:?}: {}", result.output.as_str());
    Ok(refused)
}

async fn a_tool_without_permission_is_refused_and_the_denial_names_the_rule(agent: &Agent) -> Result<()> {
    assert!(is_refused(agent, None).await?);
    Ok(())
}

async fn a_rule_permits_the_tool_that_it_names_and_no_other(agent: &Agent) -> Result<()> {
    assert!(!is_refused(agent, Some("mcp__my.calc__slow")).await?);
    assert!(is_refused(agent, Some("mcp__my.calc__fail")).await?);
    Ok(())
}

async fn the_users_own_servers_work_beside_those_of_the_run_on_every_agent(agent: &Agent) -> Result<()> {
    let env = agent.test_env(slow_call(agent, "own")).await?;
    let file = agent.add_user_server(&env.home(), "own", PROGRAM)?;
    let text = fs::read_to_string(&file)?;
    let mut request = request(agent, &env);
    request.permissions.mode = PermissionMode::Full;
    request.mcp_servers.insert("calc".to_owned(), server());
    let recording = env.run(request).await?;
    assert_done(&recording)?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!(result.output, "slept");
    // OpenCode's names of tools identify the server only if it is in the request.
    assert!(agent.name == "opencode" || tool.server.as_deref() == Some("own"));
    assert!(offers(agent, &recording.requests[0], "calc", "slow"));
    // Claude Code stores its own state in the same file.
    assert!(agent.name == "claude" || fs::read_to_string(&file)? == text, "the user's file changed");
    Ok(())
}

async fn a_strict_run_has_no_servers_but_its_own_or_is_refused(agent: &Agent) -> Result<()> {
    for own in [true, false] {
        let env = agent.test_env(agent.reply().text("Done.")).await?;
        agent.add_user_server(&env.home(), "own", PROGRAM)?;
        let mut request = request(agent, &env);
        request.permissions.mode = PermissionMode::Full;
        request.user_mcp_servers = UserMcpServers::LeftOut;
        if own {
            request.mcp_servers.insert("calc".to_owned(), server());
        }
        if ["codex", "opencode"].contains(&agent.name) {
            assert!(env.start(request).is_err());
            continue;
        }
        let recording = env.run(request).await?;
        assert_done(&recording)?;
        let model = &recording.requests[0];
        let offered = (offers(agent, model, "calc", "slow"), offers(agent, model, "own", "slow"));
        assert_eq!(offered, (own, false));
    }
    Ok(())
}

async fn runs_at_once_in_one_home_and_directory_do_not_see_each_others_servers(agent: &Agent) -> Result<()> {
    let scenario = Scenario::new().reply(agent.reply().text("Done.").gate_before("end"));
    let env = agent.test_env(scenario.branch("alone", agent.reply().text("Done."))).await?;
    // OpenCode creates its database in the first run of a home. Of two first runs at once, one would fail.
    let mut first = request(agent, &env);
    "SCN:alone".clone_into(&mut first.prompt);
    assert_done(&env.run(first).await?)?;
    let before = env.provider().requests().len();
    let start = |name: &str| {
        let mut request = request(agent, &env);
        request.prompt = format!("This is {name}.");
        request.permissions.mode = PermissionMode::Full;
        request.mcp_servers.insert(name.to_owned(), server());
        env.start(request)
    };
    let (one, two) = (start("one")?, start("two")?);
    env.provider().wait_until(TIMEOUT * 2, |requests| requests.len() >= before + 2).await?;
    env.provider().gate("end").open();
    for run in [one, two] {
        assert_done(&run.finish().await?)?;
    }
    let requests = env.provider().requests();
    for (name, other) in [("one", "two"), ("two", "one")] {
        let prompt = format!("This is {name}.");
        let request = requests.iter().find(|request| request.body.to_string().contains(&prompt));
        let request = request.context("no request reached the model")?;
        assert!(offers(agent, request, name, "slow") && !offers(agent, request, other, "slow"));
    }
    Ok(())
}

async fn tools_that_are_left_out_are_not_offered_on_any_agent(agent: &Agent) -> Result<()> {
    let enabled = || server().enable_tools(["slow", "fail"]).disable_tools(["fail"]);
    for (server, expected) in
        [(server().disable_tools(["fail"]), [true, false, true]), (enabled(), [true, false, false])]
    {
        let env = agent.test_env(slow_call(agent, "my_calc")).await?;
        let mut request = request(agent, &env);
        request.permissions.mode = PermissionMode::Full;
        let only_some = server.enabled_tools.is_some();
        request.mcp_servers.insert("my_calc".to_owned(), server);
        if agent.name == "claude" && only_some {
            assert!(env.start(request).is_err());
            continue;
        }
        let recording = env.run(request).await?;
        assert_done(&recording)?;
        assert_eq!(recording.only_tool()?.1.output, "slept");
        let offered = ["slow", "fail", "add"].map(|tool| offers(agent, &recording.requests[0], "my_calc", tool));
        assert_eq!(offered, expected);
    }
    Ok(())
}
