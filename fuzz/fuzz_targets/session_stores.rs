//! The readers of the files in which the agents store their sessions.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| teamster_fuzz::session_stores(bytes));
