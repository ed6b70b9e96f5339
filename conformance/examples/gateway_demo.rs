//! One conversation over HTTP with two real CLIs. The gateway is killed in the middle of an answer and started again.
//!
//! `cargo xtask demo --gateway` runs it. The models are scripts in this process.

#![expect(clippy::indexing_slicing, clippy::print_stdout, reason = "a person watches it")]

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use teamster_conformance::{Agent, TestEnv, TestGateway, silence};
use teamster_testkit::provider::{Message, ModelRequest, Reply, Scenario, Turn};

/// About the pace of a real model, so that a person can watch it.
const PACE: Duration = Duration::from_millis(50);

/// The number of characters of the interrupted answer that are shown before the kill.
const SHOWN: usize = 40;

const FIRST: &str = "My cat is called Mia. What does she like?";
const SECOND: &str = "Write a poem about her.";
const THIRD: &str = "What was her name again?";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    silence();
    tokio::select! {
        result = demo() => result,
        // The directories are removed, and the gateway with its agents is killed.
        _ = tokio::signal::ctrl_c() => bail!("stopped"),
    }
}

async fn demo() -> Result<()> {
    let (claude, codex) = (TestEnv::claude(script()).await?, TestEnv::codex(script()).await?);
    // Claude Code is found by its name. Both have the home of Codex.
    let clis = Path::new(env!("CARGO_MANIFEST_DIR")).join("node_modules/.bin");
    let mut path = OsString::from(clis);
    path.push(":");
    path.push(std::env::var_os("PATH").context("PATH is not set")?);
    let path = path.into_string().ok().context("PATH is not UTF-8")?;
    let vendor = |(name, value): &(OsString, OsString)| {
        let (name, value) = (name.to_str()?.to_owned(), value.to_str()?.to_owned());
        (name.starts_with("ANTHROPIC_") || name.starts_with("CLAUDE_") || name.starts_with("DISABLE_"))
            .then_some((name, value))
    };
    let variables: Vec<_> = claude.environment().iter().filter_map(vendor).chain([("PATH".to_owned(), path)]).collect();
    let codex = codex.with_variables(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let mut gateway = TestGateway::start(Agent::named("codex")?, &codex, "interrupted = \"resume\"").await?;
    println!("$ teamster serve\n{}\n", gateway.url());
    converse(&mut gateway, &codex).await?;
    gateway.stop().await?;
    println!("The gateway was stopped, and none of its processes is left.");
    Ok(())
}

async fn converse(gateway: &mut TestGateway, codex: &TestEnv) -> Result<()> {
    let conversation = gateway.create_conversation(&json!({"agent": "claude", "title": "Mia"})).await?;
    println!("POST /v1/conversations {{\"agent\": \"claude\"}}\n     {conversation}");
    let first = send(gateway, &conversation, FIRST).await?;
    show(gateway, &conversation, &first, "Claude Code", usize::MAX).await?;

    let path = format!("/v1/conversations/{conversation}");
    let (status, changed) = gateway.call("PATCH", &path, Some(&json!({"agent": "codex"}))).await?;
    ensure!(status == 200, "{changed}");
    println!("PATCH /v1/conversations/ID {{\"agent\": \"codex\"}}");
    let second = send(gateway, &conversation, SECOND).await?;
    let third = send(gateway, &conversation, THIRD).await?;
    show(gateway, &conversation, &second, "Codex", SHOWN).await?;

    println!("\n$ kill -9 GATEWAY          # in the middle of the answer; one message waits");
    gateway.kill().await?;
    println!("     no process of the gateway or of its agents is left");
    gateway.restart().await?;
    println!("$ teamster serve           # the same data\n{}\n", gateway.url());
    show(gateway, &conversation, &second, "Codex", usize::MAX).await?;
    show(gateway, &conversation, &third, "Codex", usize::MAX).await?;
    check(gateway, codex, &conversation, &[first, second, third]).await
}

/// Sends a message, and returns its turn.
async fn send(gateway: &TestGateway, conversation: &str, message: &str) -> Result<String> {
    let turn = gateway.send(conversation, message).await?;
    println!("POST /v1/conversations/ID/messages {}\n     202, turn {turn}", json!({ "text": message }));
    Ok(turn)
}

/// Prints the text of a turn as it is written, up to its end or a number of characters.
async fn show(gateway: &TestGateway, conversation: &str, turn: &str, agent: &str, limit: usize) -> Result<()> {
    print!("     {agent}: ");
    let mut shown = 0;
    let mut events = gateway.events(conversation).await?;
    loop {
        let event = events.next().await?;
        if event["turnId"] != turn {
            continue;
        }
        match event["type"].as_str() {
            Some("text") => {
                let text = event["text"].as_str().unwrap_or_default();
                shown += text.chars().count();
                print!("{text}");
                io::stdout().flush()?;
            }
            Some("turn_started") if event["attempt"] != 1 => print!(" [started again] "),
            Some("turn_finished") => {
                println!("\n");
                ensure!(event["state"] == "done", "the turn ended as {event}");
                return Ok(());
            }
            _ => {}
        }
        if shown >= limit {
            println!(" ...");
            return Ok(());
        }
    }
}

/// Checks the promises from the log alone, and prints each.
async fn check(gateway: &TestGateway, codex: &TestEnv, conversation: &str, turns: &[String]) -> Result<()> {
    let log = gateway.log(conversation).await?;
    println!("GET /v1/conversations/ID/events\n     {} events, numbered from 1 without a gap", log.len());
    let of_type = |kind: &str| -> Vec<Value> {
        log.iter().filter(|event| event["type"] == kind).map(|event| event["turnId"].clone()).collect()
    };
    ensure!(of_type("turn_queued") == turns, "an accepted message is missing or doubled");
    println!("     each accepted message is in the log once");
    ensure!(of_type("turn_finished") == turns, "a turn did not end once, in order");
    println!("     each was answered once, in order");
    let sessions: Vec<_> = log.iter().filter(|event| event["type"] == "init" && event["turnId"] == turns[1]).collect();
    let is_same = sessions.iter().all(|init| init["sessionId"] == sessions[0]["sessionId"]);
    ensure!(sessions.len() == 2 && is_same, "the killed agent was not resumed: {sessions:?}");
    println!("     the interrupted answer was continued in the same session of the agent");
    let last = gateway.get(&format!("/v1/turns/{}", turns[2])).await?;
    ensure!(last["result"]["finalText"] == "Her name is Mia.", "the context is lost: {last}");
    let requests = codex.provider().requests();
    let knows = requests.iter().any(|request| texts(request).contains(FIRST));
    ensure!(knows, "Codex did not get the messages to Claude Code");
    println!("     Codex knows what was said to Claude Code, and knows it after the kill\n");
    Ok(())
}

/// The models of both agents. What the last message asks for is answered from what the model was sent.
fn script() -> Scenario {
    Reply::from_fn(|request: &ModelRequest| -> Turn {
        let prompt = request.prompts().join("\n");
        let reply = Reply::new().delay_between(PACE);
        let reply = if prompt.contains("You were interrupted") {
            reply.text("... and Mia, who was woken in the middle of a line,\ncontinues to sleep.")
        } else if prompt.contains(THIRD) {
            reply.text(if texts(request).contains("called Mia") { "Her name is Mia." } else { "I do not know." })
        } else if prompt.contains(SECOND) {
            reply.text("In the window sits a cat,\nshe is neither thin nor fat,\nand she watches, all day long,\nhow the birds ...")
        } else {
            reply.text("Fish, and a warm place to sleep.")
        };
        reply.into()
    })
    .into()
}

/// Returns all texts of a request to a model.
fn texts(request: &ModelRequest) -> String {
    request.messages.iter().flat_map(Message::texts).collect::<Vec<_>>().join("\n")
}
