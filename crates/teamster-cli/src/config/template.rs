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

/// Returns the template.
pub(super) fn text(settings: &[Setting]) -> String {
    let mut text = HEAD.to_owned();
    for setting in settings.iter().filter(|setting| setting.scope != Scope::OneCall) {
        let help = setting.arg.get_help().map(ToString::to_string).unwrap_or_default();
        // Writing to a text cannot fail.
        _ = writeln!(text, "\n# {help}\n# {} = {}", setting.key, example(setting));
    }
    text + TAIL
}

/// Returns the built-in value, or a placeholder.
fn example(setting: &Setting) -> String {
    let built_in = setting.arg.get_default_values().first().and_then(|value| value.to_str());
    let placeholder = setting.value_name();
    match setting.kind {
        Kind::Switch => "true".to_owned(),
        Kind::List => format!("[{placeholder:?}]"),
        Kind::One => format!("{:?}", built_in.unwrap_or(placeholder)),
    }
}
