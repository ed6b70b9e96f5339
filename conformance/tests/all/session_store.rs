//! Lists of sessions, read from the stores of the CLIs.

use anyhow::Result;
use teamster_conformance::{Agent, agent_tests};
use teamster_testkit::provider::{ModelRequest, Reply, Scenario};

agent_tests! {
    a_finished_session_is_listed: all,
}

async fn a_finished_session_is_listed(agent: &Agent) -> Result<()> {
    let tool = agent.shell("echo made-by-tool");
    let reply = agent.reply();
    let scenario: Scenario = Reply::from_fn(move |request: &ModelRequest| {
        if request.prompts().last().is_some_and(|p| p.contains("Second")) {
            reply.clone().text("Answer to the *second* prompt.")
        } else if request.turn == 1 {
            reply.clone().text("let me look").tool(tool.0, tool.1.clone())
        } else {
            reply.clone().text("Answer to the first prompt.\nWith two lines.")
        }
    })
    .into();
    let env = agent.test_env(scenario).await?;
    let mut request = agent.request(&env, "First prompt: read the *file*");
    request.permissions.mode = teamster::request::PermissionMode::Full;
    let first = env.run(request).await?;
    println!("{:?}", first.result);
    let mut request = agent.request(&env, "Second prompt");
    request.permissions.mode = teamster::request::PermissionMode::Full;
    let second = env.resume(request, &first, "First prompt").await?;
    println!("{:?}", second.result);
    let target = format!("/tmp/stores/{}", agent.name);
    std::fs::create_dir_all(&target)?;
    std::process::Command::new("cp").arg("-r").arg(env.home().parent().unwrap()).arg(&target).status()?;
    Ok(())
}
