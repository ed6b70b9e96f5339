//! Writes the events of the Markdown parser.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::types::{EntityKind, Formatted};
use super::writer::Writer;

/// The longest URL of a link. A longer one is shown as it is written.
const MAX_URL: usize = 2_048;

/// The longest name of a language.
const MAX_LANGUAGE: usize = 32;

/// The deepest indentation of a list.
const MAX_INDENT: usize = 8;

/// Returns the text and the entities of Markdown.
pub(super) fn render(markdown: &str) -> Formatted {
    let mut render = Render { source: markdown, ..Render::default() };
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES;
    for (event, range) in teamster_markdown::events(Parser::new_ext(markdown, options), markdown) {
        render.event(event, range);
    }
    render.writer.finish()
}

#[derive(Default)]
struct Render<'a> {
    source: &'a str,
    writer: Writer,
    /// The next number of each list that is open. `None`: it has no numbers.
    lists: Vec<Option<u64>>,
    quotes: usize,
    /// Whether the marker of an item was written last: its first block follows on the same line.
    is_after_marker: bool,
    /// The code block so far.
    code: Option<(String, String)>,
    /// The number of tables that are open. Their events are skipped, because they are shown as they are written.
    tables: usize,
    /// What is shown after each link that is open.
    links: Vec<Option<String>>,
}

impl Render<'_> {
    fn event(&mut self, event: Event<'_>, range: std::ops::Range<usize>) {
        if self.tables > 0 {
            match event {
                Event::Start(Tag::Table(_)) => self.tables += 1,
                Event::End(TagEnd::Table) => self.tables -= 1,
                _ => {}
            }
            return;
        }
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(code) => {
                self.is_after_marker = false;
                self.writer.code(EntityKind::Code, &code);
            }
            Event::SoftBreak | Event::HardBreak => self.writer.break_lines(1),
            Event::Rule => {
                self.block();
                self.text("———");
                self.writer.break_lines(2);
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.is_after_marker = false;
        self.writer.write(text);
    }

    /// Starts a block: after an empty line, or after the marker of its item.
    fn block(&mut self) {
        if !std::mem::take(&mut self.is_after_marker) {
            self.writer.break_lines(if self.lists.is_empty() { 2 } else { 1 });
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: std::ops::Range<usize>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(),
            Tag::Heading { .. } => {
                self.block();
                self.writer.open(EntityKind::Bold);
            }
            Tag::BlockQuote(_) => {
                self.block();
                // Quotes cannot be nested in each other.
                if self.quotes == 0 {
                    self.writer.open(EntityKind::Blockquote);
                }
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.writer.break_lines(if self.lists.is_empty() { 2 } else { 1 });
                let language = match kind {
                    CodeBlockKind::Fenced(info) => language(&info),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.block();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Table(_) => {
                self.writer.break_lines(2);
                let table = self.source.get(range).unwrap_or_default().trim_end().to_owned();
                self.writer.code(EntityKind::Pre { language: String::new() }, &table);
                self.writer.break_lines(2);
                self.tables = 1;
            }
            Tag::Emphasis => self.writer.open(EntityKind::Italic),
            Tag::Strong => self.writer.open(EntityKind::Bold),
            Tag::Strikethrough => self.writer.open(EntityKind::Strikethrough),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link(&dest_url),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.writer.break_lines(if self.lists.is_empty() { 2 } else { 1 });
            }
            TagEnd::Heading(_) => {
                self.writer.close();
                self.writer.break_lines(2);
            }
            TagEnd::BlockQuote(_) => {
                self.quotes = self.quotes.saturating_sub(1);
                if self.quotes == 0 {
                    self.writer.close();
                }
                self.writer.break_lines(2);
            }
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    self.writer.code(EntityKind::Pre { language }, code.trim_end_matches('\n'));
                    self.writer.break_lines(2);
                }
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.writer.break_lines(if self.lists.is_empty() { 2 } else { 1 });
            }
            TagEnd::Item => {
                self.is_after_marker = false;
                self.writer.break_lines(1);
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.writer.close(),
            TagEnd::Link | TagEnd::Image => match self.links.pop() {
                Some(Some(after)) => self.text(&after),
                Some(None) => self.writer.close(),
                None => {}
            },
            _ => {}
        }
    }

    fn item(&mut self) {
        self.writer.break_lines(1);
        let depth = self.lists.len().saturating_sub(1).min(MAX_INDENT);
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            _ => "• ".to_owned(),
        };
        self.writer.write(&"  ".repeat(depth));
        self.writer.write(&marker);
        self.is_after_marker = true;
    }

    /// Opens a link. Links of other kinds, such as `tg://user`, would mention a person: their target is shown as a text.
    fn link(&mut self, url: &str) {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let is_plain = url.len() <= MAX_URL && !url.chars().any(char::is_control);
        if is_web && is_plain && !self.writer.is_in_link() {
            self.writer.open(EntityKind::TextLink { url: url.to_owned() });
            self.links.push(None);
        } else {
            self.links.push(Some(if url.is_empty() { String::new() } else { format!(" ({url})") }));
        }
    }
}

/// Returns the language of a code block.
fn language(info: &str) -> String {
    let name = info.split([' ', ',', '{', '\t']).next().unwrap_or_default();
    let is_name = |character: char| character.is_ascii_alphanumeric() || "+-#._".contains(character);
    if name.len() <= MAX_LANGUAGE && name.chars().all(is_name) { name.to_owned() } else { String::new() }
}
