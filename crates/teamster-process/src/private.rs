//! A directory for files that only this user can read, removed after the run.
//!
//! Invariants: no other user can list, read or replace its contents; links in it are never
//! followed; it is removed with its contents on drop.

use std::{
    env, fs,
    io::{self, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{Access, AtFlags, Mode, OFlags, access, fchmod, fstat, open, openat, unlinkat},
    process::geteuid,
};
use tempfile::TempDir;

use crate::write_signals::without_write_signals;

/// Why a private file or directory could not be created or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateError {
    /// The directory could not be created.
    #[error("cannot create a private directory in {parent:?}")]
    Create {
        /// The directory in which it was to be created.
        parent: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Something else is at the directory's path.
    #[error("{path:?} is not the private directory that was created there")]
    Replaced {
        /// The directory.
        path: PathBuf,
    },
    /// The name of a file or directory is not a single name.
    #[error("{name:?} is not a plain name")]
    Name {
        /// The name.
        name: String,
    },
    /// A file could not be written.
    #[error("cannot write {path:?}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system: no space, a read-only file system, or that the file exists.
        source: io::Error,
    },
    /// The directory could not be removed.
    #[error("cannot remove the private directory {path:?}; remove it by hand")]
    Remove {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// A private directory.
#[derive(Debug)]
pub struct PrivateDir {
    directory: TempDir,
    /// A descriptor of the directory, whatever its path names later.
    handle: OwnedFd,
}

impl PrivateDir {
    /// Creates a directory with mode 0700 and a name that cannot be guessed, which starts with `name_hint`, in
    /// `parent`, or in [`default_parent`](Self::default_parent).
    pub fn create(parent: Option<&Path>, name_hint: &str) -> Result<Self, PrivateError> {
        if !name_hint.is_empty() {
            check(name_hint)?;
        }
        Self::make(parent.map_or_else(Self::default_parent, Path::to_owned), name_hint, 16)
    }

    /// Creates a directory with mode 0700 and exactly this name in a directory that only this user can use.
    pub(crate) fn create_named(parent: &Path, name: &str) -> Result<Self, PrivateError> {
        check(name)?;
        Self::make(parent.to_owned(), name, 0)
    }

    fn make(parent: PathBuf, prefix: &str, random_bytes: usize) -> Result<Self, PrivateError> {
        let directory = tempfile::Builder::new()
            .prefix(prefix)
            .rand_bytes(random_bytes)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(|source| PrivateError::Create { parent: parent.clone(), source })?;
        give_owner_rights(directory.path())
            .map_err(|source| PrivateError::Create { parent: parent.clone(), source })?;
        let handle = open(
            directory.path(),
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let owned = handle.and_then(|handle| Ok((fstat(&handle)?, handle)));
        let (stat, handle) = owned.map_err(|errno| PrivateError::Create { parent, source: errno.into() })?;
        if stat.st_uid != geteuid().as_raw() || Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO) {
            return Err(PrivateError::Replaced { path: directory.path().to_owned() });
        }
        Ok(Self { directory, handle })
    }

    /// Returns the default parent of private directories: `$XDG_RUNTIME_DIR`, if only this user can
    /// use it, else the system's directory for temporary files (`$TMPDIR`, or `/tmp`).
    pub fn default_parent() -> PathBuf {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        runtime.filter(|path| path.is_absolute() && is_private(path)).unwrap_or_else(env::temp_dir)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a new file with mode 0600. `name` is a single path component; an existing file is not
    /// changed.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, PrivateError> {
        check(name)?;
        let path = self.path().join(name);
        match self.write_new(name, bytes) {
            Ok(()) => Ok(path),
            Err(source) => Err(PrivateError::Write { path, source }),
        }
    }

    /// Removes the directory and its contents. In contrast to a drop, it reports errors.
    pub fn remove(self) -> Result<(), PrivateError> {
        let path = self.path().to_owned();
        self.directory.close().map_err(|source| PrivateError::Remove { path, source })
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = openat(&self.handle, name, flags, mode)?;
        // The umask may have removed the owner's permissions.
        let written = fchmod(&file, mode).map_err(io::Error::from).and_then(|()| {
            let mut file = fs::File::from(file);
            without_write_signals(|| file.write_all(bytes))
        });
        if written.is_err() {
            // A partial file is worse than none; the first error is reported.
            _ = unlinkat(&self.handle, name, AtFlags::empty());
        }
        written
    }
}

fn check(name: &str) -> Result<(), PrivateError> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        // Comparing with the whole name rejects `a/` and `a/.`, which have one component too.
        (Some(Component::Normal(only)), None) if only == name && !name.contains('\0') => Ok(()),
        _ => Err(PrivateError::Name { name: name.to_owned() }),
    }
}

