//! Splits a recorded text into the pieces in which secrets are searched: the strings and numbers of JSON documents, or whole
//! lines of other text.
//!
//! Invariant: a text without removed ranges is rendered byte for byte.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use serde::de::IgnoredAny;

/// Members whose values distinguish messages and other items that are streamed in parallel.
const IDENTITIES: [&str; 17] = [
    "type",
    "kind",
    "method",
    "id",
    "index",
    "sessionId",
    "sessionUpdate",
    "sessionID",
    "messageId",
    "message_id",
    "messageID",
    "itemId",
    "item_id",
    "partID",
    "toolId",
    "toolCallId",
    "parent_tool_use_id",
];

/// A text that was split.
#[derive(Debug)]
pub(super) struct Scan {
    parts: Vec<Part>,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Part {
    /// The text between two pieces.
    Between(String),
    Piece(usize),
}

/// A piece of a text.
#[derive(Debug)]
pub(super) struct Piece {
    /// The text without JSON escapes.
    pub(super) text: String,
    /// The channels of the piece. A piece of another line may continue it if both have a channel in common.
    pub(super) channels: Vec<u64>,
    form: Form,
    /// The removed ranges and their replacements.
    cuts: Vec<(Range<usize>, String)>,
}

#[derive(Debug)]
enum Form {
    Plain,
    /// A JSON string, with its original text.
    String(String),
    Number,
}

impl Scan {
    /// Splits a text. Pieces of different sources never continue each other.
    pub(super) fn of(text: &str, source: u64) -> Self {
        if let Some(scan) = JsonScanner::scan(text, source) {
            return scan;
        }
        let mut scan = Self { parts: Vec::new(), pieces: Vec::new() };
        for line in text.split_inclusive('\n') {
            match JsonScanner::scan(line, source) {
                Some(json) => scan.append(json),
                None => scan.piece(line.to_owned(), vec![source], Form::Plain),
            }
        }
        scan
    }

    /// Whether any range was removed.
    pub(super) fn is_changed(&self) -> bool {
        self.pieces.iter().any(|piece| !piece.cuts.is_empty())
    }

    /// Returns the text without the removed ranges.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Between(between) => text.push_str(between),
                Part::Piece(at) => self.pieces.get(*at).into_iter().for_each(|piece| text.push_str(&piece.render())),
            }
        }
        text
    }

    fn append(&mut self, other: Self) {
        let pieces = self.pieces.len();
        self.parts.extend(other.parts.into_iter().map(|part| match part {
            Part::Piece(at) => Part::Piece(pieces + at),
            between @ Part::Between(_) => between,
        }));
        self.pieces.extend(other.pieces);
    }

    fn between(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Between(last)) => last.push_str(text),
            _ => self.parts.push(Part::Between(text.to_owned())),
        }
    }

    fn piece(&mut self, text: String, channels: Vec<u64>, form: Form) {
        self.parts.push(Part::Piece(self.pieces.len()));
        self.pieces.push(Piece { text, channels, form, cuts: Vec::new() });
    }
}

impl Piece {
    /// Removes a range of the text.
    pub(super) fn cut(&mut self, range: Range<usize>, word: &str) {
        self.cuts.push((range, word.to_owned()));
    }

    fn render(&self) -> String {
        match &self.form {
            Form::Plain => self.redacted(),
            Form::String(written) if self.cuts.is_empty() => written.clone(),
            Form::String(_) => serde_json::Value::from(self.redacted()).to_string(),
            Form::Number if self.cuts.is_empty() => self.text.clone(),
            Form::Number => "0".to_owned(),
        }
    }

    fn redacted(&self) -> String {
        let mut cuts: Vec<_> = self.cuts.iter().collect();
        cuts.sort_by_key(|(range, word)| (range.start, std::cmp::Reverse(range.end), word.is_empty()));
        let (mut text, mut done) = (String::new(), 0);
        for (range, word) in cuts {
            if range.start >= done {
                text.push_str(self.text.get(done..range.start).unwrap_or_default());
                text.push_str(word);
            }
            done = done.max(range.end);
        }
        text.push_str(self.text.get(done..).unwrap_or_default());
        text
    }
}

