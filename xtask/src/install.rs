//! `cargo xtask install` and `uninstall`: the command, its man pages and its completions below a prefix.

use std::fs::{self, File};
use std::io;
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
    // The copied file is the one that is built now, wherever the environment puts other builds.
    build.arg("--target-dir").arg(root().join("target")).env_remove("CARGO_BUILD_TARGET");
    if let Some(commit) = output(program("git", &["rev-parse", "--short", "HEAD"])) {
        build.env("TEAMSTER_COMMIT", commit.trim());
    }
    command::run(build)?;
    for (from, to) in files(&prefix)? {
        copy(&from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        println!("{}", to.display());
    }
    Ok(())
}

/// Copies a file, and replaces another one in one step. A running command keeps its old file. A link at the path is replaced,
/// not followed, and a file that cannot be copied whole is removed.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let directory = to.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory)?;
    let mut source = File::open(from)?;
    let mut copy = tempfile::Builder::new().prefix(".teamster-").tempfile_in(directory)?;
    io::copy(&mut source, &mut copy)?;
    copy.as_file().set_permissions(source.metadata()?.permissions())?;
    copy.persist(to)?;
    Ok(())
}

/// Removes what [`run`] copies. Prints each path.
pub(crate) fn remove(args: &Args) -> Result<()> {
    for (_, path) in files(&prefix(args)?)? {
        match fs::remove_file(&path) {
            Ok(()) => println!("{}", path.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_copy_replaces_a_link_and_follows_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("built"), "new").unwrap();
        fs::set_permissions(path("built"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(path("bin")).unwrap();
        fs::write(path("other"), "other").unwrap();
        for link in ["bin/teamster", "bin/teamster.next"] {
            symlink(path("other"), path(link)).unwrap();
        }
        copy(&path("built"), &path("bin/teamster")).unwrap();
        assert_eq!(fs::read(path("other")).unwrap(), b"other");
        assert_eq!(fs::read(path("bin/teamster")).unwrap(), b"new");
        let copied = fs::symlink_metadata(path("bin/teamster")).unwrap();
        assert!(copied.is_file() && copied.permissions().mode() & 0o777 == 0o755);
        assert!(copy(&path("none"), &path("share/none")).is_err());
        assert_eq!(fs::read_dir(path("share")).unwrap().count(), 0);
    }
}
