//! The value in effect of each setting.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::assignment::{Assignment, Origin};
use super::table::Setting;
use super::value::nearest;
use super::{environment, project};
use crate::config::{self, ConfigError, ConfigFile, Owner, ProjectFile};
use crate::plan::Inputs;
use crate::printable::{Printable, printable};

/// What the command line sets.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// The ids of all options on the command line.
    pub(crate) ids: BTreeSet<String>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) profile: Option<String>,
    pub(crate) cwd: Option<PathBuf>,
    /// Whether the project is untrusted; `None` if the command line does not determine it.
    pub(crate) is_untrusted: Option<bool>,
}

/// The values in effect below the command line.
#[derive(Debug, Default)]
pub(crate) struct Resolution {
    /// The values by the id of the option.
    pub(crate) values: BTreeMap<String, Assignment>,
    pub(crate) problems: Vec<ConfigError>,
    /// What the user should know, for example that a project's file is not used.
    pub(crate) notes: Vec<Printable>,
    /// Notes on variables of earlier versions, with the options that they set.
    pub(crate) renamed: Vec<Printable>,
    /// The project's file, and whether it is used.
    pub(crate) project: Option<(ProjectFile, bool)>,
}

/// Pairs of options that exclude each other, in both orders.
pub(crate) type Conflicts = BTreeSet<(String, String)>;

/// Determines the values in effect. Values of options that exclude an option of higher precedence are dropped.
pub(crate) fn resolve(
    settings: &[Setting],
    conflicts: &Conflicts,
    given: &Given,
    inputs: &mut impl Inputs,
) -> Resolution {
    let mut resolution = Resolution::default();
    let environment = environment::read(settings, inputs, &mut resolution.problems, &mut resolution.notes);
    let variable = |id: &str| value_in(&environment, id).map(str::to_owned);
    let named = given.config.clone().or_else(|| variable("config").map(PathBuf::from));
    let user = config::read_user_file(named.as_deref(), Some(settings), inputs);
    let ConfigFile { defaults, mut profiles, problems, .. } = user;
    resolution.problems.extend(problems);
    let profile_name = given.profile.clone().or_else(|| variable("profile"));
    let profile_name = profile_name.or_else(|| value_in(&defaults, "profile").map(str::to_owned));
    let profile = match &profile_name {
        None => Vec::new(),
        Some(name) => profiles.remove(name).unwrap_or_else(|| {
            let known = profiles.keys().map(String::as_str);
            resolution.problems.push(ConfigError::UnknownProfile(unknown_profile(name, known)));
            Vec::new()
        }),
    };
    let own = |id: &str| [&environment, &profile, &defaults].into_iter().find_map(|layer| value_in(layer, id));
    let is_untrusted = given.is_untrusted.unwrap_or_else(|| own("project_trust") == Some("untrusted"));
    let cwd = given.cwd.clone().or_else(|| own("cwd").map(PathBuf::from));
    let project = if is_untrusted { Vec::new() } else { project_layer(settings, cwd, inputs, &mut resolution) };
    let project = restrict(settings, conflicts, project, &defaults);
    for layer in [&environment, &profile, &project, &defaults] {
        check_layer(settings, conflicts, layer, &mut resolution.problems);
    }
    let mut taken = given.ids.clone();
    for layer in [environment, profile, project, defaults] {
        let is_free = |assignment: &Assignment| {
            !taken.contains(&assignment.id)
                && !taken.iter().any(|id| conflicts.contains(&(id.clone(), assignment.id.clone())))
        };
        let free: Vec<Assignment> = layer.into_iter().filter(is_free).collect();
        taken.extend(free.iter().map(|assignment| assignment.id.clone()));
        resolution.values.extend(free.into_iter().map(|assignment| (assignment.id.clone(), assignment)));
    }
    note_older_variables(settings, &mut resolution);
    resolution
}

fn value_in<'a>(layer: &'a [Assignment], id: &str) -> Option<&'a str> {
    layer.iter().find(|assignment| assignment.id == id)?.values.first().map(String::as_str)
}

