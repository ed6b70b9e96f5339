//! What the agent asks the person: how it reads, and what an answer means.
//!
//! Invariants: what is allowed was shown whole, or can be; whatever is not plainly a yes allows nothing.

use std::collections::BTreeMap;

use serde_json::Value;
use teamster::event::{PermissionOptionKind, PermissionRequest, QuestionItem};
use teamster::request::Answer;

use crate::render::plain::{one_line, plain};

/// Lines of a call that are shown unasked.
const LINES: usize = 24;

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Answer(Answer),
    /// Show all of the call, and ask again.
    ShowAll,
    /// It was no answer: ask again.
    Again,
}

/// What the agent wants to do.
pub(super) fn shown(request: &PermissionRequest, whole: bool) -> String {
    let text = match request.input.to_value() {
        Ok(Value::Object(fields)) => {
            let lines = fields.iter().map(|(name, value)| match value {
                Value::String(text) if !text.contains('\n') => format!("{}: {}", one_line(name), plain(text)),
                Value::String(text) => format!("{}:\n{}", one_line(name), indented(&plain(text), "  ")),
                other => format!("{}: {}", one_line(name), plain(&other.to_string())),
            });
            lines.collect::<Vec<_>>().join("\n")
        }
        Ok(Value::Null) => String::new(),
        _ => plain(request.input.as_str()),
    };
    let count = text.lines().count();
    let mut lines: Vec<&str> = text.lines().take(if whole { count } else { LINES }).collect();
    let rest = format!("... {} more lines: v shows them", count - lines.len());
    if count > lines.len() {
        lines.push(&rest);
    }
    format!("? {} asks for leave\n{}", one_line(&request.tool_name), indented(&lines.join("\n"), "    "))
        .trim_end()
        .to_owned()
}

fn indented(text: &str, indent: &str) -> String {
    text.lines().map(|line| format!("{indent}{line}")).collect::<Vec<_>>().join("\n")
}

/// The line before the answer.
pub(super) fn prompt(request: &PermissionRequest) -> String {
    let always = if can_last(request) { ", a = always in this session" } else { "" };
    format!("  y = this once{always}, n = no, n WHY = no, and why: ")
}

fn can_last(request: &PermissionRequest) -> bool {
    request.options.iter().any(|option| option.kind == PermissionOptionKind::AllowAlways)
}

/// What an answer to a permission request means.
pub(super) fn answer(request: &PermissionRequest, line: &str) -> Reply {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let message = Some(rest.trim().to_owned()).filter(|rest| !rest.is_empty());
    match (word.to_lowercase().as_str(), message) {
        ("y" | "yes", None) => Reply::Answer(Answer::Allow { input: None }),
        ("a" | "always", None) if can_last(request) => Reply::Answer(Answer::AllowAlways),
        ("n" | "no", message) => Reply::Answer(Answer::Deny { message }),
        ("v", None) => Reply::ShowAll,
        _ => Reply::Again,
    }
}

/// A question with its choices.
pub(super) fn question(item: &QuestionItem) -> String {
    let choices = (1..).zip(&item.options).map(|(number, option)| {
        let description = option.description.as_ref().map(|text| format!("  {}", one_line(text))).unwrap_or_default();
        format!("\n    {number}  {}{description}", one_line(&option.label))
    });
    format!("? {}{}", one_line(&item.text), choices.collect::<String>())
}

/// The line before the answer to a question.
pub(super) fn question_prompt(item: &QuestionItem) -> &'static str {
    match (item.options.is_empty(), item.multiple) {
        (true, _) => "  in your own words, nothing declines: ",
        (_, Some(true)) => "  numbers with commas, or your own words; nothing declines: ",
        _ => "  a number, or your own words; nothing declines: ",
    }
}

/// What is chosen; `None` where it is declined, an error where a number is none of the choices.
pub(super) fn chosen(item: &QuestionItem, line: &str) -> Result<Option<Vec<String>>, String> {
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
        return Err("one choice only".to_owned());
    }
    let label = |number: &usize| number.checked_sub(1).and_then(|index| item.options.get(index));
    let labels: Option<Vec<String>> =
        numbers.iter().map(|number| Some(label(number)?.label.clone().into_string())).collect();
    labels.map(Some).ok_or_else(|| format!("numbers go from 1 to {}", item.options.len()))
}

/// Answers to questions, by their ids.
pub(super) type Choices = BTreeMap<String, Vec<String>>;

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster::event::{PermissionOption, QuestionOption};

    use super::*;

    fn request(always: bool, input: Value) -> PermissionRequest {
        let option = |kind| PermissionOption { option_id: "o".into(), name: "O".into(), kind };
        let mut options = vec![option(PermissionOptionKind::AllowOnce)];
        options.extend(always.then(|| option(PermissionOptionKind::AllowAlways)));
        PermissionRequest { options, ..PermissionRequest::new("r".into(), "Ba\u{1b}[1msh", input.into()) }
    }

    #[test]
    fn only_a_plain_yes_allows() {
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
            assert_eq!(answer(&once, line), Reply::Again, "{line}");
        }
        assert_eq!(answer(&always, "a"), Reply::Answer(Answer::AllowAlways));
        assert!(prompt(&always).contains("always") && !prompt(&once).contains("always"));
    }

    #[test]
    fn a_call_is_shown_whole_or_says_how_much_is_missing_and_drives_no_terminal() {
        let input = json!({"command": "ls \u{1b}]0;x\u{7}-l", "content": "one\ntwo"});
        assert_eq!(
            shown(&request(false, input), false),
            "? Bash asks for leave\n    command: ls -l\n    content:\n      one\n      two"
        );
        let long = json!({"content": "line\n".repeat(30)});
        assert!(shown(&request(false, long.clone()), false).ends_with("... 7 more lines: v shows them"));
        assert!(!shown(&request(false, long), true).contains("more lines"));
        assert_eq!(shown(&request(false, json!({})), false), "? Bash asks for leave");
    }

    #[test]
    fn a_question_is_answered_by_numbers_or_words() {
        let option = |label: &str| QuestionOption { label: label.into(), description: Some("d".into()) };
        let mut item = QuestionItem {
            id: "q".into(),
            text: "Which?".into(),
            options: vec![option("A"), option("B")],
            multiple: None,
        };
        assert_eq!(question(&item), "? Which?\n    1  A  d\n    2  B  d");
        let some = |labels: &[&str]| Ok(Some(labels.iter().map(|&label| label.to_owned()).collect()));
        assert_eq!(chosen(&item, " 2 "), some(&["B"]));
        assert_eq!(chosen(&item, "neither, 2"), some(&["neither, 2"]));
        assert_eq!(chosen(&item, ""), Ok(None));
        assert!(chosen(&item, "3").is_err() && chosen(&item, "0").is_err() && chosen(&item, "1,2").is_err());
        item.multiple = Some(true);
        assert_eq!(chosen(&item, "1, 2"), some(&["A", "B"]));
        item.options.clear();
        assert_eq!(chosen(&item, "3"), some(&["3"]));
    }
}
