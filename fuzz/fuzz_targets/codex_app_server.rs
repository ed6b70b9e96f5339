#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    teamster_fuzz::session(&teamster_protocol::agent::codex::Codex, bytes);
});
