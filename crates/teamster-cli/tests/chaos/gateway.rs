//! The process of the gateway: it is started, killed and started again over the same data directory.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::plan::random;

/// The admin token of the test.
pub(crate) const TOKEN: &str = "chaos-token-0123456789abcdef0123456789";

const TEAMSTER: &str = env!("CARGO_BIN_EXE_teamster");

pub(crate) struct GatewayProcess {
    directory: tempfile::TempDir,
    child: Mutex<Option<Child>>,
    pub(crate) url: Mutex<String>,
}

impl GatewayProcess {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        write_agents(directory.path());
        std::fs::write(
            directory.path().join("config.toml"),
            "[serve.retries]\nfirst_delay = \"50ms\"\n[serve.timing]\nshutdown_timeout = \"10s\"\n\
             [serve.limits]\nmax_running_per_chat = 4\nrequests_per_second = 100000\nconcurrent_requests = 1000\n",
        )
        .expect("the configuration is written");
        Self { directory, child: Mutex::default(), url: Mutex::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts the gateway, and waits until it accepts messages.
    pub(crate) async fn start(&self, failpoint: Option<&str>) {
        let mut command = Command::new(TEAMSTER);
        command.arg("serve").arg("--config").arg(self.path("config.toml")).arg("--data-dir").arg(self.path("data"));
        command.args(["--listen", "127.0.0.1:0"]);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path("home")).env("TEAMSTER_TOKEN", TOKEN).env("AGENT_BACKEND", "claude");
        command.env("BACKEND_CLI_PATH", self.path("agent")).env("WORKING_DIR", self.path("work"));
        command.env("QUERY_TIMEOUT_MS", "4000").envs(failpoint.map(|value| ("TEAMSTER_FAILPOINT", value)));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.path("log")).expect("a log");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().expect("it starts");
        let stdout = child.stdout.take().expect("its output");
        let first = tokio::task::spawn_blocking(move || {
            let mut lines = BufReader::new(stdout).lines();
            let first = lines.next();
            // The rest is read so that the gateway can write it.
            std::thread::spawn(move || lines.for_each(drop));
            first
        });
        let line = first.await.expect("the first line is read").and_then(Result::ok);
        let line = line.unwrap_or_else(|| panic!("the gateway does not start:\n{}", self.log()));
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).expect("the address").to_owned();
        *self.url.lock().unwrap_or_else(PoisonError::into_inner) = url;
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
    }

    /// Lets it run for a random time of up to a second and a half.
    pub(crate) async fn run_for_a_while(&self) {
        tokio::time::sleep(Duration::from_millis(100 + random(1_400))).await;
    }

    pub(crate) fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take().expect("it runs");
        child.kill().expect("SIGKILL is sent");
        child.wait().expect("it is reaped");
    }

    /// Starts it again whenever a failpoint has ended it.
    pub(crate) async fn restart_when_dead(&self, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let is_dead = match &mut *self.child.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(child) => child.try_wait().expect("its state").is_some(),
                None => false,
            };
            if is_dead {
                self.start(None).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops it with SIGTERM, and waits for its end.
    pub(crate) async fn stop(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take().expect("it runs");
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::TERM).expect("SIGTERM is sent");
        let limit = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = child.try_wait().expect("its state") {
                assert!(status.success(), "{status}\n{}", self.log());
                return;
            }
            assert!(Instant::now() < limit, "the gateway does not stop:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asserts that no process mentions the test's directory in its arguments.
    pub(crate) fn assert_no_process_is_left(&self) {
        let needle = self.directory.path().to_string_lossy().into_owned();
        let limit = Instant::now() + Duration::from_secs(10);
        loop {
            let left = processes_with(&needle);
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < limit, "processes are left: {left:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
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
    }
}

fn processes_with(needle: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let arguments = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let texts = arguments.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    texts.filter(|text| text.contains(needle)).collect()
}

/// The behaviors of the agent. Each of its processes chooses one.
const BEHAVIORS: &[(&str, &str)] = &[
    ("echo", r#"{ say = "You said: {prompt}" }"#),
    ("tool", r#"{ run = { command = "ls", output = "a\n" } }, { say = "You said: {prompt}" }"#),
    ("ask", r#"{ run = { command = "ls", output = "a\n", ask = true } }, { say = "You said: {prompt}" }"#),
    ("slow", r#"{ say = "Wait." }, { waitMs = 300 }, { say = "You said: {prompt}" }"#),
    ("crash", "{ exit = 3 }"),
    ("late_crash", r#"{ say = "half" }, { exit = 3 }"#),
    ("hang", "{ waitMs = 600000 }"),
    ("limit", r#"{ fail = { status = 529, message = "Overloaded" } }"#),
];

/// How often each behavior is chosen, in sixteenths.
const WEIGHTS: [usize; 8] = [6, 2, 2, 2, 1, 1, 1, 1];

fn write_agents(directory: &Path) {
    std::fs::create_dir_all(directory.join("work")).expect("a directory");
    std::fs::create_dir_all(directory.join("home")).expect("a directory");
    let mut cases = String::new();
    let mut number = 0;
    for ((name, steps), weight) in BEHAVIORS.iter().zip(WEIGHTS) {
        let steps = if *name == "flood" { steps.repeat(9) } else { (*steps).to_owned() };
        std::fs::write(directory.join(format!("{name}.toml")), format!("[[turns]]\nsteps = [{steps}]\n"))
            .expect("written");
        for _ in 0..weight {
            writeln!(cases, "{number}) name={name};;").expect("a text can be written");
            number += 1;
        }
    }
    let program = format!(
        "#!/bin/sh\ncase \"$1\" in --version) name=echo;; *)\nn=$(od -An -N1 -tu1 /dev/urandom)\ncase $((n % {number})) in\n{cases}esac;; esac\n\
         exec '{TEAMSTER}' fake --agent claude --script '{}/'$name.toml -- \"$@\"\n",
        directory.to_string_lossy()
    );
    std::fs::write(directory.join("agent"), program).expect("the agent is written");
    std::fs::set_permissions(directory.join("agent"), PermissionsExt::from_mode(0o755)).expect("it is executable");
}
