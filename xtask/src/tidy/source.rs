//! The files that are checked, and what a check finds in them.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::{output, program, root};

/// A file of the repository, with its text.
pub(super) struct Source {
    /// Relative to the workspace's root.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl Source {
    pub(super) fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "rs")
    }

    pub(super) fn is_typescript(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "ts" || extension == "tsx")
    }
}

/// The Rust, TypeScript and Markdown files that are under version control, or could be. Removed files are left out.
pub(super) fn list() -> Result<Vec<Source>> {
    let listed = output(program(
        "git",
        &["ls-files", "--cached", "--others", "--exclude-standard", "*.rs", "*.md", "*.ts", "*.tsx"],
    ))
    .context("`git ls-files` failed")?;
    let mut sources = Vec::new();
    for path in listed.lines().map(PathBuf::from) {
        let file = root().join(&path);
        if file.is_file() {
            let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", path.display()))?;
            sources.push(Source { path, text });
        }
    }
    Ok(sources)
}

/// One fault, and its place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) file: PathBuf,
    /// Starts at 1; `None` where the whole file is meant.
    pub(super) line: Option<usize>,
    pub(super) check: Check,
    pub(super) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Check {
    Imports,
    Files,
    Functions,
    Words,
    Links,
}

impl Check {
    pub(super) const ALL: [Self; 5] = [Self::Imports, Self::Files, Self::Functions, Self::Words, Self::Links];
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Imports => "imports",
            Self::Files => "files",
            Self::Functions => "functions",
            Self::Words => "words",
            Self::Links => "links",
        })
    }
}

impl Finding {
    /// What the baseline counts this finding under.
    pub(super) fn key(&self) -> (String, Check) {
        (area(&self.file), self.check)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.text)
    }
}

/// The crate that a file belongs to; `docs` for the pages at the root and in `docs/`.
fn area(file: &Path) -> String {
    let mut parts = file.iter().map(|part| part.to_string_lossy().into_owned());
    match (parts.next(), parts.next()) {
        (Some(first), Some(second)) if first == "crates" => second,
        (Some(first), Some(_)) => first,
        _ => "docs".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_at_the_root_belongs_to_the_docs() {
        assert_eq!(area(Path::new("README.md")), "docs");
        assert_eq!(area(Path::new("docs/tools.md")), "docs");
        assert_eq!(area(Path::new("crates/teamster/src/lib.rs")), "teamster");
        assert_eq!(area(Path::new("xtask/src/main.rs")), "xtask");
    }
}
