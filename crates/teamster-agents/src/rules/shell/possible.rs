//! Decides whether a command may run a program that a deny rule names.

use super::super::pattern::{Glob, Star};
use super::Match;
use super::names::{
    EVALUATORS, EXPORTING, FIND_RUNS, FROM_INPUT, GIT_GROUPS, GIT_RUNS, GIT_RUNS_JOINED, OTHER_SHELLS, RENAMING,
    RUN_AT_START, SCHEDULERS, SHELLS, SOURCES, is_wrapper, may_start_shell,
};
use super::tree::Commands;
use super::words::Word;
use super::{base_name, parse};

/// The maximum depth and number of scripts in arguments of commands that are read.
const DEEPEST: usize = 4;
const MOST: usize = 200;

/// The maximum number of words that are tried as the program that a wrapper runs. A longer command is undecided.
const STEPS: usize = 1000;

/// Characters that separate commands, for a text that is not a valid command as a whole.
const SEPARATORS: [char; 12] = [';', '&', '|', '`', '\n', '\r', '<', '>', '(', ')', '{', '}'];

/// Words that may precede a command.
const KEYWORDS: [&str; 12] =
    ["!", "coproc", "do", "elif", "else", "if", "then", "time", "until", "while", "function", "noglob"];

/// The first words of the commands that a deny rule covers.
#[derive(Clone, Debug)]
pub(in super::super) struct CommandPattern {
    words: Vec<(String, Glob)>,
    /// Whether the first word is a path with a wildcard, which the whole path of a program must match.
    by_path: bool,
}

impl CommandPattern {
    /// Parses the words of a rule. A last word `*` matches any arguments, or none.
    pub(in super::super) fn new(rule: &str) -> Self {
        let mut words: Vec<&str> = rule.split_whitespace().collect();
        while words.len() > 1 && words.last() == Some(&"*") {
            words.pop();
        }
        let by_path = words.first().is_some_and(|word| word.contains('/') && base_name(word).contains('*'));
        let read = |(index, word): (usize, &str)| {
            let word = if index == 0 && !by_path { base_name(word) } else { word.to_owned() };
            let glob = Glob::new(&word);
            (word, glob)
        };
        Self { words: words.into_iter().enumerate().map(read).collect(), by_path }
    }

    /// Whether a shell that receives this text may run the command.
    pub(in super::super) fn is_run_by(&self, text: &str) -> Match {
        Search { pattern: self, left: MOST, steps: STEPS }.script(text, DEEPEST)
    }

    /// Whether a command starts with the words. Options may be between them. If `open`, the command may have further words that are
    /// not known.
    fn matches_start(&self, words: &[Word], open: bool) -> Match {
        let mut wanted = self.words.iter();
        let (Some((_, program)), Some(first)) = (wanted.next(), words.first()) else { return Match::No };
        if !first.fixed {
            return Match::Maybe;
        }
        let name = if self.by_path { first.text.clone() } else { base_name(&first.text) };
        if !program.matches(&name, Star::Everything) {
            // `git-push` is `git push`.
            let joined =
                name.strip_prefix("git-").filter(|_| !self.by_path && program.matches("git", Star::Everything));
            return joined.map_or(Match::No, |command| {
                let split = ["git", command].into_iter().map(Word::fixed);
                let words: Vec<Word> = split.chain(words.iter().skip(1).cloned()).collect();
                self.matches_start(&words, open)
            });
        }
        let mut rest = words.iter().skip(1);
        for (word, glob) in wanted {
            let found = match word.chars().next() {
                Some('-' | '*') => has_word(words, word, glob),
                _ => next(&mut rest, glob),
            };
            match found {
                Match::Yes => {}
                Match::No if open => return Match::Maybe,
                other => return other,
            }
        }
        Match::Yes
    }
}

/// Whether the next word that is neither an option nor the value of an option matches.
fn next<'a>(rest: &mut impl Iterator<Item = &'a Word>, wanted: &Glob) -> Match {
    let mut after_option = false;
    for word in rest {
        if !word.fixed {
            return Match::Maybe;
        }
        if wanted.matches(&word.text, Star::Everything) {
            return Match::Yes;
        }
        let is_option = word.text.starts_with(['-', '+']);
        if !is_option && !after_option {
            return Match::No;
        }
        after_option = is_option;
    }
    Match::No
}

