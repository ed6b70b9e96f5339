//! Gives an agent a tool that is written in Rust.
//!
//! `cargo run -p teamster --features tools --example tools -- claude "What is 19 + 23? Use the tool."`

#![expect(clippy::print_stdout, reason = "the answer is what this program prints")]

use teamster::tools::{JsonSchema, Tool, ToolServer, schemars};
use teamster::{RunRequest, Runtime};

#[derive(serde::Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(agent), Some(prompt)) = (words.next(), words.next()) else {
        return Err("usage: tools AGENT PROMPT".into());
    };

    let add = Tool::new("add", "Adds two numbers", |Add { a, b }: Add| async move {
        a.checked_add(b).map(|sum| format!("{a} + {b} = {sum}")).ok_or("the sum is too large")
    });
    let tools = ToolServer::new("calculator").with(add).serve().await?;

    let mut request = RunRequest::new(prompt);
    tools.offer(&mut request);
    let result = Runtime::new().run(&agent, request)?.result().await?;
    println!("{}", result.text.as_str());
    Ok(())
}
