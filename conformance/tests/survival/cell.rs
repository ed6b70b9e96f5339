//! Plays a cell of the table: makes the fault, waits for the end, and compares with what the table says.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use teamster::RunRequest;
use teamster::event::{Event, RunResult};
use teamster::request::PermissionMode;
use teamster_conformance::Lab;
use teamster_testkit::check::check;
use teamster_testkit::fake::SCRIPT_ENV;

use crate::caller::Host;
use crate::census::{self, Census, MARK};
use crate::fault::{Cli, Fault, Moment, Start, Step};
use crate::host::Spec;
use crate::place::{GATE, Place};
use crate::row::{Column, End, Expected, Row};

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
    lab: Option<Lab>,
    project: PathBuf,
    census: Census,
    host: Host,
    said: String,
    host_is_dead: bool,
    clock: Instant,
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
        let mut lab = None;
        let (agent, mut request, mut environment) = match place.column {
            Column::Fake => ("claude", fake_request(&place), fake_environment(&place)?),
            Column::Real(agent) => {
                let scenario = match &fault.cli {
                    Cli::Real(scenario) => scenario.clone(),
                    _ => agent.reply().into(),
                };
                let lab = lab.insert(agent.lab(scenario).await?);
                let mut request = agent.request(lab, "Go.");
                request.permissions.mode = PermissionMode::Full;
                (agent.name, request, lab.environment().to_vec())
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
            (Cli::Real(_), None) => bail!("the lab names no CLI"),
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
        let (pause_ms, abort_at_once, storm_us) = match fault.start {
            Start::Eager => (0, false, Vec::new()),
            Start::Slowly(pause_ms) => (pause_ms, false, Vec::new()),
            Start::Aborted => (0, true, Vec::new()),
            Start::Storm(storm_us) => (0, false, storm_us),
        };
        let spec = Spec { agent: agent.to_owned(), request, pause_ms, abort_at_once, storm_us };
        fs::write(place.path("spec"), serde_json::to_vec(&spec)?)?;
        environment.push((MARK.into(), place.token.clone().into()));
        for (name, directory) in [("XDG_RUNTIME_DIR", "runtime"), ("TMPDIR", "tmp"), ("XDG_STATE_HOME", "state")] {
            environment.push((name.into(), place.path(directory).into()));
        }
        let host = Host::start(&fault.host_shell, &place.path("spec"), |command| _ = command.envs(environment))?;
        census.set_host(host.pid());
        let clock = Instant::now();
        Ok(Self { place, lab, project, census, host, said: fault.said, host_is_dead: false, clock })
    }

    async fn play(&mut self, steps: Vec<Step>, expected: Expected) -> Result<()> {
        for step in steps {
            self.step(step).await?;
        }
        let took = self.end(expected).await?;
        ensure!(took <= expected.within, "it took {took:?}, more than {:?}", expected.within);
        if !self.host_is_dead {
            self.host.dismiss();
            self.until("the host's exit", |stage| Ok(stage.host.exit()?.is_some())).await?;
            self.nothing_remains(AFTER).await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: Step) -> Result<()> {
        match step {
            Step::Await(moment) => {
                self.until(&format!("{moment:?}"), |stage| Ok(stage.has_come(moment))).await?;
                // Whom the end must find.
                self.census.living();
                self.clock = Instant::now();
            }
            Step::Say(word) => self.host.say(word)?,
            Step::Signal(signal) => census::signal(self.place.leader().context("no leader")?, signal),
            Step::KillHost => {
                self.host.kill()?;
                self.host_is_dead = true;
                self.clock = Instant::now();
            }
            Step::RemoveProject => fs::remove_dir_all(&self.project)?,
            Step::Touch(name) => fs::write(self.place.path(name), "")?,
        }
        Ok(())
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
                    && match &self.lab {
                        Some(lab) => lab.provider().gate(GATE).is_reached(),
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
        }
    }

    fn leader_is(&self, wanted: impl Fn(Option<char>) -> bool) -> bool {
        self.place.leader().is_some_and(|leader| wanted(census::state(leader)))
    }

    /// Waits for the end and looks what is left. Returns how long it took.
    async fn end(&mut self, expected: Expected) -> Result<Duration> {
        if self.host_is_dead {
            // The end has no herald: it has come when nothing is left.
            let bound = expected.within.saturating_sub(self.clock.elapsed());
            self.nothing_remains(bound).await?;
            return Ok(self.clock.elapsed());
        }
        let unread = expected.end == End::Unread;
        self.until("the end", |stage| {
            let heard = stage.host.heard();
            ensure!(!heard.closed || heard.ended.is_some(), "the host ended by itself");
            Ok(if unread { heard.ended.is_some() } else { heard.done.is_some() || heard.ended.is_some() })
        })
        .await?;
        self.nothing_of_the_run_is_left()?;
        let at = {
            let heard = self.host.heard();
            heard.done.or(heard.ended).context("no end")?
        };
        self.until("the end of all", |stage| Ok(stage.host.heard().ended.is_some())).await?;
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
            let lost = self.lost(&result.text);
            ensure!(lost == 0, "{lost} bytes lost: {:?}", shown(&result.text));
        }
        for (after_us, events) in &heard.survived {
            let result = result_of(events).with_context(|| format!("aborted after {after_us} us"))?;
            compare(result, expected).with_context(|| format!("aborted after {after_us} us"))?;
            ensure!(self.said.starts_with(&result.text), "{:?} was never said", shown(&result.text));
        }
        Ok(())
    }

    /// Bytes of what the CLI had said that did not arrive. The fake agent's words are known to the last; a real CLI may add
    /// some after the fault.
    fn lost(&self, text: &str) -> usize {
        let whole = match self.place.column {
            Column::Fake => text == self.said,
            Column::Real(_) => text.contains(&self.said),
        };
        if whole {
            return 0;
        }
        let common = text.bytes().zip(self.said.bytes()).take_while(|(one, other)| one == other).count();
        self.said.len().saturating_sub(common).max(1)
    }

    /// Nobody and nothing is left within a bound, of Teamster's own neither.
    async fn nothing_remains(&self, bound: Duration) -> Result<()> {
        let began = Instant::now();
        while let Err(left) = self.nothing_is_left(&self.census.living()) {
            ensure!(began.elapsed() < bound, "{left:#}, {bound:?} later");
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// The run has ended, and with it everybody who descends from its CLI.
    fn nothing_of_the_run_is_left(&self) -> Result<()> {
        let mut living = self.census.living();
        living.retain(|process| !process.is_teamster());
        self.nothing_is_left(&living)
    }

    fn nothing_is_left(&self, living: &[census::Process]) -> Result<()> {
        let names: Vec<_> = living.iter().map(ToString::to_string).collect();
        ensure!(living.is_empty(), "{} processes left: {names:?}", names.len());
        let files: Vec<_> =
            ["runtime", "tmp", "state"].iter().flat_map(|name| census::files(&self.place.path(name), KEPT)).collect();
        ensure!(files.is_empty(), "{} files left: {files:?}", files.len());
        Ok(())
    }

    async fn until(&mut self, what: &str, condition: impl Fn(&mut Self) -> Result<bool>) -> Result<()> {
        let began = Instant::now();
        while !condition(self)? {
            ensure!(began.elapsed() < PATIENCE, "never came: {what}");
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

/// The stream keeps its rules, exactly one `done` among them; what it came to.
fn result_of(events: &[Event]) -> Result<&RunResult> {
    if let Err(violations) = check(events) {
        bail!("the stream breaks its rules: {violations:?}");
    }
    let dones = events.iter().filter(|event| matches!(event, Event::Done(_))).count();
    ensure!(dones == 1, "{dones} times done");
    match events.last() {
        Some(Event::Done(done)) => Ok(&done.result),
        other => bail!("the last event is {other:?}"),
    }
}

fn compare(result: &RunResult, expected: End) -> Result<()> {
    let code = result.error_code.as_ref().map(teamster::event::ErrorCode::as_str);
    let fits = match expected {
        End::Success => code.is_none(),
        End::Error(wanted) => code == Some(wanted),
        End::Either(wanted) => code.is_none_or(|code| code == wanted),
        End::Unread => false,
    };
    ensure!(fits && result.is_error == code.is_some(), "it ended with {code:?} instead of {expected:?}");
    Ok(())
}

/// The beginning of a text that may be long.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(600).collect();
    if short.len() < text.len() { format!("{short}… ({} bytes)", text.len()) } else { short }
}
