//! `cargo xtask install` and `uninstall`: the command, its man pages and its completions below a prefix.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::command::{self, cargo, output, program, root};

/// The options of `install` and `uninstall`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Use this directory [default: ~/.local]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
}

/// The completion scripts: the file in `packaging/completions`, and its place below the prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("teamster.bash", "share/bash-completion/completions/teamster"),
    ("_teamster", "share/zsh/site-functions/_teamster"),
    ("teamster.fish", "share/fish/vendor_completions.d/teamster.fish"),
];

/// Builds the command, and copies it with its pages and scripts. Prints each path.
pub(crate) fn run(args: &Args) -> Result<()> {
    let prefix = prefix(args)?;
    let mut build = cargo(&["build", "--release", "--locked", "--package", "teamster-cli"]);
    if let Some(commit) = output(program("git", &["rev-parse", "--short", "HEAD"])) {
        build.env("TEAMSTER_COMMIT", commit.trim());
    }
    command::run(build)?;
    for (from, to) in files(&prefix)? {
        if let Some(directory) = to.parent() {
            fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        }
        // A running command keeps its old file.
        let next = to.with_extension("next");
        fs::copy(&from, &next).with_context(|| format!("cannot copy {} to {}", from.display(), next.display()))?;
        fs::rename(&next, &to).with_context(|| format!("cannot write {}", to.display()))?;
        println!("{}", to.display());
    }
    Ok(())
}

/// Removes what [`run`] copies. Prints each path.
pub(crate) fn remove(args: &Args) -> Result<()> {
    for (_, path) in files(&prefix(args)?)? {
        match fs::remove_file(&path) {
            Ok(()) => println!("{}", path.display()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot remove {}", path.display())),
        }
    }
    Ok(())
}

fn prefix(args: &Args) -> Result<PathBuf> {
    if let Some(prefix) = &args.prefix {
        return Ok(std::path::absolute(prefix)?);
    }
    match std::env::var_os("HOME").filter(|home| !home.is_empty()) {
        Some(home) => Ok(Path::new(&home).join(".local")),
        None => bail!("HOME is not set: name a directory with --prefix"),
    }
}

/// Returns each file, and its place below the prefix.
fn files(prefix: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let packaging = root().join("packaging");
    let mut files = vec![(root().join("target/release/teamster"), prefix.join("bin/teamster"))];
    for page in fs::read_dir(packaging.join("man"))? {
        let page = page?;
        files.push((page.path(), prefix.join("share/man/man1").join(page.file_name())));
    }
    let scripts = COMPLETIONS.map(|(name, place)| (packaging.join("completions").join(name), prefix.join(place)));
    files.extend(scripts);
    Ok(files)
}
