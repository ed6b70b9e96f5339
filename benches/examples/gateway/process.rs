//! The process of the gateway, in a directory of its own.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_benches::scenario::Scenario;
use teamster_benches::usage;

/// The admin token.
pub(crate) const TOKEN: &str = "bench-token-0123456789abcdef0123456789";

const LIMITS: &str = "[serve.limits]\nmax_running = 100\nmax_running_per_chat = 4\nqueue_per_chat = 100000\n\
                      queue_total = 1000000\nidle_sessions = 32\nrequests_per_second = 1000000\nconcurrent_requests = 10000\n";

/// The programs of a measurement.
pub(crate) struct Programs {
    pub(crate) teamster: PathBuf,
    pub(crate) fake_cli: PathBuf,
}

/// A gateway that runs. Dropping it stops it.
pub(crate) struct GatewayProcess {
    directory: tempfile::TempDir,
    child: Child,
    pub(crate) url: String,
}

impl GatewayProcess {
    /// Starts a gateway whose agent plays this scenario. `limits` replaces lines of the limits.
    pub(crate) fn start(programs: &Programs, scenario: &Scenario, limits: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        std::fs::create_dir(path.join("work")).expect("a directory");
        let agent = path.join("claude");
        std::fs::copy(&programs.fake_cli, &agent).expect("a copy of the fake CLI");
        let scenario = serde_json::to_string(scenario).expect("a document");
        std::fs::write(agent.with_extension("json"), scenario).expect("the scenario is written");
        std::fs::write(path.join("config.toml"), config(limits)).expect("the configuration is written");
        let mut command = Command::new(&programs.teamster);
        command.arg("serve").arg("--config").arg(path.join("config.toml")).arg("--data-dir").arg(path.join("data"));
        command.args(["--listen", "127.0.0.1:0"]).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", path.join("home"));
        command.env("TEAMSTER_TOKEN", TOKEN).env("AGENT_BACKEND", "claude");
        command.env("BACKEND_CLI_PATH", &agent).env("WORKING_DIR", path.join("work"));
        let log = std::fs::File::create(path.join("log")).expect("a log");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let line = lines.next().and_then(Result::ok);
        let line = line.unwrap_or_else(|| panic!("the gateway does not start:\n{}", log_of(path)));
        std::thread::spawn(move || lines.for_each(drop));
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).expect("the address").to_owned();
        Self { directory, child, url }
    }

    /// Returns the proportional memory of the gateway's process, in KiB.
    pub(crate) fn memory_kib(&self) -> u64 {
        pss_kib(self.child.id())
    }

    /// Returns the proportional memory of the processes between the gateway and its agents, in KiB.
    pub(crate) fn helpers_kib(&self) -> u64 {
        let programs = std::fs::read_link(format!("/proc/{}/exe", self.child.id())).expect("the program");
        let others = usage::processes_of(&programs).map(i32::unsigned_abs).filter(|pid| *pid != self.child.id());
        others.map(pss_kib).sum()
    }

    /// Returns the size of the store, in bytes.
    pub(crate) fn store_bytes(&self) -> u64 {
        let files = std::fs::read_dir(self.directory.path().join("data")).expect("the data directory");
        let sizes = files.flatten().filter(|file| file.file_name().to_string_lossy().ends_with(".db"));
        sizes.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    /// Stops the gateway, which writes everything into the main file of the store.
    pub(crate) fn stop(&mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, Signal::SIGTERM).expect("SIGTERM is sent");
        self.child.wait().expect("it ends");
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            self.stop();
        }
    }
}

fn config(limits: &[(&str, &str)]) -> String {
    let replaced = |line: &str| limits.iter().find(|(key, _)| line.starts_with(&format!("{key} =")));
    let lines = LIMITS.lines().map(|line| match replaced(line) {
        Some((key, value)) => format!("{key} = {value}"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn pss_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|value| value.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or_default()
}

fn log_of(path: &Path) -> String {
    std::fs::read_to_string(path.join("log")).unwrap_or_default()
}
