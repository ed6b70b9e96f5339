//! The user's file: reads, replaces and removes it.
//!
//! Invariants: a reader sees the old content or the new one, never a part of it and never a missing file. A link to the file
//! stays a link. Mode, owner and extended attributes stay. A change by another process since the file was read is not
//! overwritten, except in the moment between the last check and the rename.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{OFlags, XattrFlags, fgetxattr, flistxattr, fsetxattr};

use crate::MAX_BYTES;
use crate::error::{ConfigError, TargetProblem, io_error, target};
use crate::links;
use crate::modes::make_file_private;

/// A file by its resolved path, which contains no links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    path: PathBuf,
    /// The directory below which the path must contain no link when the file is used.
    within: Option<PathBuf>,
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Absent,
    Bytes(Vec<u8>),
}

/// The result of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Done,
    /// Another process has changed the file since it was read. Nothing was done.
    Raced,
}

impl Target {
    /// Resolves links, and finds the missing directories of a file that does not exist. Below `within`, only the user's own
    /// links are followed, and only to targets below it.
    pub(crate) fn resolve(path: &Path, within: Option<&Path>) -> Result<(Self, Vec<PathBuf>), ConfigError> {
        let mut path = std::path::absolute(path).map_err(io_error("find", path))?;
        let mut root = None;
        if let Some(within) = within {
            let within = std::path::absolute(within).map_err(io_error("find", within))?;
            let below = path.strip_prefix(&within).map_err(|_| target(&path, TargetProblem::ForeignLink))?.to_owned();
            let within = within.canonicalize().map_err(io_error("find", &within))?;
            links::check(&within, &below)?;
            path = within.join(below);
            root = Some(within);
        }
        let (path, missing) = Self::follow(&path)?;
        let target = Self { path, within: root };
        target.check_links()?;
        Ok((target, missing))
    }

    fn follow(path: &Path) -> Result<(PathBuf, Vec<PathBuf>), ConfigError> {
        match fs::symlink_metadata(path) {
            Ok(_) => match path.canonicalize() {
                Ok(path) => Ok((path, Vec::new())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Err(target(path, TargetProblem::DanglingLink)),
                Err(error) => Err(io_error("find", path)(error)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::of_missing(path),
            Err(error) => Err(io_error("find", path)(error)),
        }
    }

    fn of_missing(path: &Path) -> Result<(PathBuf, Vec<PathBuf>), ConfigError> {
        let nowhere = || target(path, TargetProblem::NoDirectory);
        let there = path.ancestors().skip(1).find(|path| fs::symlink_metadata(path).is_ok()).ok_or_else(nowhere)?;
        let missing = path.strip_prefix(there).map_err(|_| nowhere())?;
        let mut whole = there.canonicalize().map_err(|_| nowhere())?;
        if !whole.is_dir() || missing.components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(nowhere());
        }
        let mut made = Vec::new();
        for part in missing.components() {
            whole.push(part);
            made.push(whole.clone());
        }
        made.pop(); // the file itself
        Ok((whole, made))
    }

    /// Creates a target from a path that was resolved before.
    pub(crate) fn at(path: PathBuf, within: Option<PathBuf>) -> Self {
        Self { path, within }
    }

    /// Returns the directory below which the path must contain no link.
    pub(crate) fn within(&self) -> Option<&Path> {
        self.within.as_deref()
    }

    /// Whether the file has other names (hard links).
    pub(crate) fn has_other_names(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|metadata| metadata.is_file() && metadata.nlink() > 1)
    }

    fn check_links(&self) -> Result<(), ConfigError> {
        match &self.within {
            Some(root) if !self.path.starts_with(root) => Err(target(&self.path, TargetProblem::ForeignLink)),
            Some(root) => links::check_none(root, &self.path),
            None => Ok(()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks the file's mode and names.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) if metadata.is_file() && metadata.mode() & 0o200 == 0 => {
                Err(target(&self.path, TargetProblem::ReadOnly))
            }
            Ok(metadata) if metadata.is_file() && metadata.nlink() > 1 => {
                Err(target(&self.path, TargetProblem::HardLinks))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn read(&self) -> Result<Content, ConfigError> {
        self.check_links()?;
        let file = match self.open() {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Content::Absent);
            }
            Err(error) if fs::symlink_metadata(&self.path).is_ok_and(|metadata| !metadata.is_file()) => {
                tracing::debug!(%error, "not a file");
                return Err(target(&self.path, TargetProblem::NotAFile));
            }
            Err(error) => return Err(io_error("read", &self.path)(error)),
        };
        let metadata = file.metadata().map_err(io_error("read", &self.path))?;
        if !metadata.is_file() {
            return Err(target(&self.path, TargetProblem::NotAFile));
        }
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(io_error("read", &self.path))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(target(&self.path, TargetProblem::TooLarge));
        }
        Ok(Content::Bytes(bytes))
    }

    /// Opens the file without following a link or waiting for a pipe.
    fn open(&self) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(&self.path)
    }

