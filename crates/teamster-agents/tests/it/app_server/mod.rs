//! Codex's app-server interface: recorded sessions turn by turn, and behavior that no recorded one shows.

mod properties;
mod recorded;
mod requests;
mod server_requests;
mod session;
mod turn_end;
mod turns;

const THREAD: &str = "01a20090-01c2-7bc2-adbf-c7a50060ea3c";
const OTHER: &str = "01a20090-01c2-7bc2-adbf-c7a50060ea3d";
