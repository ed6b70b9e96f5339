//! Holds a conversation with Claude Code: `cargo run -p teamster --example session`. `docs/sessions.md` shows it.

#![expect(clippy::print_stdout, reason = "the answers are what this program prints")]

use teamster::request::Answer;
use teamster::{RunRequest, Runtime, SessionOptions};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // By default the agent asks before it changes something. It waits for the answer, at most 5 minutes.
    let options = SessionOptions::new(RunRequest::session())
        .with_handler(|_request| async { Answer::Deny { message: Some("Read only, please.".to_owned()) } });

    let runtime = Runtime::new();
    let session = runtime.open("claude", options)?;
    for prompt in ["What does this project do?", "Which part is the oldest?"] {
        // A failed turn is an error. `send` alone returns the stream of the turn's events.
        let result = session.send(prompt)?.result().await?;
        println!("{}", result.final_text.escaped());
    }
    session.close().await;
    Ok(())
}
