//! Prints every event of a run as JSON: `cargo run -p teamster --example events -- claude "Say hello"`.

use std::io::Write as _;

use teamster::{Event, RunRequest, Runtime};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let agent = arguments.next().ok_or("which agent?")?;
    let prompt = arguments.next().ok_or("what is it to do?")?;

    let runtime = Runtime::new();
    let mut run = runtime.run(&agent, RunRequest::new(prompt))?;
    while let Some(event) = run.next().await {
        let mut stdout = std::io::stdout().lock();
        serde_json::to_writer(&mut stdout, &event)?;
        writeln!(stdout)?;
        if let Event::Done(done) = event {
            done.result.into_result()?;
        }
    }
    Ok(())
}
