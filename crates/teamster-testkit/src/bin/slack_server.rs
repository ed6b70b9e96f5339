//! The testkit's Slack server as a process; see the library's module `slack`.
//!
//! Its first line on standard output is JSON with `url`, `controlUrl`, `botToken` and `appToken`. It ends with its standard input.

use std::io::{Write as _, stdin, stdout};

use anyhow::Result;
use teamster_testkit::slack::SlackServer;
use tokio::runtime::Runtime;

fn main() -> Result<()> {
    let runtime = Runtime::new()?;
    let server = runtime.block_on(SlackServer::start())?;
    let line = serde_json::json!({
        "url": server.url(),
        "controlUrl": server.control_url(),
        "botToken": server.bot_token(),
        "appToken": server.app_token(),
    });
    writeln!(stdout(), "{line}")?;
    std::io::copy(&mut stdin(), &mut std::io::sink())?;
    runtime.block_on(server.shutdown());
    Ok(())
}
