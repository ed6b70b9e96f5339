//! Runs Claude Code with one prompt: `cargo run -p teamster --example run`. The README shows it.

#![expect(clippy::print_stdout, reason = "the answer is what this program prints")]

use teamster::request::PermissionMode;
use teamster::{Event, RunRequest, Runtime};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let request = RunRequest::new("fix the failing test").with_permission_mode(PermissionMode::Edit);

    let runtime = Runtime::new();
    let mut run = runtime.run("claude", request)?;
    while let Some(event) = run.next().await {
        match event {
            // `escaped()` is for a terminal; `as_str()` is the exact text.
            Event::Text(delta) => print!("{}", delta.text.escaped()),
            Event::ToolUse(tool) => println!("[{}]", tool.tool_name.escaped()),
            // A failed run is an error from here.
            Event::Done(done) => println!("\n{:?}", done.result.into_result()?.usage),
            _ => {}
        }
    }
    Ok(())
}
