//! The model of `cargo xtask demo`: prints the address that it listens on, and plays its script until its input ends.
#![expect(clippy::print_stdout, reason = "the address is this program's output")]

use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use teamster_testkit::provider::{ModelRequest, Provider, Reply, Scenario};

/// About the pace of a real model, so that a person can watch it.
const BETWEEN_DELTAS: Duration = Duration::from_millis(60);

#[tokio::main]
async fn main() -> Result<()> {
    let provider = Provider::anthropic(script()).start().await?;
    println!("{}", provider.base_url());

    let end_of_input = tokio::task::spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink()));
    end_of_input.await?.context("cannot wait for the end of the input")?;
    provider.shutdown().await;
    Ok(())
}

fn script() -> Scenario {
    let look = json!({"command": "uname -s -m && ls", "description": "Name the system and list the folder"});
    Scenario::new()
        .reply(
            Reply::new()
                .thinking("Two questions, and one command answers both: uname for the system, ls for the folder.")
                .text("I will ask the shell: `uname` tells the system, `ls` what is in this folder.")
                .tool("Bash", look)
                .delay_before(Duration::from_millis(500))
                .delay_between(BETWEEN_DELTAS),
        )
        .reply(Reply::from_fn(|request| {
            Reply::new().text(answer(request)).delay_before(Duration::from_millis(700)).delay_between(BETWEEN_DELTAS)
        }))
}

/// Says back what the command really printed.
fn answer(request: &ModelRequest) -> String {
    let results = request.tool_results();
    let output = results.last().map(|result| result.output.as_str()).unwrap_or_default();
    let mut lines = output.lines();
    match lines.next() {
        Some(system) => {
            let files: Vec<_> = lines.map(|name| format!("`{name}`")).collect();
            format!(
                "This is **{system}**, and the folder holds {}.\n\nThat came from a real command, run by a real agent. Only \
                 its model was a script.",
                files.join(" and ")
            )
        }
        None => "The command printed nothing, so I cannot tell.".to_owned(),
    }
}
