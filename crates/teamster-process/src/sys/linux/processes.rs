//! Reads processes from `/proc`.

use std::{io, time::Duration};

use rustix::fs::{Dir, Mode, OFlags, openat};

use super::procfs::{self, Root};

use crate::stat::{Stat, State};

/// How often, and with which pause, to wait for the environment of a process that is executing a
/// new program.
const EXEC_LOOKS: usize = 500;
const EXEC_PAUSE: Duration = Duration::from_millis(1);

/// Returns all processes that this user can see.
pub(crate) fn snapshot() -> io::Result<Vec<Stat>> {
    let root = procfs::of_this_namespace()?;
    // A process that has ended meanwhile is skipped.
    Ok(numbers()?.into_iter().filter_map(|pid| read(&root, &format!("{pid}/stat"))).collect())
}

/// Returns the pids of all processes that this user can see.
pub(crate) fn numbers() -> io::Result<Vec<i32>> {
    let root = procfs::of_this_namespace()?;
    // The held descriptor is a path descriptor, which cannot be read.
    let open = openat(&root, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let number = |entry: rustix::io::Result<rustix::fs::DirEntry>| match entry {
        Ok(entry) => entry.file_name().to_str().ok()?.parse().ok().map(Ok),
        Err(errno) => Some(Err(errno.into())),
    };
    Dir::new(open)?.filter_map(number).collect()
}

/// Checks that processes can be listed.
pub(crate) fn can_see_processes() -> io::Result<()> {
    procfs::of_this_namespace().map(drop)
}

/// Returns the pids of this process's children, oldest first; empty if the system has no such list.
/// Some may be missing while children start and end. This process must have one thread.
pub(crate) fn children() -> Vec<i32> {
    let list = procfs::of_this_namespace().and_then(|root| procfs::read_text(&root, "thread-self/children"));
    let list = list.unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Returns the pids of the children of one thread of this process; empty if the system has no such
/// list.
pub(crate) fn children_of_thread(thread: i32) -> Vec<i32> {
    let path = format!("self/task/{thread}/children");
    let list = procfs::of_this_namespace().and_then(|root| procfs::read_text(&root, &path)).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Returns the process with this pid, if it exists.
pub(crate) fn stat_of(pid: i32) -> Option<Stat> {
    read(&procfs::of_this_namespace().ok()?, &format!("{pid}/stat"))
}

/// Returns the resident memory of a process in bytes; 0 if it is gone.
pub(crate) fn resident(pid: i32) -> u64 {
    let statm = text(pid, "statm").and_then(|statm| String::from_utf8(statm).ok()).unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    pages.saturating_mul(rustix::param::page_size() as u64)
}

/// Returns the environment of a process; empty if it cannot be read.
pub(crate) fn environ(pid: i32) -> Vec<u8> {
    for _ in 0..EXEC_LOOKS {
        let environ = text(pid, "environ").unwrap_or_default();
        if !environ.is_empty() || !is_being_executed(pid) {
            return environ;
        }
        std::thread::sleep(EXEC_PAUSE);
    }
    Vec::new()
}

/// Returns whether a process has loaded a new program but not its environment, which the system
/// shows as empty until then. (Its parent may continue before that.)
fn is_being_executed(pid: i32) -> bool {
    let stat = text(pid, "stat").unwrap_or_default();
    let fields = memchr::memrchr(b')', &stat).and_then(|end| stat.get(end + 1..)).unwrap_or_default();
    // The address where the environment ends is field 51 in proc(5); the state, behind the name, is field 3.
    let end = fields.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).nth(48);
    // Kernel threads have no environment and no program.
    let has_program = || procfs::link(&procfs::of_this_namespace()?, &format!("{pid}/exe"));
    end == Some(b"0") && has_program().is_ok()
}

/// Reads a file of a process, if that is permitted.
fn text(pid: i32, name: &str) -> Option<Vec<u8>> {
    procfs::read(&procfs::of_this_namespace().ok()?, &format!("{pid}/{name}")).ok()
}

fn read(root: &Root, path: &str) -> Option<Stat> {
    let file = openat(root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    // 52 numbers and a name of at most 64 bytes: the file is always read whole.
    let mut buffer = [0; 2048];
    let length = rustix::io::read(&file, &mut buffer).ok()?;
    parse(buffer.get(..length)?)
}

fn parse(line: &[u8]) -> Option<Stat> {
    // The name may contain spaces and parentheses: it ends at the last parenthesis.
    let open = memchr::memchr(b'(', line)?;
    let close = memchr::memrchr(b')', line)?;
    let pid = std::str::from_utf8(line.get(..open)?).ok()?.trim().parse().ok()?;
    let name = String::from_utf8_lossy(line.get(open + 1..close)?).into_owned();
    let mut rest = std::str::from_utf8(line.get(close + 1..)?).ok()?.split_ascii_whitespace();
    // Counted from the state, which is field 3 in proc(5): 4, 20 and 22 follow.
    let letter = rest.next()?.bytes().next()?;
    let parent = rest.next()?.parse().ok()?;
    let threads = rest.nth(15)?.parse().ok()?;
    let start = rest.nth(1)?.parse().ok()?;
    Some(Stat { pid, name, state: state(letter, threads), parent, start })
}

fn state(letter: u8, threads: i64) -> State {
    match letter {
        // A zombie with threads is a process whose first thread ended before the others.
        b'Z' | b'X' | b'x' if threads <= 1 => State::Dead,
        b'T' | b't' => State::Stopped,
        _ => State::Alive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a ) R 1 (b)) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 11 0 98765 1 2 3\n";
        let stat = parse(line).unwrap();
        assert_eq!(stat, Stat { pid: 42, name: "a ) R 1 (b)".into(), state: State::Alive, parent: 7, start: 98765 });
    }

    #[test]
    fn a_truncated_line_is_rejected() {
        let line = b"42 (sh) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 11 0 98765";
        for length in 0..line.len() - 5 {
            assert_eq!(parse(&line[..length]), None);
        }
    }

    #[test]
    fn a_zombie_with_threads_is_alive_and_one_without_is_dead() {
        assert_eq!([state(b'Z', 2), state(b'Z', 1), state(b'X', 0)], [State::Alive, State::Dead, State::Dead]);
        assert_eq!([state(b'T', 1), state(b't', 1), state(b'D', 1)], [State::Stopped, State::Stopped, State::Alive]);
    }
}
