//! The web page: files that are built from `web/` at the root of the repository, committed, and part of the program.
//!
//! | module | contents |
//! |---|---|
//! | `files` | the files, with their types and hashes |
//! | `serve` | their routes and headers |
//!
//! The files need no token: they are the same for all callers. The page calls the API with the cookie of a session.

mod files;
mod serve;
#[cfg(test)]
mod tests;

pub use serve::router;
