//! The process of the gateway: it is started, killed and started again over the same data directory.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use teamster_testkit::killed::LogIfKilled;

use crate::agents::{self, Behavior};
use crate::plan::random;

/// The admin token of the test.
pub(crate) const TOKEN: &str = "chaos-token-0123456789abcdef0123456789";

const TEAMSTER: &str = env!("CARGO_BIN_EXE_teamster");

/// The time in which the gateway prints its address.
const START: Duration = Duration::from_mins(1);

/// The time limit of a turn.
pub(crate) const TURN: Duration = Duration::from_millis(2_500);

/// The time in which the gateway stops after SIGTERM.
const STOP: Duration = Duration::from_secs(30);

/// What a test configures.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) behaviors: &'static [Behavior],
    /// The number of agents that stay open between turns. With 0, each turn selects another behavior.
    pub(crate) idle_sessions: u32,
    /// The time limit of a turn.
    pub(crate) turn: Duration,
}

pub(crate) struct GatewayProcess {
    directory: tempfile::TempDir,
    setup: Setup,
    child: Mutex<Option<Child>>,
    url: Mutex<String>,
    /// The number of starts. Each start has a copy of the agents of its own.
    starts: AtomicU32,
    _log: LogIfKilled,
}

impl GatewayProcess {
    /// Writes the configuration of a gateway with these channels.
    pub(crate) fn new(channels: &str, setup: Setup) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["work", "home"] {
            std::fs::create_dir_all(directory.path().join(name)).expect("a directory");
        }
        let config = format!(
            "[serve.retries]\nfirst_delay = \"50ms\"\n\
             [serve.timing]\nshutdown_timeout = \"2s\"\n\
             [serve.limits]\nmax_running_per_chat = 4\nrequests_per_second = 100000\nconcurrent_requests = 1000\n\
             events_per_turn = 400\nidle_sessions = {}\n\
             [serve.delivery]\nfirst_delay = \"20ms\"\nmax_delay = \"500ms\"\n{channels}",
            setup.idle_sessions
        );
        std::fs::write(directory.path().join("config.toml"), config).expect("the configuration is written");
        let log = LogIfKilled::new(&directory.path().join("log"));
        let (child, url, starts) = (Mutex::default(), Mutex::default(), AtomicU32::default());
        Self { directory, setup, child, url, starts, _log: log }
    }

    /// Writes a file that the configuration names.
    pub(crate) fn write_secret(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file is written");
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .expect("only its owner reads it");
    }

    /// Returns the address of the process that was started last.
    pub(crate) fn url(&self) -> String {
        self.url.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn take(&self) -> Child {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).take().expect("it runs")
    }

    /// Starts the gateway, and waits until it accepts messages. No agent of an earlier process is left then.
    pub(crate) async fn start(&self, failpoint: Option<&str>) {
        let agents = format!("agents-{}/", self.starts.fetch_add(1, Ordering::Relaxed));
        agents::write(&self.path(&agents), self.setup.behaviors);
        let mut command = Command::new(TEAMSTER);
        command.arg("serve").arg("--config").arg(self.path("config.toml")).arg("--data-dir").arg(self.path("data"));
        command.args(["--listen", "127.0.0.1:0"]);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path("home")).env("TEAMSTER_TOKEN", TOKEN).env("AGENT_BACKEND", "claude");
        command.env("BACKEND_CLI_PATH", self.path(&agents).join("agent")).env("WORKING_DIR", self.path("work"));
        command.env("QUERY_TIMEOUT_MS", self.setup.turn.as_millis().to_string());
        command.envs(failpoint.map(|value| ("TEAMSTER_FAILPOINT", value)));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.path("log")).expect("a log");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("it starts");
        let stdout = child.stdout.take().expect("its output");
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        let (sender, first) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stdout).lines();
            _ = sender.send(lines.next());
            // The rest is read so that the gateway can write it.
            lines.for_each(drop);
        });
        let line = tokio::time::timeout(START, first).await.ok().and_then(Result::ok).flatten().and_then(Result::ok);
        let line = line.unwrap_or_else(|| panic!("the gateway does not start:\n{}", self.log()));
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).expect("the address").to_owned();
        *self.url.lock().unwrap_or_else(PoisonError::into_inner) = url;
        let left = self.agents_except(&agents);
        assert!(left.is_empty(), "agents of an earlier process are left: {left:?}\n{}", self.log());
    }

    /// Lets it run for a random time of up to a second and a half.
    pub(crate) async fn run_for_a_while(&self) {
        tokio::time::sleep(Duration::from_millis(100 + random(1_400))).await;
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&self) {
        let mut child = self.take();
        child.kill().expect("SIGKILL is sent");
        child.wait().expect("it is reaped");
    }

    /// Stops it for a moment, as a machine that sleeps does.
    pub(crate) async fn pause(&self) {
        let pid = self.child.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Pid::from_child);
        let pid = pid.expect("it runs");
        kill_process(pid, Signal::STOP).expect("SIGSTOP is sent");
        tokio::time::sleep(Duration::from_millis(200 + random(600))).await;
        kill_process(pid, Signal::CONT).expect("SIGCONT is sent");
    }

    /// Waits until a failpoint has ended it. Returns `false` if that does not happen in time.
    pub(crate) async fn ends_within(&self, limit: Duration) -> bool {
        let limit = Instant::now() + limit;
        while !self.has_ended() {
            if Instant::now() > limit {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        true
    }

    fn has_ended(&self) -> bool {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        child.as_mut().expect("it was started").try_wait().expect("its state").is_some()
    }

    /// Stops it with SIGTERM, and waits for its end.
    pub(crate) async fn stop(&self) {
        let mut child = self.take();
        kill_process(Pid::from_child(&child), Signal::TERM).expect("SIGTERM is sent");
        let limit = Instant::now() + STOP;
        loop {
            if let Some(status) = child.try_wait().expect("its state") {
                assert!(status.success(), "{status}\n{}", self.log());
                return;
            }
            if Instant::now() > limit {
                _ = child.kill();
                panic!("the gateway does not stop:\n{}", self.log());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asserts that no process mentions the test's directory in its arguments.
    pub(crate) fn assert_no_process_is_left(&self) {
        let limit = Instant::now() + Duration::from_secs(10);
        loop {
            let left = processes_with(self.directory.path());
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < limit, "processes are left: {left:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the processes of agents, except those of one start.
    fn agents_except(&self, agents: &str) -> Vec<String> {
        let own = self.path(agents).to_string_lossy().into_owned();
        let mut found = processes_with(&self.path("agents-"));
        found.retain(|process| !process.contains(&own));
        found
    }

    /// Returns the end of the gateway's log.
    pub(crate) fn log(&self) -> String {
        let text = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        if let Some(child) = self.child.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            _ = child.kill();
            _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("the end of the gateway's log:\n{}", self.log());
        }
    }
}

/// Returns the arguments of the processes that mention this path.
fn processes_with(path: &Path) -> Vec<String> {
    let needle = path.to_string_lossy().into_owned();
    let entries = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let arguments = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let texts = arguments.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    texts.filter(|text| text.contains(&needle)).collect()
}