fn unknown_profile<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let similar = nearest(name, known.clone()).map(|similar| format!("; did you mean {similar:?}?"));
    let all: Vec<&str> = known.collect();
    let all = if all.is_empty() { "none is defined".to_owned() } else { format!("defined are: {}", all.join(", ")) };
    format!("unknown profile {name:?}{}", similar.unwrap_or_else(|| format!("; {all}")))
}

/// Reads the project's file, if the user trusts its directory.
fn project_layer(
    settings: &[Setting],
    cwd: Option<PathBuf>,
    inputs: &mut impl Inputs,
    resolution: &mut Resolution,
) -> Vec<Assignment> {
    let Ok(start) = inputs.working_directory() else { return Vec::new() };
    let start = cwd.map_or_else(|| start.clone(), |cwd| start.join(cwd));
    let Some(found) = config::find_project(&start, inputs) else { return Vec::new() };
    let trusted = match config::trusted_projects(inputs) {
        Ok(trusted) => trusted.contains(&found.directory),
        Err(problem) => {
            resolution.problems.push(problem);
            return Vec::new();
        }
    };
    let mut layer = Vec::new();
    if trusted {
        match config::read_project(&found.path, inputs) {
            Ok(bytes) => {
                let file = config::parse(&found.path, &bytes, Owner::Project, Some(settings), inputs);
                layer = file.defaults;
                resolution.problems.extend(file.problems);
            }
            Err(source) => resolution.problems.push(ConfigError::Unreadable { file: found.path.clone(), source }),
        }
    } else {
        let command = Printable::shell_word(&found.directory.to_string_lossy());
        resolution.notes.push(printable!(
            "{} is not used: its directory is not trusted; to use it: teamster config trust {}",
            &found.path,
            command
        ));
    }
    resolution.project = Some((found, trusted));
    layer
}

/// Returns the values of the project's file that restrict the user's own ones.
fn restrict(
    settings: &[Setting],
    conflicts: &Conflicts,
    project: Vec<Assignment>,
    own: &[Assignment],
) -> Vec<Assignment> {
    let kept = project.into_iter().filter_map(|assignment| {
        // Otherwise `withhold_keys` of the project would replace `env_only` of the user.
        if own.iter().any(|own| conflicts.contains(&(own.id.clone(), assignment.id.clone()))) {
            return None;
        }
        let setting = settings.iter().find(|setting| setting.id == assignment.id)?;
        let own = own.iter().find(|own| own.id == assignment.id);
        project::restricted(setting, assignment, own)
    });
    kept.collect()
}

/// Reports options of one source that exclude each other.
fn check_layer(settings: &[Setting], conflicts: &Conflicts, layer: &[Assignment], problems: &mut Vec<ConfigError>) {
    let name = |id: &str| settings.iter().find(|setting| setting.id == id).map_or("", |setting| &setting.key);
    for (at, second) in layer.iter().enumerate() {
        let first = layer.iter().take(at).find(|first| conflicts.contains(&(first.id.clone(), second.id.clone())));
        let Some(first) = first else { continue };
        let problem = format!("{} cannot be used with {}", name(&second.id), name(&first.id));
        let problem = match &second.origin {
            Origin::File { file, line, .. } => ConfigError::Invalid { file: file.clone(), line: *line, problem },
            Origin::Variable(name) => ConfigError::Variable { name: name.clone(), problem },
            // It sets one option.
            Origin::Machine => continue,
        };
        problems.push(problem);
    }
}

/// Adds a note on older variables in effect whose names do not show that they belong to Teamster.
fn note_older_variables(settings: &[Setting], resolution: &mut Resolution) {
    for setting in settings {
        let Some(older) = setting.older.filter(|older| older.is_noted) else { continue };
        let in_effect = resolution.values.get(&setting.id);
        if in_effect.is_some_and(|value| value.origin == Origin::Variable(older.name.to_owned())) {
            let option = setting.key.replace('_', "-");
            resolution.renamed.push(printable!(
                "--{} is set by {} in the environment; its name is now {}",
                Printable::exact(&option),
                older.name,
                Printable::exact(&setting.variable)
            ));
        }
    }
}
