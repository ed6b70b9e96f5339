//! The candidates of completion: commands, their arguments, and paths.

use std::path::{Path, PathBuf};

use super::command::{Command, MODES, name_of};
use crate::input::{CompletionRequest, Subject};

/// The number of candidates of a directory.
const MAX_PATHS: usize = 500;

/// Where candidates come from.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    pub(super) commands: &'static [Command],
    pub(super) agents: Vec<String>,
    /// The directory of relative paths.
    pub(super) directory: PathBuf,
}

impl Candidates {
    /// Returns the candidates that begin with the word. Reads the directory of a path, so it may block.
    pub(super) fn of(&self, request: &CompletionRequest) -> Vec<String> {
        let word = request.word.as_str();
        let starting = |names: Vec<&str>| {
            let mut names: Vec<String> =
                names.into_iter().filter(|name| name.starts_with(word)).map(str::to_owned).collect();
            names.dedup();
            names
        };
        match &request.subject {
            Subject::Command => {
                starting(self.commands.iter().map(|command| command.name).filter(|name| *name != "/").collect())
            }
            Subject::Argument(command) => match command.as_str() {
                "permission" => starting(MODES.into_iter().map(name_of).chain(["revoke"]).collect()),
                "sessions" => starting(vec!["all"]),
                "agent" => starting(self.agents.iter().map(String::as_str).collect()),
                "export" => paths(word, &self.directory),
                _ => Vec::new(),
            },
            Subject::Path => paths(word, &self.directory),
        }
    }
}

/// Returns the paths that begin with the word, relative to the directory. Directories end with `/`.
fn paths(word: &str, directory: &Path) -> Vec<String> {
    let (parent, start) = word.rsplit_once('/').map_or(("", word), |(parent, start)| (parent, start));
    let parent = if word.contains('/') { format!("{parent}/") } else { String::new() };
    let Ok(entries) = std::fs::read_dir(directory.join(&parent)) else { return Vec::new() };
    let matching = entries.filter_map(Result::ok).filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_shown = name.starts_with(start) && (start.starts_with('.') || !name.starts_with('.'));
        // A name that is not one word cannot be written as one.
        if !is_shown || name.contains(char::is_whitespace) || name.contains(char::is_control) {
            return None;
        }
        let is_directory = entry.path().is_dir();
        Some(format!("{parent}{name}{}", if is_directory { "/" } else { "" }))
    });
    let mut paths: Vec<String> = matching.take(MAX_PATHS).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_completed_relative_to_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        std::fs::create_dir_all(at("src/inner")).unwrap();
        for file in ["src/main.rs", "src/map.rs", "read me", ".hidden", "setup"] {
            std::fs::write(at(file), "").unwrap();
        }
        let paths = |word: &str| paths(word, directory.path());
        assert_eq!(paths(""), ["setup", "src/"]);
        assert_eq!(paths("s"), ["setup", "src/"]);
        assert_eq!(paths("src/ma"), ["src/main.rs", "src/map.rs"]);
        assert_eq!(paths("src/inner/"), [""; 0]);
        assert_eq!(paths(".h"), [".hidden"]);
        assert_eq!(paths("none/x"), [""; 0]);
        let absolute = format!("{}/", at("src").to_string_lossy());
        assert_eq!(paths(&absolute).len(), 3);
    }
}
