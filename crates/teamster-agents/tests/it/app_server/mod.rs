//! Codex by its app-server: recorded conversations turn by turn, and what no recorded one shows.

mod chance;
mod dialog;
mod recorded;
mod requests;
mod talk;
mod turns;

const THREAD: &str = "01a20090-01c2-7bc2-adbf-c7a50060ea3c";
const OTHER: &str = "01a20090-01c2-7bc2-adbf-c7a50060ea3d";
