//! JSON with comments.
//!
//! Edits change only the places that the parser reports. A new property is added after the last one of its object, in the style
//! of that object: on lines or in one line, with or without a trailing comma.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, ParseResult, parse_to_ast};
use serde_json::Value;

use super::data::Data;
use super::lines;
use super::types::{DocumentError, Entries, Format, Step, shown};

/// Returns the text with entries.
pub(super) fn insert(body: &str, at: &[String], entries: &Entries) -> Result<String, DocumentError> {
    let mut text = body.to_owned();
    let mut new = Vec::new();
    for (name, value) in entries {
        let document = Document::parse(&text)?;
        let there = match document.find(at)? {
            Found::Object(object) => unique(object, at, name)?,
            Found::Nothing { .. } => None,
        };
        match there {
            Some(prop) => {
                let indent = document.indent_of(prop.range.start);
                let value = document.style(prop.range()).value(value, &indent);
                let range = prop.value.range();
                text.replace_range(range.start..range.end, &value);
            }
            None => new.push((name.as_str(), value.clone())),
        }
    }
    if new.is_empty() { Ok(text) } else { Document::parse(&text)?.with(at, new) }
}

/// Returns the text without entries.
pub(super) fn take_out(body: &str, base: &str, at: &[String], steps: &[Step]) -> Result<String, DocumentError> {
    let base = Document::parse(base)?;
    let mut text = body.to_owned();
    for step in steps {
        let document = Document::parse(&text)?;
        let (parents, name) = match step {
            Step::Remove(name) | Step::Restore(name) => (at, name),
            Step::Prune(depth) => match at.get(..*depth).unwrap_or_default().split_last() {
                Some((key, parents)) => (parents, key),
                None => continue,
            },
        };
        let Found::Object(object) = document.find(parents)? else { continue };
        let Some(prop) = unique(object, parents, name)? else { continue };
        if let Step::Restore(_) = step {
            let Found::Object(own) = base.find(parents)? else { continue };
            let Some(own) = unique(own, parents, name)? else { continue };
            let own = base.text.get(own.value.start()..own.value.end()).unwrap_or_default().to_owned();
            let range = prop.value.range();
            text.replace_range(range.start..range.end, &own);
        } else {
            let mut ranges = document.removal(prop);
            ranges.sort_by_key(|range| range.start);
            for range in ranges.into_iter().rev() {
                text.replace_range(range, "");
            }
        }
    }
    Ok(text)
}

/// Parses the text. A duplicate key is an error only on the path to the entries and among them.
pub(super) fn data(body: &str, at: &[String]) -> Result<Data, DocumentError> {
    let document = Document::parse(body)?;
    if let Found::Object(object) = document.find(at)? {
        let mut names = BTreeSet::new();
        if let Some(prop) = object.properties.iter().find(|prop| !names.insert(prop.name.as_str())) {
            return Err(duplicate(at, prop.name.as_str()));
        }
    }
    Ok(document.parsed.value.as_ref().map_or_else(Data::empty_object, node_data))
}

struct Document<'a> {
    text: &'a str,
    parsed: ParseResult<'a>,
}

/// The value at a path of keys.
enum Found<'d, 'a> {
    Object(&'d Object<'a>),
    /// The document is empty, or the object at this depth does not have the next key.
    Nothing {
        parent: Option<&'d Object<'a>>,
        depth: usize,
    },
}

impl<'a> Document<'a> {
    fn parse(text: &'a str) -> Result<Self, DocumentError> {
        let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = parse_to_ast(text, &collect, &options).map_err(|error| DocumentError::Syntax {
            format: Format::Jsonc.name(),
            line: error.line_display(),
            problem: error.kind().to_string(),
        })?;
        Ok(Self { text, parsed })
    }

    fn find(&self, at: &[String]) -> Result<Found<'_, 'a>, DocumentError> {
        let Some(root) = &self.parsed.value else { return Ok(Found::Nothing { parent: None, depth: 0 }) };
        let mut object = object_of(root, &[])?;
        for (depth, key) in at.iter().enumerate() {
            let before = at.get(..depth).unwrap_or_default();
            match unique(object, before, key)? {
                Some(prop) => object = object_of(&prop.value, at.get(..=depth).unwrap_or_default())?,
                None => return Ok(Found::Nothing { parent: Some(object), depth }),
            }
        }
        Ok(Found::Object(object))
    }

