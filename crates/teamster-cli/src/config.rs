//! The configuration file, which defines further agents.
//!
//! `[agents.NAME]` defines a program that speaks ACP. Invariant: nothing in the file is ignored; an invalid entry is an
//! error with its line number.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use teamster::Registry;
use teamster::agent::acp::Acp;
use toml::Spanned;

use crate::plan::Inputs;

/// An error in the configuration file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {}: {source}", file.to_string_lossy())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}:{line}: {problem}", file.to_string_lossy())]
    Invalid { file: PathBuf, line: usize, problem: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    agents: BTreeMap<Spanned<String>, Entry>,
}

/// The definition of an agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as in [agents.NAME]")]
struct Entry {
    command: Spanned<String>,
    #[serde(default)]
    args: Vec<Spanned<String>>,
    #[serde(default)]
    env: BTreeMap<Spanned<String>, Spanned<String>>,
    protocol: Protocol,
}

/// The protocol that the program speaks.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Protocol {
    Acp,
}

/// An error in the text, with its byte offset.
struct Invalid {
    at: usize,
    problem: String,
}

/// Returns the built-in agents and those of the configuration file. If no file is named, the user's default file is
/// read if it exists.
///
/// # Errors
/// Returns an error if the file cannot be read or is invalid.
pub(crate) fn registry(named: Option<&Path>, inputs: &mut impl Inputs) -> Result<Registry, ConfigError> {
    let mut registry = Registry::default();
    let Some(file) = named.map(Path::to_owned).or_else(|| default_file(inputs)) else { return Ok(registry) };
    let bytes = match inputs.file(&file) {
        Ok(bytes) => bytes,
        Err(error) if named.is_none() && is_absent(&error) => return Ok(registry),
        Err(source) => return Err(ConfigError::Unreadable { file, source }),
    };
    let agents = match std::str::from_utf8(&bytes) {
        Ok(text) => read(text, &registry),
        Err(error) => Err(Invalid { at: error.valid_up_to(), problem: "invalid UTF-8".to_owned() }),
    };
    let agents = agents.map_err(|Invalid { at, problem }| {
        let before = bytes.iter().take(at).filter(|byte| **byte == b'\n').count();
        ConfigError::Invalid { file, line: before + 1, problem }
    })?;
    for agent in agents {
        registry.register(agent);
    }
    Ok(registry)
}

