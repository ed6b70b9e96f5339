//! The agents of the tests. Each process of an agent selects one behavior at random.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const TEAMSTER: &str = env!("CARGO_BIN_EXE_teamster");

/// A behavior of an agent.
pub(crate) struct Behavior {
    name: &'static str,
    /// How often it is selected, relative to the others.
    weight: usize,
    /// Steps of a scenario. `*N` after a step repeats it.
    steps: &'static [(&'static str, usize)],
    /// Shell commands that run before the agent.
    before: &'static str,
}

const ANSWER: (&str, usize) = (r#"{ say = "You said: {prompt}" }"#, 1);
const TOOL: (&str, usize) = (r#"{ run = { command = "ls", output = "a\n" } }"#, 1);
const ASK: (&str, usize) = (r#"{ run = { command = "ls", output = "a\n", ask = true } }"#, 1);
const HANG: (&str, usize) = ("{ waitMs = 600000 }", 1);
const CRASH: (&str, usize) = ("{ exit = 3 }", 1);
const LONG_TEXT: (&str, usize) = (r#"{ say = "A long text has many parts, and each of them is one delta." }"#, 60);

/// Ignores SIGTERM, and leaves a process in a session of its own.
const STUBBORN: &str = "trap '' TERM HUP; setsid \"${0%/*}/child\" </dev/null >/dev/null 2>&1 &";

const fn behavior(name: &'static str, weight: usize, steps: &'static [(&'static str, usize)]) -> Behavior {
    Behavior { name, weight, steps, before: "" }
}

/// Agents that do everything that agents do.
pub(crate) const ALL: &[Behavior] = &[
    behavior("echo", 12, &[ANSWER]),
    behavior("tool", 4, &[TOOL, ANSWER]),
    behavior("ask", 4, &[ASK, ANSWER]),
    behavior("ask_twice", 2, &[ASK, ("{ say = \"Once more.\" }", 1), ASK, ANSWER]),
    behavior("slow", 3, &[("{ think = \"Hm.\" }", 1), ("{ say = \"Wait.\" }", 1), ("{ waitMs = 300 }", 1), ANSWER]),
    behavior("flood", 1, &[LONG_TEXT, TOOL, ANSWER]),
    behavior("endless", 1, &[(TOOL.0, 300), ANSWER]),
    behavior("crash", 2, &[CRASH]),
    behavior("late_crash", 2, &[("{ say = \"half\" }", 1), CRASH]),
    behavior("tool_crash", 1, &[TOOL, CRASH]),
    behavior("hang", 1, &[HANG]),
    Behavior { before: STUBBORN, ..behavior("stubborn", 1, &[("{ say = \"half\" }", 1), HANG]) },
    behavior("overload", 1, &[("{ fail = { status = 529, message = \"Overloaded\" } }", 1)]),
    behavior("limit", 1, &[("{ fail = { status = 429, message = \"Slow down\" } }", 1)]),
    behavior("provider", 1, &[("{ fail = { status = 500, message = \"Internal\" } }", 1)]),
    behavior("login", 1, &[("{ fail = { status = 401, message = \"Log in\" } }", 1)]),
];

/// Agents that end their turns at once, so that each point of the gateway is reached soon.
pub(crate) const QUICK: &[Behavior] = &[
    behavior("echo", 4, &[ANSWER]),
    behavior("tool", 1, &[TOOL, ANSWER]),
    behavior("ask", 4, &[ASK, ANSWER]),
    // Messages go into its turn.
    behavior("slow", 3, &[("{ waitMs = 200 }", 1), ANSWER]),
    behavior("crash", 2, &[CRASH]),
    behavior("late_crash", 2, &[("{ say = \"half\" }", 1), CRASH]),
    behavior("overload", 1, &[("{ fail = { status = 529, message = \"Overloaded\" } }", 1)]),
];

/// Agents that end only by SIGKILL.
pub(crate) const STUBBORN_ONLY: &[Behavior] =
    &[Behavior { before: STUBBORN, ..behavior("stubborn", 1, &[("{ say = \"half\" }", 1), HANG]) }];

/// Writes the program `agent` and what it needs into a directory. All processes of the agents have its path in their arguments.
pub(crate) fn write(directory: &Path, behaviors: &[Behavior]) {
    std::fs::create_dir_all(directory).expect("a directory");
    let mut cases = String::new();
    let mut number = 0;
    for Behavior { name, weight, steps, before } in behaviors {
        let steps = steps.iter().flat_map(|(step, times)| std::iter::repeat_n(*step, *times));
        let steps = steps.collect::<Vec<_>>().join(", ");
        let scenario = format!("[[turns]]\nsteps = [{steps}]\n");
        std::fs::write(directory.join(format!("{name}.toml")), scenario).expect("a scenario is written");
        for _ in 0..*weight {
            writeln!(cases, "{number}) name={name}\n{before}\n;;").expect("text");
            number += 1;
        }
    }
    let first = behaviors[0].name;
    let program = format!(
        "#!/bin/sh\ncase \"$1\" in --version) name={first};; *)\nn=$(od -An -N2 -tu2 /dev/urandom)\n\
         case $((n % {number})) in\n{cases}esac;; esac\n\
         exec '{TEAMSTER}' fake --agent claude --script \"${{0%/*}}/$name.toml\" -- \"$@\"\n"
    );
    write_program(&directory.join("agent"), &program);
    write_program(&directory.join("child"), "#!/bin/sh\ntrap '' TERM HUP\nwhile :; do sleep 1; done\n");
}

fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a program is written");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("it is executable");
}
