//! Finds the processes and files of a cell.
//!
//! A process belongs to a cell if the cell's variable is in its environment or its token in its arguments, if it descends
//! from the cell's host, or if one of these was true earlier. So the scan finds a daemon that left its session, lost its
//! parents and cleared its environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;

use rustix::process::{Pid, Signal, kill_process};

/// The command line of a host's supervisor, which starts with the first run and lives as long as its host, and of the keeper
/// of a tree. The keeper exits after it has reported that no process of the tree is left.
const TITLE: &str = "tree-reaper";

/// The kernel's names of both, of 15 bytes. An exiting process still has a name when it has no arguments anymore.
const NAMES: [&str; 2] = ["tree-reaper-all", "tree-reaper-one"];

/// The variable in the environment of all processes of a cell.
pub(crate) const VARIABLE: &str = "TEAMSTER_SURVIVAL";

/// Finds the processes of a cell.
#[derive(Debug)]
pub(crate) struct ProcessScan {
    token: String,
    host: Mutex<Option<u32>>,
    /// All processes that were ever found, by id and start time.
    seen: Mutex<BTreeSet<(u32, u64)>>,
}

/// A living process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) state: char,
    /// The first 15 bytes of its program's name.
    pub(crate) name: String,
    parent: u32,
    started: u64,
    pub(crate) command: String,
}

impl Process {
    /// Whether it is one of Teamster's own processes.
    pub(crate) fn is_teamster(&self) -> bool {
        self.command == TITLE || NAMES.contains(&&*self.name)
    }
}

impl fmt::Display for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command: String = self.command.chars().take(160).collect();
        write!(formatter, "{} ({}, child of {}) `{command}`", self.pid, self.state, self.parent)
    }
}

impl ProcessScan {
    pub(crate) fn new(token: &str) -> Self {
        Self { token: token.to_owned(), host: Mutex::default(), seen: Mutex::default() }
    }

    /// Sets the host. Its descendants belong to the cell. The host does not, nor does its supervisor while the host is alive.
    pub(crate) fn set_host(&self, pid: u32) {
        *self.host.lock().unwrap_or_else(PoisonError::into_inner) = Some(pid);
    }

    /// Returns the living processes of the cell, without the host.
    pub(crate) fn living(&self) -> Vec<Process> {
        let host = *self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let all = processes();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for process in all.values() {
            if self.is_marked(process) || host.is_some_and(|host| descends(process, host, &all)) {
                seen.insert((process.pid, process.started));
            }
        }
        let is_of_host =
            |process: &Process| host == Some(process.pid) || (host == Some(process.parent) && process.is_teamster());
        let lives = |process: &Process| {
            !is_of_host(process) && seen.contains(&(process.pid, process.started)) && is_alive(process)
        };
        all.into_values().filter(lives).collect()
    }

    /// Kills all remaining processes, so that a failure of one cell does not affect the next.
    pub(crate) fn kill_all(&self) {
        for process in self.living() {
            signal(process.pid, Signal::KILL);
        }
    }

    fn is_marked(&self, process: &Process) -> bool {
        if process.command.contains(&self.token) {
            return true;
        }
        let variable = format!("{VARIABLE}={}", self.token);
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    }
}

/// Sends a signal. It is not a failure if the process has exited.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        _ = kill_process(pid, signal);
    }
}

/// Returns the state of a process; `None` if it does not exist.
pub(crate) fn state(pid: u32) -> Option<char> {
    read(pid).map(|process| process.state)
}

/// Returns the parent of a process.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    read(pid).map(|process| process.parent)
}

/// Returns all files and directories in a directory, except the directories in `kept`.
pub(crate) fn files(directory: &Path, kept: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_kept = is_directory && kept.iter().any(|kept| path.ends_with(kept));
        if is_directory {
            found.extend(files(&path, kept));
        }
        if !is_kept {
            found.push(path);
        }
    }
    found
}

/// Returns the sizes of the unlinked files that a process has open.
pub(crate) fn unlinked(pid: u32) -> impl Iterator<Item = u64> {
    let held = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let nameless = held.filter(|entry| {
        let name = fs::read_link(entry.path()).unwrap_or_default();
        name.to_str().is_some_and(|name| name.ends_with(" (deleted)"))
    });
    nameless.filter_map(|entry| Some(fs::metadata(entry.path()).ok()?.len()))
}

fn is_alive(process: &Process) -> bool {
    !matches!(process.state, 'Z' | 'X')
}

fn descends(process: &Process, host: u32, all: &BTreeMap<u32, Process>) -> bool {
    let mut parent = process.parent;
    // At most as many steps as there are processes: the table is not read atomically and may contain a loop.
    for _ in 0..all.len() {
        if parent == host {
            return true;
        }
        match all.get(&parent) {
            Some(next) => parent = next.parent,
            None => return false,
        }
    }
    false
}

fn processes() -> BTreeMap<u32, Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, read(pid)?))).collect()
}

fn read(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain anything.
    let (before, after) = stat.rsplit_once(") ")?;
    let name = before.split_once('(')?.1.to_owned();
    let mut fields = after.split(' ');
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
    Some(Process { pid, state, name, parent, started, command })
}
