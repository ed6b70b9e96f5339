//! The testkit's MCP server as a process; see the library's module `mcp_fixture`.

use std::process::exit;

use anyhow::Result;
use teamster_testkit::mcp_fixture::{Ended, StdioFlags, serve_stdio};

const DIED: i32 = 7;

fn main() -> Result<()> {
    let flags = StdioFlags::parse(std::env::args().skip(1))?;
    match serve_stdio(&flags, std::io::stdin().lock(), std::io::stdout())? {
        Ended::Eof => Ok(()),
        Ended::Died => exit(DIED),
    }
}
