//! MCP servers, for all agents: names that a CLI accepts, and warnings about servers that failed.

mod names;
mod status;

pub(super) use names::{Names, Style};
pub(super) use status::Health;

/// Returns a hash of these texts, as part of a variable's name.
///
/// Runs that share a configuration file use the same variable names, each in its own environment. Therefore the texts must not
/// contain secrets.
pub(super) fn fingerprint(texts: &[&str]) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    format!("{:016X}", hasher.finish())
}
