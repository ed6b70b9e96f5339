//! `cargo xtask install-clis`: the agent CLIs pinned in `conformance/package.json`, installed and verified.
//!
//! The lock file is only read: it names no download host, so that it works with whatever registry the machine uses.
//! Install scripts are not run by npm, which may or may not run them by version and setting; the one that a CLI needs
//! is run here by name. The others that the packages have build native modules that no CLI needs to run.
//!
//! Some packages for systems other than glibc Linux on x86-64 are locked by their version alone, without a hash.
//!
//! Starting all CLIs takes seconds, so a verified installation is remembered by the names, sizes and times of its
//! files, and verified again when one of them is different.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::command::{output, program, root, run_quietly};

struct Cli {
    package: &'static str,
    command: &'static str,
    /// Relative to the package; puts the machine's binary, which is in a package of its own, in the place of a stub.
    install_script: Option<&'static str>,
}

const CLIS: [Cli; 5] = [
    Cli { package: "@anthropic-ai/claude-code", command: "claude", install_script: Some("install.cjs") },
    Cli { package: "@openai/codex", command: "codex", install_script: None }, // a launcher finds the binary
    Cli { package: "@google/gemini-cli", command: "gemini", install_script: None }, // JavaScript
    Cli { package: "opencode-ai", command: "opencode", install_script: Some("postinstall.mjs") },
    // Speaks ACP, and brings a Claude Code of its own.
    Cli { package: "@agentclientprotocol/claude-agent-acp", command: "claude-agent-acp", install_script: None },
];

/// The folder with the pinned CLIs' commands.
pub(crate) fn bin_dir() -> PathBuf {
    conformance().join("node_modules/.bin")
}

pub(crate) fn run() -> Result<()> {
    let _one_at_a_time = lock()?;
    println!("{}", installed()?);
    Ok(())
}

/// One line for each CLI.
fn installed() -> Result<String> {
    let memory = root().join("target/install-clis.verified");
    if let Some(found) = recall(&memory) {
        return Ok(found);
    }
    let found = if let Ok(found) = verify() {
        found
    } else {
        install()?;
        verify().context("the agent CLIs were installed, but are not as pinned")?
    };
    let found = found.join("\n");
    remember(&memory, &found)?;
    Ok(found)
}

/// What was found when these very files were verified.
fn recall(memory: &Path) -> Option<String> {
    let text = fs::read_to_string(memory).ok()?;
    let (verified, found) = text.split_once('\n')?;
    (verified == fingerprint(&conformance()).ok()?).then(|| found.to_owned())
}

fn remember(memory: &Path, found: &str) -> Result<()> {
    let verified = fingerprint(&conformance()).context("cannot list conformance/node_modules")?;
    fs::write(memory, format!("{verified}\n{found}")).with_context(|| format!("cannot write {}", memory.display()))
}

/// Differs when what is pinned, or the name, size or time of an installed file is different.
fn fingerprint(conformance: &Path) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    CLIS.map(|cli| cli.command).hash(&mut hasher);
    for pins in ["package.json", "package-lock.json"] {
        fs::read(conformance.join(pins))?.hash(&mut hasher);
    }
    hash_files(&conformance.join("node_modules"), &mut hasher)?;
    Ok(format!("{:016x}", hasher.finish()))
}

fn hash_files(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    entries.len().hash(hasher);
    for entry in entries {
        entry.file_name().hash(hasher);
        let metadata = entry.metadata()?; // of a link itself
        if metadata.is_dir() {
            hash_files(&entry.path(), hasher)?;
        } else {
            (metadata.len(), metadata.modified()?).hash(hasher);
        }
    }
    Ok(())
}

fn conformance() -> PathBuf {
    root().join("conformance")
}

