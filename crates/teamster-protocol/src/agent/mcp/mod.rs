//! What the agents share about MCP servers: names that a CLI can take, and what is told of a server that failed.

mod names;
mod status;

pub(super) use names::{Names, Style};
pub(super) use status::Health;
