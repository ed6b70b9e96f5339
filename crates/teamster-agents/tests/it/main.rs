//! Tests of the agents with recorded runs, random input and the documentation.

#![expect(clippy::disallowed_methods, reason = "tests read recorded runs; the crate itself reads no files")]

#[cfg(test)]
mod acp;
#[cfg(test)]
mod any_request;
#[cfg(test)]
mod app_server;
#[cfg(test)]
mod batch;
#[cfg(test)]
mod capture;
#[cfg(test)]
mod claude;
#[cfg(test)]
mod claude_launch;
#[cfg(test)]
mod claude_reports;
#[cfg(test)]
mod claude_session;
#[cfg(test)]
mod claude_turns;
#[cfg(test)]
mod claude_usage;
#[cfg(test)]
mod codex;
#[cfg(test)]
mod drive;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod gemini;
#[cfg(test)]
mod lines;
#[cfg(test)]
mod mcp;
mod merge_restore;
#[cfg(test)]
mod opencode;
#[cfg(test)]
mod opencode_serve;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod render;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod request_errors;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod rules_shell;
#[cfg(test)]
#[cfg(feature = "schema")]
mod schema;
#[cfg(test)]
mod session_stores;
#[cfg(test)]
mod subject;
#[cfg(test)]
mod transcript;
