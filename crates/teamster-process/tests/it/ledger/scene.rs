//! Fixtures: remains of a crashed host, and processes that belong to them.

use std::{
    fs,
    os::unix::{fs::MetadataExt, fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use teamster_process::Ledger;

use crate::{BOUND, is_alive};

/// A ledger for one test, with the remains of crashed hosts.
pub(super) struct Scene {
    pub(super) ledger: Ledger,
    pub(super) home: tempfile::TempDir,
}

/// A run whose host is gone.
pub(super) struct Crashed {
    pub(super) path: PathBuf,
    pub(super) mark: String,
}

pub(super) fn scene() -> Scene {
    let home = tempfile::tempdir().unwrap();
    Scene { ledger: Ledger::in_directory(home.path().join("ledger")), home }
}

pub(super) fn start_of(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap()
}

impl Scene {
    pub(super) fn runs(&self) -> PathBuf {
        self.home.path().join("ledger/runs")
    }

    /// Creates a run's directory without an entry.
    pub(super) fn bare(&self) -> PathBuf {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        for path in [self.home.path().join("ledger"), self.runs()] {
            fs::create_dir_all(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let path = self.runs().join(format!("{:016}", RUNS.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&path).unwrap();
        path
    }

    pub(super) fn crashed(&self) -> Crashed {
        self.crashed_with(|_| ())
    }

    /// Creates a run with an entry as this version writes it, except for what the test changes.
    pub(super) fn crashed_with(&self, change: impl FnOnce(&mut Value)) -> Crashed {
        let path = self.bare();
        let name = path.file_name().unwrap().to_str().unwrap();
        let mark = format!("TEAMSTER_TREE_test_{}_{name}", std::process::id());
        let mut entry = entry(&mark);
        change(&mut entry);
        fs::write(path.join("entry.json"), entry.to_string()).unwrap();
        Crashed { path, mark }
    }

    pub(super) fn is_empty(&self) -> bool {
        fs::read_dir(self.home.path()).unwrap().next().is_none()
    }
}

/// Returns the entry of a run whose host had this process's pid before.
pub(super) fn entry(mark: &str) -> Value {
    let own = std::process::id();
    json!({
        "version": 1,
        "here": {
            "boot": fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim(),
            "pidNamespace": fs::metadata("/proc/self/ns/pid").unwrap().ino(),
        },
        "label": "claude",
        "mark": mark,
        "began": 1_790_000_000,
        "host": { "pid": own, "start": start_of(own) - 1 },
    })
}

/// A process that is killed at the end of the test. It leads its own group.
pub(super) struct Running(pub(super) Child);

impl Running {
    pub(super) fn sh(script: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env_clear().env("PATH", "/usr/bin:/bin");
        command.envs(environment.iter().copied()).stdin(Stdio::null()).process_group(0);
        Self(command.spawn().unwrap())
    }

    pub(super) fn marked(script: &str, run: &Crashed) -> Self {
        Self::sh(script, &[(&run.mark, "1")])
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn is_alive(&self) -> bool {
        is_alive(self.pid())
    }

    pub(super) fn leader(&self) -> Value {
        json!({ "pid": self.pid(), "start": start_of(self.pid()) })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        _ = self.0.wait();
    }
}

/// Waits until a script has written a pid to a file, and returns it.
pub(super) fn wait_for(path: &Path) -> u32 {
    let began = Instant::now();
    loop {
        match fs::read_to_string(path).ok().and_then(|text| text.strip_suffix('\n')?.parse().ok()) {
            Some(pid) => return pid,
            None => assert!(began.elapsed() < BOUND, "never: {}", path.display()),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(super) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// Opens and locks a run's directory, as a host and its keeper do.
pub(super) fn lock(path: &Path) -> fs::File {
    let directory = fs::File::open(path).unwrap();
    directory.try_lock().unwrap();
    directory
}

pub(super) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < BOUND, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(super) fn bearers(mark: &str) -> Vec<u32> {
    crate::alive_with(&format!("{mark}=1"))
}
