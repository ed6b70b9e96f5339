//! `teamster doctor`: reports which agents can run here, why others cannot, and the leftovers of crashes.
//!
//! - [`args`]: the options; [`inspection`]: the state of the agents; [`billed`]: which of several credentials is used.
//! - [`fix`]: `--fix`, which offers a step for each problem; [`step`]: the steps.
//! - [`npm`]: installs and updates CLIs; [`login`]: starts the vendor's login command.

mod args;
mod billed;
mod fix;
mod inspection;
mod login;
mod npm;
mod step;

use serde_json::json;
use teamster::{RestoreLog, Runtime};

pub(crate) use args::{AgentOrigin, DoctorArgs};
use inspection::{exit_code, inspect, write_document};

use crate::config::{self, ConfigError};
use crate::option_names;
use crate::plan::{SystemInputs, UsageError};
use crate::printable::Printable;
use crate::render::write_error;
use crate::runtime::report_usage_error;
use crate::{exit, ledger_report, restore_report};

/// Runs the command and returns its exit code. `problems` are those of the configuration.
pub(crate) fn main(args: &DoctorArgs, problems: &[ConfigError]) -> u8 {
    match (args.sweep, args.restore) {
        (true, _) => sweep(&Runtime::new(), args),
        (_, true) => restore(&Runtime::new(), args),
        _ => check(args, problems),
    }
}

/// Checks the agents, also if the configuration has problems.
fn check(args: &DoctorArgs, problems: &[ConfigError]) -> u8 {
    if let Some(problem @ ConfigError::Unreadable { .. }) = problems.first() {
        return report_usage_error(&Printable::error(problem), None);
    }
    for problem in problems {
        write_error(&mut anstream::stderr(), &Printable::error(problem), None);
    }
    // Its problems are among those above.
    let (registry, _) = config::registry(args.config.as_deref(), &mut SystemInputs);
    if let Err(error) = registry.get(&args.agent).map_err(UsageError::from) {
        return report_usage_error(&option_names::in_error(&error), error.hint());
    }
    let runtime = Runtime::builder().registry(registry).build();
    let code = if args.fix { fix::main(&runtime, args) } else { inspect(&runtime, args, &args.agent) };
    // A run would fail.
    if code == exit::SUCCESS && !problems.is_empty() { exit::FAILURE } else { code }
}

fn restore(runtime: &Runtime, args: &DoctorArgs) -> u8 {
    let recovery = runtime.restore_log().map(RestoreLog::recover).unwrap_or_default();
    let mut stdout = anstream::stdout();
    let written = if args.json {
        write_document(&mut stdout, &json!({ "restore": restore_report::recovery_document(&recovery) }))
    } else {
        restore_report::write_recovery(&mut stdout, &recovery)
    };
    exit_code(&written, restore_report::is_clean(&recovery))
}

fn sweep(runtime: &Runtime, args: &DoctorArgs) -> u8 {
    let sweep = runtime.ledger().sweep();
    let mut stdout = anstream::stdout();
    let written = if args.json {
        write_document(&mut stdout, &json!({ "sweep": ledger_report::sweep_document(&sweep) }))
    } else {
        ledger_report::write_sweep(&mut stdout, &sweep)
    };
    exit_code(&written, sweep.is_clean())
}
