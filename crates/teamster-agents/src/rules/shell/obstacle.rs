//! Finds why the commands of a text are not certain.

use rable::{ListOperator, Node, NodeKind};

use super::super::no_rule::NoRule;
use super::names::changes_shell;
use super::{parse, plain};

/// The maximum number of shells around a command.
const DEEPEST: usize = 3;

/// Returns why [`plain::commands`] finds no certain commands in this text.
pub(in super::super) fn obstacle(text: &str) -> NoRule {
    let mut search = Search::default();
    search.script(text, DEEPEST);
    let Search { found, programs } = search;
    if found.contains(&NoRule::WritesFile) {
        return NoRule::WritesFile;
    }
    if let Some(first) = found.into_iter().next() {
        return first;
    }
    let before = programs.len().saturating_sub(1);
    match programs.iter().take(before).find(|program| changes_shell(program)) {
        Some(program) => NoRule::ChangesShell { program: program.clone() },
        None if text.contains(['$', '`']) => NoRule::Expands,
        None => NoRule::Unreadable,
    }
}

#[derive(Default)]
struct Search {
    /// The obstacles, in the order of the text.
    found: Vec<NoRule>,
    /// The programs that run.
    programs: Vec<String>,
}

impl Search {
    fn script(&mut self, text: &str, depth: usize) {
        match parse(text).filter(|_| depth > 0) {
            Some(nodes) => nodes.iter().for_each(|node| self.node(node, depth)),
            None => self.found.push(NoRule::Unreadable),
        }
    }

    fn node(&mut self, node: &Node, depth: usize) {
        match &node.kind {
            NodeKind::Pipeline { commands, .. } => commands.iter().for_each(|node| self.node(node, depth)),
            NodeKind::List { items } => {
                for item in items {
                    self.node(&item.command, depth);
                    if item.operator == Some(ListOperator::Background) {
                        self.found.push(NoRule::Background);
                    }
                }
            }
            NodeKind::Command { assignments, words, redirects } => {
                if !assignments.is_empty() {
                    self.found.push(NoRule::SetsVariable);
                }
                self.found.extend(redirects.iter().filter_map(redirection));
                let words: Vec<String> = words.iter().map_while(plain::fixed_text).collect();
                if let Some(program) = words.first() {
                    self.programs.push(program.clone());
                }
                match (plain::script_in(&words), node_words(node)) {
                    (Some(script), _) => self.script(&script, depth - 1),
                    (None, count) if count > words.len() => self.found.push(NoRule::Expands),
                    _ => {}
                }
            }
            NodeKind::Empty | NodeKind::Comment { .. } => {}
            _ => self.found.push(NoRule::Compound),
        }
    }
}

fn node_words(node: &Node) -> usize {
    match &node.kind {
        NodeKind::Command { words, .. } => words.len(),
        _ => 0,
    }
}

fn redirection(redirect: &Node) -> Option<NoRule> {
    match &redirect.kind {
        _ if plain::is_harmless(redirect) => None,
        NodeKind::Redirect { op, .. } if op.contains('>') => Some(NoRule::WritesFile),
        _ => Some(NoRule::ReadsFile),
    }
}
