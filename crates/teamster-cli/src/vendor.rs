//! What a person types to install an agent's CLI and to log in, and which agent is used if none is named.

use std::path::PathBuf;

use teamster::agent::Capabilities;
use teamster::{Readiness, Registry, Runtime};
use teamster_process::find_program;

use crate::printable::{Printable, printable};

/// The built-in agents, the preferred one first.
pub(crate) const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// Returns how to log in to an agent's vendor; `None` for an agent that Teamster does not know.
pub(crate) fn login(agent: &str) -> Option<&'static str> {
    Some(match agent {
        "claude" => "run `claude auth login`, or set ANTHROPIC_API_KEY",
        "codex" => "run `codex login`, or set CODEX_API_KEY",
        "gemini" => "set GEMINI_API_KEY, or run `gemini` and log in there",
        "opencode" => "run `opencode auth login`",
        _ => return None,
    })
}

/// Returns how to make an agent's login available here. The configuration of Codex can name the variable of the key.
pub(crate) fn login_here(agent: &str) -> Option<Printable> {
    match configured_variables(agent).first() {
        Some(name) => {
            Some(printable!("set {}, the key of the provider in the agent's configuration", Printable::exact(name)))
        }
        None => login(agent).map(Printable::from),
    }
}

/// Returns the variables with a key of this agent that are set.
pub(crate) fn set_keys(agent: &str) -> Vec<String> {
    let registry = Registry::default();
    let known = registry.get(agent).ok().and_then(|agent| agent.capabilities());
    let variables =
        known.map(|known| known.credential_variables).unwrap_or_default().iter().copied().map(str::to_owned);
    // Other variables choose a service, and contain no key.
    let is_key = |name: &String| name.ends_with("_KEY") || name.ends_with("_TOKEN");
    let is_set = |name: &String| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let configured = configured_variables(agent);
    let variables: Vec<_> = if configured.is_empty() { variables.filter(is_key).collect() } else { configured };
    variables.into_iter().filter(is_set).collect()
}

/// Returns the variables with keys that the configuration of the agent's CLI names.
fn configured_variables(agent: &str) -> Vec<String> {
    let registry = Registry::default();
    let known = registry.get(agent).ok().and_then(|agent| agent.capabilities());
    let Some(keys) = known.and_then(|known| known.configured_keys.as_ref()) else { return Vec::new() };
    let home = match std::env::var_os(keys.home_variable).filter(|home| !home.is_empty()) {
        Some(home) => Some(PathBuf::from(home)),
        None => std::env::var_os("HOME").map(|home| PathBuf::from(home).join(keys.default_home)),
    };
    let content = home.and_then(|home| std::fs::read_to_string(home.join(keys.file)).ok());
    (keys.read)(&content.unwrap_or_default())
}

/// Returns the arguments of the program that log in (Claude Code 2.1.197, Codex 0.169.0, OpenCode 1.18.33). Gemini CLI
/// 0.61.0 has no such command: its interface logs in.
pub(crate) fn login_arguments(agent: &str) -> Option<&'static [&'static str]> {
    Some(match agent {
        "claude" | "opencode" => &["auth", "login"],
        "codex" => &["login"],
        "gemini" => &[],
        _ => return None,
    })
}

/// The tools that run commands.
pub(crate) const SHELL_TOOLS: [&str; 3] = ["Bash", "bash", "run_shell_command"];

/// Returns the names of an agent's tools that people write rules for (Claude Code 2.1.197, Gemini CLI 0.61.0, OpenCode 1.18.33).
/// Rules of these agents distinguish upper and lower case.
pub(crate) fn tools(agent: &str) -> &'static [&'static str] {
    match agent {
        "claude" => &["Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "WebFetch", "WebSearch", "Write"],
        "gemini" => &["google_web_search", "read_file", "replace", "run_shell_command", "web_fetch", "write_file"],
        "opencode" => &["bash", "edit", "glob", "grep", "read", "webfetch", "write"],
        _ => &[],
    }
}

/// Returns the npm package of an agent's CLI.
pub(crate) fn package(agent: &str) -> Option<&'static str> {
    capabilities(agent, |known| known.package)
}

/// The page from which Node.js is installed, which includes npm.
pub(crate) const NODE: &str = "https://nodejs.org/en/download";

/// Returns how to install an agent's CLI here; `None` for an agent that Teamster does not know. Without npm, Node.js comes first.
pub(crate) fn install(agent: &str) -> Option<Printable> {
    let command = install_command(agent)?;
    Some(if has_npm() { command } else { printable!("install Node.js ({}), then {}", NODE, command) })
}

/// Returns the command that installs an agent's CLI.
pub(crate) fn install_command(agent: &str) -> Option<Printable> {
    Some(printable!("npm install -g {}", package(agent)?))
}

/// Whether npm is in PATH.
pub(crate) fn has_npm() -> bool {
    let directory = std::env::current_dir().unwrap_or_default();
    find_program("npm".as_ref(), std::env::var_os("PATH").as_deref(), &directory).is_ok()
}

/// Returns the name of an agent's program.
pub(crate) fn program(agent: &str) -> Option<&'static str> {
    capabilities(agent, |known| known.program)
}

/// Whether the sessions that the agent stores can be listed. Those of agents that are only known by their protocol cannot.
pub(crate) fn has_store(agent: &str) -> bool {
    AGENTS.contains(&agent)
}

fn capabilities(agent: &str, text: impl Fn(&Capabilities) -> &'static str) -> Option<&'static str> {
    let registry = Registry::default();
    let found = registry.get(agent).ok()?.capabilities().map(text)?;
    Some(found).filter(|text| !text.is_empty())
}

/// The value of `--agent` that selects an agent by what is installed here.
pub(crate) const AUTO: &str = "auto";

/// Returns the agent that is used if none is named: `claude` if it is installed, otherwise that of [`AUTO`].
pub(crate) fn default_agent() -> &'static str {
    let runtime = Runtime::new();
    let is_installed = runtime.readiness(Registry::DEFAULT).is_ok_and(|state| state > Readiness::NotInstalled);
    if is_installed { Registry::DEFAULT } else { best_agent(&runtime) }
}

/// Returns the agent of [`AUTO`].
pub(crate) fn auto_agent() -> &'static str {
    best_agent(&Runtime::new())
}

/// Whether a name is [`AUTO`].
pub(crate) fn is_auto(name: &str) -> bool {
    name.eq_ignore_ascii_case(AUTO)
}

/// Returns the line that names the agent which is used, if a person may not expect it.
pub(crate) fn note_of_default(agent: &'static str) -> Option<Printable> {
    (agent != Registry::DEFAULT).then(|| {
        printable!("the agent is {}: {} is not installed (--agent selects another one)", agent, Registry::DEFAULT)
    })
}

/// Returns the line that names the agent of [`AUTO`].
pub(crate) fn note_of_auto(agent: &'static str) -> Printable {
    printable!("the agent is {} (auto: the first one with a login, else the first one installed)", agent)
}

/// Returns the first agent with credentials, otherwise the first that is installed.
fn best_agent(runtime: &Runtime) -> &'static str {
    let readiness = |agent: &str| runtime.readiness(agent).unwrap_or(Readiness::NotInstalled);
    // `max_by_key` returns the last of several.
    let best = AGENTS.into_iter().rev().max_by_key(|agent| readiness(agent));
    best.filter(|agent| readiness(agent) > Readiness::NotInstalled).unwrap_or(Registry::DEFAULT)
}
