//! Plays a cell of the table: makes the fault, waits for the end, and compares with what the table says.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use teamster::RunRequest;
use teamster::event::{Event, WarningCode};
use teamster::request::PermissionMode;
use teamster_conformance::TestEnv;
use teamster_testkit::fake::SCRIPT_ENV;

use crate::caller::Host;
use crate::census::{self, Census, MARK};
use crate::crowd::Crowd;
use crate::fault::{Cli, Fault, Helper, Moment, Start, Step};
use crate::host::Spec;
use crate::place::{GATE, Place};
use crate::row::{Column, End, Expected, Row};
use crate::storm;
use crate::verdict::{compare, lost, result_of, shown};

/// How long a moment is waited for. A real CLI takes seconds to start, on a busy machine many.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long Teamster's own processes may take to end when they have no more to do.
const AFTER: Duration = Duration::from_secs(5);

/// How often it is looked whether something has happened.
const LOOK: Duration = Duration::from_millis(5);

/// Directories that are made once for all runs, and kept: those of the ledger.
const KEPT: &[&str] = &["teamster", "teamster/runs"];

/// A cell being played.
struct Stage {
    place: Place,
    env: Option<TestEnv>,
    project: PathBuf,
    census: Census,
    host: Host,
    said: String,
    warned: Option<WarningCode>,
    /// Processes that are to live on.
    kept: BTreeSet<u32>,
    host_is_dead: bool,
    helpers: Option<(u32, u32)>,
    /// Since the last moment that has come.
    clock: Instant,
    crowd: Crowd,
}

/// Plays a cell.
pub(crate) fn play(row: &Row, column: Column, expected: Expected) -> Result<()> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio.block_on(async {
        let place = Place::new(column)?;
        let mut fault = (row.make)(&place);
        let steps = std::mem::take(&mut fault.steps);
        let mut stage = Stage::set(place, fault).await?;
        let played = stage.play(steps, expected).await;
        let left = stage.census.living();
        stage.census.kill_all();
        played.with_context(|| stage.report(&left))
    })
}

impl Stage {
    /// Makes everything ready and starts the host.
    async fn set(place: Place, fault: Fault) -> Result<Self> {
        let census = Census::new(&place.token);
        let mut env = None;
        let (agent, mut request, mut environment) = match place.column {
            Column::Fake => ("claude", fake_request(&place), fake_environment(&place)?),
            Column::Real(agent) => {
                let scenario = match &fault.cli {
                    Cli::Real(scenario) => scenario.clone(),
                    _ => agent.reply().into(),
                };
                let env = env.insert(agent.test_env(scenario).await?);
                let mut request = agent.request(env, "Go.");
                request.permissions.mode = PermissionMode::Full;
                (agent.name, request, env.environment().to_vec())
            }
        };
        let cli = match (&fault.cli, &request.cli_path) {
            (Cli::File(file), _) => file.clone(),
            (Cli::Fake(script), _) => {
                fs::write(place.path("script"), script.to_json())?;
                request.env.insert(SCRIPT_ENV.to_owned(), place.path("script").display().to_string());
                place.wrapper(&std::env::current_exe()?, &fault.shell)?
            }
            (Cli::Real(_), Some(cli)) => place.wrapper(cli, &fault.shell)?,
            (Cli::Real(_), None) => bail!("the test names no CLI"),
        };
        request.cli_path = Some(cli);
        // What the CLI itself leaves in such places is its own affair.
        for (name, directory) in
            [("TMPDIR", "cli-tmp"), ("XDG_RUNTIME_DIR", "cli-tmp"), ("XDG_STATE_HOME", "cli-state")]
        {
            request.env.insert(name.to_owned(), place.path(directory).display().to_string());
        }
        // For a private file.
        request.system_prompt = Some("Be brief.".to_owned());
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
        fs::write(place.path("spec"), serde_json::to_vec(&spec)?)?;
        environment.push((MARK.into(), place.token.clone().into()));
        for (name, directory) in [("XDG_RUNTIME_DIR", "runtime"), ("TMPDIR", "tmp"), ("XDG_STATE_HOME", "state")] {
            environment.push((name.into(), place.path(directory).into()));
        }
        let host = Host::start(&fault.host_shell, &place.path("spec"), |command| _ = command.envs(environment))?;
        census.set_host(host.pid());
        let clock = Instant::now();
        let (said, warned) = (fault.said, fault.warned);
        let (kept, host_is_dead, crowd) = (BTreeSet::new(), false, Crowd::default());
        Ok(Self { place, env, project, census, host, said, warned, kept, host_is_dead, helpers: None, clock, crowd })
    }

    async fn play(&mut self, steps: Vec<Step>, expected: Expected) -> Result<()> {
        for step in steps {
            self.step(step).await?;
        }
        let took = self.end(expected).await?;
        let within = self.crowd.stretch(expected.within);
        ensure!(took <= within, "it took {took:?}, more than {within:?}");
        if !self.host_is_dead {
            self.host.dismiss();
            self.until("the host's exit", PATIENCE, |stage| Ok(stage.host.exit()?.is_some())).await?;
            self.nothing_remains(AFTER).await?;
            self.kept_live()?;
        }
        Ok(())
    }

