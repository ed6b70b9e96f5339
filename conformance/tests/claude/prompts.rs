//! Each prompt reaches the model once and unchanged, whatever characters it has.

use std::fs;

use anyhow::{Context, Result};
use serde_json::json;
use teamster::request::{Attachment, PromptMode};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Message, Part, Reply};

use crate::numbers;

/// A PNG of one red pixel.
const PIXEL: [u8; 69] = [
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0, 144, 119, 83,
    222, 0, 0, 0, 12, 73, 68, 65, 84, 120, 156, 99, 248, 207, 192, 0, 0, 3, 1, 1, 0, 201, 254, 146, 239, 0, 0, 0, 0,
    73, 69, 78, 68, 174, 66, 96, 130,
];

const PDF: &str = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n";

/// Prompts that resemble an option, a command, or a word that the CLI interprets.
pub(crate) const LIKE_OPTIONS: &[&str] =
    &["-", "--help", "-p --model=none", "--", "code", "mcp", "# note", "!ls", " /clear"];

/// Characters that shells, terminals and parsers interpret.
pub(crate) const ODD_CHARACTERS: &[&str] = &[
    "two\nlines\r\nand\ttabs",
    "\"double\" 'single' `touch made` $(touch made) ${HOME} $HOME; touch made | cat > made & %PATH% \\",
    "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"nested\"}}",
    "漢字 👩‍👩‍👧‍👦 \u{202e}rtl \u{2028}\u{feff} \u{1b}[31mred\u{1b}[0m \u{7}",
    " spaces around ",
    "\n\nnewlines around\n\n\n",
];

async fn reach_the_model(prompts: &[&str]) -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Aye.")).await?;
    let session = env.open(env.request(""))?;
    let mut sent = Vec::new();
    for &prompt in prompts {
        sent.push(prompt);
        let recording = session.run_turn(prompt).await?;
        assert_eq!(recording.requests.len(), 1, "{prompt:?}");
        let messages = recording.requests[0].messages.iter().filter(|message| message.is_prompt());
        let texts: Vec<&str> = messages.flat_map(Message::texts).collect();
        assert_eq!(texts, sent);
        assert_eq!(recording.result.text, "Aye.");
    }
    session.close().await?;
    assert!(fs::read_dir(env.project())?.next().is_none(), "a command was run");
    Ok(())
}

#[tokio::test]
async fn a_prompt_that_resembles_an_option_reaches_the_model_unchanged() -> Result<()> {
    reach_the_model(LIKE_OPTIONS).await
}

#[tokio::test]
async fn odd_characters_reach_the_model_unchanged() -> Result<()> {
    reach_the_model(ODD_CHARACTERS).await
}

#[tokio::test]
async fn a_blank_prompt_is_refused_before_anything_starts() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Aye.")).await?;
    for prompt in ["", " ", "\n\t "] {
        assert!(env.start(env.request(prompt)).is_err(), "{prompt:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_slash_command_is_answered_by_the_agent_itself() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Aye.")).await?;
    let recording = env.run(env.request("/nope")).await?;
    assert_eq!(recording.result.text, "Unknown command: /nope");
    assert!(recording.requests.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_file_named_in_the_prompt_is_read_by_the_agent() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Aye.")).await?;
    fs::write(env.project().join("there.txt"), "CONTENT-OF-THE-FILE")?;
    let recording = env.run(env.request("Read @there.txt please")).await?;
    assert_eq!(recording.prompts(0)?, ["Read @there.txt please"]);
    assert!(recording.requests[0].body.to_string().contains("CONTENT-OF-THE-FILE"));
    Ok(())
}

#[tokio::test]
async fn a_literal_prompt_reaches_the_model_unchanged() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Aye.")).await?;
    fs::write(env.project().join("there.txt"), "CONTENT-OF-THE-FILE")?;
    let mut request = env.request("");
    request.prompt_mode = PromptMode::Literal;
    let session = env.open(request)?;
    for prompt in ["/nope", "/compact", "/", "Read @there.txt please", "@there.txt", "plain"] {
        let recording = session.run_turn(prompt).await?;
        assert_eq!(recording.prompts(0)?, [prompt]);
        assert_eq!(recording.result.text, "Aye.");
        let body = recording.requests[0].body.to_string();
        assert!(!body.contains("CONTENT-OF-THE-FILE"), "{prompt:?}");
        // Vendors refuse an empty block.
        assert!(!body.contains(r#""text":"""#), "{prompt:?}");
    }
    session.close().await
}

#[tokio::test]
async fn a_literal_prompt_is_sent_with_attachments() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Aye.")).await?;
    let mut request = env.request("/nope");
    request.prompt_mode = PromptMode::Literal;
    request.attachments = vec![Attachment::Data { name: "a.txt".to_owned(), data: b"a line".to_vec() }];
    let recording = env.run(request).await?;
    assert_eq!(recording.prompts(0)?, ["Attached file a.txt:\na line", "/nope"]);
    Ok(())
}

#[tokio::test]
async fn a_prompt_of_a_megabyte_reaches_the_model_once() -> Result<()> {
    let prompt = numbers(100_000);
    let env = TestEnv::claude(Reply::new().text("Aye.")).await?;
    let recording = env.run(env.request(prompt.as_str())).await?;
    let texts = recording.prompts(0)?;
    assert_eq!(texts.len(), 1);
    assert!(texts[0] == prompt, "{} bytes instead of {}", texts[0].len(), prompt.len());
    assert_eq!(recording.result.text, "Aye.");
    Ok(())
}

#[tokio::test]
async fn attachments_reach_the_model_beside_the_prompt() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("I see.")).await?;
    fs::write(env.project().join("pixel.png"), PIXEL)?;
    let mut request = env.request("What are these?");
    request.attachments = vec![
        Attachment::Path("pixel.png".into()),
        Attachment::Data { name: "notes.txt".to_owned(), data: b"a line of notes".to_vec() },
        Attachment::Data { name: "paper.pdf".to_owned(), data: PDF.as_bytes().to_vec() },
    ];
    let recording = env.run(request).await?;
    assert_eq!(recording.result.text, "I see.");
    let prompt =
        recording.requests[0].messages.iter().rev().find(|message| message.is_prompt()).context("no prompt")?;
    let others: Vec<_> = prompt
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Other(block) => Some(json!([block["type"], block["source"]["media_type"]])),
            _ => None,
        })
        .collect();
    assert_eq!(others, [json!(["image", "image/png"]), json!(["document", "application/pdf"])]);
    let texts: Vec<&str> = prompt.texts().collect();
    assert_eq!(texts, ["Attached file notes.txt:\na line of notes", "What are these?"]);
    Ok(())
}