/// Whether a command contains a word. An option may also be part of a group of letters (`-rf`).
fn has_word(words: &[Word], wanted: &str, glob: &Glob) -> Match {
    let letters = |text: &str| text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).map(str::to_owned);
    if words.iter().any(|word| word.fixed && glob.matches(&word.text, Star::Everything)) {
        return Match::Yes;
    }
    let there: String = words.iter().filter(|word| word.fixed).filter_map(|word| letters(&word.text)).collect();
    match letters(wanted) {
        Some(wanted) if !wanted.is_empty() && wanted.chars().all(|letter| there.contains(letter)) => Match::Yes,
        Some(wanted) if words.iter().any(|word| !word.fixed) || may_be_letters(words, &wanted, &there) => Match::Maybe,
        None if words.iter().any(|word| !word.fixed) => Match::Maybe,
        _ => Match::No,
    }
}

/// Whether each letter is present, in lower or upper case or as the first letter of a long option: `rm -R --force` for `rm -rf`.
fn may_be_letters(words: &[Word], wanted: &str, there: &str) -> bool {
    let long = |letter: char| {
        let starts = |word: &Word| word.text.strip_prefix("--").is_some_and(|rest| rest.starts_with(letter));
        words.iter().any(starts)
    };
    let is_there = |letter: char| {
        there.contains(letter) || there.contains(letter.to_ascii_uppercase()) || long(letter.to_ascii_lowercase())
    };
    !wanted.is_empty() && wanted.chars().all(is_there)
}

struct Search<'a> {
    pattern: &'a CommandPattern,
    /// The number of texts that may still be read.
    left: usize,
    /// The number of words that may still be tried.
    steps: usize,
}

