//! Finds commands that run what they read from standard input.

use super::base_name;
use super::names::{EVALUATORS, FROM_INPUT, OTHER_SHELLS, SCHEDULERS, SHELLS, SOURCES, is_wrapper};

/// Interpreters that run their standard input, if no argument names a script.
const INTERPRETERS: [&str; 10] = ["bun", "deno", "lua", "node", "perl", "php", "python", "python2", "python3", "ruby"];

/// Programs whose input is a script in a language that can start programs or change data.
const SCRIPTED: [&str; 7] = ["ed", "ex", "gdb", "mysql", "psql", "sqlite3", "ssh"];

/// Whether a command may run what it reads. A rule for it would allow every program that another allowed command prints.
pub(in super::super) fn runs_input(words: &[&str]) -> bool {
    match words {
        [first, rest @ ..] if is_wrapper(&base_name(first)) => {
            runs_directly(words) || (0..rest.len()).any(|at| rest.get(at..).is_some_and(runs_directly))
        }
        words => runs_directly(words),
    }
}

fn runs_directly(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let name = base_name(program);
    let always: [&[&str]; 6] = [&OTHER_SHELLS, &FROM_INPUT, &SCRIPTED, &SCHEDULERS, &EVALUATORS, &SOURCES];
    if always.iter().any(|names| names.contains(&name.as_str())) {
        return true;
    }
    let is_interpreter = SHELLS.contains(&name.as_str()) || INTERPRETERS.contains(&name.as_str());
    let has_script =
        arguments.iter().any(|argument| !argument.starts_with(['-', '+']) && !argument.starts_with("/dev/"));
    is_interpreter && (!has_script || arguments.iter().any(|argument| matches!(*argument, "-" | "-s")))
}
