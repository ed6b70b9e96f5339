//! Prompts, and what is sent with them: system prompts, the model, attachments.

use std::fs;

use anyhow::{Context, Result};
use teamster::request::{Attachment, PromptMode};
use teamster_conformance::{TIMEOUT, TestEnv};
use teamster_testkit::provider::Part;

use crate::{numbers, reply};

const PIXEL: [u8; 69] = [
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 144, 119, 83,
    222, 0, 0, 0, 12, 73, 68, 65, 84, 120, 156, 99, 248, 207, 192, 0, 0, 3, 1, 1, 0, 201, 254, 146, 239, 0, 0, 0, 0,
    73, 69, 78, 68, 174, 66, 96, 130,
];

#[tokio::test]
async fn a_prompt_reaches_the_model_unchanged() -> Result<()> {
    let env = TestEnv::opencode(reply().text("Aye.")).await?;
    fs::write(env.project().join("there.txt"), "CONTENT-OF-THE-FILE")?;
    let mut request = env.request("");
    request.prompt_mode = PromptMode::Literal;
    let session = env.open(request)?;
    for prompt in
        ["-x", "--help", "\n\nfirst\nlast\n", "it's \"quoted\" `x` $(id) \\", "/init now", "!ls @there.txt {env:HOME}"]
    {
        let recording = session.run_turn(prompt).await?;
        assert_eq!(recording.prompts(0)?, [prompt]);
        assert!(!recording.requests[0].body.to_string().contains("CONTENT-OF-THE-FILE"));
        assert_eq!(recording.result.text, "Aye.");
    }
    session.close().await
}

#[tokio::test]
async fn a_prompt_of_a_megabyte_reaches_the_model_once() -> Result<()> {
    let prompt = numbers(100_000);
    let env = TestEnv::opencode(reply().text("Aye.")).await?;
    let recording = env.run(env.request(prompt.as_str())).await?;
    let texts = recording.prompts(0)?;
    assert_eq!(texts.len(), 1);
    assert!(texts[0] == prompt, "{} bytes instead of {}", texts[0].len(), prompt.len());
    Ok(())
}

#[tokio::test]
async fn a_system_prompt_replaces_the_agents_own_and_is_in_no_argv() -> Result<()> {
    const PIRATE: &str = "You are a pirate. --model=none {env:HOME}\n\"Quoted\" $& 漢字";
    let env = TestEnv::opencode(reply().text("Aye.").gate_before("end")).await?;
    let mut request = env.request("Hello.");
    request.system_prompt = Some(PIRATE.to_owned());
    let run = env.start(request)?;
    env.provider().gate("end").wait_reached(TIMEOUT).await?;
    for process in run.processes().list() {
        assert!(!process.command.contains("pirate"), "{process:?}");
    }
    env.provider().gate("end").open();
    let recording = run.finish().await?;
    let system = &recording.requests[0].system;
    assert!(system.contains(PIRATE), "{system}");
    assert!(system.len() < 2500, "{} bytes", system.len());
    Ok(())
}

#[tokio::test]
async fn an_appended_system_prompt_joins_the_agents_own() -> Result<()> {
    let env = TestEnv::opencode(reply().text("Aye.")).await?;
    let mut request = env.request("Hello.");
    request.append_system_prompt = Some("Speak like a {file:/etc/hostname} parrot.".to_owned());
    let recording = env.run(request).await?;
    let system = &recording.requests[0].system;
    assert!(system.contains("Speak like a {file:/etc/hostname} parrot."));
    assert!(system.len() > 4000, "{} bytes", system.len());
    Ok(())
}

#[tokio::test]
async fn the_requested_model_is_used() -> Result<()> {
    let env = TestEnv::opencode(reply().text("Hello.")).await?;
    let mut request = env.request("Hello.");
    request.model = Some("test/m2".to_owned());
    request.effort = Some("high".to_owned());
    let recording = env.run(request).await?;
    assert_eq!(recording.requests[0].model, "m2");
    Ok(())
}

#[tokio::test]
async fn attachments_reach_the_model_beside_the_prompt() -> Result<()> {
    let env = TestEnv::opencode(reply().text("I see.")).await?;
    let mut request = env.request("What are these?");
    request.attachments = vec![
        Attachment::Data { name: "pixel.png".to_owned(), data: PIXEL.to_vec() },
        Attachment::Data { name: "--auto notes.txt".to_owned(), data: b"a line of notes".to_vec() },
    ];
    let recording = env.run(request).await?;
    assert_eq!(recording.result.text, "I see.");
    let prompt = recording.requests[0].messages.iter().rev().find(|message| message.is_prompt()).context("none")?;
    assert!(prompt.parts.iter().any(|part| matches!(part, Part::Other(block) if block["type"] == "image_url")));
    let texts = prompt.texts().collect::<Vec<_>>().join("\n");
    assert!(texts.contains("What are these?") && texts.contains("a line of notes"), "{texts}");
    Ok(())
}