impl Search<'_> {
    fn script(&mut self, text: &str, depth: usize) -> Match {
        if self.left == 0 || depth == 0 {
            return Match::Maybe;
        }
        self.left -= 1;
        let text = normalized(text);
        let found = self.text(&text);
        if found == Match::Yes {
            return found;
        }
        let Some(nodes) = parse(&text) else { return Match::Maybe };
        let Commands { commands, values, hidden } = Commands::of(&nodes);
        let mut found = if hidden { Match::Maybe } else { Match::No };
        for words in &commands {
            found = found.max(self.command(words, depth));
        }
        // `a=rm; $a`. Without such a use, a program may run the value: `GIT_PAGER='rm x' git log`.
        let runs = |value: &String| self.pattern.matches_start(&fixed(value), false) == Match::Yes;
        if values.iter().any(runs) {
            found = if found == Match::No { Match::Maybe } else { Match::Yes };
        }
        found
    }

    /// Searches a text without its syntax: each piece may be a command. Finds only certain matches.
    fn text(&self, text: &str) -> Match {
        let plain = text.replace("$'", "").replace(['\'', '"', '\\'], "");
        for piece in plain.split(SEPARATORS).chain(plain.split(" -c ").skip(1)).chain(plain.split(" -lc ").skip(1)) {
            let words = fixed(piece);
            let leads = |word: &&Word| {
                KEYWORDS.contains(&word.text.as_str()) || is_assignment(&word.text) || word.text.starts_with('$')
            };
            let begin = words.iter().take_while(leads).count();
            let words = words.get(begin..).unwrap_or_default();
            let mut found = self.pattern.matches_start(words, false);
            if words.first().is_some_and(|word| is_wrapper(&base_name(&word.text)) || word.text.starts_with('-')) {
                found = (1..words.len().min(STEPS))
                    .filter_map(|at| words.get(at..))
                    .fold(found, |found, words| found.max(self.pattern.matches_start(words, false)));
            }
            if found == Match::Yes {
                return found;
            }
        }
        Match::No
    }

    /// Searches a command and the commands in its arguments.
    fn command(&mut self, words: &[Word], depth: usize) -> Match {
        let Some(first) = words.first() else { return Match::No };
        let mut found = self.direct(words, false, depth);
        let name = base_name(&first.text);
        let open = FROM_INPUT.contains(&name.as_str());
        if EXPORTING.contains(&name.as_str()) {
            found = found.max(self.exported(words));
        }
        if name == "find" {
            for (at, word) in words.iter().enumerate() {
                if FIND_RUNS.contains(&word.text.as_str()) {
                    found = found.max(self.suffixes(words.get(at + 1..).unwrap_or_default(), open, depth));
                }
            }
        } else if is_wrapper(&name) || !first.fixed || is_assignment(&first.text) {
            let rest = words.get(1..).unwrap_or_default();
            found = found.max(self.suffixes(rest, open, depth));
            // `env -S 'rm x'`, `su -c 'rm x'`, `watch 'rm x'`
            for word in rest {
                for script in scripts(&word.text) {
                    found = found.max(self.script(script, depth - 1));
                }
            }
        } else if name == "git" {
            found = found.max(self.git(words, depth));
        }
        found
    }

    /// Whether a variable that is set here may make a later program run the command: `export GIT_PAGER='rm x'`.
    fn exported(&self, words: &[Word]) -> Match {
        let may_run = |word: &Word| {
            let value = word.text.split_once('=').map_or("", |(_, value)| value);
            RUN_AT_START.iter().any(|name| word.text.starts_with(name))
                || self.pattern.matches_start(&fixed(value), false) == Match::Yes
        };
        if words.iter().skip(1).any(may_run) { Match::Maybe } else { Match::No }
    }

    /// Searches the commands that Git runs: aliases on the command line, and commands in the arguments of subcommands.
    fn git(&mut self, words: &[Word], depth: usize) -> Match {
        let mut found = Match::No;
        for (at, word) in words.iter().enumerate() {
            // `git subtree push`
            if at > 0 && GIT_GROUPS.contains(&word.text.as_str()) {
                let command: Vec<Word> = words.iter().take(1).chain(words.iter().skip(at + 1)).cloned().collect();
                found = found.max(self.pattern.matches_start(&command, false));
            }
            if word.text.to_lowercase().contains("alias.") {
                let value = word.text.split_once('=').map_or("", |(_, value)| value.trim_start_matches('!'));
                found = found.max(Match::Maybe).max(self.script(value, depth - 1));
            }
            let (name, value) = word.text.split_once('=').map_or((word.text.as_str(), None), |(a, b)| (a, Some(b)));
            // `-c core.pager='rm x'`
            if let Some(value) = value.filter(|_| at > 0 && words.get(at - 1).is_some_and(|word| word.text == "-c")) {
                found = found.max(self.script(value, depth - 1).min(Match::Maybe));
            }
            for script in GIT_RUNS_JOINED.iter().filter_map(|option| word.text.strip_prefix(option)) {
                found = found.max(self.script(script, depth - 1).min(Match::Maybe));
            }
            if GIT_RUNS.contains(&name) {
                let rest = words.get(at + 1..).unwrap_or_default();
                found = found.max(self.suffixes(rest, false, depth));
                for script in value.into_iter().chain(rest.first().map(|word| word.text.as_str())) {
                    found = found.max(self.script(script, depth - 1));
                }
            }
        }
        found
    }

    /// Searches words of which any may be the program that is run.
    fn suffixes(&mut self, words: &[Word], mut open: bool, depth: usize) -> Match {
        let mut found = Match::No;
        // Whether the word can be the program, if each wrapper runs one program only.
        let (mut can_be, mut after_option) = (true, false);
        for (at, word) in words.iter().enumerate() {
            if self.steps == 0 || self.left == 0 {
                return found.max(Match::Maybe);
            }
            self.steps -= 1;
            let name = base_name(&word.text);
            open |= FROM_INPUT.contains(&name.as_str());
            let here = self.direct(words.get(at..).unwrap_or_default(), open, depth);
            found = found.max(if can_be || here == Match::Yes { here } else { Match::No });
            let replaced = open && (word.text.contains('{') || word.text.contains('%'));
            if can_be && replaced {
                found = found.max(Match::Maybe);
            }
            let is_option = word.text.starts_with('-');
            let is_lead = is_option
                || is_wrapper(&name)
                || is_assignment(&word.text)
                || word.text.starts_with(|c: char| c.is_ascii_digit());
            can_be &= is_lead || after_option || !word.fixed;
            after_option = is_option;
        }
        // `echo rm | xargs env`
        if open && can_be && !words.is_empty() { found.max(Match::Maybe) } else { found }
    }

    /// Searches a command by its first word.
    fn direct(&mut self, words: &[Word], open: bool, depth: usize) -> Match {
        let (Some(first), rest) = (words.first(), words.get(1..).unwrap_or_default()) else { return Match::No };
        let found = self.pattern.matches_start(words, open);
        if found == Match::Yes || !first.fixed {
            return found;
        }
        let name = base_name(&first.text);
        if SHELLS.contains(&name.as_str()) {
            return found.max(self.shell(rest, depth));
        }
        if OTHER_SHELLS.contains(&name.as_str()) {
            return found.max(self.shell(rest, depth)).max(Match::Maybe);
        }
        if may_start_shell(&name, rest)
            || [&SOURCES[..], &RENAMING, &SCHEDULERS].iter().any(|names| names.contains(&name.as_str()))
        {
            return Match::Maybe;
        }
        if EVALUATORS.contains(&name.as_str()) {
            if rest.iter().any(|word| !word.fixed) {
                return Match::Maybe;
            }
            let texts: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
            let mut found = found.max(self.script(&texts.join(" "), depth - 1));
            for text in texts {
                let value = text.split_once('=').map_or(text, |(_, value)| value);
                found = found.max(self.script(value, depth - 1));
            }
            return found;
        }
        found
    }

    /// Searches the arguments of a shell: a script after `-c`, a file, or no file if it reads standard input.
    fn shell(&mut self, words: &[Word], depth: usize) -> Match {
        let is_option = |word: &Word| word.text.starts_with(['-', '+']);
        let has_script = words.iter().any(|word| is_option(word) && word.text.contains(['c', 'C']));
        let reads_file = |word: &Word| word.text.starts_with("--init-file") || word.text.starts_with("--rcfile");
        if words.iter().any(reads_file) {
            return Match::Maybe;
        }
        if !has_script {
            let file = words.iter().find(|word| !is_option(word));
            let is_file = file.is_some_and(|word| word.fixed && !word.text.starts_with("/dev/"));
            let from_input = words.iter().any(|word| word.text == "-s" || word.text == "-");
            return if is_file && !from_input { Match::No } else { Match::Maybe };
        }
        let mut found = Match::No;
        for word in words.iter().filter(|word| !is_option(word) || !word.fixed) {
            found = found.max(if word.fixed { self.script(&word.text, depth - 1) } else { Match::Maybe });
        }
        for word in words.iter().filter(|word| is_option(word)) {
            let value = word.text.strip_prefix("--").and_then(|rest| rest.split_once('='));
            found = value.map_or(found, |(_, value)| found.max(self.script(value, depth - 1)));
        }
        found
    }
}

/// The maximum number of letters of an option before its value.
const LETTERS: usize = 4;

/// Returns the scripts that an argument of a wrapper may contain: the whole argument, or the value of an option (`--command=rm`,
/// `-crm`).
fn scripts(word: &str) -> impl Iterator<Item = &str> {
    let whole = Some(word).filter(|word| word.contains(char::is_whitespace));
    let long = word.strip_prefix("--").and_then(|rest| rest.split_once('=')).map(|(_, value)| value);
    // The value starts after one letter, or after several letters of which the last one takes a value: `-qc'rm x'`.
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
    let most = if letters.contains(char::is_whitespace) { LETTERS } else { 1 };
    let short = letters.char_indices().skip(1).take(most).filter_map(move |(at, _)| letters.get(at..));
    [whole, long].into_iter().flatten().chain(short)
}

/// Returns the text with joined lines, without carriage returns and other control characters.
fn normalized(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n").replace("\\\n", "");
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

fn fixed(text: &str) -> Vec<Word> {
    text.split_whitespace().map(Word::fixed).collect()
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '+' | '[' | ']'))
    })
}