/// Two installations at once would delete each other's files.
fn lock() -> Result<File> {
    let folder = root().join("target");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join("install-clis.lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

fn install() -> Result<()> {
    let mut npm = program("npm", &["ci", "--ignore-scripts", "--include=optional", "--no-audit", "--no-fund"]);
    npm.current_dir(conformance());
    println!("Installing the pinned agent CLIs. This can take minutes.");
    run_quietly(npm)?;
    let home = tempfile::tempdir().context("cannot make a private home")?;
    for cli in &CLIS {
        if let Some(script) = cli.install_script {
            let mut node = program("node", &[script]);
            node.current_dir(conformance().join("node_modules").join(cli.package));
            isolate(&mut node, home.path());
            node.env("npm_config_offline", "true"); // rather a failure than a download that no hash is checked for
            run_quietly(node)?;
        }
    }
    Ok(())
}

/// The CLIs write to the home as soon as they start, and their answers depend on the settings that they find.
fn isolate(command: &mut Command, home: &Path) {
    command.env_clear().env("HOME", home);
    if let Some(path) = env::var_os("PATH") {
        command.env("PATH", path);
    }
    command.env("DISABLE_AUTOUPDATER", "1").env("OPENCODE_DISABLE_AUTOUPDATE", "1");
    command.env("GEMINI_CLI_NO_RELAUNCH", "1"); // one process instead of two, half the time
}

/// Returns one line for each CLI, if every package has the locked version and every CLI reports the pinned one.
fn verify() -> Result<Vec<String>> {
    let conformance = conformance();
    for (folder, locked) in locked_packages(&read_json(&conformance.join("package-lock.json"))?) {
        match read_json(&conformance.join(&folder).join("package.json")) {
            Ok(installed) => ensure!(
                installed.get("version") == Some(&Value::String(locked.version.clone())),
                "{folder} is not {}",
                locked.version
            ),
            Err(error) if !locked.optional => return Err(error),
            Err(_) => {} // made for another system
        }
    }
    let manifest = read_json(&conformance.join("package.json"))?;
    CLIS.iter().map(|cli| verify_cli(cli, &manifest)).collect()
}

fn verify_cli(cli: &Cli, manifest: &Value) -> Result<String> {
    let pinned = manifest.get("dependencies").and_then(|all| all.get(cli.package)).and_then(Value::as_str);
    let pinned = pinned.with_context(|| format!("conformance/package.json does not pin {}", cli.package))?;
    let home = tempfile::tempdir().context("cannot make a private home")?;
    let mut command = program(bin_dir().join(cli.command), &["--version"]);
    isolate(&mut command, home.path());
    match output(command) {
        Some(version) if version.split_whitespace().any(|word| word == pinned) => {
            Ok(format!("{}: {version}", cli.command))
        }
        Some(version) => bail!("`{} --version` prints {version:?}, but {pinned} is pinned", cli.command),
        None => bail!("`{} --version` does not run", cli.command),
    }
}

struct Locked {
    version: String,
    /// Installed only where its system and processor match.
    optional: bool,
}

/// The packages of a lock file by their folder.
fn locked_packages(lock: &Value) -> BTreeMap<String, Locked> {
    let packages = lock.get("packages").and_then(Value::as_object).into_iter().flatten();
    packages
        .filter(|(folder, _)| folder.starts_with("node_modules/"))
        .filter_map(|(folder, package)| {
            let version = package.get("version")?.as_str()?.to_owned();
            let optional = package.get("optional").and_then(Value::as_bool).unwrap_or(false);
            Some((folder.clone(), Locked { version, optional }))
        })
        .collect()
}

fn read_json(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::{CLIS, conformance, fingerprint, locked_packages, read_json};

    #[test]
    fn the_lock_file_names_no_download_host() {
        let lock = read_json(&conformance().join("package-lock.json")).unwrap();
        for (folder, package) in lock["packages"].as_object().unwrap() {
            assert!(
                package.get("resolved").is_none(),
                "{folder}: remove \"resolved\" (conformance/.npmrc keeps it out)"
            );
        }
    }

    #[test]
    fn every_package_for_x86_64_linux_is_locked_with_a_hash() {
        let lock = read_json(&conformance().join("package-lock.json")).unwrap();
        for (folder, package) in lock["packages"].as_object().unwrap() {
            let allows = |what: &str, wanted: &str| {
                package.get(what).is_none_or(|list| list.as_array().unwrap().contains(&json!(wanted)))
            };
            let installed = allows("os", "linux") && allows("cpu", "x64") && allows("libc", "glibc");
            let hashed = folder.is_empty() || package.get("integrity").is_some();
            assert!(hashed || !installed, "{folder} is locked without a hash");
            assert!(hashed || package["optional"] == json!(true), "{folder} is locked without a hash");
        }
    }

    #[test]
    fn every_cli_is_pinned_to_one_version_and_locked_to_it() {
        let manifest = read_json(&conformance().join("package.json")).unwrap();
        let locked = locked_packages(&read_json(&conformance().join("package-lock.json")).unwrap());
        for cli in &CLIS {
            let pinned = manifest["dependencies"][cli.package].as_str().unwrap();
            assert!(pinned.starts_with(|first: char| first.is_ascii_digit()), "{} is a range: {pinned}", cli.package);
            assert_eq!(locked[&format!("node_modules/{}", cli.package)].version, pinned);
        }
        assert_eq!(manifest["dependencies"].as_object().map(serde_json::Map::len), Some(CLIS.len()));
    }

    #[test]
    fn a_fingerprint_differs_between_pins_and_installed_files() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("node_modules/package");
        let before = |file: &str, text: &str| {
            let before = fingerprint(folder.path()).unwrap();
            assert_eq!(before, fingerprint(folder.path()).unwrap());
            fs::write(folder.path().join(file), text).unwrap();
            before
        };
        assert!(fingerprint(folder.path()).is_err());
        fs::create_dir_all(&package).unwrap();
        fs::write(folder.path().join("package.json"), "{}").unwrap();
        fs::write(folder.path().join("package-lock.json"), "{}").unwrap();

        let seen = [
            before("node_modules/package/cli", "a stub"),
            before("node_modules/package/cli", "the binary"),
            before("node_modules/package/more", ""),
            before("package-lock.json", "{ }"),
            fingerprint(folder.path()).unwrap(),
        ];
        for (index, fingerprint) in seen.iter().enumerate() {
            assert!(!seen[..index].contains(fingerprint), "{index}: {seen:?}");
        }

        fs::remove_file(package.join("cli")).unwrap();
        assert!(!seen.contains(&fingerprint(folder.path()).unwrap()));
    }

    #[test]
    fn a_lock_file_without_packages_is_an_empty_list() {
        assert!(locked_packages(&Value::Null).is_empty());
    }
}