/// Creates a directory with mode 0700, independent of the umask.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)?;
    give_owner_rights(path)
}

/// Sets mode 0700 on a directory that was just created under a stricter umask. The directory is
/// removed if that fails.
pub(crate) fn give_owner_rights(path: &Path) -> io::Result<()> {
    let given = fs::symlink_metadata(path).and_then(|metadata| {
        // Anything else at this path is not changed.
        let is_ours = metadata.is_dir() && metadata.uid() == geteuid().as_raw();
        if is_ours && metadata.mode() & 0o777 != 0o700 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    });
    given.inspect_err(|_| _ = fs::remove_dir(path))
}

/// Returns whether a directory belongs to this user, only this user can enter it, and it is
/// writable.
pub(crate) fn is_private(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o777 == 0o700
    }) && access(directory, Access::WRITE_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn the_directory_and_its_files_are_this_users_alone() {
        let parent = tempfile::tempdir().unwrap();
        let private = PrivateDir::create(Some(parent.path()), "run-").unwrap();
        let path = private.write("settings.json", b"secret").unwrap();
        assert_eq!(mode(private.path()), 0o700);
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read(&path).unwrap(), b"secret");
        assert!(private.path().file_name().unwrap().to_str().unwrap().starts_with("run-"));
    }

    #[test]
    fn a_dropped_directory_is_removed_with_its_contents() {
        let parent = tempfile::tempdir().unwrap();
        let private = PrivateDir::create(Some(parent.path()), "run-").unwrap();
        private.write("a", b"x").unwrap();
        fs::create_dir(private.path().join("by-the-program")).unwrap();
        drop(private);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn two_directories_never_share_a_name() {
        let parent = tempfile::tempdir().unwrap();
        let create = || PrivateDir::create(Some(parent.path()), "run-").unwrap();
        assert_ne!(create().path(), create().path());
    }

    #[test]
    fn a_name_with_more_than_one_part_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let private = PrivateDir::create(Some(parent.path()), "").unwrap();
        for name in ["", ".", "..", "a/b", "/a", "a/", "./a", "a/.", "../a", "a\0b"] {
            assert!(matches!(private.write(name, b""), Err(PrivateError::Name { .. })), "{name:?}");
            let nested = PrivateDir::create(Some(parent.path()), name);
            assert_eq!(nested.is_ok(), name.is_empty(), "{name:?}");
        }
    }

    #[test]
    fn an_existing_file_or_link_is_not_changed() {
        let parent = tempfile::tempdir().unwrap();
        let private = PrivateDir::create(Some(parent.path()), "").unwrap();
        let target = parent.path().join("target");
        symlink(&target, private.path().join("link")).unwrap();
        private.write("file", b"first").unwrap();
        for name in ["link", "file"] {
            let error = private.write(name, b"second").unwrap_err();
            assert!(matches!(error, PrivateError::Write { path, source }
                if path == private.path().join(name) && source.kind() == io::ErrorKind::AlreadyExists));
        }
        assert!(!target.exists());
        assert_eq!(fs::read(private.path().join("file")).unwrap(), b"first");
    }

    #[test]
    fn files_go_to_the_directory_that_was_created_even_if_its_path_names_another() {
        let parent = tempfile::tempdir().unwrap();
        let private = PrivateDir::create(Some(parent.path()), "").unwrap();
        let (moved, theirs) = (parent.path().join("moved"), parent.path().join("theirs"));
        fs::create_dir(&theirs).unwrap();
        fs::rename(private.path(), &moved).unwrap();
        symlink(&theirs, private.path()).unwrap();
        private.write("secret", b"x").unwrap();
        assert!(moved.join("secret").exists());
        assert!(!theirs.join("secret").exists());
    }

    #[test]
    fn only_a_directory_that_others_cannot_enter_is_a_default_parent() {
        let directory = tempfile::tempdir().unwrap();
        for (mode, private) in [(0o700, true), (0o755, false), (0o770, false)] {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_private(directory.path()), private, "{mode:o}");
        }
        assert!(!is_private(Path::new("/nowhere")));
    }

    #[test]
    fn a_parent_that_does_not_exist_is_named_in_the_error() {
        let error = PrivateDir::create(Some(Path::new("/nowhere/at/all")), "").unwrap_err();
        assert!(matches!(&error, PrivateError::Create { parent, .. } if parent == Path::new("/nowhere/at/all")));
    }
}
