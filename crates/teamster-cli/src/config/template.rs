//! The file that `teamster config init` writes: every setting with its description, as a comment.

use std::fmt::Write as _;

use crate::settings::{Kind, Scope, Setting};

const HEAD: &str = "\
# The configuration of teamster. Lines that start with # have no effect.
# Check it with: teamster config show
# Reference: docs/configuration.md

[defaults]
";

const TAIL: &str = "
# A profile has the same settings and is used with --profile NAME.
# [profiles.review]
# agent = \"claude\"
# permission = \"read-only\"
# append_system_prompt = \"Review the change. Do not edit files.\"

# A program that speaks ACP, used with --agent NAME.
# [agents.goose]
# protocol = \"acp\"
# command = \"goose\"
# args = [\"acp\"]
";

/// The table `[serve]`, as comments.
#[cfg(feature = "serve")]
const SERVE: &str = include_str!("serve_template.toml");
#[cfg(not(feature = "serve"))]
const SERVE: &str = "";

/// Returns the template.
pub(super) fn text(settings: &[Setting]) -> String {
    let mut text = HEAD.to_owned();
    for setting in settings.iter().filter(|setting| setting.scope != Scope::OneCall) {
        let help = setting.arg.get_help().map(ToString::to_string).unwrap_or_default();
        // Writing to a text cannot fail.
        _ = writeln!(text, "\n# {help}\n# {} = {}", setting.key, example(setting));
    }
    text + TAIL + SERVE
}

/// Returns the built-in value, or an example.
fn example(setting: &Setting) -> String {
    let built_in = setting.arg.get_default_values().first().and_then(|value| value.to_str());
    let example = match setting.value_name() {
        "N" => return "10".to_owned(),
        "USD" => return "0.5".to_owned(),
        "DURATION" => "5m",
        "RULE" => "Bash(git diff:*)",
        "LEVEL" => "high",
        "WHAT" => "prompt",
        "NAME=VALUE" | "KEY=VALUE" => "NAME=value",
        "NAME,..." => "NAME",
        "FILTER" => "teamster=debug",
        "TEXT" => "Answer in one sentence.",
        other => other,
    };
    let names = if setting.id == "agent" { Vec::new() } else { setting.arg.get_possible_values() };
    let example = names.first().map_or(example, |first| first.get_name());
    match setting.kind {
        Kind::Switch => "true".to_owned(),
        Kind::List => format!("[{example:?}]"),
        Kind::One => format!("{:?}", built_in.unwrap_or(example)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::args;
    use crate::config::{ConfigFile, Owner, parse};
    use crate::plan::tests::TestInputs;
    use crate::settings::settings;

    #[test]
    fn the_template_and_each_of_its_examples_are_valid() {
        let settings = settings(&args::command());
        let read =
            |text: &str| parse(Path::new("c"), text.as_bytes(), Owner::User, Some(&settings), &TestInputs::default());
        let template = text(&settings);
        let ConfigFile { defaults, problems, .. } = read(&template);
        assert!(defaults.is_empty() && problems.is_empty(), "{problems:?}");
        for setting in settings.iter().filter(|setting| setting.scope != Scope::OneCall) {
            let line = format!("{} = {}", setting.key, example(setting));
            assert!(template.contains(&format!("# {line}\n")), "{line}");
            let file = read(&format!("[defaults]\n{line}"));
            assert!(file.problems.is_empty() && file.defaults.len() == 1, "{line}: {:?}", file.problems);
        }
        let (_, tail) = template.split_once("# [profiles.review]").unwrap();
        let tail = tail.split("\n# The gateway").next().unwrap();
        let tail: Vec<&str> = tail.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
        let tail = tail.join("\n").replace("A program that speaks ACP, used with --agent NAME.", "");
        let file = read(&format!("[profiles.review]{tail}"));
        assert!(file.problems.is_empty() && file.agents.len() == 1, "{:?}", file.problems);
    }

    #[cfg(feature = "serve")]
    #[test]
    fn the_template_has_every_key_of_the_gateway_with_its_built_in_value() {
        use teamster_gateway::config::file::ServeTable;

        let is_entry = |line: &&str| line.starts_with("# [") || line.starts_with("# ") && line.contains(" = ");
        let entries: Vec<&str> = SERVE.lines().filter(is_entry).map(|line| line.trim_start_matches("# ")).collect();
        let file =
            parse(Path::new("/c"), entries.join("\n").as_bytes(), Owner::User, Some(&[]), &TestInputs::default());
        assert!(file.problems.is_empty(), "{:?}", file.problems);
        let keys = crate::config::schema::serve_keys();
        let has = |key: &str, rule: usize| file.serve.lines.contains_key(&key.replace("[]", &format!(".{rule}")));
        let is_missing = |key: &&String| !has(key, 0) && !has(key, 1);
        // A hook is a command or a webhook, and has one secret.
        let optional = ["hooks[].", "webhooks[]."];
        let is_optional = |key: &&String| optional.iter().any(|list| key.starts_with(list));
        let missing: Vec<_> = keys.iter().filter(|key| !is_optional(key)).filter(is_missing).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let (built_in, table) = (ServeTable::built_in(), file.serve.table);
        assert_eq!((table.limits, table.timing, table.retries), (built_in.limits, built_in.timing, built_in.retries));
        assert_eq!((table.listen, table.role, table.permission), (built_in.listen, built_in.role, built_in.permission));
        assert_eq!((table.max_turns, table.interrupted), (built_in.max_turns, built_in.interrupted));
    }

    #[cfg(feature = "serve")]
    #[test]
    fn the_template_is_valid_when_every_line_is_uncommented() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().canonicalize().unwrap();
        for directory in ["agents", "projects"] {
            std::fs::create_dir(path.join(directory)).unwrap();
        }
        let token = "123456789:AAabcdefghijklmnopqrstuvwxyz012345678";
        let secret = "0123456789abcdef0123456789abcdef";
        let files = [
            ("house-rules.md", "Be brief."),
            ("tickets.secret", secret),
            ("telegram.token", token),
            ("discord.token", "a.b.c"),
            ("slack-bot.token", "xoxb-1-a"),
            ("slack-app.token", "xapp-1-a"),
        ];
        for (name, text) in files {
            std::fs::write(path.join(name), text).unwrap();
        }
        let settings = settings(&args::command());
        // The certificate is a file of the system, and the variable with a token is an alternative to its file.
        let is_left_out = |line: &&str| line.starts_with("# tls") || line.contains("token_env = ");
        let is_entry = |line: &&str| {
            (line.starts_with("# [") || line.starts_with("# ") && line.contains(" = ")) && !is_left_out(line)
        };
        let entries = text(&settings);
        let entries = entries.lines().filter(|line| is_entry(line) || line.starts_with('['));
        let entries: Vec<&str> = entries.map(|line| line.trim_start_matches("# ")).collect();
        let home = path.to_str().unwrap().to_owned();
        let inputs =
            TestInputs { variables: vec![("HOME", Box::leak(home.into_boxed_str()))], ..TestInputs::default() };
        let file =
            parse(&path.join("config.toml"), entries.join("\n").as_bytes(), Owner::User, Some(&settings), &inputs);
        assert!(file.problems.is_empty(), "{:?}", file.problems);
        assert_eq!((file.agents.len(), file.serve.table.rules.len()), (1, 2));
        let registry = teamster::Registry::default();
        let built = teamster_gateway::config::file::build(&file.serve.table, &path.join("data"), &registry);
        assert_eq!(built.err(), None);
    }
}
