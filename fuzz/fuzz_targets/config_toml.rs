//! Entries in a document in TOML and out of it again.
#![no_main]

use teamster_config::document::Format;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| teamster_fuzz::document(Format::Toml, bytes));
