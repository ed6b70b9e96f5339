//! What the agents share about MCP servers: names that a CLI can take, and what is told of a server that failed.

mod names;
mod status;

pub(super) use names::{Names, Style};
pub(super) use status::Health;

/// Tells apart what differs, as part of a variable's name. Whoever shares a configuration file resolves the same names, each
/// in an environment of its own: so secrets must not go into it.
pub(super) fn fingerprint(texts: &[&str]) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    format!("{:016X}", hasher.finish())
}