    /// Returns the text with new properties in the object at these keys.
    fn with(&self, at: &[String], new: Vec<(&str, Value)>) -> Result<String, DocumentError> {
        let (parent, missing) = match self.find(at)? {
            Found::Object(object) => (Some(object), &[][..]),
            Found::Nothing { parent, depth } => (parent, at.get(depth..).unwrap_or_default()),
        };
        let Some((outermost, inner)) = missing.split_first() else {
            return Ok(self.append(parent, &new));
        };
        let fields = new.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let nested = inner
            .iter()
            .rev()
            .fold(Value::Object(fields), |value, key| Value::Object([(key.clone(), value)].into_iter().collect()));
        Ok(self.append(parent, &[(outermost, nested)]))
    }

    /// Adds a new document after the existing text, which consists of comments and blanks.
    fn append(&self, parent: Option<&Object<'a>>, new: &[(&str, Value)]) -> String {
        let mut text = self.text.to_owned();
        let Some(object) = parent else {
            let style = Style { over_lines: true, end: lines::usual_end(self.text), unit: "  ".to_owned() };
            if !text.is_empty() && !text.ends_with('\n') {
                text.push_str(style.end);
            }
            let properties = style.properties(new, &style.unit);
            return [text.as_str(), "{", &properties, style.end, "}", style.end].concat();
        };
        let style = self.style(object.range());
        let inside = self.inside(object);
        let last = object.properties.last();
        let indent = match object.properties.first().filter(|first| self.is_first_in_line(first.range.start)) {
            Some(first) => self.indent_of(first.range.start),
            None => self.indent_of(object.range.start) + &style.unit,
        };
        let mut insertion = style.properties(new, &indent);
        if !style.over_lines && last.is_some() {
            insertion.insert(0, ' ');
        }
        if inside.trailing_comma.is_some() {
            insertion.push(',');
        }
        text.insert_str(inside.end, &insertion);
        if let (Some(last), None) = (last, inside.trailing_comma) {
            text.insert(last.range.end, ',');
        }
        text
    }

    /// Returns the range to remove with a property: its comma, and its line if it has one of its own.
    fn removal(&self, prop: &ObjectProp<'a>) -> Vec<Range<usize>> {
        let tokens = self.tokens();
        let at = tokens.partition_point(|token| token.range.start < prop.range.end);
        let behind = tokens.get(at..).unwrap_or_default().iter().find(|token| !is_comment(token));
        let first = tokens.partition_point(|token| token.range.start < prop.range.start);
        let before = tokens.get(..first).unwrap_or_default().iter().rev().find(|token| !is_comment(token));
        let comma = |token: &&TokenAndRange<'a>| matches!(token.token, Token::Comma);
        let mut ranges = Vec::new();
        let mut end = prop.range.end;
        if let Some(comma) = behind.filter(comma) {
            if self.between(end, comma.range.start).trim().is_empty() {
                end = comma.range.end;
            } else {
                ranges.push(comma.range.start..comma.range.end);
            }
        } else if let Some(comma) = before.filter(comma) {
            ranges.push(comma.range.start..comma.range.end);
        }
        let after = self.text.get(end..).unwrap_or_default();
        let blanks = after.len() - after.trim_start_matches([' ', '\t']).len();
        let rest = after.get(blanks..).unwrap_or_default();
        let ends_line = rest.is_empty() || rest.starts_with('\n') || rest.starts_with("\r\n");
        // A line comment must not hide more than before.
        let previous = tokens.get(..first).unwrap_or_default().last();
        let joins =
            rest.starts_with('}') && !previous.is_some_and(|token| matches!(token.token, Token::CommentLine(_)));
        let line_before = self.text.get(..prop.range.start).unwrap_or_default();
        let trimmed = line_before.trim_end_matches([' ', '\t']);
        let start = match trimmed.strip_suffix('\n') {
            Some(line) if ends_line || joins => {
                end += if ends_line { blanks } else { 0 };
                line.strip_suffix('\r').unwrap_or(line).len()
            }
            Some(_) => line_before.len(),
            None => trimmed.len(),
        };
        ranges.push(start..end);
        ranges
    }

    fn tokens(&self) -> &[TokenAndRange<'a>] {
        self.parsed.tokens.as_deref().unwrap_or_default()
    }

    fn inside(&self, object: &Object<'a>) -> Inside {
        let tokens = self.tokens();
        let close = tokens.partition_point(|token| token.range.end < object.range.end);
        let inner = tokens.get(..close).unwrap_or_default();
        let end = inner.last().map_or(object.range.start + 1, |token| token.range.end);
        let last = inner.iter().rev().find(|token| !is_comment(token));
        let comma = last.filter(|token| matches!(token.token, Token::Comma) && token.range.start > object.range.start);
        Inside { end, trailing_comma: comma.map(|token| token.range.start) }
    }

