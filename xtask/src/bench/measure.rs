//! Runs the subjects of a row in turn.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::bench::machine;
use crate::bench::peers::{Peers, inherited};
use crate::bench::results::{Measured, Sample};
use crate::bench::rows::Row;
use crate::bench::subjects::{Programs, Subject};
use crate::command::{cargo, run as run_command, target_directory};

/// A subject that takes longer is left out of the row.
const LIMIT: Duration = Duration::from_mins(2);

/// Builds what is measured, for release.
pub(crate) fn build() -> Result<()> {
    run_command(cargo(&["build", "--release", "--quiet", "--package", "teamster-cli", "--bin", "teamster"]))?;
    build_examples()
}

/// Builds what is measured besides the command.
pub(crate) fn build_examples() -> Result<()> {
    run_command(cargo(&["build", "--release", "--quiet", "--package", "teamster-benches", "--examples"]))
}

/// Programs and a private home for them.
pub(crate) struct Bench<'a> {
    programs: Programs<'a>,
    home: tempfile::TempDir,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(peers: &'a Peers) -> Result<Self> {
        let home = tempfile::Builder::new().prefix("teamster-bench-").tempdir().context("cannot make a home")?;
        for folder in ["home", "project", "tmp", "bin"] {
            fs::create_dir(home.path().join(folder)).context("cannot make a home")?;
        }
        let release = target_directory()?.join("release");
        Ok(Self { programs: Programs { peers, release }, home })
    }

    /// Runs all subjects of a row once, and again, so that what changes on the machine changes for all.
    pub(crate) fn measure(&self, row: &Row, rounds: u32) -> Result<Measured> {
        let cli = self.fake_cli(row)?;
        let mut measured = Measured::default();
        for round in 1..=rounds {
            for subject in &row.subjects {
                if measured.failures.contains_key(subject.name) {
                    continue;
                }
                println!("{}, round {round} of {rounds}: {}", row.name, subject.name);
                match self.sample(row, *subject, &cli) {
                    Ok(sample) => measured.samples.entry(subject.name.to_owned()).or_default().push(sample),
                    Err(error) => {
                        println!("  left out: {error:#}");
                        measured.failures.insert(subject.name.to_owned(), format!("{error:#}"));
                        measured.samples.remove(subject.name);
                    }
                }
            }
        }
        Ok(measured)
    }

    /// Puts the fake CLI in place, with its scenario.
    fn fake_cli(&self, row: &Row) -> Result<PathBuf> {
        let cli = self.home.path().join("bin").join(row.form.agent());
        let fake = self.programs.release.join("examples/fake_cli");
        if !cli.exists() {
            fs::copy(&fake, &cli).with_context(|| format!("cannot copy {}", fake.display()))?;
        }
        let mut scenario = row.scenario.clone();
        if let Some(scenario) = scenario.as_object_mut() {
            scenario.insert("agent".to_owned(), row.form.agent().into());
        }
        fs::write(cli.with_extension("json"), scenario.to_string()).context("cannot write a scenario")?;
        Ok(cli)
    }

    fn sample(&self, row: &Row, subject: Subject, cli: &Path) -> Result<Sample> {
        let missing = self.programs.peers.missing.iter();
        if let Some((_, reason)) = missing.into_iter().find(|(language, _)| subject.language() == Some(*language)) {
            bail!("not installed: {reason}");
        }
        let mut command = subject.command(&self.programs, (row.task, row.form, row.runs), cli);
        command.env_clear().envs(inherited()).current_dir(self.home.path().join("project"));
        command.env("HOME", self.home.path().join("home")).env("TMPDIR", self.home.path().join("tmp"));
        let mut sample = run(command, subject, cli)?;
        derive(&mut sample);
        complete(row, &sample)?;
        Ok(sample)
    }
}

