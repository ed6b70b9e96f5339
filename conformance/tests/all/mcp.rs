//! MCP servers of a run, on every agent: how they are reached, what their tools are called, who may use them, and who sees them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::ToolKind;
use teamster::request::{McpServer, PermissionMode, UserMcpServers};
use teamster_conformance::{AGENTS, Agent, BOUND, Recording, TestEnv};
use teamster_testkit::mcp_fixture::McpHttp;
use teamster_testkit::provider::{ModelRequest, Scenario};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_teamster-conformance-mcp-server");

/// Whatever an agent's configuration might take for something else.
const SECRET: &str = "s3cret $HOME ${HOME} ${A:-b} $$ \\$x {env:HOME} {file:/etc/passwd} \"q\" 'q' #";

pub(crate) fn server() -> McpServer {
    McpServer::stdio(PROGRAM)
}

/// The arguments of every process of this machine.
fn all_arguments() -> Result<String> {
    let processes = fs::read_dir("/proc")?.flatten();
    Ok(processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|arguments| String::from_utf8_lossy(&arguments).into_owned())
        .collect())
}

/// What a server wrote down of its start.
fn start_of(log: &Path) -> Result<Value> {
    let text = fs::read_to_string(log).with_context(|| format!("no log at {}", log.display()))?;
    Ok(serde_json::from_str(text.lines().next().context("the log is empty")?)?)
}

/// A model that calls one tool and then says `Done.`.
pub(crate) fn one_call(agent: &Agent, server: &str, tool: &str, input: Value) -> Scenario {
    Scenario::new().reply(agent.reply().tool(agent.mcp_tool(server, tool), input)).reply(agent.reply().text("Done."))
}

/// A call that every agent can read the result of: "slept".
pub(crate) fn slow_call(agent: &Agent, server: &str) -> Scenario {
    one_call(agent, server, "slow", json!({"seconds": 0}))
}

fn offers(agent: &Agent, request: &ModelRequest, server: &str, tool: &str) -> bool {
    request.tools().contains(&agent.mcp_tool(server, tool).as_str())
}

/// A request whose model is offered all tools at once.
pub(crate) fn request(agent: &Agent, lab: &TestEnv) -> RunRequest {
    let mut request = agent.request(lab, "Go.");
    if agent.name == "codex" {
        // It hides MCP tools from the models that it knows until they search for them.
        request.model = Some("lab-model".to_owned());
    }
    request
}

fn done(agent: &Agent, recording: &Recording) -> Result<()> {
    ensure!(recording.result.final_text == "Done.", "{}: {:?}", agent.name, recording.failure());
    Ok(())
}

