//! Agents do not work where the gateway keeps its data and its secrets: they could read the operator's token and every
//! conversation, and change both.

use std::path::{Component, Path, PathBuf};

use super::Config;

/// What is wrong with a directory or a file, by the path of its key.
pub(crate) type Conflict = (String, String);

/// Returns the real path of a file or directory, with symbolic links resolved. For a path that does not exist yet, the
/// nearest existing parent is resolved.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = absolute.ancestors().find_map(|parent| Some((parent, parent.canonicalize().ok()?)));
    let Some((parent, mut real)) = found else { return absolute };
    for part in absolute.strip_prefix(parent).into_iter().flat_map(Path::components) {
        match part {
            Component::ParentDir => _ = real.pop(),
            other => real.push(other),
        }
    }
    real
}

/// Returns what is wrong with the directories of agents: one that overlaps with the data directory, or has a file of secrets
/// below it. `store` is the file of the store, if it is known.
pub(crate) fn conflicts(config: &Config, store: Option<&Path>) -> Vec<Conflict> {
    let data = real_path(&config.data_dir);
    let directories = directories(config);
    let mut found: Vec<_> = directories
        .iter()
        .filter_map(|(key, directory)| Some((key.clone(), overlap(key, directory, &data)?)))
        .collect();
    for (key, file) in secret_files(config).into_iter().chain(store.map(|file| ("store".to_owned(), file.to_owned()))) {
        let real = real_path(&file);
        if real.starts_with(&data) {
            continue;
        }
        let is_above = |directory: &Path| real != directory && real.starts_with(directory);
        if let Some((_, directory)) = directories.iter().find(|(_, directory)| is_above(directory)) {
            let (file, directory) = (real.to_string_lossy(), directory.to_string_lossy());
            found.push((key, format!("{file} is below {directory}, where agents work: move it out of their reach")));
        }
    }
    found
}

/// Returns the real paths of files that agents never get from the gateway, even if they are below a working directory.
pub(crate) fn private_paths(config: &Config) -> Vec<PathBuf> {
    let files = secret_files(config).into_iter().map(|(_, file)| file).chain(config.file.clone());
    std::iter::once(config.data_dir.clone()).chain(files).map(|path| real_path(&path)).collect()
}

/// Returns the directories in which agents may work, each with its key.
fn directories(config: &Config) -> Vec<(String, PathBuf)> {
    let roots = config.roots.iter().enumerate().map(|(index, root)| (format!("roots.{index}"), root));
    let rules = config.rules.iter().enumerate();
    let rules = rules.filter_map(|(index, rule)| Some((format!("rules.{index}.directory"), rule.directory.as_ref()?)));
    let default = std::iter::once(("directory".to_owned(), &config.turn.directory));
    default.chain(roots).chain(rules).map(|(key, directory)| (key, real_path(directory))).collect()
}

fn secret_files(config: &Config) -> Vec<(String, PathBuf)> {
    let mut files: Vec<_> = config.tls.iter().map(|tls| ("tls.key".to_owned(), tls.key.clone())).collect();
    for (index, hook) in config.hooks.iter().enumerate() {
        files.extend(hook.secret_file.iter().map(|file| (format!("hooks.{index}.secret_file"), file.clone())));
    }
    let discord = config.discord.iter().filter_map(|discord| discord.token_file.clone());
    files.extend(discord.map(|file| ("discord.token_file".to_owned(), file)));
    for (key, file) in config.slack.iter().flat_map(super::file::SlackTable::secret_files) {
        files.push((format!("slack.{key}"), file.clone()));
    }
    let telegram = config.telegram.iter().filter_map(|telegram| telegram.token_file.clone());
    files.extend(telegram.map(|file| ("telegram.token_file".to_owned(), file)));
    for (index, webhook) in config.webhooks.iter().enumerate() {
        let key = |number| format!("webhooks.{index}.secret_files.{number}");
        files.extend(webhook.secret_files.iter().enumerate().map(|(number, file)| (key(number), file.clone())));
    }
    files
}

