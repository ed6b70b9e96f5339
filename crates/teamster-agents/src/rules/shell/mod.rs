//! Shell commands: which programs a text would run.
//!
//! Two readings of the same syntax tree. [`plain`] is for allow rules: it reads only commands whose meaning does not depend on
//! the shell, the environment or the file system. [`wide`] is for deny rules: it reads everything that may be run.

mod names;
pub(super) mod plain;
mod tree;
pub(super) mod wide;
mod words;

use rable::Node;

/// How sure it is that a deny rule means a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// It cannot be decided.
    Maybe,
    Yes,
}

/// The longest text that is parsed, in bytes.
const LONGEST: usize = 64 * 1024;

/// How many constructs that nest a text may hold. The parser recurses for each level: this bounds its stack at less than 1.5 MiB in
/// a debug build, whatever the text.
const DEEPEST: usize = 32;

/// How many separators of commands a text may hold. The parser recurses for each command of a list, too.
const MOST_SEPARATORS: usize = 500;

/// Words that begin a construct.
const NESTING: [&str; 12] =
    ["if", "while", "until", "for", "case", "select", "time", "coproc", "function", "then", "elif", "do"];

/// Parses a text; `None` if it is no shell command, or too long or too deeply nested to be parsed.
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

/// The last component of a program's path, in lower case: some file systems ignore the case. Linux within Windows runs `git.exe`.
fn base_name(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or_default().to_lowercase();
    name.strip_suffix(".exe").map_or_else(|| name.clone(), str::to_owned)
}
