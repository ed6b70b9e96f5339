//! MCP servers of a run.
//!
//! - `server`: the types, and the methods that build a server.
//! - `entry`: the JSON form of a server. `conversion` converts between the two.
//! - `document`: reads configuration documents of agents and editors. `variables` expands variables in them.
//! - `validate`: checks servers before the start.

mod conversion;
mod document;
mod entry;
mod server;
mod validate;
mod variables;

pub use server::{McpEndpoint, McpServer, McpTransport};