    fn style(&self, range: jsonc_parser::common::Range) -> Style {
        let over_lines = self.between(range.start, range.end).contains('\n');
        let first = self.parsed.value.as_ref().and_then(Node::as_object).and_then(|root| root.properties.first());
        let unit = first
            .filter(|first| self.is_first_in_line(first.range.start))
            .map(|first| self.indent_of(first.range.start));
        let unit = unit.filter(|unit| !unit.is_empty()).unwrap_or_else(|| "  ".to_owned());
        Style { over_lines, end: lines::usual_end(self.text), unit }
    }

    fn between(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    fn line_before(&self, position: usize) -> &'a str {
        let before = self.between(0, position);
        before.rsplit('\n').next().unwrap_or_default()
    }

    fn is_first_in_line(&self, position: usize) -> bool {
        self.between(0, position).contains('\n') && self.line_before(position).trim().is_empty()
    }

    /// Returns the blanks at the beginning of a line.
    fn indent_of(&self, position: usize) -> String {
        self.line_before(position).chars().take_while(|char| matches!(char, ' ' | '\t')).collect()
    }
}

/// Returns the end of the content of an object: its last value, comma or comment.
struct Inside {
    end: usize,
    trailing_comma: Option<usize>,
}

/// The style of an object.
struct Style {
    over_lines: bool,
    end: &'static str,
    unit: String,
}

impl Style {
    /// Returns properties, separated by commas.
    fn properties(&self, new: &[(&str, Value)], indent: &str) -> String {
        let written = new.iter().map(|(name, value)| {
            let (name, value) = (Value::from(*name), self.value(value, indent));
            if self.over_lines { format!("{}{indent}{name}: {value}", self.end) } else { format!("{name}: {value}") }
        });
        written.collect::<Vec<_>>().join(if self.over_lines { "," } else { ", " })
    }

    /// Returns a value. Its first line is not indented.
    fn value(&self, value: &Value, indent: &str) -> String {
        if !self.over_lines {
            return value.to_string();
        }
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        match serde::Serialize::serialize(value, &mut serializer) {
            // A JSON string never contains a line break.
            Ok(()) => String::from_utf8_lossy(&bytes).replace('\n', &format!("{}{indent}", self.end)),
            Err(_) => value.to_string(),
        }
    }
}

fn is_comment(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}

fn object_of<'d, 'a>(node: &'d Node<'a>, at: &[String]) -> Result<&'d Object<'a>, DocumentError> {
    let found = match node {
        Node::Object(object) => return Ok(object),
        Node::NullKeyword(_) => "null",
        Node::Array(_) => "an array",
        Node::StringLit(_) => "a string",
        Node::NumberLit(_) => "a number",
        Node::BooleanLit(_) => "a boolean",
    };
    Err(DocumentError::NotATable { at: shown(at), found })
}

/// Returns the property with this name, which is unique.
fn unique<'d, 'a>(
    object: &'d Object<'a>,
    at: &[String],
    name: &str,
) -> Result<Option<&'d ObjectProp<'a>>, DocumentError> {
    let mut found = object.properties.iter().filter(|prop| prop.name.as_str() == name);
    let first = found.next();
    if found.next().is_some() { Err(duplicate(at, name)) } else { Ok(first) }
}

fn duplicate(at: &[String], name: &str) -> DocumentError {
    let path: Vec<_> = at.iter().cloned().chain([name.to_owned()]).collect();
    DocumentError::Duplicate { key: shown(&path) }
}

fn node_data(node: &Node<'_>) -> Data {
    match node {
        Node::NullKeyword(_) => Data::Null,
        Node::BooleanLit(literal) => Data::Bool(literal.value),
        Node::NumberLit(literal) => Data::Number(literal.value.to_owned()),
        Node::StringLit(literal) => Data::Text(literal.value.clone().into_owned()),
        Node::Array(array) => Data::Array(array.elements.iter().map(node_data).collect()),
        Node::Object(object) => {
            let mut fields = BTreeMap::new();
            for prop in &object.properties {
                let data = node_data(&prop.value);
                match fields.get_mut(prop.name.as_str()) {
                    None => _ = fields.insert(prop.name.as_str().to_owned(), data),
                    Some(Data::Several(values)) => values.push(data),
                    Some(first) => *first = Data::Several(vec![first.clone(), data]),
                }
            }
            Data::Object(fields)
        }
    }
}
