//! Test programs that drive AI agent CLIs, without a model and without chance.
//!
//! An agent CLI asks its vendor's API for answers and calls tools. This crate stands in for what is around the agent, so that a
//! test says what happens and sees what was asked:
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
//! // Run the agent with ANTHROPIC_BASE_URL set to this, then look at what it asked.
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
//! - [`provider`]: a model provider that plays a scenario over a vendor's real wire protocol, and records what it was asked.
//! - [`fake`]: an agent CLI that plays a script, with every fault that a process can have.
//! - [`check`]: the rules that every run's event stream keeps, checked from outside.
//! - [`suite`]: what every agent owes, for agents of your own.
//! - [`mcp_fixture`]: an MCP server for the agent, as a process or over HTTP, with faults.
//!
//! Everything listens on the loopback address only, on a free port, and ends with its value.

pub mod check;
pub mod fake;
#[cfg(feature = "servers")]
pub mod mcp_fixture;
#[cfg(feature = "servers")]
pub mod provider;
#[cfg(feature = "servers")]
mod server;
#[cfg(feature = "suite")]
pub mod suite;
