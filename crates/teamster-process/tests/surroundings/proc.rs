//! A `/proc` that is missing, covered by a mount, of another pid namespace, or hides processes.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};

use crate::{assert_line, assert_tree_is_killed, host_in};

/// Runs a command in its own mount namespace.
const OWN_MOUNTS: &str = "unshare -m --propagation private";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial_of_root!(a_tree_is_killed_though_proc_was_covered_by_a_mount),
        trial_of_root!(a_tree_is_killed_in_a_pid_namespace_without_its_own_proc),
        trial_of_root!(without_a_proc_nothing_is_started_and_the_error_names_the_cause),
        trial_of_root!(a_process_that_proc_hides_is_reported_as_remaining),
    ]
}

fn a_tree_is_killed_though_proc_was_covered_by_a_mount() {
    let seen = assert_tree_is_killed(|host| host_in(&format!("{OWN_MOUNTS} {host} cover-proc")));
    assert!(!seen.contains("limited"), "{seen}");
    assert_line(&seen, "no child is left: true");
}

fn a_tree_is_killed_in_a_pid_namespace_without_its_own_proc() {
    let seen = assert_tree_is_killed(|host| host_in(&format!("unshare -fp sh <<'END'\n{host}\n:\nEND")));
    assert!(seen.contains("limited: processes cannot be seen (/proc belongs to another process namespace"), "{seen}");
    assert_line(&seen, "no child is left: true");
}

fn without_a_proc_nothing_is_started_and_the_error_names_the_cause() {
    let seen = host_in(&format!("{OWN_MOUNTS} sh -c 'mount -t tmpfs none /proc; exec \"$HOST\" host true'"));
    assert!(seen.contains("limited: processes cannot be seen (/proc is not mounted"), "{seen}");
    assert!(seen.contains("not started: ") && seen.contains("/proc is not mounted"), "{seen}");
}

fn a_process_that_proc_hides_is_reported_as_remaining() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mode = |path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(place.path().to_owned(), 0o755);
    let (host, become_root) = (place.path().join("host"), place.path().join("become-root"));
    fs::copy(std::env::current_exe().unwrap(), &host).unwrap();
    mode(host.clone(), 0o755);
    fs::copy("/usr/bin/setpriv", &become_root).unwrap();
    mode(become_root.clone(), 0o4755);
    let lock = place.path().join("lock");
    fs::write(&lock, "").unwrap();
    mode(lock.clone(), 0o666);
    let shell =
        "mount -t proc -o hidepid=2 none /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$@\"";
    // A program of root, which this user cannot kill.
    let roots = format!("exec 9>{}; flock 9; exec sleep 60", lock.display());
    let script = format!(
        "setsid {} --reuid 0 sh -c '{roots}' >/dev/null 2>&1 & while flock -n {} true; do :; done; exit 3",
        become_root.display(),
        lock.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "--propagation", "private", "sh", "-c", shell, "sh"]).arg(&host).args(["host", &script]);
    let seen = crate::text_of(&command.output().unwrap());
    let survivors = seen.lines().filter_map(|line| line.strip_prefix("survivor: ")?.parse().ok());
    for survivor in survivors.filter_map(Pid::from_raw) {
        kill_process(survivor, Signal::KILL).unwrap();
    }
    assert_line(&seen, "survivors: 1 in time: true");
}
