//! MCP servers that are merged into the user's configuration file. After the run, the file has its former bytes.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::WarningCode;
use teamster::request::{McpDelivery, McpServer, PermissionMode};
use teamster_conformance::{Agent, Recording, TIMEOUT, TestEnv, agent_tests};
use teamster_testkit::mcp_fixture::McpHttp;
use teamster_testkit::provider::Scenario;

use crate::mcp_servers::{request, server, slow_call};

const SECRET: &str = "s3cret $HOME ${HOME} \\$x {env:HOME} \"q\" #";

agent_tests! {
    servers_with_secrets_work_and_the_file_holds_none_and_is_what_it_was: [codex, gemini, opencode],
    a_file_that_was_not_there_is_gone_after_the_run: [gemini, opencode],
    runs_that_overlap_in_one_directory_share_the_file_and_the_last_one_restores_it: [codex, gemini, opencode],
    an_edit_that_the_user_makes_during_the_run_stays: [codex, gemini, opencode],
    claude_code_refuses_it_since_it_needs_no_file: [claude],
}

/// Returns the user's file from which the agent reads servers.
fn user_file(agent: &Agent, env: &TestEnv) -> PathBuf {
    match agent.name {
        "codex" => env.home().join(".codex/config.toml"),
        "gemini" => env.project().join(".gemini/settings.json"),
        _ => env.project().join("opencode.jsonc"),
    }
}

/// Writes the user's file, with formatting that a serializer would lose, and returns its text.
fn write_user_file(agent: &Agent, env: &TestEnv) -> Result<String> {
    let path = user_file(agent, env);
    let text = match agent.name {
        // The file also names the test's provider.
        "codex" => format!("# mine\r\n{}\n[mcp_servers]\n# none yet\n", fs::read_to_string(&path)?),
        "gemini" => "{\n\t// mine\n\t\"ui\": {\"hideTips\": true}\n}".to_owned(),
        _ => "{\n  // mine\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n  },\n}\r\n".to_owned(),
    };
    fs::create_dir_all(path.parent().context("a file in a directory")?)?;
    fs::write(path, &text)?;
    Ok(text)
}

fn merging(agent: &Agent, env: &TestEnv, server: (&str, McpServer)) -> RunRequest {
    let mut request = request(agent, env);
    request.permissions.mode = PermissionMode::Full;
    request.mcp_delivery = McpDelivery::MergeRestore;
    request.mcp_servers.insert(server.0.to_owned(), server.1);
    request
}

fn assert_done(recording: &Recording) -> Result<()> {
    let warning = recording.warnings(&WarningCode::ConfigNotRestored);
    ensure!(recording.result.final_text == "Done.", "{:?}", recording.failure());
    ensure!(warning.is_empty(), "{warning:?}");
    Ok(())
}

