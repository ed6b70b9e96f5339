//! Deterministic tests for programs that drive AI agent CLIs, without a real model.
//!
//! An agent CLI calls its vendor's API and uses tools. This crate replaces what surrounds the
//! agent: a test chooses each response and verifies each request.
//!
//! ```
//! use serde_json::json;
//! use teamster_testkit::provider::{HttpError, Provider, Reply, Scenario};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scenario = Scenario::new()
//!     .reply(Reply::new().text("Let me run that.").tool("Bash", json!({"command": "echo hi"})))
//!     .reply(Reply::new().text("It printed hi.").fail_times(1, HttpError::rate_limited()));
//! let provider = Provider::anthropic(scenario).start().await?;
//!
//! // Run the agent with ANTHROPIC_BASE_URL set to this URL, then verify its requests.
//! let url = provider.base_url();
//! for request in provider.requests() {
//!     println!("{:?} with {:?}", request.prompts(), request.tools());
//! }
//! # assert!(url.starts_with("http://127.0.0.1:"));
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//! - [`provider`]: a model provider that serves a scenario over a vendor's real wire protocol, and
//!   records the requests.
//! - [`fake`]: an agent CLI that plays a script, with every fault that a process can have.
//! - [`check`]: the rules that every run's event stream must follow, checked from outside.
//! - [`suite`]: the promises that every agent must keep, as a test suite for your own agents.
//! - [`mcp_fixture`]: an MCP server with faults, as a process or over HTTP.
//! - [`discord`]: a server that speaks the gateway and the REST API of Discord, with people who write to the bot.
//! - [`slack`]: a server that speaks Slack's Web API and Socket Mode, with people who write to the bot.
//! - [`telegram`]: a server that speaks the Bot API of Telegram, with people who write to the bot.
//! - [`killed`]: prints the logs of a test that is killed.
//! - `otlp`: a receiver of OpenTelemetry spans (feature `otlp`).
//!
//! Every server listens on the loopback address only, on a free port, and stops when its value is
//! dropped.

pub mod check;
#[cfg(feature = "chat")]
pub mod discord;
pub mod fake;
pub mod killed;
#[cfg(feature = "servers")]
pub mod mcp_fixture;
#[cfg(feature = "otlp")]
pub mod otlp;
#[cfg(feature = "chat")]
mod params;
#[cfg(feature = "servers")]
pub mod provider;
#[cfg(feature = "servers")]
mod server;
#[cfg(feature = "chat")]
pub mod slack;
#[cfg(feature = "suite")]
pub mod suite;
#[cfg(feature = "chat")]
pub mod telegram;
