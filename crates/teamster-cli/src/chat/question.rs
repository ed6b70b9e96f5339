//! Formats the agent's questions, and parses the user's answers.

use std::collections::BTreeMap;

use teamster::event::QuestionItem;

use crate::printable::{Printable, folded, printable};

/// Formats a question with its options. `place` is its number among all questions of the request, and their count.
pub(super) fn format_question(item: &QuestionItem, (number, count): (usize, usize), width: usize) -> Printable {
    let place = if count > 1 { printable!("{} of {}: ", number, count) } else { Printable::default() };
    let header = item.header.as_ref().filter(|header| !header.is_empty() && **header != item.text);
    let header = header.map(|header| printable!("[{}] ", Printable::exact(header.as_str()))).unwrap_or_default();
    let mut lines = folded(printable!("? {}{}", place, header), &item.text, width);
    for (number, option) in (1_usize..).zip(&item.options) {
        lines.extend(folded(printable!("    {}  ", number), &option.label, width));
        if let Some(description) = &option.description {
            lines.extend(folded(printable!("       - "), description, width));
        }
    }
    Printable::join(lines, "\n")
}

/// Returns the labels of the options, each on one line.
pub(super) fn labels(item: &QuestionItem) -> Vec<Printable> {
    item.options.iter().map(|option| Printable::exact(option.label.as_str())).collect()
}

/// Returns the prompt for the answer to a question. Arrow keys work in a live area only.
pub(super) fn question_prompt(item: &QuestionItem, is_live: bool) -> &'static str {
    match (item.options.is_empty(), item.multiple) {
        (true, _) => "  your answer (empty = decline): ",
        (_, Some(true)) if is_live => "  ↑ ↓ or numbers separated by commas, or your own answer (empty = decline): ",
        _ if is_live && item.multiple != Some(true) => "  ↑ ↓ or a number, or your own answer (empty = decline): ",
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
    use teamster::event::QuestionOption;

    use super::*;

    #[test]
    fn a_question_is_answered_by_numbers_or_text() {
        let option = |label: &str| QuestionOption::new(label).with_description(Some("d".into()));
        let mut item = QuestionItem::new("q", "Which?", vec![option("A"), option("B")]);
        assert_eq!(format_question(&item, (1, 1), 80).as_str(), "? Which?\n    1  A\n       - d\n    2  B\n       - d");
        item.header = Some("Color".into());
        let second = format_question(&item, (2, 3), 80);
        assert_eq!(second.as_str().lines().next(), Some("? 2 of 3: [Color] Which?"));
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
