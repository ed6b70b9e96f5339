#![no_main]

use teamster_agents::agent::acp::Acp;
use teamster_agents::agent::gemini::Gemini;

// Two dialects: of an agent of which nothing is known, and Gemini CLI's.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match bytes.first() {
    Some(choice) if choice & 1 == 1 => teamster_fuzz::session(&Gemini, bytes),
    _ => teamster_fuzz::session(&Acp::any(), bytes),
});
