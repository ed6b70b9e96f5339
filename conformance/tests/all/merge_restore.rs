//! MCP servers by the user's own configuration file: they work, and the file is what it was, to the byte.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use teamster::RunRequest;
use teamster::event::WarningCode;
use teamster::request::{McpDelivery, McpServer, PermissionMode};
use teamster_conformance::{AGENTS, Agent, BOUND, Recording, TestEnv};
use teamster_testkit::mcp_fixture::McpHttp;
use teamster_testkit::provider::Scenario;

use crate::mcp::{request, server, slow_call};

const SECRET: &str = "s3cret $HOME ${HOME} \\$x {env:HOME} \"q\" #";

fn agents() -> impl Iterator<Item = &'static Agent> {
    AGENTS.iter().filter(|agent| agent.name != "claude")
}

/// The file of the user's from which the agent takes servers.
fn file(agent: &Agent, lab: &TestEnv) -> PathBuf {
    match agent.name {
        "codex" => lab.home().join(".codex/config.toml"),
        "gemini" => lab.project().join(".gemini/settings.json"),
        _ => lab.project().join("opencode.jsonc"),
    }
}

/// Writes the user's own file, with what no serializer would keep.
fn write_theirs(agent: &Agent, lab: &TestEnv) -> Result<String> {
    let path = file(agent, lab);
    let text = match agent.name {
        // The lab's own, without which there is no provider.
        "codex" => format!("# mine\r\n{}\n[mcp_servers]\n# none yet\n", fs::read_to_string(&path)?),
        "gemini" => "{\n\t// mine\n\t\"ui\": {\"hideTips\": true}\n}".to_owned(),
        _ => "{\n  // mine\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n  },\n}\r\n".to_owned(),
    };
    fs::create_dir_all(path.parent().context("a file in a directory")?)?;
    fs::write(path, &text)?;
    Ok(text)
}

fn merged(agent: &Agent, lab: &TestEnv, server: (&str, McpServer)) -> RunRequest {
    let mut asked = request(agent, lab);
    asked.permissions.mode = PermissionMode::Full;
    asked.mcp_delivery = McpDelivery::MergeRestore;
    asked.mcp_servers.insert(server.0.to_owned(), server.1);
    asked
}

fn is_done(agent: &Agent, recording: &Recording) -> Result<()> {
    let warning = recording.warnings(&WarningCode::ConfigNotRestored);
    ensure!(recording.result.final_text == "Done.", "{}: {:?}", agent.name, recording.failure());
    ensure!(warning.is_empty(), "{}: {warning:?}", agent.name);
    Ok(())
}

