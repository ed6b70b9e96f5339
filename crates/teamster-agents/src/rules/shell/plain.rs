//! Finds the commands of a text, if they are certain.

use rable::{ListOperator, Node, NodeKind};

use super::names::{SYSTEM_DIRECTORIES, WRAPPING_SHELLS, changes_shell, may_evaluate};
use super::words::Word;
use super::{base_name, parse};

/// The maximum number of shells around a command.
const DEEPEST: usize = 3;

/// A command that runs one program with fixed arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Plain {
    words: Vec<Argument>,
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Argument {
    /// The word without quotes. `~` is not expanded.
    text: String,
    /// The word as a shell reads it.
    quoted: String,
}

impl Plain {
    /// Whether it starts with these words.
    pub(in super::super) fn starts_with(&self, words: &str) -> bool {
        let wanted: Vec<&str> = words.split_whitespace().collect();
        !wanted.is_empty() && self.words.len() >= wanted.len() && wanted.iter().zip(self.words()).all(|(a, b)| *a == b)
    }

    /// Returns the program and its arguments.
    pub(in super::super) fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| word.text.as_str())
    }

    /// Returns the words in one line, quoted if a shell needs it. Commands with different meanings have different lines.
    pub(in super::super) fn line(&self) -> String {
        self.words.iter().map(|word| word.quoted.as_str()).collect::<Vec<_>>().join(" ")
    }
}

/// Returns the commands that a shell runs for this text. `None` if they are not certain in every shell: for example, if a file is
/// written or a word is expanded.
pub(in super::super) fn commands(text: &str) -> Option<Vec<Plain>> {
    let mut found = Vec::new();
    collect(text, DEEPEST, &mut found)?;
    // A command that changes the shell may change the meaning of the next one.
    let (_, before) = found.split_last()?;
    let changes = |command: &Plain| command.words().next().is_none_or(changes_shell);
    (!before.iter().any(changes)).then_some(found)
}

/// Returns the commands of a list of words. An agent may run the words directly, or join them and pass them to a shell.
pub(in super::super) fn commands_of_words(words: &[&str]) -> Option<Vec<Plain>> {
    match words {
        [shell, flag, script] if is_shell(shell) && is_script_flag(flag) => commands(script),
        _ => {
            let plain = words.iter().all(|word| !word.is_empty() && word.chars().all(is_safe));
            (plain && !words.is_empty()).then(|| commands(&words.join(" "))).flatten()
        }
    }
}

/// Returns the script of a text that only runs a script in a shell (`bash -lc '...'`, as Codex writes commands).
pub(in super::super) fn script_of(text: &str) -> Option<String> {
    if !is_plain(text) {
        return None;
    }
    let nodes = parse(text)?;
    let [Node { kind: NodeKind::Command { assignments, words, redirects }, .. }] = nodes.as_slice() else {
        return None;
    };
    let words: Vec<Argument> = words.iter().map(fixed).collect::<Option<_>>()?;
    let [shell, flag, script] = words.as_slice() else { return None };
    let runs = assignments.is_empty() && redirects.is_empty() && is_shell(&shell.text) && is_script_flag(&flag.text);
    runs.then(|| script.text.clone())
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
            let words: Vec<Argument> = words.iter().map(fixed).collect::<Option<_>>()?;
            match words.as_slice() {
                [shell, flag, script] if is_shell(&shell.text) && is_script_flag(&flag.text) => {
                    collect(&script.text, depth - 1, found)
                }
                [program, arguments @ ..]
                    if !program.text.is_empty()
                        && program.text.chars().all(is_safe)
                        && !evaluates(&program.text, arguments) =>
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

/// Whether a builtin may run commands in its quoted arguments: `printf -v 'a[$(rm x)]'`, `test -v 'a[$(rm x)]'`.
fn evaluates(program: &str, arguments: &[Argument]) -> bool {
    may_evaluate(program) && arguments.iter().any(|argument| argument.text.contains(['$', '`']))
}

/// Returns the text of a word, if it is fixed.
pub(super) fn fixed_text(node: &Node) -> Option<String> {
    fixed(node).map(|word| word.text)
}

/// Returns the script of a shell command (`bash -c '...'`).
pub(super) fn script_in(words: &[String]) -> Option<String> {
    match words {
        [shell, flag, script] if is_shell(shell) && is_script_flag(flag) => Some(script.clone()),
        _ => None,
    }
}

/// Returns a word. A wildcard for file names is accepted, because it does not change the program.
fn fixed(node: &Node) -> Option<Argument> {
    let NodeKind::Word { value, parts, .. } = &node.kind else { return None };
    let literal = parts.iter().all(|part| matches!(part.kind, NodeKind::WordLiteral { .. }));
    let word = Word::read(node);
    // An unquoted wildcard is not fixed text. A word with a space is not expanded to file names.
    let is_fixed = literal && (word.fixed || word.text.chars().all(|c| is_safe(c) || "*?[]".contains(c)));
    is_fixed.then(|| Argument { quoted: quoted(&word.text, value), text: word.text })
}

/// Returns a word as a shell reads it. `source` is the word in the command.
fn quoted(text: &str, source: &str) -> String {
    if !text.is_empty() && text.chars().all(is_safe) {
        return text.to_owned();
    }
    // Without quotes, a shell may replace `~` by a directory.
    if source.contains('~') && !is_in_quotes(source, '~') {
        return source.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Whether all occurrences of a character in a word are between quotes.
fn is_in_quotes(source: &str, wanted: char) -> bool {
    let mut quote = None;
    source.chars().all(|character| {
        match quote {
            Some(end) if character == end => quote = None,
            None if matches!(character, '\'' | '"') => quote = Some(character),
            _ => {}
        }
        character != wanted || quote.is_some()
    })
}

/// Whether a redirection writes no file and reads only from `/dev/null` or an open output.
pub(super) fn is_harmless(redirect: &Node) -> bool {
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

/// Whether a character has no special meaning in any shell, anywhere in a word.
fn is_safe(character: char) -> bool {
    character.is_alphanumeric() || "_-./:,@%+=".contains(character)
}

/// Whether all shells that agents use read the text in the same way: only file names are expanded, and quotes end at the same
/// characters.
fn is_plain(text: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    for character in text.chars() {
        let good = match (quote, character) {
            // Some shells read `\'` between single quotes as a quote.
            (Some('\''), '\'') => before != '\\',
            (Some('"'), '$' | '`' | '\\' | '!') => false,
            (Some(_), _) => !character.is_control() || matches!(character, '\t' | '\n'),
            // A comment. Interactive shells do not support comments.
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
