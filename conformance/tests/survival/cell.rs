//! Runs a cell of the table: causes the fault, waits for the end, and compares with the table.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use teamster::event::{Event, WarningCode};
use teamster_conformance::TestEnv;

use crate::cell_env::{CellEnv, GATE};
use crate::fault::{Fault, Helper, Moment, Start, Step};
use crate::host::Spec;
use crate::host_process::HostProcess;
use crate::load::Load;
use crate::outcome::{compare, lost, result_of, shown};
use crate::prepare::{Prepared, prepare};
use crate::process_scan::{self, ProcessScan, VARIABLE};
use crate::row::{Column, End, Expected, Row};
use crate::storm;

/// The time limit of a wait. On a busy machine, a real CLI takes many seconds to start.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The time limit for the exit of Teamster's own processes after a run.
const AFTER: Duration = Duration::from_secs(5);

/// The interval between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Directories that stay for later runs: those of the ledger.
const KEPT: &[&str] = &["teamster", "teamster/runs"];

/// A running cell.
struct Stage {
    cell: CellEnv,
    env: Option<TestEnv>,
    project: PathBuf,
    scan: ProcessScan,
    host: HostProcess,
    expected_text: String,
    warned: Option<WarningCode>,
    /// Processes that must stay alive.
    kept: BTreeSet<u32>,
    host_is_dead: bool,
    helpers: Option<(u32, u32)>,
    /// The time of the last moment that was awaited.
    clock: Instant,
    load: Load,
}

/// Runs a cell.
pub(crate) fn play(row: &Row, column: Column, expected: Expected) -> Result<()> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        let cell = CellEnv::new(column)?;
        let mut fault = (row.make)(&cell);
        let steps = std::mem::take(&mut fault.steps);
        let mut stage = Stage::set(cell, fault).await?;
        let played = stage.play(steps, expected).await;
        let left = stage.scan.living();
        stage.scan.kill_all();
        played.with_context(|| stage.report(&left))
    })
}

impl Stage {
    /// Prepares the environment, and starts the host.
    async fn set(cell: CellEnv, fault: Fault) -> Result<Self> {
        let scan = ProcessScan::new(&cell.token);
        let Prepared { agent, mut request, mut environment, env } = prepare(&cell, &fault).await?;
        for change in fault.request {
            change(&mut request);
        }
        let project = request.cwd.clone().context("no working directory")?;
        let mut spec = Spec::new(agent, request);
        match fault.start {
            Start::Eager => {}
            Start::Slowly(pause_ms) => spec.pause_ms = pause_ms,
            Start::Aborted => spec.abort_at_once = true,
            Start::Storm { after_us, at_once } => (spec.storm_us, spec.at_once) = (after_us, at_once),
            Start::Sessions(count) => spec.sessions = count,
        }
        fs::write(cell.path("spec"), serde_json::to_vec(&spec)?)?;
        environment.push((VARIABLE.into(), cell.token.clone().into()));
        for (name, directory) in [("XDG_RUNTIME_DIR", "runtime"), ("TMPDIR", "tmp"), ("XDG_STATE_HOME", "state")] {
            environment.push((name.into(), cell.path(directory).into()));
        }
        let host = HostProcess::start(&fault.host_shell, &cell.path("spec"), |command| _ = command.envs(environment))?;
        scan.set_host(host.pid());
        let clock = Instant::now();
        let (expected_text, warned) = (fault.expected_text, fault.warned);
        let (kept, host_is_dead, load) = (BTreeSet::new(), false, Load::default());
        Ok(Self {
            cell,
            env,
            project,
            scan,
            host,
            expected_text,
            warned,
            kept,
            host_is_dead,
            helpers: None,
            clock,
            load,
        })
    }

    async fn play(&mut self, steps: Vec<Step>, expected: Expected) -> Result<()> {
        for step in steps {
            self.step(step).await?;
        }
        let took = self.end(expected).await?;
        let within = self.load.stretch(expected.within);
        ensure!(took <= within, "it took {took:?}, more than {within:?}");
        if !self.host_is_dead {
            self.host.dismiss();
            self.until("the host's exit", TIMEOUT, |stage| Ok(stage.host.exit()?.is_some())).await?;
            self.nothing_remains(AFTER).await?;
            self.kept_live()?;
        }
        Ok(())
    }

