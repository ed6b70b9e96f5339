//! Inspects an agent's CLI: whether it is found and executable, its version, and its credentials. No model is called.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use teamster_agents::agent::Capabilities;
use teamster_process::{Frame, Output, OutputReader, PrivateDir, ProcessTree, Spawn, Stdin, find_program};
use teamster_types::event::Credential;
use teamster_types::request::RunRequest;
use tokio::time::timeout;

use crate::registry::UnknownAgent;
use crate::runtime::Runtime;
use crate::setup::credential;
use crate::setup::environment::without_keys;
use crate::tokio_check;

/// The time limit for `--version`. The slowest CLI needs 8 s on a cold disk.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// The time limit for the reason that a failed CLI has printed. A remaining process may keep the pipe open.
const STDERR_LIMIT: Duration = Duration::from_secs(1);

/// The state of an agent's CLI on this machine ([`Runtime::inspect`]).
///
/// ```no_run
/// # async fn example() -> Result<(), teamster::UnknownAgent> {
/// let found = teamster::Runtime::new().inspect("claude", None).await?;
/// if let Some(problem) = &found.problem {
///     eprintln!("{} cannot run: {problem}", found.agent);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Inspection {
    /// The agent's name.
    pub agent: String,
    /// The path of its CLI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// The version that the CLI reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version that Teamster was tested with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tested_version: Option<&'static str>,
    /// How `version` compares to `tested_version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_status: Option<VersionStatus>,
    /// The names of credential variables that are set and of credential files that exist; never their content.
    pub credentials: Vec<String>,
    /// The credential that a run uses, if that is certain. Its account or plan is billed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<Credential>,
    /// Why the CLI cannot run, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Inspection {
    /// Returns whether the CLI can run. Whether the vendor accepts its credentials is not checked.
    pub fn can_run(&self) -> bool {
        self.problem.is_none()
    }
}

/// How an installed version compares to the tested one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum VersionStatus {
    /// It is the tested one.
    Tested,
    /// It is older: it may lack features that Teamster uses.
    Older,
    /// It is newer: its output may differ.
    Newer,
}

/// Whether an agent can be used, as far as that is known without starting its CLI ([`Runtime::readiness`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Readiness {
    /// Its program is not in `PATH`.
    NotInstalled,
    /// Its program is in `PATH`. No credentials were found; there may be some that only the CLI knows.
    NoCredentials,
    /// Its program is in `PATH`, and there are credentials.
    Ready,
}

impl Runtime {
    /// Returns whether an agent can be used, without starting its CLI. It only looks for files and variables.
    ///
    /// # Errors
    /// The agent is unknown.
    pub fn readiness(&self, agent: &str) -> Result<Readiness, UnknownAgent> {
        let agent = self.registry().get(agent)?;
        if agent.program().is_none_or(|program| self.find(program).is_err()) {
            return Ok(Readiness::NotInstalled);
        }
        let has_credentials = agent.capabilities().is_some_and(|known| !self.credentials(known).is_empty());
        Ok(if has_credentials { Readiness::Ready } else { Readiness::NoCredentials })
    }

    /// Inspects an agent's CLI: the one with this path, or the agent's usual program.
    ///
    /// # Errors
    /// The agent is unknown. A problem of a known agent is in [`Inspection::problem`].
    pub async fn inspect(&self, agent: &str, cli_path: Option<&Path>) -> Result<Inspection, UnknownAgent> {
        let agent = self.registry().get(agent)?;
        let capabilities = agent.capabilities();
        let mut found = Inspection {
            agent: agent.name().to_owned(),
            program: None,
            version: None,
            tested_version: capabilities
                .map(|capabilities| capabilities.tested_version)
                .filter(|tested| !tested.is_empty()),
            version_status: None,
            credentials: capabilities.map(|capabilities| self.credentials(capabilities)).unwrap_or_default(),
            credential: credential::find(&*agent, &RunRequest::default(), self.environment()),
            problem: None,
        };
        let name = cli_path.or_else(|| agent.program()).filter(|name| !name.as_os_str().is_empty());
        let Some(name) = name else {
            found.problem = Some("it has no program of its own: name one in `cli_path`".to_owned());
            return Ok(found);
        };
        // An untested agent may not support `--version`.
        if found.tested_version.is_none() {
            match self.find(name) {
                Ok((program, _)) => found.program = Some(program),
                Err(problem) => found.problem = Some(problem),
            }
            return Ok(found);
        }
        if let Err(problem) = tokio_check::check() {
            found.problem = Some(problem.to_string());
            return Ok(found);
        }
        match self.version(name, &mut found.program).await {
            Ok(version) => {
                found.version_status = found.tested_version.and_then(|tested| compare(&version, tested));
                found.version = Some(version);
            }
            Err(problem) => {
                let install = capabilities.map(|capabilities| format!("; npm install -g {}", capabilities.package));
                let missing = found.program.is_none();
                found.problem = Some(problem + install.filter(|_| missing).as_deref().unwrap_or_default());
            }
        }
        Ok(found)
    }

    fn credentials(&self, capabilities: &Capabilities) -> Vec<String> {
        let is_set = |name: &&&str| self.variable(name).is_some_and(|value| !value.is_empty());
        let variables = capabilities.credential_variables.iter().filter(is_set).map(|name| (*name).to_owned());
        let home = self.variable("HOME").map(PathBuf::from);
        let is_there = |file: &&&str| home.as_ref().is_some_and(|home| home.join(file).is_file());
        let files = capabilities.credential_files.iter().filter(is_there).map(|file| format!("~/{file}"));
        variables.chain(files).chain(self.configured_keys(capabilities)).collect()
    }

