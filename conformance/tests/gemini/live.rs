//! Sessions by ACP, as far as Gemini CLI differs; what is the same stands in `tests/acp`.

use std::fs;

use anyhow::Result;
use teamster::event::ErrorCode;
use teamster::request::{Attachment, McpServer, Prompt, PromptMode};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::Reply;

use crate::{prompts, request};

/// A picture of one dot.
const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8,
    6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89,
];

#[tokio::test]
async fn a_literal_prompt_of_a_session_is_no_command_and_names_no_file() -> Result<()> {
    let lab = TestEnv::gemini(Reply::new().text("Understood.")).await?;
    fs::write(lab.project().join("secret.txt"), "the-content-of-the-file")?;
    let mut frame = request(&lab, "");
    frame.prompt_mode = PromptMode::Literal;
    let talk = lab.open(frame, |opening| opening)?;
    for prompt in ["Say hi to @secret.txt and /quit", "/nope", "!ls ?", "--help\n$(touch x)"] {
        let recording = talk.say(prompt).await?;
        assert_eq!(recording.result.text, "Understood.", "{prompt}");
        assert_eq!(prompts(&recording.requests[0]).last(), Some(&prompt));
        assert!(!recording.requests[0].body.to_string().contains("the-content-of-the-file"), "{prompt}");
    }
    let refused = talk.say("/memory show").await?;
    assert_eq!(refused.result.error_code, Some(ErrorCode::InvalidRequest));
    assert!(refused.requests.is_empty(), "the model was asked");
    talk.close().await
}

#[tokio::test]
async fn texts_and_images_go_with_a_prompt_of_a_session() -> Result<()> {
    let lab = TestEnv::gemini(Reply::new().text("Seen.")).await?;
    let talk = lab.open(request(&lab, ""), |opening| opening)?;
    let mut prompt = Prompt::from("Look.");
    prompt.attachments = vec![
        Attachment::Data { name: "notes.txt".to_owned(), data: b"the notes".to_vec() },
        Attachment::Data { name: "dot.png".to_owned(), data: PNG.to_vec() },
    ];
    let recording = talk.say(prompt).await?;
    assert_eq!(recording.result.text, "Seen.");
    let body = recording.requests[0].body.to_string();
    assert!(body.contains("the notes") && body.contains("Look."), "{body}");
    assert!(body.contains("image/png"), "{body}");
    talk.close().await
}

#[tokio::test]
async fn a_server_that_a_session_needs_and_that_does_not_start_ends_each_turn() -> Result<()> {
    let lab = TestEnv::gemini(Reply::new().text("Unheard.")).await?;
    let mut frame = request(&lab, "");
    frame.mcp_servers.insert("calc".to_owned(), McpServer::stdio("/nonexistent").required());
    let talk = lab.open(frame, |opening| opening)?;
    for _ in 0..2 {
        let recording = talk.say("Add.").await?;
        assert_eq!(recording.result.error_code, Some(ErrorCode::Config));
        assert!(recording.requests.is_empty(), "the model was asked");
    }
    talk.close().await
}
