//! A home directory with a configuration file, and the expected content.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use teamster_config::document::{Format, Location};
use teamster_config::{Merge, RestoreLog};

const TOML: &str =
    "# note\r\nmodel = \"mine\"\r\n\n[servers.user]\ncommand = \"u\" # theirs\n\n[servers.shared]\ncommand = 'own'\n";
const JSONC: &str = "{\n\t// note\n\t\"theme\": \"mine\",\n\t\"servers\": {\n\t\t\"user\": {\"command\": \"u\"},\n\t\t\"shared\": {},\n\t},\n}\n";

/// The file before the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Toml,
    Jsonc,
    /// Neither the file nor its directory exists.
    Nothing,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Toml, Self::Jsonc, Self::Nothing];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Toml => "toml",
            Self::Jsonc => "jsonc",
            Self::Nothing => "nothing",
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.name() == name).unwrap()
    }

    fn original(self) -> Option<&'static str> {
        match self {
            Self::Toml => Some(TOML),
            Self::Jsonc => Some(JSONC),
            Self::Nothing => None,
        }
    }
}

/// Returns a merge that replaces the user's own `shared` with the same entry, and adds one of its own.
pub(crate) fn request(home: &Path, kind: Kind, name: &str) -> Merge {
    let format = if kind == Kind::Toml { Format::Toml } else { Format::Jsonc };
    Merge {
        path: file(home),
        location: Location { format, at: vec!["servers".to_owned()] },
        entries: [
            (name.to_owned(), json!({"command": format!("server-of-{name}")})),
            ("shared".to_owned(), json!({"command": "ours"})),
        ]
        .into(),
        template: "{\"$schema\": \"x\"}\n".to_owned(),
        by: name.to_owned(),
        within: None,
    }
}

fn file(home: &Path) -> PathBuf {
    home.join("project/.agent/settings")
}

pub(crate) struct Home {
    directory: tempfile::TempDir,
    pub(crate) kind: Kind,
    /// The expected content at the end.
    expected: Option<String>,
}

impl Home {
    pub(crate) fn new(kind: Kind) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("project")).unwrap();
        let expected = kind.original().map(str::to_owned);
        if let Some(text) = &expected {
            fs::create_dir(file(directory.path()).parent().unwrap()).unwrap();
            fs::write(file(directory.path()), text).unwrap();
        }
        Self { directory, kind, expected }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn text(&self) -> Option<String> {
        fs::read_to_string(file(self.path())).ok()
    }

    /// Edits the file as the user.
    pub(crate) fn edit(&mut self, to: &str) {
        let text = self.text();
        if let (Some(expected), Some(text)) = (&mut self.expected, text) {
            *expected = expected.replace("mine", to);
            fs::write(file(self.directory.path()), text.replace("mine", to)).unwrap();
        }
    }

    pub(crate) fn recover(&self) {
        let recovery = RestoreLog::in_directory(self.path().join("journals")).recover();
        assert!(recovery.problems.is_empty(), "{recovery:?}");
        for restored in recovery.restored {
            assert!(restored.changed.is_empty(), "{restored:?}");
        }
    }

    /// Asserts that the file has its original content with the user's edits, and that no other file remains.
    pub(crate) fn assert_clean(&self, when: &str) {
        let (found, expected) = (self.text(), self.expected.clone());
        assert!(found == expected, "{when}: {found:?} instead of {expected:?}");
        let project: Vec<_> = walk(&self.path().join("project"));
        let wanted: &[&str] = if self.expected.is_some() { &[".agent", "settings"] } else { &[] };
        assert_eq!(project, wanted, "{when}");
        assert_eq!(walk(&self.path().join("journals")), Vec::<String>::new(), "{when}");
    }
}

fn walk(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.unwrap();
        names.push(entry.file_name().into_string().unwrap());
        names.extend(walk(&entry.path()));
    }
    names
}
