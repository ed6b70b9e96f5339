//! Runs the command on a terminal, with a real CLI.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use teamster_conformance::{Agent, TestEnv, teamster};
use teamster_terminal::{Terminal, steady, text_with_styles};

const SIZE: (u16, u16) = (80, 40);

/// The time limit of each wait. A real CLI is slow to start on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);

/// What a person types.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    pub(crate) args: &'static [&'static str],
    /// Keys, each with a text that must be on the screen before it is sent.
    pub(crate) keys: &'static [(&'static str, &'static str)],
    /// The exit code of the command.
    pub(crate) code: i32,
}

/// Plays a script in the directory `app` of the home. Returns the last screen with its styles.
pub(crate) async fn play(agent: &Agent, env: &TestEnv, script: Script) -> Result<String> {
    let command = command(agent, env, script.args)?;
    // The provider answers meanwhile.
    let screen = tokio::task::spawn_blocking(move || {
        let mut terminal = Terminal::start(&command, SIZE).with_limit(LIMIT);
        for (before, keys) in script.keys {
            terminal.wait_for_steady(before);
            terminal.press(keys);
        }
        let code = terminal.wait_for_exit();
        assert_eq!(code, script.code, "{}", terminal.text());
        terminal.screen()
    });
    let screen = text_with_styles(&screen.await?);
    let home = env.home();
    Ok(steady(&screen.replace(home.to_str().context("a path in UTF-8")?, "/home/dev")))
}

fn command(agent: &Agent, env: &TestEnv, args: &[&str]) -> Result<Command> {
    let request = agent.request(env, "");
    let project = env.home().join("app");
    std::fs::create_dir_all(&project)?;
    let mut command = Command::new(teamster()?);
    let (name, rest) = args.split_first().context("a command")?;
    command.arg(name).args(["--agent", agent.name, "--cli-path"]);
    command
        .arg(request.cli_path.context("the path of the CLI")?)
        .args(request.model.map(|model| format!("--model={model}")));
    command.args(rest).env_clear().envs(env.environment().iter().cloned()).envs(request.env);
    command.env("TERM", "xterm-256color").env("TEAMSTER_LEDGER_DIR", env.home().join("ledger")).current_dir(project);
    Ok(command)
}
