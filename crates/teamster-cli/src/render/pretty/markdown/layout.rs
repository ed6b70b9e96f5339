//! Formats one block of Markdown as lines.

use anstyle::{Effects, Style};
use pulldown_cmark::{CowStr, Event, Parser, Tag, TagEnd};

use super::super::style::{BOLD, DIM};
use super::code_block::{CODE, CodeBlock, code, delimiter};
use super::source::{ends_with_blank_line, options};
use super::table::{Table, printable};
use crate::printable::{Printable, columns, wrap};

/// The minimum width of text, whatever the prefixes and the terminal leave.
const NARROWEST: usize = 16;
/// The maximum width of a rule.
const RULE_COLUMNS: usize = 40;

/// Formats a block. The source is escaped for the terminal. Entities (`&#27;`) are escaped after the parser has decoded them.
pub(super) fn layout(source: &str, width: usize) -> Vec<Printable> {
    let mut layout = Layout { source, width, ..Layout::default() };
    let parser = Parser::new_ext(source, options());
    let definitions: Vec<_> = parser.reference_definitions().iter().map(|(_, found)| found.span.clone()).collect();
    for (event, range) in teamster_markdown::events(parser, source) {
        layout.event(event, range.start, range.end);
    }
    layout.end_text();
    // Definitions of links have no other output.
    for span in definitions {
        layout.lines.extend(source.get(span).unwrap_or_default().lines().map(printable));
    }
    layout.lines
}

#[derive(Default)]
struct Layout<'a> {
    source: &'a str,
    width: usize,
    lines: Vec<Printable>,
    /// What starts each line, the outermost first.
    prefixes: Vec<Prefix>,
    /// The formatted text of the open paragraph or cell.
    text: String,
    /// The styles of the text, the outermost first.
    styles: Vec<Style>,
    /// The open links: where the text of each starts, and its target.
    links: Vec<(usize, String)>,
    table: Option<Table>,
    code: Option<OpenCode>,
}

/// The start of the lines of a container.
struct Prefix {
    /// The start of the first line; empty after it was written.
    first: String,
    rest: String,
}

/// The code of the open block.
struct OpenCode {
    /// `None` for indented code.
    block: Option<CodeBlock>,
    text: String,
}

