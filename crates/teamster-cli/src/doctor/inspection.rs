//! The state of the agents: one line for each, or a JSON document.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use teamster::agent::{Feature, Support};
use teamster::{Inspection, Registry, RestoreLog, Runtime, VersionStatus};

use super::args::DoctorArgs;
use super::billed::{billed, used};
use crate::option_names;
use crate::printable::{Printable, printable};
use crate::render::{self, width_of_stdout};
use crate::runtime::{Threads, build_tokio, report_failure};
use crate::{exit, ledger_report, restore_report, vendor};

const GOOD: Style = AnsiColor::Green.on_default();
const CAUTION: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NAME: Style = Style::new().bold();

/// Prints the state of all agents. Returns the exit code for the chosen one.
pub(super) fn inspect(runtime: &Runtime, args: &DoctorArgs, chosen: &str) -> u8 {
    let found = match build_tokio(Threads::Workers) {
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
            .and_then(|()| if args.fix { Ok(()) } else { write_next_step(&mut stdout, &found, chosen) })
            .and_then(|()| ledger_report::write_survey(&mut stdout, &survey, args.verbose))
            .and_then(|()| restore_report::write_survey(&mut stdout, &files, args.verbose))
    };
    let chosen = found.iter().find(|inspection| inspection.agent.eq_ignore_ascii_case(chosen));
    // `--fix --yes` must not report success for an agent that still cannot answer.
    let is_ready = |found: &Inspection| {
        found.can_run()
            && !(args.fix && args.yes && found.credentials.is_empty() && vendor::login(&found.agent).is_some())
    };
    exit_code(&written, chosen.is_some_and(is_ready))
}

/// Returns the exit code, also if the output could not be written.
pub(super) fn exit_code(written: &io::Result<()>, is_ok: bool) -> u8 {
    match written {
        Err(_) => exit::NO_READER,
        Ok(()) if is_ok => exit::SUCCESS,
        Ok(()) => exit::FAILURE,
    }
}

async fn inspect_all(runtime: &Runtime, args: &DoctorArgs) -> Vec<Inspection> {
    let mut found = Vec::new();
    for name in runtime.registry().names() {
        found.extend(inspect_one(runtime, args, name).await);
    }
    found
}

/// Inspects an agent. `None` if there is no such agent.
pub(super) async fn inspect_one(runtime: &Runtime, args: &DoctorArgs, name: &str) -> Option<Inspection> {
    let cli_path = args.cli_path.as_deref().filter(|_| name.eq_ignore_ascii_case(&args.agent));
    runtime.inspect(name, cli_path).await.ok()
}

fn write_text(out: &mut impl Write, found: &[Inspection], registry: &Registry, verbose: bool) -> io::Result<()> {
    let needs_npm = |found: &Inspection| {
        let is_older = found.version_status == Some(VersionStatus::Older);
        vendor::package(&found.agent).is_some() && (found.program.is_none() || is_older)
    };
    if found.iter().any(needs_npm) && !vendor::has_npm() {
        let mark = Printable::from("!").styled(CAUTION);
        printable!("{} npm is not installed: install Node.js first ({})", mark, vendor::NODE).write_line(out)?;
    }
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

/// Names `--fix`, if it has a step for the chosen agent.
fn write_next_step(out: &mut impl Write, found: &[Inspection], chosen: &str) -> io::Result<()> {
    let has_step = |inspection: &Inspection| {
        let agent = inspection.agent.as_str();
        let is_ready = inspection.problem.is_none()
            && !inspection.credentials.is_empty()
            && inspection.version_status != Some(VersionStatus::Older);
        vendor::package(agent).is_some() && !is_ready
    };
    if !found.iter().any(|found| found.agent.eq_ignore_ascii_case(chosen) && has_step(found)) {
        return Ok(());
    }
    Printable::from("to install, update or log in, step by step: teamster doctor --fix").write_line(out)
}

/// The start of a line that is aligned with the state in the line before.
const REMEDY: &str = "\n            ";

/// Returns whether the agent can be used, and what to do if not.
pub(super) fn verdict(inspection: &Inspection) -> Printable {
    let agent = inspection.agent.as_str();
    let version = inspection
        .version
        .as_deref()
        .map(|version| printable!("{}{}", Printable::message(version), version_note(inspection)));
    let (mark, style, state, detail): (_, _, _, Printable) = match &inspection.problem {
        Some(problem) if inspection.program.is_none() => {
            let install = vendor::install_command(agent).unwrap_or_else(|| option_names::in_message(problem));
            ("✗", BAD, "not installed", install)
        }
        Some(problem) => ("✗", BAD, "cannot run", option_names::in_message(problem)),
        None if inspection.credentials.is_empty() && vendor::login(agent).is_some() => {
            let login = vendor::login_here(agent);
            ("!", CAUTION, "no login found", Printable::join(version.into_iter().chain(login), REMEDY))
        }
        None if inspection.version_status == Some(VersionStatus::Older) => {
            let install = vendor::install_command(agent);
            ("!", CAUTION, "too old", Printable::join(version.into_iter().chain(install), REMEDY))
        }
        None => {
            let credentials = inspection.credentials.iter().map(|name| Printable::exact(name));
            let found = Printable::join(version.into_iter().chain(credentials), ", ");
            ("✓", GOOD, "ready", Printable::join([found].into_iter().chain(billed(inspection)), REMEDY))
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
    if let Some(used) = used(inspection) {
        printable!("    billed       {}", used).write_line(out)?;
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

/// Writes a JSON document.
pub(super) fn write_document(out: &mut impl Write, document: &Value) -> io::Result<()> {
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
