//! Names of programs that run other programs or change the meaning of later commands.

use super::words::Word;

/// Shells, which run their argument or their input.
pub(super) const SHELLS: [&str; 12] =
    ["sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "yash"];

/// Shells whose syntax differs so much that their scripts cannot be read here.
pub(super) const OTHER_SHELLS: [&str; 6] = ["elvish", "nu", "powershell", "pwsh", "rc", "xonsh"];

/// Programs that start a shell, which reads its input, if their arguments name no program.
const SHELL_STARTERS: [&str; 18] = [
    "chroot",
    "fakechroot",
    "fakeroot",
    "firejail",
    "newgrp",
    "nix-shell",
    "nsenter",
    "proot",
    "runuser",
    "schroot",
    "screen",
    "script",
    "sg",
    "su",
    "systemd-run",
    "tmux",
    "toolbox",
    "unshare",
];

/// Programs that start a shell with some options, or without arguments.
const SHELL_ON_OPTION: [&str; 5] = ["doas", "pkexec", "run0", "sudo", "sudo-rs"];

/// Returns whether a program with these arguments may start a shell that reads its input. `exec` without a program
/// changes the input of the running shell.
pub(super) fn may_start_shell(name: &str, arguments: &[Word]) -> bool {
    let is_option = |word: &Word| word.text.starts_with('-');
    if name == "exec" {
        return arguments.iter().all(is_option);
    }
    let starts_shell = |word: &Word| {
        let letters = word.text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        letters.is_some_and(|letters| letters.contains(['i', 's']))
            || ["--login", "--shell"].iter().any(|option| word.text == *option)
    };
    SHELL_STARTERS.contains(&name)
        || SHELL_ON_OPTION.contains(&name) && (arguments.is_empty() || arguments.iter().any(starts_shell))
}

/// Subcommands of Git whose own subcommands run the Git commands of the same name.
pub(super) const GIT_GROUPS: [&str; 3] = ["annex", "lfs", "subtree"];

/// Shells in which an allow rule looks for the command, as Codex and others wrap it, and directories where only the system's
/// owner puts programs.
pub(super) const WRAPPING_SHELLS: [&str; 3] = ["bash", "sh", "zsh"];
pub(super) const SYSTEM_DIRECTORIES: [&str; 3] = ["/bin/", "/usr/bin/", "/usr/local/bin/"];

/// Builtins that run their arguments, or one of them, as a command line.
pub(super) const EVALUATORS: [&str; 8] =
    ["eval", "trap", "alias", "bind", "complete", "compgen", "mapfile", "readarray"];

/// Builtins that change the meaning of a name.
pub(super) const RENAMING: [&str; 3] = ["enable", "fc", "hash"];

/// Variables that name a file that a shell runs first, or that contain commands for Git.
pub(super) const RUN_AT_START: [&str; 4] = ["BASH_ENV=", "ENV=", "ZDOTDIR=", "GIT_CONFIG_"];

/// Subcommands and options of Git that are followed by a command.
pub(super) const GIT_RUNS: [&str; 15] = [
    "foreach",
    "run",
    "--exec",
    "-x",
    "--extcmd",
    "--tree-filter",
    "--index-filter",
    "--env-filter",
    "--msg-filter",
    "--parent-filter",
    "--commit-filter",
    "--tag-name-filter",
    "--open-files-in-pager",
    "--upload-pack",
    "--receive-pack",
];

/// Options of Git whose value is a command and may follow without a space: of `rebase` and of `grep`.
pub(super) const GIT_RUNS_JOINED: [&str; 2] = ["-x", "-O"];

/// Commands that set variables for later commands, or for the one that they run.
pub(super) const EXPORTING: [&str; 6] = ["declare", "env", "export", "local", "readonly", "typeset"];

/// Programs that run their input later.
pub(super) const SCHEDULERS: [&str; 2] = ["at", "batch"];

/// Builtins that run a file in the shell itself, where it can change what later words mean.
pub(super) const SOURCES: [&str; 2] = [".", "source"];

/// Programs that take their program's arguments, or the program, from their input.
pub(super) const FROM_INPUT: [&str; 2] = ["xargs", "parallel"];

/// Options of `find` that are followed by a program.
pub(super) const FIND_RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// Programs that run the program which their arguments name. Any word after one of them may be that program.
const WRAPPERS: [&str; 130] = [
    "arch",
    "asdf",
    "batch",
    "builtin",
    "bundle",
    "bunx",
    "busybox",
    "bwrap",
    "caffeinate",
    "catchsegv",
    "cgexec",
    "choom",
    "chpst",
    "chronic",
    "chroot",
    "chrt",
    "command",
    "conda",
    "coresched",
    "coreutils",
    "cpulimit",
    "daemon",
    "daemonize",
    "dbus-launch",
    "dbus-run-session",
    "direnv",
    "doas",
    "dumb-init",
    "eatmydata",
    "entr",
    "env",
    "envdir",
    "exec",
    "fakechroot",
    "fakeroot",
    "faketime",
    "fd",
    "fdfind",
    "firejail",
    "flock",
    "gdb",
    "gosu",
    "hyperfine",
    "i386",
    "ionice",
    "ip",
    "linux32",
    "linux64",
    "lldb",
    "logsave",
    "ltrace",
    "lxc-execute",
    "micromamba",
    "mise",
    "newgrp",
    "nice",
    "nix-shell",
    "nocorrect",
    "nodenv",
    "noglob",
    "nohup",
    "npm",
    "npx",
    "nsenter",
    "nsjail",
    "numactl",
    "parallel",
    "perf",
    "pipenv",
    "pipx",
    "pkexec",
    "pnpm",
    "poetry",
    "prlimit",
    "proot",
    "proxychains",
    "proxychains4",
    "pyenv",
    "rbenv",
    "repeat",
    "rlwrap",
    "run0",
    "run-one",
    "runcon",
    "runuser",
    "rust-gdb",
    "schroot",
    "screen",
    "script",
    "sem",
    "setarch",
    "setlock",
    "setpriv",
    "setsid",
    "setuidgid",
    "sg",
    "softlimit",
    "ssh-agent",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "sudo-rs",
    "systemd-cat",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tini",
    "tmux",
    "torify",
    "torsocks",
    "toolbox",
    "toybox",
    "ts",
    "tsocks",
    "uclampset",
    "uname26",
    "unbuffer",
    "unshare",
    "uv",
    "valgrind",
    "watch",
    "x86_64",
    "xargs",
    "xvfb-run",
    "yarn",
];

/// Builtins of bash and zsh that do not change the state of the shell.
const STATELESS: [&str; 8] = ["echo", "true", "false", "pwd", ":", "times", "type", "jobs"];

/// Builtins of bash and zsh.
const BUILTINS: [&str; 103] = [
    ".",
    ":",
    "[",
    "alias",
    "autoload",
    "bg",
    "bind",
    "bindkey",
    "break",
    "builtin",
    "bye",
    "caller",
    "cap",
    "cd",
    "chdir",
    "clone",
    "command",
    "comparguments",
    "compcall",
    "compctl",
    "compdescribe",
    "compfiles",
    "compgen",
    "compgroups",
    "complete",
    "compopt",
    "compquote",
    "comptags",
    "comptry",
    "compvalues",
    "continue",
    "declare",
    "dirs",
    "disable",
    "disown",
    "echo",
    "echotc",
    "echoti",
    "emulate",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "float",
    "functions",
    "getcap",
    "getln",
    "getopts",
    "hash",
    "help",
    "history",
    "integer",
    "jobs",
    "kill",
    "let",
    "limit",
    "local",
    "log",
    "logout",
    "mapfile",
    "noglob",
    "popd",
    "print",
    "printf",
    "private",
    "pushd",
    "pushln",
    "pwd",
    "r",
    "read",
    "readarray",
    "readonly",
    "rehash",
    "return",
    "sched",
    "set",
    "setcap",
    "setopt",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "true",
    "ttyctl",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unfunction",
    "unhash",
    "unlimit",
    "unset",
    "unsetopt",
    "vared",
    "wait",
];

pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.contains(&name) || name.starts_with("ld-linux") || name.starts_with("ld-musl") || name.starts_with("ld.so")
}

/// Whether a shell may evaluate an argument of this program as an expression or a variable's name, whose subscript can run
/// commands.
pub(super) fn may_evaluate(name: &str) -> bool {
    BUILTINS.contains(&name) && !STATELESS.contains(&name)
}

/// Whether this command may change the meaning of a later command in the same shell.
pub(super) fn changes_shell(name: &str) -> bool {
    BUILTINS.contains(&name) && !STATELESS.contains(&name)
        || matches!(name, "zle" | "zmodload" | "zstyle" | "zparseopts")
}
