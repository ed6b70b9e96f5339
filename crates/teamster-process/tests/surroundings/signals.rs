//! Signals that the host inherits as blocked or ignored, or does not ignore.

use libtest_mimic::Trial;

use crate::{assert_line, host_in};

/// Prints the blocked and ignored signals, without 32 and 33, which belong to the C library.
const SHOW: &str = "sed -n -e 's/^SigBlk:.*[08]\\(.......\\)$/blocked \\1/p' -e 's/^SigIgn:.*[08]\\(.......\\)$/ignored \\1/p' \
                    /proc/self/status";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(a_host_with_blocked_signals_notices_every_end_and_leaks_no_supervisor),
        trial!(a_host_that_ignores_signals_notices_every_end_and_leaks_no_supervisor),
        trial!(a_program_that_closes_its_input_does_not_end_a_host_with_the_default_sigpipe),
    ]
}

fn a_host_with_blocked_signals_notices_every_end_and_leaks_no_supervisor() {
    let seen = host_in(&format!("exec env --block-signal \"$HOST\" host \"{SHOW}; exit 3\""));
    clean_signals(&seen);
}

fn a_host_that_ignores_signals_notices_every_end_and_leaks_no_supervisor() {
    let seen = host_in(&format!("exec env --ignore-signal \"$HOST\" host \"{SHOW}; exit 3\""));
    clean_signals(&seen);
}

fn clean_signals(seen: &str) {
    assert_line(seen, "said: blocked 0000000");
    assert_line(seen, "said: ignored 0000000");
    assert_line(seen, "exit: exited with code 3");
    assert_line(seen, "survivors: 0 in time: true");
    assert_line(seen, "no child is left: true");
}

fn a_program_that_closes_its_input_does_not_end_a_host_with_the_default_sigpipe() {
    let seen = host_in("exec \"$HOST\" host 'exec <&-; exit 4' sigpipe-default");
    assert_line(&seen, "stdin is closed");
    assert_line(&seen, "exit: exited with code 4");
}
