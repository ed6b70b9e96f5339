//! Prompts that resemble an option, a command or a file name.

use std::fs;

use anyhow::Result;
use teamster::request::{OutputMode, PromptMode};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::Reply;

use crate::request;

async fn test_env() -> Result<TestEnv> {
    let env = TestEnv::gemini(Reply::new().text("Understood.")).await?;
    fs::write(env.project().join("secret.txt"), "the-content-of-the-file")?;
    Ok(env)
}

/// Returns the prompt that the model received, and the whole request.
async fn received(env: &TestEnv, prompt: &str, mode: PromptMode) -> Result<(String, String)> {
    let mut asked = request(env, prompt);
    asked.prompt_mode = mode;
    let run = env.run(asked).await?;
    assert_eq!(run.result.text, "Understood.", "{prompt}");
    Ok((run.prompts(0)?.concat(), run.requests[0].body.to_string()))
}

#[tokio::test]
async fn odd_prompts_reach_the_model_unchanged() -> Result<()> {
    let env = test_env().await?;
    let odd =
        ["--help", "-p -x", "$(touch x) `touch x` ; 'a' \"b\"", "two\nlines\r\n\tand \\ more", "!ls ?", "# 日本 👋🏽"];
    for prompt in odd {
        assert_eq!(received(&env, prompt, PromptMode::Agent).await?.0, prompt);
    }
    assert!(!env.project().join("x").exists());
    Ok(())
}

#[tokio::test]
async fn a_prompt_of_a_megabyte_reaches_the_model() -> Result<()> {
    let env = test_env().await?;
    let prompt = "0123456789abcde\n".repeat(65_536);
    let (prompt_text, _) = received(&env, prompt.trim_end(), PromptMode::Agent).await?;
    assert_eq!(prompt_text.len(), prompt.trim_end().len());
    Ok(())
}

#[tokio::test]
async fn a_file_that_a_prompt_names_is_read_unless_it_is_literal() -> Result<()> {
    let env = test_env().await?;
    let prompt = "Say hi to @secret.txt and /quit, me@secret.txt";
    let (_, sent) = received(&env, prompt, PromptMode::Agent).await?;
    assert!(sent.contains("the-content-of-the-file"));
    let (text, sent) = received(&env, prompt, PromptMode::Literal).await?;
    assert_eq!(text, prompt);
    assert!(!sent.contains("the-content-of-the-file"));
    Ok(())
}

#[tokio::test]
async fn a_literal_prompt_is_no_command_and_keeps_every_character() -> Result<()> {
    let env = test_env().await?;
    for prompt in ["/quit", "/memory show\n@secret.txt  \\ \"\"\" ''' $& $1 $$", "//x", "  /about @a.b"] {
        assert_eq!(received(&env, prompt, PromptMode::Literal).await?.0, prompt);
    }
    Ok(())
}

#[tokio::test]
async fn a_prompt_that_cannot_be_literal_is_refused() -> Result<()> {
    let env = test_env().await?;
    for prompt in ["@secret.txt !{ls}", "/x @{secret.txt}", "/x {{args}}"] {
        let mut asked = request(&env, prompt);
        asked.prompt_mode = PromptMode::Literal;
        assert!(env.start(asked).is_err(), "{prompt}");
    }
    Ok(())
}

#[tokio::test]
async fn a_batch_run_takes_a_literal_prompt_too() -> Result<()> {
    let env = test_env().await?;
    let mut asked = request(&env, "/quit @secret.txt");
    (asked.prompt_mode, asked.output) = (PromptMode::Literal, OutputMode::Batch);
    let run = env.run(asked).await?;
    assert_eq!(run.prompts(0)?, ["/quit @secret.txt"]);
    assert_eq!(run.result.text, "Understood.");
    Ok(())
}
