//! An MCP server to give to an agent: as a process over stdio (the binary `teamster-mcp-fixture`), or over streamable HTTP inside
//! the test ([`McpHttp`]).
//!
//! Both have the same tools: `add` (`a`, `b`), `fail`, `image`, `slow` (`seconds`), and `approve`, which answers Claude Code's
//! `--permission-prompt-tool`. The protocol is written out here instead of taken from an SDK: it is five methods, and the faults
//! that a fixture is for lie below what an SDK lets one do.
//!
//! # The binary
//! `teamster-mcp-fixture [--exit-at-start] [--hang-at-start] [--start-delay-ms N] [--die-on-call] [--silent] [--deny] [--log FILE]`
//!
//! The log has a line of JSON for the start (`args`, `cwd`, `envNames`, `pid`) and then each message as it came. A server that
//! dies, dies with exit code 7.

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

/// Finds the binary beside the running test, where `cargo build -p teamster-testkit --bins` puts it.
pub fn executable() -> io::Result<PathBuf> {
    let running = std::env::current_exe()?;
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    // Tests lie in `deps`, examples in `examples`, both one folder below the binaries.
    running.ancestors().skip(1).take(2).map(|folder| folder.join(&name)).find(|path| path.is_file()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("no `{name}` near {}: run `cargo build -p teamster-testkit --bins` first", running.display()),
        )
    })
}
