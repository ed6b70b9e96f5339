//! The host: a program that holds one run and tells what it sees, an event a line. In some rows it is killed.
//!
//! It is told what to do by lines on its standard input, and ends with it.

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

/// What the host does.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) agent: String,
    pub(crate) request: RunRequest,
    /// Milliseconds between two events.
    pub(crate) pause_ms: u64,
    pub(crate) abort_at_once: bool,
    /// If there are any, so many runs, each aborted after so many microseconds.
    pub(crate) storm_us: Vec<u64>,
    /// How many of them live at a time.
    pub(crate) at_once: usize,
    /// If there are any, so many sessions that take turns.
    pub(crate) sessions: usize,
}

impl Spec {
    /// One run, read as fast as it can be.
    pub(crate) fn new(agent: &str, request: RunRequest) -> Self {
        let agent = agent.to_owned();
        Self { agent, request, pause_ms: 0, abort_at_once: false, storm_us: Vec::new(), at_once: 1, sessions: 0 }
    }
}

/// What the host says beside events.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "host", rename_all = "camelCase")]
pub(crate) enum Word {
    /// The run is over, nobody is left, and the host waits for its own end.
    Ended,
    /// A run of a storm is over.
    Survived { aborted_after_us: u64, events: Vec<Event> },
}

/// Plays the host.
pub(crate) fn main(spec: &Path) -> Result<()> {
    let spec: Spec = serde_json::from_slice(&fs::read(spec).context("no spec")?).context("the spec makes no sense")?;
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        let mut words = words();
        let runtime = Arc::new(if spec.sessions > 0 { limited() } else { Runtime::new() });
        if spec.sessions > 0 {
            take_turns(&spec, &runtime).await?;
        } else if spec.storm_us.is_empty() {
            hold(&spec, &runtime, &mut words).await?;
        } else {
            weather(spec, &runtime).await?;
        }
        runtime.shutdown().await;
        say(&Word::Ended)?;
        while words.recv().await.is_some() {}
        Ok(())
    })
}

/// How long a session's process may be idle, where that is limited.
const IDLE: Duration = Duration::from_millis(300);

/// How many turns each session has, where sessions take turns.
const ROUNDS: usize = 2;

/// A runtime for sessions that take turns.
fn limited() -> Runtime {
    Runtime::builder().max_live_processes(NonZeroUsize::MIN).idle_process_timeout(IDLE).build()
}

/// Sessions take turns, although one process may live at a time and an idle one is closed: each goes on with its own
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
            say(&Word::Survived { aborted_after_us: 0, events })?;
        }
        // Nobody needs the last one's place: it is closed since it is idle.
        while runtime.stats().total.live_processes > 0 {
            tokio::time::sleep(IDLE / 10).await;
        }
    }
    for session in &sessions {
        session.close().await;
    }
    Ok(())
}

/// Holds one run to its end.
async fn hold(spec: &Spec, runtime: &Runtime, words: &mut mpsc::UnboundedReceiver<String>) -> Result<()> {
    let mut run = runtime.run(&spec.agent, spec.request.clone())?;
    let control = run.control();
    if spec.abort_at_once {
        control.abort();
    }
    let mut reading = true;
    loop {
        tokio::select! {
            word = words.recv() => match word.as_deref() {
                Some("abort") => control.abort(),
                Some("interrupt") => control.interrupt(),
                Some("pause") => reading = false,
                Some("resume") => reading = true,
                Some("drop") | None => return Ok(()),
                Some(other) => bail!("the host does not know {other:?}"),
            },
            event = next(&mut run, spec.pause_ms), if reading => match event {
                Some(event) => say(&event)?,
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

/// Starts many runs and aborts each at its time.
async fn weather(spec: Spec, runtime: &Arc<Runtime>) -> Result<()> {
    let places = Arc::new(Semaphore::new(spec.at_once));
    let mut runs = JoinSet::new();
    for aborted_after_us in spec.storm_us {
        let place = Arc::clone(&places).acquire_owned().await?;
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
            drop(place);
            say(&Word::Survived { aborted_after_us, events })
        });
    }
    while let Some(said) = runs.join_next().await {
        said??;
    }
    Ok(())
}

/// The lines of standard input, as they come. The channel is as long as what one test says in one cell.
fn words() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    receiver
}

fn say(what: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    Ok(stdout.flush()?)
}