    async fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Await(moment) => {
                self.until(&format!("{moment:?}"), TIMEOUT, |stage| Ok(stage.has_occurred(moment))).await?;
                // Remembers the processes that must end.
                self.scan.living();
                self.start_clock();
            }
            Step::Command(command) => self.host.send(command)?,
            Step::Signal(signal) => process_scan::signal(self.cell.leader().context("no leader")?, signal),
            Step::Helper(helper, signal) => {
                let (keeper, supervisor) = self.helpers()?;
                let pid = if helper == Helper::Keeper { keeper } else { supervisor };
                process_scan::signal(pid, signal);
                self.start_clock();
            }
            Step::KillHost => {
                self.host.kill()?;
                self.host_is_dead = true;
                self.start_clock();
            }
            Step::HaltHost => process_scan::signal(self.host.pid(), Signal::STOP),
            Step::ContinueHostAfter(time) => {
                tokio::time::sleep(time).await;
                process_scan::signal(self.host.pid(), Signal::CONT);
                self.start_clock();
            }
            Step::RemoveProject => fs::remove_dir_all(&self.project)?,
            Step::Touch(name) => fs::write(self.cell.path(name), "")?,
        }
        Ok(())
    }

    /// Returns the keeper and the supervisor. They are remembered, because they are found only while both are alive.
    fn helpers(&mut self) -> Result<(u32, u32)> {
        if let Some(helpers) = self.helpers {
            return Ok(helpers);
        }
        let keeper = self.cell.leader().and_then(process_scan::parent).context("no keeper")?;
        let supervisor = process_scan::parent(keeper).context("no supervisor")?;
        Ok(*self.helpers.insert((keeper, supervisor)))
    }

    fn has_occurred(&self, moment: Moment) -> bool {
        let text_read = || self.host.output().text().contains(&self.expected_text);
        let sleeps = || {
            let command = format!("sleep {}", self.cell.token);
            self.scan.living().iter().any(|process| process.command == command)
        };
        match moment {
            Moment::Running => self.cell.leader().is_some(),
            Moment::TextRead => text_read(),
            Moment::Streaming => {
                text_read()
                    && match &self.env {
                        Some(env) => env.provider().gate(GATE).is_reached(),
                        None => true,
                    }
            }
            Moment::Tool => {
                let called = |event: &Event| matches!(event, Event::ToolUse(_));
                text_read()
                    && match self.cell.column {
                        Column::Fake => self.host.output().events.iter().any(called),
                        Column::Real(_) => sleeps(),
                    }
            }
            Moment::Lingering => text_read() && sleeps(),
            Moment::Gone => self.leader_is(|state| matches!(state, None | Some('Z' | 'X'))),
            Moment::Stopped => self.leader_is(|state| state == Some('T')),
            Moment::File(name) => self.cell.path(name).exists(),
            Moment::Spilled(bytes) => process_scan::unlinked(self.host.pid()).any(|held| held >= bytes),
        }
    }

    fn leader_is(&self, wanted: impl Fn(Option<char>) -> bool) -> bool {
        self.cell.leader().is_some_and(|leader| wanted(process_scan::state(leader)))
    }

    /// Waits for the end, and checks that nothing is left. Returns the time that it took.
    async fn end(&mut self, expected: Expected) -> Result<Duration> {
        if self.host_is_dead {
            // No event reports the end: it is the time at which nothing is left.
            self.nothing_remains(expected.within).await?;
            return Ok(self.clock.elapsed());
        }
        let unread = expected.end == End::Unread;
        self.until("the end", TIMEOUT.max(expected.within), |stage| {
            let output = stage.host.output();
            ensure!(!output.closed || output.ended.is_some(), "the host ended by itself");
            Ok(if unread { output.ended.is_some() } else { output.done.is_some() || output.ended.is_some() })
        })
        .await?;
        self.note_kept(expected.kept)?;
        self.nothing_of_the_run_is_left()?;
        let at = {
            let output = self.host.output();
            output.done.or(output.ended).context("no end")?
        };
        self.until("the end of all", TIMEOUT, |stage| Ok(stage.host.output().ended.is_some())).await?;
        self.nothing_of_the_run_is_left()?;
        self.nothing_remains(AFTER).await?;
        if unread {
            ensure!(
                !self.host.output().events.iter().any(|event| matches!(event, Event::Done(_))),
                "a `done` event was read"
            );
        } else {
            self.one_end(expected.end)?;
        }
        Ok(at.saturating_duration_since(self.clock))
    }

    /// Checks that there is one `done`, as expected, after all text.
    fn one_end(&self, expected: End) -> Result<()> {
        let output = self.host.output();
        if output.survived.is_empty() {
            let result = result_of(&output.events)?;
            compare(result, expected)?;
            // The result has a blank line between messages.
            let text = result.text.replace("\n\n", "");
            let lost = lost(self.cell.column, &self.expected_text, &text);
            ensure!(lost == 0, "{lost} bytes lost: {:?}", shown(&result.text));
            if let Some(code) = &self.warned {
                let warns = |event: &Event| matches!(event, Event::Warning(warning) if warning.code == *code);
                ensure!(output.events.iter().any(warns), "no warning {code:?}");
            }
        }
        for (after_us, events) in &output.survived {
            let result = result_of(events).with_context(|| format!("aborted after {after_us} us"))?;
            compare(result, expected).with_context(|| format!("aborted after {after_us} us"))?;
            ensure!(result.left_processes.is_empty(), "it left {:?}", result.left_processes);
            ensure!(self.expected_text.starts_with(result.text.as_str()), "unexpected text {:?}", shown(&result.text));
        }
        Ok(())
    }

    fn start_clock(&mut self) {
        (self.clock, self.load) = (Instant::now(), Load::default());
    }

    /// Waits until no process and no file is left, including Teamster's own processes.
    async fn nothing_remains(&mut self, bound: Duration) -> Result<()> {
        let began = Instant::now();
        while let Err(left) = self.nothing_is_left(&self.others()) {
            let bound = self.load.stretch(bound);
            ensure!(began.elapsed() < bound, "{left:#}, {bound:?} later");
            self.load.sample();
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Checks that all descendants of the CLI have ended.
    fn nothing_of_the_run_is_left(&self) -> Result<()> {
        let mut living = self.others();
        living.retain(|process| !process.is_teamster());
        self.nothing_is_left(&living)
    }

    /// Returns the processes that are alive and not to be kept.
    fn others(&self) -> Vec<process_scan::Process> {
        self.scan.living().into_iter().filter(|process| !self.kept.contains(&process.pid)).collect()
    }

    /// Checks the processes that `done` names: their number and names, and that they are alive.
    fn note_kept(&mut self, expected: usize) -> Result<()> {
        let named = match self.host.output().events.last() {
            Some(Event::Done(done)) => done.result.left_processes.clone(),
            _ => Vec::new(),
        };
        ensure!(named.len() == expected, "{} processes are named as left, not {expected}: {named:?}", named.len());
        let living = self.scan.living();
        for left in &named {
            let lives = |process: &process_scan::Process| {
                (process.pid, process.name.as_str()) == (left.pid, left.name.as_str())
            };
            ensure!(living.iter().any(lives), "{left:?} is not alive");
        }
        self.kept = named.iter().map(|left| left.pid).collect();
        ensure!(self.kept.len() == expected, "a process is named twice: {named:?}");
        Ok(())
    }

    /// Checks that the kept processes are still alive.
    fn kept_live(&self) -> Result<()> {
        let living: BTreeSet<_> = self.scan.living().iter().map(|process| process.pid).collect();
        let gone: Vec<_> = self.kept.difference(&living).collect();
        ensure!(gone.is_empty(), "{gone:?} should have been kept");
        Ok(())
    }

    fn nothing_is_left(&self, living: &[process_scan::Process]) -> Result<()> {
        let names: Vec<_> = living.iter().map(ToString::to_string).collect();
        ensure!(living.is_empty(), "{} processes left: {names:?}", names.len());
        ensure!(!storm::is_running(&self.cell.path("")), "the storm of processes is still running");
        let files: Vec<_> = ["runtime", "tmp", "state"].iter().flat_map(|name| self.files(name)).collect();
        ensure!(files.is_empty(), "{} files left: {files:?}", files.len());
        Ok(())
    }

    /// Returns the files that are left, as the host sees them: it may have a file system of its own there.
    fn files(&self, name: &str) -> Vec<PathBuf> {
        let path = self.cell.path(name);
        let root = PathBuf::from(format!("/proc/{}/root", self.host.pid()));
        let seen = path.strip_prefix("/").map_or_else(|_| path.clone(), |inside| root.join(inside));
        let directory = if seen.is_dir() { seen } else { path };
        process_scan::files(&directory, KEPT)
    }

    async fn until(
        &mut self,
        what: &str,
        bound: Duration,
        condition: impl Fn(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        let began = Instant::now();
        while !condition(self)? {
            ensure!(began.elapsed() < bound, "timed out waiting for {what}");
            self.load.sample();
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Describes the cell for a failure.
    fn report(&self, left: &[process_scan::Process]) -> String {
        let output = self.host.output();
        let from = output.events.len().saturating_sub(12);
        let events: Vec<_> = output
            .events
            .iter()
            .skip(from)
            .map(|event| shown(&serde_json::to_string(event).unwrap_or_default()))
            .collect();
        let left: Vec<_> = left.iter().map(ToString::to_string).collect();
        format!(
            "the last of {} events:\n  {}\nthe host's noise: {}\nremaining processes: {left:?}\n",
            output.events.len(),
            events.join("\n  "),
            shown(&output.noise),
        )
    }
}
