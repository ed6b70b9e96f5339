//! Makes the paths of a table absolute.

use std::path::{Path, PathBuf};

use super::table::ServeTable;

impl ServeTable {
    /// Resolves relative paths against a directory, and `~/` against the home directory.
    pub fn resolve_paths(&mut self, base: &Path, home: Option<&Path>) {
        let resolve = |path: &mut PathBuf| *path = absolute(path, base, home);
        self.data_dir.iter_mut().for_each(resolve);
        self.directory.iter_mut().for_each(resolve);
        self.roots.iter_mut().flatten().for_each(resolve);
        self.cli_path.iter_mut().filter(|program| program.to_string_lossy().contains('/')).for_each(resolve);
        self.rules.iter_mut().filter_map(|rule| rule.directory.as_mut()).for_each(resolve);
        if let Some(tls) = &mut self.tls {
            resolve(&mut tls.certificate);
            resolve(&mut tls.key);
        }
        let files = self.instructions.iter_mut().filter_map(|instructions| instructions.files.as_mut());
        files.flatten().for_each(resolve);
        for hook in &mut self.hooks {
            hook.directory.iter_mut().for_each(resolve);
            hook.secret_file.iter_mut().for_each(resolve);
            for program in hook.command.first_mut().into_iter().filter(|program| program.contains('/')) {
                *program = absolute(Path::new(program), base, home).to_string_lossy().into_owned();
            }
        }
        self.webhooks.iter_mut().flat_map(|webhook| &mut webhook.secret_files).for_each(resolve);
        self.discord.iter_mut().filter_map(|discord| discord.token_file.as_mut()).for_each(resolve);
        if let Some(slack) = &mut self.slack {
            slack.bot_token_file.iter_mut().for_each(resolve);
            slack.app_token_file.iter_mut().for_each(resolve);
        }
        self.telegram.iter_mut().filter_map(|telegram| telegram.token_file.as_mut()).for_each(resolve);
        if let Some(store) = &mut self.store {
            *store = store_path(store, base, home);
        }
    }
}

/// Resolves the path of a store. Locations of other kinds are not changed; the check reports them.
fn store_path(store: &str, base: &Path, home: Option<&Path>) -> String {
    let (scheme, path) = match store.strip_prefix("sqlite:") {
        Some(path) => ("sqlite:", path.strip_prefix("//").unwrap_or(path)),
        None => ("", store),
    };
    if path.is_empty() || path.contains("://") {
        return store.to_owned();
    }
    format!("{scheme}{}", absolute(Path::new(path), base, home).to_string_lossy())
}

fn absolute(path: &Path, base: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        // Parts that are `.` are dropped.
        _ => base.join(path).components().collect(),
    }
}
