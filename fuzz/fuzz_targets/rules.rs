//! Rules for tools: no command that `Bash(git diff:*)` allows runs another program or writes a file, by a real bash among stubs.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| teamster_fuzz::rules(text));