    /// Returns the names of variables with credentials that the configuration of the CLI names, and that are set.
    fn configured_keys(&self, capabilities: &Capabilities) -> Vec<String> {
        let Some(keys) = &capabilities.configured_keys else { return Vec::new() };
        let home = match self.variable(keys.home_variable).filter(|home| !home.is_empty()) {
            Some(home) => Some(PathBuf::from(home)),
            None => self.variable("HOME").map(|home| Path::new(home).join(keys.default_home)),
        };
        let content = home.and_then(|home| std::fs::read_to_string(home.join(keys.file)).ok()).unwrap_or_default();
        let is_set = |name: &String| self.variable(name).is_some_and(|value| !value.is_empty());
        (keys.read)(&content).into_iter().filter(is_set).collect()
    }

    fn variable(&self, name: &str) -> Option<&OsString> {
        self.environment().get(&OsString::from(name))
    }

    /// Returns a program's path, and the directory from which it was searched.
    fn find(&self, name: &Path) -> Result<(PathBuf, PathBuf), String> {
        let cwd = std::env::current_dir().map_err(|error| error.to_string())?;
        let path = self.variable("PATH").map(OsString::as_os_str);
        let found = find_program(name.as_os_str(), path, &cwd).map_err(|error| error.to_string())?;
        Ok((found, cwd))
    }

    async fn version(&self, name: &Path, program: &mut Option<PathBuf>) -> Result<String, String> {
        let (found, cwd) = self.find(name)?;
        *program = Some(found.clone());
        // Some CLIs create files even for `--version`, so it gets a home directory of its own.
        let home = PrivateDir::create(None, "version").map_err(|error| error.to_string())?;
        let mut env = without_keys(self.environment(), self.registry());
        env.insert("HOME".into(), home.path().into());
        let spawn = Spawn {
            program: found,
            args: vec!["--version".into()],
            env,
            cwd,
            stdin: Stdin::Null,
            output: Output::Stdout,
        };
        let (tree, pipes) =
            ProcessTree::spawn(self.supervisor(), &spawn, None).await.map_err(|error| error.to_string())?;
        let mut output = OutputReader::new(pipes.stdout, 64 << 10);
        let mut errors = OutputReader::new(pipes.stderr, 64 << 10);
        let printed = timeout(VERSION_LIMIT, first_line(&mut output)).await;
        tree.terminate(Duration::from_millis(500)).await;
        let exit = tree.exited().await;
        match printed {
            Ok(Some(line)) => {
                number(&line).ok_or_else(|| format!("`--version` printed {line:?}, which is not a version"))
            }
            Ok(None) => {
                let reason = timeout(STDERR_LIMIT, first_line(&mut errors)).await.ok().flatten();
                let reason = reason.map(|line| format!(": {line}")).unwrap_or_default();
                Err(format!("`--version` printed nothing and {exit}{reason}"))
            }
            Err(_) => Err(format!("`--version` printed nothing within {} s", VERSION_LIMIT.as_secs())),
        }
    }
}

async fn first_line(output: &mut OutputReader) -> Option<String> {
    loop {
        let count = output.fill().await.ok()?;
        while let Some(frame) = if count == 0 { output.finish() } else { output.next() } {
            match frame {
                Frame::Line(line) | Frame::Unterminated(line) if !line.is_empty() => {
                    return Some(String::from_utf8_lossy(line).chars().take(200).collect());
                }
                _ => {}
            }
        }
        if count == 0 {
            return None;
        }
    }
}

/// Returns the version in a line such as `2.1.197 (Claude Code)` or `codex-cli 0.169.0`.
fn number(line: &str) -> Option<String> {
    let words = line.split_whitespace().map(|word| word.trim_start_matches('v'));
    words.into_iter().find(|word| parts(word).is_some()).map(str::to_owned)
}

fn compare(version: &str, tested: &str) -> Option<VersionStatus> {
    Some(match parts(version)?.cmp(&parts(tested)?) {
        std::cmp::Ordering::Less => VersionStatus::Older,
        std::cmp::Ordering::Equal => VersionStatus::Tested,
        std::cmp::Ordering::Greater => VersionStatus::Newer,
    })
}

/// Returns major, minor and patch. A suffix after `-` or `+` is ignored.
fn parts(version: &str) -> Option<[u64; 3]> {
    let mut numbers = version.split(['-', '+']).next()?.split('.').map(|part| part.parse().ok());
    let parts = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_wherever_the_cli_puts_it() {
        for (line, version) in [
            ("2.1.197 (Claude Code)", Some("2.1.197")),
            ("codex-cli 0.169.0", Some("0.169.0")),
            ("v1.2.3-beta.1", Some("1.2.3-beta.1")),
            ("usage: claude", None),
            ("1.2", None),
        ] {
            assert_eq!(number(line).as_deref(), version);
        }
    }

    #[test]
    fn versions_compare_by_number() {
        assert_eq!(compare("2.1.197", "2.1.197"), Some(VersionStatus::Tested));
        assert_eq!(compare("2.1.20", "2.1.197"), Some(VersionStatus::Older));
        assert_eq!(compare("10.0.0", "2.1.197"), Some(VersionStatus::Newer));
        assert_eq!(compare("latest", "2.1.197"), None);
    }
}
