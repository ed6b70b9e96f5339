//! The tables `[agents.NAME]` of the configuration file, which define programs that speak ACP.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use teamster::Registry;
use teamster::agent::acp::Acp;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::error::{Invalid, suggestion};
use crate::vendor;

/// The keys of an agent.
const KEYS: [&str; 4] = ["args", "command", "env", "protocol"];

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

/// Reads the definition of an agent.
///
/// # Errors
/// Returns what is wrong with it, and where.
pub(super) fn read(
    name: &Spanned<Cow<'_, str>>,
    value: Spanned<DeValue<'_>>,
    registry: &Registry,
) -> Result<Acp, Invalid> {
    let at = value.span().start;
    if let DeValue::Table(table) = value.get_ref()
        && let Some(key) = table.keys().find(|key| !KEYS.contains(&key.get_ref().as_ref()))
    {
        let problem = format!("unknown key {:?}{}", key.get_ref(), suggestion(key.get_ref(), KEYS));
        return Err(Invalid { at: key.span().start, problem });
    }
    let entry = Entry::deserialize(ValueDeserializer::from(value)).map_err(|error| Invalid {
        at: error.span().map_or(at, |span| span.start),
        problem: error.message().split('\n').collect::<Vec<_>>().join("; "),
    })?;
    agent(name, entry, registry)
}

fn agent(name: &Spanned<Cow<'_, str>>, entry: Entry, registry: &Registry) -> Result<Acp, Invalid> {
    let Entry { command, args, env, protocol: Protocol::Acp } = entry;
    let invalid = |place: &Spanned<String>, problem: String| Err(Invalid { at: place.span().start, problem });
    let invalid_name = |problem: String| Err(Invalid { at: name.span().start, problem });
    let named = name.get_ref().as_ref();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !named.starts_with(|c: char| c.is_ascii_lowercase()) || !named.chars().all(is_plain) {
        let rule = "use lower-case letters, digits, - and _, and begin with a letter";
        return invalid_name(format!("invalid agent name {named:?}: {rule}"));
    }
    if registry.get(named).is_ok() {
        return invalid_name(format!("the agent {named:?} is built in: use a different name"));
    }
    if vendor::is_auto(named) {
        return invalid_name(format!("{named:?} selects an installed agent: use a different name"));
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
    let agent = Acp::named(named, program);
    let agent = args.into_iter().fold(agent, |agent, argument| agent.arg(argument.into_inner()));
    Ok(env.into_iter().fold(agent, |agent, (name, value)| agent.env(name.into_inner(), value.into_inner())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::{ConfigFile, Owner, parse};
    use crate::plan::tests::TestInputs;

    fn read_file(text: &str) -> ConfigFile {
        parse(Path::new("c"), text.as_bytes(), Owner::User, None, &TestInputs::default())
    }

    /// Returns the errors in this text, with their line numbers.
    fn error_in(text: &str) -> String {
        let problems = read_file(text).problems;
        assert!(!problems.is_empty(), "valid: {text}");
        problems.iter().map(|problem| problem.to_string().replacen("c:", "", 1)).collect::<Vec<_>>().join(" & ")
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_file() {
        let entry = "\u{feff}[agents.goose]\nprotocol = 'acp'\n";
        let file = read_file(&format!("{entry}command = 'goose'\n"));
        assert!(file.problems.is_empty() && file.agents.len() == 1, "{:?}", file.problems);
        assert!(error_in(&format!("{entry}command = 7\n")).starts_with("3:"));
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
        let ConfigFile { agents, problems, .. } = read_file(text);
        assert!(problems.is_empty(), "{problems:?}");
        let [goose, other] = &agents[..] else { panic!("{agents:?}") };
        let expected = Acp::named("goose", "goose").arg("acp").arg("--x=1").env("GOOSE_MODE", "approve");
        assert_eq!(format!("{goose:?}"), format!("{expected:?}"));
        assert_eq!(format!("{other:?}"), format!("{:?}", Acp::named("my-other_1", "/opt/other/bin/agent")));
        assert!(read_file("").agents.is_empty());
    }

    #[test]
    fn an_invalid_entry_does_not_hide_the_others() {
        let text = "[agents.worse]\nx = \n[agents.good]\nprotocol = \"acp\"\ncommand = \"x\"\n[agents.bad]\nprotocol = \"acp\"\n";
        let file = read_file(text);
        assert_eq!((file.agents.len(), file.problems.len()), (1, 3), "{:?}", file.problems);
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
            ["X", "claude", "acp", "auto", "\"\"", "1a", "\"a b\""]
                .map(|name| error_in(&format!("\n[agents.{name}]\n{entry}"))),
        )
        .chain([error_in(&format!("[agents.x]\n{entry}[agents.x]\n{entry}"))])
        .collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        1: unknown table [agent.x]: write [agents.x]
        1: unknown table "x" & 1: string values must be quoted, expected literal string
        2: invalid type: integer `1`, expected a table, as in [agents.NAME]
        1: missing field `command`
        1: missing field `protocol`
        2: unknown variant `mcp`, expected `acp`
        3: unknown key "comand"; did you mean "command"?
        3: the command must be a name that is looked up in PATH, or an absolute path, not ""
        3: the command must be a name that is looked up in PATH, or an absolute path, not "bin/x"
        6: invalid type: integer `1`, expected a string
        4: a NUL character is not allowed
        2: invalid variable name "A="
        2: invalid agent name "X": use lower-case letters, digits, - and _, and begin with a letter
        2: the agent "claude" is built in: use a different name
        2: the agent "acp" is built in: use a different name
        2: "auto" selects an installed agent: use a different name
        2: invalid agent name "": use lower-case letters, digits, - and _, and begin with a letter
        2: invalid agent name "1a": use lower-case letters, digits, - and _, and begin with a letter
        2: invalid agent name "a b": use lower-case letters, digits, - and _, and begin with a letter
        4: [agents.x] is already open in line 1: move these lines there
        "#);
    }
}
