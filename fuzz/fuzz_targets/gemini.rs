#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    teamster_fuzz::protocol(&teamster_agents::agent::gemini::Gemini, bytes);
});