/// Starts a subject and reads its line of JSON. If it reports that its runs are live, their memory is measured.
fn run(mut command: Command, subject: Subject, cli: &Path) -> Result<Sample> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start it")?;
    let (lines, stderr) = (read_lines(child.stdout.take()), read_lines(child.stderr.take()));
    let mut memory = Sample::new();
    let result = loop {
        match lines.recv_timeout(LIMIT) {
            Ok(line) if line == "ready" => {
                memory = live_memory(&child, subject, cli);
                drop(child.stdin.take().map(|mut stdin| stdin.write_all(b"\n")));
            }
            Ok(line) if line.starts_with('{') => break serde_json::from_str(&line).context("its line is invalid"),
            Ok(_) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => break Err(anyhow!("no result within {} s", LIMIT.as_secs())),
            Err(mpsc::RecvTimeoutError::Disconnected) => break Err(anyhow!("it failed: {}", reason(&stderr))),
        }
    };
    if result.is_err() {
        let _gone = child.kill();
    }
    child.wait().context("cannot wait for it")?;
    let mut sample: Sample = result?;
    sample.extend(memory);
    Ok(sample)
}

fn read_lines(from: Option<impl std::io::Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in from.into_iter().flat_map(|from| BufReader::new(from).lines()).map_while(Result::ok) {
            let _unread = sender.send(line);
        }
    });
    lines
}

/// Returns the line of standard error that names an error, or the last one.
fn reason(stderr: &mpsc::Receiver<String>) -> String {
    let lines: Vec<String> = stderr.iter().collect();
    let error = lines.iter().find(|line| line.contains("Error") || line.contains("panicked"));
    error.or(lines.last()).map(|line| line.chars().take(200).collect()).unwrap_or_default()
}

/// The memory of the host and of its helpers, without the CLIs.
fn live_memory(child: &Child, subject: Subject, cli: &Path) -> Sample {
    let processes = machine::descendants(child.id());
    let mut kib = (0, 0);
    for pid in processes.into_iter().filter(|pid| machine::program(*pid).as_deref() != Some(cli)) {
        let pss = machine::pss_kib(pid);
        let is_host = if subject.is_outside() { machine::parent(pid) == Some(child.id()) } else { pid == child.id() };
        match (is_host, pid == child.id()) {
            (true, _) => kib.0 += pss,
            (false, true) => {} // the program that only measures
            (false, false) => kib.1 += pss,
        }
    }
    let mib = |kib: u32| f64::from(kib) / 1024.0;
    Sample::from([
        ("host_mib".to_owned(), mib(kib.0)),
        ("helpers_mib".to_owned(), mib(kib.1)),
        ("total_mib".to_owned(), mib(kib.0 + kib.1)),
    ])
}

/// Fails if a subject did not report all deltas: then its numbers have no meaning.
fn complete(row: &Row, sample: &Sample) -> Result<()> {
    let deltas =
        row.scenario.get("deltas").and_then(serde_json::Value::as_f64).unwrap_or_default() * f64::from(row.runs);
    match sample.get("events") {
        Some(events) if *events < deltas => bail!("it reported {events} of {deltas} deltas"),
        _ => Ok(()),
    }
}

/// Adds the numbers that follow from others.
fn derive(sample: &mut Sample) {
    let get = |name: &str| sample.get(name).copied();
    let helpers = get("helpers_cpu_us").unwrap_or_default();
    let mut derived = Vec::new();
    if let (Some(cpu), Some(events)) = (get("cpu_us"), get("events")) {
        derived.push(("cpu_us_per_event", (cpu + helpers) / events.max(1.0)));
    }
    if let (Some(wall), Some(events)) = (get("wall_ms"), get("events")) {
        derived.push(("events_per_s", events / wall * 1000.0));
    }
    if let (Some(peak), Some(base)) = (get("peak_mib"), get("base_mib")) {
        derived.push(("growth_mib", peak - base));
    }
    sample.extend(derived.into_iter().map(|(name, value)| (name.to_owned(), value)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helper_processes_count_among_the_cpu_time_of_an_event() {
        let sample = [("cpu_us", 380.0), ("helpers_cpu_us", 20.0), ("events", 200.0), ("wall_ms", 100.0)];
        let mut sample: Sample = sample.map(|(name, value)| (name.to_owned(), value)).into();
        derive(&mut sample);
        assert_eq!((sample["cpu_us_per_event"], sample["events_per_s"]), (2.0, 2000.0));
    }
}
