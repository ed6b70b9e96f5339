//! A home directory with one configuration file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use teamster_config::document::{Format, Location};
use teamster_config::{ConfigError, Merge, Merged, RestoreLog};

pub(crate) struct TestEnv {
    home: tempfile::TempDir,
    format: Format,
    pub(crate) path: PathBuf,
    pub(crate) original: String,
}

impl TestEnv {
    pub(crate) fn new(format: Format) -> Self {
        let home = tempfile::tempdir().unwrap();
        let original = match format {
            Format::Toml => "# note\nmodel = \"mine\"\n\n[servers.user]\ncommand = \"u\"\n",
            _ => "{\n  // note\n  \"theme\": \"mine\",\n  \"servers\": {\n    \"user\": {\"command\": \"u\"}\n  }\n}\n",
        };
        let path = home.path().join("config");
        fs::write(&path, original).unwrap();
        Self { home, format, path, original: original.to_owned() }
    }

    /// Selects another file.
    pub(crate) fn at(mut self, path: &str) -> Self {
        self.path = self.home.path().join(path);
        self
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn restore_log(&self) -> RestoreLog {
        RestoreLog::in_directory(self.home.path().join("state/journals"))
    }

    pub(crate) fn request(&self, name: &str) -> Merge {
        Merge {
            path: self.path.clone(),
            location: Location { format: self.format, at: vec!["servers".to_owned()] },
            entries: [(name.to_owned(), json!({"command": format!("server-of-{name}")}))].into(),
            template: String::new(),
            by: format!("run of {name}"),
            within: None,
        }
    }

    pub(crate) fn merge(&self, name: &str) -> Result<Merged, ConfigError> {
        self.restore_log().merge(&self.request(name))
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap()
    }

    pub(crate) fn edit(&self, from: &str, to: &str) {
        fs::write(&self.path, self.text().replace(from, to)).unwrap();
    }

    /// Returns the path of the only journal.
    pub(crate) fn journal(&self) -> PathBuf {
        let entries = fs::read_dir(self.restore_log().directory()).unwrap();
        entries.map(|entry| entry.unwrap().path().join("journal.json")).find(|path| path.exists()).unwrap()
    }

    pub(crate) fn assert_nothing_to_recover(&self) {
        let recovery = self.restore_log().recover();
        assert!(recovery.restored.is_empty() && recovery.problems.is_empty(), "{recovery:?}");
    }

    pub(crate) fn assert_untouched(&self) {
        assert_eq!(self.text(), self.original);
        let names = fs::read_dir(self.path.canonicalize().unwrap().parent().unwrap()).unwrap();
        let temporary =
            names.map(|name| name.unwrap().file_name()).find(|name| name.to_str().unwrap().starts_with(".teamster"));
        assert_eq!(temporary, None);
        self.assert_restore_log_is_empty();
    }

    pub(crate) fn assert_restore_log_is_empty(&self) {
        let remaining: Vec<_> = fs::read_dir(self.restore_log().directory())
            .map(|entries| entries.map(|entry| entry.unwrap().file_name()).filter(|name| name != "kept").collect())
            .unwrap_or_default();
        assert!(remaining.is_empty(), "{remaining:?}");
    }
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}
