//! `teamster chat`: a conversation in a terminal.
//!
//! - [`start`] prepares the terminal, and restores it at the end.
//! - [`event_loop`] handles keys, signals and the events of the agent one by one; [`state`] is what they change.
//! - [`backend`] is where the events come from and where the input goes: [`local`] is a session of this process, `gateway`
//!   a conversation of a gateway. Everything else is the same for both.
//! - Keys change the input box ([`crate::input`]), which stays usable while the agent works. [`actions`] and [`commands`]
//!   execute what it requests, [`requests`] and [`answer`] show requests of the agent and read the answers.
//! - [`page`] writes the output and [`KeyReader`] reads the keys, each on its own thread. On a terminal that cannot move
//!   its cursor, whole lines are read and nothing is redrawn.
//!
//! Invariants: the terminal settings are restored at the end; no typed text is lost; input that was typed before a request
//! of the agent is shown does not answer it; when a chat ends, for any reason, no process that it started remains.

mod actions;
mod answer;
mod backend;
mod command;
mod commands;
mod completion;
mod event_loop;
mod events;
mod external_editor;
#[cfg(feature = "serve")]
mod gateway;
mod git_diff;
mod history;
mod local;
mod page;
mod question;
mod record;
mod request;
mod requests;
mod start;
mod state;
mod status_line;
mod suspension;
mod terminal_signals;
mod usage_totals;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use teamster::Readiness;
use teamster::request::Conversation;
use teamster::sessions::SessionQuery;

use self::history::HistoryFile;
use self::local::LocalSession;
use self::start::Start;
use crate::args::ChatArgs;
use crate::exit;
use crate::input::Keys;
use crate::option_names;
use crate::plan::{self, SessionPlan, SystemInputs};
use crate::preflight;
use crate::printable::{Printable, printable};
use crate::render::write_error;
use crate::runtime::{self, report_usage_error};
use crate::signals::Signals;
use crate::usage::Journal;
use crate::vendor;

/// Runs the command and returns its exit code.
pub(crate) fn main(args: ChatArgs) -> u8 {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let hint = "use teamster session from a program, or teamster run for one prompt";
        return report_usage_error(&"a chat needs a terminal for input and output".into(), Some(hint.into()));
    }
    #[cfg(feature = "serve")]
    if let Some(conversation) = args.gateway.joined() {
        return gateway::main(args, conversation);
    }
    // No timeout: a person may be away from the terminal.
    match plan::plan_session(args.conversation, Duration::ZERO, &mut SystemInputs) {
        Ok(mut plan) => {
            plan.request.background_tasks = args.background_tasks;
            let prompt = args.prompt.filter(|prompt| !prompt.trim().is_empty());
            if let Some((message, hint)) = missing(&plan) {
                write_error(&mut anstream::stderr(), &message, Some(&hint));
                return exit::NOT_FOUND;
            }
            if let Some((message, hint)) = unknown_session(&plan) {
                write_error(&mut anstream::stderr(), &message, Some(&hint));
                return exit::FAILURE;
            }
            preflight::report(&plan.agent, &plan.request);
            runtime::run_command(runtime::Threads::Workers, run_chat(plan, args.keys.unwrap_or_default(), prompt))
        }
        Err(error) => report_usage_error(&option_names::in_error(&error), error.hint()),
    }
}

/// Returns the error and the remedy if the agent's usual program is not installed.
fn missing(plan: &SessionPlan) -> Option<(Printable, Printable)> {
    let install = vendor::install(&plan.agent)?;
    let readiness = plan.runtime.readiness(&plan.agent).ok()?;
    (plan.request.cli_path.is_none() && readiness == Readiness::NotInstalled)
        .then(|| (printable!("{} is not installed", &plan.agent), install))
}

/// Returns the error and the remedy if the session to resume is in no store that can be read. With other programs and variables,
/// the agent may use another store.
fn unknown_session(plan: &SessionPlan) -> Option<(Printable, Printable)> {
    let (Conversation::Resume(id) | Conversation::Fork(id)) = &plan.request.conversation else { return None };
    let registry = plan.runtime.registry();
    let has_store = registry.get(&plan.agent).is_ok_and(|agent| agent.session_store().is_some());
    let is_usual = plan.request.cli_path.is_none() && plan.request.env.is_empty();
    if plan.resumed.is_some() || id.as_str().is_empty() || !(has_store && is_usual) {
        return None;
    }
    let mut query = SessionQuery::default();
    (query.agents, query.id_prefix) = (vec![plan.agent.clone()], Some(id.as_str().to_owned()));
    let list = plan.runtime.sessions(&query).ok()?;
    if !(list.sessions.is_empty() && list.skipped.is_empty()) {
        return None;
    }
    let message = printable!("{} has no session {} [SESSION_NOT_FOUND]", &plan.agent, Printable::exact(id.as_str()));
    let list =
        printable!("to list the sessions: teamster sessions --all --agent {}", Printable::shell_word(&plan.agent));
    Some((message, list))
}

async fn run_chat(plan: SessionPlan, keys: Keys, prompt: Option<String>) -> io::Result<u8> {
    // Signals are caught before a process is started, so that no signal can leave a process behind.
    let mut signals = Signals::catch()?;
    let current = std::env::current_dir()?;
    let directory = plan.request.cwd.as_ref().map_or_else(|| current.clone(), |cwd| current.join(cwd));
    let (history_file, earlier) = HistoryFile::open(&directory);
    let journal = Journal::open(plan.usage_journal.clone(), &plan.agent, &plan.request);
    let session = match plan.runtime.open(&plan.agent, plan.request.clone()) {
        Ok(session) => session,
        Err(error) => return Ok(report_usage_error(&option_names::in_error(&error), None)),
    };
    let start = Start { directory: directory.clone(), files: directory, keys, prompt, tool_output: plan.tool_output };
    Box::pin(start.run(LocalSession::new(plan, session, journal), &mut signals, (history_file, earlier))).await
}
