//! `teamster doctor`: which agents can be run here, what to do about those that cannot, and what crashes left.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use teamster::agent::{Feature, Support};
use teamster::{Inspection, Journals, Registry, Runtime, VersionStatus};

use crate::args::values;
use crate::begin::{fail, refuse, tokio};
use crate::job::{Machine, UsageError};
use crate::printable::{Printable, printable};
use crate::render;
use crate::{config, config_files, exit, leftovers};

/// Look which agents can be run here
///
/// For each: its program, version and credentials (names of what is set, never values), and what it can do. No model
/// is called. The exit code is 1 if the chosen agent cannot run.
///
/// Then the runs of this user: how many live, and how many were left by crashes. --sweep does only that part, and ends
/// and removes those; the exit code is 1 if something is left then.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// The agent that must run; all are looked at
    #[arg(short, long, value_name = "NAME", default_value = Registry::DEFAULT, value_parser = values::AgentName)]
    #[arg(hide_possible_values = true)]
    pub(crate) agent: String,

    /// The chosen agent's program, if not the usual one
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) cli_path: Option<PathBuf>,

    /// Agents of your own, by name [default: ~/.config/teamster/config.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// End what crashed runs left: their processes, and their private files
    #[arg(long, conflicts_with_all = ["agent", "cli_path", "config"])]
    pub(crate) sweep: bool,

    /// Take out of agents' configuration files what crashed runs left in them
    #[arg(long, conflicts_with_all = ["agent", "cli_path", "config", "sweep"])]
    pub(crate) restore: bool,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Carries out the command and tells its exit code.
pub(crate) fn main(args: &DoctorArgs) -> u8 {
    match (args.sweep, args.restore) {
        (true, _) => sweep(&Runtime::new(), args),
        (_, true) => restore(&Runtime::new(), args),
        _ => match registry(args) {
            Ok(registry) => inspect(&Runtime::with_registry(registry), args),
            Err(error) => refuse(&Printable::error(&error), error.hint()),
        },
    }
}

fn registry(args: &DoctorArgs) -> Result<Registry, UsageError> {
    let registry = config::registry(args.config.as_deref(), &mut Machine)?;
    registry.get(&args.agent)?;
    Ok(registry)
}

fn restore(runtime: &Runtime, args: &DoctorArgs) -> u8 {
    let recovery = runtime.journals().map(Journals::recover).unwrap_or_default();
    let mut stdout = anstream::stdout();
    let shown = if args.json {
        write_document(&mut stdout, &json!({ "restore": config_files::recovery_document(&recovery) }))
    } else {
        config_files::write_recovery(&mut stdout, &recovery)
    };
    code(&shown, config_files::is_clean(&recovery))
}

fn sweep(runtime: &Runtime, args: &DoctorArgs) -> u8 {
    let sweep = runtime.ledger().sweep();
    let mut stdout = anstream::stdout();
    let shown = if args.json {
        write_document(&mut stdout, &json!({ "sweep": leftovers::sweep_document(&sweep) }))
    } else {
        leftovers::write_sweep(&mut stdout, &sweep)
    };
    code(&shown, sweep.is_clean())
}

fn inspect(runtime: &Runtime, args: &DoctorArgs) -> u8 {
    let found = match tokio() {
        Ok(tokio) => tokio.block_on(inspect_all(runtime, args)),
        Err(error) => return fail(&error),
    };
    let survey = runtime.ledger().survey();
    let files = runtime.journals().map(Journals::survey).unwrap_or_default();
    let mut stdout = anstream::stdout();
    let shown = if args.json {
        let agents: Vec<Value> = found.iter().map(|found| document(found, runtime.registry())).collect();
        let runs = leftovers::survey_document(&survey);
        let files = config_files::survey_document(&files);
        write_document(&mut stdout, &json!({ "agents": agents, "runs": runs, "configurationFiles": files }))
    } else {
        write_text(&mut stdout, &found, runtime.registry())
            .and_then(|()| leftovers::write_survey(&mut stdout, &survey))
            .and_then(|()| config_files::write_survey(&mut stdout, &files))
    };
    let chosen = found.iter().find(|inspection| inspection.agent.eq_ignore_ascii_case(&args.agent));
    code(&shown, chosen.is_some_and(Inspection::can_run))
}

fn code(shown: &io::Result<()>, is_well: bool) -> u8 {
    match shown {
        Err(_) => exit::NO_READER,
        Ok(()) if is_well => exit::SUCCESS,
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

fn write_text(out: &mut impl Write, found: &[Inspection], registry: &Registry) -> io::Result<()> {
    for inspection in found {
        let state = if inspection.can_run() { "can run" } else { "cannot run" };
        printable!("{}: {}", &inspection.agent, state).write_line(out)?;
        if let Some(problem) = &inspection.problem {
            printable!("  problem      {}", Printable::message(problem)).write_line(out)?;
        }
        if let Some(program) = &inspection.program {
            printable!("  program      {}", program).write_line(out)?;
        }
        if let Some(version) = &inspection.version {
            printable!("  version      {}{}", Printable::message(version), compared(inspection)).write_line(out)?;
        }
        let credentials = match inspection.credentials.as_slice() {
            [] => "none found; log in with the agent's own command, or set its key".into(),
            names => Printable::join(names.iter().map(|name| Printable::exact(name)), ", "),
        };
        printable!("  credentials  {}", credentials).write_line(out)?;
        for (title, refused) in [("ignores", false), ("refuses", true)] {
            let names = cannot(&inspection.agent, registry, refused);
            if !names.is_empty() {
                let names = Printable::join(names.into_iter().map(Printable::from), ", ");
                printable!("  {:<11}  {}", title, names).write_line(out)?;
            }
        }
    }
    Ok(())
}

fn compared(inspection: &Inspection) -> Printable {
    let tested = inspection.tested_version.unwrap_or_default();
    match inspection.version_status {
        Some(VersionStatus::Tested) => " (tested)".into(),
        Some(VersionStatus::Older) => printable!(" (older than {}, which is tested: it may lack what is used)", tested),
        Some(VersionStatus::Newer) => printable!(" (newer than {}, which is tested: it may differ)", tested),
        None => Printable::default(),
    }
}

fn features(agent: &str, registry: &Registry) -> Vec<(Feature, Support)> {
    let agent = registry.get(agent).ok();
    let abilities = agent.and_then(|agent| agent.abilities());
    let each = |feature: &Feature| Some((*feature, abilities?.support(*feature)));
    Feature::ALL.iter().filter_map(each).collect()
}

fn cannot(agent: &str, registry: &Registry, refused: bool) -> Vec<&'static str> {
    let is_it = |support: Support| match support {
        Support::Refused(_) => refused,
        Support::Ignored(_) => !refused,
        Support::Yes(_) => false,
    };
    features(agent, registry)
        .into_iter()
        .filter(|(_, support)| is_it(*support))
        .map(|(feature, _)| feature.name())
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
            (feature.name().to_owned(), json!({ "support": state, "by": text }))
        })
        .collect();
    if let Some(fields) = document.as_object_mut() {
        fields.insert("canRun".to_owned(), inspection.can_run().into());
        fields.insert("features".to_owned(), features.into());
    }
    document
}

/// A path for JSON, which has text alone.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
