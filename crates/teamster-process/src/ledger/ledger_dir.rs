//! The directories of the ledger: which are used, and whether they are safe.

use std::{
    ffi::OsString,
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use super::error::{LedgerError, Refusal, io_error};
use crate::{
    private::{is_private, make_directory},
    sys,
};

/// The environment variable that names the only ledger directory.
pub const LEDGER_VARIABLE: &str = "TEAMSTER_LEDGER_DIR";

/// A ledger directory with the runs of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LedgerDir {
    path: PathBuf,
}

/// Returns the directories for new runs, in order of preference, and all directories that may hold
/// runs.
pub(super) fn of_user(variable: impl Fn(&str) -> Option<OsString>) -> (Vec<LedgerDir>, Vec<LedgerDir>) {
    let directory = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(only) = directory(LEDGER_VARIABLE) {
        return (vec![LedgerDir::new(only.clone())], vec![LedgerDir::new(only)]);
    }
    let uid = geteuid().as_raw();
    let runtime = directory("XDG_RUNTIME_DIR").filter(|path| is_private(path));
    let temporary = [directory("TMPDIR"), Some(PathBuf::from("/tmp"))];
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")));

    let mut candidates = Vec::new();
    candidates.extend(runtime.map(|path| path.join("teamster")));
    candidates.extend(temporary.into_iter().flatten().map(|path| path.join(format!("teamster-{uid}"))));
    candidates.extend(state.map(|path| path.join("teamster")));
    let mut candidates: Vec<_> = candidates.into_iter().map(LedgerDir::new).collect();
    candidates.dedup();

    let mut all = candidates.clone();
    // Also read without the variable, which a cron job lacks.
    let known = sys::known_ledger(uid).map(LedgerDir::new);
    all.extend(known.filter(|known| !candidates.contains(known)));
    (candidates, all)
}

impl LedgerDir {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }

    /// Creates it if it is missing, and returns its directory of runs. A concurrent cleanup may
    /// remove it while it is empty.
    pub(super) fn create(&self) -> Result<PathBuf, LedgerError> {
        if let Some(parent) = self.path.parent() {
            create_parents(parent)?;
        }
        self.check_parent()?;
        let runs = self.runs();
        for path in [&self.path, &runs] {
            create_private(path)?;
            check(path)?;
        }
        Ok(runs)
    }

    /// Returns the paths in the directory of runs. A ledger that is missing, or belongs to another
    /// user, has none.
    pub(super) fn entries(&self) -> Result<Vec<PathBuf>, LedgerError> {
        let runs = self.runs();
        let checked = self.check_parent().and_then(|()| check(&self.path)).and_then(|()| check(&runs));
        match checked {
            Ok(()) => {}
            Err(LedgerError::Io { source, .. }) if is_absent(&source) => return Ok(Vec::new()),
            Err(LedgerError::Refused { path, reason: Refusal::OtherUser | Refusal::NotADirectory }) => {
                tracing::debug!(path = %path.display(), "not a ledger of this user");
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        }
        let mut found = Vec::new();
        let entries = match fs::read_dir(&runs) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(found),
            Err(error) => return Err(io_error(&runs, error)),
        };
        for entry in entries {
            found.push(entry.map_err(|error| io_error(&runs, error))?.path());
        }
        Ok(found)
    }

    /// Removes it, if it is empty and owned by this user.
    pub(super) fn prune(&self) {
        if self.check_parent().is_ok() && check(&self.path).is_ok() {
            _ = fs::remove_dir(self.runs());
            _ = fs::remove_dir(&self.path);
        }
    }

    /// Checks that no other user can replace the directory.
    fn check_parent(&self) -> Result<(), LedgerError> {
        let parent = self.path.parent().unwrap_or(&self.path);
        let metadata = fs::metadata(parent).map_err(|error| io_error(parent, error))?;
        let trusted = [0, geteuid().as_raw()].contains(&metadata.uid());
        let sticky = metadata.mode() & 0o1000 != 0;
        let open = metadata.mode() & 0o022 != 0;
        if trusted && (sticky || !open) {
            return Ok(());
        }
        Err(LedgerError::Refused { path: self.path.clone(), reason: Refusal::OthersMayReplace })
    }
}

