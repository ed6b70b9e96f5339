//! The candidates of completion: commands, their arguments, and paths.

use std::path::{Path, PathBuf};

use teamster::Registry;

use super::command::{Command, MODES, effect_of, name_of};
use crate::completion::models_of;
use crate::input::{Candidate, CompletionRequest, Subject};

/// The number of candidates of a directory.
const MAX_PATHS: usize = 500;

/// Where candidates come from.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    pub(super) commands: &'static [Command],
    pub(super) agents: Vec<String>,
    /// The agent whose models are known from its stored sessions.
    pub(super) models: Option<(Registry, String)>,
    /// The directory of relative paths.
    pub(super) directory: PathBuf,
}

impl Candidates {
    /// Returns the candidates that begin with the word. Reads the directory of a path, so it may block.
    pub(super) fn of(&self, request: &CompletionRequest) -> Vec<Candidate> {
        match &request.subject {
            Subject::Argument(command) if command == "model" => {
                let models = self.models.as_ref().map(|(registry, agent)| models_of(registry, agent));
                let models = models.unwrap_or_default().into_iter().map(|name| Candidate::new(name, ""));
                starting(models, &request.word)
            }
            Subject::Argument(command) if command == "export" => paths(&request.word, &self.directory),
            Subject::Path => paths(&request.word, &self.directory),
            _ => self.at_once(request),
        }
    }

    /// Returns the candidates that are known without reading files.
    pub(super) fn at_once(&self, request: &CompletionRequest) -> Vec<Candidate> {
        let word = request.word.as_str();
        match &request.subject {
            Subject::Command => {
                let commands = self.commands.iter().filter(|command| command.name != "/");
                let mut found = starting(commands.map(|command| Candidate::new(command.name, command.effect)), word);
                found.dedup_by(|later, first| later.text == first.text);
                found
            }
            Subject::Argument(command) => match command.as_str() {
                "permission" => {
                    let modes = MODES.into_iter().map(|mode| Candidate::new(name_of(mode), effect_of(mode)));
                    let has_rules =
                        self.commands.iter().any(|command| command.name == "permission" && command.is_revoke());
                    let revoke =
                        has_rules.then(|| Candidate::new("revoke", "take back what was allowed, by its number"));
                    starting(modes.chain(revoke), word)
                }
                "sessions" => starting([Candidate::new("all", "those of all directories")], word),
                "agent" => starting(self.agents.iter().map(|name| Candidate::new(name.as_str(), "")), word),
                _ => Vec::new(),
            },
            Subject::Path => Vec::new(),
        }
    }
}

fn starting(candidates: impl IntoIterator<Item = Candidate>, word: &str) -> Vec<Candidate> {
    candidates.into_iter().filter(|candidate| candidate.text.starts_with(word)).collect()
}

/// Returns the paths that begin with the word, relative to the directory. Directories end with `/`.
fn paths(word: &str, directory: &Path) -> Vec<Candidate> {
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
    paths.into_iter().map(|path| Candidate::new(path, "")).collect()
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
        let paths =
            |word: &str| -> Vec<String> { paths(word, directory.path()).into_iter().map(|path| path.text).collect() };
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
