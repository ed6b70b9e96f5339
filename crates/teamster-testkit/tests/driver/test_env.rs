//! The environment in which a test runs fake agents and inspects the results.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use teamster::event::{ErrorCode, Event, Failure, ToolResult, Warning, WarningCode};
use teamster::{Run, RunRequest, RunResult, Runtime};
use teamster_testkit::check::check;
use teamster_testkit::fake::{SCRIPT_ENV, Script};
use tempfile::TempDir;
use tokio::time::timeout;

/// A limit that is never reached: it is longer than any test runs.
pub(crate) const LONG: Duration = Duration::from_mins(10);

/// A limit that is expected to be reached.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// The longest time that any step may take on a busy machine.
pub(crate) const BOUND: Duration = Duration::from_mins(1);

/// A text that every interrupt request on stdin contains.
pub(crate) const INTERRUPT: &str = r#""subtype":"interrupt""#;

/// A runtime, and a directory for scripts and pids.
pub(crate) struct TestEnv {
    pub(crate) runtime: Runtime,
    directory: TempDir,
    scripts: AtomicUsize,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        Self::with_runtime(Runtime::new())
    }

    pub(crate) fn with_runtime(runtime: Runtime) -> Self {
        Self { runtime, directory: tempfile::tempdir().unwrap(), scripts: AtomicUsize::new(0) }
    }

    /// Returns a request for an agent that plays this script.
    pub(crate) fn request(&self, script: &Script) -> RunRequest {
        let path = self.path(&format!("script-{}", self.scripts.fetch_add(1, Ordering::Relaxed)));
        fs::write(&path, script.to_json()).unwrap();
        let mut request = RunRequest::new("Do it");
        request.cli_path = Some(fake_agent());
        request.env.insert(SCRIPT_ENV.into(), path.to_str().unwrap().into());
        request
    }

    pub(crate) fn start(&self, request: RunRequest) -> Run {
        self.runtime.run("claude", request).unwrap()
    }

    /// Plays a script to its end.
    pub(crate) async fn play(&self, script: &Script) -> CheckedStream {
        self.finish(self.request(script)).await
    }

    pub(crate) async fn finish(&self, request: RunRequest) -> CheckedStream {
        rest_of(&mut self.start(request)).await
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The file to which scripts append their pids.
    pub(crate) fn pid_file(&self) -> PathBuf {
        self.path("pids")
    }

    /// Returns the pids written so far, by name.
    pub(crate) fn pids(&self) -> BTreeMap<String, u32> {
        let text = fs::read_to_string(self.pid_file()).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.map(|(name, pid)| (name.to_owned(), pid.parse().unwrap())).collect()
    }

    /// Waits until a process has written its pid.
    pub(crate) async fn pid(&self, name: &str) -> u32 {
        wait_until(&format!("{name} runs"), || self.pids().contains_key(name)).await;
        self.pids()[name]
    }

    /// Asserts that none of the recorded processes is alive.
    pub(crate) fn assert_all_dead(&self) {
        for (name, pid) in self.pids() {
            assert!(!is_alive(pid), "{name} ({pid}) is alive: {:?}", stat(pid));
        }
    }

    /// Waits until none of the recorded processes is alive.
    pub(crate) async fn all_die(&self) {
        wait_until(&format!("all of {:?} die", self.pids()), || self.pids().values().all(|&pid| !is_alive(pid))).await;
    }
}

pub(crate) fn fake_agent() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_teamster-fake-agent"))
}

/// A script that records its pid and prints the init line.
pub(crate) fn agent(env: &TestEnv) -> Script {
    Script::new().write_pid(&env.pid_file(), "agent").claude_init()
}

/// The rest of a successful turn.
pub(crate) fn success_end(text: &str) -> Script {
    Script::new().claude_text(text).claude_result(text).read_to_end()
}

/// The events of a stream, checked against the rules.
pub(crate) struct CheckedStream {
    pub(crate) events: Vec<Event>,
}

/// Reads a stream from start to end, and checks the rules of every stream.
pub(crate) async fn rest_of(run: &mut Run) -> CheckedStream {
    rest_after(Vec::new(), run).await
}