/// Returns whether a file does not exist, or a part of its path is not a directory.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Creates the missing parents (such as `~/.local/state`), only below a directory of this user.
fn create_parents(parent: &Path) -> Result<(), LedgerError> {
    let is_own = |metadata: Metadata| metadata.uid() == geteuid().as_raw();
    let Some(there) = parent.ancestors().find(|path| path.exists()) else {
        return Ok(());
    };
    if there == parent || !fs::metadata(there).is_ok_and(is_own) {
        return Ok(());
    }
    let missing: Vec<_> = parent.ancestors().take_while(|path| *path != there).collect();
    for (made, path) in missing.iter().rev().enumerate() {
        if let Err(error) = create_private(path) {
            // Removes the parents that were created before the error.
            missing.iter().rev().take(made).rev().for_each(|path| _ = fs::remove_dir(path));
            return Err(error);
        }
    }
    Ok(())
}

fn create_private(path: &Path) -> Result<(), LedgerError> {
    match make_directory(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(io_error(path, error)),
        _ => Ok(()),
    }
}

/// Checks that this is a directory, not a link, that only this user can enter.
fn check(path: &Path) -> Result<(), LedgerError> {
    let metadata = fs::symlink_metadata(path).map_err(|error| io_error(path, error))?;
    let refusal = if !metadata.is_dir() {
        Refusal::NotADirectory
    } else if metadata.uid() != geteuid().as_raw() {
        Refusal::OtherUser
    } else if metadata.mode() & 0o077 != 0 {
        Refusal::OthersMayEnter
    } else {
        return Ok(());
    };
    Err(LedgerError::Refused { path: path.to_owned(), reason: refusal })
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt};

    use super::*;

    fn named(variables: &[(&str, &str)]) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        let (candidates, all) = of_user(variable);
        let paths = |all: Vec<LedgerDir>| all.into_iter().map(|ledger_dir| ledger_dir.path).collect();
        (paths(candidates), paths(all))
    }

    fn of_uid(path: &str) -> PathBuf {
        path.replace("UID", &geteuid().as_raw().to_string()).into()
    }

    #[test]
    fn the_runtime_directory_is_preferred_then_temporary_files_then_the_state_directory() {
        let runtime = tempfile::tempdir().unwrap();
        fs::set_permissions(runtime.path(), Permissions::from_mode(0o700)).unwrap();
        let path = runtime.path().to_str().unwrap();
        let variables = [("XDG_RUNTIME_DIR", path), ("TMPDIR", "/scratch"), ("HOME", "/home/dev")];
        let (candidates, all) = named(&variables);
        let expected = [
            runtime.path().join("teamster"),
            of_uid("/scratch/teamster-UID"),
            of_uid("/tmp/teamster-UID"),
            "/home/dev/.local/state/teamster".into(),
        ];
        assert_eq!(candidates, expected);
        assert_eq!(all, [&expected[..], &[of_uid("/run/user/UID/teamster")]].concat());
    }

    #[test]
    fn variables_that_name_no_directory_of_this_user_are_ignored() {
        for wrong in ["/usr", "relative", ""] {
            let (candidates, _) = named(&[("XDG_RUNTIME_DIR", wrong), ("TMPDIR", "tmp"), ("HOME", "")]);
            assert_eq!(candidates, [of_uid("/tmp/teamster-UID")]);
        }
        let (candidates, _) = named(&[("TMPDIR", "/tmp/"), ("XDG_STATE_HOME", "/state"), ("HOME", "/home/dev")]);
        assert_eq!(candidates, [of_uid("/tmp/teamster-UID"), "/state/teamster".into()]);
    }

    #[test]
    fn a_directory_that_the_user_has_chosen_is_the_only_one() {
        let (candidates, all) = named(&[("TEAMSTER_LEDGER_DIR", "/only"), ("HOME", "/home/dev")]);
        assert_eq!(candidates, [PathBuf::from("/only")]);
        assert_eq!(all, candidates);
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let theirs = if geteuid().is_root() {
            std::os::unix::fs::chown(directory.path(), Some(65534), None).unwrap();
            directory.path()
        } else {
            Path::new("/usr")
        };
        let refused = check(theirs);
        assert!(matches!(refused, Err(LedgerError::Refused { reason: Refusal::OtherUser, .. })), "{refused:?}");
    }

    #[test]
    fn missing_parents_of_a_users_own_directory_are_created() {
        let home = tempfile::tempdir().unwrap();
        let ledger_dir = LedgerDir::new(home.path().join(".local/state/teamster"));
        assert!(ledger_dir.create().unwrap().is_dir());
        ledger_dir.prune();
        assert!(!ledger_dir.path().exists());
    }
}
