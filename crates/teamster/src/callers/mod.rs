//! Connects tool calls to the conversations that make them. Without the feature `tools` there are no tool calls, and this
//! module does nothing.

#[cfg(not(feature = "tools"))]
mod disabled;
#[cfg(feature = "tools")]
mod registered;

#[cfg(not(feature = "tools"))]
pub(crate) use disabled::Callers;
#[cfg(feature = "tools")]
pub(crate) use registered::{Caller, Callers, Conversation};
