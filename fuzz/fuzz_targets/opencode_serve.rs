#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    teamster_fuzz::server(&teamster_agents::agent::opencode::OpenCode, bytes);
});
