//! The user's file: read, replaced as a whole, removed.
//!
//! Invariants: a reader sees the old content or the new one, never a part, and never no file in between; a link to the
//! file stays a link; mode, owner and extended attributes stay. What somebody else wrote since the file was read is not
//! overwritten (but for the moment between the last look and the system's own rename).

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

/// A file, by its own path: without links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    path: PathBuf,
    /// The directory below which the path must hold no link when the file is used.
    within: Option<PathBuf>,
}

/// What stands where the file should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Absent,
    Bytes(Vec<u8>),
}

/// How a change went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Done,
    /// Somebody has changed the file since it was read: nothing was done.
    Raced,
}

impl Target {
    /// Follows links, and finds what is missing on the way to a file that is not there yet. Below `within` links are
    /// followed only if they are the user's own and lead to something below it.
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

    /// A file whose path was resolved before.
    pub(crate) fn at(path: PathBuf, within: Option<PathBuf>) -> Self {
        Self { path, within }
    }

    /// The directory below which the path must hold no link.
    pub(crate) fn within(&self) -> Option<&Path> {
        self.within.as_deref()
    }

    /// Whether the file has other names too.
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

    /// Whether it may be edited at all: a question of its mode and its names.
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

    /// Opens the file. Neither is a link followed, nor a pipe waited for.
    fn open(&self) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(&self.path)
    }

    /// Turns `before` into `after`. `temporary` is the name of a file beside it that is there for a moment.
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
        // A link that has come into the path since leads to somebody else's files.
        if self.check_links().is_ok() && fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
            _ = fs::remove_file(path);
        }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

/// Owner first: a change of it takes rights away.
fn keep_attributes(old: &File, metadata: &Metadata, new: &File) -> io::Result<()> {
    let made = new.metadata()?;
    if (made.uid(), made.gid()) != (metadata.uid(), metadata.gid()) {
        fchown(new, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    new.set_permissions(Permissions::from_mode(metadata.mode() & 0o7777))?;
    // Labels and access lists, as far as this user may set them and the file system has them.
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

/// Makes what was made in a directory last.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
