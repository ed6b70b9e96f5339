//! The commands of a text, if it is certain what they are.

use rable::{ListOperator, Node, NodeKind};

use super::names::{SYSTEM_DIRECTORIES, WRAPPING_SHELLS, changes_shell, may_evaluate};
use super::words::Word;
use super::{base_name, parse};

/// How many shells may be put around a command.
const DEEPEST: usize = 3;

/// A command that is one program with fixed arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Plain {
    words: Vec<String>,
}

impl Plain {
    /// Whether it begins with these words.
    pub(in super::super) fn begins_with(&self, words: &str) -> bool {
        let wanted: Vec<&str> = words.split_whitespace().collect();
        !wanted.is_empty() && self.words.len() >= wanted.len() && wanted.iter().zip(&self.words).all(|(a, b)| a == b)
    }

    /// The words in one line, quoted where a shell would need it.
    pub(in super::super) fn line(&self) -> String {
        let quoted = |word: &String| {
            if !word.is_empty() && word.chars().all(is_safe) { word.clone() } else { format!("'{word}'") }
        };
        self.words.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}

/// The commands that a shell runs for this text, and nothing beside them: no file is written, no word is computed. `None` if
/// that is not certain in every shell.
pub(in super::super) fn commands(text: &str) -> Option<Vec<Plain>> {
    let mut found = Vec::new();
    collect(text, DEEPEST, &mut found)?;
    // What changes the shell decides what the next command means.
    let (_, before) = found.split_last()?;
    let changes = |command: &Plain| command.words.first().is_none_or(|program| changes_shell(program));
    (!before.iter().any(changes)).then_some(found)
}

/// The commands of a list of words, which an agent may run as they are or join for a shell.
pub(in super::super) fn commands_of_words(words: &[&str]) -> Option<Vec<Plain>> {
    match words {
        [shell, flag, script] if is_shell(shell) && is_script_flag(flag) => commands(script),
        _ => {
            let plain = words.iter().all(|word| !word.is_empty() && word.chars().all(is_safe));
            (plain && !words.is_empty()).then(|| commands(&words.join(" "))).flatten()
        }
    }
}

/// The script of a text that does nothing but have a shell run one (`bash -lc '...'`, as Codex writes commands).
pub(in super::super) fn script_of(text: &str) -> Option<String> {
    if !is_plain(text) {
        return None;
    }
    let nodes = parse(text)?;
    let [Node { kind: NodeKind::Command { assignments, words, redirects }, .. }] = nodes.as_slice() else {
        return None;
    };
    let words: Vec<String> = words.iter().map(fixed).collect::<Option<_>>()?;
    let [shell, flag, script] = words.as_slice() else { return None };
    let runs = assignments.is_empty() && redirects.is_empty() && is_shell(shell) && is_script_flag(flag);
    runs.then(|| script.clone())
}

fn collect(text: &str, depth: usize, found: &mut Vec<Plain>) -> Option<()> {
    if depth == 0 || !is_plain(text) {
        return None;
    }
    parse(text)?.iter().try_for_each(|node| node_of(node, depth, found))
}

fn node_of(node: &Node, depth: usize, found: &mut Vec<Plain>) -> Option<()> {
    match &node.kind {
        NodeKind::Pipeline { commands, .. } => commands.iter().try_for_each(|node| node_of(node, depth, found)),
        NodeKind::List { items } => items.iter().try_for_each(|item| {
            (item.operator != Some(ListOperator::Background)).then_some(())?;
            node_of(&item.command, depth, found)
        }),
        NodeKind::Command { assignments, words, redirects } => {
            if !assignments.is_empty() || !redirects.iter().all(is_harmless) {
                return None;
            }
            let words: Vec<String> = words.iter().map(fixed).collect::<Option<_>>()?;
            match words.as_slice() {
                [shell, flag, script] if is_shell(shell) && is_script_flag(flag) => collect(script, depth - 1, found),
                [program, arguments @ ..]
                    if !program.is_empty() && program.chars().all(is_safe) && !evaluates(program, arguments) =>
                {
                    found.push(Plain { words });
                    Some(())
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether a builtin may run what stands in its arguments, quoted as they are: `printf -v 'a[$(rm x)]'`, `test -v 'a[$(rm x)]'`.
fn evaluates(program: &str, arguments: &[String]) -> bool {
    may_evaluate(program) && arguments.iter().any(|argument| argument.contains(['$', '`']))
}

/// The text of a word. File names may be generated among the arguments of a program: they are no other program.
fn fixed(node: &Node) -> Option<String> {
    let NodeKind::Word { parts, .. } = &node.kind else { return None };
    let literal = parts.iter().all(|part| matches!(part.kind, NodeKind::WordLiteral { .. }));
    let word = Word::read(node);
    // An unquoted wildcard is no fixed text, and no shell finds a file for one that holds a space.
    (literal && (word.fixed || word.text.chars().all(|c| is_safe(c) || "*?[]".contains(c)))).then_some(word.text)
}

/// Whether nothing is written by a redirection, and nothing but an open output is read.
fn is_harmless(redirect: &Node) -> bool {
    let NodeKind::Redirect { op, target, varfd: None, .. } = &redirect.kind else { return false };
    let NodeKind::Word { value, .. } = &target.kind else { return false };
    match op.as_str() {
        ">" | ">>" | "&>" | "<" => value == "/dev/null",
        ">&" => matches!(value.as_str(), "1" | "2"),
        _ => false,
    }
}

fn is_shell(program: &str) -> bool {
    let bare = SYSTEM_DIRECTORIES.iter().find_map(|directory| program.strip_prefix(directory)).unwrap_or(program);
    WRAPPING_SHELLS.contains(&bare) && base_name(program) == bare
}

fn is_script_flag(flag: &str) -> bool {
    matches!(flag, "-c" | "-lc")
}

/// Characters that mean themselves in every shell, anywhere in a word.
fn is_safe(character: char) -> bool {
    character.is_alphanumeric() || "_-./:,@%+=".contains(character)
}

/// Whether every character means the same in all shells that agents use: nothing is expanded but file names, and quotes end
/// where all shells see their end.
fn is_plain(text: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    for character in text.chars() {
        let good = match (quote, character) {
            // Some shells take `\'` between single quotes for a quote.
            (Some('\''), '\'') => before != '\\',
            (Some('"'), '$' | '`' | '\\' | '!') => false,
            (Some(_), _) => !character.is_control() || matches!(character, '\t' | '\n'),
            // A comment, which interactive shells do not know.
            (None, '#') => !matches!(before, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>'),
            (
                None,
                ' ' | '\t' | '\n' | '\'' | '"' | ';' | '&' | '|' | '<' | '>' | '*' | '?' | '[' | ']' | '~' | '^',
            ) => true,
            (None, _) => is_safe(character),
        };
        if !good {
            return false;
        }
        match quote {
            Some(end) if character == end => quote = None,
            None if matches!(character, '\'' | '"') => quote = Some(character),
            _ => {}
        }
        before = character;
    }
    quote.is_none()
}