    /// Replaces `before` by `after`. `temporary` is the name of a temporary file beside it.
    pub(crate) fn change(
        &self,
        before: &Content,
        after: &Content,
        temporary: &OsStr,
        step: fn(&'static str),
    ) -> Result<Written, ConfigError> {
        if before == after {
            return Ok(Written::Done);
        }
        let written = match after {
            Content::Bytes(bytes) => self.write(before, bytes, temporary, step)?,
            Content::Absent if self.read()? == *before => {
                fs::remove_file(&self.path).map_err(io_error("remove", &self.path))?;
                Written::Done
            }
            Content::Absent => Written::Raced,
        };
        step("the file has changed");
        sync_directory(self.directory()).map_err(io_error("write", self.directory()))?;
        Ok(written)
    }

    fn write(
        &self,
        before: &Content,
        bytes: &[u8],
        temporary: &OsStr,
        step: fn(&'static str),
    ) -> Result<Written, ConfigError> {
        let directory = self.directory();
        let cannot = |error| io_error("write a file in", directory)(error);
        let old = match before {
            Content::Bytes(_) => Some(self.open().map_err(io_error("read", &self.path))?),
            Content::Absent => None,
        };
        let mut new = tempfile::Builder::new()
            .prefix(temporary)
            .rand_bytes(0)
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(directory)
            .map_err(cannot)?;
        step("a temporary file is there");
        make_file_private(new.as_file()).map_err(cannot)?;
        crate::file_size::check(bytes).and_then(|()| new.write_all(bytes)).map_err(cannot)?;
        if let Some(old) = &old {
            let metadata = old.metadata().map_err(io_error("read", &self.path))?;
            keep_attributes(old, &metadata, new.as_file()).map_err(io_error("keep owner and mode of", &self.path))?;
        }
        new.as_file().sync_all().map_err(cannot)?;
        step("the temporary file is written");
        if self.read()? != *before {
            return Ok(Written::Raced);
        }
        let persisted = match before {
            Content::Bytes(_) => new.persist(&self.path),
            Content::Absent => new.persist_noclobber(&self.path),
        };
        match persisted {
            Ok(_) => Ok(Written::Done),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(Written::Raced),
            Err(error) => Err(io_error("replace", &self.path)(error.error)),
        }
    }

    /// Removes a temporary file that a crash left.
    pub(crate) fn remove_temporary(&self, name: &OsStr) {
        let path = self.directory().join(name);
        // A link that was added to the path since then leads to another file.
        if self.check_links().is_ok() && fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            _ = fs::remove_file(path);
        }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

/// The owner is set first, because a change of the owner removes permissions.
fn keep_attributes(old: &File, metadata: &Metadata, new: &File) -> io::Result<()> {
    let made = new.metadata()?;
    if (made.uid(), made.gid()) != (metadata.uid(), metadata.gid()) {
        fchown(new, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    new.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777))?;
    // Labels and access lists, as far as this user may set them and the file system supports them.
    if let Err(error) = copy_xattrs(old, new) {
        tracing::debug!(%error, "extended attributes are not copied");
    }
    Ok(())
}

fn copy_xattrs(old: &File, new: &File) -> rustix::io::Result<()> {
    let mut names = vec![0_u8; 64 * 1024];
    let length = flistxattr(old, &mut names[..])?;
    let names = names.get(..length).unwrap_or_default();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0_u8; 64 * 1024];
        let length = fgetxattr(old, name, &mut value[..])?;
        fsetxattr(new, name, value.get(..length).unwrap_or_default(), XattrFlags::empty())?;
    }
    Ok(())
}

/// Makes changes in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
