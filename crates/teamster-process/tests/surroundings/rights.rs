//! Setuid programs, and sockets that another process created.

use std::{
    fs,
    os::{
        fd::OwnedFd,
        unix::{
            fs::{PermissionsExt, chown},
            net::UnixStream,
            process::CommandExt,
        },
    },
    path::PathBuf,
    process::{Command, Stdio},
};

use libtest_mimic::Trial;
use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::{assert_line, host_in, text_of};

const OTHER_USER: u32 = 65534;
const VARIABLE: &str = "TEAMSTER_SUPERVISOR";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial_of_root!(a_setuid_program_does_not_become_a_supervisor),
        trial_of_root!(a_setuid_host_gets_an_error_that_it_cannot_supervise),
        trial!(a_socket_that_the_parent_did_not_create_starts_no_supervisor),
        trial!(the_variable_alone_changes_nothing),
    ]
}

/// A copy of this program that runs as root for every user.
struct SetuidCopy {
    directory: tempfile::TempDir,
}

impl SetuidCopy {
    fn make() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let flags = statvfs(directory.path()).unwrap().f_flag;
        assert!(!flags.contains(StatVfsMountFlags::NOSUID), "the target directory is mounted nosuid");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let copy = Self { directory };
        fs::copy(std::env::current_exe().unwrap(), copy.path()).unwrap();
        chown(copy.path(), Some(0), Some(0)).unwrap();
        fs::set_permissions(copy.path(), fs::Permissions::from_mode(0o4755)).unwrap();
        // The other user may run this program from here as well.
        fs::copy(std::env::current_exe().unwrap(), copy.plain()).unwrap();
        copy
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("setuid")
    }

    fn plain(&self) -> PathBuf {
        self.directory.path().join("plain")
    }
}

fn a_setuid_program_does_not_become_a_supervisor() {
    let copy = SetuidCopy::make();
    let attacker = Command::new(copy.plain()).arg("attacker").arg(copy.path()).uid(OTHER_USER).gid(OTHER_USER).output();
    let seen = text_of(&attacker.unwrap());
    assert_line(&seen, "main was reached");
}

/// Starts a program with a socket of this process, as a host starts its supervisor.
pub(crate) fn attack(program: &str) {
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let mut command = Command::new(program);
    command.arg("hello").env(VARIABLE, "1").stdin(OwnedFd::from(theirs));
    print!("{}", text_of(&command.output().unwrap()));
}

fn a_setuid_host_gets_an_error_that_it_cannot_supervise() {
    let copy = SetuidCopy::make();
    let mut host = Command::new(copy.path());
    host.args(["host", "exit 3"]).uid(OTHER_USER).gid(OTHER_USER).stdin(Stdio::null());
    let seen = text_of(&host.output().unwrap());
    assert!(seen.contains("not started: this program runs with the rights of its file"), "{seen}");
}

fn a_socket_that_the_parent_did_not_create_starts_no_supervisor() {
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let mut command = Command::new("/bin/sh");
    // The shell is the parent, but this process created the socket.
    command.args(["-c", "\"$HOST\" hello; echo \"code $?\""]).env(VARIABLE, "1").stdin(OwnedFd::from(theirs));
    command.env("HOST", std::env::current_exe().unwrap());
    assert_line(&text_of(&command.output().unwrap()), "code 125");
}

fn the_variable_alone_changes_nothing() {
    let seen = host_in(&format!("{VARIABLE}=1 \"$HOST\" hello </dev/null"));
    assert_line(&seen, "main was reached");
}
