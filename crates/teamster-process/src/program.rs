//! Finds an executable by name.
//!
//! It follows the rules of a shell with one exception: relative directories in `PATH` are ignored,
//! since they depend on the working directory, which may contain untrusted files.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

/// Why no executable was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// The name is empty.
    #[error("the name of the program is empty")]
    Empty,
    /// No directory in `PATH` has a program of this name.
    #[error("no program {name:?} in the {directories} directories of PATH; install it, or give its full path")]
    NotInPath {
        /// The name that was searched.
        name: OsString,
        /// The number of directories that were searched.
        directories: usize,
    },
    /// The path does not exist.
    #[error("{path:?} does not exist")]
    Missing {
        /// The path, made absolute.
        path: PathBuf,
    },
    /// The path is a symbolic link to a missing file, as a broken installation leaves it.
    #[error("{path:?} is a link to a file that does not exist; reinstall the program")]
    Dangling {
        /// The link.
        path: PathBuf,
    },
    /// The file exists, but is not executable.
    #[error("{path:?} is not executable; check its permissions")]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// The path names a directory or a device.
    #[error("{path:?} is not a regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The path could not be examined.
    #[error("cannot examine {path:?}")]
    Unreadable {
        /// The path, made absolute.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Finds the executable `name`. A name without a slash is searched in the directories of `path` (the
/// value of `PATH`); a name with a slash is a path relative to `cwd`.
pub fn find_program(name: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, FindError> {
    if name.is_empty() {
        return Err(FindError::Empty);
    }
    if name.as_bytes().contains(&b'/') {
        let candidate = cwd.join(name);
        return examine(&candidate).map(|()| candidate);
    }

    let mut directories = 0;
    let mut unusable = None;
    for directory in path.into_iter().flat_map(std::env::split_paths).filter(|entry| entry.is_absolute()) {
        directories += 1;
        let candidate = directory.join(name);
        match examine(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error @ (FindError::NotExecutable { .. } | FindError::Dangling { .. })) => {
                unusable.get_or_insert(error);
            }
            Err(_) => {}
        }
    }
    Err(unusable.unwrap_or_else(|| FindError::NotInPath { name: name.to_owned(), directories }))
}

fn examine(candidate: &Path) -> Result<(), FindError> {
    let path = || candidate.to_owned();
    match std::fs::metadata(candidate) {
        Ok(metadata) if !metadata.is_file() => Err(FindError::NotAFile { path: path() }),
        Ok(_) if access(candidate, Access::EXEC_OK).is_err() => Err(FindError::NotExecutable { path: path() }),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && candidate.is_symlink() => {
            Err(FindError::Dangling { path: path() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(FindError::Missing { path: path() }),
        Err(source) => Err(FindError::Unreadable { path: path(), source }),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    fn file(directory: &Path, name: &str, mode: u32) {
        let path = directory.join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn find(name: &str, path: &[&Path], cwd: &Path) -> Result<PathBuf, FindError> {
        let joined = std::env::join_paths(path).unwrap();
        find_program(name.as_ref(), Some(&joined), cwd)
    }

    #[test]
    fn the_first_executable_in_path_wins_over_an_earlier_one_that_is_not() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        file(first.path(), "agent", 0o644);
        file(second.path(), "agent", 0o755);
        let found = find("agent", &[first.path(), second.path()], Path::new("/")).unwrap();
        assert_eq!(found, second.path().join("agent"));
    }

    #[test]
    fn a_file_that_is_not_executable_has_its_own_error() {
        let directory = tempfile::tempdir().unwrap();
        file(directory.path(), "agent", 0o644);
        let error = find("agent", &[directory.path()], Path::new("/")).unwrap_err();
        assert!(matches!(error, FindError::NotExecutable { path } if path == directory.path().join("agent")));
    }

    #[test]
    fn a_broken_link_in_path_has_its_own_error() {
        let directory = tempfile::tempdir().unwrap();
        symlink("/nowhere/at/all", directory.path().join("agent")).unwrap();
        let error = find("agent", &[directory.path()], Path::new("/")).unwrap_err();
        assert!(matches!(error, FindError::Dangling { .. }));
    }

    #[test]
    fn a_program_that_is_nowhere_is_reported_with_the_number_of_directories() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("agent")).unwrap();
        let error = find("agent", &[directory.path(), Path::new("/nowhere")], Path::new("/")).unwrap_err();
        assert!(matches!(error, FindError::NotInPath { directories: 2, .. }));
        assert_eq!(
            error.to_string(),
            r#"no program "agent" in the 2 directories of PATH; install it, or give its full path"#
        );
        let without_path = find_program("agent".as_ref(), None, Path::new("/")).unwrap_err();
        assert!(matches!(without_path, FindError::NotInPath { directories: 0, .. }));
    }

    #[test]
    fn a_relative_directory_in_path_never_finds_a_program_in_the_working_directory() {
        let directory = tempfile::tempdir().unwrap();
        file(directory.path(), "agent", 0o755);
        for relative in [":", ".", "::."] {
            let found = find_program("agent".as_ref(), Some(relative.as_ref()), directory.path());
            assert!(matches!(found, Err(FindError::NotInPath { directories: 0, .. })), "PATH={relative}");
        }
    }

    #[test]
    fn a_name_with_a_slash_is_taken_relative_to_the_working_directory() {
        let directory = tempfile::tempdir().unwrap();
        file(directory.path(), "agent", 0o755);
        let found = find("./agent", &[], directory.path()).unwrap();
        assert_eq!(found, directory.path().join("./agent"));
        assert!(matches!(find("./other", &[], directory.path()), Err(FindError::Missing { .. })));
        assert!(matches!(find("./", &[], directory.path()), Err(FindError::NotAFile { .. })));
        assert!(matches!(find("./agent/x", &[], directory.path()), Err(FindError::Unreadable { .. })));
        assert!(matches!(find("", &[], directory.path()), Err(FindError::Empty)));
    }
}
