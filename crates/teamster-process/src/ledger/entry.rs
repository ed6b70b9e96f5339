//! The ledger's entry for one run: a file in the run's directory.

use std::{
    fs::{File, Permissions},
    io::{self, Read, Write},
    os::{fd::BorrowedFd, unix::fs::PermissionsExt},
    path::Path,
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{FileType, Mode, OFlags, fstat, openat},
    io::Errno,
    process::getpid,
};
use serde::{Deserialize, Serialize};

use crate::{
    env_marker::{self, EnvMarker},
    process::Process,
    sys,
    write_signals::without_write_signals,
};

const FILE: &str = "entry.json";

/// The version of the format. Other versions are not read.
const VERSION: u32 = 1;

/// The largest entry that is read; a real one has a few hundred bytes.
const MAX_BYTES: u64 = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    version: u32,
    #[serde(rename = "here")]
    pub(super) scope: PidScope,
    pub(super) label: String,
    /// The environment variable that every descendant inherits.
    #[serde(rename = "mark")]
    pub(super) marker: String,
    /// Seconds since 1970.
    began: u64,
    /// The process that registered the run.
    pub(super) host: Process,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) leader: Option<Process>,
    /// The keeper of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) keeper: Option<Process>,
    /// The host gave the run up with processes that it could not kill. Any sweep may try again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) given_up: bool,
}

/// The scope in which pids are valid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PidScope {
    /// The id of the system's boot.
    pub(super) boot: String,
    pub(super) pid_namespace: u64,
}

/// The contents of a run's entry.
#[derive(Debug)]
pub(super) enum Content {
    /// There is no entry: its creator did not write it.
    Missing,
    /// The entry is damaged.
    Damaged,
    /// The entry has another version.
    UnsupportedVersion(u32),
    Entry(Box<Entry>),
}

impl PidScope {
    pub(super) fn now() -> io::Result<Self> {
        Ok(Self { boot: sys::boot()?, pid_namespace: sys::pid_namespace()? })
    }
}

fn own_process() -> io::Result<Process> {
    let pid = getpid().as_raw_nonzero().get();
    Process::of(pid).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the start time of this process is unknown"))
}

impl Entry {
    pub(super) fn new(label: &str, marker: &EnvMarker) -> io::Result<Self> {
        Ok(Self {
            version: VERSION,
            scope: PidScope::now()?,
            label: label.to_owned(),
            marker: marker.name().to_owned(),
            began: SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs(),
            host: own_process()?,
            leader: None,
            keeper: None,
            given_up: false,
        })
    }

    pub(super) fn began(&self) -> Option<SystemTime> {
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(self.began))
    }

    /// Replaces the file atomically.
    pub(super) fn write(&self, directory: &Path) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        // The umask may have removed the owner's permissions, which a sweep needs.
        file.as_file().set_permissions(Permissions::from_mode(0o600))?;
        let bytes = serde_json::to_vec(self)?;
        without_write_signals(|| file.write_all(&bytes))?;
        file.persist(directory.join(FILE))?;
        Ok(())
    }

    /// Reads the entry of a run's directory.
    pub(super) fn read(directory: BorrowedFd<'_>) -> io::Result<Content> {
        // Links are not followed, and a pipe without a writer does not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(directory, FILE, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Content::Missing),
            Err(Errno::LOOP | Errno::NXIO) => return Ok(Content::Damaged),
            Err(errno) => return Err(errno.into()),
        };
        if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
            return Ok(Content::Damaged);
        }
        let mut bytes = Vec::new();
        File::from(file).take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(Self::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Content {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        match serde_json::from_slice(bytes) {
            Ok(Version { version: VERSION }) => {}
            Ok(Version { version }) => return Content::UnsupportedVersion(version),
            Err(_) => return Content::Damaged,
        }
        let Ok(entry) = serde_json::from_slice::<Self>(bytes) else {
            return Content::Damaged;
        };
        // This entry decides which processes are killed, so a value that this crate never writes
        // makes it invalid.
        let possible = |process: Process| process.pid > 1 && process.start >= entry.host.start;
        if env_marker::is_marker_name(&entry.marker) && [entry.leader, entry.keeper].into_iter().flatten().all(possible)
        {
            Content::Entry(Box::new(entry))
        } else {
            Content::Damaged
        }
    }
}
