#![no_main]

use teamster_agents::agent::claude::Claude;

// With tasks in the background, and without.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let background = match bytes.first() {
        Some(choice) if choice & 1 == 1 => true,
        _ => false,
    };
    teamster_fuzz::session_with(background, &Claude, bytes);
});
