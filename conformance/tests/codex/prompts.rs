//! Prompts that resemble an option, a command or a skill.

use std::fs;

use anyhow::Result;
use teamster::request::PromptMode;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::Reply;

async fn test_env() -> Result<TestEnv> {
    TestEnv::codex(Reply::new().text("Read.")).await
}

#[tokio::test]
async fn a_prompt_is_never_a_flag_a_subcommand_or_a_shell_word() -> Result<()> {
    let env = test_env().await?;
    for prompt in [
        "--help",
        "-",
        "--",
        "-c model=\"x\"",
        "resume",
        "help",
        "$(touch made) `touch made` ; touch made",
        "'single' \"double\" \\back",
        "line one\nline two\r\n\nline four",
        "/clear",
        "@/etc/passwd",
        "!ls",
        " leading and trailing \n",
        "\u{feff}x",
    ] {
        let recording = env.run(env.request(prompt)).await?;
        assert_eq!(recording.result.text, "Read.", "{prompt:?}");
        assert_eq!(recording.prompts(0)?, [prompt]);
    }
    assert!(!env.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn a_megabyte_arrives_whole_and_more_is_refused_before_the_start() -> Result<()> {
    let env = test_env().await?;
    let prompt = "0123456789abcde\n".repeat(1 << 16);
    let recording = env.run(env.request(prompt.clone())).await?;
    assert!(recording.prompts(0)? == [prompt.as_str()], "the prompt differs");
    assert!(env.start(env.request(prompt + "x")).is_err());
    Ok(())
}

const SKILL: &str = "---\nname: greet\ndescription: Greets people.\n---\nBODY-OF-THE-SKILL\n";

#[tokio::test]
async fn a_literal_prompt_brings_in_no_skill_and_an_agents_prompt_does() -> Result<()> {
    let env = test_env().await?;
    fs::create_dir_all(env.home().join(".codex/skills/greet"))?;
    fs::write(env.home().join(".codex/skills/greet/SKILL.md"), SKILL)?;
    for prompt in ["Use $greet now.", "`$greet`", "a$greet: $100, $HOME", "[$greet](greet)"] {
        for (mode, brought_in) in [(PromptMode::Agent, true), (PromptMode::Literal, false)] {
            let mut request = env.request(prompt);
            request.prompt_mode = mode;
            let recording = env.run(request).await?;
            assert_eq!(recording.prompts(0)?, [prompt]);
            let body = recording.requests[0].body.to_string();
            if mode == PromptMode::Literal || prompt.starts_with("Use") {
                assert_eq!(body.contains("BODY-OF-THE-SKILL"), brought_in, "{prompt:?} {mode:?}");
            }
        }
    }
    Ok(())
}
