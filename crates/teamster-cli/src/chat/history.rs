//! The history file of typed lines. Only the user can read it.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Returns the path of the history file and creates it if it is missing. Returns `None` if it cannot be created.
pub(super) fn file() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    let path = state.join("teamster/chat-history");
    make_private(&path).ok()?;
    Some(path)
}

fn make_private(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        make_directories(directory)?;
    }
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the history is not a regular file"));
    }
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Creates missing directories with mode 0700, independent of the umask.
fn make_directories(directory: &Path) -> io::Result<()> {
    let missing: Vec<_> = directory.ancestors().take_while(|path| !path.exists()).collect();
    for path in missing.into_iter().rev() {
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => std::fs::set_permissions(path, Permissions::from_mode(0o700))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_is_readable_by_its_owner_only_and_keeps_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/history");
        make_private(&path).unwrap();
        std::fs::write(&path, "kept").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        make_private(&path).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
    }
}