#[tokio::test]
async fn a_program_and_a_url_work_side_by_side_with_their_secrets_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let web = McpHttp::setup().require_header("authorization", "Bearer t0ken-s3cret").start().await?;
        let input = || json!({"seconds": 0});
        let calls = agent.reply().tool(agent.mcp_tool("my.calc", "slow"), input());
        let calls = calls.tool(agent.mcp_tool("the_web", "slow"), input());
        let scenario = Scenario::new().reply(calls).reply(agent.reply().text("Done.").gate_before("end"));
        let lab = agent.lab(scenario).await?;
        let place = lab.directory("place of the server")?;
        let log = place.join("${HOME} $HOME {env:HOME}.log");
        let calc = server().args(["--log", &log.to_string_lossy()]).env("CALC_TOKEN", SECRET);
        let mut asked = request(agent, &lab);
        asked.mcp_servers.insert("my.calc".to_owned(), calc.cwd(place.to_string_lossy()));
        let web_server = McpServer::http(web.url()).header("X-Key", SECRET).bearer_token("t0ken-s3cret");
        asked.mcp_servers.insert("the_web".to_owned(), web_server);
        // Nothing but these two is allowed.
        asked.permissions.allow = vec!["mcp__my.calc".to_owned(), "mcp__the_web__slow".to_owned()];
        let live = lab.start(asked)?;
        lab.provider().gate("end").wait_reached(BOUND * 2).await?;

        let start = start_of(&log)?;
        assert_eq!(start["cwd"].as_str(), place.to_str(), "{}", agent.name);
        let environment = fs::read(format!("/proc/{}/environ", start["pid"]))?;
        let expected = format!("CALC_TOKEN={SECRET}");
        let found = environment.split(|byte| *byte == 0).any(|entry| entry == expected.as_bytes());
        assert!(found, "{}: the server has another secret", agent.name);
        assert!(!all_arguments()?.contains("s3cret"), "{}", agent.name);

        lab.provider().gate("end").open();
        let recording = live.finish().await?;
        done(agent, &recording)?;
        let tools = recording.tools();
        for (server, (tool, result)) in ["my.calc", "the_web"].into_iter().zip(&tools) {
            let told = (tool.server.as_deref(), tool.tool_name.as_str(), &tool.kind);
            assert_eq!(told, (Some(server), "slow", &ToolKind::Mcp), "{}", agent.name);
            assert_eq!((result.output.as_str(), result.is_error.unwrap_or(false)), ("slept", false), "{}", agent.name);
        }
        assert_eq!(tools.len(), 2);
        for request in web.requests().iter().filter(|request| !request.rejected) {
            assert_eq!(request.headers.get("x-key").map(String::as_str), Some(SECRET), "{}", agent.name);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_tool_without_permission_is_refused_and_the_denial_names_the_rule() -> Result<()> {
    for agent in AGENTS {
        for (rule, refused) in [(None, true), (Some("mcp__my.calc__slow"), false), (Some("mcp__my.calc__fail"), true)] {
            let lab = agent.lab(slow_call(agent, "my.calc")).await?;
            let mut asked = request(agent, &lab);
            asked.mcp_servers.insert("my.calc".to_owned(), server());
            asked.permissions.allow = rule.map(str::to_owned).into_iter().collect();
            let recording = lab.run(asked).await?;
            done(agent, &recording)?;
            let (_, result) = recording.only_tool()?;
            assert_eq!(
                result.is_error.unwrap_or(false),
                refused,
                "{} {rule:?}: {}",
                agent.name,
                result.output.as_str()
            );
            let denials = recording.result.permission_denials.iter().map(|denial| denial.tool_name.as_str());
            let expected = if refused { vec!["mcp__my.calc__slow"] } else { Vec::new() };
            assert_eq!(denials.collect::<Vec<_>>(), expected, "{}", agent.name);
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_users_own_servers_work_beside_those_of_the_run_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(slow_call(agent, "own")).await?;
        let file = agent.add_user_server(&lab, "own", PROGRAM)?;
        let text = fs::read_to_string(&file)?;
        let mut asked = request(agent, &lab);
        asked.permissions.mode = PermissionMode::Full;
        asked.mcp_servers.insert("calc".to_owned(), server());
        let recording = lab.run(asked).await?;
        done(agent, &recording)?;
        let (tool, result) = recording.only_tool()?;
        assert_eq!(result.output, "slept", "{}", agent.name);
        // OpenCode's names of tools do not tell the server, unless it is known.
        assert!(agent.name == "opencode" || tool.server.as_deref() == Some("own"), "{}", agent.name);
        assert!(offers(agent, &recording.requests[0], "calc", "slow"), "{}", agent.name);
        // Claude Code keeps its own state in the same file.
        assert!(agent.name == "claude" || fs::read_to_string(&file)? == text, "{}: a file of the user's", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn a_strict_run_has_no_servers_but_its_own_or_is_refused() -> Result<()> {
    for agent in AGENTS {
        for own in [true, false] {
            let lab = agent.lab(agent.reply().text("Done.")).await?;
            agent.add_user_server(&lab, "own", PROGRAM)?;
            let mut asked = request(agent, &lab);
            asked.permissions.mode = PermissionMode::Full;
            asked.user_mcp_servers = UserMcpServers::LeftOut;
            if own {
                asked.mcp_servers.insert("calc".to_owned(), server());
            }
            if ["codex", "opencode"].contains(&agent.name) {
                assert!(lab.start(asked).is_err(), "{}", agent.name);
                continue;
            }
            let recording = lab.run(asked).await?;
            done(agent, &recording)?;
            let model = &recording.requests[0];
            let offered = (offers(agent, model, "calc", "slow"), offers(agent, model, "own", "slow"));
            assert_eq!(offered, (own, false), "{}", agent.name);
        }
    }
    Ok(())
}

#[tokio::test]
async fn runs_at_once_in_one_home_and_directory_do_not_see_each_others_servers() -> Result<()> {
    for agent in AGENTS {
        let scenario = Scenario::new().reply(agent.reply().text("Done.").gate_before("end"));
        let lab = agent.lab(scenario.branch("alone", agent.reply().text("Done."))).await?;
        // A home is new but once, and OpenCode makes its database then: of two at once one would fail.
        let mut first = request(agent, &lab);
        first.prompt = "SCN:alone".to_owned();
        done(agent, &lab.run(first).await?)?;
        let before = lab.provider().requests().len();
        let start = |name: &str| {
            let mut asked = request(agent, &lab);
            asked.prompt = format!("This is {name}.");
            asked.permissions.mode = PermissionMode::Full;
            asked.mcp_servers.insert(name.to_owned(), server());
            lab.start(asked)
        };
        let (one, two) = (start("one")?, start("two")?);
        lab.provider().wait_until(BOUND * 2, |requests| requests.len() >= before + 2).await?;
        lab.provider().gate("end").open();
        for live in [one, two] {
            done(agent, &live.finish().await?)?;
        }
        let asked = lab.provider().requests();
        for (name, other) in [("one", "two"), ("two", "one")] {
            let of_it = asked.iter().find(|request| request.body.to_string().contains(&format!("This is {name}.")));
            let of_it = of_it.context("the model was not asked")?;
            assert!(offers(agent, of_it, name, "slow") && !offers(agent, of_it, other, "slow"), "{}", agent.name);
        }
    }
    Ok(())
}

#[tokio::test]
async fn tools_that_are_left_out_are_not_offered_on_any_agent() -> Result<()> {
    for agent in AGENTS {
        let enabled = || server().enable_tools(["slow", "fail"]).disable_tools(["fail"]);
        for (server, expected) in
            [(server().disable_tools(["fail"]), [true, false, true]), (enabled(), [true, false, false])]
        {
            let lab = agent.lab(slow_call(agent, "my_calc")).await?;
            let mut asked = request(agent, &lab);
            asked.permissions.mode = PermissionMode::Full;
            let only_some = server.enabled_tools.is_some();
            asked.mcp_servers.insert("my_calc".to_owned(), server);
            if agent.name == "claude" && only_some {
                assert!(lab.start(asked).is_err());
                continue;
            }
            let recording = lab.run(asked).await?;
            done(agent, &recording)?;
            assert_eq!(recording.only_tool()?.1.output, "slept", "{}", agent.name);
            let offered = ["slow", "fail", "add"].map(|tool| offers(agent, &recording.requests[0], "my_calc", tool));
            assert_eq!(offered, expected, "{}", agent.name);
        }
    }
    Ok(())
}
