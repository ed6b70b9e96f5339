//! Listens, and serves connections until the gateway stops.

mod connection;
mod error;
mod listener;
#[cfg(test)]
mod tests;
mod tls;

pub use self::error::ServeError;
pub use self::listener::{Server, ServerOptions};
