//! The published peers, installed into a folder of their own.

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::{program, root, run as run_command};
use crate::python::create;

/// Where the peers are installed.
pub(crate) struct Peers {
    directory: PathBuf,
    /// Why the packages of Node.js or Python are missing.
    pub(crate) missing: Vec<(Language, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Node,
    Python,
}

impl Peers {
    /// Returns the peers as they are. What is measured without them does not wait for their installation.
    pub(crate) fn absent() -> Self {
        Self { directory: root().join("target/bench-peers"), missing: Vec::new() }
    }

    /// Installs what is pinned in `benches/peers`, unless it is installed.
    pub(crate) fn install() -> Self {
        let mut peers = Self::absent();
        for language in [Language::Node, Language::Python] {
            if let Err(error) = peers.install_language(language) {
                eprintln!("{language:?} peers are left out: {error:#}");
                peers.missing.push((language, format!("{error:#}")));
            }
        }
        peers
    }

    pub(crate) fn node(&self) -> PathBuf {
        self.directory.join("node")
    }

    pub(crate) fn python(&self) -> PathBuf {
        self.directory.join("python")
    }

    fn install_language(&self, language: Language) -> Result<()> {
        let folder = match language {
            Language::Node => self.node(),
            Language::Python => self.python(),
        };
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let pins = copy_sources(language, &folder)?;
        let stamp = folder.join("installed");
        if fs::read_to_string(&stamp).ok() == Some(pins.clone()) {
            return Ok(());
        }
        match language {
            Language::Node => install_node(&folder)?,
            Language::Python => create(&folder, &folder.join("requirements.txt"))?,
        }
        fs::write(&stamp, pins).with_context(|| format!("cannot write {}", stamp.display()))
    }
}

/// The pinned versions and the programs, as they are committed.
pub(crate) fn sources() -> PathBuf {
    root().join("benches/peers")
}

/// Copies the sources of a language, beside which their packages are found. Returns what identifies the pins.
fn copy_sources(language: Language, to: &Path) -> Result<String> {
    let (pins, programs): (&[&str], &str) = match language {
        Language::Node => (&["package.json", "package-lock.json", ".npmrc"], "mjs"),
        Language::Python => (&["requirements.txt"], "py"),
    };
    let mut hasher = DefaultHasher::new();
    for entry in fs::read_dir(sources()).context("cannot list benches/peers")?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let pinned = pins.iter().any(|pin| name == *pin);
        if pinned || path.extension().is_some_and(|extension| extension == programs) {
            fs::copy(&path, to.join(&name)).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    for pin in pins {
        fs::read(to.join(pin)).with_context(|| format!("cannot read {pin}"))?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn install_node(folder: &Path) -> Result<()> {
    // `npm ci` refuses a lock without the native modules for other systems, which some registries lack.
    let mut npm = program("npm", &["install"]);
    npm.current_dir(folder);
    run_command(npm)
}

/// Returns the variables that a measured program inherits.
pub(crate) fn inherited() -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
    ["PATH", "LANG"].into_iter().filter_map(|name| Some((name, env::var_os(name)?)))
}
