#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    teamster_fuzz::session(&teamster_agents::agent::codex::Codex, bytes);
});
