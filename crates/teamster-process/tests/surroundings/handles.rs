//! A system that refuses process handles (pidfds), as under the seccomp filters of older
//! containers.

use libtest_mimic::Trial;

use crate::{assert_line, assert_tree_is_killed, host_in};

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial!(a_tree_is_killed_where_handles_are_not_permitted), trial!(a_tree_is_killed_where_handles_do_not_exist)]
}

fn a_tree_is_killed_where_handles_are_not_permitted() {
    killed_without_handles(libc::EPERM);
}

fn a_tree_is_killed_where_handles_do_not_exist() {
    killed_without_handles(libc::ENOSYS);
}

fn killed_without_handles(errno: i32) {
    let seen = assert_tree_is_killed(|host| host_in(&format!("{host} refuse-handles={errno}")));
    assert!(seen.contains("limited: the system refuses handles of processes"), "{seen}");
    assert_line(&seen, "no child is left: true");
}

/// Makes the system refuse `pidfd_open` to this process and all its descendants.
#[expect(unsafe_code, reason = "no safe call installs a filter of system calls")]
pub(crate) fn refuse(errno: i32) {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: u16::try_from(code).unwrap(), jt, jf, k };
    let number = u32::try_from(libc::SYS_pidfd_open).unwrap();
    let refused = libc::SECCOMP_RET_ERRNO | u32::try_from(errno).unwrap();
    let mut filter = [
        // The number of the system call is the first field.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, refused),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: the filter lives longer than the calls, which copy it.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(installed, "{}", std::io::Error::last_os_error());
}