#[tokio::test]
async fn servers_with_secrets_work_and_the_file_holds_none_and_is_what_it_was() -> Result<()> {
    for agent in agents() {
        let web = McpHttp::setup().require_header("authorization", "Bearer t0ken-s3cret").start().await?;
        let sleep =
            |server: &str| agent.reply().tool(agent.mcp_tool(server, "slow"), serde_json::json!({"seconds": 0}));
        let scenario = Scenario::new()
            .reply(sleep("my.calc"))
            .reply(sleep("the_web"))
            .reply(agent.reply().text("Done.").gate_before("end"));
        let lab = agent.lab(scenario).await?;
        let theirs = write_theirs(agent, &lab)?;
        let log = lab.directory("logs")?.join("$HOME.log");
        let calc = server().args(["--log", &log.to_string_lossy()]).env("CALC_TOKEN", SECRET);
        let mut asked = merged(agent, &lab, ("my.calc", calc));
        let web_server = McpServer::http(web.url()).header("X-Key", SECRET).bearer_token("t0ken-s3cret");
        asked.mcp_servers.insert("the_web".to_owned(), web_server);
        let live = lab.start(asked)?;
        lab.provider().gate("end").wait_reached(BOUND * 2).await?;

        let during = fs::read_to_string(file(agent, &lab))?;
        assert!(during.contains("calc") && during.contains(&web.url()), "{}: {during}", agent.name);
        assert!(!during.contains("s3cret"), "{}: {during}", agent.name);
        let start = fs::read_to_string(&log)?;
        let start: serde_json::Value = serde_json::from_str(start.lines().next().context("an empty log")?)?;
        let environment = fs::read(format!("/proc/{}/environ", start["pid"]))?;
        let expected = format!("CALC_TOKEN={SECRET}");
        let found = environment.split(|byte| *byte == 0).any(|entry| entry == expected.as_bytes());
        assert!(found, "{}: the server has another secret", agent.name);

        lab.provider().gate("end").open();
        let recording = live.finish().await?;
        is_done(agent, &recording)?;
        for (_, result) in recording.tools() {
            assert_eq!(result.output, "slept", "{}", agent.name);
        }
        for request in web.requests().iter().filter(|request| !request.rejected) {
            assert_eq!(request.headers.get("x-key").map(String::as_str), Some(SECRET), "{}", agent.name);
        }
        assert_eq!(fs::read_to_string(file(agent, &lab))?, theirs, "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn a_file_that_was_not_there_is_gone_after_the_run() -> Result<()> {
    for agent in agents().filter(|agent| agent.name != "codex") {
        let lab = agent.lab(slow_call(agent, "calc")).await?;
        let recording = lab.run(merged(agent, &lab, ("calc", server()))).await?;
        is_done(agent, &recording)?;
        assert_eq!(recording.only_tool()?.1.output, "slept", "{}", agent.name);
        let left: Vec<_> = fs::read_dir(lab.project())?.collect();
        assert!(left.is_empty(), "{}: {left:?}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn runs_that_overlap_in_one_directory_share_the_file_and_the_last_one_restores_it() -> Result<()> {
    for agent in agents() {
        let lab = agent.lab(agent.reply().text("Done.").gate_before("end")).await?;
        let theirs = write_theirs(agent, &lab)?;
        let start = |name: &str| {
            let mut asked = merged(agent, &lab, (name, server().env("CALC_TOKEN", name)));
            asked.mcp_servers.insert("both".to_owned(), server().env("BOTH_TOKEN", "the-same"));
            lab.start(asked)
        };
        let one = start("one")?;
        lab.provider().wait_until(BOUND * 2, |requests| !requests.is_empty()).await?;
        let two = start("two")?;
        lab.provider().wait_until(BOUND * 2, |requests| requests.len() >= 2).await?;
        let during = fs::read_to_string(file(agent, &lab))?;
        assert!(during.contains("one") && during.contains("two") && during.contains("both"), "{during}");
        lab.provider().gate("end").open();
        for live in [one, two] {
            is_done(agent, &live.finish().await?)?;
        }
        assert_eq!(fs::read_to_string(file(agent, &lab))?, theirs, "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn an_edit_that_the_user_makes_during_the_run_stays() -> Result<()> {
    for agent in agents() {
        let lab = agent.lab(agent.reply().text("Done.").gate_before("end")).await?;
        let theirs = write_theirs(agent, &lab)?;
        let live = lab.start(merged(agent, &lab, ("calc", server())))?;
        lab.provider().gate("end").wait_reached(BOUND * 2).await?;
        let path = file(agent, &lab);
        fs::write(&path, fs::read_to_string(&path)?.replace("mine", "edited"))?;
        lab.provider().gate("end").open();
        is_done(agent, &live.finish().await?)?;
        assert_eq!(fs::read_to_string(path)?, theirs.replace("mine", "edited"), "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn claude_code_refuses_it_since_it_needs_no_file() -> Result<()> {
    let agent = &AGENTS[0];
    let lab = agent.lab(agent.reply().text("Done.")).await?;
    let error = lab.start(merged(agent, &lab, ("calc", server()))).err().context("it was started")?;
    ensure!(error.to_string().contains("auto"), "{error}");
    Ok(())
}
