//! The data types of Teamster: events, requests, and their ids.
//!
//! A program that reads Teamster's output needs only this crate. It contains no agents, and does no I/O (lints ban it).
//!
//! ```
//! use teamster_types::event::Event;
//!
//! let line = r#"{"type":"text","messageId":"m1","text":"Hello"}"#;
//! let event: Event = serde_json::from_str(line)?;
//! assert!(matches!(event, Event::Text(delta) if delta.text.as_str() == "Hello"));
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! - [`event`]: the events of a run or session, and its result.
//! - [`request`]: the requests of a caller, and their validation.
//! - [`text`], [`json`]: text and JSON of an agent, unchanged.
//! - [`recording`]: the lines of a recorded run.
//!
//! Invariant: every type of the stream can be written as JSON and read back without loss.

mod names;

pub mod event;
pub mod json;
pub mod recording;
pub mod request;
pub mod text;
