//! The host: a program that owns one run and prints each event as a line. In some rows it is killed.
//!
//! It reads commands from its standard input, and exits at its end.

use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use teamster::event::Event;
use teamster::{Run, RunRequest, Runtime};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// The argument that makes this program a host.
pub(crate) const PART: &str = "host";

/// The task of a host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) agent: String,
    pub(crate) request: RunRequest,
    /// Milliseconds between two events.
    pub(crate) pause_ms: u64,
    pub(crate) abort_at_once: bool,
    /// The runs of an abort storm: each is aborted after this number of microseconds.
    pub(crate) storm_us: Vec<u64>,
    /// The maximum number of these runs at a time.
    pub(crate) at_once: usize,
    /// The number of sessions that take turns.
    pub(crate) sessions: usize,
}

impl Spec {
    /// Creates a task of one run, which is read as fast as possible.
    pub(crate) fn new(agent: &str, request: RunRequest) -> Self {
        let agent = agent.to_owned();
        Self { agent, request, pause_ms: 0, abort_at_once: false, storm_us: Vec::new(), at_once: 1, sessions: 0 }
    }
}

/// The host's output besides events.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "host", rename_all = "camelCase")]
pub(crate) enum HostReport {
    /// The run has ended, no process is left, and the host waits for the end of its input.
    Ended,
    /// A run of an abort storm has ended.
    Survived { aborted_after_us: u64, events: Vec<Event> },
}

/// Runs the host.
pub(crate) fn main(spec: &Path) -> Result<()> {
    let spec: Spec = serde_json::from_slice(&fs::read(spec).context("no spec")?).context("the spec is invalid")?;
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        let mut commands = commands();
        let runtime = Arc::new(if spec.sessions > 0 { limited() } else { Runtime::new() });
        if spec.sessions > 0 {
            take_turns(&spec, &runtime).await?;
        } else if spec.storm_us.is_empty() {
            run_one(&spec, &runtime, &mut commands).await?;
        } else {
            run_storm(spec, &runtime).await?;
        }
        runtime.wait_idle().await;
        print(&HostReport::Ended)?;
        while commands.recv().await.is_some() {}
        Ok(())
    })
}

/// The time limit of an idle process, for sessions that take turns.
const IDLE: Duration = Duration::from_millis(300);

/// The number of turns of each session that takes turns.
const ROUNDS: usize = 2;

/// Returns a runtime for sessions that take turns.
fn limited() -> Runtime {
    Runtime::builder().max_live_processes(NonZeroUsize::MIN).idle_process_timeout(IDLE).build()
}

/// Sessions take turns. At most one process is alive, and an idle one is closed. Each session continues its own
/// conversation.
async fn take_turns(spec: &Spec, runtime: &Runtime) -> Result<()> {
    let mut template = spec.request.clone();
    let prompt = std::mem::take(&mut template.prompt);
    let sessions = (0..spec.sessions).map(|_| runtime.open(&spec.agent, template.clone()));
    let sessions = sessions.collect::<Result<Vec<_>, _>>()?;
    let mut ids = vec![None; sessions.len()];
    for _ in 0..ROUNDS {
        for (session, id) in sessions.iter().zip(&mut ids) {
            let mut run = session.send(prompt.as_str())?;
            let mut events = Vec::new();
            while let Some(event) = run.next().await {
                events.push(event);
            }
            let live = runtime.stats().total.live_processes;
            ensure!(live <= 1, "{live} processes live");
            ensure!(id.is_none() || *id == session.id(), "another conversation: {id:?}, {:?}", session.id());
            *id = session.id();
            print(&HostReport::Survived { aborted_after_us: 0, events })?;
        }
        // No session waits for the last process: it is closed because it is idle.
        while runtime.stats().total.live_processes > 0 {
            tokio::time::sleep(IDLE / 10).await;
        }
    }
    for session in &sessions {
        session.close().await;
    }
    Ok(())
}

/// Runs one run to its end.
async fn run_one(spec: &Spec, runtime: &Runtime, commands: &mut mpsc::UnboundedReceiver<String>) -> Result<()> {
    let mut run = runtime.run(&spec.agent, spec.request.clone())?;
    let control = run.control();
    if spec.abort_at_once {
        control.abort();
    }
    let mut reading = true;
    loop {
        tokio::select! {
            command = commands.recv() => match command.as_deref() {
                Some("abort") => control.abort(),
                Some("interrupt") => control.interrupt(),
                Some("pause") => reading = false,
                Some("resume") => reading = true,
                Some("drop") | None => return Ok(()),
                Some(other) => bail!("unknown command {other:?}"),
            },
            event = next(&mut run, spec.pause_ms), if reading => match event {
                Some(event) => print(&event)?,
                None => return Ok(()),
            },
        }
    }
}

async fn next(run: &mut Run, pause_ms: u64) -> Option<Event> {
    if pause_ms > 0 {
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
    }
    run.next().await
}

/// Starts many runs, and aborts each at its time.
async fn run_storm(spec: Spec, runtime: &Arc<Runtime>) -> Result<()> {
    let permits = Arc::new(Semaphore::new(spec.at_once));
    let mut runs = JoinSet::new();
    for aborted_after_us in spec.storm_us {
        let permit = Arc::clone(&permits).acquire_owned().await?;
        let mut run = runtime.run(&spec.agent, spec.request.clone())?;
        runs.spawn(async move {
            let control = run.control();
            let abort = async {
                tokio::time::sleep(Duration::from_micros(aborted_after_us)).await;
                control.abort();
            };
            let read = async {
                let mut events = Vec::new();
                while let Some(event) = run.next().await {
                    events.push(event);
                }
                events
            };
            let ((), events) = tokio::join!(abort, read);
            drop(permit);
            print(&HostReport::Survived { aborted_after_us, events })
        });
    }
    while let Some(result) = runs.join_next().await {
        result??;
    }
    Ok(())
}

/// Returns the lines of standard input. The channel is unbounded: a cell sends a few commands.
fn commands() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}

fn print(what: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    Ok(stdout.flush()?)
}
