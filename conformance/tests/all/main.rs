//! The same promises on all four real CLIs, each a test per agent: `PROMISE::AGENT`.
//!
//! `streams` compares the streams as a user sees them: the types of events in order, the text, the tool results, and the
//! usage against the provider's numbers. It ignores events about circumstances (`usage`, `warning`, `rate_limit`,
//! `plan`) and how often a text was split.

#![expect(clippy::indexing_slicing, reason = "the lints take helpers of tests for library code")]

mod conversations;
mod discord_client;
mod ending;
mod environment;
mod failures;
mod gateway_crashes;
mod gateway_discord;
mod gateway_openai;
mod gateway_page;
mod gateway_tools;
mod gateway_turns;
mod mcp;
mod mcp_failures;
mod mcp_servers;
mod merge_restore;
mod modes;
mod permission_answers;
mod permission_requests;
mod retries;
mod session_store;
mod sessions;
mod slack_client;
mod streams;
mod telegram_client;
mod tools;
mod trust;
