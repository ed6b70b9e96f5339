//! The HTTP API.

mod audit;
mod extract;
mod openai;
mod problem;
mod protect;
mod server;
mod tokens;
mod wire;

pub use self::audit::audit;
pub use self::problem::{Problem, ProblemCode};
pub use self::protect::{Protection, ProtectionOptions};
