//! What the ledger of runs costs: a run's entry, and the sweep beside the first run of a host.
//!
//! The floor, in the same run: a `sleep 0` that is started and waited for, which is the least that a run can be.

#![expect(clippy::unwrap_used, reason = "a benchmark")]

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::process::Command;

use divan::Bencher;
use serde_json::json;
use teamster::Ledger;

fn main() {
    divan::main();
}

#[divan::bench]
fn a_process(bencher: Bencher<'_, '_>) {
    bencher.bench(|| assert!(Command::new("sleep").arg("0").status().unwrap().success()));
}

#[divan::bench]
fn an_entry_is_written_and_removed(bencher: Bencher<'_, '_>) {
    let home = tempfile::tempdir().unwrap();
    let ledger = Ledger::in_directory(home.path().join("ledger"));
    bencher.bench(|| ledger.register("claude").unwrap().remove().unwrap());
}

/// Leftovers whose processes have all ended: each has to be looked for.
#[divan::bench(args = [0, 1, 100])]
fn sweep(bencher: Bencher<'_, '_>, leftovers: u32) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("ledger");
    let ledger = Ledger::in_directory(&path);
    bencher.with_inputs(|| (0..leftovers).for_each(|number| leave(&path, number))).bench_values(|()| {
        let sweep = ledger.sweep();
        assert_eq!(sweep.removed.len(), leftovers as usize);
    });
}

fn leave(ledger: &Path, number: u32) {
    let run = ledger.join(format!("runs/{number:016}"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(run.join("files")).unwrap();
    fs::write(run.join("files/settings.json"), "{}").unwrap();
    let entry = json!({
        "version": 1,
        "here": {
            "boot": fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim(),
            "pidNamespace": fs::metadata("/proc/self/ns/pid").unwrap().ino(),
        },
        "label": "claude",
        "mark": format!("TEAMSTER_TREE_bench_{number}"),
        "began": 1_790_000_000,
        "host": { "pid": i32::MAX, "start": 1 },
    });
    fs::write(run.join("entry.json"), entry.to_string()).unwrap();
}
