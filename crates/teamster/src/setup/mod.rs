//! Prepares what a process needs before it starts: its environment, its home directory and its configuration files.
//!
//! Invariant: nothing here starts a process or changes a user's file without a record of how to restore it.

pub(crate) mod config_files;
pub(crate) mod crash_recovery;
pub(crate) mod credential;
pub(crate) mod environment;
mod json_merge;
pub(crate) mod path_resolver;
pub(crate) mod project_guard;
pub(crate) mod shadow_home;
