//! Puts the checks of `access` around the routers of the gateway.
//!
//! A route needs no token only if it is in the router of open routes, or by the template of its path. The path that a
//! client sends is never compared, so another spelling of a path opens no route.

mod body;
mod layers;
mod protection;
mod responses;
mod state;
#[cfg(test)]
mod tests;

pub use self::protection::{Protection, ProtectionOptions};
