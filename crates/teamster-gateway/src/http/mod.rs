//! The HTTP API.

mod audit;
mod extract;
pub mod openai;
mod problem;
mod protect;
pub mod server;
pub mod tokens;
mod wire;

pub use self::audit::audit;
pub use self::problem::{Problem, ProblemCode};
pub use self::protect::{Protection, ProtectionOptions};
