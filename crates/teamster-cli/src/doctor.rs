//! `teamster doctor`: reports which agents can run here, why others cannot, and the leftovers of crashes.

use std::io::{self, Write};
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use teamster::agent::{Feature, Support};
use teamster::{Inspection, Registry, RestoreLog, Runtime, VersionStatus};

use crate::args::values;
use crate::config::{self, ConfigError};
use crate::option_names;
use crate::plan::{SystemInputs, UsageError};
use crate::printable::{Printable, printable};
use crate::render::{self, width_of_stdout, write_error};
use crate::runtime::{build_tokio, report_failure, report_usage_error};
use crate::{exit, ledger_report, restore_report, vendor};

const GOOD: Style = AnsiColor::Green.on_default();
const CAUTION: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NAME: Style = Style::new().bold();

/// Check which agents can run here
///
/// Prints for each agent whether it is ready, and otherwise what to do. Only the names of credentials are printed, never
/// their values. No model is called. The exit code is 1 if the chosen agent cannot run.
///
/// It also prints how many runs of this user are live, and how many were left by crashes, if there are any. --sweep only removes the
/// latter; its exit code is 1 if something remains.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags as typed")]
pub(crate) struct DoctorArgs {
    /// Require this agent to run; all agents are checked
    #[arg(short, long, value_name = "NAME", default_value = Registry::DEFAULT, value_parser = values::AgentName)]
    #[arg(hide_possible_values = true)]
    pub(crate) agent: String,

    /// Use this program as the chosen agent's CLI
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) cli_path: Option<PathBuf>,

    /// Read definitions of further agents from this TOML file
    ///
    /// The default is ~/.config/teamster/config.toml.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Kill processes and remove files of crashed runs
    #[arg(long, conflicts_with_all = ["agent", "cli_path", "config"])]
    pub(crate) sweep: bool,

    /// Remove entries of crashed runs from configuration files
    ///
    /// Runs with --mcp-delivery merge-restore add entries to the agents' configuration files. See docs/mcp.md.
    #[arg(long, conflicts_with_all = ["agent", "cli_path", "config", "sweep"])]
    pub(crate) restore: bool,

    /// Print the program, credentials and unsupported options too
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

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
    let code = inspect(&Runtime::builder().registry(registry).build(), args);
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

fn inspect(runtime: &Runtime, args: &DoctorArgs) -> u8 {
    let found = match build_tokio() {
        Ok(tokio) => tokio.block_on(inspect_all(runtime, args)),
        Err(error) => return report_failure(&error),
    };
    let survey = runtime.ledger().survey();
    let files = runtime.restore_log().map(RestoreLog::survey).unwrap_or_default();
    let mut stdout = anstream::stdout();
    let written = if args.json {
        let agents: Vec<Value> = found.iter().map(|found| document(found, runtime.registry())).collect();
        let runs = ledger_report::survey_document(&survey);
        let files = restore_report::survey_document(&files);
        write_document(&mut stdout, &json!({ "agents": agents, "runs": runs, "configurationFiles": files }))
    } else {
        write_text(&mut stdout, &found, runtime.registry(), args.verbose)
            .and_then(|()| ledger_report::write_survey(&mut stdout, &survey, args.verbose))
            .and_then(|()| restore_report::write_survey(&mut stdout, &files, args.verbose))
    };
    let chosen = found.iter().find(|inspection| inspection.agent.eq_ignore_ascii_case(&args.agent));
    exit_code(&written, chosen.is_some_and(Inspection::can_run))
}

fn exit_code(written: &io::Result<()>, is_ok: bool) -> u8 {
    match written {
        Err(_) => exit::NO_READER,
        Ok(()) if is_ok => exit::SUCCESS,
        Ok(()) => exit::FAILURE,
    }
}

async fn inspect_all(runtime: &Runtime, args: &DoctorArgs) -> Vec<Inspection> {
    let mut found = Vec::new();
    for name in runtime.registry().names() {
        let cli_path = args.cli_path.as_deref().filter(|_| name.eq_ignore_ascii_case(&args.agent));
        found.extend(runtime.inspect(name, cli_path).await.ok());
    }
    found
}

fn write_text(out: &mut impl Write, found: &[Inspection], registry: &Registry, verbose: bool) -> io::Result<()> {
    for inspection in found {
        // The agent `acp` is any program that --cli-path names.
        let has_program = registry.get(&inspection.agent).is_ok_and(|agent| agent.program().is_some());
        if !has_program && inspection.program.is_none() && !verbose {
            continue;
        }
        verdict(inspection).write_line(out)?;
        if verbose {
            write_details(out, inspection, registry)?;
        }
    }
    Ok(())
}

/// The start of a line that is aligned with the state in the line before.
const REMEDY: &str = "\n            ";