/// Returns `$XDG_CONFIG_HOME/teamster/config.toml`, or `$HOME/.config/teamster/config.toml`.
fn default_file(inputs: &impl Inputs) -> Option<PathBuf> {
    let directory = |name: &str| inputs.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = directory("XDG_CONFIG_HOME").or_else(|| Some(directory("HOME")?.join(".config")))?;
    Some(folder.join("teamster/config.toml"))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn read(text: &str, registry: &Registry) -> Result<Vec<Acp>, Invalid> {
    let config: Config = toml::from_str(text).map_err(|error| Invalid {
        at: error.span().map_or(0, |span| span.start),
        problem: error.message().split('\n').collect::<Vec<_>>().join("; "),
    })?;
    config.agents.into_iter().map(|(name, entry)| agent(&name, entry, registry)).collect()
}

fn agent(name: &Spanned<String>, entry: Entry, registry: &Registry) -> Result<Acp, Invalid> {
    let Entry { command, args, env, protocol: Protocol::Acp } = entry;
    let invalid = |place: &Spanned<String>, problem: String| Err(Invalid { at: place.span().start, problem });
    let named = name.get_ref();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !named.starts_with(|c: char| c.is_ascii_lowercase()) || !named.chars().all(is_plain) {
        let rule = "use lower-case letters, digits, - and _, and begin with a letter";
        return invalid(name, format!("invalid agent name {named:?}: {rule}"));
    }
    if registry.get(named).is_ok() {
        return invalid(name, format!("the agent {named:?} is built in: use a different name"));
    }
    let program = Path::new(command.get_ref());
    if command.get_ref().is_empty() || program.components().count() > 1 && program.is_relative() {
        let text = "the command must be a name that is looked up in PATH, or an absolute path";
        return invalid(&command, format!("{text}, not {:?}", command.get_ref()));
    }
    let variables = env.iter().flat_map(|(variable, value)| [variable, value]);
    if let Some(text) = [&command].into_iter().chain(&args).chain(variables).find(|text| text.get_ref().contains('\0'))
    {
        return invalid(text, "a NUL character is not allowed".to_owned());
    }
    if let Some((variable, _)) = env.iter().find(|(name, _)| name.get_ref().is_empty() || name.get_ref().contains('='))
    {
        return invalid(variable, format!("invalid variable name {:?}", variable.get_ref()));
    }
    let agent = Acp::named(named.as_str(), program);
    let agent = args.into_iter().fold(agent, |agent, argument| agent.arg(argument.into_inner()));
    Ok(env.into_iter().fold(agent, |agent, (name, value)| agent.env(name.into_inner(), value.into_inner())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error in this text, after its line number.
    fn error_in(text: &str) -> String {
        let Err(Invalid { at, problem }) = read(text, &Registry::default()) else { panic!("valid: {text}") };
        format!("{}: {problem}", text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1)
    }

    #[test]
    fn an_entry_defines_program_arguments_and_variables_of_an_agent() {
        let text = r#"
            [agents.goose]
            protocol = "acp"
            command = "goose"
            args = ["acp", "--x=1"]
            env = { GOOSE_MODE = "approve" }

            [agents.my-other_1]
            protocol = "acp"
            command = "/opt/other/bin/agent"
        "#;
        let Ok(agents) = read(text, &Registry::default()) else { panic!("it is right") };
        let [goose, other] = &agents[..] else { panic!("{agents:?}") };
        let expected = Acp::named("goose", "goose").arg("acp").arg("--x=1").env("GOOSE_MODE", "approve");
        assert_eq!(format!("{goose:?}"), format!("{expected:?}"));
        assert_eq!(format!("{other:?}"), format!("{:?}", Acp::named("my-other_1", "/opt/other/bin/agent")));
        assert!(read("", &Registry::default()).is_ok_and(|agents| agents.is_empty()));
    }

    #[test]
    fn an_invalid_entry_is_an_error_with_its_line() {
        let entry = "protocol = \"acp\"\ncommand = \"x\"\n";
        let errors: Vec<_> = [
            "[agent.x]",
            "x = ",
            "[agents]\nx = 1",
            "[agents.x]\nprotocol = \"acp\"",
            "[agents.x]\ncommand = \"x\"",
            "[agents.x]\nprotocol = \"mcp\"\ncommand = \"x\"",
            "[agents.x]\nprotocol = \"acp\"\ncomand = \"x\"",
            "[agents.x]\nprotocol = \"acp\"\ncommand = \"\"",
            "[agents.x]\nprotocol = \"acp\"\ncommand = \"bin/x\"",
            "[agents.x]\nprotocol = \"acp\"\ncommand = \"x\"\nargs = [\n\"a\",\n1]",
            "[agents.x]\nprotocol = \"acp\"\ncommand = \"x\"\nargs = [\"a\\u0000\"]",
            "[agents.x.env]\n\"A=\" = \"\"\n[agents.x]\nprotocol = \"acp\"\ncommand = \"x\"",
        ]
        .into_iter()
        .map(error_in)
        .chain(
            ["X", "claude", "acp", "\"\"", "1a", "\"a b\""]
                .map(|name| error_in(&format!("\n[agents.{name}]\n{entry}"))),
        )
        .chain([error_in(&format!("[agents.x]\n{entry}[agents.x]\n{entry}"))])
        .collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        1: unknown field `agent`, expected `agents`
        1: string values must be quoted, expected literal string
        2: invalid type: integer `1`, expected a table, as in [agents.NAME]
        1: missing field `command`
        1: missing field `protocol`
        2: unknown variant `mcp`, expected `acp`
        3: unknown field `comand`, expected one of `command`, `args`, `env`, `protocol`
        3: the command must be a name that is looked up in PATH, or an absolute path, not ""
        3: the command must be a name that is looked up in PATH, or an absolute path, not "bin/x"
        6: invalid type: integer `1`, expected a string
        4: a NUL character is not allowed
        2: invalid variable name "A="
        2: invalid agent name "X": use lower-case letters, digits, - and _, and begin with a letter
        2: the agent "claude" is built in: use a different name
        2: the agent "acp" is built in: use a different name
        2: invalid agent name "": use lower-case letters, digits, - and _, and begin with a letter
        2: invalid agent name "1a": use lower-case letters, digits, - and _, and begin with a letter
        2: invalid agent name "a b": use lower-case letters, digits, - and _, and begin with a letter
        4: duplicate key
        "#);
    }
}
