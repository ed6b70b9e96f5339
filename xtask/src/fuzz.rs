//! `cargo xtask fuzz`: libFuzzer over every protocol, from the recorded runs on, the framing, configuration files, and
//! the readers of stored sessions.
//!
//! It needs `cargo install cargo-fuzz` and a nightly toolchain. What it finds worth keeping goes to `fuzz/corpus`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::command;

/// Longer inputs are the same lines over and over.
const MAX_BYTES: usize = 16 * 1024;

/// Fuzz the protocols, the framing, configuration files and stored sessions (needs cargo-fuzz and a nightly toolchain)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The targets; all if none is named
    targets: Vec<String>,
    /// How long each target is fuzzed
    #[arg(long, default_value_t = 10, value_name = "N")]
    minutes: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let targets = if args.targets.is_empty() { all()? } else { args.targets.clone() };
    for target in targets {
        let seeds = seed(&target).with_context(|| format!("cannot lay out the seeds of {target}"))?;
        fs::create_dir_all(command::root().join("fuzz/corpus").join(&target))?;
        let corpus = format!("fuzz/corpus/{target}");
        let seconds = format!("-max_total_time={}", args.minutes * 60);
        let longest = format!("-max_len={MAX_BYTES}");
        let mut fuzz = command::program("cargo", &["+nightly", "fuzz", "run", &target, &corpus]);
        if let Some(seeds) = &seeds {
            fuzz.arg(seeds);
        }
        fuzz.args(["--", &seconds, &longest, "-timeout=20", "-print_final_stats=1"]);
        // The toolchain of this xtask must not be that of the fuzzer.
        fuzz.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
        command::run(fuzz)?;
    }
    Ok(())
}

fn all() -> Result<Vec<String>> {
    let mut targets: Vec<String> = fs::read_dir(command::root().join("fuzz/fuzz_targets"))?
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    targets.sort();
    Ok(targets)
}

/// The recorded runs of an agent as inputs: a byte for the mode, then the lines. The stored sessions, without such a byte, for
/// their readers. `None` for a target without any.
fn seed(target: &str) -> Result<Option<String>> {
    if target == "session_stores" {
        return Ok(Some("crates/teamster-agents/tests/captures/sessions".to_owned()));
    }
    // A target may be one of several forms of an agent.
    let agent = target.split('_').next().unwrap_or(target);
    let recorded = command::root().join("crates/teamster-agents/tests/captures").join(agent);
    if !recorded.is_dir() {
        return Ok(None);
    }
    let seeds = command::root().join("target/fuzz-seeds").join(target);
    fs::create_dir_all(&seeds)?;
    for entry in fs::read_dir(recorded)? {
        let entry = entry?;
        let Ok(lines) = fs::read(entry.path().join("stdout.ndjson")) else { continue };
        for (mode, name) in [(0xfe, "stream"), (0xff, "batch")] {
            let mut input = vec![mode];
            input.extend(lines.iter().take(MAX_BYTES - 1));
            let file = format!("{}-{name}", Path::new(&entry.file_name()).display());
            fs::write(seeds.join(file), input)?;
        }
    }
    Ok(seeds.to_str().map(str::to_owned))
}
