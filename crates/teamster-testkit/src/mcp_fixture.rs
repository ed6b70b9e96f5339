//! An MCP server for tests: as a process over stdio (the binary `teamster-mcp-fixture`), or over
//! streamable HTTP in the test process ([`McpHttp`]).
//!
//! Both have the same tools: `add` (`a`, `b`), `fail`, `image`, `slow` (`seconds`), and `approve`,
//! which answers Claude Code's `--permission-prompt-tool`. The protocol is implemented here without
//! an SDK, because it has only five methods and an SDK does not permit the faults that tests need.
//!
//! # The binary
//! `teamster-mcp-fixture [--exit-at-start] [--hang-at-start] [--start-delay-ms N] [--die-on-call] [--silent] [--deny] [--log FILE]`
//!
//! The log contains one JSON line for the start (`args`, `cwd`, `envNames`, `pid`), followed by
//! each received message. A server that simulates a crash exits with code 7.

mod http;
mod rpc;
mod stdio;

use std::io;
use std::path::PathBuf;

pub use http::{McpCall, McpHttp, McpHttpSetup, McpRequest, McpWaitError};
pub use rpc::Decision;
pub use stdio::{Ended, FlagError, StdioFlags, serve_stdio};

/// The name of the binary.
const PROGRAM: &str = "teamster-mcp-fixture";

/// Returns the path of the binary, which `cargo build -p teamster-testkit --bins` puts next to the
/// running test.
pub fn executable() -> io::Result<PathBuf> {
    let running = std::env::current_exe()?;
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    // Tests are in `deps` and examples in `examples`, both one directory below the binaries.
    running.ancestors().skip(1).take(2).map(|folder| folder.join(&name)).find(|path| path.is_file()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("no `{name}` near {}: run `cargo build -p teamster-testkit --bins` first", running.display()),
        )
    })
}