/// An open object or array.
struct Open {
    is_object: bool,
    /// The names of the members on the path to it, as a hash.
    path: u64,
    /// The name of the member whose value is next.
    name: Option<String>,
    expects_name: bool,
}

/// Reads a sequence of JSON documents of any depth, as far as needed to find their strings.
struct JsonScanner<'t> {
    rest: &'t str,
    open: Vec<Open>,
    identity: u64,
    source: u64,
    scan: Scan,
}

impl<'t> JsonScanner<'t> {
    fn scan(text: &'t str, source: u64) -> Option<Scan> {
        if !text.trim_start().starts_with(['{', '[']) {
            return None;
        }
        let scan = Scan { parts: Vec::new(), pieces: Vec::new() };
        let mut scanner = Self { rest: text, open: Vec::new(), identity: 0, source, scan };
        while let Some(next) = scanner.rest.chars().next() {
            scanner.step(next)?;
        }
        if !scanner.open.is_empty() {
            return None;
        }
        for piece in &mut scanner.scan.pieces {
            let with_identity = piece.channels.first().map(|channel| mix(*channel, &scanner.identity));
            piece.channels.extend(with_identity);
        }
        Some(scanner.scan)
    }

    fn step(&mut self, next: char) -> Option<()> {
        match next {
            '"' => return self.string(),
            '{' | '[' => {
                let (is_object, path) = (next == '{', self.path());
                self.open.push(Open { is_object, path, name: None, expects_name: is_object });
            }
            '}' => _ = self.open.pop().filter(|open| open.is_object)?,
            ']' => _ = self.open.pop().filter(|open| !open.is_object)?,
            ',' => {
                let open = self.open.last_mut()?;
                open.expects_name = open.is_object;
            }
            ':' => self.open.last_mut()?.expects_name = false,
            ' ' | '\t' | '\r' | '\n' => {}
            _ => return self.bare(),
        }
        let between = self.take(next.len_utf8())?;
        self.scan.between(between);
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let mut escaped = false;
        let closes = |(_, byte): &(usize, u8)| {
            let closes = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            closes
        };
        let (end, _) = self.rest.bytes().enumerate().skip(1).find(closes)?;
        let written = self.take(end + 1)?;
        // A string with half of a surrogate pair is not text. It is searched with its escapes.
        let plain = || written.get(1..end).unwrap_or_default().to_owned();
        let text = serde_json::from_str(written).unwrap_or_else(|_| plain());
        let form = Form::String(written.to_owned());
        let open = self.open.last_mut()?;
        if open.expects_name {
            open.name = Some(text.clone());
            self.scan.piece(text, Vec::new(), form);
        } else {
            self.identify(&text);
            let channel = self.path();
            self.scan.piece(text, vec![channel], form);
        }
        Some(())
    }

    fn bare(&mut self) -> Option<()> {
        let ends = |next: char| ",:]}[{\"".contains(next) || next.is_ascii_whitespace();
        let word = self.take(self.rest.find(ends).unwrap_or(self.rest.len()))?;
        serde_json::from_str::<IgnoredAny>(word).ok()?;
        self.identify(word);
        if word.starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            self.scan.piece(word.to_owned(), Vec::new(), Form::Number);
        } else {
            self.scan.between(word);
        }
        Some(())
    }

    fn identify(&mut self, value: &str) {
        let name = self.open.last().and_then(|open| open.name.as_deref());
        if let Some(name) = name.filter(|name| IDENTITIES.contains(name)) {
            self.identity = mix(mix(self.identity, name), value);
        }
    }

    /// Returns the names on the path to the next value, as a hash.
    fn path(&self) -> u64 {
        match self.open.last() {
            Some(Open { path, name: Some(name), .. }) => mix(*path, name.as_str()),
            Some(open) => open.path,
            None => mix(self.source, "json"),
        }
    }

    fn take(&mut self, bytes: usize) -> Option<&'t str> {
        let (taken, rest) = self.rest.split_at_checked(bytes).filter(|(taken, _)| !taken.is_empty())?;
        self.rest = rest;
        Some(taken)
    }
}

/// Returns a hash of a value and of what precedes it.
pub(super) fn mix(before: u64, next: &(impl std::hash::Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    before.hash(&mut hasher);
    next.hash(&mut hasher);
    hasher.finish()
}