    async fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Await(moment) => {
                self.until(&format!("{moment:?}"), PATIENCE, |stage| Ok(stage.has_come(moment))).await?;
                // Whom the end must find.
                self.census.living();
                self.start_clock();
            }
            Step::Say(word) => self.host.say(word)?,
            Step::Signal(signal) => census::signal(self.place.leader().context("no leader")?, signal),
            Step::Helper(helper, signal) => {
                let (keeper, supervisor) = self.helpers()?;
                let pid = if helper == Helper::Keeper { keeper } else { supervisor };
                census::signal(pid, signal);
                self.start_clock();
            }
            Step::KillHost => {
                self.host.kill()?;
                self.host_is_dead = true;
                self.start_clock();
            }
            Step::HaltHost => census::signal(self.host.pid(), Signal::STOP),
            Step::ContinueHostAfter(time) => {
                tokio::time::sleep(time).await;
                census::signal(self.host.pid(), Signal::CONT);
                self.start_clock();
            }
            Step::RemoveProject => fs::remove_dir_all(&self.project)?,
            Step::Touch(name) => fs::write(self.place.path(name), "")?,
        }
        Ok(())
    }

    /// The keeper and the supervisor. When one of them is gone, nothing leads to them any more.
    fn helpers(&mut self) -> Result<(u32, u32)> {
        if let Some(helpers) = self.helpers {
            return Ok(helpers);
        }
        let keeper = self.place.leader().and_then(census::parent).context("no keeper")?;
        let supervisor = census::parent(keeper).context("no supervisor")?;
        Ok(*self.helpers.insert((keeper, supervisor)))
    }

    fn has_come(&self, moment: Moment) -> bool {
        let said = || self.host.heard().text().contains(&self.said);
        let sleeps = || {
            let command = format!("sleep {}", self.place.token);
            self.census.living().iter().any(|process| process.command == command)
        };
        match moment {
            Moment::Running => self.place.leader().is_some(),
            Moment::Said => said(),
            Moment::Streaming => {
                said()
                    && match &self.env {
                        Some(env) => env.provider().gate(GATE).is_reached(),
                        None => true,
                    }
            }
            Moment::Tool => {
                let called = |event: &Event| matches!(event, Event::ToolUse(_));
                said()
                    && match self.place.column {
                        Column::Fake => self.host.heard().events.iter().any(called),
                        Column::Real(_) => sleeps(),
                    }
            }
            Moment::Lingering => said() && sleeps(),
            Moment::Gone => self.leader_is(|state| matches!(state, None | Some('Z' | 'X'))),
            Moment::Stopped => self.leader_is(|state| state == Some('T')),
            Moment::File(name) => self.place.path(name).exists(),
            Moment::Spilled(bytes) => census::unlinked(self.host.pid()).any(|held| held >= bytes),
        }
    }

    fn leader_is(&self, wanted: impl Fn(Option<char>) -> bool) -> bool {
        self.place.leader().is_some_and(|leader| wanted(census::state(leader)))
    }

    /// Waits for the end and looks what is left. Returns how long it took.
    async fn end(&mut self, expected: Expected) -> Result<Duration> {
        if self.host_is_dead {
            // The end has no herald: it has come when nothing is left.
            self.nothing_remains(expected.within).await?;
            return Ok(self.clock.elapsed());
        }
        let unread = expected.end == End::Unread;
        self.until("the end", PATIENCE.max(expected.within), |stage| {
            let heard = stage.host.heard();
            ensure!(!heard.closed || heard.ended.is_some(), "the host ended by itself");
            Ok(if unread { heard.ended.is_some() } else { heard.done.is_some() || heard.ended.is_some() })
        })
        .await?;
        self.note_kept(expected.kept)?;
        self.nothing_of_the_run_is_left()?;
        let at = {
            let heard = self.host.heard();
            heard.done.or(heard.ended).context("no end")?
        };
        self.until("the end of all", PATIENCE, |stage| Ok(stage.host.heard().ended.is_some())).await?;
        self.nothing_of_the_run_is_left()?;
        self.nothing_remains(AFTER).await?;
        if unread {
            ensure!(!self.host.heard().events.iter().any(|event| matches!(event, Event::Done(_))), "somebody read it");
        } else {
            self.one_end(expected.end)?;
        }
        Ok(at.saturating_duration_since(self.clock))
    }

    /// Exactly one `done`, as expected, and every byte before it.
    fn one_end(&self, expected: End) -> Result<()> {
        let heard = self.host.heard();
        if heard.survived.is_empty() {
            let result = result_of(&heard.events)?;
            compare(result, expected)?;
            let lost = lost(self.place.column, &self.said, &result.text);
            ensure!(lost == 0, "{lost} bytes lost: {:?}", shown(&result.text));
            if let Some(code) = &self.warned {
                let warns = |event: &Event| matches!(event, Event::Warning(warning) if warning.code == *code);
                ensure!(heard.events.iter().any(warns), "no warning {code:?}");
            }
        }
        for (after_us, events) in &heard.survived {
            let result = result_of(events).with_context(|| format!("aborted after {after_us} us"))?;
            compare(result, expected).with_context(|| format!("aborted after {after_us} us"))?;
            ensure!(result.left_processes.is_empty(), "it left {:?}", result.left_processes);
            ensure!(self.said.starts_with(result.text.as_str()), "{:?} was never said", shown(&result.text));
        }
        Ok(())
    }

    fn start_clock(&mut self) {
        (self.clock, self.crowd) = (Instant::now(), Crowd::default());
    }

    /// Nobody and nothing is left within a bound, of Teamster's own neither.
    async fn nothing_remains(&mut self, bound: Duration) -> Result<()> {
        let began = Instant::now();
        while let Err(left) = self.nothing_is_left(&self.others()) {
            let bound = self.crowd.stretch(bound);
            ensure!(began.elapsed() < bound, "{left:#}, {bound:?} later");
            self.crowd.look();
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// The run has ended, and with it everybody who descends from its CLI.
    fn nothing_of_the_run_is_left(&self) -> Result<()> {
        let mut living = self.others();
        living.retain(|process| !process.is_teamster());
        self.nothing_is_left(&living)
    }

    /// Who lives without being kept.
    fn others(&self) -> Vec<census::Process> {
        self.census.living().into_iter().filter(|process| !self.kept.contains(&process.pid)).collect()
    }

    /// The processes that `done` names are as many as expected, alive, and called so.
    fn note_kept(&mut self, expected: usize) -> Result<()> {
        let named = match self.host.heard().events.last() {
            Some(Event::Done(done)) => done.result.left_processes.clone(),
            _ => Vec::new(),
        };
        ensure!(named.len() == expected, "{} processes are named as left, not {expected}: {named:?}", named.len());
        let living = self.census.living();
        for left in &named {
            let lives =
                |process: &census::Process| (process.pid, process.name.as_str()) == (left.pid, left.name.as_str());
            ensure!(living.iter().any(lives), "{left:?} does not live on");
        }
        self.kept = named.iter().map(|left| left.pid).collect();
        ensure!(self.kept.len() == expected, "somebody is named twice: {named:?}");
        Ok(())
    }

    /// They still live.
    fn kept_live(&self) -> Result<()> {
        let living: BTreeSet<_> = self.census.living().iter().map(|process| process.pid).collect();
        let gone: Vec<_> = self.kept.difference(&living).collect();
        ensure!(gone.is_empty(), "{gone:?} were to be kept and are gone");
        Ok(())
    }

    fn nothing_is_left(&self, living: &[census::Process]) -> Result<()> {
        let names: Vec<_> = living.iter().map(ToString::to_string).collect();
        ensure!(living.is_empty(), "{} processes left: {names:?}", names.len());
        ensure!(!storm::blows(&self.place.path("")), "the storm still blows");
        let files: Vec<_> = ["runtime", "tmp", "state"].iter().flat_map(|name| self.files(name)).collect();
        ensure!(files.is_empty(), "{} files left: {files:?}", files.len());
        Ok(())
    }

    /// Files that are left, as the host sees them: it may have a disk of its own there.
    fn files(&self, name: &str) -> Vec<PathBuf> {
        let path = self.place.path(name);
        let root = PathBuf::from(format!("/proc/{}/root", self.host.pid()));
        let seen = path.strip_prefix("/").map_or_else(|_| path.clone(), |inside| root.join(inside));
        let directory = if seen.is_dir() { seen } else { path };
        census::files(&directory, KEPT)
    }

    async fn until(
        &mut self,
        what: &str,
        bound: Duration,
        condition: impl Fn(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        let began = Instant::now();
        while !condition(self)? {
            ensure!(began.elapsed() < bound, "never came: {what}");
            self.crowd.look();
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// What is to be known when a cell fails.
    fn report(&self, left: &[census::Process]) -> String {
        let heard = self.host.heard();
        let from = heard.events.len().saturating_sub(12);
        let events: Vec<_> = heard
            .events
            .iter()
            .skip(from)
            .map(|event| shown(&serde_json::to_string(event).unwrap_or_default()))
            .collect();
        let left: Vec<_> = left.iter().map(ToString::to_string).collect();
        format!(
            "the last of {} events:\n  {}\nthe host's noise: {}\nstill there: {left:?}\n",
            heard.events.len(),
            events.join("\n  "),
            shown(&heard.noise),
        )
    }
}

fn fake_request(place: &Place) -> RunRequest {
    let mut request = RunRequest::new("Go.");
    request.cwd = Some(place.path("project"));
    request.limits.deadline = teamster_conformance::DEADLINE;
    request
}

fn fake_environment(place: &Place) -> Result<Vec<(OsString, OsString)>> {
    let path = std::env::var_os("PATH").context("there is no PATH")?;
    Ok(vec![("PATH".into(), path), ("HOME".into(), place.path("home").into()), ("LANG".into(), "C.UTF-8".into())])
}
