//! The testkit's Bot API server as a process; see the library's module `telegram`.
//!
//! Its first line on standard output is JSON with `url`, `controlUrl` and `token`. It ends with its standard input.

use std::io::{Write as _, stdin, stdout};

use anyhow::Result;
use teamster_testkit::telegram::TelegramServer;
use tokio::runtime::Runtime;

fn main() -> Result<()> {
    let runtime = Runtime::new()?;
    let server = runtime.block_on(TelegramServer::start())?;
    let line = serde_json::json!({"url": server.url(), "controlUrl": server.control_url(), "token": server.token()});
    writeln!(stdout(), "{line}")?;
    std::io::copy(&mut stdin(), &mut std::io::sink())?;
    runtime.block_on(server.shutdown());
    Ok(())
}
