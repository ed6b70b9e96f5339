//! Collects the commands of a syntax tree, at any depth.

use rable::{Node, NodeKind};

use super::names::RUN_AT_START;
use super::words::Word;

/// The commands that a script may run.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// The words of each command.
    pub(super) commands: Vec<Vec<Word>>,
    /// The values of assignments.
    pub(super) values: Vec<String>,
    /// Whether the script may contain commands that are not in the tree.
    pub(super) hidden: bool,
}

impl Commands {
    pub(super) fn of(nodes: &[Node]) -> Self {
        let mut found = Self::default();
        found.all(nodes);
        found
    }

    fn all<'a>(&mut self, nodes: impl IntoIterator<Item = &'a Node>) {
        nodes.into_iter().for_each(|node| self.node(node));
    }

    fn node(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::Command { assignments, words, redirects } => {
                for assignment in assignments {
                    let value = Word::read(assignment).text;
                    self.hidden |= RUN_AT_START.iter().any(|name| value.starts_with(name));
                    self.values.extend(value.split_once('=').map(|(_, value)| value.to_owned()));
                }
                if !words.is_empty() {
                    self.commands.push(words.iter().map(Word::read).collect());
                }
                self.all(assignments.iter().chain(words).chain(redirects));
            }
            NodeKind::Pipeline { commands, .. } => self.all(commands),
            NodeKind::List { items } => self.all(items.iter().map(|item| &item.command)),
            NodeKind::Word { value, parts, .. } => {
                // The parser reads an array as one literal, and retains the backslash of a nested backtick.
                self.hidden |= parts.is_empty() && substitutes(value) || value.contains("\\`");
                self.all(parts);
            }
            NodeKind::HereDoc { content, quoted, complete, .. } => {
                self.hidden |= !complete || !quoted && substitutes(content);
            }
            NodeKind::CondTerm { value, .. } => self.text(value),
            NodeKind::ParamExpansion { param, op, arg } | NodeKind::ParamIndirect { param, op, arg } => {
                for text in [Some(param), op.as_ref(), arg.as_ref()].into_iter().flatten() {
                    self.text(text);
                }
                // `${a@P}` runs command substitutions in the value.
                self.hidden |= op.as_ref().is_some_and(|op| op.starts_with('@'));
            }
            NodeKind::ParamLength { param: text }
            | NodeKind::ArithDeprecated { expression: text }
            | NodeKind::BraceExpansion { content: text }
            | NodeKind::LocaleString { content: text, .. } => self.text(text),
            NodeKind::ArithmeticCommand { raw_content, redirects, .. } => {
                self.text(raw_content);
                self.all(redirects);
            }
            NodeKind::ArithmeticExpansion { expression: None } => self.hidden = true,
            _ => self.compound(node),
        }
    }

    /// Checks a text that the parser does not parse.
    fn text(&mut self, text: &str) {
        self.hidden |= substitutes(text);
    }

    fn compound(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::If { condition, then_body, else_body, redirects } => {
                self.all([condition, then_body].into_iter().chain(else_body).map(|node| &**node).chain(redirects));
            }
            NodeKind::While { condition, body, redirects } | NodeKind::Until { condition, body, redirects } => {
                self.all([condition, body].into_iter().map(|node| &**node).chain(redirects));
            }
            NodeKind::For { words, body, redirects, .. } | NodeKind::Select { words, body, redirects, .. } => {
                self.all(words.iter().flatten().chain([&**body]).chain(redirects));
            }
            NodeKind::ForArith { init, cond, incr, body, redirects } => {
                for text in [init, cond, incr] {
                    self.text(text);
                }
                self.all(std::iter::once(&**body).chain(redirects));
            }
            NodeKind::Case { word, patterns, redirects } => {
                self.all(std::iter::once(&**word).chain(redirects));
                for clause in patterns {
                    self.all(clause.patterns.iter().chain(&clause.body));
                }
            }
            NodeKind::Subshell { body, redirects } | NodeKind::BraceGroup { body, redirects } => {
                self.all(std::iter::once(&**body).chain(redirects));
            }
            NodeKind::ConditionalExpr { body, redirects } => self.all(std::iter::once(&**body).chain(redirects)),
            NodeKind::Coproc { name, command } => {
                // The parsed name may be the command.
                self.commands.extend(name.iter().map(|name| vec![Word::fixed(name)]));
                self.node(command);
            }
            NodeKind::Function { body: inner, .. }
            | NodeKind::CommandSubstitution { command: inner, .. }
            | NodeKind::ProcessSubstitution { command: inner, .. }
            | NodeKind::Negation { pipeline: inner }
            | NodeKind::Time { pipeline: inner, .. }
            | NodeKind::Redirect { target: inner, .. }
            | NodeKind::UnaryTest { operand: inner, .. }
            | NodeKind::CondNot { operand: inner }
            | NodeKind::CondParen { inner } => self.node(inner),
            NodeKind::BinaryTest { left, right, .. }
            | NodeKind::CondAnd { left, right }
            | NodeKind::CondOr { left, right } => self.all([&**left, &**right]),
            NodeKind::Array { elements } => self.all(elements),
            NodeKind::WordLiteral { value } => self.text(value),
            NodeKind::ArithmeticExpansion { expression: Some(expression) } => self.arithmetic(expression),
            NodeKind::AnsiCQuote { .. } | NodeKind::Empty | NodeKind::Comment { .. } => {}
            // Arithmetic, and kinds that a later version of the parser may add.
            _ => self.arithmetic(node),
        }
    }

    /// Checks an arithmetic expression. A subscript in it can run commands.
    fn arithmetic(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::ArithNumber { .. } | NodeKind::ArithVar { .. } | NodeKind::ArithEmpty => {}
            NodeKind::ArithBinaryOp { left, right, .. } | NodeKind::ArithComma { left, right } => {
                self.arithmetic(left);
                self.arithmetic(right);
            }
            NodeKind::ArithUnaryOp { operand, .. } => self.arithmetic(operand),
            _ => self.hidden = true,
        }
    }
}

/// Whether a text may contain a command substitution. Quotes are ignored, so a single-quoted word may match too.
fn substitutes(text: &str) -> bool {
    text.contains('`') || text.contains("$(") || text.contains("<(") || text.contains(">(") || text.contains("${")
}
