//! Reads what `/proc` tells about processes.
//!
//! A number names one process only for its life, so a process is always meant by number and start time together.

use std::{io, os::fd::OwnedFd};

use rustix::fs::{Mode, OFlags, open, openat};

/// One process, as `/proc/PID/stat` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    /// The first 15 bytes of the program's name.
    pub(crate) name: String,
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) threads: i64,
    /// In clock ticks since the system's start.
    pub(crate) start: u64,
}

impl Stat {
    pub(crate) fn is_alive(&self) -> bool {
        // A zombie with threads is a process whose first thread ended before the others.
        !matches!(self.state, b'Z' | b'X' | b'x') || self.threads > 1
    }

    /// Whether the number is this process's still.
    pub(crate) fn is_still(&self) -> bool {
        start_of(self.pid) == Some(self.start)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }
}

/// All processes that this user can see.
pub(crate) fn snapshot() -> io::Result<Vec<Stat>> {
    let root = open("/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // One that has ended meanwhile is no error.
    Ok(numbers()?.into_iter().filter_map(|pid| read(&root, &format!("{pid}/stat"))).collect())
}

/// The numbers of all processes that this user can see.
pub(crate) fn numbers() -> io::Result<Vec<i32>> {
    // A /proc of another namespace has other processes under our numbers.
    if std::fs::read_link("/proc/self")?.to_str().and_then(|own| own.parse().ok()) != Some(std::process::id()) {
        return Err(io::Error::new(io::ErrorKind::NotFound, "/proc belongs to another namespace"));
    }
    let number = |entry: io::Result<std::fs::DirEntry>| match entry {
        Ok(entry) => entry.file_name().to_str()?.parse().ok().map(Ok),
        Err(error) => Some(Err(error)),
    };
    std::fs::read_dir("/proc")?.filter_map(number).collect()
}

/// The process with this number, if there is one.
pub(crate) fn stat_of(pid: i32) -> Option<Stat> {
    let root = open("/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    read(&root, &format!("{pid}/stat"))
}

/// When the process with this number was started.
pub(crate) fn start_of(pid: i32) -> Option<u64> {
    stat_of(pid).map(|stat| stat.start)
}

fn read(root: &OwnedFd, path: &str) -> Option<Stat> {
    let file = openat(root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    // 52 numbers and a name of at most 64 bytes: the file is always read whole.
    let mut buffer = [0; 2048];
    let length = rustix::io::read(&file, &mut buffer).ok()?;
    parse(buffer.get(..length)?)
}

fn parse(line: &[u8]) -> Option<Stat> {
    // The name may itself have spaces and parentheses: it ends at the last one.
    let open = memchr::memchr(b'(', line)?;
    let close = memchr::memrchr(b')', line)?;
    let pid = std::str::from_utf8(line.get(..open)?).ok()?.trim().parse().ok()?;
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let mut rest = std::str::from_utf8(line.get(close + 1..)?).ok()?.split_ascii_whitespace();
    // Counted from the state, which is field 3 in proc(5): 4, 20 and 22 follow.
    let state = rest.next()?.bytes().next()?;
    let parent = rest.next()?.parse().ok()?;
    let threads = rest.nth(15)?.parse().ok()?;
    let start = rest.nth(1)?.parse().ok()?;
    Some(Stat { pid, name, state, parent, threads, start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a ) R 1 (b)) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 11 0 98765 1 2 3\n";
        let stat = parse(line).unwrap();
        assert_eq!(
            stat,
            Stat { pid: 42, name: "a ) R 1 (b)".into(), state: b'S', parent: 7, threads: 11, start: 98765 }
        );
    }

    #[test]
    fn a_cut_line_is_nothing() {
        let line = b"42 (sh) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 11 0 98765";
        for length in 0..line.len() - 5 {
            assert_eq!(parse(&line[..length]), None);
        }
    }

    #[test]
    fn this_process_finds_itself() {
        let own = i32::try_from(std::process::id()).unwrap();
        let found = snapshot().unwrap().into_iter().find(|stat| stat.pid == own).unwrap();
        assert!(found.is_alive());
        assert_eq!(start_of(own), Some(found.start));
    }
}
