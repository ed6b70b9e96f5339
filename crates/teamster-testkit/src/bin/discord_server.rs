//! The testkit's server of Discord as a process; see the library's module `discord`.
//!
//! Its first line on standard output is JSON with `url`, `gatewayUrl`, `controlUrl` and `token`. It ends with its standard input.

use std::io::{Write as _, stdin, stdout};

use anyhow::Result;
use teamster_testkit::discord::DiscordServer;
use tokio::runtime::Runtime;

fn main() -> Result<()> {
    let runtime = Runtime::new()?;
    let server = runtime.block_on(DiscordServer::start())?;
    let line = serde_json::json!({"url": server.url(), "gatewayUrl": server.gateway_url(),
        "controlUrl": server.control_url(), "token": server.token()});
    writeln!(stdout(), "{line}")?;
    std::io::copy(&mut stdin(), &mut std::io::sink())?;
    runtime.block_on(server.shutdown());
    Ok(())
}
