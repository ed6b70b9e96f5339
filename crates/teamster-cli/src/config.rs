//! The configuration file: agents of the user's own, by name.
//!
//! `[agents.NAME]` names a program that speaks ACP. Invariant: nothing in the file is passed over; what cannot be meant is an
//! error that names its line.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use teamster::Registry;
use teamster::agent::acp::Acp;
use toml::Spanned;

use crate::job::Inputs;

/// Why the file is of no use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("cannot read {}: {source}", file.to_string_lossy())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}:{line}: {problem}", file.to_string_lossy())]
    Wrong { file: PathBuf, line: usize, problem: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    agents: BTreeMap<Spanned<String>, Entry>,
}

/// An agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as in [agents.NAME]")]
struct Entry {
    command: Spanned<String>,
    #[serde(default)]
    args: Vec<Spanned<String>>,
    #[serde(default)]
    env: BTreeMap<Spanned<String>, Spanned<String>>,
    protocol: Language,
}

/// What it speaks.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Language {
    Acp,
}

/// Something wrong, and where in the text.
struct Fault {
    at: usize,
    problem: String,
}

/// The agents that there are: those that come with Teamster, and those of the file. Without a file of this name, of the user's
/// usual one, which need not be there.
///
/// # Errors
/// When the file cannot be read, or does not say what it should.
pub(crate) fn registry(named: Option<&Path>, inputs: &mut impl Inputs) -> Result<Registry, ConfigError> {
    let mut registry = Registry::default();
    let Some(file) = named.map(Path::to_owned).or_else(|| usual(inputs)) else { return Ok(registry) };
    let bytes = match inputs.file(&file) {
        Ok(bytes) => bytes,
        Err(error) if named.is_none() && is_absent(&error) => return Ok(registry),
        Err(source) => return Err(ConfigError::Unreadable { file, source }),
    };
    let agents = match std::str::from_utf8(&bytes) {
        Ok(text) => read(text, &registry),
        Err(error) => Err(Fault { at: error.valid_up_to(), problem: "this is not UTF-8 text".to_owned() }),
    };
    let agents = agents.map_err(|Fault { at, problem }| {
        let before = bytes.iter().take(at).filter(|byte| **byte == b'\n').count();
        ConfigError::Wrong { file, line: before + 1, problem }
    })?;
    for agent in agents {
        registry.register(agent);
    }
    Ok(registry)
}

/// `$XDG_CONFIG_HOME/teamster/config.toml`, or the like of it in the home.
fn usual(inputs: &impl Inputs) -> Option<PathBuf> {
    let directory = |name: &str| inputs.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = directory("XDG_CONFIG_HOME").or_else(|| Some(directory("HOME")?.join(".config")))?;
    Some(folder.join("teamster/config.toml"))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn read(text: &str, registry: &Registry) -> Result<Vec<Acp>, Fault> {
    let config: Config = toml::from_str(text).map_err(|error| Fault {
        at: error.span().map_or(0, |span| span.start),
        problem: error.message().split('\n').collect::<Vec<_>>().join("; "),
    })?;
    config.agents.into_iter().map(|(name, entry)| agent(&name, entry, registry)).collect()
}

fn agent(name: &Spanned<String>, entry: Entry, registry: &Registry) -> Result<Acp, Fault> {
    let Entry { command, args, env, protocol: Language::Acp } = entry;
    let wrong = |place: &Spanned<String>, problem: String| Err(Fault { at: place.span().start, problem });
    let named = name.get_ref();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !named.starts_with(|c: char| c.is_ascii_lowercase()) || !named.chars().all(is_plain) {
        let rule = "take lower-case letters, digits, - and _, a letter first";
        return wrong(name, format!("{named:?} cannot name an agent: {rule}"));
    }
    if registry.get(named).is_ok() {
        return wrong(name, format!("the agent {named:?} comes with Teamster: take another name"));
    }
    let program = Path::new(command.get_ref());
    if command.get_ref().is_empty() || program.components().count() > 1 && program.is_relative() {
        let text = "the command is a name that is looked up in PATH, or an absolute path";
        return wrong(&command, format!("{text}, and not {:?}", command.get_ref()));
    }
    let variables = env.iter().flat_map(|(variable, value)| [variable, value]);
    if let Some(text) = [&command].into_iter().chain(&args).chain(variables).find(|text| text.get_ref().contains('\0'))
    {
        return wrong(text, "no program can be given a NUL".to_owned());
    }
    if let Some((variable, _)) = env.iter().find(|(name, _)| name.get_ref().is_empty() || name.get_ref().contains('='))
    {
        return wrong(variable, format!("{:?} cannot name a variable", variable.get_ref()));
    }
    let agent = Acp::named(named.as_str(), program);
    let agent = args.into_iter().fold(agent, |agent, argument| agent.arg(argument.into_inner()));
    Ok(env.into_iter().fold(agent, |agent, (name, value)| agent.env(name.into_inner(), value.into_inner())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a file of this text, and on which line.
    fn fault(text: &str) -> String {
        let Err(Fault { at, problem }) = read(text, &Registry::default()) else { panic!("nothing is wrong: {text}") };
        format!("{}: {problem}", text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1)
    }

    #[test]
    fn an_agent_has_the_program_the_arguments_and_the_variables_of_its_entry() {
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
    fn what_cannot_be_meant_is_told_with_its_line() {
        let entry = "protocol = \"acp\"\ncommand = \"x\"\n";
        let faults: Vec<_> = [
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
        .map(fault)
        .chain(
            ["X", "claude", "acp", "\"\"", "1a", "\"a b\""].map(|name| fault(&format!("\n[agents.{name}]\n{entry}"))),
        )
        .chain([fault(&format!("[agents.x]\n{entry}[agents.x]\n{entry}"))])
        .collect();
        insta::assert_snapshot!(faults.join("\n"), @r#"
        1: unknown field `agent`, expected `agents`
        1: string values must be quoted, expected literal string
        2: invalid type: integer `1`, expected a table, as in [agents.NAME]
        1: missing field `command`
        1: missing field `protocol`
        2: unknown variant `mcp`, expected `acp`
        3: unknown field `comand`, expected one of `command`, `args`, `env`, `protocol`
        3: the command is a name that is looked up in PATH, or an absolute path, and not ""
        3: the command is a name that is looked up in PATH, or an absolute path, and not "bin/x"
        6: invalid type: integer `1`, expected a string
        4: no program can be given a NUL
        2: "A=" cannot name a variable
        2: "X" cannot name an agent: take lower-case letters, digits, - and _, a letter first
        2: the agent "claude" comes with Teamster: take another name
        2: the agent "acp" comes with Teamster: take another name
        2: "" cannot name an agent: take lower-case letters, digits, - and _, a letter first
        2: "1a" cannot name an agent: take lower-case letters, digits, - and _, a letter first
        2: "a b" cannot name an agent: take lower-case letters, digits, - and _, a letter first
        4: duplicate key
        "#);
    }
}
