//! Completion of values in a shell: agents, profiles, models and session ids.
//!
//! The shell starts the command with the variable `COMPLETE`, and the words of the command line after `--`.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap_complete::env::Shells;
use clap_complete::{CompletionCandidate, Shell};
use teamster::sessions::{SessionQuery, StoredSession};
use teamster::{Registry, Runtime};

use crate::config;
use crate::plan::SystemInputs;
use crate::printable::Printable;

/// Returns the candidates that begin with what was typed.
pub(crate) type Candidates = fn(&OsStr) -> Vec<CompletionCandidate>;

/// The variable that requests completion.
pub(crate) const VARIABLE: &str = "COMPLETE";

/// The number of sessions that are offered.
const MAX_SESSIONS: usize = 50;

/// Returns the script that makes a shell complete the command.
///
/// # Errors
/// The shell has no such script.
pub(crate) fn script(shell: Shell) -> std::io::Result<Vec<u8>> {
    let name = shell.to_string();
    let shells = Shells::builtins();
    let completer = shells.completer(&name).ok_or_else(|| std::io::Error::other("this shell is not supported"))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "teamster", "teamster", "teamster", &mut script)?;
    Ok(script)
}

/// Returns the agents, with those of the configuration file.
pub(crate) fn agents(typed: &OsStr) -> Vec<CompletionCandidate> {
    let (registry, _) = config::registry(None, &mut SystemInputs);
    let names: Vec<CompletionCandidate> = registry.names().map(CompletionCandidate::new).collect();
    starting_with(typed, names)
}

/// Returns the profiles of the configuration file.
pub(crate) fn profiles(typed: &OsStr) -> Vec<CompletionCandidate> {
    // Without a table of settings, each setting of a profile is unknown, but the profiles are known.
    let file = config::read_user_file(None, Some(&[]), &mut SystemInputs);
    starting_with(typed, file.profiles.into_keys().map(CompletionCandidate::new).collect())
}

/// Returns the models that the agent's stored sessions used.
pub(crate) fn models(typed: &OsStr) -> Vec<CompletionCandidate> {
    let models = names_of_models(sessions(None, None));
    starting_with(typed, models.into_iter().map(CompletionCandidate::new).collect())
}

/// Returns the models that the stored sessions of an agent used.
pub(crate) fn models_of(registry: &Registry, agent: &str) -> Vec<String> {
    let mut query = SessionQuery::default();
    (query.agents, query.limit) = (vec![agent.to_owned()], Some(MAX_SESSIONS));
    let list = Runtime::builder().registry(registry.clone()).build().sessions(&query).unwrap_or_default();
    names_of_models(list.sessions)
}

fn names_of_models(sessions: Vec<StoredSession>) -> Vec<String> {
    let mut models: Vec<String> = sessions.into_iter().filter_map(|session| session.model).map(String::from).collect();
    models.retain(|model| !model.contains(char::is_control));
    models.sort();
    models.dedup();
    models
}

/// Returns the ids of the stored sessions of the working directory, each with its agent and its title.
pub(crate) fn session_ids(typed: &OsStr) -> Vec<CompletionCandidate> {
    let directory = option("--cwd", "-C").map_or_else(|| std::env::current_dir().ok(), |cwd| Some(PathBuf::from(cwd)));
    let candidate = |session: StoredSession| {
        let title = session.title.as_ref().map(|title| Printable::message(title).to_string()).unwrap_or_default();
        CompletionCandidate::new(session.id.as_str()).help(Some(format!("{}: {title}", session.agent).into()))
    };
    // The newest sessions of those whose id starts with what was typed.
    let typed_prefix = typed.to_str().map(str::to_owned);
    starting_with(typed, sessions(directory, typed_prefix).into_iter().map(candidate).collect())
}

/// Returns the newest sessions of the agent on the command line, or of all agents.
fn sessions(directory: Option<PathBuf>, id_prefix: Option<String>) -> Vec<StoredSession> {
    let (registry, _) = config::registry(None, &mut SystemInputs);
    let mut query = SessionQuery::default();
    query.agents = option("--agent", "-a").and_then(|agent| agent.into_string().ok()).into_iter().collect();
    (query.directory, query.id_prefix) = (directory, id_prefix);
    query.limit = Some(MAX_SESSIONS);
    Runtime::builder().registry(registry).build().sessions(&query).unwrap_or_default().sessions
}

/// Returns the value of an option on the command line that is completed.
fn option(long: &str, short: &str) -> Option<OsString> {
    value_of(long, short, std::env::args_os())
}

fn value_of(long: &str, short: &str, words: impl IntoIterator<Item = OsString>) -> Option<OsString> {
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == long || word == short {
            return words.next().filter(|value| !value.is_empty());
        }
        if let Some(value) = word.to_str().and_then(|word| word.strip_prefix(long)?.strip_prefix('=')) {
            return Some(value.into());
        }
    }
    None
}

/// Returns the candidates that begin with what was typed. Control characters in a candidate would reach the terminal.
fn starting_with(typed: &OsStr, candidates: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let fits = |candidate: &CompletionCandidate| {
        let value = candidate.get_value().to_str();
        value.is_some_and(|value| value.starts_with(typed) && !value.contains(char::is_control))
    };
    candidates.into_iter().filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_of_a_command_line_is_found_in_each_form() {
        let agent = |line: &str| value_of("--agent", "-a", line.split(' ').map(OsString::from));
        for line in ["run --agent codex --resume ", "run -a codex", "run --agent=codex x"] {
            assert_eq!(agent(line), Some("codex".into()), "{line}");
        }
        for line in ["run --resume x", "run --agent", "run --agents codex"] {
            assert_eq!(agent(line), None, "{line}");
        }
    }
}
