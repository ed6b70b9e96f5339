//! The first lines of a gateway's output: its URL, its token, and what its agents may do.

use std::io::{self, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use teamster::Inspection;
use teamster::request::PermissionMode;
use teamster_gateway::config::Config;

use crate::path_text::home_relative;
use crate::printable::{Printable, printable};

const CAUTION: Style = AnsiColor::Yellow.on_default().bold();

/// Where the operator's token is.
#[derive(Debug)]
pub(super) enum Access<'a> {
    /// In the variable `TEAMSTER_TOKEN`.
    Fixed,
    /// In the file, which was created now. The secret is shown on a terminal only.
    Created { secret: &'a str, file: &'a Path },
    /// In the file.
    File(&'a Path),
}

/// Writes the lines. The first is the URL alone, for programs.
pub(super) fn write(
    out: &mut impl Write,
    url: &str,
    access: &Access<'_>,
    config: &Config,
    agent: &Inspection,
) -> io::Result<()> {
    Printable::exact(url).write_line(out)?;
    let token = match access {
        Access::Fixed => "that of TEAMSTER_TOKEN".into(),
        Access::Created { secret, file } => {
            printable!("{} (shown once; it is in {})", Printable::exact(secret), home_relative(file))
        }
        Access::File(file) => printable!("in {}", home_relative(file)),
    };
    row("token", &token).write_line(out)?;
    let version = agent
        .version
        .as_deref()
        .map_or_else(Printable::default, |version| printable!(" {}", Printable::exact(version)));
    let program =
        agent.program.as_deref().map_or_else(Printable::default, |path| printable!(" ({})", home_relative(path)));
    row("agent", &printable!("{}{}{}", Printable::exact(&agent.agent), version, program)).write_line(out)?;
    row("directory", &home_relative(&config.turn.directory)).write_line(out)?;
    if config.turn.permission == PermissionMode::Full {
        let text = "full: EVERY MESSAGE CAN CHANGE FILES AND RUN COMMANDS WITHOUT APPROVAL";
        row("permission", &Printable::from(text).styled(CAUTION)).write_line(out)?;
    } else {
        row("permission", &permission(config.turn.permission)).write_line(out)?;
    }
    row("data", &home_relative(&config.data_dir)).write_line(out)?;
    printable!("try it:  {}", example(url, access, &agent.agent)).write_line(out)?;
    out.flush()
}

fn row(name: &'static str, value: &Printable) -> Printable {
    printable!("{:<12} {}", name, value)
}

fn permission(mode: PermissionMode) -> Printable {
    match mode {
        PermissionMode::ReadOnly => "read-only: agents cannot change anything".into(),
        PermissionMode::Ask => "ask: agents ask before they change something (teamster approve)".into(),
        PermissionMode::Edit => "edit: agents can edit files, and ask before other changes (teamster approve)".into(),
        PermissionMode::Full => "full".into(),
    }
}

/// Returns a command to copy, which gets an answer.
fn example(url: &str, access: &Access<'_>, agent: &str) -> Printable {
    let token = match access {
        Access::Fixed => printable!("$TEAMSTER_TOKEN"),
        Access::Created { file, .. } | Access::File(file) => {
            printable!("$(cat {})", Printable::shell_word(&file.to_string_lossy()))
        }
    };
    let body = serde_json::json!({ "model": agent, "messages": [{ "role": "user", "content": "Hello" }] });
    printable!(
        "curl {}/v1/chat/completions -H \"Authorization: Bearer {}\" -H 'Content-Type: application/json' -d {}",
        Printable::exact(url),
        token,
        Printable::shell_word(&body.to_string())
    )
}
