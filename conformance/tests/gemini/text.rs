//! What the model says, and what it cost.

use anyhow::Result;
use teamster_conformance::Lab;
use teamster_testkit::provider::{Reply, Scenario};

use super::request;

#[tokio::test]
async fn an_answer_comes_as_it_was_said() -> Result<()> {
    let text = "Grüße, 世界 👩\u{200d}💻 — \"quoted\"\n\ttabs and \\ backslashes\r\nend";
    let lab = Lab::gemini(Scenario::new().reply(Reply::new().text(text))).await?;
    let run = lab.run(request(&lab, "Hello?")).await?;
    assert_eq!(run.result.text, text);
    assert_eq!(run.init()?.model.as_deref(), Some("gemini-2.5-flash"));
    assert_eq!(run.prompts(0)?, ["Hello?"]);
    Ok(())
}
