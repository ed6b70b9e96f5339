//! Finds the programs that a shell command runs.
//!
//! Three modules read the same syntax tree. [`plain`] is for allow rules. It accepts only commands whose meaning does not depend
//! on the shell, the environment or the file system. [`obstacle`] finds the reason why a command is not accepted. [`possible`] is for deny
//! rules. It finds every program that may be run.

mod names;
pub(super) mod obstacle;
pub(super) mod plain;
pub(super) mod possible;
pub(super) mod program_input;
mod tree;
mod words;

use rable::Node;

/// Whether a deny rule covers a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// It cannot be decided.
    Maybe,
    Yes,
}

/// The maximum length of a text that is parsed, in bytes.
const LONGEST: usize = 64 * 1024;

/// The maximum number of nested constructs in a text. The parser recurses for each level. This limits its stack to less than
/// 1.5 MiB in a debug build.
const DEEPEST: usize = 32;

/// The maximum number of command separators in a text. The parser also recurses for each command of a list.
const MOST_SEPARATORS: usize = 500;

/// Words that start a nested construct.
const NESTING: [&str; 12] =
    ["if", "while", "until", "for", "case", "select", "time", "coproc", "function", "then", "elif", "do"];

/// Parses a text; `None` if it is not a valid shell command, or if it is too long or too deeply nested.
fn parse(text: &str) -> Option<Vec<Node>> {
    if text.len() > LONGEST {
        return None;
    }
    let signs = text.chars().filter(|c| matches!(c, '(' | '{' | '`' | '[' | '!')).count();
    let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| NESTING.contains(word)).count();
    let separators = text.chars().filter(|c| matches!(c, ';' | '&' | '|' | '\n')).count();
    if signs + words > DEEPEST || separators > MOST_SEPARATORS {
        return None;
    }
    rable::parse(text, false).ok()
}

/// Returns the last component of a program's path, in lower case, because some file systems ignore the case. The suffix `.exe` is
/// removed, because WSL also runs `git.exe`.
fn base_name(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or_default().to_lowercase();
    name.strip_suffix(".exe").map_or_else(|| name.clone(), str::to_owned)
}