/// Returns whether the agent can be used, and what to do if not.
fn verdict(inspection: &Inspection) -> Printable {
    let agent = inspection.agent.as_str();
    let version = inspection
        .version
        .as_deref()
        .map(|version| printable!("{}{}", Printable::message(version), version_note(inspection)));
    let (mark, style, state, detail): (_, _, _, Printable) = match &inspection.problem {
        Some(problem) if inspection.program.is_none() => {
            let install = vendor::install(agent).unwrap_or_else(|| option_names::in_message(problem));
            ("✗", BAD, "not installed", install)
        }
        Some(problem) => ("✗", BAD, "cannot run", option_names::in_message(problem)),
        None if inspection.credentials.is_empty() && vendor::login(agent).is_some() => {
            let login = vendor::login(agent).map(Printable::from);
            ("!", CAUTION, "no login found", Printable::join(version.into_iter().chain(login), REMEDY))
        }
        None if inspection.version_status == Some(VersionStatus::Older) => {
            let install = vendor::install(agent);
            ("!", CAUTION, "too old", Printable::join(version.into_iter().chain(install), REMEDY))
        }
        None => {
            let credentials = inspection.credentials.iter().map(|name| Printable::exact(name));
            ("✓", GOOD, "ready", Printable::join(version.into_iter().chain(credentials), ", "))
        }
    };
    let (mark, state) = (Printable::from(mark).styled(style), printable!("{:<14}", state).styled(style));
    let name = printable!("{:<9}", Printable::exact(agent));
    printable!("{} {} {} {}", mark, name.styled(NAME), state, detail)
}

/// The indentation of further lines of a detail.
const DETAIL_INDENT: usize = 17;

/// Writes what `--verbose` adds: the program, the credentials and the features.
fn write_details(out: &mut impl Write, inspection: &Inspection, registry: &Registry) -> io::Result<()> {
    if let Some(program) = &inspection.program {
        printable!("    program      {}", program).write_line(out)?;
    }
    if !inspection.credentials.is_empty() {
        let names = Printable::join(inspection.credentials.iter().map(|name| Printable::exact(name)), ", ");
        printable!("    credentials  {}", names).write_line(out)?;
    }
    for (title, rejected) in [("ignores", false), ("rejects", true)] {
        let names = unsupported(&inspection.agent, registry, rejected);
        if !names.is_empty() {
            let names = Printable::join(names.into_iter().map(Printable::from), ", ");
            printable!("    {:<11}  {}", title, names).wrapped(width_of_stdout(), DETAIL_INDENT).write_line(out)?;
        }
    }
    Ok(())
}

fn version_note(inspection: &Inspection) -> Printable {
    let tested = inspection.tested_version.unwrap_or_default();
    match inspection.version_status {
        Some(VersionStatus::Tested) => " (tested)".into(),
        Some(VersionStatus::Older) => {
            printable!(" (older than {}, the tested version)", tested)
        }
        Some(VersionStatus::Newer) => {
            printable!(" (newer than {}, the tested version)", tested)
        }
        Some(_) | None => Printable::default(),
    }
}

fn features(agent: &str, registry: &Registry) -> Vec<(Feature, Support)> {
    let agent = registry.get(agent).ok();
    let capabilities = agent.and_then(|agent| agent.capabilities());
    let each = |feature: &Feature| Some((*feature, capabilities?.support(*feature)));
    Feature::ALL.iter().filter_map(each).collect()
}

/// Returns the names of the features that the agent rejects, or of those that it ignores.
fn unsupported(agent: &str, registry: &Registry, rejected: bool) -> Vec<&'static str> {
    let matches = |support: Support| match support {
        Support::Refused(_) => rejected,
        Support::Ignored(_) => !rejected,
        Support::Yes(_) => false,
    };
    features(agent, registry)
        .into_iter()
        .filter(|(_, support)| matches(*support))
        .map(|(feature, _)| option_names::option_of(feature.field()))
        .collect()
}

fn write_document(out: &mut impl Write, document: &Value) -> io::Result<()> {
    render::write_document(&serde_json::to_string_pretty(document)?, out)
}

fn document(inspection: &Inspection, registry: &Registry) -> Value {
    let mut document = serde_json::to_value(inspection).unwrap_or_default();
    let features: serde_json::Map<String, Value> = features(&inspection.agent, registry)
        .into_iter()
        .map(|(feature, support)| {
            let (state, text) = match support {
                Support::Yes(how) => ("yes", how),
                Support::Ignored(why) => ("ignored", why),
                Support::Refused(why) => ("refused", why),
            };
            (option_names::option_of(feature.field()).to_owned(), json!({ "support": state, "by": text }))
        })
        .collect();
    if let Some(fields) = document.as_object_mut() {
        fields.insert("canRun".to_owned(), inspection.can_run().into());
        fields.insert("features".to_owned(), features.into());
    }
    document
}
