//! Answers that must follow a JSON schema.

use anyhow::Result;
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::ErrorCode;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Scenario};

fn with_schema(mut request: RunRequest) -> RunRequest {
    request.schema = Some(json!({
        "type": "object",
        "properties": {"answer": {"type": "integer"}},
        "required": ["answer"],
        "additionalProperties": false,
    }));
    request
}

fn structured(input: Value) -> Reply {
    Reply::new().tool("StructuredOutput", input)
}

#[tokio::test]
async fn the_document_is_in_the_result() -> Result<()> {
    let env =
        TestEnv::claude(Scenario::new().reply(structured(json!({"answer": 42}))).reply(Reply::new().text("There.")))
            .await?;
    let recording = env.run(with_schema(env.request("What is it?"))).await?;
    assert_eq!(recording.result.structured_output, Some(json!({"answer": 42}).into()));
    assert!(!recording.result.is_error);
    assert!(recording.requests[0].tools().contains(&"StructuredOutput"));
    Ok(())
}

#[tokio::test]
async fn a_schema_longer_than_any_argument_works() -> Result<()> {
    let env =
        TestEnv::claude(Scenario::new().reply(structured(json!({"answer": 42}))).reply(Reply::new().text("There.")))
            .await?;
    let mut request = with_schema(env.request("What is it?"));
    if let Some(schema) = &mut request.schema {
        schema["description"] = json!("long ".repeat(40_000));
    }
    let recording = env.run(request).await?;
    assert_eq!(recording.result.structured_output, Some(json!({"answer": 42}).into()));
    Ok(())
}

#[tokio::test]
async fn a_document_that_does_not_fit_is_corrected() -> Result<()> {
    let env = TestEnv::claude(
        Scenario::new()
            .reply(structured(json!({"answer": "forty-two"})))
            .reply(structured(json!({"answer": 42})))
            .reply(Reply::new().text("There.")),
    )
    .await?;
    let recording = env.run(with_schema(env.request("What is it?"))).await?;
    assert_eq!(recording.tools()[0].1.is_error, Some(true));
    assert_eq!(recording.result.structured_output, Some(json!({"answer": 42}).into()));
    Ok(())
}

#[tokio::test]
async fn a_document_that_never_fits_is_structured_output() -> Result<()> {
    let env = TestEnv::claude(structured(json!({"answer": "forty-two"}))).await?;
    let recording = env.run(with_schema(env.request("What is it?"))).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::StructuredOutput));
    assert_eq!(recording.result.structured_output, None);
    Ok(())
}

#[tokio::test]
async fn an_answer_without_the_document_is_structured_output() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("It is forty-two.")).await?;
    let recording = env.run(with_schema(env.request("What is it?"))).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::StructuredOutput));
    assert!(recording.result.text.starts_with("It is forty-two."));
    Ok(())
}