/// Reads the rest of a stream that started with these events, and checks the rules.
pub(crate) async fn rest_after(mut events: Vec<Event>, run: &mut Run) -> CheckedStream {
    while let Some(event) = next(run).await {
        events.push(event);
    }
    CheckedStream::checked(events)
}

/// Reads a stream up to the first matching event.
pub(crate) async fn read_until(run: &mut Run, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let event = next(run).await.unwrap_or_else(|| panic!("the stream ended: {events:?}"));
        let found = wanted(&event);
        events.push(event);
        if found {
            return events;
        }
    }
}

async fn next(run: &mut Run) -> Option<Event> {
    bounded("the next event", run.next()).await
}

pub(crate) async fn bounded<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(BOUND, future).await.unwrap_or_else(|_| panic!("timed out waiting for {what}"))
}

impl CheckedStream {
    fn checked(events: Vec<Event>) -> Self {
        if let Err(violations) = check(&events) {
            let violations: Vec<_> = violations.iter().map(ToString::to_string).collect();
            panic!("{}\n{:#?}", violations.join("\n"), events.iter().rev().take(20).rev().collect::<Vec<_>>());
        }
        Self { events }
    }

    pub(crate) fn result(&self) -> &RunResult {
        let Some(Event::Done(done)) = self.events.last() else { panic!("no done: {:?}", self.events) };
        &done.result
    }

    /// Asserts that the run succeeded with this text.
    #[track_caller]
    pub(crate) fn assert_success(&self, text: &str) -> &Self {
        assert!(!self.result().is_error, "{:?}", self.events.iter().rev().take(3).collect::<Vec<_>>());
        assert_eq!(self.result().text, text);
        self
    }

    /// Asserts that the run failed with this code, and returns the error message.
    #[track_caller]
    pub(crate) fn assert_failed(&self, code: &ErrorCode) -> &str {
        let failure = self.failure().unwrap_or_else(|| panic!("no error: {:?}", self.events.last()));
        assert_eq!(&failure.code, code, "{}", failure.message.as_str());
        &failure.message
    }

    /// Asserts that the caller ended the run.
    #[track_caller]
    pub(crate) fn assert_aborted(&self) -> &Self {
        self.assert_failed(&ErrorCode::Aborted);
        assert!(self.result().aborted);
        self
    }

    fn failure(&self) -> Option<&Failure> {
        self.events.iter().find_map(|event| match event {
            Event::Error(failure) => Some(&**failure),
            _ => None,
        })
    }

    pub(crate) fn warnings(&self, code: &WarningCode) -> Vec<&Warning> {
        let warnings = self.events.iter().filter_map(|event| match event {
            Event::Warning(warning) => Some(&**warning),
            _ => None,
        });
        warnings.filter(|warning| warning.code == *code).collect()
    }

    pub(crate) fn tool_results(&self) -> Vec<&ToolResult> {
        let results = self.events.iter().filter_map(|event| match event {
            Event::ToolResult(result) => Some(&**result),
            _ => None,
        });
        results.collect()
    }
}

/// Returns the process's line in `/proc`.
fn stat(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}

/// Returns the letter of the process's state.
pub(crate) fn state(pid: u32) -> Option<char> {
    stat(pid)?.rsplit(") ").next()?.chars().next()
}

/// Returns the pid of the process's parent.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    stat(pid)?.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}

pub(crate) fn kill(pid: u32) {
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid.cast_signed()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}

/// Returns whether the process is alive. A zombie is not: orphans are reaped by process 1, if at
/// all.
pub(crate) fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Waits for a condition.
pub(crate) async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < BOUND, "timed out waiting until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for a condition, and blocks this thread meanwhile.
pub(crate) fn block_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < BOUND, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn is_init(event: &Event) -> bool {
    matches!(event, Event::Init(_))
}

pub(crate) fn is_text(event: &Event) -> bool {
    matches!(event, Event::Text(_))
}

pub(crate) fn is_tool_use(event: &Event) -> bool {
    matches!(event, Event::ToolUse(_))
}

pub(crate) fn is_warning(event: &Event) -> bool {
    matches!(event, Event::Warning(_))
}

/// Returns `0 1 2 ` and so on, the text of a burst.
pub(crate) fn counted(count: u64) -> String {
    use std::fmt::Write as _;
    (0..count).fold(String::new(), |mut text, number| {
        _ = write!(text, "{number} ");
        text
    })
}
