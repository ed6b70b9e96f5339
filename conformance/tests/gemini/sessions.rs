//! Sessions on Gemini CLI. What is the same on all ACP agents is in `tests/acp`.

use std::fs;

use anyhow::Result;
use teamster::event::ErrorCode;
use teamster::request::{Attachment, McpServer, Prompt, PromptMode};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::Reply;

use crate::{prompts, request};

/// A PNG of one pixel.
const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8,
    6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89,
];

#[tokio::test]
async fn a_literal_prompt_of_a_session_is_no_command_and_names_no_file() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("Understood.")).await?;
    fs::write(env.project().join("secret.txt"), "the-content-of-the-file")?;
    let mut template = request(&env, "");
    template.prompt_mode = PromptMode::Literal;
    let session = env.open(template)?;
    for prompt in ["Say hi to @secret.txt and /quit", "/nope", "!ls ?", "--help\n$(touch x)"] {
        let recording = session.run_turn(prompt).await?;
        assert_eq!(recording.result.text, "Understood.", "{prompt}");
        assert_eq!(prompts(&recording.requests[0]).last(), Some(&prompt));
        assert!(!recording.requests[0].body.to_string().contains("the-content-of-the-file"), "{prompt}");
    }
    let refused = session.run_turn("/memory show").await?;
    assert_eq!(refused.result.error_code, Some(ErrorCode::InvalidRequest));
    assert!(refused.requests.is_empty(), "a request reached the model");
    session.close().await
}

#[tokio::test]
async fn texts_and_images_are_sent_with_a_prompt_of_a_session() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("Seen.")).await?;
    let session = env.open(request(&env, ""))?;
    let mut prompt = Prompt::from("Look.");
    prompt.attachments = vec![
        Attachment::Data { name: "notes.txt".to_owned(), data: b"the notes".to_vec() },
        Attachment::Data { name: "dot.png".to_owned(), data: PNG.to_vec() },
    ];
    let recording = session.run_turn(prompt).await?;
    assert_eq!(recording.result.text, "Seen.");
    let body = recording.requests[0].body.to_string();
    assert!(body.contains("the notes") && body.contains("Look."), "{body}");
    assert!(body.contains("image/png"), "{body}");
    session.close().await
}

#[tokio::test]
async fn a_required_server_that_does_not_start_fails_each_turn() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("Unused.")).await?;
    let mut template = request(&env, "");
    template.mcp_servers.insert("calc".to_owned(), McpServer::stdio("/nonexistent").required());
    let session = env.open(template)?;
    for _ in 0..2 {
        let recording = session.run_turn("Add.").await?;
        assert_eq!(recording.result.error_code, Some(ErrorCode::Config));
        assert!(recording.requests.is_empty(), "a request reached the model");
    }
    session.close().await
}
