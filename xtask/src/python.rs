//! `cargo xtask install-python`: Python programs that check the gateway from outside, pinned in `conformance/python`.
//!
//! Each has an environment of its own, `target/python/NAME`, with the packages of `NAME.txt` and nothing else.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::{program, root, run_quietly};

/// The variable that skips what needs Python.
pub(crate) const WITHOUT_PYTHON: &str = "TEAMSTER_WITHOUT_PYTHON";

/// The environment with the official OpenAI client.
pub(crate) const OPENAI: &str = "openai";

/// The environment with the Discord client.
pub(crate) const DISCORD: &str = "discord.py";
/// The environment with the Slack client.
pub(crate) const SLACK: &str = "slack_sdk";

/// The environment with the Telegram client.
pub(crate) const TELEGRAM: &str = "python-telegram-bot";

/// The environment with Schemathesis.
pub(crate) const SCHEMATHESIS: &str = "schemathesis";

/// Whether the user wants nothing that needs Python.
pub(crate) fn is_left_out() -> bool {
    env::var_os(WITHOUT_PYTHON).is_some_and(|value| !value.is_empty())
}

/// Returns the directory with the pins and the programs.
pub(crate) fn sources() -> PathBuf {
    root().join("conformance/python")
}

/// Installs what the tests need.
pub(crate) fn install_for_tests() -> Result<()> {
    let clients = [
        (OPENAI, "the official OpenAI client"),
        (DISCORD, "a client of Discord's gateway"),
        (SLACK, "the official Slack client"),
        (TELEGRAM, "a client of Telegram's Bot API"),
    ];
    for (name, client) in clients {
        let folder = environment(name)?;
        println!("{} has {client}", folder.display());
    }
    Ok(())
}

/// Returns the directory of an environment. It is created if it is missing, or if its pins have changed.
pub(crate) fn environment(name: &str) -> Result<PathBuf> {
    let pins = sources().join(format!("{name}.txt"));
    let wanted = fs::read_to_string(&pins).with_context(|| format!("cannot read {}", pins.display()))?;
    let folder = root().join("target/python").join(name);
    let installed = folder.join("installed");
    if fs::read_to_string(&installed).is_ok_and(|found| found == wanted) {
        return Ok(folder);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    create(&folder, &pins)
        .with_context(|| format!("cannot install {name} (set {WITHOUT_PYTHON}=1 to do without Python)"))?;
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(folder)
}

/// Creates an environment in a directory, and installs the pinned packages of a file.
pub(crate) fn create(folder: &Path, pins: &Path) -> Result<()> {
    let mut venv = program("python3", &["-m", "venv", "."]);
    venv.current_dir(folder);
    run_quietly(venv)?;
    let mut pip = program(folder.join("bin/python"), &["-m", "pip", "install", "--quiet", "--no-deps"]);
    pip.args(["--disable-pip-version-check", "-r"]).arg(pins).current_dir(folder);
    run_quietly(pip)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{DISCORD, OPENAI, SCHEMATHESIS, SLACK, TELEGRAM, sources};

    #[test]
    fn every_python_package_is_pinned_to_one_version() {
        for name in [DISCORD, OPENAI, SCHEMATHESIS, SLACK, TELEGRAM] {
            let pins = fs::read_to_string(sources().join(format!("{name}.txt"))).unwrap();
            let packages: Vec<_> = pins.lines().filter(|line| !line.starts_with('#')).collect();
            assert!(packages.iter().any(|line| line.starts_with(&format!("{name}=="))), "{name} is not pinned");
            for line in packages {
                let (package, version) = line.split_once("==").unwrap_or((line, ""));
                assert!(!package.is_empty() && version.starts_with(|c: char| c.is_ascii_digit()), "{line:?} is no pin");
            }
        }
    }
}