impl Layout<'_> {
    fn event(&mut self, event: Event<'_>, start: usize, end: usize) {
        match event {
            Event::Start(tag) => self.start(tag, start),
            Event::End(tag) => self.end(tag, start, end),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.text.push_str(&escaped(&text)),
                None => self.push(&escaped(&text)),
            },
            Event::Code(text) => {
                let text = escaped(&text);
                self.with_style(CODE, |layout| layout.push(&text));
            }
            Event::Html(text) | Event::InlineHtml(text) => self.push(&escaped(&text)),
            Event::SoftBreak | Event::HardBreak => self.text.push('\n'),
            Event::Rule => {
                let rule = "─".repeat(self.room().min(RULE_COLUMNS));
                self.line(&format!("{DIM}{rule}{DIM:#}"));
            }
            Event::TaskListMarker(done) => self.text.push_str(if done { "☑ " } else { "☐ " }),
            // Extensions that are not enabled.
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push(&escaped(&text));
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, start: usize) {
        match tag {
            Tag::Emphasis => self.styles.push(Style::new().italic()),
            Tag::Strong => self.styles.push(BOLD),
            Tag::Strikethrough => self.styles.push(Style::new().strikethrough()),
            Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. } => {
                let title = if title.is_empty() { String::new() } else { format!(" \"{}\"", escaped(&title)) };
                self.links.push((self.text.len(), format!("{}{title}", escaped(&dest_url))));
            }
            Tag::Table(alignments) => {
                self.end_text();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => self.table.iter_mut().for_each(|table| table.rows.push(Vec::new())),
            Tag::TableCell => {}
            block => {
                self.end_text();
                self.start_block(&block, start);
            }
        }
    }

    fn start_block(&mut self, tag: &Tag<'_>, start: usize) {
        let before = self.source.get(..start).unwrap_or_default();
        let rest = self.source.get(start..).unwrap_or_default();
        match tag {
            Tag::Heading { .. } => self.styles.push(BOLD),
            Tag::BlockQuote(_) => {
                self.separate(before);
                self.prefixes.push(Prefix { first: format!("{DIM}│{DIM:#} "), rest: format!("{DIM}│{DIM:#} ") });
            }
            Tag::Item => {
                self.separate(before);
                let first = marker(rest);
                let rest = " ".repeat(columns(&first));
                self.prefixes.push(Prefix { first, rest });
            }
            Tag::CodeBlock(_) => {
                self.separate(before);
                self.code = Some(OpenCode { block: CodeBlock::opened_by(rest), text: String::new() });
            }
            Tag::Paragraph => self.separate(before),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, start: usize, end: usize) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => _ = self.styles.pop(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                table.lines(self.room()).iter().for_each(|line| self.line(line));
            }
            TagEnd::Heading(_) => {
                self.end_text();
                self.styles.pop();
            }
            TagEnd::CodeBlock => self.end_code(self.source.get(start..end).unwrap_or_default()),
            TagEnd::Item | TagEnd::BlockQuote(_) => {
                self.end_text();
                // An empty item still has its mark.
                if self.prefixes.last().is_some_and(|prefix| !prefix.first.is_empty()) {
                    self.line("");
                }
                self.prefixes.pop();
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_text(),
            _ => {}
        }
    }

    /// Adds the target of a link, unless its text is the target.
    fn end_link(&mut self) {
        let Some((start, target)) = self.links.pop() else { return };
        let text = anstream::adapter::strip_str(self.text.get(start..).unwrap_or_default()).to_string();
        if !target.is_empty() && text != target && format!("mailto:{text}") != target {
            self.with_style(DIM, |layout| layout.push(&format!(" ({target})")));
        }
    }

    fn end_code(&mut self, source: &str) {
        let Some(OpenCode { block, text }) = self.code.take() else { return };
        let Some(block) = block else {
            for line in text.lines() {
                self.line(&if line.is_empty() { String::new() } else { format!("    {}", code(line)) });
            }
            return;
        };
        self.line(block.opening().as_str());
        block.lines(&text).iter().for_each(|line| self.line(line.as_str()));
        let last = source.lines().skip(1).last().map(|line| line.trim_start_matches([' ', '>', '\t']));
        if let Some(last) = last.filter(|line| block.is_closed_by(line)) {
            self.line(delimiter(last).as_str());
        }
    }

    /// Adds text with the active styles.
    fn push(&mut self, text: &str) {
        let style = self.styles.iter().fold(Style::new(), |all, style| {
            let effects = all.get_effects() | style.get_effects();
            let color = style.get_fg_color().or(all.get_fg_color());
            all.effects(effects).fg_color(color)
        });
        if style.get_effects() == Effects::new() && style.get_fg_color().is_none() {
            return self.text.push_str(text);
        }
        let lines: Vec<_> = text.split('\n').map(|line| format!("{style}{line}{style:#}")).collect();
        self.text.push_str(&lines.join("\n"));
    }

    fn with_style(&mut self, style: Style, push: impl FnOnce(&mut Self)) {
        self.styles.push(style);
        push(self);
        self.styles.pop();
    }

    /// Writes the lines of the open paragraph.
    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if text.is_empty() {
            return;
        }
        for line in text.strip_suffix('\n').unwrap_or(&text).split('\n') {
            for wrapped in wrap(&line.replace('\t', "    "), self.room()) {
                self.line(&wrapped);
            }
        }
    }

    /// Writes a blank line if there is one in the source, before a further block in this block.
    fn separate(&mut self, before: &str) {
        let starts = self.prefixes.last().is_some_and(|prefix| !prefix.first.is_empty());
        let line = before.rsplit_once('\n').map_or("", |(lines, _)| lines);
        if !self.lines.is_empty() && !starts && ends_with_blank_line(&format!("{line}\n")) {
            self.line("");
        }
    }

    /// Writes a line after the prefixes.
    fn line(&mut self, text: &str) {
        let mut line = String::new();
        for prefix in &mut self.prefixes {
            let start = std::mem::take(&mut prefix.first);
            line.push_str(if start.is_empty() { &prefix.rest } else { &start });
        }
        line.push_str(text);
        // Spaces at the end of code are kept.
        self.lines.push(printable(if text.is_empty() { line.trim_end_matches(' ') } else { &line }));
    }

    /// Returns the columns that are free after the prefixes.
    fn room(&self) -> usize {
        let used: usize = self.prefixes.iter().map(|prefix| columns(&prefix.rest)).sum();
        self.width.saturating_sub(used).max(NARROWEST)
    }
}

/// Returns the mark of a list item. A number is that of the source.
fn marker(item: &str) -> String {
    let digits = item.len() - item.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let text = item.get(1..).unwrap_or_default().trim_start_matches(' ');
    match item.get(..=digits) {
        Some(number) if digits > 0 => format!("{number} "),
        // An added line of a change, and a line of a crontab.
        Some("+") => "+ ".to_owned(),
        Some("*") if text.starts_with("* ") => "* ".to_owned(),
        _ => "• ".to_owned(),
    }
}

/// Escapes text of the parser, which has decoded entities.
fn escaped(text: &CowStr<'_>) -> String {
    Printable::prose(text).as_str().to_owned()
}
