//! The events of the parser, in which parts of names are text.

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::ops::Range;

use pulldown_cmark::{CowStr, Event, LinkType, OffsetIter, Parser, Tag, TagEnd};

use crate::escapes;
use crate::marks::{Marks, is_name, marks};

/// The indentation from which a further line in a list item is shown with it.
const CODE_INDENT: usize = 4;

/// Returns the events of a parser of `source`, with their ranges. Marks that are part of names are events of text.
pub fn events<'a>(parser: Parser<'a>, source: &'a str) -> Events<'a> {
    Events {
        source,
        parser: parser.into_offset_iter(),
        ready: VecDeque::new(),
        links: Vec::new(),
        items: Vec::new(),
        quotes: 0,
        at: 0,
        is_code: false,
        is_table: false,
    }
}

/// An iterator of events and their ranges. See [`events`].
#[derive(Debug)]
pub struct Events<'a> {
    source: &'a str,
    parser: OffsetIter<'a>,
    /// Events that precede those of the parser.
    ready: VecDeque<(Event<'a>, Range<usize>)>,
    /// For each open link, whether it is text.
    links: Vec<bool>,
    /// The column of the content of each open list item.
    items: Vec<usize>,
    /// The number of open quotations.
    quotes: usize,
    /// The end of the last text.
    at: usize,
    is_code: bool,
    is_table: bool,
}

impl<'a> Iterator for Events<'a> {
    type Item = (Event<'a>, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            let (event, range) = self.parser.next()?;
            self.convert(event, range);
        }
    }
}

impl FusedIterator for Events<'_> {}

impl<'a> Events<'a> {
    /// Adds what an event of the parser becomes.
    fn convert(&mut self, event: Event<'a>, range: Range<usize>) {
        match &event {
            Event::Start(Tag::Emphasis) | Event::End(TagEnd::Emphasis) => return self.marked(event, range, 1),
            Event::Start(Tag::Strong) | Event::End(TagEnd::Strong) => return self.marked(event, range, 2),
            Event::Start(Tag::Strikethrough) | Event::End(TagEnd::Strikethrough) => {
                let is_double = self.source.get(range.clone()).is_some_and(|text| text.starts_with("~~"));
                return self.marked(event, range, if is_double { 2 } else { 1 });
            }
            Event::Start(Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. }) => {
                let is_text = self.is_call(*link_type, dest_url, range.start);
                self.links.push(is_text);
                let is_image = matches!(event, Event::Start(Tag::Image { .. }));
                self.at = range.start + if is_image { 2 } else { 1 };
                if is_text {
                    return self.text(range.start..self.at);
                }
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                if self.links.pop() == Some(true) {
                    return self.text(self.at..range.end);
                }
                self.at = range.end;
            }
            Event::Text(_) if !self.is_code => return self.plain(event, range),
            Event::HardBreak if self.source.get(range.clone()).is_some_and(|text| text.starts_with('\\')) => {
                // It can continue a command.
                self.text(range.start..range.start + 1);
            }
            Event::Start(Tag::CodeBlock(_)) => self.is_code = true,
            Event::End(TagEnd::CodeBlock) => self.is_code = false,
            Event::Start(Tag::Table(_)) => self.is_table = true,
            Event::End(TagEnd::Table) => self.is_table = false,
            Event::Start(Tag::BlockQuote(_)) => self.quotes += 1,
            Event::End(TagEnd::BlockQuote(_)) => self.quotes = self.quotes.saturating_sub(1),
            Event::Start(Tag::Item) => self.items.push(self.content_column(range.start)),
            Event::End(TagEnd::Item) => _ = self.items.pop(),
            _ => {}
        }
        let is_break = matches!(event, Event::SoftBreak | Event::HardBreak);
        let start = range.start;
        if !matches!(event, Event::Start(_)) {
            self.at = range.end;
        }
        self.ready.push_back((event, range));
        if is_break {
            self.indentation(start);
        }
    }

    /// Adds the start or the end of an emphasis, or its marks.
    fn marked(&mut self, event: Event<'a>, range: Range<usize>, length: usize) {
        let is_start = matches!(event, Event::Start(_));
        let mark =
            if is_start { range.start..range.start + length } else { range.end.saturating_sub(length)..range.end };
        let shown = marks(self.source, &range, length);
        if is_start && shown != Marks::Text {
            self.ready.push_back((event.clone(), range.clone()));
        }
        if shown == Marks::Hidden {
            self.at = mark.end;
        } else {
            self.text(mark);
        }
        if !is_start && shown != Marks::Text {
            self.ready.push_back((event, range));
        }
    }

    /// Adds a text of the parser, with the backslash before it if that is shown.
    fn plain(&mut self, event: Event<'a>, range: Range<usize>) {
        let before = self.source.get(..range.start).unwrap_or_default();
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        let is_escaped = backslashes % 2 == 1
            && self.at < range.start
            && self.source.get(range.start..).is_some_and(|text| text.starts_with(|c: char| c.is_ascii_punctuation()));
        if is_escaped && escapes::is_text(self.source, range.start - 1, self.is_table) {
            self.text(range.start - 1..range.start);
        }
        self.at = range.end;
        self.ready.push_back((event, range));
    }

    /// Adds a part of the source as text.
    fn text(&mut self, range: Range<usize>) {
        let text = self.source.get(range.clone()).unwrap_or_default();
        self.at = range.end;
        self.ready.push_back((Event::Text(CowStr::Borrowed(text)), range));
    }

    /// Whether a link at this position is a call, such as `handlers[name](event)`, or has no target.
    fn is_call(&self, kind: LinkType, target: &str, start: usize) -> bool {
        let last = self.source.get(..start).unwrap_or_default().chars().next_back();
        let follows_name = last.is_some_and(|last| is_name(last) || matches!(last, ')' | ']' | '"' | '\''));
        let is_address = target.contains("://") || target.starts_with("mailto:");
        !matches!(kind, LinkType::Autolink | LinkType::Email) && (target.is_empty() || follows_name && !is_address)
    }

    /// Returns the column of the content of the list item at this position.
    fn content_column(&self, start: usize) -> usize {
        let (before, item) = self.source.split_at_checked(start).unwrap_or_default();
        let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1);
        let digits = item.len() - item.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let text = item.get(digits + 1..).unwrap_or_default();
        let spaces = text.len() - text.trim_start_matches(' ').len();
        column + digits + 1 + if (1..=CODE_INDENT).contains(&spaces) { spaces } else { 1 }
    }

    /// Adds the indentation of the line after a line end, if it has one of its own.
    fn indentation(&mut self, start: usize) {
        let Some((_, line)) = self.source.get(start..).and_then(|rest| rest.split_once('\n')) else { return };
        if self.quotes > 0 {
            return;
        }
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        let columns = line.chars().take(blank).map(|c| if c == '\t' { CODE_INDENT } else { 1 }).sum::<usize>();
        let own = columns.saturating_sub(self.items.last().copied().unwrap_or(0));
        if own >= if self.items.is_empty() { 1 } else { CODE_INDENT } {
            let at = self.at;
            self.ready.push_back((Event::Text(CowStr::from(" ".repeat(own))), at..at));
        }
    }
}