fn overlap(key: &str, directory: &Path, data: &Path) -> Option<String> {
    let (work, store) = (directory.to_string_lossy(), data.to_string_lossy());
    let problem = if directory == data {
        format!("agents would work in the data directory {store}")
    } else if data.starts_with(directory) {
        format!("agents would work in {work}, which contains the data directory {store}")
    } else if directory.starts_with(data) {
        format!("agents would work in {work}, which is below the data directory {store}")
    } else {
        return None;
    };
    let fix = if key == "directory" {
        let example = if data.starts_with(directory) && directory != data {
            format!(", for example {}", directory.join("work").to_string_lossy())
        } else {
            String::new()
        };
        format!("start the gateway in another directory or set directory (WORKING_DIR){example}")
    } else {
        "name another directory".to_owned()
    };
    Some(format!(
        "{problem}, and could read the operator's token and every conversation: {fix}; or move the data with --data-dir"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::config::{Rule, Tls};

    /// Returns the keys of the conflicts.
    fn keys(config: &Config, store: Option<&Path>) -> Vec<String> {
        conflicts(config, store).into_iter().map(|(key, _)| key).collect()
    }

    fn config(work: &Path, data: &Path) -> Config {
        let mut config = Config { data_dir: data.to_owned(), ..Config::default() };
        config.turn.directory = work.to_owned();
        config
    }

    #[test]
    fn agents_cannot_work_in_above_or_below_the_data_directory() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().canonicalize().unwrap();
        for name in ["work", "home/.local", "data/files"] {
            fs::create_dir_all(path.join(name)).unwrap();
        }
        symlink(path.join("home"), path.join("link")).unwrap();
        for (work, data, is_refused) in [
            ("work", "data", false),
            ("work", "work-data", false),
            ("home", "home", true),
            ("home", "home/.local/share/teamster", true),
            ("link", "home/.local/share/teamster", true),
            ("home", "link/new", true),
            ("work", "work/missing/../../home/data", false),
            ("home", "work/missing/../../home/data", true),
            ("data/files", "data", true),
            ("", "data", true),
        ] {
            let config = config(&path.join(work), &path.join(data));
            assert_eq!(!keys(&config, None).is_empty(), is_refused, "{work} {data}");
        }
    }

    #[test]
    fn the_error_names_both_directories_and_the_fix() {
        let temporary = tempfile::tempdir().unwrap();
        let home = temporary.path().canonicalize().unwrap();
        let data = home.join(".local/share/teamster");
        let [(key, problem)] = &conflicts(&config(&home, &data), None)[..] else { panic!("one conflict") };
        assert_eq!(key, "directory");
        for part in [home.to_str().unwrap(), data.to_str().unwrap(), "WORKING_DIR", "--data-dir"] {
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn roots_and_directories_of_rules_are_checked_too() {
        let mut config = config(Path::new("/srv"), Path::new("/var/lib/teamster/data"));
        config.roots = vec!["/srv".into(), "/var/lib".into()];
        config.rules = vec![Rule { directory: Some("/var/lib/teamster/data/files".into()), ..Rule::default() }];
        assert_eq!(keys(&config, None), ["roots.1", "rules.0.directory"]);
    }

    #[test]
    fn secrets_and_the_store_cannot_be_below_a_working_directory() {
        let mut config = config(Path::new("/srv"), Path::new("/var/lib/teamster/data"));
        config.tls = Some(Tls { certificate: "/srv/cert.pem".into(), key: "/srv/key.pem".into() });
        config.hooks = vec![crate::hooks::HookConfig { secret_file: Some("/srv/hook".into()), ..Default::default() }];
        assert_eq!(keys(&config, Some(Path::new("/srv/store.db"))), ["tls.key", "hooks.0.secret_file", "store"]);
        assert_eq!(keys(&config, Some(Path::new("/var/lib/teamster/data/gateway.db"))).len(), 2);
    }
}
