//! `teamster` without arguments: which agents can be used here, and what to type next.

use std::io;

use anstyle::{AnsiColor, Style};
use teamster::{Readiness, Registry, Runtime};

use crate::exit;
use crate::printable::{Printable, printable};
use crate::vendor;

const GOOD: Style = AnsiColor::Green.on_default();
const CAUTION: Style = AnsiColor::Yellow.on_default();
const ABSENT: Style = Style::new().dimmed();
const NEXT: Style = AnsiColor::Cyan.on_default();

/// Prints the screen and returns the exit code.
pub(crate) fn main() -> u8 {
    let runtime = Runtime::new();
    let states = vendor::AGENTS.map(|agent| (agent, runtime.readiness(agent).unwrap_or(Readiness::NotInstalled)));
    match screen(&states, vendor::has_npm()).write_line(&mut anstream::stdout()) {
        Ok(()) => exit::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::NO_READER,
        Err(_) => exit::FAILURE,
    }
}

fn screen(states: &[(&'static str, Readiness)], has_npm: bool) -> Printable {
    let mut lines = vec!["Teamster runs AI agent CLIs with one interface.".into(), Printable::default()];
    lines.extend(states.iter().map(|(agent, state)| line(agent, *state, has_npm)));
    lines.push(Printable::default());
    lines.extend(next(states, has_npm));
    lines.push(Printable::default());
    lines.push("All commands and options: teamster --help".into());
    Printable::join(lines, "\n")
}

fn line(agent: &'static str, state: Readiness, has_npm: bool) -> Printable {
    let (mark, style, text): (_, _, Printable) = match state {
        Readiness::Ready => ("✓", GOOD, "ready".into()),
        Readiness::NoCredentials => ("!", CAUTION, "installed, no login found".into()),
        _ if has_npm => {
            ("–", ABSENT, printable!("not installed: {}", vendor::install_command(agent).unwrap_or_default()))
        }
        _ => ("–", ABSENT, "not installed".into()),
    };
    printable!("  {} {:<9} {}", Printable::from(mark).styled(style), agent, text)
}

/// Returns what to type next.
fn next(states: &[(&'static str, Readiness)], has_npm: bool) -> Vec<Printable> {
    let command = |text: Printable| printable!("  {}", text.styled(NEXT));
    let fix = printable!("Or answer y to each step: {}", Printable::from("teamster doctor --fix").styled(NEXT));
    let best = states.iter().rev().max_by_key(|(_, state)| *state);
    // The agent that is used if none is named, also if another one is ready.
    let has_default =
        |(agent, state): &(&str, Readiness)| *agent == Registry::DEFAULT && *state != Readiness::NotInstalled;
    let option = match best {
        Some((agent, _)) if *agent != Registry::DEFAULT && states.iter().any(has_default) => {
            printable!(" --agent {}", *agent)
        }
        _ => Printable::default(),
    };
    match best {
        Some((agent, Readiness::Ready)) => vec![
            printable!("Next, with {}:", *agent),
            command(printable!("teamster run{} 'What does this project do?'", &option)),
            command(printable!("teamster chat{}", &option)),
        ],
        Some((agent, Readiness::NoCredentials)) => vec![
            printable!("Next: log in to {}. {}.", *agent, sentence(vendor::login(agent).unwrap_or_default())),
            "Then:".into(),
            command("teamster chat".into()),
            fix,
        ],
        _ if has_npm => vec![
            "Next: install one of them, for example:".into(),
            command(vendor::install_command("claude").unwrap_or_default()),
            fix,
        ],
        _ => vec![
            "Next: install Node.js, which includes npm:".into(),
            command(vendor::NODE.into()),
            "Then install one of the agents, for example:".into(),
            command(vendor::install_command("claude").unwrap_or_default()),
            fix,
        ],
    }
}

/// Starts a text with a capital letter.
fn sentence(text: &'static str) -> Printable {
    let mut characters = text.chars();
    let first: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
    Printable::exact(&(first + characters.as_str()))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn shown(states: [Readiness; 4]) -> String {
        let states: Vec<_> = vendor::AGENTS.into_iter().zip(states).collect();
        screen(&states, true).without_styles().as_str().to_owned()
    }

    #[test]
    fn without_npm_it_names_node_first() {
        let states: Vec<_> = vendor::AGENTS.into_iter().map(|agent| (agent, Readiness::NotInstalled)).collect();
        let screen = screen(&states, false).without_styles();
        let (node, npm) = (screen.as_str().find(vendor::NODE).unwrap(), screen.as_str().find("npm install").unwrap());
        assert!(node < npm, "{screen}");
    }

    #[test]
    fn each_state_ends_in_what_to_type_next() {
        use Readiness::{NoCredentials, NotInstalled, Ready};

        assert_snapshot!(shown([NotInstalled; 4]), @r"
        Teamster runs AI agent CLIs with one interface.

          – claude    not installed: npm install -g @anthropic-ai/claude-code
          – codex     not installed: npm install -g @openai/codex
          – gemini    not installed: npm install -g @google/gemini-cli
          – opencode  not installed: npm install -g opencode-ai

        Next: install one of them, for example:
          npm install -g @anthropic-ai/claude-code
        Or answer y to each step: teamster doctor --fix

        All commands and options: teamster --help
        ");
        assert_snapshot!(shown([NotInstalled, NoCredentials, NotInstalled, NotInstalled]), @r"
        Teamster runs AI agent CLIs with one interface.

          – claude    not installed: npm install -g @anthropic-ai/claude-code
          ! codex     installed, no login found
          – gemini    not installed: npm install -g @google/gemini-cli
          – opencode  not installed: npm install -g opencode-ai

        Next: log in to codex. Run `codex login`, or set CODEX_API_KEY.
        Then:
          teamster chat
        Or answer y to each step: teamster doctor --fix

        All commands and options: teamster --help
        ");
        assert_snapshot!(shown([NoCredentials, NotInstalled, Ready, Ready]), @r"
        Teamster runs AI agent CLIs with one interface.

          ! claude    installed, no login found
          – codex     not installed: npm install -g @openai/codex
          ✓ gemini    ready
          ✓ opencode  ready

        Next, with gemini:
          teamster run --agent gemini 'What does this project do?'
          teamster chat --agent gemini

        All commands and options: teamster --help
        ");
    }
}