async fn servers_with_secrets_work_and_the_file_holds_none_and_is_what_it_was(agent: &Agent) -> Result<()> {
    let web = McpHttp::setup().require_header("authorization", "Bearer t0ken-s3cret").start().await?;
    let sleep = |server: &str| agent.reply().tool(agent.mcp_tool(server, "slow"), json!({"seconds": 0}));
    let scenario = Scenario::new()
        .reply(sleep("my.calc"))
        .reply(sleep("the_web"))
        .reply(agent.reply().text("Done.").gate_before("end"));
    let env = agent.test_env(scenario).await?;
    let before = write_user_file(agent, &env)?;
    let log = env.create_directory("logs")?.join("$HOME.log");
    let calc = server().args(["--log", &log.to_string_lossy()]).env("CALC_TOKEN", SECRET);
    let mut request = merging(agent, &env, ("my.calc", calc));
    let web_server = McpServer::http(web.url()).header("X-Key", SECRET).bearer_token("t0ken-s3cret");
    request.mcp_servers.insert("the_web".to_owned(), web_server);
    let run = env.start(request)?;
    env.provider().gate("end").wait_reached(TIMEOUT * 2).await?;

    let during = fs::read_to_string(user_file(agent, &env))?;
    assert!(during.contains("calc") && during.contains(&web.url()), "{during}");
    assert!(!during.contains("s3cret"), "{during}");
    let start = fs::read_to_string(&log)?;
    let start: Value = serde_json::from_str(start.lines().next().context("an empty log")?)?;
    let environment = fs::read(format!("/proc/{}/environ", start["pid"]))?;
    let expected = format!("CALC_TOKEN={SECRET}");
    let found = environment.split(|byte| *byte == 0).any(|entry| entry == expected.as_bytes());
    assert!(found, "the server has another secret");

    env.provider().gate("end").open();
    let recording = run.finish().await?;
    assert_done(&recording)?;
    for (_, result) in recording.tools() {
        assert_eq!(result.output, "slept");
    }
    for request in web.requests().iter().filter(|request| !request.rejected) {
        assert_eq!(request.headers.get("x-key").map(String::as_str), Some(SECRET));
    }
    assert_eq!(fs::read_to_string(user_file(agent, &env))?, before);
    Ok(())
}

async fn a_file_that_was_not_there_is_gone_after_the_run(agent: &Agent) -> Result<()> {
    let env = agent.test_env(slow_call(agent, "calc")).await?;
    let recording = env.run(merging(agent, &env, ("calc", server()))).await?;
    assert_done(&recording)?;
    assert_eq!(recording.only_tool()?.1.output, "slept");
    let remaining: Vec<_> = fs::read_dir(env.project())?.collect();
    assert!(remaining.is_empty(), "{remaining:?}");
    Ok(())
}

async fn runs_that_overlap_in_one_directory_share_the_file_and_the_last_one_restores_it(agent: &Agent) -> Result<()> {
    let env = agent.test_env(agent.reply().text("Done.").gate_before("end")).await?;
    let before = write_user_file(agent, &env)?;
    let start = |name: &str| {
        let mut request = merging(agent, &env, (name, server().env("CALC_TOKEN", name)));
        request.mcp_servers.insert("both".to_owned(), server().env("BOTH_TOKEN", "the-same"));
        env.start(request)
    };
    let one = start("one")?;
    env.provider().wait_until(TIMEOUT * 2, |requests| !requests.is_empty()).await?;
    let two = start("two")?;
    env.provider().wait_until(TIMEOUT * 2, |requests| requests.len() >= 2).await?;
    let during = fs::read_to_string(user_file(agent, &env))?;
    assert!(during.contains("one") && during.contains("two") && during.contains("both"), "{during}");
    env.provider().gate("end").open();
    for run in [one, two] {
        assert_done(&run.finish().await?)?;
    }
    assert_eq!(fs::read_to_string(user_file(agent, &env))?, before);
    Ok(())
}

async fn an_edit_that_the_user_makes_during_the_run_stays(agent: &Agent) -> Result<()> {
    let env = agent.test_env(agent.reply().text("Done.").gate_before("end")).await?;
    let before = write_user_file(agent, &env)?;
    let run = env.start(merging(agent, &env, ("calc", server())))?;
    env.provider().gate("end").wait_reached(TIMEOUT * 2).await?;
    let path = user_file(agent, &env);
    fs::write(&path, fs::read_to_string(&path)?.replace("mine", "edited"))?;
    env.provider().gate("end").open();
    assert_done(&run.finish().await?)?;
    assert_eq!(fs::read_to_string(path)?, before.replace("mine", "edited"));
    Ok(())
}

async fn claude_code_refuses_it_since_it_needs_no_file(agent: &Agent) -> Result<()> {
    let env = agent.test_env(agent.reply().text("Done.")).await?;
    let error = env.start(merging(agent, &env, ("calc", server()))).err().context("the run was started")?;
    ensure!(error.to_string().contains("auto"), "{error}");
    Ok(())
}
