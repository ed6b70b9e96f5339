//! The model of `cargo xtask demo`, over the wire protocol of the named agent's vendor: prints the address that it listens
//! on, and plays its script until its input ends.
#![expect(clippy::print_stdout, reason = "the address is this program's output")]

use std::io;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;
use teamster_testkit::provider::{ModelRequest, Provider, Reply, Scenario};

/// About the pace of a real model, so that a person can watch it.
const BETWEEN_DELTAS: Duration = Duration::from_millis(60);

#[tokio::main]
async fn main() -> Result<()> {
    let agent = std::env::args().nth(1).context("for which agent?")?;
    let setup = match agent.as_str() {
        "claude" => Provider::anthropic(script("Bash", "command")),
        "codex" => Provider::openai_responses(script("exec_command", "cmd")),
        "gemini" => Provider::gemini(script("run_shell_command", "command")),
        "opencode" => Provider::openai_chat(script("bash", "command")),
        other => bail!("there is no script for {other}"),
    };
    let provider = setup.start().await?;
    println!("{}", provider.base_url());

    let end_of_input = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink()));
    end_of_input.await?.context("cannot wait for the end of the input")?;
    provider.shutdown().await;
    Ok(())
}

/// The script, with the agent's name of its shell tool and of the command in it.
fn script(shell: &str, command: &str) -> Scenario {
    let look = json!({command: "uname -s -m && ls", "description": "Name the system and list the folder"});
    Scenario::new()
        .reply(
            Reply::new()
                .thinking("Two questions, and one command answers both: uname for the system, ls for the folder.")
                .text("I will ask the shell: `uname` tells the system, `ls` what is in this folder.")
                .tool(shell, look)
                .delay_before(Duration::from_millis(500))
                .delay_between(BETWEEN_DELTAS),
        )
        .reply(Reply::from_fn(|request| {
            Reply::new().text(answer(request)).delay_before(Duration::from_millis(700)).delay_between(BETWEEN_DELTAS)
        }))
}

/// Returns the output of the command.
fn answer(request: &ModelRequest) -> String {
    let results = request.tool_results();
    let output = results.last().map(|result| result.output.as_str()).unwrap_or_default();
    // Some agents put words of their own around it.
    let start = ["Linux", "Darwin"].iter().filter_map(|system| output.find(system)).min().unwrap_or_default();
    let mut lines = output.get(start..).unwrap_or_default().lines();
    match lines.next() {
        Some(system) => {
            let files = lines.take_while(|name| !name.is_empty() && !name.contains(' '));
            let files: Vec<_> = files.map(|name| format!("`{name}`")).collect();
            format!(
                "This is **{system}**, and the folder holds {}.\n\nThat came from a real command, run by a real agent. Only \
                 its model was a script.",
                files.join(" and ")
            )
        }
        None => "The command printed nothing, so I cannot tell.".to_owned(),
    }
}
