//! Adds entries to the user's configuration files for the duration of a run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use teamster_agents::launch::{ConfigDirectory, ConfigFile, ConfigFormat};
use teamster_config::document::{Format, Location};
use teamster_config::{Merge, Merged, RestoreLog, RestoreOutcome, Restored};
use teamster_types::event::{ErrorCode, Failure, Warning, WarningCode};

use super::environment::Environment;
use crate::errors::with_causes;

/// Adds the entries. `environment` is the environment of the process.
pub(crate) fn merge(
    file: &ConfigFile,
    journals: Option<&RestoreLog>,
    agent: &str,
    cwd: &Path,
    environment: &Environment,
) -> Result<Merged, Failure> {
    let wrong = |why: String| Failure::new(ErrorCode::Config, why);
    let Some(journals) = journals else {
        let why = "cannot note what is changed in configuration files: neither XDG_STATE_HOME nor HOME is set";
        return Err(wrong(why.to_owned()));
    };
    let merge = Merge {
        path: path(file, cwd, environment).map_err(wrong)?,
        location: Location {
            format: match file.format {
                ConfigFormat::Toml => Format::Toml,
                ConfigFormat::Json => Format::Jsonc,
            },
            at: vec![file.key.to_owned()],
        },
        entries: file.entries.clone(),
        template: file.template.to_owned(),
        by: format!("a run of {agent}"),
        within: matches!(file.directory, ConfigDirectory::Project(_)).then(|| cwd.to_owned()),
    };
    journals.merge(&merge).map_err(|error| wrong(with_causes(&error)))
}

/// Removes the entries. Returns a warning if the file could not be restored completely.
pub(crate) fn restore(merged: Merged) -> Option<Warning> {
    let path = merged.path().to_owned();
    let warning = |text: String| {
        let text = format!("{} was not restored completely: {text}", path.display());
        Warning::new(WarningCode::ConfigNotRestored, text).with("path", path.display().to_string())
    };
    match merged.restore() {
        Err(error) => {
            Some(warning(format!("{}; `teamster doctor --restore` removes the entries", with_causes(&error))))
        }
        Ok(Restored { how: RestoreOutcome::NotRestored { reason, original }, .. }) => Some(match original {
            Some(original) => warning(format!("{reason}; its previous content is in {}", original.display()))
                .with("original", original.display().to_string()),
            None => warning(reason.to_string()),
        }),
        Ok(Restored { other_names: true, .. }) => {
            Some(warning("it got another name (a hard link) meanwhile, and the entries remain in that file".to_owned()))
        }
        Ok(Restored { changed, .. }) if !changed.is_empty() => {
            let names = changed.join(", ");
            Some(warning(format!("entries that were changed meanwhile remain: {names}")).with("entries", changed))
        }
        Ok(_) => None,
    }
}

fn path(file: &ConfigFile, cwd: &Path, environment: &Environment) -> Result<PathBuf, String> {
    let directory = match file.directory {
        ConfigDirectory::Project(folder) => cwd.join(folder),
        ConfigDirectory::Home(homes) => {
            let set = |name: &str| environment.get(OsStr::new(name)).filter(|value| !value.is_empty());
            let found = homes.iter().find_map(|(name, folder)| Some(cwd.join(set(name)?).join(folder)));
            found.ok_or_else(|| {
                let names: Vec<_> = homes.iter().map(|(name, _)| *name).collect();
                format!("cannot find the agent's configuration: {} is not set", names.join(" or "))
            })?
        }
    };
    let paths: Vec<_> = file.names.iter().map(|name| directory.join(name)).collect();
    let there = paths.iter().find(|path| path.symlink_metadata().is_ok());
    there.or(paths.first()).cloned().ok_or_else(|| "the launch names no configuration file".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_home_that_is_set_and_the_first_existing_file_are_used() {
        let home = teamster_process::PrivateDir::create(None, "config-files").unwrap();
        std::fs::write(home.path().join("b.json"), "{}").unwrap();
        let file = |directory, names| ConfigFile {
            directory,
            names,
            format: ConfigFormat::Json,
            key: "servers",
            entries: std::collections::BTreeMap::new(),
            template: "",
        };
        let environment: Environment = [("HOME".into(), home.path().into()), ("AGENT_HOME".into(), "".into())].into();
        let cwd = Path::new("/home/dev");
        let homes = ConfigDirectory::Home(&[("AGENT_HOME", ""), ("HOME", "")]);
        assert_eq!(path(&file(homes, &["a.json", "b.json"]), cwd, &environment), Ok(home.path().join("b.json")));
        assert_eq!(path(&file(homes, &["a.json"]), cwd, &environment), Ok(home.path().join("a.json")));
        let project = ConfigDirectory::Project(".agent");
        assert_eq!(path(&file(project, &["a.json"]), cwd, &environment), Ok("/home/dev/.agent/a.json".into()));
        let missing = path(&file(ConfigDirectory::Home(&[("NONE", "")]), &["a"]), cwd, &environment).unwrap_err();
        assert!(missing.contains("NONE is not set"), "{missing}");
    }
}
